// The tool's tensors whose rows do not touch.
#include "compiler/tkc/RowGaps.h"
#include "tests/unit/catch.h"

using namespace tk;

TEST_CASE("rows are spread, gathered, and what is between them is watched", "[api]") {
  HostTensor tensor = HostTensor::zeros(DType::u8, {2, 3, 4});
  for (size_t n = 0; n < tensor.bytes.size(); ++n)
    tensor.bytes[n] = static_cast<std::byte>(n);
  CHECK(tkc::stridesOf(tensor.shape, {}) == row_major_strides(tensor.shape));
  const tkc::RowLayout apart{5, {}, 1};
  CHECK(tkc::stridesOf(tensor.shape, apart) == Extents{32, 9, 1});
  std::vector<std::byte> memory = tkc::spreadRows(tensor, apart);
  CHECK(memory.size() == 32 + 2 * 9 + 4);
  CHECK(memory[32 + 9 + 2] == std::byte{12 + 4 + 2});
  HostTensor back = HostTensor::zeros(DType::u8, {2, 3, 4});
  CHECK(tkc::gatherRows(memory, apart, back));
  CHECK(back.bytes == tensor.bytes);
  memory[4] = std::byte{0};
  CHECK_FALSE(tkc::gatherRows(memory, apart, back));

  for (const Extents &shape : {Extents{}, Extents{7}, Extents{0, 4}, Extents{3, 0}}) {
    HostTensor other = HostTensor::zeros(DType::f32, shape);
    CHECK(tkc::spreadRows(other, {3, {}, 1}) == other.bytes);
  }
}

TEST_CASE("axes lie in any order, and elements apart", "[api]") {
  HostTensor tensor = HostTensor::zeros(DType::u8, {2, 3, 4});
  for (size_t n = 0; n < tensor.bytes.size(); ++n)
    tensor.bytes[n] = static_cast<std::byte>(n);
  const tkc::RowLayout layout{1, {2, 0, 1}, 3};
  CHECK(tkc::stridesOf(tensor.shape, layout) == Extents{10, 3, 21});
  std::vector<std::byte> memory = tkc::spreadRows(tensor, layout);
  CHECK(memory.size() == 3 * 21 + 10 + 2 * 3 + 1);
  CHECK(memory[21 * 3 + 10 + 2 * 3] == std::byte{23});
  CHECK(memory[21 + 3] == std::byte{5});
  HostTensor back = HostTensor::zeros(DType::u8, {2, 3, 4});
  CHECK(tkc::gatherRows(memory, layout, back));
  CHECK(back.bytes == tensor.bytes);
  memory[1] = std::byte{0};
  CHECK_FALSE(tkc::gatherRows(memory, layout, back));
}
