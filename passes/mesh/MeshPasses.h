//===- MeshPasses.h - kernels on a mesh of ranks ----------------*- C++ -*-===//
#ifndef TK_PASSES_MESH_MESHPASSES_H
#define TK_PASSES_MESH_MESHPASSES_H

#include "dialects/tk/TkMeshOps.h"

#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/mesh/MeshPasses.h.inc"

/// Replaces a sharded kernel by what one rank runs; null, with diagnostics, if it cannot be placed.
KernelOp placeCollectives(KernelOp kernel);

/// Outlines local kernels of a placed kernel, which are put behind it.
llvm::LogicalResult splitAtCollectives(KernelOp kernel);

/// Lets launches of a placed kernel run for blocks of rows beside the collectives next to them.
llvm::LogicalResult overlapCollectives(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_MESH_MESHPASSES_H
