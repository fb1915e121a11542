//===- KernelCheck.h - run a tk kernel on the CPU and compare --*- C++ -*-===//
#ifndef TK_TESTS_TARGET_CPU_KERNELCHECK_H
#define TK_TESTS_TARGET_CPU_KERNELCHECK_H

#include "compiler/codegen/cpu/CpuExecutable.h"
#include "dialects/tk/TkDialect.h"
#include "tk/expr.h"
#include "tk/tensor.h"

#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <string>
#include <vector>

namespace tk::test {

/// A tensor that owns its elements, with guard bytes around them.
class HostTensor {
public:
  HostTensor(DType dtype, std::vector<int64_t> shape, std::vector<int64_t> strides = {});
  TensorView view();
  bool guardsIntact() const;

private:
  static constexpr size_t guard = 256;
  DType dtype;
  std::vector<int64_t> shape, strides;
  std::vector<uint8_t> bytes;
};

DType dtypeOf(mlir::Type element);

/// Everything a launch needs: arguments by name, filled with seeded normal numbers.
struct Launch {
  std::vector<int64_t> dims;
  std::vector<HostTensor> tensors; ///< parameters, then results
  std::vector<TensorView> params;  ///< the tensor parameters
  std::vector<Scalar> scalars;
  std::vector<int64_t> ints;
  std::vector<double> floats;

  /// Runs `entry` on `threads` threads; returns its status.
  int32_t run(tk_cpu_entry entry, unsigned threads);
};

/// Reads a `.mlir` file of tk kernels, or a `.tk` file through the frontend; `fuse` runs the fusion
/// pipeline. Null, with messages on standard error, where that fails.
mlir::OwningOpRef<mlir::ModuleOp> loadKernels(mlir::MLIRContext &context, const std::string &path,
                                              bool fuse);

using Sizes = std::map<std::string, int64_t>;

/// `integerRange` bounds the elements of integer inputs, from 0.
Launch makeLaunch(KernelOp kernel, const Sizes &sizes, int64_t integerRange, unsigned seed);

/// Compiles and runs the kernel; returns what is wrong with a result, or the empty string.
std::string checkKernel(KernelOp kernel, cpu::CpuExecutable &executable, const Sizes &sizes,
                        int64_t integerRange, unsigned threads = 2);

} // namespace tk::test

#endif // TK_TESTS_TARGET_CPU_KERNELCHECK_H
