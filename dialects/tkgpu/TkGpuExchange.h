//===- TkGpuExchange.h - what operations exchange ---------------*- C++ -*-===//
//
// Threads of several warps exchange values through shared memory beside what a function allocates:
// reductions, scans and changes of layout. Passes that plan shared memory leave room for as many
// bytes as the emitter takes.
//
//===----------------------------------------------------------------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPUEXCHANGE_H
#define TK_DIALECTS_TKGPU_TKGPUEXCHANGE_H

#include "dialects/tkgpu/TkGpuDialect.h"
#include "dialects/tkgpu/TkGpuLayout.h"

namespace tk::gpu {

/// Bytes of an element of a tile, or of a scalar, in registers and in shared memory.
unsigned elementBytes(mlir::Type type, FuncOp function);

/// How values that threads hold along an axis are joined.
enum class JoinKind : uint8_t {
  InWarps,      ///< no other warp has values of the same result
  EachLane,     ///< warps exchange what each lane has, in memory that others use after them
  UniformWarps, ///< warps exchange one value, in memory of the operation's own
  Blocks,       ///< the blocks of a cluster send it to each other, to memory of its own
};
JoinKind joinKindOf(mlir::Operation *op, FuncOp function, AxisBits bits);

/// The unit attribute of a tkgpu.reduce that leaves each thread what it has. Its one reader reduces
/// that to a number, for which all threads meet once (see joinAxes).
inline constexpr llvm::StringRef openAttrName = "open";

/// The lanes and warps whose values a reduction joins: those along its axis, and those that an open
/// one before it has left.
AxisBits joinedBits(ReduceOp reduce);

/// Lets reductions of a tile along both of its axes, one behind the other, meet once where the
/// blocks of a cluster have the tile: those exchange what all of their threads have, and no less.
void joinAxes(FuncOp function);

/// What a block needs to join `count` values of `bytes` each, for each thread.
int64_t joinBytes(JoinKind kind, FuncOp function, unsigned count, unsigned bytes);
/// What it needs to join a pair of floats that each warp has (moments, weights).
int64_t pairBytes(FuncOp function);
int64_t scanBytes(ScanOp scan, FuncOp function);
/// What a change of layout needs that moves elements between threads.
int64_t conversionBytes(ConvertLayoutOp convert, FuncOp function);

/// What a block needs for the numbers that clusters are told (tkgpu.tell): two, and a barrier with
/// phases for each.
inline constexpr int64_t kToldBytes = 32;

/// Each operation's memory begins at a multiple of this.
inline constexpr int64_t kExchangeAlignment = 16;

/// All that the function's operations exchange through, beside what it allocates: what some have of
/// their own, and the most that others use one after the other.
int64_t exchangeBytesOf(FuncOp function);

} // namespace tk::gpu

#endif // TK_DIALECTS_TKGPU_TKGPUEXCHANGE_H
