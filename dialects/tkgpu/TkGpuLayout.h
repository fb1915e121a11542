//===- TkGpuLayout.h - constructors and algebra of layouts ------*- C++ -*-===//
//
// Every layout of a tile, from a blocked one to a matrix fragment, is a #tkgpu.layout; here is how
// to make one, how to derive one from another, and what it takes to go between two.
//
//===----------------------------------------------------------------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPULAYOUT_H
#define TK_DIALECTS_TKGPU_TKGPULAYOUT_H

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk::gpu {

/// A layout gives a thread at most 2^10 registers of a tile.
constexpr unsigned maxRegisterBits = 10;

/// How to spread a tile over threads in blocks. All numbers are powers of two.
struct BlockedShape {
  /// Elements of one vector access, a number for each axis.
  llvm::SmallVector<int64_t> perThread;
  /// The axes, the one along which consecutive lanes run first.
  llvm::SmallVector<unsigned> order;
  int64_t numWarps = 4;
  /// Lanes and warps for each axis; empty: as many as fit, in `order`.
  llvm::SmallVector<int64_t> lanes = {};
  llvm::SmallVector<int64_t> warps = {};
};

/// Registers take `perThread` elements, lanes and then warps follow in `order`; what the threads do
/// not cover repeats in registers, and threads that the tile does not need are replicas.
LayoutAttr blockedLayout(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> shape,
                         const BlockedShape &blocked);

/// The shape of the warps over the m and n axes of a product; their product is the warp count.
/// Warps along n are numbered first.
struct WarpGrid {
  int64_t m = 1;
  int64_t n = 1;
};

/// Which operand of a product.
enum class DotOperand { A, B };

/// The f32, s32 or f64 accumulator tile of mma.sync m16n8: each warp owns a contiguous
/// (m / warps.m) x (n / warps.n) part. Null if a warp's part is smaller than 16x8.
LayoutAttr mmaAccumulatorLayout(mlir::MLIRContext *context, int64_t m, int64_t n, WarpGrid warps);

/// The operand tile, [m, k] for A and [k, n] for B, of mma.sync m16n8k(256 / bits); `outer` is m
/// or n. Registers come in the order of the instruction's operands: words of 32 bits, or one f64.
/// Null if a part is smaller than an instruction's, or a thread's share above 1024 elements.
/// The order of k is that of the instruction, or one in which a thread has `run` neighbours, two
/// words or more: sums are over the same products if both operands have it.
LayoutAttr mmaOperandLayout(mlir::MLIRContext *context, DotOperand operand, int64_t outer,
                            int64_t k, WarpGrid warps, unsigned bits, int64_t run = 0);

/// The accumulator tile of wgmma: 64 rows at a time belong to four warps with 16 each, registers
/// within a warp lie as in mma.m16n8. Groups of four warps lie along m as far as there are rows for
/// them, each with a contiguous part, then along n. Null if a part is smaller than 64x8.
/// `interleave` is that of operand B, whose rows the columns are. With as many parts as a 32-bit
/// word has pairs of elements, a thread holds the neighbours of a word of operand A.
LayoutAttr warpgroupAccumulatorLayout(mlir::MLIRContext *context, int64_t m, int64_t n,
                                      int64_t numWarps, int64_t interleave = 1);

/// Are the rows along `axis`, so many, dealt out to several warpgroups one part after the other?
bool areRowsByWarpgroup(LayoutAttr layout, int64_t axis, int64_t rows);

/// What an operand A in registers must be, given the accumulator's layout: each warp has its rows.
LayoutAttr warpgroupOperandLayout(LayoutAttr accumulator, int64_t k, unsigned bits);

/// What the operand tile of a product on FMA units must be, given its accumulator's layout: each
/// thread has all k for its rows (columns). Null if a thread's share is above 1024 elements.
LayoutAttr fmaOperandLayout(LayoutAttr accumulator, DotOperand operand, int64_t k);

/// Drops `axis`: the layout of a tile reduced along it, or of one to be broadcast along it.
LayoutAttr sliceLayout(LayoutAttr layout, unsigned axis);

/// The layout of a tile of which runs of `run` elements along `axis` are reduced: the axis counts
/// the runs.
LayoutAttr runsLayout(LayoutAttr layout, unsigned axis, int64_t run);

/// The layout of a tile reduced along `axis` within each thread: the axis counts the threads that
/// share it.
LayoutAttr threadPartsLayout(LayoutAttr layout, unsigned axis);

/// The layout of the source of a broadcast with result layout `layout` where source axis `a` is
/// result axis `dims[a]`, and all other axes are new. Axes of extent 1 in `sourceShape` lose
/// their vectors.
LayoutAttr broadcastSourceLayout(LayoutAttr layout, llvm::ArrayRef<int64_t> dims,
                                 llvm::ArrayRef<int64_t> sourceShape);

/// Result axis `a` is axis `permutation[a]` of `layout`.
LayoutAttr permuteLayout(LayoutAttr layout, llvm::ArrayRef<int64_t> permutation);

/// The layout of a part of `shape` that each thread has in registers: the registers beyond it are
/// dropped. Null if the part cuts through lanes or warps.
LayoutAttr partLayout(LayoutAttr layout, llvm::ArrayRef<int64_t> shape);

/// The same elements in the same threads, but with neighbours along `axis` in consecutive
/// registers.
LayoutAttr withAxisFirst(LayoutAttr layout, unsigned axis);

/// Do the two give the same thread the same elements, if perhaps in other registers? For layouts of
/// one tile shape.
bool sameDistribution(LayoutAttr a, LayoutAttr b);

/// What it takes to convert a tile from one layout to another.
enum class Conversion {
  None,     ///< nothing: equal
  Register, ///< a renaming of registers within each thread
  Shuffle,  ///< an exchange within warps
  Shared,   ///< through shared memory
};
Conversion classifyConversion(LayoutAttr from, LayoutAttr to);

/// For a Register conversion: `result[r]` is the register of `from` that becomes register r of
/// `to`. Empty if it is not one.
llvm::SmallVector<unsigned> registerPermutation(LayoutAttr from, LayoutAttr to);

/// Where a reduction along an axis takes place: the bits of the register number, of the lane and
/// of the warp that run along it, as masks.
struct AxisBits {
  unsigned registers = 0;
  unsigned lanes = 0;
  unsigned warps = 0;
};
AxisBits axisBits(LayoutAttr layout, unsigned axis);
/// Likewise of a reduction of runs of `run` elements.
AxisBits runBits(LayoutAttr layout, unsigned axis, int64_t run);

/// The layout of a ranked tensor type; null if it has none.
inline LayoutAttr getLayout(mlir::Type type) {
  auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
  return tensor ? llvm::dyn_cast_or_null<LayoutAttr>(tensor.getEncoding()) : LayoutAttr();
}
inline mlir::RankedTensorType withLayout(mlir::Type type, LayoutAttr layout) {
  auto tensor = llvm::cast<mlir::RankedTensorType>(type);
  return mlir::RankedTensorType::get(tensor.getShape(), tensor.getElementType(), layout);
}

} // namespace tk::gpu

#endif // TK_DIALECTS_TKGPU_TKGPULAYOUT_H
