// The tool's tensors whose rows do not touch.
#include "compiler/tkc/RowGaps.h"
#include "tests/unit/catch.h"

using namespace tk;

TEST_CASE("rows are spread, gathered, and what is between them is watched", "[api]") {
  HostTensor tensor = HostTensor::zeros(DType::u8, {2, 3, 4});
  for (size_t n = 0; n < tensor.bytes.size(); ++n)
    tensor.bytes[n] = static_cast<std::byte>(n);
  CHECK(tkc::stridesWithGap(tensor.shape, 0) == row_major_strides(tensor.shape));
  CHECK(tkc::stridesWithGap(tensor.shape, 5) == Extents{32, 9, 1});
  std::vector<std::byte> memory = tkc::spreadRows(tensor, 5);
  CHECK(memory.size() == 32 + 2 * 9 + 4);
  CHECK(memory[32 + 9 + 2] == std::byte{12 + 4 + 2});
  HostTensor back = HostTensor::zeros(DType::u8, {2, 3, 4});
  CHECK(tkc::gatherRows(memory, 5, back));
  CHECK(back.bytes == tensor.bytes);
  memory[4] = std::byte{0};
  CHECK_FALSE(tkc::gatherRows(memory, 5, back));

  for (const Extents &shape : {Extents{}, Extents{7}, Extents{0, 4}, Extents{3, 0}}) {
    HostTensor other = HostTensor::zeros(DType::f32, shape);
    CHECK(tkc::spreadRows(other, 3) == other.bytes);
  }
}
