//===- MeshCosts.h - what a rank's work and its messages cost ---*- C++ -*-===//
//
// Only the choice between placements of one compute op reads these.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MESH_MESHCOSTS_H
#define TK_PASSES_MESH_MESHCOSTS_H

#include <cstdint>

namespace tk::mesh {

/// Bytes a second that a rank sends while it receives as many: NVLink of an H200.
inline constexpr double linkBytesPerSecond = 400e9;
/// Until the first byte of a collective arrives.
inline constexpr double collectiveSeconds = 8e-6;
/// Multiply-adds a second of a product of matrices on one rank.
inline constexpr double productsPerSecond = 300e12;
/// Elements a second of other work, which memory bounds.
inline constexpr double elementsPerSecond = 1e12;
/// A size that is not known.
inline constexpr double usualSize = 4096;

} // namespace tk::mesh

#endif // TK_PASSES_MESH_MESHCOSTS_H
