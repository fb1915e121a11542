#include "tests/unit/catch.h"

#include "tk/tensor.h"

using namespace tk;

// The layout that DLPack's specification gives.
extern "C" struct DLDevice {
  int32_t device_type, device_id;
};
extern "C" struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
extern "C" struct DLTensor {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};

TEST_CASE("sizes are multiplied with overflow checks", "[tensor]") {
  int64_t big = int64_t{1} << 62;
  CHECK(element_count(Extents{2, 3, 4}).value() == 24);
  CHECK(element_count(Extents{}).value() == 1);
  CHECK(element_count(Extents{big, big}).error().message() == "tensor size overflows 64 bits");
  CHECK(element_count(Extents{big, 0, big}).value() == 0);
  CHECK(byte_count(DType::f64, Extents{big}).error().code() == ErrorCode::overflow);
  CHECK(element_count(Extents{-1}).error().code() == ErrorCode::invalid_argument);
  CHECK_THROWS_AS(TensorView(nullptr, DType::f32, Extents{2, big, big}), Error);
  CHECK_THROWS_AS((Extents{1, 2, 3, 4, 5, 6, 7, 8, 9}), Error);
}

TEST_CASE("contiguity ignores strides that are never taken", "[tensor]") {
  CHECK(TensorView(nullptr, DType::f32, {2, 3}).is_contiguous());
  CHECK(TensorView(nullptr, DType::f32, {1, 3}, {77, 1}, Device::cpu()).is_contiguous());
  CHECK(!TensorView(nullptr, DType::f32, {2, 3}, {1, 2}, Device::cpu()).is_contiguous());
  CHECK(!TensorView(nullptr, DType::f32, {2, 3}, {0, 1}, Device::cpu()).is_contiguous());
  CHECK(TensorView(nullptr, DType::f32, {0, 3}, {9, 9}, Device::cpu()).is_contiguous());
}

TEST_CASE("byte ranges follow the strides", "[tensor]") {
  using Range = std::pair<int64_t, int64_t>;
  CHECK(byte_range(TensorView(nullptr, DType::f32, {2, 3})).value() == Range(0, 24));
  CHECK(byte_range({nullptr, DType::f32, {2, 3}, {10, 1}, Device::cpu()}).value() == Range(0, 52));
  CHECK(byte_range({nullptr, DType::f32, {3}, {-1}, Device::cpu()}).value() == Range(-8, 4));
  CHECK(byte_range({nullptr, DType::f32, {0, 3}, {1, 1}, Device::cpu()}).value() == Range(0, 0));
  CHECK(!byte_range({nullptr, DType::f32, {3, 1}, {int64_t{1} << 62, 1}, Device::cpu()}));
}

TEST_CASE("DLPack tensors become views", "[tensor]") {
  char storage[64];
  int64_t shape[] = {2, 3}, strides[] = {4, 1};
  DLTensor tensor{storage, {2, 1}, 2, {4, 16, 1}, shape, strides, 8};
  TensorView view = from_dlpack(tensor).value();
  CHECK(view.data == storage + 8);
  CHECK(view.dtype == DType::bf16);
  CHECK(view.device == Device::cuda(1));
  CHECK(view.strides == Extents{4, 1});
  tensor.strides = nullptr;
  CHECK(from_dlpack(tensor).value().strides == Extents{3, 1});
  tensor.dtype.lanes = 2;
  CHECK(from_dlpack(tensor).error().code() == ErrorCode::unsupported);
  tensor.dtype.lanes = 1;
  tensor.device.device_type = 8; // Metal
  CHECK(from_dlpack(tensor).error().code() == ErrorCode::unsupported);
  tensor.device.device_type = 1;
  tensor.ndim = 9;
  CHECK(from_dlpack(tensor).error().code() == ErrorCode::unsupported);
}

TEST_CASE("views describe themselves", "[tensor]") {
  CHECK(TensorView(nullptr, DType::bf16, {2, 8}).str() == "bf16[2, 8]");
  CHECK(TensorView(nullptr, DType::f32, {2, 8}, {1, 2}, Device::cpu()).str() ==
        "f32[2, 8] with strides [1, 2]");
}
