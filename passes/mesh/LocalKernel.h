//===- LocalKernel.h - compute ops between collectives ----------*- C++ -*-===//
#ifndef TK_PASSES_MESH_LOCALKERNEL_H
#define TK_PASSES_MESH_LOCALKERNEL_H

#include "dialects/tk/TkMeshOps.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tk::mesh {

/// On an exchange: what it sends stays in one local kernel with what computes it.
inline constexpr llvm::StringLiteral togetherAttr = "tk.together";

/// The extents of a tensor of a placed kernel, as they are on a rank; makes what is missing at
/// `builder`.
mlir::SmallVector<mlir::Value> localExtents(mlir::OpBuilder &builder, mlir::Value tensor);

/// Compute ops of a placed kernel that become one local kernel.
struct LocalPart {
  llvm::SetVector<mlir::Operation *> computes; ///< in order
  llvm::SetVector<mlir::Value> inputs;         ///< tensors that they read from elsewhere
  llvm::SetVector<mlir::Value> results;        ///< tensors that are read elsewhere
};

/// Makes the local kernel behind `placed`, and its tk.launch at `builder`. Returns the launch,
/// whose results are those of the part in order.
LaunchOp outline(const LocalPart &part, KernelOp placed, llvm::StringRef name,
                 mlir::OpBuilder &builder);

} // namespace tk::mesh

#endif // TK_PASSES_MESH_LOCALKERNEL_H
