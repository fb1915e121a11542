//===- LaunchPair.h - two launches that may become one ----------*- C++ -*-===//
//
// tk-join-launches has the last block of the first launch do the work of the second one.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_LAUNCH_LAUNCHPAIR_H
#define TK_PASSES_LAUNCH_LAUNCHPAIR_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/IR/SymbolTable.h"

namespace tk {

/// Two launches in a row.
class LaunchPair {
public:
  LaunchPair(gpu::LaunchOp first, gpu::LaunchOp second, mlir::SymbolTable &symbols)
      : first(first), second(second), parts(symbols.lookup<gpu::FuncOp>(first.getKernel())),
        join(symbols.lookup<gpu::FuncOp>(second.getKernel())),
        kernel(first->getParentOfType<KernelOp>()) {}

  /// Can the first one's blocks do the second one's work? Of at most `mostGroups` groups.
  bool analyse(int64_t mostGroups);
  int64_t getNumGroups() const { return numGroups; }
  void apply();

private:
  bool isPlain(gpu::LaunchOp launch, gpu::FuncOp function);
  bool findResults();
  bool findGroup();
  bool isSameAtHost(mlir::Value inFirst, mlir::Value host);
  bool isSame(mlir::Value inFirst, mlir::Value inSecond);
  bool isOwnPlace(mlir::Value index);
  bool readsOwnGroup(mlir::BlockArgument written, mlir::BlockArgument read);
  int64_t leastOf(mlir::Value value);

  gpu::LaunchOp first, second;
  gpu::FuncOp parts, join;
  KernelOp kernel;
  mlir::Value
      group; ///< the number of a block's group in the first function; null if there is one group
  mlir::Value groups; ///< how many there are
  int64_t numGroups = 1;
  llvm::SmallVector<std::pair<mlir::BlockArgument, mlir::BlockArgument>>
      results; ///< as both functions have them
};

} // namespace tk

#endif // TK_PASSES_LAUNCH_LAUNCHPAIR_H
