//===- Separation.cpp - a reduction in a compute op of its own ------------===//
//
// The rewriting of tk-separate-reductions. A reduction goes with the other reductions over the same
// indices, and with the elementwise operations that need only these. The values that the rest of
// the compute op uses become results of the new one.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/fuse/Separation.h"

#include "passes/analysis/BoundsApart.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/tensor/fuse/ChosenResults.h"
#include "passes/tensor/fuse/FuseProducersCost.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;

Indices tk::indicesOf(Operation *op) {
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
  if (auto scan = dyn_cast<ScanOp>(index.getOwner()->getParentOp()))
    return scan.getUpper();
  if (auto reduce = dyn_cast<ReduceOp>(index.getOwner()->getParentOp()))
    return reduce.getUpper()[index.getArgNumber()];
  return cast<ComputeOp>(index.getOwner()->getParentOp()).getExtents()[index.getArgNumber()];
}

Value tk::extentOf(BlockArgument index, ComputeOp compute) {
  Operation *owner = index.getOwner()->getParentOp();
  auto reduce = dyn_cast<ReduceOp>(owner);
  if (isa<ScanOp>(owner) ||
      (reduce && !isConstantIntValue(reduce.getLower()[index.getArgNumber()], 0)))
    return {};
  Value bound = boundOf(index);
  return isKernelLevel(bound, compute) ? bound : Value();
}

StringAttr tk::nameOf(BlockArgument index, ComputeOp compute) {
  if (index.getOwner() == compute.getBlock())
    return cast<StringAttr>(compute.getIndexNames()[index.getArgNumber()]);
  auto reduce = cast<ReduceOp>(index.getOwner()->getParentOp());
  return cast<StringAttr>(reduce.getIndexNames()[index.getArgNumber()]);
}

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

std::optional<std::string> Separation::whyPairsStored() const {
  for (Read read : reads)
    for (Operation *op : getProducerSlice(read.producer))
      if (auto reduce = dyn_cast<ReduceOp>(op))
        if (auto why = whyNotPairs(reduce, read, getReach(reduce, read)))
          return why;
  return std::nullopt;
}

std::optional<std::string> Separation::whyStored(int64_t maxExtra) const {
  for (Read read : reads) {
    if (isStatisticOfInlined(read))
      return "a reader that computes its product again has no whole rows of it";
    const ProducerKind kind = classify(read.producer);
    if (auto why = whyNotInline(read, kind, maxExtra))
      return why;
    auto isStored = [](OpResult) { return false; };
    if (kind == ProducerKind::Rows)
      if (ComputeOp kept = findKeptElements(read, maxExtra, isStored))
        return describe(kept) + " would be stored with it, and has more elements";
  }
  return std::nullopt;
}
