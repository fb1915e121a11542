//===- PlanStates.cpp - tiles of reductions over scanned states -----------===//
//
// `y[l, d] = sum[n](h[l, d, n] * c[l, n])`, where `h` is scanned along `l`, has as many states as
// `d` and `n` have values. A block steps through `l` with all states of its columns, and reduces
// them where they are, so that no state is stored.
//
// 1. The planner takes compute ops with a scan in the terms of a reduction. A tile has all terms.
// 2. A thread has a few neighbouring states of one column, and all steps of a tile along the
//    scanned index. It scans without other threads, and computes once for all its states what
//    depends on the step and the column alone. What is computed for all steps of a tile stays in
//    the instruction cache.
// 3. A block has columns that lie beside each other in memory, as many as fill a sector.
//
// Before: tiles of 1 x 1 results and 1 term
// After:  tiles of 16 x 8 results and 16 terms, in two warps whose threads have 2 states
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ScanPosition.h"
#include "passes/machine/Machine.h"
#include "passes/machine/limits/Elements.h"
#include "passes/plan/Planner.h"

using namespace mlir;
using namespace tk;

using namespace limits::plan_states;

namespace {
/// A reduction over scanned states, and the index that they are scanned along.
struct States {
  ReduceOp reduce;
  BlockArgument along;
};
} // namespace

static std::optional<States> findStates(StatementShape &shape) {
  std::optional<States> found;
  for (Operation *op : shape.reductions) {
    auto scan = dyn_cast<ScanOp>(op);
    auto reduce = scan ? scan->getParentOfType<ReduceOp>() : ReduceOp();
    if (!reduce)
      continue;
    std::optional<IndexOrMirror> place = getScanPosition(scan, shape.compute);
    if (!place || reduce->getBlock() != shape.compute.getBlock() ||
        (found && found->along != place->index))
      return std::nullopt;
    if (!found)
      found = States{reduce, place->index};
  }
  return found;
}

/// The last index of the compute op besides `along` that the reduction is over, if accesses run
/// along it; null if there is none.
static BlockArgument columnsOf(StatementShape &shape, const States &states) {
  BlockArgument columns;
  for (BlockArgument index : shape.compute.getBlock()->getArguments())
    if (index != states.along && shape.dependsOn[states.reduce].contains(index) &&
        shape.contiguous.lookup(index) > 0)
      columns = index;
  return columns;
}

/// How many neighbouring states a thread has: fewer where threads would not fill the machine.
static int64_t statesOfThread(StatementShape &shape, const States &found, int64_t states,
                              int64_t processors) {
  int64_t all = states, ofThread = std::min(states, mostStates);
  for (BlockArgument index : shape.compute.getBlock()->getArguments()) {
    std::optional<int64_t> upper = shape.upperOf(index);
    if (index == found.along)
      continue;
    if (!upper)
      return ofThread;
    all = std::min<int64_t>(all, INT32_MAX) * std::max<int64_t>(*upper, 1);
  }
  while (ofThread > 1 && all / ofThread < processors * threadsOfProcessor)
    ofThread /= 2;
  return ofThread;
}

/// How many states of steps a thread has at a time: fewer where much is computed for each, so that
/// the loop's code stays in the instruction cache.
static int64_t elementsOfTile(StatementShape &shape) {
  int64_t operations = 0;
  shape.compute.walk([&](Operation *op) {
    operations += op->getNumRegions() == 0 && op->getNumResults() == 1 &&
                  isa<FloatType>(op->getResult(0).getType());
  });
  int64_t elements = mostElements;
  while (elements > leastElements && operations * elements > operationsOfTile)
    elements /= 2;
  return elements;
}

bool Planner::planStates() {
  std::optional<States> states = coarse ? findStates(shape) : std::nullopt;
  if (!states)
    return false;
  int64_t terms = 1;
  for (unsigned n = 0; n < states->reduce.getNumIndices(); ++n) {
    Value index = states->reduce.getIndex(n);
    set(index, fit(index, mostTerms));
    terms *= tileOf(index);
  }
  const int64_t ofThread = statesOfThread(shape, *states, terms, target.getProcessors());
  BlockArgument columns = columnsOf(shape, *states);
  if (columns)
    set(columns,
        fit(columns, std::clamp<int64_t>(mostThreads * ofThread / terms, 1, columnsOfSector)));
  const int64_t all = terms * (columns ? tileOf(columns) : 1);
  warps = std::clamp<int64_t>(all / ofThread / 32, 1, mostThreads / 32);
  const int64_t held = std::max<int64_t>(all / (warps * 32), 1);
  set(states->along, fit(states->along, std::max<int64_t>(elementsOfTile(shape) / held, 1)));
  for (Operation *op : shape.reductions)
    if (auto scan = dyn_cast<ScanOp>(op))
      set(scan.getBlock()->getArgument(0), tileOf(states->along));
  std::optional<int64_t> length = shape.upperOf(states->along);
  if (!length || *length > tileOf(states->along))
    loop = states->along.getArgNumber();
  perThread = held * tileOf(states->along);
  return true;
}
