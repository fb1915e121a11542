// A program that launches kernels compiled ahead of time: checks them on a GPU where there is one,
// and that it is told so where there is none.
#include "scale.tk.h"

#include <cstdio>
#include <type_traits>

// The types of the tensors are checked by the C++ compiler.
using Function = void (*)(tk::Stream, const tk::TypedView<tk::DType::f32, 1> &,
                          const tk::TypedView<tk::DType::f32, 1> &, std::optional<float>);
static_assert(std::is_same_v<decltype(&scale::scale), Function>);
static_assert(!std::is_constructible_v<tk::TypedView<tk::DType::f32, 2>, void *, int>);
static_assert(std::is_constructible_v<tk::TypedView<tk::DType::f32, 2>, void *, int, long>);

int main() {
  void *memory = nullptr;
  try {
    // Nothing is read or written: both kernels have no elements to work on.
    scale::scale({}, {memory, 0}, {memory, 0});
    scale::double_({}, {memory, 0, 8}, 1, {memory, 0, 8});
    std::puts("launched");
  } catch (const tk::Error &error) {
    std::printf("%s: %s\n", std::string(tk::name(error.code())).c_str(), error.what());
    return error.code() != tk::ErrorCode::no_driver && error.code() != tk::ErrorCode::no_device;
  }
  return 0;
}
