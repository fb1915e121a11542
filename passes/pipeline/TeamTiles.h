//===- TeamTiles.h - tiles that teams of warps take in turns ----*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_TEAMTILES_H
#define TK_PASSES_PIPELINE_TEAMTILES_H

#include "passes/pipeline/Rings.h"

namespace tk {

/// Can teams of warps take the tiles of `function` in turns? Before copies are cut out.
bool canTeamsTakeTurns(gpu::FuncOp function, llvm::ArrayRef<Ring> rings);

/// Shared memory that each team needs for itself: all but what the rings bring.
int64_t bytesOfTeam(gpu::FuncOp function, llvm::ArrayRef<Ring> rings);

/// Has each of the function's teams run the consumer's program for every so many tiles, in
/// buffers of its own.
void giveTilesToTeams(gpu::WarpRolesOp roles, llvm::MutableArrayRef<Ring> rings);

} // namespace tk

#endif // TK_PASSES_PIPELINE_TEAMTILES_H
