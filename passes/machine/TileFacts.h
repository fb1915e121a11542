//===- TileFacts.h - sizes of tiles, registers and accesses -----*- C++ -*-===//
//
// Sizes that several passes share and that follow from the machine: the largest tile of a
// warpgroup product, the elements of the widest access, the registers that a thread computes with,
// and the extent that stands for an unknown one.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MACHINE_TILEFACTS_H
#define TK_PASSES_MACHINE_TILEFACTS_H

#include "passes/machine/Machine.h"

namespace tk {

/// Elements of the widest access of a thread: of 8 bits, which is the most of any type, and of 16.
inline constexpr int64_t bytesOfVector = vectorBytes, halvesOfVector = vectorBytes / 2;

/// Rows and columns of the largest warpgroup tile (WarpgroupTiles.h). Tiles of CUDA cores have as
/// many rows at most.
inline constexpr int64_t rowsOfLargestTile = 128, columnsOfLargestTile = 256;

/// Columns of the outputs of back-to-back contractions: two warpgroups divide more columns than one
/// has registers for, and share the rows.
inline constexpr int64_t mostColumnsOfChain = 2 * mostColumnsOfWarpgroup;

/// The warps of two warpgroups that share a tile.
inline constexpr int64_t warpsOfTwoWarpgroups = 2 * warpsOfWarpgroup;

/// Registers of a thread for addresses and expressions beside its tiles: as a rule, with rows that
/// are read through a misalignment shift, in a pipelined loop, beside masks (tk-limit-registers),
/// and where rows are copied ahead (tk-fetch-ahead).
inline constexpr int64_t workingRegisters = 32, workingWithFunnels = 48, workingInSteps = 36,
                         workingWithMasks = 24, workingInRows = 48;

/// The longest column, across memory, of which a block holds all elements beside its neighbours'.
inline constexpr int64_t longestHeldColumn = 256;

/// The extent that costs and plans assume where no bound is known.
inline constexpr int64_t assumedExtent = int64_t(1) << 14;

} // namespace tk

#endif // TK_PASSES_MACHINE_TILEFACTS_H
