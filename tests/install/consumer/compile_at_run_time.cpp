// A program that compiles: everything comes from libtk.so, errors included.
#include <tk/tk.h>

#include <cstdio>
#include <vector>

int main() {
  tk::CompileOptions options;
  options.target = "cpu";
  tk::Module module =
      tk::compile("kernel square(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] * x[i] }", options);
  tk::Kernel square = module.kernel("square");
  std::vector<float> x(1000), y(1000);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i % 17);
  square({}, {{"x", tk::TensorView(x.data(), tk::DType::f32, {1000})}},
         {{"y", tk::TensorView(y.data(), tk::DType::f32, {1000})}});
  for (size_t i = 0; i < x.size(); ++i)
    if (y[i] != x[i] * x[i]) {
      std::printf("y[%zu] is %g\n", i, y[i]);
      return 1;
    }
  // Exceptions cross the library's border with their type.
  try {
    square({}, {{"x", tk::TensorView(x.data(), tk::DType::f64, {1000})}},
           {{"y", tk::TensorView(y.data(), tk::DType::f32, {1000})}});
  } catch (const tk::Error &error) {
    if (error.code() == tk::ErrorCode::invalid_argument)
      return 0;
  }
  std::puts("a wrong argument was not refused");
  return 1;
}
