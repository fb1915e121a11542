//===- TkMeshOps.h - collectives, and how a kernel is sharded ---*- C++ -*-===//
//
// A kernel with `@` in its signature has the attributes
//
//   tk.mesh       the axes of the mesh, in order: ["dp", "tp"]
//   tk.shardings  for each parameter, then each result: the axis of each dimension, or ""
//
//   tk.mesh_sizes the ranks along each axis, once the kernel is compiled for a mesh
//
//   tk.mesh_dims  the sizes of dimensions for which the kernel is placed, if they are known
//
//   tk.network    the network between the ranks: a description, or the name of one
//
// Kernels without `@` have none of them. Extents, and the types of parameters, are global until
// tk-place-collectives makes them those of one rank; the attribute tk.placed then says so.
//
//===----------------------------------------------------------------------===//
#ifndef TK_DIALECTS_TK_TKMESHOPS_H
#define TK_DIALECTS_TK_TKMESHOPS_H

#include "dialects/tk/TkDialect.h"

#include "llvm/ADT/SmallVector.h"

#define GET_OP_CLASSES
#include "dialects/tk/TkMeshOps.h.inc"

namespace tk {

constexpr llvm::StringLiteral meshAttr = "tk.mesh";
constexpr llvm::StringLiteral shardingsAttr = "tk.shardings";
constexpr llvm::StringLiteral meshSizesAttr = "tk.mesh_sizes";
constexpr llvm::StringLiteral meshDimsAttr = "tk.mesh_dims";
constexpr llvm::StringLiteral networkAttr = "tk.network";
constexpr llvm::StringLiteral placedAttr = "tk.placed";
/// On a tk.assume: the axes of the mesh have to divide an extent.
constexpr llvm::StringLiteral dividesAttr = "tk.divides";
/// On an arith.muli: a number of rows, which is a dimension of local kernels.
constexpr llvm::StringLiteral rowsAttr = "tk.rows";
/// On a collective: the launch by rows next to it takes its blocks from it, or gives them to it.
constexpr llvm::StringLiteral besideLaunchAttr = "tk.beside_launch";
/// On a tk.reduce: the type in which ranks exchange partial results.
constexpr llvm::StringLiteral wireAttr = "tk.wire";
/// On a tk.launch: what the program calls its results.
constexpr llvm::StringLiteral launchNamesAttr = "names";

/// One axis of the mesh of a kernel.
struct MeshAxisInfo {
  llvm::StringRef name;
  int64_t size = 0; ///< 0: not known
};

/// The axes of the mesh of a kernel; empty for a kernel without `@`.
llvm::SmallVector<MeshAxisInfo> meshOf(KernelOp kernel);

/// The number of an axis in meshOf for each dimension of a tensor, or noShard.
using Sharding = llvm::SmallVector<int>;
constexpr int noShard = -1;
/// Of a parameter, or, behind those, of a result. Empty where the attributes are malformed.
Sharding shardingOf(KernelOp kernel, unsigned number, int64_t rank);

/// Whether the attributes are well formed; says at the kernel what is not.
llvm::LogicalResult verifyMesh(KernelOp kernel);

/// Whether ranks can combine partial results of this kind.
bool combinesOverRanks(ReduceKind kind);

} // namespace tk

#endif // TK_DIALECTS_TK_TKMESHOPS_H
