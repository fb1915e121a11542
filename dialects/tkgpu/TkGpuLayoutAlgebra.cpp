//===- TkGpuLayoutAlgebra.cpp - making layouts and going between them -----===//
#include "dialects/tkgpu/TkGpuLayout.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk::gpu;

namespace {

using Bits = SmallVector<LayoutBit>;

/// Hands out the bits of each axis from the lowest up.
class AxisSteps {
public:
  explicit AxisSteps(ArrayRef<int64_t> shape) : shape(shape), next(shape.size(), 1) {}

  bool isDone(unsigned axis) const { return next[axis] >= shape[axis]; }

  /// Appends the next bits of `axis` until `count` elements are covered or the axis is done.
  /// Returns how many bits that took.
  unsigned take(Bits &bits, unsigned axis, int64_t count) {
    unsigned taken = 0;
    for (int64_t covered = 1; covered < count && !isDone(axis); covered *= 2, ++taken)
      takeStep(bits, axis);
    return taken;
  }
  void takeStep(Bits &bits, unsigned axis) {
    bits.push_back({int32_t(axis), int32_t(next[axis])});
    next[axis] *= 2;
  }
  void takeRest(Bits &bits, unsigned axis) {
    while (!isDone(axis))
      takeStep(bits, axis);
  }

private:
  ArrayRef<int64_t> shape;
  SmallVector<int64_t> next;
};

} // namespace

static Bits replicated(unsigned count) { return Bits(count, LayoutBit{}); }

/// Gives `count` thread bits to the axes: as `perAxis` says, or greedily in `order`. What is left
/// replicates.
static Bits spread(AxisSteps &steps, unsigned count, ArrayRef<unsigned> order,
                   ArrayRef<int64_t> perAxis) {
  Bits bits;
  for (unsigned axis : order) {
    int64_t wanted = perAxis.empty() ? int64_t(1) << (count - bits.size()) : perAxis[axis];
    steps.take(bits, axis, wanted);
  }
  assert(bits.size() <= count && "more threads asked for than there are");
  bits.resize(count, LayoutBit{});
  return bits;
}

LayoutAttr tk::gpu::blockedLayout(MLIRContext *context, ArrayRef<int64_t> shape,
                                  const BlockedShape &blocked) {
  assert(blocked.order.size() == shape.size() && blocked.perThread.size() == shape.size());
  AxisSteps steps(shape);
  Bits registers;
  for (unsigned axis : blocked.order)
    steps.take(registers, axis, blocked.perThread[axis]);
  Bits lanes = spread(steps, 5, blocked.order, blocked.lanes);
  Bits warps = spread(steps, llvm::Log2_64(blocked.numWarps), blocked.order, blocked.warps);
  for (unsigned axis : blocked.order)
    steps.takeRest(registers, axis);
  return LayoutAttr::get(context, shape.size(), registers, lanes, warps);
}

//===----------------------------------------------------------------------===//
// Matrix fragments
//===----------------------------------------------------------------------===//

LayoutAttr tk::gpu::mmaAccumulatorLayout(MLIRContext *context, int64_t m, int64_t n,
                                         WarpGrid warps) {
  int64_t warpM = m / warps.m, warpN = n / warps.n;
  if (warpM < 16 || warpN < 8)
    return {};
  // PTX ISA, "Matrix fragments for mma.m16n8k16": c0,c1 are neighbours in a row, c2,c3 stand 8 rows
  // below; row = lane / 4, column = lane % 4 * 2.
  Bits registers = {{1, 1}, {0, 8}};
  Bits lanes = {{1, 2}, {1, 4}, {0, 1}, {0, 2}, {0, 4}};
  Bits warpBits;
  for (int64_t step = 8; step < warpN; step *= 2)
    registers.push_back({1, int32_t(step)});
  for (int64_t step = 16; step < warpM; step *= 2)
    registers.push_back({0, int32_t(step)});
  for (int64_t step = warpN; step < n; step *= 2)
    warpBits.push_back({1, int32_t(step)});
  for (int64_t step = warpM; step < m; step *= 2)
    warpBits.push_back({0, int32_t(step)});
  return LayoutAttr::get(context, 2, registers, lanes, warpBits);
}

LayoutAttr tk::gpu::mmaOperandLayout(MLIRContext *context, DotOperand operand, int64_t outer,
                                     int64_t k, WarpGrid warps, unsigned bits, int64_t run) {
  const bool isA = operand == DotOperand::A;
  const int32_t outerAxis = isA ? 0 : 1, kAxis = isA ? 1 : 0;
  // Elements of k in one register of the instruction.
  const int32_t perWord = std::max<int32_t>(32 / bits, 1);
  const int64_t warpOuter = outer / (isA ? warps.m : warps.n);
  const int64_t instructionOuter = isA ? 16 : 8, instructionK = 256 / bits;
  if (!run)
    run = perWord;
  if (warpOuter < instructionOuter || k < instructionK || 4 * run > k)
    return {};
  // lane % 4 walks along k by runs, of a word as the instruction has it; lane / 4 along m or n. The
  // upper half of k is a further word: the next one of the run, if there is one. f64 has no more
  // than the lanes' four.
  const int32_t upper = run > perWord ? perWord : 4 * perWord;
  Bits registers, warpBits;
  for (int32_t step = 1; step < perWord; step *= 2)
    registers.push_back({kAxis, step});
  if (isA)
    registers.push_back({outerAxis, 8});
  const bool hasUpper = instructionK > 4 * perWord;
  if (hasUpper)
    registers.push_back({kAxis, upper});
  Bits lanes = {{kAxis, int32_t(run)},
                {kAxis, int32_t(2 * run)},
                {outerAxis, 1},
                {outerAxis, 2},
                {outerAxis, 4}};
  for (int64_t step = instructionOuter; step < warpOuter; step *= 2)
    registers.push_back({outerAxis, int32_t(step)});
  for (int64_t step = 2 * perWord; step < k; step *= 2)
    if ((step != upper || !hasUpper) && step != run && step != 2 * run)
      registers.push_back({kAxis, int32_t(step)});
  // The numbering of the warps is that of the accumulator: n first.
  Bits along;
  for (int64_t step = warpOuter; step < outer; step *= 2)
    along.push_back({outerAxis, int32_t(step)});
  Bits other = replicated(llvm::Log2_64(isA ? warps.n : warps.m));
  warpBits = isA ? other : along;
  warpBits.append(isA ? along : other);
  if (registers.size() > maxRegisterBits)
    return {};
  return LayoutAttr::get(context, 2, registers, lanes, warpBits);
}

/// Column `step`, a power of two, of a product whose operand B has pairs of rows dealt out to
/// `parts` parts: the number of the row that stands there.
static int32_t interleavedColumn(int64_t step, int64_t columns, int64_t parts) {
  if (step == 1)
    return 1;
  int64_t perPart = columns / parts;
  return int32_t(step < perPart ? step * parts : step / perPart * 2);
}

LayoutAttr tk::gpu::warpgroupAccumulatorLayout(MLIRContext *context, int64_t m, int64_t n,
                                               int64_t numWarps, int64_t interleave) {
  if (numWarps % 4 != 0 || m % 64 != 0)
    return {};
  int64_t groups = numWarps / 4, groupsM = std::min(groups, m / 64), groupsN = groups / groupsM;
  int64_t rows = m / groupsM, columns = n / groupsN;
  if (columns < 8)
    return {};
  // PTX ISA, "Register fragments for wgmma.mma_async.m64nNk16": d0, d1 are neighbours in a row,
  // d2, d3 stand 8 rows below, the next four 8 columns to the right.
  Bits registers = {{1, 1}, {0, 8}};
  Bits lanes = {{1, 2}, {1, 4}, {0, 1}, {0, 2}, {0, 4}};
  Bits warps = {{0, 16}, {0, 32}};
  for (int64_t step = 8; step < columns; step *= 2)
    registers.push_back({1, int32_t(step)});
  for (int64_t step = 64; step < rows; step *= 2)
    registers.push_back({0, int32_t(step)});
  for (int64_t step = rows; step < m; step *= 2)
    warps.push_back({0, int32_t(step)});
  for (int64_t step = columns; step < n; step *= 2)
    warps.push_back({1, int32_t(step)});
  for (Bits *bits : {&registers, &lanes, &warps})
    for (LayoutBit &bit : *bits)
      if (bit.axis == 1)
        bit.step = interleavedColumn(bit.step, n, interleave);
  return LayoutAttr::get(context, 2, registers, lanes, warps);
}

bool tk::gpu::areRowsByWarpgroup(LayoutAttr layout, int64_t axis, int64_t rows) {
  // Of which a warpgroup has two bits of the warp's number.
  constexpr unsigned bitsInWarpgroup = 2;
  ArrayRef<LayoutBit> warps = layout.getWarpBits();
  if (warps.size() <= bitsInWarpgroup)
    return false;
  int64_t groups = int64_t(1) << (warps.size() - bitsInWarpgroup);
  for (auto [b, bit] : llvm::enumerate(warps.drop_front(bitsInWarpgroup)))
    if (bit.axis != axis || bit.step != (rows / groups) << b)
      return false;
  return true;
}

LayoutAttr tk::gpu::warpgroupOperandLayout(LayoutAttr accumulator, int64_t k, unsigned bits) {
  const int32_t perWord = 32 / bits;
  Bits registers;
  for (int32_t step = 1; step < perWord; step *= 2)
    registers.push_back({1, step});
  registers.push_back({0, 8});
  registers.push_back({1, 4 * perWord});
  for (int64_t step = 8 * perWord; step < k; step *= 2)
    registers.push_back({1, int32_t(step)});
  Bits warps;
  for (LayoutBit bit : accumulator.getRegisterBits())
    if (bit.axis == 0 && bit.step >= 64)
      registers.push_back(bit);
  for (LayoutBit bit : accumulator.getWarpBits())
    warps.push_back(bit.axis == 0 ? bit : LayoutBit{});
  Bits lanes = {{1, perWord}, {1, 2 * perWord}, {0, 1}, {0, 2}, {0, 4}};
  return LayoutAttr::get(accumulator.getContext(), 2, registers, lanes, warps);
}

LayoutAttr tk::gpu::fmaOperandLayout(LayoutAttr accumulator, DotOperand operand, int64_t k) {
  const int32_t outerAxis = operand == DotOperand::A ? 0 : 1, kAxis = 1 - outerAxis;
  auto keep = [&](ArrayRef<LayoutBit> bits) {
    Bits kept;
    for (LayoutBit bit : bits)
      kept.push_back(bit.axis == outerAxis ? bit : LayoutBit{});
    return kept;
  };
  Bits registers;
  for (int64_t step = 1; step < k; step *= 2)
    registers.push_back({kAxis, int32_t(step)});
  for (LayoutBit bit : accumulator.getRegisterBits())
    if (bit.axis == outerAxis)
      registers.push_back(bit);
  if (registers.size() > maxRegisterBits)
    return {};
  return LayoutAttr::get(accumulator.getContext(), 2, registers, keep(accumulator.getLaneBits()),
                         keep(accumulator.getWarpBits()));
}

//===----------------------------------------------------------------------===//
// Deriving one layout from another
//===----------------------------------------------------------------------===//

/// Renames axes by `newAxis`; where that is -1 the vector is dropped (registers) or becomes
/// replication (lanes, warps). Registers that nobody holds lie along the axis of all of them.
static LayoutAttr renameAxes(LayoutAttr layout, unsigned rank, ArrayRef<int64_t> newAxis) {
  auto rename = [&](ArrayRef<LayoutBit> bits, bool drop) {
    Bits renamed;
    for (LayoutBit bit : bits) {
      bool gone = bit.isReplication() || newAxis[bit.axis] < 0;
      if (!gone)
        renamed.push_back({int32_t(newAxis[bit.axis]), bit.step});
      else if (!drop)
        renamed.push_back({});
    }
    return renamed;
  };
  Bits registers = rename(layout.getRegisterBits(), true);
  unsigned held = registers.empty() ? 0 : layout.getHeld();
  return LayoutAttr::get(layout.getContext(), rank, registers, rename(layout.getLaneBits(), false),
                         rename(layout.getWarpBits(), false), held);
}

LayoutAttr tk::gpu::sliceLayout(LayoutAttr layout, unsigned axis) {
  assert(layout.getRank() > 1 && "a vector reduces to a scalar, which has no layout");
  SmallVector<int64_t> newAxis;
  for (int64_t a = 0; a < layout.getRank(); ++a)
    newAxis.push_back(a == axis ? -1 : a - (a > axis));
  return renameAxes(layout, layout.getRank() - 1, newAxis);
}

LayoutAttr tk::gpu::runsLayout(LayoutAttr layout, unsigned axis, int64_t run) {
  auto countRuns = [&](ArrayRef<LayoutBit> bits, bool drop) {
    Bits result;
    for (LayoutBit bit : bits) {
      const bool isAlong = !bit.isReplication() && bit.axis == int32_t(axis);
      if (!isAlong)
        result.push_back(bit);
      else if (bit.step >= run)
        result.push_back({bit.axis, static_cast<int32_t>(bit.step / run)});
      else if (!drop)
        result.push_back({});
    }
    return result;
  };
  return LayoutAttr::get(
      layout.getContext(), layout.getRank(), countRuns(layout.getRegisterBits(), true),
      countRuns(layout.getLaneBits(), false), countRuns(layout.getWarpBits(), false));
}

LayoutAttr tk::gpu::threadPartsLayout(LayoutAttr layout, unsigned axis) {
  Bits registers, lanes(layout.getLaneBits()), warps(layout.getWarpBits());
  for (LayoutBit bit : layout.getRegisterBits())
    if (bit.axis != int32_t(axis))
      registers.push_back(bit);
  SmallVector<LayoutBit *> along;
  for (Bits *bits : {&lanes, &warps})
    for (LayoutBit &bit : *bits)
      if (!bit.isReplication() && bit.axis == int32_t(axis))
        along.push_back(&bit);
  llvm::sort(along, [](LayoutBit *a, LayoutBit *b) { return a->step < b->step; });
  for (auto [b, bit] : llvm::enumerate(along))
    bit->step = 1 << b;
  return LayoutAttr::get(layout.getContext(), layout.getRank(), registers, lanes, warps);
}

LayoutAttr tk::gpu::broadcastSourceLayout(LayoutAttr layout, ArrayRef<int64_t> dims,
                                          ArrayRef<int64_t> sourceShape) {
  SmallVector<int64_t> newAxis(layout.getRank(), -1);
  for (auto [sourceAxis, resultAxis] : llvm::enumerate(dims))
    if (sourceShape[sourceAxis] != 1)
      newAxis[resultAxis] = sourceAxis;
  return renameAxes(layout, dims.size(), newAxis);
}

LayoutAttr tk::gpu::permuteLayout(LayoutAttr layout, ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> newAxis(layout.getRank());
  for (auto [resultAxis, sourceAxis] : llvm::enumerate(permutation))
    newAxis[sourceAxis] = resultAxis;
  return renameAxes(layout, layout.getRank(), newAxis);
}

LayoutAttr tk::gpu::partLayout(LayoutAttr layout, ArrayRef<int64_t> shape) {
  auto isBeyond = [&](LayoutBit bit) {
    return !bit.isReplication() && bit.step >= shape[bit.axis];
  };
  if (llvm::any_of(layout.getLaneBits(), isBeyond) || llvm::any_of(layout.getWarpBits(), isBeyond))
    return {};
  Bits registers(layout.getRegisterBits());
  llvm::erase_if(registers, isBeyond);
  return LayoutAttr::get(layout.getContext(), layout.getRank(), registers, layout.getLaneBits(),
                         layout.getWarpBits());
}

LayoutAttr tk::gpu::withAxisFirst(LayoutAttr layout, unsigned axis) {
  Bits run, others;
  for (LayoutBit bit : layout.getRegisterBits())
    (bit.axis == int32_t(axis) ? run : others).push_back(bit);
  llvm::sort(run, [](LayoutBit a, LayoutBit b) { return a.step < b.step; });
  run.append(others);
  return LayoutAttr::get(layout.getContext(), layout.getRank(), run, layout.getLaneBits(),
                         layout.getWarpBits());
}

//===----------------------------------------------------------------------===//
// Going between two layouts
//===----------------------------------------------------------------------===//

bool tk::gpu::sameDistribution(LayoutAttr a, LayoutAttr b) {
  return a.getLaneBits() == b.getLaneBits() && a.getWarpBits() == b.getWarpBits();
}

Conversion tk::gpu::classifyConversion(LayoutAttr from, LayoutAttr to) {
  if (from == to)
    return Conversion::None;
  if (from.getTileShape() != to.getTileShape() || from.getWarpBits() != to.getWarpBits())
    return Conversion::Shared;
  return from.getLaneBits() == to.getLaneBits() ? Conversion::Register : Conversion::Shuffle;
}

SmallVector<unsigned> tk::gpu::registerPermutation(LayoutAttr from, LayoutAttr to) {
  if (from.getTileShape() != to.getTileShape() || !sameDistribution(from, to))
    return {};
  SmallVector<unsigned> sources;
  for (unsigned reg = 0; reg < to.getNumRegisters(); ++reg) {
    std::optional<unsigned> source = from.getRegisterAt(to.getRegisterOffset(reg));
    assert(source && "equal thread parts leave the same coordinates to the registers");
    sources.push_back(*source);
  }
  return sources;
}

AxisBits tk::gpu::axisBits(LayoutAttr layout, unsigned axis) {
  return runBits(layout, axis, std::numeric_limits<int64_t>::max());
}

AxisBits tk::gpu::runBits(LayoutAttr layout, unsigned axis, int64_t run) {
  auto mask = [&](ArrayRef<LayoutBit> bits) {
    unsigned result = 0;
    for (auto [position, bit] : llvm::enumerate(bits))
      if (!bit.isReplication() && bit.axis == int32_t(axis) && bit.step < run)
        result |= 1u << position;
    return result;
  };
  return {mask(layout.getRegisterBits()), mask(layout.getLaneBits()), mask(layout.getWarpBits())};
}
