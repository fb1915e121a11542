//===- BlockWalk.cpp - what one block does: control flow ------------------===//
#include "passes/machine/BlockWalk.h"

#include "passes/machine/CostModel.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;

namespace tk {

/// Iterations of a loop that are all looked at, and of a longer one with branches or loops inside.
static constexpr int64_t fewIterations = 4, samplesOfIterations = 12;
/// Tiles of a block that are looked at, and how far the others are counted.
static constexpr int64_t mostTiles = 64, mostSteps = int64_t{1} << 16;

void BlockCounts::add(const BlockCounts &other, double times) {
  LaunchWork &to = work;
  const LaunchWork &from = other.work;
  for (auto member : {&LaunchWork::sharedBytes, &LaunchWork::instructions, &LaunchWork::doubles,
                      &LaunchWork::special, &LaunchWork::waits, &LaunchWork::barriers})
    to.*member += from.*member * times;
  for (size_t t = 0; t < numMatrixTypes; ++t) {
    to.warpgroupProducts[t] += from.warpgroupProducts[t] * times;
    to.warpProducts[t] += from.warpProducts[t] * times;
  }
  operations += other.operations * times;
  hasUnknownLoop |= other.hasUnknownLoop;
  for (const auto &[tensor, moved] : other.traffic) {
    traffic[tensor].readBytes += moved.readBytes * times;
    traffic[tensor].writtenBytes += moved.writtenBytes * times;
  }
}

BlockWalk::BlockWalk(gpu::FuncOp function, const Arguments &arguments, BlockPlace place)
    : function(function), arguments(arguments), values(place) {
  for (const auto &[value, known] : arguments.numbers)
    values.set(value, known);
}

BlockCounts BlockWalk::count(PlaceCounts &places, double weight) {
  placeCounts = &places;
  weightOfPlaces = weight;
  walk(*function.getBlock(), 1);
  return std::move(counts);
}

void BlockWalk::record(Accesses &accesses) {
  recorded = &accesses;
  walk(*function.getBlock(), 1);
}

/// Groups of copies that are under way while a block of operations goes on: 1 where it waits for
/// all of them.
static double stagesUnderWay(Block &block) {
  double stages = 1;
  for (Operation &op : block) {
    if (auto wait = dyn_cast<gpu::AsyncWaitOp>(op))
      stages = std::max(stages, double(wait.getPending()) + 1);
    Value phases;
    if (auto copy = dyn_cast<gpu::BulkCopyOp>(op))
      phases = copy.getPhases();
    if (auto wait = dyn_cast<gpu::PhaseWaitOp>(op))
      phases = wait.getPhases();
    if (phases)
      stages = std::max(stages, double(cast<gpu::PhasesType>(phases.getType()).getStages()));
  }
  return stages;
}

void BlockWalk::walk(Block &block, double times) {
  for (Operation &op : block)
    visit(&op, times);
  // Loads that stand together are under way together: one wait, or a part of one where copies of
  // several iterations are.
  auto isRead = [](Operation &op) {
    if (auto load = dyn_cast<gpu::LoadOp>(op))
      return isa<RankedTensorType>(load.getType());
    return isa<gpu::BulkCopyOp, gpu::CopyAsyncOp, gpu::CopyPrivateOp>(op);
  };
  if (auto first = llvm::find_if(block, isRead); first != block.end()) {
    auto [stages, isNew] = stagesOf.try_emplace(&block);
    if (isNew)
      stages->second = stagesUnderWay(block);
    wait(first->getLoc(), times / stages->second);
  }
}

void BlockWalk::visit(Operation *op, double times) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return visitFor(loop, times);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return visitWhile(loop, times);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return visitIf(branch, times);
  if (auto roles = dyn_cast<gpu::WarpRolesOp>(op))
    return visitRoles(roles, times);
  values.evaluate(op);
  if (auto load = dyn_cast<gpu::LoadOp>(op))
    readTable(load);
  if (recorded) {
    visitMemory(op, times);
    return;
  }
  // What the operation adds belongs to its place, too.
  BlockCounts before;
  std::swap(before, counts);
  visitCounted(op, times);
  std::swap(before, counts);
  counts.add(before, 1);
  if (placeCounts)
    (*placeCounts)[op->getLoc()].add(before, weightOfPlaces);
}

/// A number that is loaded from a tensor whose elements are assumed.
void BlockWalk::readTable(gpu::LoadOp load) {
  auto tensor = arguments.tensors.find(load.getBuffer());
  if (tensor == arguments.tensors.end() || !tensor->second.elements ||
      isa<RankedTensorType>(load.getType()))
    return;
  int64_t place = 0;
  for (auto [index, stride] : llvm::zip(load.getIndices(), load.getStrides())) {
    std::optional<int64_t> at = values.scalar(index), by = values.scalar(stride);
    if (!at || !by)
      return;
    place += *at * *by;
  }
  const std::vector<int64_t> &elements = *tensor->second.elements;
  if (place >= 0 && place < static_cast<int64_t>(elements.size()))
    values.setScalar(load.getResult(), elements[static_cast<size_t>(place)]);
}

void BlockWalk::wait(Location place, double times) {
  counts.work.waits += times;
  if (placeCounts)
    (*placeCounts)[place].work.waits += times * weightOfPlaces;
}

void BlockWalk::visitCounted(Operation *op, double times) {
  if (visitMemory(op, times))
    return;
  if (!visitShared(op, times) && !visitProduct(op, times) && !visitReduction(op, times))
    visitElements(op, times);
}

static bool hasControlFlow(Block &block) {
  return llvm::any_of(block,
                      [](Operation &op) { return isa<scf::ForOp, scf::IfOp, scf::WhileOp>(op); });
}

/// Iterations that stand for all of a loop, and how many each stands for.
static SmallVector<std::pair<int64_t, double>> chooseIterations(int64_t count, bool isUniform) {
  SmallVector<std::pair<int64_t, double>> chosen;
  if (count <= fewIterations) {
    for (int64_t i = 0; i < count; ++i)
      chosen.emplace_back(i, 1);
    return chosen;
  }
  // An iteration finds in the cache what the one before it has read: it is looked at, too.
  if (isUniform)
    return {{0, 1}, {count / 2 - 1, 1}, {count / 2, double(count - 3)}, {count - 1, 1}};
  const int64_t samples = std::min(count, samplesOfIterations);
  const double each = double(count) / double(samples);
  for (int64_t s = 0; s < samples; ++s)
    chosen.emplace_back(int64_t(each * (double(s) + 0.5)), each);
  chosen.front().first = 0;
  return chosen;
}

/// Does another loop go on where this one ends? A loop that was unrolled leaves the rest to it.
static bool goesOn(scf::ForOp loop) {
  return llvm::any_of(loop.getUpperBound().getUsers(), [&](Operation *user) {
    auto next = dyn_cast<scf::ForOp>(user);
    return next && next != loop && next.getLowerBound() == loop.getUpperBound() &&
           next->getBlock() == loop->getBlock();
  });
}

void BlockWalk::visitFor(scf::ForOp loop, double times) {
  std::optional<int64_t> lower = values.scalar(loop.getLowerBound());
  std::optional<int64_t> upper = values.estimate(loop.getUpperBound());
  std::optional<int64_t> step = values.scalar(loop.getStep());
  int64_t count = 1; // where data says how often, in the last of the loops over a range
  if (lower && upper && step && *step > 0) {
    count = std::max<int64_t>(llvm::divideCeilSigned(*upper - *lower, *step), 0);
  } else {
    counts.hasUnknownLoop = true;
    count = goesOn(loop) ? 0 : 1;
  }
  SmallVector<Known> carried;
  for (Value init : loop.getInitArgs())
    carried.push_back(values.get(init));
  auto chosen = chooseIterations(count, !hasControlFlow(*loop.getBody()));
  if (recorded && chosen.size() > 1)
    chosen.resize(1);
  int64_t next = 0;
  for (auto [iteration, weight] : chosen) {
    if (lower && step)
      values.setScalar(loop.getInductionVar(), *lower + iteration * *step);
    // What iterations between leave behind is not known.
    for (auto [argument, known] : llvm::zip(loop.getRegionIterArgs(), carried))
      values.set(argument, iteration == next ? known : Known());
    const double before = readSoFar;
    walk(*loop.getBody(), times * weight);
    readSoFar = before + (readSoFar - before) * weight;
    for (auto [yielded, known] : llvm::zip(loop.getYieldedValues(), carried))
      known = values.get(yielded);
    next = iteration + 1;
  }
  for (auto [result, known] : llvm::zip(loop.getResults(), carried))
    values.set(result, count <= fewIterations && !recorded ? known : Known());
}

/// The operations of a loop's body that say what the next iteration is given; nothing if loops or
/// branches do.
static std::optional<SmallVector<Operation *>> stepsOf(scf::WhileOp loop) {
  BackwardSliceOptions options;
  options.omitBlockArguments = options.inclusive = true;
  options.filter = [&](Operation *op) { return op->getBlock() == loop.getAfterBody(); };
  llvm::SetVector<Operation *> slice;
  for (Value next : loop.getYieldOp().getOperands())
    (void)getBackwardSlice(next, &slice, options);
  SmallVector<Operation *> steps = slice.takeVector();
  if (llvm::any_of(steps, [](Operation *op) { return op->getNumRegions() > 0; }))
    return std::nullopt;
  llvm::sort(steps, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return steps;
}

bool BlockWalk::begin(scf::WhileOp loop, ArrayRef<Known> carried, bool isFirst) {
  for (auto [argument, known] : llvm::zip(loop.getBeforeArguments(), carried))
    values.set(argument, known);
  for (Operation &op : *loop.getBeforeBody())
    values.evaluate(&op);
  std::optional<int64_t> goesOn = values.scalar(loop.getConditionOp().getCondition());
  if (goesOn ? *goesOn == 0 : !isFirst)
    return false;
  for (auto [argument, passed] :
       llvm::zip(loop.getAfterArguments(), loop.getConditionOp().getArgs()))
    values.set(argument, values.get(passed));
  return true;
}

void BlockWalk::visitWhile(scf::WhileOp loop, double times) {
  SmallVector<Known> first, carried;
  for (Value init : loop.getInits())
    first.push_back(values.get(init));
  auto next = [&] {
    for (auto [yielded, known] : llvm::zip(loop.getYieldOp().getOperands(), carried))
      known = values.get(yielded);
  };
  const auto steps = stepsOf(loop);
  int64_t count = recorded ? 1 : mostTiles;
  if (steps && !recorded) {
    const BlockPlace place = values.place;
    carried = first;
    for (count = 0; count < mostSteps && begin(loop, carried, count == 0); ++count) {
      for (Operation *op : *steps)
        values.evaluate(op);
      next();
    }
    values.place = place;
  }
  // Some of many iterations stand for the others.
  const int64_t stride = llvm::divideCeil(std::max<int64_t>(count, 1), mostTiles);
  carried = first;
  for (int64_t tile = 0; tile < count && begin(loop, carried, tile == 0); ++tile) {
    if (tile % stride == 0)
      walk(*loop.getAfterBody(), times * double(std::min(stride, count - tile)));
    else
      for (Operation *op : *steps)
        values.evaluate(op);
    next();
  }
  for (Value result : loop.getResults())
    values.forget(result);
}

void BlockWalk::visitIf(scf::IfOp branch, double times) {
  std::optional<int64_t> condition = values.scalar(branch.getCondition());
  SmallVector<SmallVector<Known>> yielded;
  for (unsigned side : {0U, 1U}) {
    Region &region = branch->getRegion(side);
    const bool isTaken = !condition || (*condition != 0) == (side == 0);
    if (!isTaken || region.empty())
      continue;
    walk(region.front(), condition ? times : times / 2);
    SmallVector<Known> &known = yielded.emplace_back();
    for (Value value : region.front().getTerminator()->getOperands())
      known.push_back(values.get(value));
  }
  for (auto [i, result] : llvm::enumerate(branch.getResults()))
    values.set(result, yielded.size() == 1 ? yielded[0][i] : Known());
}

void BlockWalk::visitRoles(gpu::WarpRolesOp roles, double times) {
  const LaunchWork before = counts.work;
  walk(roles.getProducer().front(), times);
  const unsigned teams = static_cast<unsigned>(function.getTeams());
  for (unsigned team = 0; team < teams; ++team) {
    values.place.warpgroup = team;
    values.place.told = 0;
    walk(roles.getConsumer().front(), times);
  }
  values.place.warpgroup = 0;
  // The producer keeps its ring full, through all tiles of the block: consumers wait for the first
  // stage alone, and meet while the others compute.
  LaunchWork &work = counts.work;
  work.waits = before.waits + std::min(work.waits - before.waits, 1.0);
  work.barriers = before.barriers + (work.barriers - before.barriers) * cost::shareOfRingBarriers;
}

} // namespace tk
