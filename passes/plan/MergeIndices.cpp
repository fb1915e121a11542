//===- MergeIndices.cpp - several indices of a contraction as one ---------===//
//
//   1. The pass matches contractions of two loads on the matrix unit over several indices. In one
//      of the loads an axis moves with several indices, one of which the other load is not read at:
//      a window.
//   2. Both loads must have neighbours in memory that vectors can load. The innermost axis grows by
//      one with a tiled index (in the window's operand: with the last index of the sum), and by
//      whole vectors with all others. Sum indices that are pixels would have to be taken apart for
//      each row of each tile. (On an H200 the weights' gradient of a 3x3 convolution of
//      32x28x28x256 takes 589 us that way, and 434 us with a loop for each index.)
//   3. One index counts all elements of the sum. Another one counts those indices of the window's
//      operand that are neighbours in the results and end with the tiled one.
//   4. Contractions of two plain loads on CUDA cores also get one index for the sum if the
//      innermost index is whole slices long. With a loop for each index, every run of the innermost
//      loop would begin its copies and wait for the first of them. (On an H200 an f32 contraction
//      of 1024 x 1024 over 32 x 64 elements has two slices in each of 32 loops.)
//
//===----------------------------------------------------------------------===//
#include "passes/plan/MergeIndices.h"
#include "passes/machine/limits/Elements.h"

#include "passes/analysis/IndexGrowth.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/machine/TileFacts.h"
#include "passes/plan/Planner.h"
#include "passes/plan/ScheduleBlock.h"

using namespace mlir;
using namespace tk;

using namespace limits::merge_indices;

/// `value` without summands that are an index times a number of the launch, of whole vectors.
static Value withoutVectors(StatementShape &shape, Value value) {
  auto isOfVectors = [&](Value summand) {
    auto product = summand.getDefiningOp<arith::MulIOp>();
    return product && isa<BlockArgument>(product.getLhs()) &&
           isKernelLevel(product.getRhs(), shape.compute) &&
           getSizeFact(shape.kernel, product.getRhs()).divisor % halvesOfVector == 0;
  };
  auto sum = value.getDefiningOp<arith::AddIOp>();
  if (sum && isOfVectors(sum.getLhs()))
    return withoutVectors(shape, sum.getRhs());
  if (sum && isOfVectors(sum.getRhs()))
    return withoutVectors(shape, sum.getLhs());
  return value;
}

/// Do vectors of neighbours in memory lie along one of `tiled`, wherever the other indices are?
static bool hasVectors(StatementShape &shape, LoadOp load, ArrayRef<Value> tiled) {
  if (load.getIndices().empty() ||
      getSizeFact(shape.kernel, getExtents(shape.kernel, load.getTensor()).back()).divisor %
          halvesOfVector)
    return false;
  Value last = withoutVectors(shape, load.getIndices().back());
  unsigned runs = 0;
  for (Value index : getIterationIndices(last)) {
    std::optional<int64_t> step = growth(last, index);
    if (!step || (*step % halvesOfVector != 0 && (*step != 1 || !llvm::is_contained(tiled, index))))
      return false;
    runs += *step == 1 ? 1 : 0;
  }
  std::optional<int64_t> start = growth(last, Value());
  return runs == 1 && start && *start % halvesOfVector == 0;
}

/// Does an axis of `load` move with several indices, one of which `other` is not read at?
static bool isWindow(LoadOp load, LoadOp other) {
  SmallVector<BlockArgument> shared = getIterationIndices(other);
  return llvm::any_of(load.getIndices(), [&](Value axis) {
    SmallVector<BlockArgument> own = getIterationIndices(axis);
    return !isa<BlockArgument>(axis) && own.size() > 1 &&
           !llvm::all_of(own,
                         [&](BlockArgument index) { return llvm::is_contained(shared, index); });
  });
}

/// The extents of indices whose product is known before the launch.
static bool areExtentsOfKernel(tk::ReduceOp op, KernelOp kernel) {
  return llvm::all_of(llvm::seq(op.getNumIndices()), [&](unsigned n) {
    Value upper = op.getUpper()[n];
    Operation *def = upper.getDefiningOp();
    return getConstantIndex(op.getLower()[n]) == 0 &&
           (def ? def->getParentOp() == kernel
                : cast<BlockArgument>(upper).getOwner()->getParentOp() == kernel);
  });
}

/// Does `load` read whole slices of `op` at its bare indices, each of them?
static bool readsEveryTerm(LoadOp load, tk::ReduceOp op) {
  return load && llvm::all_of(load.getIndices(), llvm::IsaPred<BlockArgument>) &&
         llvm::all_of(llvm::seq(op.getNumIndices()), [&](unsigned n) {
           return llvm::is_contained(load.getIndices(), op.getIndex(n));
         });
}

/// The first of the indices side by side that end with `last` and all are in `own`.
static unsigned firstOfRun(ComputeOp compute, Value last, ArrayRef<BlockArgument> own) {
  unsigned first = cast<BlockArgument>(last).getArgNumber();
  while (first > 0 && llvm::is_contained(own, compute.getIndex(first - 1)))
    --first;
  return first;
}

void tk::mergeIndices(StatementShape &shape) {
  ComputeOp compute = shape.compute;
  if (shape.contractions.size() != 1 || shape.reductions.size() != 1)
    return;
  // A schedule that gives one of them a tile, or a thread outputs, means each by itself. A tile of
  // the last one is a tile of all.
  const ScheduleBlock block = readScheduleBlock(shape);
  auto hasTile = [&](BlockArgument index) { return block.tiles.lookup(index) > 1; };
  if (!block.coarsen.empty())
    return;
  Contraction &product = shape.contractions.front();
  tk::ReduceOp op = product.op;
  bool isPlain = op->getBlock() == compute.getBlock() && op.getNumAccumulators() == 1 &&
                 op.standsAlone(0) && isa<BlockArgument>(product.m);
  for (unsigned r = 0; r < compute.getNumResults(); ++r)
    isPlain &= compute.getIndicesOf(r).size() == compute.getNumIndices();
  if (!isPlain || op.getNumIndices() < 2 || !areExtentsOfKernel(op, shape.kernel))
    return;
  const unsigned innermost = op.getNumIndices() - 1;
  if (llvm::any_of(llvm::seq(innermost), [&](unsigned n) { return hasTile(op.getIndex(n)); }))
    return;
  Value tiled[] = {product.m, product.n, op.getIndex(innermost)};
  Operation *factors = op.getYield().getValues()[0].getDefiningOp();
  auto a = withoutExtension(factors->getOperand(0)).getDefiningOp<LoadOp>();
  auto b = withoutExtension(factors->getOperand(1)).getDefiningOp<LoadOp>();
  Builder builder(compute.getContext());
  if (!usesMatrixUnits(product) && readsEveryTerm(a, op) && readsEveryTerm(b, op) &&
      getSizeFact(shape.kernel, op.getUpper()[innermost]).divisor % wholeSlices == 0) {
    gpu::changePlan(compute, [](gpu::KernelPlan &plan) { plan.mergedTerms = true; });
    return;
  }
  if (!usesMatrixUnits(product) || product.operand.getIntOrFloatBitWidth() != 16)
    return;
  if (!a || !b || isWindow(a, b) == isWindow(b, a) || !hasVectors(shape, a, tiled) ||
      !hasVectors(shape, b, tiled))
    return;
  LoadOp window = isWindow(a, b) ? a : b, other = isWindow(a, b) ? b : a;
  if (growth(window.getIndices().back(), tiled[2]) != 1)
    return;
  SmallVector<BlockArgument> own = getIterationIndices(window);
  llvm::erase_if(own, [&](BlockArgument index) {
    return index.getOwner() != compute.getBlock() ||
           llvm::is_contained(getIterationIndices(other), index);
  });
  Value last = llvm::is_contained(own, product.m) ? product.m : product.n;
  unsigned first = firstOfRun(compute, last, own), end = cast<BlockArgument>(last).getArgNumber();
  if (!llvm::is_contained(own, last) || first == end ||
      llvm::any_of(llvm::seq(first, end), [&](unsigned n) { return hasTile(compute.getIndex(n)); }))
    return;
  gpu::changePlan(compute, [&](gpu::KernelPlan &plan) {
    plan.mergedTerms = true;
    plan.mergedRows = builder.getDenseI64ArrayAttr({first, end + 1});
  });
}

bool tk::areTermsMerged(tk::ReduceOp op) {
  auto compute = dyn_cast_or_null<ComputeOp>(op->getParentOp());
  return compute && gpu::getPlan(compute).mergedTerms;
}

/// The indices of `op` that are counted through as one, as a range of positions.
static std::pair<int64_t, int64_t> mergedRange(Operation *op) {
  if (auto reduce = dyn_cast<tk::ReduceOp>(op))
    return {0, areTermsMerged(reduce) ? reduce.getNumIndices() : 0};
  DenseI64ArrayAttr range = isa<ComputeOp>(op) ? gpu::getPlan(op).mergedRows : DenseI64ArrayAttr();
  return range ? std::pair(range[0], range[1]) : std::pair<int64_t, int64_t>(0, 0);
}

SmallVector<Value> tk::getMergedIndices(Value index) {
  auto arg = cast<BlockArgument>(index);
  const auto [first, end] = mergedRange(arg.getOwner()->getParentOp());
  SmallVector<Value> merged;
  if (arg.getArgNumber() + 1 == end)
    for (int64_t n = first; n < end; ++n)
      merged.push_back(arg.getOwner()->getArgument(n));
  return merged;
}

bool tk::isMergedIntoOther(Value index) {
  auto arg = cast<BlockArgument>(index);
  const auto [first, end] = mergedRange(arg.getOwner()->getParentOp());
  return arg.getArgNumber() >= first && arg.getArgNumber() + 1 < end;
}
