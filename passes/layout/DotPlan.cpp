//===- DotPlan.cpp - how a product is computed ----------------------------===//
//
// 1. Operands of 16 bits (and 8 bits, f64, and f32 where tf32 is allowed) with a tile that the
//    warps can share go to the matrix unit. The warps form a grid that minimises what each reads of
//    A and B.
// 2. Everything else is done by FMA: lanes as 4 x 8 over rows and columns, each with a square of
//    outputs, cut into vectors along what memory has neighbours of. Of an operand that is
//    contiguous along k lanes read the vectors of neighbouring rows (columns), which lie in
//    different banks.
//
//===----------------------------------------------------------------------===//
#include "passes/layout/DotPlan.h"

#include "passes/analysis/WarpGrid.h"
#include "passes/layout/MemoryAccess.h"
#include "passes/layout/TileComponents.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

static RankedTensorType tileType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Bits of an operand's element for mma.sync, 0 if the matrix unit cannot take the product.
static unsigned matrixBits(DotOp dot, bool hasByteFloats) {
  Type a = tileType(dot.getA()).getElementType(), b = tileType(dot.getB()).getElementType();
  Type acc = tileType(dot.getAcc()).getElementType();
  if (a != b || dot.hasTerm())
    return 0;
  if ((a.isBF16() || a.isF16()) && acc.isF32())
    return 16;
  if (a.isInteger(8) && acc.isInteger(32))
    return 8;
  if (isa<Float8E4M3FNType, Float8E5M2Type>(a) && acc.isF32() && hasByteFloats)
    return 8;
  if (a.isF32() && acc.isF32() && dot.getPrecision() == Precision::TF32)
    return 32;
  if (a.isF64() && acc.isF64())
    return 64;
  return 0;
}

/// Adds replicating warps up to `numWarps`.
static LayoutAttr padWarps(LayoutAttr layout, int64_t numWarps) {
  if (!layout)
    return {};
  SmallVector<LayoutBit> warps(layout.getWarpBits());
  warps.resize(std::max<size_t>(warps.size(), llvm::Log2_64(numWarps)), LayoutBit{});
  return LayoutAttr::get(layout.getContext(), layout.getRank(), layout.getRegisterBits(),
                         layout.getLaneBits(), warps);
}

/// The accumulator of an FMA product; see the top of the file. A thread's registers go along n
/// first.
static LayoutAttr fmaAccumulatorLayout(MLIRContext *context, int64_t m, int64_t n, int64_t vectorM,
                                       int64_t vectorN, int64_t numWarps) {
  SmallVector<LayoutBit> registers, rows, lanes, warps;
  int64_t nextM = 1, nextN = 1;
  auto take = [](SmallVectorImpl<LayoutBit> &bits, int32_t axis, int64_t &next, int64_t extent,
                 int64_t count) {
    for (; count > 1 && next < extent; count /= 2, next *= 2)
      bits.push_back({axis, int32_t(next)});
  };
  take(registers, 1, nextN, n, vectorN);
  take(rows, 0, nextM, m, vectorM);
  take(lanes, 1, nextN, n, 8);
  take(lanes, 0, nextM, m, 32 >> lanes.size());
  take(lanes, 1, nextN, n, 32 >> lanes.size());
  lanes.resize(5, LayoutBit{});
  WarpGrid grid = shapeFma(m, n, vectorM, vectorN, numWarps).warps;
  int64_t warpM = m / grid.m, warpN = n / grid.n;
  take(registers, 1, nextN, warpN, warpN);
  take(rows, 0, nextM, warpM, warpM);
  take(warps, 1, nextN, n, n);
  take(warps, 0, nextM, m, m);
  registers.append(rows);
  return padWarps(LayoutAttr::get(context, 2, registers, lanes, warps), numWarps);
}

DotPlan tk::planDot(DotOp dot, const DotContext &context, OperandRuns runs) {
  int64_t m = tileType(dot.getA()).getDimSize(0), k = tileType(dot.getA()).getDimSize(1);
  int64_t n = tileType(dot.getB()).getDimSize(1);
  MLIRContext *mlir = dot.getContext();
  unsigned bits = matrixBits(dot, context.hasByteFloats);
  DotPlan plan;
  if (bits && m >= 16 && n >= 8 && k >= 256 / bits) {
    WarpGrid grid =
        chooseWarpGrid(m, n, 16, std::min<int64_t>(n, 16), context.numWarps, context.rowsInWarp);
    plan.accumulator = padWarps(mmaAccumulatorLayout(mlir, m, n, grid), context.numWarps);
  } else {
    // Vectors of 16 bytes of what is contiguous along them, where a thread has that many outputs.
    int64_t perThread = std::max<int64_t>(m * n / (32 * context.numWarps), 1);
    int64_t vectorN = runs.alongN ? std::min<int64_t>(perThread, 4) : 1;
    int64_t vectorM = runs.alongM ? std::min<int64_t>(perThread / vectorN, 4) : 1;
    plan.accumulator = fmaAccumulatorLayout(mlir, m, n, vectorM, vectorN, context.numWarps);
  }
  return planOperands(dot, context, plan.accumulator);
}

/// How many of the warps lie along each axis of an accumulator.
static WarpGrid warpGridOf(LayoutAttr accumulator) {
  WarpGrid grid;
  for (LayoutBit bit : accumulator.getWarpBits())
    if (!bit.isReplication())
      (bit.axis == 0 ? grid.m : grid.n) *= 2;
  return grid;
}

/// The narrowest element, in bytes, of what an operand is computed from element by element, if that
/// is read from shared memory where it lies along k; else 0.
static int64_t narrowestAlong(Value operand, int64_t kAxis) {
  Operation *op = operand.getDefiningOp();
  if (auto load = dyn_cast_or_null<LocalLoadOp>(op)) {
    SharedType shared = load.getSource().getType();
    return shared.getAxisOrder().front() == kAxis ? bytesOfElement(shared.getElementType()) : 0;
  }
  if (!op || !op->hasTrait<OpTrait::Elementwise>())
    return 0;
  int64_t narrowest = 0;
  for (Value part : op->getOperands()) {
    if (!isTile(part) || isa_and_nonnull<BroadcastOp, arith::ConstantOp>(part.getDefiningOp()))
      continue;
    int64_t bytes = narrowestAlong(part, kAxis);
    if (bytes == 0)
      return 0;
    narrowest = narrowest ? std::min(narrowest, bytes) : bytes;
  }
  return narrowest;
}

/// Neighbours along k that a thread has of both operands where the order of k is free: both are
/// read from shared memory, where k is contiguous, as many as 16 bytes of the narrowest element. 0
/// for the order of the instruction, which f64 keeps: four threads read 32 bytes as it is.
static int64_t runAlongK(DotOp dot, int64_t k, unsigned bits) {
  if (bits > 32)
    return 0;
  int64_t a = narrowestAlong(dot.getA(), 1), b = narrowestAlong(dot.getB(), 0);
  int64_t run = a && b ? std::min(16 / std::min(a, b), k / 4) : 0;
  return run > 32 / bits ? run : 0;
}

DotPlan tk::planOperands(DotOp dot, const DotContext &context, LayoutAttr accumulator) {
  int64_t m = tileType(dot.getA()).getDimSize(0), k = tileType(dot.getA()).getDimSize(1);
  int64_t n = tileType(dot.getB()).getDimSize(1);
  DotPlan plan;
  plan.accumulator = accumulator;
  WarpGrid grid = warpGridOf(accumulator);
  unsigned bits = matrixBits(dot, context.hasByteFloats);
  if (bits && k >= 256 / bits)
    if (LayoutAttr fragment = mmaAccumulatorLayout(dot.getContext(), m, n, grid))
      plan.matrixUnit = padWarps(fragment, context.numWarps) == accumulator;
  if (plan.matrixUnit) {
    MLIRContext *mlir = dot.getContext();
    int64_t run = runAlongK(dot, k, bits);
    auto operand = [&](DotOperand which, int64_t outer) {
      return padWarps(mmaOperandLayout(mlir, which, outer, k, grid, bits, run), context.numWarps);
    };
    plan.a = operand(DotOperand::A, m);
    plan.b = operand(DotOperand::B, n);
  } else {
    plan.a = fmaOperandLayout(accumulator, DotOperand::A, k);
    plan.b = fmaOperandLayout(accumulator, DotOperand::B, k);
  }
  return plan;
}
