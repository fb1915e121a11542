//===- Placer.h - a kernel, rewritten for one rank --------------*- C++ -*-===//
#ifndef TK_PASSES_MESH_PLACER_H
#define TK_PASSES_MESH_PLACER_H

#include "passes/mesh/ChooseCarrier.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

#include <map>
#include <vector>

namespace tk::mesh {

/// Makes, from a kernel on whole tensors, the kernel that one rank runs on its shares.
class Placer {
public:
  explicit Placer(KernelOp kernel);
  /// The new kernel, in front of the old one; null, with diagnostics, if it cannot be placed.
  KernelOp run();

private:
  /// A tensor of the new kernel, and how it is sharded.
  struct Placed {
    mlir::Value tensor;
    Sharding sharding;
    mlir::SmallVector<mlir::Value> extents; ///< whole ones
  };

  // The kernel (PlaceCollectives.cpp)
  bool createKernel();
  bool placeResults();
  void place(ComputeOp compute);
  void combinePartials(Placed &placed, ComputeOp compute,
                       mlir::ArrayRef<mlir::BlockArgument> carriers, const Sharding &desired);
  void addDivisibility();
  void eraseUnused();
  Sharding requiredOf(unsigned result) const;
  Sharding desiredOf(mlir::Value tensor, bool &isRequired);

  // One compute op (Placer.cpp)
  Placed rewrite(ComputeOp compute, mlir::ArrayRef<TensorUse> uses,
                 mlir::ArrayRef<mlir::BlockArgument> carriers);
  void useShare(LoadOp load, unsigned dim, const Subscript &subscript, mlir::BlockArgument index,
                llvm::SmallPtrSetImpl<mlir::OpOperand *> &local);
  void useGlobalIndex(mlir::BlockArgument index, mlir::Value offset,
                      const llvm::SmallPtrSetImpl<mlir::OpOperand *> &local);
  void boundShare(ReduceOp reduce, unsigned index, bool isWhole, mlir::Value share,
                  mlir::Value offset);
  Placed versionFor(const TensorUse &use, mlir::ArrayRef<mlir::BlockArgument> carriers);
  void combine(Placed &result, ReduceKind kind, llvm::StringRef what, int axis,
               const Sharding &desired);
  void convertElements(Placed &result, mlir::Type type, llvm::StringRef name);
  bool keepShares(ComputeOp compute, mlir::MutableArrayRef<TensorUse> uses, int axis);
  void convert(Placed &result, const Sharding &wanted, llvm::StringRef name);
  mlir::Value slice(const Placed &from, unsigned dim, int axis, llvm::StringRef name);

  mlir::Value shareOf(mlir::Value extent, int axis);
  mlir::Value offsetOf(mlir::Value extent, int axis);
  mlir::Value allGather(mlir::Location loc, const Placed &from, unsigned dim);
  mlir::Value allToAll(mlir::Location loc, const Placed &from, unsigned dim, unsigned to);
  mlir::RankedTensorType localType(mlir::RankedTensorType type, const Sharding &sharding) const;

  KernelOp kernel, made;
  mlir::SmallVector<MeshAxisInfo> axes;
  mlir::OpBuilder builder;
  mlir::IRMapping values;                      ///< sizes and scalars
  llvm::DenseMap<mlir::Value, Placed> tensors; ///< by tensor of the old kernel
  std::map<std::pair<void *, std::vector<int>>, mlir::Value> versions;
  llvm::MapVector<std::pair<mlir::Value, int>, mlir::Value> shares; ///< by whole extent and axis
  std::map<std::pair<void *, int>, mlir::Value> offsets;
  std::map<int, mlir::Value> ranks;
  bool failed = false;
};

} // namespace tk::mesh

#endif // TK_PASSES_MESH_PLACER_H
