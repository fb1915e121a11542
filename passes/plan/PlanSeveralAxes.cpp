//===- PlanSeveralAxes.cpp - rows of several axes -------------------------===//
//
// A reduction over several indices runs along memory with one of them, and a block has all of that
// index. If the compute op's results are over the same indices, the block, or the blocks of a
// cluster, take all of the other indices too, provided that they can hold them. They then read and
// reduce the elements once, and store what they hold. Otherwise a block for each value of the other
// indices would repeat the reduction. If nothing is stored along the other indices, several short
// rows are reduced at a time.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/IndexSpaces.h"
#include "passes/machine/Machine.h"
#include "passes/machine/TileFacts.h"
#include "passes/machine/limits/Elements.h"
#include "passes/plan/Planner.h"

using namespace mlir;
using namespace tk;

/// Does `reduction` take whole rows over two axes, in the order of memory?
static bool takesPlanes(ReduceOp reduction, StatementShape &shape) {
  return reduction && reduction->getBlock() == shape.compute.getBlock() &&
         takesPackedPlane(reduction) && shape.startsAtZero(reduction.getIndex(0)) &&
         shape.startsAtZero(reduction.getIndex(1));
}

/// May the blocks of a cluster share the rows over both indices of `op`? They join what they reduce
/// (gpu::joinAxes) and exchange nothing else: all reductions are over such rows, and elements lie
/// in the order of the axes wherever they are accessed.
bool Planner::maySpreadPlanes(ReduceOp op) {
  if (!coarse || !hasFeature(target, Feature::Clusters) || !takesPlanes(op, shape) ||
      getSizeFact(shape.kernel, shape.endOf(op.getIndex(1))).divisor % bytesOfVector != 0)
    return false;
  Value ends[] = {shape.endOf(op.getIndex(0)), shape.endOf(op.getIndex(1))};
  Value outer, inner;
  for (Value parallel : shape.compute.getBlock()->getArguments()) {
    if (shape.dependsOn[op].contains(parallel))
      continue;
    if (!outer && shape.endOf(parallel) == ends[0])
      outer = parallel;
    else if (shape.endOf(parallel) == ends[1])
      inner = parallel;
  }
  if (!outer || !inner || !runsInOrder(shape.compute, outer, inner))
    return false;
  for (unsigned r = 0; r < shape.compute.getNumResults(); ++r) {
    SmallVector<unsigned> positions = shape.compute.getIndicesOf(r);
    for (unsigned p : ArrayRef(positions).drop_back(!positions.empty()))
      if (shape.compute.getIndex(p) == inner)
        return false;
  }
  return llvm::all_of(shape.reductions, [&](Operation *other) {
    auto reduction = dyn_cast<ReduceOp>(other);
    return takesPlanes(reduction, shape) && shape.endOf(reduction.getIndex(0)) == ends[0] &&
           shape.endOf(reduction.getIndex(1)) == ends[1];
  });
}

int64_t Planner::planOtherAxes(ReduceOp op, Value along, int64_t most) {
  std::optional<int64_t> whole = shape.upperOf(along);
  if (!coarse || op.getNumIndices() == 1 || !whole || tileOf(along) < *whole ||
      !shape.startsAtZero(along))
    return 1;
  llvm::SmallDenseMap<Value, int64_t> wanted;
  int64_t product = 1;
  for (unsigned n = 0; n < op.getNumIndices(); ++n) {
    Value index = op.getIndex(n);
    std::optional<int64_t> upper = shape.upperOf(index);
    if (index == along)
      continue;
    if (!upper || !shape.startsAtZero(index))
      return 1;
    int64_t size = fit(index, most);
    product *= size;
    if (size < *upper || product * tileOf(along) > most)
      return 1;
    wanted[index] = size;
    bool isStored = false;
    for (Value parallel : shape.compute.getBlock()->getArguments()) {
      if (shape.endOf(parallel) != shape.endOf(index) || shape.dependsOn[op].contains(parallel))
        continue;
      wanted[parallel] = size;
      isStored = true;
    }
    if (!isStored)
      return 1;
  }
  // What the program or another reduction has chosen stays.
  for (auto [index, size] : wanted)
    if (tiles.contains(index) && tileOf(index) != size)
      return 1;
  for (auto [index, size] : wanted)
    set(index, size);
  return product;
}

int64_t Planner::planRowsOfSlice(ReduceOp op, Value along, int64_t most) {
  std::optional<int64_t> whole = shape.upperOf(along);
  if (!coarse || !whole || tileOf(along) < *whole)
    return 1;
  // Outer axes follow where those inside are short, parts of one value for example.
  int64_t rows = 1;
  for (unsigned n = op.getNumIndices(); n-- > 0;) {
    Value index = op.getIndex(n);
    if (index == along || tiles.contains(index))
      continue;
    const int64_t left = std::max<int64_t>(most / (tileOf(along) * rows), 1);
    const int64_t here = fit(index, left);
    set(index, here);
    rows *= here;
    if (shape.upperOf(index).value_or(here + 1) > here)
      break;
  }
  return rows;
}

bool Planner::countsParts(Value index) {
  return llvm::any_of(shape.reductions, [&](Operation *op) {
    auto reduce = dyn_cast<ReduceOp>(op);
    return reduce && llvm::any_of(llvm::seq(reduce.getNumIndices()), [&](unsigned n) {
             Value lower = reduce.getLower()[n];
             return shape.lengthOfPart(reduce.getIndex(n)) &&
                    llvm::is_contained(getIterationIndices(lower), index);
           });
  });
}

using namespace limits::plan_several_axes;

/// How many rows a block has: `wanted`, if there is then a block for every multiprocessor. They are
/// neighbours along the last index that is a multiple of so many, or half, or as long as that takes
/// alone: these lie side by side, and share what is loaded for the indices before. Else they are
/// those of an index further out.
int64_t Planner::planRowsOfBlock(int64_t wanted) {
  SmallVector<Value> left;
  int64_t blocks = 1;
  for (unsigned p = 0; p < shape.compute.getNumIndices(); ++p)
    if (Value index = shape.compute.getIndex(p); !tiles.contains(index)) {
      left.push_back(index);
      blocks = std::min<int64_t>(blocks * shape.upperOf(index).value_or(assumedExtent), 1 << 30);
    }
  int64_t rows = 1;
  while (!left.empty() && rows == 1) {
    Value index = left.pop_back_val();
    rows = countsParts(index) ? 1 : fit(index, wanted);
    std::optional<int64_t> upper = shape.upperOf(index);
    if (coarse && upper) {
      int64_t divisor = getSizeFact(shape.kernel, shape.endOf(index)).divisor;
      // Results that lie side by side are stored together; of many tiles one may end early.
      const bool isInnermost = index == shape.compute.getIndex(shape.compute.getNumIndices() - 1) &&
                               *upper >= tilesThatEnd * rows;
      bool isChosen = left.empty() || isInnermost || *upper / rows >= target.getProcessors();
      while (!isChosen && divisor % rows != 0)
        rows /= 2;
      if (!isChosen && 2 * rows < wanted)
        rows = 1;
      while (rows > 1 && blocks / rows < target.getProcessors())
        rows /= 2;
    }
    set(index, rows);
  }
  return rows;
}
