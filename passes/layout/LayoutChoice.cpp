//===- LayoutChoice.cpp - the layout of each class of tiles ---------------===//
//
// Classes are taken with more axes first, and among those of one rank the ones that accumulate
// products first. Each takes the first of these that applies:
// 1. what its product wants of the accumulator, or of an operand that comes from registers;
// 2. what follows without data movement from a class that has its layout: the slice left by a
//    reduction of it (or of runs of it), the slice that is broadcast to it, its transposition, and
//    of what gathers are at (indices, masks), if threads then load few elements several times, the
//    slice that the gathered tile's threads need;
// 3. the layout that coalesces the access that moves most bytes at once of all that touch it, with
//    as many neighbours a thread as are best for all of them; for an operand of mma.sync that is
//    computed from packed numbers, a word's worth of neighbours that share elements; what else a
//    thread has are neighbours along an axis that loads slide along in a loop (windows), which read
//    what they share once;
// 4. where a loop carries what is computed from narrower tiles, all rows of a thread's places;
// 5. consecutive threads along the last axis.
//
//===----------------------------------------------------------------------===//
#include "passes/layout/LayoutChoice.h"

#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuRecurrenceOps.h"
#include "passes/analysis/TileLoops.h"
#include "passes/layout/RepeatedRuns.h"
#include "passes/layout/SlidingLoads.h"
#include "passes/machine/Machine.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

LayoutChoice::LayoutChoice(FuncOp function, AxisInfo &info, bool hasByteFloats, bool coalesce)
    : context(function.getContext()), info(info), coalesce(coalesce),
      vectorBytes(vectorBytesOf(function)), components(function), chosen(components.size()) {
  dotContext.hasByteFloats = hasByteFloats;
  dotContext.numWarps = function.getNumWarps();
  function.walk([&](Operation *op) { hasDots |= isa<DotOp, WarpgroupDotOp>(op); });
  function.walk([&](DotOp dot) {
    bool isComputed =
        isTile(dot.getA()) && !isCheapTile(dot.getA()) && !dot.getA().getDefiningOp<gpu::LoadOp>();
    bool isReduced = reducesAlong(components.classOf(dot.getResult()), 1);
    dotContext.rowsInWarp |= isComputed || isReduced;
  });
  auto hasDot = [&](unsigned component) {
    return llvm::any_of(components.members(component), [](Value value) {
      Operation *op = value.getDefiningOp();
      return isa_and_nonnull<DotOp, WarpgroupDotOp>(op);
    });
  };
  auto order = llvm::to_vector(llvm::seq<unsigned>(0, components.size()));
  // What gathers are at follows what they gather, and the last gather is chosen first.
  auto rank = [&](unsigned c) {
    const bool isPlace = coalesce && isPlaceOfGather(c);
    return std::tuple(-int64_t(components.shapeOf(c).size()), !hasDot(c), isPlace,
                      isPlace ? -int64_t(c) : int64_t(c));
  };
  llvm::sort(order, [&](unsigned a, unsigned b) { return rank(a) < rank(b); });
  for (unsigned component : order)
    chooseFor(component);
}

void LayoutChoice::chooseFor(unsigned component) {
  LayoutAttr &layout = chosen[component];
  layout = fromDots(component);
  if (!layout)
    layout = fromRelations(component);
  if (!layout)
    layout = fromGathers(component);
  if (!layout)
    layout = fromAccesses(component);
  if (!layout)
    layout = fromSharedTerms(component);
  if (!layout)
    layout = fromStates(component);
  if (!layout)
    layout = blocked(components.shapeOf(component), components.shapeOf(component).size() - 1, 1,
                     reducesAlong(component, components.shapeOf(component).size() - 1));
}

DotPlan LayoutChoice::planOf(DotOp dot) const {
  return planOperands(dot, dotContext, layoutOf(dot.getResult()));
}

/// The axis along which memory has neighbours of what an operand is loaded from; -1 if there is
/// none, or the operand is computed.
int64_t LayoutChoice::axisInMemory(Value operand) const {
  auto load = operand.getDefiningOp<gpu::LoadOp>();
  if (!load || !isTile(operand))
    return -1;
  return analyseVectors(MemoryAccess::of(load), info, vectorBytes).axis;
}

OperandRuns LayoutChoice::runsOf(DotOp dot) const {
  OperandRuns runs;
  runs.alongM = axisInMemory(dot.getA()) == 0;
  runs.alongN = axisInMemory(dot.getB()) != 0;
  return runs;
}

LayoutAttr LayoutChoice::fromDots(unsigned component) const {
  ArrayRef<int64_t> shape = components.shapeOf(component);
  for (Value value : components.members(component)) {
    if (auto dot = value.getDefiningOp<WarpgroupDotOp>())
      return warpgroupAccumulatorLayout(context, shape[0], shape[1], dotContext.numWarps,
                                        dot.getB().getType().getInterleave());
    if (auto dot = value.getDefiningOp<DotOp>())
      return planDot(dot, dotContext, runsOf(dot)).accumulator;
  }
  for (Value value : components.members(component))
    for (Operation *user : value.getUsers()) {
      if (auto dot = dyn_cast<DotOp>(user); dot && isReadFromShared(component)) {
        DotPlan plan = planDot(dot, dotContext, runsOf(dot));
        bool isA = dot.getA() == value;
        return withAxisFirst(isA ? plan.a : plan.b, isA ? 1 : 0);
      }
      if (auto dot = dyn_cast<WarpgroupDotOp>(user); dot && dot.getA() == value) {
        auto acc = cast<RankedTensorType>(dot.getType());
        LayoutAttr accumulator = warpgroupAccumulatorLayout(context, acc.getDimSize(0),
                                                            acc.getDimSize(1), dotContext.numWarps);
        return warpgroupOperandLayout(
            accumulator, shape[1],
            cast<RankedTensorType>(value.getType()).getElementTypeBitWidth());
      }
    }
  return {};
}

/// Does a bulk copy bring what the class is computed from? Then no access to global memory wants a
/// layout of it, and a product's operand is read as it is multiplied.
bool LayoutChoice::isReadFromShared(unsigned component) const {
  return llvm::any_of(components.members(component), [](Value value) {
    return isa_and_nonnull<LocalLoadOp>(value.getDefiningOp());
  });
}

bool LayoutChoice::isTileChosen(Value value) const {
  return isTile(value) && !isCheapTile(value) && chosen[components.classOf(value)];
}

LayoutAttr LayoutChoice::fromRelations(unsigned component) const {
  for (Value value : components.members(component)) {
    Operation *op = value.getDefiningOp();
    if (auto reduce = dyn_cast_or_null<gpu::ReduceOp>(op))
      if (isTileChosen(reduce.getSource()))
        return sliceLayout(layoutOf(reduce.getSource()), reduce.getAxis());
    if (auto reduce = dyn_cast_or_null<ReduceRunsOp>(op))
      if (isTileChosen(reduce.getSource()))
        return runsLayout(layoutOf(reduce.getSource()), reduce.getAxis(), reduce.getRun());
    if (auto reduce = dyn_cast_or_null<ArgReduceOp>(op))
      if (isTileChosen(reduce.getSource()))
        return sliceLayout(layoutOf(reduce.getSource()), reduce.getAxis());
    if (auto scan = dyn_cast_or_null<gpu::ScanOp>(op); scan && value == scan.getTotal())
      if (isTileChosen(scan.getResult()))
        return sliceLayout(layoutOf(scan.getResult()), scan.getAxis());
    if (auto recurrence = dyn_cast_or_null<RecurrenceOp>(op);
        recurrence && value == recurrence.getLast())
      if (isTileChosen(recurrence.getResult()))
        return sliceLayout(layoutOf(recurrence.getResult()), recurrence.getAxis());
    if (auto transpose = dyn_cast_or_null<TransposeOp>(op))
      if (isTileChosen(transpose.getSource()))
        return permuteLayout(layoutOf(transpose.getSource()), transpose.getPermutation());
  }
  for (Value value : components.members(component))
    for (Operation *user : value.getUsers())
      if (auto broadcast = dyn_cast<BroadcastOp>(user))
        if (isTileChosen(broadcast.getResult()))
          return broadcastSourceLayout(layoutOf(broadcast.getResult()), broadcast.getDims(),
                                       components.shapeOf(component));
  return {};
}

bool LayoutChoice::reducesAlong(unsigned component, uint64_t axis) const {
  for (Value value : components.members(component))
    for (Operation *user : value.getUsers()) {
      if (auto reduce = dyn_cast<gpu::ReduceOp>(user); reduce && reduce.getAxis() == axis)
        return true;
      if (auto reduce = dyn_cast<ArgReduceOp>(user); reduce && reduce.getAxis() == axis)
        return true;
      if (auto scan = dyn_cast<gpu::ScanOp>(user); scan && scan.getAxis() == axis)
        return true;
      if (auto recurrence = dyn_cast<RecurrenceOp>(user);
          recurrence && recurrence.getAxis() == axis)
        return true;
    }
  return false;
}

/// The last axis other than `axis` along which the class is reduced, or -1.
int64_t LayoutChoice::reducedAxis(unsigned component, int64_t axis) const {
  for (int64_t other = components.shapeOf(component).size(); other-- > 0;)
    if (other != axis && reducesAlong(component, other))
      return other;
  return -1;
}

/// The axis other than `axis` along which the class is scanned, or -1.
int64_t LayoutChoice::scannedAxis(unsigned component, int64_t axis) const {
  for (Value value : components.members(component))
    for (Operation *user : value.getUsers())
      if (auto scan = dyn_cast<gpu::ScanOp>(user); scan && int64_t(scan.getAxis()) != axis)
        return scan.getAxis();
      else if (auto recurrence = dyn_cast<RecurrenceOp>(user);
               recurrence && int64_t(recurrence.getAxis()) != axis)
        return recurrence.getAxis();
  return -1;
}

/// The last axis other than `axis` along which a load of the class slides in a loop, or -1.
int64_t LayoutChoice::slidAxis(unsigned component, int64_t axis) const {
  int64_t slid = -1;
  for (Value value : components.members(component))
    if (auto load = value.getDefiningOp<gpu::LoadOp>())
      for (auto loop = load->getParentOfType<scf::ForOp>(); loop;
           loop = loop->getParentOfType<scf::ForOp>())
        for (int64_t other : slidAxes(load, loop))
          if (other != axis)
            slid = std::max(slid, other);
  return slid;
}

/// The vectors of an access whose neighbours along an axis share elements, as several numbers of a
/// word do (`k / 8`): those of the tile that a word's worth of elements stands for.
static VectorAccess repeatedVectors(const MemoryAccess &access, AxisInfo &info) {
  constexpr int64_t wordBytes = 4;
  // A scale of a group is one number.
  if (!access.tile.getElementType().isInteger())
    return {};
  for (auto [d, index] : llvm::enumerate(access.indices)) {
    SmallVector<Value> starts;
    if (constantIndex(access.strides[d]) != 1 || access.indexAxes(d).size() != 1)
      continue;
    std::optional<RepeatedRun> run = repeatedRun(index, starts);
    if (!run)
      continue;
    if (run->times > 8 * access.elementBytes())
      continue;
    const int64_t width = run->times * std::max<int64_t>(wordBytes / access.elementBytes(), 1);
    const AxisFacts along = info.of(run->quotient.getLhs()).axes[0];
    const int64_t most = std::min(along.contiguity, along.divisibility);
    // Lanes run along the last axis anyway.
    if (most >= run->times && access.indexAxes(d)[0] + 1 < access.tile.getRank())
      return {access.indexAxes(d)[0], std::min(width, most), 1};
  }
  return {};
}

namespace {
struct SeenAccess {
  VectorAccess vectors;
  int64_t elementBytes;
  bool isStore;
  unsigned depth; ///< how many loops it is in
};
} // namespace

/// How many neighbours along `axis` a thread should have, at most `most`. An instruction takes as
/// many elements of each thread as the access allows, and touches all sectors of memory that the
/// threads' neighbours lie in: of an access of single elements, each as often as a thread has
/// neighbours. Loads take whole lines at least; what is stored goes on to the second-level cache by
/// sectors. What is accessed once before a loop is little beside what the loop accesses. Two rows
/// read and two stored beside one of pairs (residual + RMSNorm of 32768 x 515 on an H200): 41 us in
/// single elements, 50 us in pairs; one of each beside two of pairs (batch norm of 8191 x 4093):
/// 112 us and 84 us.
/// A load of a vector with gaps takes a line for each lane, if those are far enough apart. Such
/// loads count where nothing else is loaded: wide loads of the class itself need fewer registers.
static int64_t bestWidth(ArrayRef<SeenAccess> accesses, ArrayRef<StridedVector> strided,
                         int64_t axis, int64_t most) {
  constexpr int64_t sectorsOfLine = lineBytes / sectorBytes, lanes = 32;
  constexpr int64_t sectorsOfInstruction = 3;
  unsigned innermost = 0;
  for (const SeenAccess &access : accesses) {
    innermost = std::max(innermost, access.depth);
    if (!access.isStore)
      strided = {};
  }
  auto cost = [&](int64_t width) {
    int64_t sectors = 0; // for `most * lanes` elements
    for (const SeenAccess &access : accesses) {
      if (access.vectors.axis != axis || access.depth < innermost)
        continue;
      int64_t atOnce = std::max<int64_t>(width * lanes * access.elementBytes / sectorBytes,
                                         access.isStore ? 1 : sectorsOfLine);
      sectors += most / std::min(access.vectors.width, width) * (sectorsOfInstruction + atOnce);
    }
    for (const StridedVector &vector : strided) {
      if (vector.axis != axis || vector.depth < innermost)
        continue;
      const int64_t lines =
          std::clamp<int64_t>(width * lanes * vector.stride / lineBytes, 1, lanes);
      sectors += most * (sectorsOfInstruction + lines * sectorsOfLine) / vector.rows;
    }
    return sectors;
  };
  int64_t best = most;
  for (int64_t width = most / 2; width >= 1; width /= 2)
    if (cost(width) < cost(best))
      best = width;
  return best;
}

LayoutAttr LayoutChoice::fromAccesses(unsigned component) const {
  VectorAccess best;
  SmallVector<SeenAccess> accesses;
  int64_t bestBytes = 0;
  bool found = false, isWhole = !hasDots && coalesce;
  auto consider = [&](const MemoryAccess &access, Operation *op) {
    found = true;
    isWhole &= access.masks.empty() && op->getBlock() == op->getParentOfType<FuncOp>().getBlock();
    VectorAccess vectors = analyseVectors(access, info, vectorBytes);
    if (vectors.axis < 0 && hasDots)
      vectors = repeatedVectors(access, info);
    if (vectors.axis < 0)
      return;
    // Products take their operands through shared memory, where only aligned accesses help.
    if (!hasDots)
      vectors.width = std::max(vectors.width, vectors.run);
    unsigned depth = 0;
    for (auto loop = op->getParentOfType<scf::ForOp>(); loop;
         loop = loop->getParentOfType<scf::ForOp>())
      ++depth;
    accesses.push_back({vectors, access.elementBytes(), isa<StoreOp>(op), depth});
    // What blocks carry from tile to tile they store once.
    if (depth == 0 && getPlan(op->getParentOfType<FuncOp>()).carriesTiles)
      return;
    // Of equal widths in bytes the wider type wins: a thread's neighbours of it fill one access,
    // and lanes leave no gaps. Next to a product it is the narrower one, which has more elements.
    int64_t bytes = vectors.width * access.elementBytes();
    bool isBetter = hasDots ? vectors.width > best.width : vectors.width < best.width;
    if (bytes > bestBytes || (bytes == bestBytes && isBetter)) {
      best = vectors;
      bestBytes = bytes;
    }
  };
  for (Value value : components.members(component)) {
    if (auto load = value.getDefiningOp<gpu::LoadOp>())
      consider(MemoryAccess::of(load), load);
    for (Operation *user : value.getUsers())
      if (auto store = dyn_cast<gpu::StoreOp>(user); store && store.getValue() == value)
        consider(MemoryAccess::of(store), store);
  }
  if (!found)
    return {};
  ArrayRef<int64_t> shape = components.shapeOf(component);
  int64_t axis = best.axis < 0 ? shape.size() - 1 : best.axis;
  int64_t width = !coalesce ? 1
                  : hasDots ? best.width
                            : bestWidth(accesses, stridedVectors(component), axis, best.width);
  for (Value value : components.members(component)) // whose groups a thread has whole
    if (auto funnel = value.getDefiningOp<FunnelOp>())
      width = std::max<int64_t>(width, funnel.getVector());
  int64_t joined = scannedAxis(component, axis);
  if (isWhole && joined < 0 && width > 1 && shape.size() == 1 && reducesAlong(component, axis))
    return sideBySide(blocked(shape, axis, width, true));
  return blocked(shape, axis, width, reducesAlong(component, axis),
                 joined < 0 && !hasDots ? slidAxis(component, axis) : joined,
                 reducedAxis(component, axis));
}
