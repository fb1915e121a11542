#include "tests/unit/catch.h"

#include "tk/npy.h"

#include <cstdlib>
#include <cstring>
#include <unistd.h>

using namespace tk;

namespace {

/// A file with that header dictionary and body.
std::string file(const std::string &dictionary, const std::string &body, char version = 1) {
  std::string bytes("\x93NUMPY", 6);
  bytes += {version, 0, static_cast<char>(dictionary.size() & 255),
            static_cast<char>(dictionary.size() >> 8)};
  if (version > 1)
    bytes += std::string(2, '\0');
  return bytes + dictionary + body;
}

std::string body_of(std::initializer_list<float> values) {
  std::string bytes(values.size() * 4, '\0');
  std::memcpy(bytes.data(), values.begin(), bytes.size());
  return bytes;
}

std::vector<float> floats(const HostTensor &tensor) {
  std::vector<float> values(tensor.bytes.size() / 4);
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

std::string dictionary(const std::string &type, const std::string &order,
                       const std::string &shape) {
  return "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

} // namespace

TEST_CASE("every type round-trips through a file", "[npy]") {
  for (unsigned i = 0; i < num_dtypes; ++i) {
    auto dtype = static_cast<DType>(i);
    HostTensor tensor = HostTensor::zeros(dtype, Extents{2, 3});
    for (unsigned e = 0; e < 6; ++e)
      store_from_f64(dtype, tensor.bytes.data() + e * size_of(dtype), e % 2);
    Expected<HostTensor> back = parse_npy(format_npy(tensor));
    REQUIRE(back);
    bool as_f32 = dtype == DType::bf16 || dtype == DType::f8e4m3 || dtype == DType::f8e5m2;
    CHECK(back->dtype == (as_f32 ? DType::f32 : dtype));
    CHECK(back->shape == tensor.shape);
    CHECK(back->converted(dtype).bytes == tensor.bytes);
    CHECK((format_npy(tensor).find('\n') + 1) % 64 == 0);
  }
}

TEST_CASE("Fortran order becomes row-major", "[npy]") {
  auto tensor = parse_npy(file(dictionary("<f4", "True", "(2, 3)"), body_of({0, 3, 1, 4, 2, 5})));
  REQUIRE(tensor);
  CHECK(floats(*tensor) == std::vector<float>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("numbers, vectors, empty tensors and version 2", "[npy]") {
  CHECK(parse_npy(file(dictionary("<f4", "False", "()"), body_of({7})))->shape.size() == 0);
  CHECK(parse_npy(file(dictionary("<f4", "False", "(2,)"), body_of({7, 8}), 2))->shape ==
        Extents{2});
  CHECK(parse_npy(file(dictionary("<f4", "False", "(0, 5)"), ""))->bytes.empty());
}

TEST_CASE("unsigned integers widen", "[npy]") {
  auto tensor = parse_npy(file(dictionary("<u2", "False", "(1,)"), std::string("\xff\xff", 2)));
  REQUIRE(tensor);
  CHECK(tensor->dtype == DType::i32);
  CHECK(load_as_f64(DType::i32, tensor->bytes.data()) == 65535);
}

TEST_CASE("damaged files are refused", "[npy]") {
  std::string good = file(dictionary("<f4", "False", "(2,)"), body_of({1, 2}));
  REQUIRE(parse_npy(good));
  for (size_t size = 0; size < good.size(); ++size)
    CHECK(!parse_npy(std::string_view(good).substr(0, size)));
  CHECK(!parse_npy(good + "x"));
  CHECK(!parse_npy(file(dictionary(">f4", "False", "(2,)"), body_of({1, 2}))));
  CHECK(!parse_npy(file(dictionary("|O", "False", "(2,)"), body_of({1, 2}))));
  CHECK(!parse_npy(file(dictionary("<f4", "False", "(-2,)"), body_of({1, 2}))));
  CHECK(!parse_npy(file(dictionary("<f4", "Maybe", "(2,)"), body_of({1, 2}))));
  CHECK(!parse_npy(file("{'shape': (2,)}", body_of({1, 2}))));
  CHECK(
      !parse_npy(file(dictionary("<f4", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 2)"), body_of({1, 2}))));
  auto huge = parse_npy(file(dictionary("<f4", "False", "(4611686018427387904, 4)"), ""));
  REQUIRE(!huge);
  CHECK(huge.error().message() == "tensor size overflows 64 bits");
}

TEST_CASE("any single byte may change without a crash", "[npy]") {
  std::string good = file(dictionary("<f4", "False", "(2,)"), body_of({1, 2}));
  for (size_t i = 0; i < good.size(); ++i)
    for (int value = 0; value < 256; ++value) {
      std::string damaged = good;
      damaged[i] = static_cast<char>(value);
      auto result = parse_npy(damaged);
      if (result && result->bytes.size() > 16) // unsigned integers widen
        FAIL("byte " << i << " = " << value << " made the tensor larger than the file");
    }
}

TEST_CASE("files on disk", "[npy]") {
  char directory[] = "/tmp/tk-npy-XXXXXX";
  REQUIRE(mkdtemp(directory));
  std::string path = std::string(directory) + "/x.npy";
  HostTensor tensor = HostTensor::zeros(DType::f32, Extents{3});
  REQUIRE(write_npy(path, tensor));
  CHECK(read_npy(path)->bytes == tensor.bytes);
  CHECK(read_npy(path + "x").error().code() == ErrorCode::io);
  CHECK(write_npy(std::string(directory) + "/no/x.npy", tensor).error().code() ==
        ErrorCode::write_failed);
  ::unlink(path.c_str());
  ::rmdir(directory);
}
