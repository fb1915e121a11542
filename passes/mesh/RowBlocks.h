//===- RowBlocks.h - local kernels that run for blocks of rows --*- C++ -*-===//
//
// A local kernel computes a block of rows of its results from the same block of rows of its inputs
// if one index of each compute op, the row index,
//
//   - stands at dimension 0 of each result,
//   - is used for nothing but as the first subscript of loads,
//   - and its extent is a dimension of the kernel that no other index and no value depends on.
//
// Inputs whose first subscript is the row index are taken by blocks, all others whole.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MESH_ROWBLOCKS_H
#define TK_PASSES_MESH_ROWBLOCKS_H

#include "passes/mesh/MeshCosts.h"

#include "llvm/ADT/SmallPtrSet.h"

namespace tk::mesh {

/// A row index, and the tensors that have it as dimension 0.
struct RowBlocks {
  mlir::Value extent;
  llvm::SmallPtrSet<void *, 8> tensors;
  bool has(mlir::Value tensor) const { return tensors.contains(tensor.getAsOpaquePointer()); }
};

/// The rows of a local kernel that one of its tensors has, a parameter or the result of a compute
/// op; nothing if the kernel cannot run for blocks of them. `why` says what is in the way.
std::optional<RowBlocks> rowBlocksOf(KernelOp local, mlir::Value tensor, std::string &why);

/// The predicted time of compute ops that read and write the tensors of a rank, and of a block of
/// their rows.
class BlockWork {
public:
  explicit BlockWork(const MeshCosts &costs) : costs(costs) {}
  /// Adds an op; `isRow` says whether dimension 0 of a tensor is that of the rows.
  void add(ComputeOp compute, llvm::function_ref<bool(mlir::Value)> isRow);
  /// Of one of `blocks` launches.
  double launch(double blocks) const;

private:
  const MeshCosts &costs;
  double math = 0, rowBytes = 0, wholeBytes = 0;
  llvm::SmallPtrSet<void *, 8> seen;
};

} // namespace tk::mesh

#endif // TK_PASSES_MESH_ROWBLOCKS_H
