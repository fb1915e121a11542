//===- TkGpuExchange.h - scratch of exchanges between warps -----*- C++ -*-===//
//
// Reductions, scans and layout conversions exchange values between warps through scratch in shared
// memory, besides the function's allocations. Passes that plan shared memory reserve as many bytes
// as the emitter uses.
//
//===----------------------------------------------------------------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPUEXCHANGE_H
#define TK_DIALECTS_TKGPU_TKGPUEXCHANGE_H

#include "dialects/tkgpu/TkGpuDialect.h"
#include "dialects/tkgpu/TkGpuLayout.h"

namespace tk::gpu {

class HistogramOp;
class SortOp;

/// Bytes of an element of a tile, or of a scalar, in registers and in shared memory.
unsigned elementBytes(mlir::Type type, FuncOp function);

/// How the values that threads hold along an axis are combined.
enum class JoinKind : uint8_t {
  InWarps,      ///< no other warp has values of the same result
  EachLane,     ///< warps exchange a value of each lane, in scratch that operations share
  UniformWarps, ///< warps exchange one value, in scratch of the operation
  Blocks,       ///< the blocks of a cluster exchange values, in scratch of the operation
};
JoinKind joinKindOf(mlir::Operation *op, FuncOp function, AxisBits bits);

/// True if the consumers of a kernel with roles exchange the values in scratch of the operation: in
/// each iteration of a loop over products of warpgroups.
bool hasOwnExchange(mlir::Operation *op, JoinKind kind);

/// On a tkgpu.scan of suffixes: each element is joined with those behind it.
inline constexpr llvm::StringRef backwardAttrName = "backward";

/// The lanes and warps whose values a reduction combines: those along its axis, and those that an
/// open reduction in front of it has left.
AxisBits joinedBits(ReduceOp reduce);

/// Gives two consecutive reductions, along both axes of a tile that the blocks of a cluster share,
/// one exchange. These blocks always exchange the values of all of their threads.
void joinAxes(FuncOp function);

/// Gives two reductions to numbers, of which the second does not need the first, one exchange,
/// where all threads of a block or of a cluster share each row. What needs the first moves behind
/// both.
void joinNeighbours(FuncOp function);
/// The reduction whose value is exchanged together with that of `reduce`; null if there is none.
ReduceOp reductionBeside(ReduceOp reduce);

/// Bytes that a block needs to combine `count` values of `bytes` each, for each thread.
int64_t joinBytes(JoinKind kind, FuncOp function, unsigned count, unsigned bytes);
/// Is what a cluster's blocks join in `op` read by the end of a loop's body alone? They then send
/// their parts where the operation stands, and wait for the others' at that end.
bool isReadAtEnd(mlir::Operation *op);
/// Bytes that a block needs to combine a pair of floats of each warp (tkgpu.moments,
/// tkgpu.weights).
int64_t pairBytes(FuncOp function);
int64_t scanBytes(ScanOp scan, FuncOp function);
/// Bytes that a layout conversion needs if elements move between threads.
int64_t conversionBytes(ConvertLayoutOp convert, FuncOp function);

/// Bytes of a histogram's sums: one for each bin, or of floats one for each bin and warp.
int64_t histogramBytes(HistogramOp histogram, FuncOp function);

/// Bytes through which a sort exchanges elements: one for each element.
int64_t sortBytes(SortOp sort);

/// Bytes that a block needs for the tile numbers of tkgpu.tell: two numbers, and an mbarrier for
/// each.
inline constexpr int64_t kToldBytes = 32;

/// The alignment of each operation's scratch in bytes.
inline constexpr int64_t kExchangeAlignment = 16;

/// Bytes of shared memory through which the function's operations exchange values, besides its
/// allocations: the scratch that operations own, and the largest scratch that others use one after
/// the other.
int64_t exchangeBytesOf(FuncOp function);

} // namespace tk::gpu

#endif // TK_DIALECTS_TKGPU_TKGPUEXCHANGE_H
