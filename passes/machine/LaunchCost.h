//===- LaunchCost.h - what the launches of a kernel cost --------*- C++ -*-===//
//
// Counts what a compiled kernel does at given sizes, launch by launch, from its IR (tk.kernel with
// tkgpu.launch, and tkgpu.func), and predicts times by CostModel.h.
//
// 1. The kernel's sizes follow from its dimensions: grids, arguments, shapes of tensors.
// 2. Some blocks of a launch stand for all: each is gone through by BlockWalk.
// 3. Bytes through the second-level cache are the sum over blocks. Bytes of device memory follow
//    for each tensor: it is read once if it fits in the cache beside the others, and else as often
//    as blocks that run at the same time do not share what they read.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_LAUNCHCOST_H
#define TK_PASSES_MACHINE_LAUNCHCOST_H

#include "passes/machine/CostModel.h"

#include "dialects/tk/TkDialect.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tk {

/// A tensor of a launch, in bytes.
struct TensorCost {
  std::string name;
  double size = 0;
  double cacheRead = 0;                     ///< through the second-level cache
  double memoryRead = 0, memoryWritten = 0; ///< of device memory
};

struct LaunchCost {
  std::string symbol;
  LaunchWork work;
  Prediction prediction;
  Roofs roofs; ///< of the machine
  int64_t processors = 0;
  double operations = 0; ///< two for a multiply-add, as WorkCount counts them
  std::vector<TensorCost> tensors;
  /// What operations of a place have in the time beside the launch itself: the shares add up to 1.
  std::vector<std::pair<mlir::Location, double>> shares;
  std::vector<std::string> notes; ///< what makes the launch slower than it should be
};

struct KernelCost {
  std::vector<LaunchCost> launches;
  double nanoseconds = 0;
  double operations = 0;
  double scratchBytes = 0; ///< of results of launches that are no results of the kernel
};

/// What is known of a launch's code beside the IR: blocks that one multiprocessor holds. 0: it
/// follows from the function's threads and shared memory.
using BlocksAtOnce = llvm::function_ref<unsigned(llvm::StringRef symbol)>;

/// The elements of integer tensors, by the tensors' names, in row-major order.
using TensorTables = std::map<std::string, std::vector<int64_t>>;

/// What a call of a kernel gives it.
struct KernelSizes {
  llvm::ArrayRef<int64_t> dims;
  llvm::ArrayRef<std::optional<int64_t>> scalars; ///< of floats and what is not known: nothing
  const TensorTables *tables = nullptr;           ///< of tensors whose elements are assumed
};

/// The costs of a lowered kernel at these sizes; nothing if a launch depends on what is not known.
std::optional<KernelCost> costOfKernel(KernelOp kernel, const KernelSizes &sizes,
                                       const Machine &machine, BlocksAtOnce blocksAtOnce);

} // namespace tk

#endif // TK_PASSES_MACHINE_LAUNCHCOST_H
