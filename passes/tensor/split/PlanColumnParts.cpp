//===- PlanColumnParts.cpp - the parts of sums of columns -----------------===//
//
// Sums of columns get as many parts as give each multiprocessor several blocks. A block has
// neighbouring columns, and several results that share elements (PlanShared.cpp). Vector-matrix
// products get parts of one length. Partial results are laid out like the columns. If there are few
// columns they are laid out part by part, so that as many blocks combine them.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/IndexGrowth.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/plan/StatementShape.h"
#include "passes/tensor/split/PlanParts.h"
#include "passes/tensor/split/SeparateTaps.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk;

using namespace limits::plan_parts;

/// A quotient by a small number: neighbours have the same element, or neighbours.
static Value withoutQuotient(Value place) {
  auto quotient = place.getDefiningOp<FloorDivOp>();
  std::optional<int64_t> divisor =
      quotient ? getConstantIntValue(quotient->getOperand(1)) : std::nullopt;
  return divisor && *divisor > 0 && *divisor <= farthestNeighbours ? quotient->getOperand(0)
                                                                   : place;
}

/// The index of the statement that a load runs along: the last axis of the tensor is that index, or
/// grows with it by little and by more with those of the reduction, as in `x[g + 8 * k]`. Null if
/// there is none.
static BlockArgument columnOf(LoadOp load, ReduceOp reduce, ComputeOp compute) {
  Value last = withoutQuotient(load.getIndices().back());
  auto argument = dyn_cast<BlockArgument>(last);
  if (argument)
    return argument.getOwner() == compute.getBlock() ? argument : BlockArgument();
  for (BlockArgument index : getIterationIndices(last)) {
    std::optional<int64_t> grows = growth(last, index);
    const bool isColumn = index.getOwner() == compute.getBlock();
    const bool isNear = grows && std::abs(*grows) <= farthestNeighbours;
    if (!grows || (isColumn && (!isNear || *grows < 1 || argument)) ||
        (!isColumn && std::abs(*grows) == 1))
      return {};
    if (isColumn)
      argument = index;
  }
  return argument;
}

bool tk::runsAcross(ReduceOp reduce, ComputeOp compute) {
  auto ownOf = [&](LoadOp load) {
    llvm::SmallPtrSet<void *, 4> own;
    for (Value index : load.getIndices())
      for (BlockArgument argument : getIterationIndices(index)) {
        if (argument.getOwner() != compute.getBlock())
          continue;
        int64_t upper = getUpperBound(compute.getExtents()[argument.getArgNumber()]);
        if (upper < 0 || upper > 1)
          own.insert(argument.getAsOpaquePointer());
      }
    return own;
  };
  SmallVector<LoadOp> along, others;
  reduce.walk([&](LoadOp load) {
    if (!load.getIndices().empty())
      (columnOf(load, reduce, compute) ? along : others).push_back(load);
  });
  return !along.empty() && llvm::all_of(others, [&](LoadOp other) {
    auto needed = ownOf(other);
    return llvm::all_of(along, [&](LoadOp load) {
      auto own = ownOf(load);
      void *column = columnOf(load, reduce, compute).getAsOpaquePointer();
      return llvm::all_of(needed,
                          [&](void *index) { return index != column && own.contains(index); });
    });
  });
}

/// Does `reduce` sum products of what lies along `column` and of a row that all columns share?
static bool isProductWithRow(ReduceOp reduce, Value column) {
  if (reduce.getNumIndices() != 1 || !isContraction(reduce))
    return false;
  Operation *product = reduce.getYield().getValues()[0].getDefiningOp();
  return llvm::count_if(product->getOperands(), [&](Value factor) {
           return llvm::is_contained(getIterationIndices(factor), column);
         }) == 1;
}

/// The place of the index of a statement's columns: the one that loads run along, else the last one
/// that may have several values.
static unsigned columnOf(ComputeOp compute) {
  std::optional<unsigned> along;
  for (auto reduce : compute.getBlock()->getOps<ReduceOp>())
    reduce.walk([&](LoadOp load) {
      if (BlockArgument index =
              load.getIndices().empty() ? BlockArgument() : columnOf(load, reduce, compute))
        along = std::max(along.value_or(0), index.getArgNumber());
    });
  if (along)
    return *along;
  unsigned column = compute.getNumIndices() - 1;
  while (column > 0 && getUpperBound(compute.getExtents()[column]) == 1)
    --column;
  return column;
}

/// Does nothing that a statement's only reduction reads depend on `index`, although its elements
/// do?
static bool sharesElements(ComputeOp compute, BlockArgument index) {
  auto reduces = compute.getBlock()->getOps<ReduceOp>();
  if (!llvm::hasSingleElement(reduces))
    return false;
  auto reads = [&](Operation *inner) {
    auto load = dyn_cast<LoadOp>(inner);
    return load && llvm::is_contained(getIterationIndices(load.getResult()), index);
  };
  ReduceOp reduce = *reduces.begin();
  // The index of parts says where a range begins.
  bool isRead = llvm::any_of(reduce->getOperands(), [&](Value bound) {
    return llvm::is_contained(getIterationIndices(bound), index);
  });
  reduce.getBody().walk([&](Operation *inner) { isRead |= reads(inner); });
  return !isRead && llvm::is_contained(getIterationIndices(reduce.getResult(0)), index);
}

std::optional<int64_t> tk::blocksOfColumns(ComputeOp compute) {
  int64_t blocks = 1;
  const std::optional<unsigned> tap = tapOfOneLoop(compute);
  for (auto [i, extent] : llvm::enumerate(compute.getExtents())) {
    int64_t upper = getUpperBound(extent);
    if (upper < 0 || upper > mostColumns)
      return std::nullopt;
    // Results that share elements are in one block.
    if (i == columnOf(compute))
      upper = llvm::divideCeil(upper, columnsOfBlock);
    else if (i == tap)
      upper = 1;
    else if (sharesElements(compute, compute.getIndex(i)))
      upper = llvm::divideCeil(upper, mostSharedResults);
    blocks *= upper;
    if (blocks > mostColumns)
      return std::nullopt;
  }
  return std::max<int64_t>(blocks, 1);
}

std::optional<Split> tk::splitColumn(ReduceOp reduce, int64_t blocks, int64_t processors,
                                     bool areProducts, bool wait) {
  if (areProducts) {
    // Of sizes that are known by their bounds alone, parts of one length are the more even ones.
    int64_t rows = countOf(reduce, 0);
    int64_t parts = std::min(blocksOfProducts * processors / blocks, rows / leastRows);
    if (parts < 2)
      return std::nullopt;
    int64_t length = llvm::divideCeil(rows, parts);
    return Split{length, false, 0, false, parts};
  }
  int64_t wanted = (wait ? blocksThatWait : blocksOfSums) * processors;
  int64_t parts = llvm::divideCeil(wanted, blocks);
  std::optional<Split> how =
      parts < 2 ? std::nullopt : divide(reduce, parts, leastRows, /*isColumn=*/true);
  return how && countOf(reduce, how->position) > how->length ? how : std::nullopt;
}

/// Do asynchronous copies bring what a reduction reads, whose rows are whole vectors of 16 bytes
/// apart?
static bool comesEarly(ReduceOp reduce, ComputeOp compute) {
  auto kernel = compute->getParentOfType<KernelOp>();
  bool areVectors = true;
  reduce.getBody().walk(
      [&](LoadOp load) { areVectors &= kernel && getRowAlignment(kernel, load) >= boxAlignment; });
  return areVectors;
}

SmallVector<Split> tk::splitColumns(ComputeOp compute, ArrayRef<ReduceOp> reduces) {
  gpu::TargetAttr target = targetOf(compute);
  auto isAcross = [&](ReduceOp reduce) { return runsAcross(reduce, compute); };
  if (!target || compute.getNumIndices() == 0 || !llvm::all_of(reduces, isAcross))
    return {};
  std::optional<int64_t> blocks = blocksOfColumns(compute);
  if (!blocks)
    return {};
  // Statements of one kernel may share their parts.
  bool wait = compute->getParentOp()
                  ->walk([&](ReduceOp reduce) {
                    return matchSquaredDistance(reduce) && !comesEarly(reduce, compute)
                               ? WalkResult::interrupt()
                               : WalkResult::advance();
                  })
                  .wasInterrupted();
  // Several indices that are left have short loops, each of which waits for its first loads.
  wait |= llvm::any_of(reduces, [&](ReduceOp reduce) {
    return llvm::any_of(reduce.getLower(),
                        [&](Value bound) { return !isKernelLevel(bound, compute); });
  });
  Value column = compute.getIndex(columnOf(compute));
  bool areProducts =
      llvm::all_of(reduces, [&](ReduceOp reduce) { return isProductWithRow(reduce, column); });
  SmallVector<Split> hows;
  for (ReduceOp reduce : reduces) {
    std::optional<Split> how =
        splitColumn(reduce, *blocks, target.getProcessors(), areProducts, wait);
    if (!how && !areProducts && isBesideRows(reduce, compute))
      how = divide(reduce, 2, leastRows, /*isColumn=*/true);
    if (!how)
      return {};
    how->isAcross = !countOutputs(compute);
    hows.push_back(*how);
  }
  return hows;
}
