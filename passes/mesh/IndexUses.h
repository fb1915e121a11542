//===- IndexUses.h - at which dimensions indices stand ----------*- C++ -*-===//
//
// The index algebra of a compute op: which index selects which dimension of which tensor. A rank's
// share of a dimension is a range of it, so only two forms of a subscript keep to a share: the
// index itself, and its quotient by the ratio of its extent and the dimension's (`h / (H / G)`).
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MESH_INDEXUSES_H
#define TK_PASSES_MESH_INDEXUSES_H

#include "dialects/tk/TkMeshOps.h"

namespace tk::mesh {

/// What stands at one dimension of a load.
struct Subscript {
  mlir::BlockArgument index; ///< null: something else
  bool isQuotient = false;   ///< the index divided, so that shares of it select shares
  bool isLoaded = false;     ///< an element of an integer tensor; outside the dimension 0 is read
  bool keepsShare = false;   ///< a loaded one that reads a rank's share, and 0 beside it
};

/// One load of a compute op, at any depth.
struct TensorUse {
  mutable LoadOp load;                     ///< operations are handles
  mlir::SmallVector<Subscript> subscripts; ///< one a dimension
};

mlir::SmallVector<TensorUse> usesOf(ComputeOp compute);

/// The extents of a tensor of a kernel: those of its tk.bind, or of its compute op.
mlir::SmallVector<mlir::Value> extentsOf(mlir::Value tensor);

/// The same value: equal constants are.
bool isSame(mlir::Value a, mlir::Value b);

/// The extent of an index that ranges from 0 on, or null.
mlir::Value extentOf(mlir::BlockArgument index);
/// The name of an index in the source.
llvm::StringRef nameOf(mlir::BlockArgument index);

/// The reduction that is all that a compute op computes, or null.
ReduceOp soleReduction(ComputeOp compute);

/// Whether a compute op does nothing but load an element that a loaded subscript selects.
bool isGather(ComputeOp compute);

/// The widest float that `root` reads, beside ids and positions; null if there is none.
mlir::Type widestOperand(mlir::Operation *root);

/// An estimate of a size: constants are known, and all else is usual.
double estimate(mlir::Value size);
/// Elements of a tensor, and bytes.
double elementsOf(mlir::ValueRange extents);
double bytesOf(mlir::Value tensor);
double bytesOf(mlir::ValueRange extents, mlir::Type element);

} // namespace tk::mesh

#endif // TK_PASSES_MESH_INDEXUSES_H
