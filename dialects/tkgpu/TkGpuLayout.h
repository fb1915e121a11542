//===- TkGpuLayout.h - constructors and algebra of layouts ------*- C++ -*-===//
//
// Every layout of a tile, from a blocked one to a matrix fragment, is a #tkgpu.layout. This file
// constructs layouts, derives one from another, and classifies the conversion between two.
//
//===----------------------------------------------------------------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPULAYOUT_H
#define TK_DIALECTS_TKGPU_TKGPULAYOUT_H

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk::gpu {

/// A layout gives a thread at most 2^10 registers of a tile.
constexpr unsigned maxRegisterBits = 10;

/// The distribution of a tile over threads in blocks. All numbers are powers of two.
struct BlockedShape {
  /// Elements of one vector access along each axis.
  llvm::SmallVector<int64_t> perThread;
  /// The axes, beginning with the one along which consecutive lanes lie.
  llvm::SmallVector<unsigned> order;
  int64_t numWarps = 4;
  /// Lanes and warps along each axis. Empty: as many as fit, in `order`.
  llvm::SmallVector<int64_t> lanes = {};
  llvm::SmallVector<int64_t> warps = {};
};

/// Registers hold `perThread` elements; lanes and then warps follow in `order`. Elements that the
/// threads do not cover are further registers. Threads that the tile does not need are replicas.
LayoutAttr blockedLayout(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> shape,
                         const BlockedShape &blocked);

/// The shape of the warps over the m and n axes of a contraction; `m * n` is the number of warps.
/// Warps along n have consecutive numbers.
struct WarpGrid {
  int64_t m = 1;
  int64_t n = 1;
};

/// An operand of a contraction.
enum class DotOperand { A, B };

/// The f32, s32 or f64 accumulator tile of mma.sync m16n8: each warp owns a contiguous
/// (m / warps.m) x (n / warps.n) part. Null if a warp's part is smaller than 16x8.
LayoutAttr mmaAccumulatorLayout(mlir::MLIRContext *context, int64_t m, int64_t n, WarpGrid warps);

/// The operand tile, [m, k] for A and [k, n] for B, of mma.sync m16n8k(256 / bits). `outer` is m or
/// n. Registers are in the order of the instruction's operands: words of 32 bits, or one f64. Null
/// if a part is smaller than an instruction's, or if a thread would have more than 1024 elements. k
/// is in the instruction's order, or in one in which a thread has `run` neighbours, two words or
/// more. The sum is the same if both operands have that order.
LayoutAttr mmaOperandLayout(mlir::MLIRContext *context, DotOperand operand, int64_t outer,
                            int64_t k, WarpGrid warps, unsigned bits, int64_t run = 0);

/// The accumulator tile of wgmma: each block of 64 rows belongs to four warps with 16 rows each.
/// Registers within a warp are those of mma.m16n8. Warpgroups are placed along m as far as there
/// are rows for them, each with a contiguous part, then along n. Null if a part is smaller than
/// 64x8. `interleave` is that of operand B, whose rows are the columns. With as many parts as a
/// 32-bit word has pairs of elements, a thread holds the neighbours of a word of operand A.
LayoutAttr warpgroupAccumulatorLayout(mlir::MLIRContext *context, int64_t m, int64_t n,
                                      int64_t numWarps, int64_t interleave = 1);

/// True if several warpgroups have consecutive parts of the `rows` rows along `axis`.
bool areRowsByWarpgroup(LayoutAttr layout, int64_t axis, int64_t rows);

/// The layout of an operand A in registers for the accumulator's layout: each warp has its rows.
LayoutAttr warpgroupOperandLayout(LayoutAttr accumulator, int64_t k, unsigned bits);

/// The layout of an operand of a contraction by FMA for the accumulator's layout: each thread has
/// all k of its rows (columns). Null if a thread would have more than 1024 elements.
LayoutAttr fmaOperandLayout(LayoutAttr accumulator, DotOperand operand, int64_t k);

/// Drops `axis`: the layout of a tile reduced along it, or of one to be broadcast along it.
LayoutAttr sliceLayout(LayoutAttr layout, unsigned axis);

/// The layout of a tile after a reduction of groups of `run` elements along `axis`: the axis counts
/// the groups.
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

/// The layout of a part of `shape` that each thread has in registers: registers outside of it are
/// dropped. Null if the part cuts through lanes or warps.
LayoutAttr partLayout(LayoutAttr layout, llvm::ArrayRef<int64_t> shape);

/// The layout with the same elements in the same threads, and with neighbours along `axis` in
/// consecutive registers.
LayoutAttr withAxisFirst(LayoutAttr layout, unsigned axis);

/// True if both layouts give each thread the same elements, possibly in other registers. Both are
/// layouts of one tile shape.
bool sameDistribution(LayoutAttr a, LayoutAttr b);

/// The exchange that converts a tile from one layout to another.
enum class Conversion {
  None,     ///< equal layouts
  Register, ///< each thread renames registers
  Shuffle,  ///< elements move within warps
  Shared,   ///< elements move between warps, through shared memory
};
Conversion classifyConversion(LayoutAttr from, LayoutAttr to);

/// For a Register conversion: `result[r]` is the register of `from` that becomes register r of
/// `to`. Empty for other conversions.
llvm::SmallVector<unsigned> registerPermutation(LayoutAttr from, LayoutAttr to);

/// The bits of the register number, of the lane and of the warp along an axis, as masks. A
/// reduction along the axis combines them.
struct AxisBits {
  unsigned registers = 0;
  unsigned lanes = 0;
  unsigned warps = 0;
};
AxisBits axisBits(LayoutAttr layout, unsigned axis);
/// The same for a reduction of groups of `run` elements.
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
