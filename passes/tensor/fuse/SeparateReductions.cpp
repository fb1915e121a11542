//===- SeparateReductions.cpp - hoist reductions out of a compute op ------===//
//
// A compute op may contain a reduction that does not depend on all of its indices, such as a row
// norm inside an elementwise expression. Each value of the other indices would repeat the
// reduction. This pass gives such a reduction a compute op of its own.
//
// 1. Find reductions that do not depend on some index with more than one value, either of the
//    compute op or of an enclosing reduction. Also find matrix products, and rows of more than 256
//    elements, inside another reduction.
//    Inner reductions come first.
// 2. Take along the other reductions over the same indices, and the elementwise operations that
//    need only these. The values that the rest of the compute op uses become results of the new op.
// 3. Ask the cost rule of tk-fuse-producers (FuseProducersCost.cpp) about the new op. Keep the new
//    op only if the rule stores at least one of its results.
// 4. Otherwise move a reduction that is the same for all elements of an enclosing reduction in
//    front of that reduction.
//
// The pass takes a matrix product only if no other reduction beside it needs it. It declines values
// of fewer than 32 bits, because a store would round them, and accesses that might be out of bounds
// in the new op.
//
//   %y = tk.compute ["n","c"] {%s = tk.reduce [sum] ["k"] {x[n, k]^2}
//                              x[n, c] / sqrt(%s)}
//     =>
//   %r = tk.compute ["n"] {%s = tk.reduce [sum] ["k"] {x[n, k]^2}; sqrt(%s)}
//   %y = tk.compute ["n","c"] {x[n, c] / r[n]}
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/BoundsApart.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/limits/Operands.h"
#include "passes/tensor/fuse/FuseProducers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/SetVector.h"

namespace tk {
#define GEN_PASS_DEF_SEPARATEREDUCTIONS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-separate-reductions";

using namespace limits::separate_reductions;

using Indices = llvm::SetVector<BlockArgument>;

static Indices indicesOf(Operation *op) {
  Indices indices;
  for (Value result : op->getResults())
    indices.insert_range(getIterationIndices(result));
  return indices;
}

/// Is there memory for values of `type`? Smaller ones would be rounded.
static bool isStorable(Type type) {
  return (isa<FloatType>(type) || type.isSignlessInteger()) && type.getIntOrFloatBitWidth() >= 32;
}

/// Where the values of an index end.
static Value boundOf(BlockArgument index) {
  if (auto reduce = dyn_cast<ReduceOp>(index.getOwner()->getParentOp()))
    return reduce.getUpper()[index.getArgNumber()];
  return cast<ComputeOp>(index.getOwner()->getParentOp()).getExtents()[index.getArgNumber()];
}

/// How many values an index has: `0 .. extent`, known before the statement; else null.
static Value extentOf(BlockArgument index, ComputeOp compute) {
  auto reduce = dyn_cast<ReduceOp>(index.getOwner()->getParentOp());
  if (reduce && !isConstantIntValue(reduce.getLower()[index.getArgNumber()], 0))
    return {};
  Value bound = boundOf(index);
  return isKernelLevel(bound, compute) ? bound : Value();
}

static StringAttr nameOf(BlockArgument index, ComputeOp compute) {
  if (index.getOwner() == compute.getBlock())
    return cast<StringAttr>(compute.getIndexNames()[index.getArgNumber()]);
  auto reduce = cast<ReduceOp>(index.getOwner()->getParentOp());
  return cast<StringAttr>(reduce.getIndexNames()[index.getArgNumber()]);
}

namespace {
/// One reduction, and what goes with it, in a copy of its statement.
class Separation {
public:
  Separation(ReduceOp reduce, ComputeOp compute)
      : compute(compute), block(reduce->getBlock()), indices(indicesOf(reduce)) {}

  /// Makes the statement and reads it; false, and nothing is changed, if it cannot be made.
  bool run();
  /// Has `twin`, an equal reduction elsewhere in the copy, read the statement, too.
  void take(ReduceOp twin);
  /// Why one of the reads stays, or nothing.
  std::optional<std::string> whyStored(int64_t maxExtra) const;
  void eraseStatements() {
    for (ComputeOp statement : statements)
      statement.erase();
  }

private:
  bool isSeed(Operation &op);
  void collect();
  bool isUsedOutside(Operation *op) const;
  bool dropUnstorable();
  bool mayComputeApart() const;
  void create();

  ComputeOp compute;
  Block *block;
  Indices indices;
  llvm::SetVector<Operation *> taken;
  SmallVector<ComputeOp> statements; ///< more than one if twins are followed by others
  SmallVector<Read> reads;
};
} // namespace

bool Separation::isSeed(Operation &op) {
  auto reduce = dyn_cast<ReduceOp>(op);
  if (!reduce || reduce.isOnline())
    return false;
  Indices own = indicesOf(reduce);
  if (own.size() != indices.size() ||
      !llvm::all_of(own, [&](BlockArgument index) { return indices.contains(index); }))
    return false;
  if (!isHeavy(reduce))
    return true;
  bool isPlain = isMatrixProduct(reduce) &&
                 (block == compute.getBlock() || isReducedProduct(reduce)) &&
                 llvm::none_of(*reduce.getBlock(), [](Operation &o) { return o.getNumRegions(); });
  Dependence depends(reduce.getResults());
  return isPlain && llvm::none_of(block->getOps<ReduceOp>(), [&](ReduceOp other) {
           return other != reduce && depends.on(other.getResult(0));
         });
}

/// Does `value` need a reduction of its statement?
static bool needsReduction(Value value, ComputeOp compute) {
  SmallVector<Value> work = {value};
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !compute->isProperAncestor(op))
      continue;
    if (op->getNumRegions())
      return true;
    llvm::append_range(work, op->getOperands());
  }
  return false;
}

/// The reductions of `block` over the same indices, and what follows from them; of what is reduced
/// again, such as a log-sum-exp's terms, not what needs that result.
void Separation::collect() {
  const bool isReducedAgain = isa<ReduceOp>(block->getParentOp());
  for (Operation &op : block->without_terminator()) {
    if (isSeed(op)) {
      taken.insert(&op);
      continue;
    }
    bool follows = op.getNumRegions() == 0 && llvm::any_of(op.getOperands(), [&](Value operand) {
                     return operand.getDefiningOp() && taken.contains(operand.getDefiningOp());
                   });
    follows &= !isReducedAgain || llvm::none_of(op.getOperands(), [&](Value operand) {
      return !taken.contains(operand.getDefiningOp()) && needsReduction(operand, compute);
    });
    if (follows &&
        llvm::all_of(indicesOf(&op), [&](BlockArgument index) { return indices.contains(index); }))
      taken.insert(&op);
  }
}

bool Separation::isUsedOutside(Operation *op) const {
  return llvm::any_of(op->getUsers(), [&](Operation *user) {
    return !taken.contains(block->findAncestorOpInBlock(*user));
  });
}

/// Leaves what has no memory to the statement; false if that is a reduction.
bool Separation::dropUnstorable() {
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation *op : llvm::to_vector(taken)) {
      if (!isUsedOutside(op) || llvm::all_of(op->getResultTypes(), isStorable))
        continue;
      if (isa<ReduceOp>(op))
        return false;
      taken.remove(op);
      changed = true;
    }
  }
  return !taken.empty();
}

/// Are all accesses of what is taken in bounds wherever its own indices are? The proof may rest on
/// another index having values.
bool Separation::mayComputeApart() const {
  SmallVector<Value> others;
  for (Operation *around = block->getParentOp(); around != compute->getParentOp();
       around = around->getParentOp())
    for (BlockArgument index : around->getRegion(0).getArguments())
      if (!indices.contains(index))
        others.push_back(boundOf(index));
  Dependence onOthers(others);
  return llvm::all_of(taken, [&](Operation *op) { return isInBoundsApart(op, onOthers); });
}

void Separation::create() {
  OpBuilder builder(compute);
  SmallVector<Value> extents, stored;
  SmallVector<StringRef> names;
  for (BlockArgument index : indices) {
    IRMapping hoisted;
    extents.push_back(cloneFrom(builder, extentOf(index, compute), compute, hoisted));
    names.push_back(nameOf(index, compute).getValue());
  }
  for (Operation *op : taken)
    if (isUsedOutside(op))
      llvm::append_range(stored, op->getResults());
  std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + ".reduced").str();
  SmallVector<StringRef> results(stored.size(), name);
  Location loc = taken.front()->getLoc();
  auto statement = ComputeOp::create(
      builder, loc, names, extents, llvm::to_vector(ValueRange(stored).getTypes()), results,
      ArrayRef<SmallVector<unsigned>>{}, [&](OpBuilder &inner, Location, ValueRange own) {
        IRMapping mapping;
        for (auto [index, mine] : llvm::zip_equal(indices, own))
          mapping.map(index, mine);
        SmallVector<Value> values;
        for (Value value : stored)
          values.push_back(cloneFrom(inner, value, compute, mapping));
        YieldOp::create(inner, loc, values);
      });
  statements.push_back(statement);
  SmallVector<Value> place(indices.begin(), indices.end());
  builder.setInsertionPointToStart(block);
  for (auto [value, result] : llvm::zip_equal(stored, statement->getResults())) {
    auto load = LoadOp::create(builder, value.getLoc(), result, place, Value());
    reads.push_back({load, compute, result});
    value.replaceUsesWithIf(load.getResult(), [&](OpOperand &use) {
      return !taken.contains(block->findAncestorOpInBlock(*use.getOwner()));
    });
  }
  for (Operation *op : llvm::reverse(taken))
    op->erase();
}

bool Separation::run() {
  llvm::DenseSet<StringAttr> names;
  for (BlockArgument index : indices)
    if (!extentOf(index, compute) || !names.insert(nameOf(index, compute)).second)
      return false;
  collect();
  if (taken.empty() || !dropUnstorable() || !mayComputeApart())
    return false;
  create();
  return true;
}

void Separation::take(ReduceOp twin) {
  Separation other(twin, compute);
  if (!other.run())
    return;
  ComputeOp made = other.statements.front();
  ScalarEquality equality;
  for (auto [a, b] :
       llvm::zip(statements.front().getBlock()->getArguments(), made.getBlock()->getArguments()))
    equality.identify(a, b);
  // What follows from either element by element may differ.
  const bool areEqual =
      equality.equal(statements.front().getYield().getValues(), made.getYield().getValues());
  for (Read &read : other.reads) {
    if (areEqual) {
      const unsigned result = read.producer.getResultNumber();
      read.producer = cast<OpResult>(statements.front()->getResult(result));
      read.load.getTensorMutable().assign(read.producer);
    }
    reads.push_back(read);
  }
  if (areEqual)
    made.erase();
  else
    statements.push_back(made);
}

std::optional<std::string> Separation::whyStored(int64_t maxExtra) const {
  for (Read read : reads)
    if (auto why = whyNotInline(read, classify(read.producer), maxExtra))
      return why;
  return std::nullopt;
}

/// Does the statement, or a reduction around it, have an index with several values that `reduce`
/// does not depend on? Not of what stands in a scan, whose arguments are not indices alone.
static bool lacksIndices(ReduceOp reduce, ComputeOp compute) {
  Indices own = indicesOf(reduce);
  auto isLacking = [&](BlockArgument index) {
    Value extent = extentOf(index, compute);
    return !own.contains(index) && (!extent || getUpperBound(extent) != 1);
  };
  bool lacks = false;
  for (Operation *around = reduce->getParentOp(); around != compute->getParentOp();
       around = around->getParentOp()) {
    auto outer = dyn_cast<ReduceOp>(around);
    if (outer ? outer.isOnline() : !isa<ComputeOp>(around))
      return false;
    lacks |= llvm::any_of(around->getRegion(0).getArguments(), isLacking);
  }
  return lacks;
}

/// Is `reduce` a row in each term of another reduction, too long to be one of many that a thread or
/// a warp goes through? As a statement of its own it has all rows side by side.
static bool isRowOfTerm(ReduceOp reduce, ComputeOp compute) {
  auto around = dyn_cast<ReduceOp>(reduce->getParentOp());
  if (!around || around.isOnline() || isHeavy(reduce) || isContraction(reduce))
    return false;
  Indices own = indicesOf(reduce);
  const bool variesWithTerms = llvm::any_of(
      around.getBlock()->getArguments(), [&](BlockArgument index) { return own.contains(index); });
  return variesWithTerms && !countKnownTerms(reduce, shortRowOfTerm) &&
         llvm::all_of(reduce.getUpper(), [&](Value end) { return isKernelLevel(end, compute); });
}

/// Moves a reduction that is the same for all terms of the one around it before that, with what
/// follows from it; true if it did. There it is computed also where there are no terms.
static bool moveOut(ReduceOp reduce) {
  auto around = dyn_cast<ReduceOp>(reduce->getParentOp());
  if (!around)
    return false;
  Dependence onTerms(around.getBlock()->getArguments()), onEnds(around.getUpper());
  if (onTerms.on(reduce.getResult(0)))
    return false;
  SmallVector<Operation *> slice = getSlice(reduce.getResults(), around.getBlock());
  if (!llvm::all_of(slice, [&](Operation *op) { return isInBoundsApart(op, onEnds); }))
    return false;
  llvm::SetVector<Operation *> moved(slice.begin(), slice.end());
  for (Operation &op : *around.getBlock()) {
    auto isMoved = [&](Value v) { return v.getDefiningOp() && moved.contains(v.getDefiningOp()); };
    auto isInside = [&](Value v) { return v.getParentBlock() == around.getBlock() && !isMoved(v); };
    if (op.getNumResults() == 1 && op.getNumRegions() == 0 && !isa<LoadOp>(op) &&
        llvm::any_of(op.getOperands(), isMoved) && llvm::none_of(op.getOperands(), isInside))
      moved.insert(&op);
  }
  for (Operation *op : moved)
    op->moveBefore(around);
  return true;
}

namespace {
struct SeparateReductionsPass : tk::impl::SeparateReductionsBase<SeparateReductionsPass> {
  using SeparateReductionsBase::SeparateReductionsBase;

  void runOnOperation() override {
    getOperation()->walk([&](KernelOp kernel) {
      while (separateOnce(kernel))
        ++numSeparated;
    });
  }

private:
  bool separateOnce(KernelOp kernel) {
    for (ComputeOp compute : llvm::to_vector(kernel.getBody().front().getOps<ComputeOp>())) {
      SmallVector<ReduceOp> reduces;
      compute->walk([&](ReduceOp reduce) { reduces.push_back(reduce); });
      for (ReduceOp reduce : reduces)
        if ((isReducedProduct(reduce) && trySeparate(reduce, compute)) ||
            (lacksIndices(reduce, compute) && (trySeparate(reduce, compute) || moveOut(reduce))) ||
            (isRowOfTerm(reduce, compute) && trySeparate(reduce, compute)))
          return true;
    }
    return false;
  }

  /// The cost rule looks at the reader as it would be: so a copy of it is changed first.
  bool trySeparate(ReduceOp reduce, ComputeOp compute) {
    OpBuilder builder(compute);
    IRMapping mapping;
    auto copy = cast<ComputeOp>(builder.clone(*compute, mapping));
    auto same = mapping.lookup(reduce.getResult(0)).getDefiningOp<ReduceOp>();
    SmallVector<ReduceOp> twins;
    if (isReducedProduct(same))
      twins = findTwins(same, copy);
    Separation separation(same, copy);
    bool isMade = separation.run();
    for (ReduceOp twin : twins)
      if (isMade)
        separation.take(twin);
    std::optional<std::string> why = isMade ? separation.whyStored(maxExtra) : std::nullopt;
    if (why) {
      note(reduce, passName, Verdict::Derived,
           "the " + describe(reduce) + " becomes a statement of its own: " + *why);
      compute->replaceAllUsesWith(copy->getResults());
      compute.erase();
      return true;
    }
    copy.erase();
    if (isMade)
      separation.eraseStatements();
    return false;
  }
};
} // namespace
