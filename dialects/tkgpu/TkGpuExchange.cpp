//===- TkGpuExchange.cpp - scratch of exchanges between warps -------------===//
#include "dialects/tkgpu/TkGpuExchange.h"
#include "dialects/tkgpu/TkGpuHistogramOps.h"
#include "dialects/tkgpu/TkGpuRecurrenceOps.h"
#include "dialects/tkgpu/TkGpuSortOps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// Lanes of a warp, and the bits of their numbers.
static constexpr unsigned kLanes = 32, kAllLaneBits = kLanes - 1;

unsigned tk::gpu::elementBytes(Type type, FuncOp function) {
  type = getElementTypeOrSelf(type);
  if (type.isIndex())
    return function.getIndexBits() / 8;
  return std::max(1u, type.getIntOrFloatBitWidth() / 8);
}

/// Do all blocks of a cluster execute an operation equally often: in the function, or in a loop
/// that they go through together?
static bool isInStep(Operation *op, FuncOp function) {
  Operation *parent = op->getParentOp();
  return parent == function ||
         (isa<scf::ForOp, scf::WhileOp>(parent) && parent->getParentOp() == function);
}

JoinKind tk::gpu::joinKindOf(Operation *op, FuncOp function, AxisBits bits) {
  auto reduce = dyn_cast<gpu::ReduceOp>(op);
  if (!bits.warps || (reduce && (reduce.getOpen() || reduce.getBesideNext())))
    return JoinKind::InWarps;
  if (function.isSpread() && bits.lanes == kAllLaneBits &&
      bits.warps == function.getNumWarps() - 1 && isInStep(op, function))
    return JoinKind::Blocks;
  return bits.lanes != kAllLaneBits || function.isSpread() ? JoinKind::EachLane
                                                           : JoinKind::UniformWarps;
}

bool tk::gpu::hasOwnExchange(Operation *op, JoinKind kind) {
  auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
  return kind == JoinKind::EachLane && loop && !loop.getOps<WarpgroupDotOp>().empty() &&
         op->getParentOfType<WarpRolesOp>();
}

bool tk::gpu::isReadAtEnd(Operation *op) {
  auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
  auto function = loop ? dyn_cast<FuncOp>(loop->getParentOp()) : FuncOp();
  return function && function.isSpread() && !op->use_empty() &&
         llvm::all_of(op->getUsers(),
                      [&](Operation *user) { return user == loop.getBody()->getTerminator(); });
}

AxisBits tk::gpu::joinedBits(gpu::ReduceOp reduce) {
  AxisBits bits = axisBits(getLayout(reduce.getSource().getType()), reduce.getAxis());
  if (auto before = reduce.getSource().getDefiningOp<gpu::ReduceOp>(); before && before.getOpen()) {
    const AxisBits left = axisBits(getLayout(before.getSource().getType()), before.getAxis());
    bits.lanes |= left.lanes;
    bits.warps |= left.warps;
  }
  return bits;
}

void tk::gpu::joinAxes(FuncOp function) {
  if (!function.isSpread())
    return;
  function.walk([&](gpu::ReduceOp last) {
    auto first = last.getSource().getDefiningOp<gpu::ReduceOp>();
    if (isa<RankedTensorType>(last.getType()) || !first || !first->hasOneUse() ||
        first.getKind() != last.getKind() || first->getBlock() != last->getBlock() ||
        !getLayout(first.getSource().getType()))
      return;
    first.setOpen(true);
    first.setOpen(joinKindOf(last, function, joinedBits(last)) == JoinKind::Blocks);
  });
}

/// The next reduction in the block of `reduce`, if nothing between them synchronises or writes.
static gpu::ReduceOp nextReduction(gpu::ReduceOp reduce) {
  for (Operation *op = reduce->getNextNode(); op; op = op->getNextNode()) {
    if (auto next = dyn_cast<gpu::ReduceOp>(op))
      return next;
    const bool isPlain = op->getNumRegions() == 0 &&
                         (isMemoryEffectFree(op) || isa<gpu::LoadOp, PrivateLoadOp>(op)) &&
                         !isa<ReduceRunsOp, ArgReduceOp, MomentsOp, WeightsOp, gpu::ScanOp,
                              RecurrenceOp, ConvertLayoutOp>(op);
    if (!isPlain)
      return {};
  }
  return {};
}

gpu::ReduceOp tk::gpu::reductionBeside(gpu::ReduceOp reduce) {
  for (Operation *op = reduce->getPrevNode(); op; op = op->getPrevNode())
    if (auto before = dyn_cast<gpu::ReduceOp>(op))
      return before.getBesideNext() ? before : gpu::ReduceOp();
  return {};
}

/// Moves what needs `first` behind `next`, if `next` does not need it; false otherwise. Nothing
/// between the two writes.
static bool moveBehind(gpu::ReduceOp first, gpu::ReduceOp next) {
  llvm::SmallSetVector<Operation *, 8> dependent;
  for (Operation *op = first->getNextNode();; op = op->getNextNode()) {
    const bool depends = llvm::any_of(op->getOperands(), [&](Value operand) {
      Operation *def = operand.getDefiningOp();
      return def && (def == first || dependent.contains(def));
    });
    if (op == next && depends)
      return false;
    if (op == next)
      break;
    if (depends)
      dependent.insert(op);
  }
  Operation *last = next;
  for (Operation *op : dependent) {
    op->moveAfter(last);
    last = op;
  }
  return true;
}

void tk::gpu::joinNeighbours(FuncOp function) {
  auto isExchanged = [&](gpu::ReduceOp reduce) {
    if (!getLayout(reduce.getSource().getType()) || isa<RankedTensorType>(reduce.getType()) ||
        !reduce.getType().isF32() || reduce.getOpen() || reduce.getAsIntegers() ||
        reduce->getParentOfType<WarpRolesOp>())
      return JoinKind::InWarps;
    return joinKindOf(reduce, function, joinedBits(reduce));
  };
  function.walk([&](gpu::ReduceOp first) {
    const JoinKind kind = isExchanged(first);
    if ((kind != JoinKind::UniformWarps && kind != JoinKind::Blocks) || reductionBeside(first))
      return;
    gpu::ReduceOp next = nextReduction(first);
    if (next && isExchanged(next) == kind && next.getKind() == first.getKind() &&
        isReadAtEnd(next) == isReadAtEnd(first) &&
        getLayout(next.getSource().getType()) == getLayout(first.getSource().getType()) &&
        next.getAxis() == first.getAxis() && moveBehind(first, next))
      first.setBesideNext(true);
  });
}

int64_t tk::gpu::joinBytes(JoinKind kind, FuncOp function, unsigned count, unsigned bytes) {
  const int64_t perWarp = int64_t(count) * bytes;
  switch (kind) {
  case JoinKind::InWarps:
    return 0;
  case JoinKind::EachLane:
    return perWarp * kLanes * function.getNumWarps();
  case JoinKind::UniformWarps:
    return perWarp * function.getNumWarps();
  case JoinKind::Blocks: {
    // What warps and blocks send, and a barrier with phases: for this round and the next.
    const int64_t parts = perWarp * (function.getBlockWarps() + function.getCluster());
    return 2 * (llvm::alignTo(parts, kExchangeAlignment) + kExchangeAlignment);
  }
  }
  llvm_unreachable("a kind of join");
}

int64_t tk::gpu::pairBytes(FuncOp function) {
  constexpr unsigned floatBytes = 4;
  if (function.isSpread())
    return joinBytes(JoinKind::Blocks, function, 2, floatBytes);
  // Pairs of this round and of the next.
  return 2 * joinBytes(JoinKind::UniformWarps, function, 2, floatBytes);
}

/// Bytes that a block needs to send one value of each lane for each part of `source` that is
/// scanned along `axis` within warps.
static int64_t bytesOfScan(Value source, int64_t along, FuncOp function) {
  LayoutAttr layout = getLayout(source.getType());
  const auto axis = static_cast<int32_t>(along);
  if (!layout || !axisBits(layout, axis).warps)
    return 0;
  int64_t firstStep = layout.getTileShape()[axis];
  for (const LayoutBit &bit : layout.getWarpBits())
    if (bit.axis == axis && !bit.isReplication())
      firstStep = std::min<int64_t>(firstStep, bit.step);
  // Of registers whose elements are joined before the warps' only the first sends anything.
  unsigned last = layout.getNumRegisters() - 1;
  for (auto [b, bit] : llvm::enumerate(layout.getRegisterBits()))
    if (bit.axis == axis && !bit.isReplication() && bit.step < firstStep)
      last &= ~(1u << b);
  return joinBytes(JoinKind::EachLane, function, last + 1,
                   elementBytes(source.getType(), function));
}

int64_t tk::gpu::scanBytes(gpu::ScanOp scan, FuncOp function) {
  return bytesOfScan(scan.getSource(), scan.getAxis(), function);
}

/// The bits of `bits` that are `axis` from coordinate bit `step` on, which they move behind them,
/// if each is above the one before it; nothing if there is none.
static unsigned takeInOrder(ArrayRef<LayoutBit> bits, int32_t axis, int64_t &step) {
  unsigned mask = 0;
  for (bool isFound = true; isFound; step *= isFound ? 2 : 1) {
    isFound = false;
    for (auto [b, bit] : llvm::enumerate(bits))
      if (bit.axis == axis && bit.step == step && (1u << b) > mask) {
        mask |= 1u << b;
        isFound = true;
        break;
      }
  }
  return mask;
}

std::optional<RunsOfThreads> tk::gpu::runsOfThreads(RecurrenceOp recurrence, FuncOp function) {
  constexpr int64_t leastGroups = 2, leastWarps = 8;
  LayoutAttr layout = getLayout(recurrence.getSource().getType());
  if (!layout)
    return std::nullopt;
  const auto axis = static_cast<int32_t>(recurrence.getAxis());
  int64_t step = 1;
  RunsOfThreads runs;
  runs.joined = takeInOrder(layout.getRegisterBits(), axis, step);
  const unsigned lanes = takeInOrder(layout.getLaneBits(), axis, step);
  const unsigned warps = takeInOrder(layout.getWarpBits(), axis, step);
  runs.high = takeInOrder(layout.getRegisterBits(), axis, step);
  runs.groups = int64_t(1) << llvm::popcount(runs.high);
  runs.rows = layout.getNumRegisters() >> llvm::popcount(runs.joined | runs.high);
  const bool isWhole = step == layout.getTileShape()[axis] && lanes == kAllLaneBits &&
                       (warps == 0 || llvm::isMask_32(warps)) && (runs.joined & runs.high) == 0 &&
                       (runs.high == 0 || llvm::isShiftedMask_32(runs.high));
  runs.warps = int64_t(warps) + 1;
  if (!isWhole || (runs.groups < leastGroups && runs.warps < leastWarps))
    return std::nullopt;
  return runs;
}

int64_t tk::gpu::recurrenceBytes(RecurrenceOp recurrence, FuncOp function) {
  // A thread's pairs and an empty one; a pair for each warp, and what comes before it.
  if (std::optional<RunsOfThreads> runs = runsOfThreads(recurrence, function))
    return runs->rows * function.getNumWarps() * (2 * (runs->groups + 1) * kLanes + 3) *
           elementBytes(recurrence.getSource().getType(), function);
  return 2 * bytesOfScan(recurrence.getSource(), recurrence.getAxis(), function);
}

int64_t tk::gpu::conversionBytes(ConvertLayoutOp convert, FuncOp function) {
  auto tile = cast<RankedTensorType>(convert.getResult().getType());
  LayoutAttr from = getLayout(convert.getSource().getType()), to = getLayout(tile);
  if (!from || !to)
    return 0;
  const Conversion kind = classifyConversion(from, to);
  if (kind == Conversion::None || kind == Conversion::Register)
    return 0;
  const int64_t last = tile.getDimSize(tile.getRank() - 1);
  return tile.getNumElements() / last * (last + int64_t(convert.getPadding().value_or(0))) *
         elementBytes(tile, function);
}

int64_t tk::gpu::histogramBytes(HistogramOp histogram, FuncOp function) {
  constexpr int64_t bytesOfSum = 4;
  auto sums = cast<RankedTensorType>(histogram.getResult().getType());
  const int64_t copies = sums.getElementType().isF32() ? function.getBlockWarps() : 1;
  return sums.getNumElements() * copies * bytesOfSum;
}

int64_t tk::gpu::sortBytes(SortOp sort) {
  constexpr int64_t bytesOfElement = 8;
  return cast<RankedTensorType>(sort.getResult().getType()).getNumElements() * bytesOfElement;
}

int64_t tk::gpu::exchangeBytesOf(FuncOp function) {
  int64_t own = 0, shared = 0;
  auto share = [&](int64_t bytes) { shared = std::max(shared, bytes); };
  auto join = [&](Operation *op, AxisBits bits, Type result) {
    LayoutAttr left = getLayout(result);
    const JoinKind kind = joinKindOf(op, function, bits);
    // Blocks send each other whole words.
    const unsigned element = elementBytes(result, function);
    auto reduce = dyn_cast<gpu::ReduceOp>(op);
    const unsigned numbers = reduce && reductionBeside(reduce) ? 2 : 1;
    const int64_t bytes = joinBytes(kind, function, left ? left.getNumRegisters() : numbers,
                                    kind == JoinKind::Blocks ? std::max(element, 4u) : element);
    if (kind == JoinKind::EachLane && !hasOwnExchange(op, kind))
      share(bytes);
    else
      own += llvm::alignTo(bytes, kExchangeAlignment);
  };
  function.walk([&](Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](gpu::ReduceOp reduce) {
          if (getLayout(reduce.getSource().getType()))
            join(reduce, joinedBits(reduce), reduce.getType());
        })
        .Case([&](ReduceRunsOp reduce) {
          if (LayoutAttr layout = getLayout(reduce.getSource().getType()))
            join(reduce, runBits(layout, reduce.getAxis(), reduce.getRun()), reduce.getType());
        })
        .Case([&](ArgReduceOp reduce) {
          if (LayoutAttr layout = getLayout(reduce.getSource().getType()))
            for (Value result : reduce->getResults())
              join(reduce, axisBits(layout, reduce.getAxis()), result.getType());
        })
        .Case<MomentsOp, WeightsOp>(
            [&](auto) { own += llvm::alignTo(pairBytes(function), kExchangeAlignment); })
        .Case([&](TellOp) { own += kToldBytes; })
        .Case([&](gpu::ScanOp scan) { share(scanBytes(scan, function)); })
        .Case([&](RecurrenceOp recurrence) { share(recurrenceBytes(recurrence, function)); })
        .Case([&](HistogramOp histogram) { share(histogramBytes(histogram, function)); })
        .Case([&](SortOp sort) { share(sortBytes(sort)); })
        .Case([&](ConvertLayoutOp convert) {
          if (!convert.getOffset())
            share(conversionBytes(convert, function));
        });
  });
  return own + int64_t(llvm::alignTo(shared, kExchangeAlignment));
}
