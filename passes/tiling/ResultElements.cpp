//===- ResultElements.cpp - elements without tiles ------------------------===//
#include "passes/tiling/ResultElements.h"

#include "dialects/tkgpu/TkGpuFiniteOps.h"
#include "passes/analysis/ChangedElements.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/TileReductions.h"
#include "passes/plan/MergeIndices.h"
#include "passes/tiling/BlockProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tk;

SmallVector<Value> ResultElement::getTaken() const {
  SmallVector<Value> values;
  for (auto [n, argument] : llvm::enumerate(arguments))
    if (!llvm::is_contained(indices, std::optional<unsigned>(n)))
      values.push_back(argument);
  return values;
}

/// What `value` is computed from in the compute op, bodies of reductions included.
static llvm::SetVector<Operation *> sliceOf(Value value) {
  llvm::SetVector<Operation *> slice;
  SmallVector<Value> work = {value};
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !slice.insert(op))
      continue;
    llvm::append_range(work, op->getOperands());
    if (auto reduce = dyn_cast<ReduceOp>(op))
      llvm::append_range(work, reduce.getYield().getValues());
  }
  return slice;
}

/// Is a sum of `reduce` over products of which rows of a tile have some terms, and other rows of it
/// have not?
static bool differsInTile(ComputeOp compute, gpu::ScheduleAttr schedule,
                          const PresentTerms &present, ReduceOp reduce) {
  SmallVector<Value> rows;
  for (unsigned p = 0; p < compute.getNumIndices(); ++p)
    if (schedule.getTile()[p] > 1)
      rows.push_back(compute.getIndex(p));
  Dependence onRows(rows);
  SmallVector<Value> ends = llvm::to_vector(reduce.getLower());
  llvm::append_range(ends, reduce.getUpper());
  const bool endsDiffer = llvm::any_of(ends, [&](Value end) { return onRows.on(end); });
  auto conditions = present.find(reduce);
  for (unsigned k = 0; k < reduce.getNumAccumulators(); ++k) {
    Value exists = conditions == present.end() ? Value() : conditions->second[k];
    if (reduce.getKind(k) == ReduceKind::Sum &&
        reduce.getYield().getValues()[k].getDefiningOp<arith::MulFOp>() &&
        (endsDiffer || (exists && onRows.on(exists))))
      return true;
  }
  return false;
}

/// Does `value` depend on `reduce` by quotients of two of its sums alone? Such a result is the same
/// whatever reference the weights are under, which another result might name.
static bool readsQuotientsAlone(Value value, ReduceOp reduce, llvm::DenseSet<Value> &seen) {
  Operation *op = value.getDefiningOp();
  if (!op || !seen.insert(value).second)
    return true;
  auto isOf = [&](Value operand) { return operand.getDefiningOp() == reduce; };
  if (op == reduce)
    return false;
  if (isa<DivOrZeroOp, arith::DivFOp>(op) && llvm::all_of(op->getOperands(), isOf))
    return true;
  bool readsInside = false;
  op->walk([&](Operation *inner) {
    readsInside |= inner != op && llvm::any_of(inner->getOperands(), isOf);
  });
  return !readsInside && llvm::all_of(op->getOperands(), [&](Value operand) {
    return readsQuotientsAlone(operand, reduce, seen);
  });
}

/// Is `stored` the maximum `k` of `reduce`, in the unit in which sum `term` of it is rescaled by
/// exp(old - new)?
static bool isReferenceOf(Value stored, ReduceOp reduce, unsigned k, unsigned term) {
  Region &rescale = reduce.getRescale();
  if (k >= term || rescale.empty())
    return false;
  Value maximum = reduce.getResult(k);
  const unsigned others = reduce.getNumAccumulators() - 1;
  Block &block = rescale.front();
  Value factor = block.getTerminator()->getOperand(term - 1);
  auto isOf = [&](Value old, Value now) {
    return old == block.getArgument(k) && now == block.getArgument(others + k);
  };
  if (auto plain = factor.getDefiningOp<ExpDiffOp>())
    return isOf(plain.getA(), plain.getB()) && stored == maximum;
  auto scaled = factor.getDefiningOp<gpu::ScaledExpDiffOp>();
  auto product = stored.getDefiningOp<arith::MulFOp>();
  return scaled && product && isOf(scaled.getA(), scaled.getB()) && scaled.getPower() == 0 &&
         ((product.getLhs() == maximum && product.getRhs() == scaled.getScale()) ||
          (product.getRhs() == maximum && product.getLhs() == scaled.getScale()));
}

/// May an element be computed in it?
static bool isWide(Type type) { return type.isF32() || type.isF64(); }

/// If result `r` is a sum of softmax numerators as it is: which result is their reference.
static std::optional<unsigned> findReference(ComputeOp compute, unsigned r) {
  OperandRange values = compute.getYield().getValues();
  auto sum = dyn_cast<OpResult>(values[r]);
  auto reduce = sum ? dyn_cast<ReduceOp>(sum.getOwner()) : ReduceOp();
  if (!reduce || !isWide(sum.getType()) ||
      !reduce.getYield().getValues()[sum.getResultNumber()].getDefiningOp<arith::MulFOp>())
    return std::nullopt;
  for (auto [other, value] : llvm::enumerate(values))
    for (unsigned k = 0; k < sum.getResultNumber(); ++k)
      if (other != r && value.getType() == sum.getType() && reduce.getKind(k) == ReduceKind::Max &&
          isReferenceOf(value, reduce, k, sum.getResultNumber()))
        return other;
  return std::nullopt;
}

/// Is result `r` a number whose terms rows of a tile have, and others of it have not?
static bool needsElement(ComputeOp compute, gpu::ScheduleAttr schedule, const PresentTerms &present,
                         unsigned r, std::optional<unsigned> reference) {
  Value value = compute.getYield().getValues()[r];
  if (!isa<FloatType>(value.getType()) || getTileReduction(compute, r))
    return false;
  bool isNeeded = false;
  for (Operation *op : sliceOf(value)) {
    auto reduce = dyn_cast<ReduceOp>(op);
    if (!reduce || !differsInTile(compute, schedule, present, reduce))
      continue;
    bool hasMaximum = false;
    for (unsigned k = 0; k < reduce.getNumAccumulators(); ++k)
      hasMaximum |= reduce.getKind(k) == ReduceKind::Max;
    llvm::DenseSet<Value> seen;
    if (hasMaximum && !reference && !readsQuotientsAlone(value, reduce, seen))
      return false;
    isNeeded = true;
  }
  return isNeeded;
}

/// Tiles of one element, and reductions of one term at a time.
static gpu::ScheduleAttr ofOneElement(gpu::ScheduleAttr schedule) {
  SmallVector<int64_t> tile(schedule.getTile().size(), 1), terms(schedule.getReduce().size(), 1);
  return gpu::ScheduleAttr::get(schedule.getContext(), tile, terms, schedule.getLoop(), 1, 1, 1, 1,
                                1, 0, 1, {}, 1);
}

FailureOr<SmallVector<ResultElement, 0>> tk::buildElements(OpBuilder &builder, KernelOp kernel,
                                                           ComputeOp compute,
                                                           gpu::ScheduleAttr schedule,
                                                           const PresentTerms &present) {
  SmallVector<ResultElement, 0> elements;
  const gpu::KernelPlan plan = gpu::getPlan(compute);
  bool areOwn = !plan.carriesTiles && !plan.workUnits && schedule.getLoop() < 0;
  for (unsigned p = 0; p < compute.getNumIndices(); ++p)
    areOwn &=
        getMergedIndices(compute.getIndex(p)).empty() && !isMergedIntoOther(compute.getIndex(p));
  for (unsigned r = 0; r < compute.getNumResults(); ++r)
    areOwn &= !getTileReduction(compute, r);
  if (!areOwn)
    return elements;
  for (unsigned r = 0; r < compute.getNumResults(); ++r) {
    const std::optional<unsigned> reference = findReference(compute, r);
    if (!needsElement(compute, schedule, present, r, reference))
      continue;
    BlockProgram program(kernel, compute, ofOneElement(schedule), present);
    program.computeElementOf(r);
    const std::string name = "element" + std::to_string(r);
    FailureOr<gpu::FuncOp> function = program.build(builder, name);
    if (failed(function))
      return failure();
    ResultElement &element = elements.emplace_back();
    element.result = r, element.function = *function, element.reference = reference;
    element.readsTile = plan.inPlace && !readsOwnElements(kernel, compute);
    element.arguments.assign(program.getArguments().begin(), program.getArguments().end());
    element.indices.assign(program.getElementIndices().begin(), program.getElementIndices().end());
  }
  return elements;
}

/// The value of the element in f32 or f64, before it is rounded.
static Value valueOf(gpu::FuncOp function, unsigned buffer) {
  Value stored;
  function.walk([&](gpu::StoreOp store) {
    if (store.getBuffer() == function.getBlock()->getArgument(buffer))
      stored = store.getValue();
  });
  if (auto rounded = stored.getDefiningOp<arith::TruncFOp>())
    return rounded.getIn();
  return stored;
}

void tk::placeElement(ResultElement &element, gpu::FuncOp function, ArrayRef<Value> arguments) {
  gpu::FuncOp own = element.function;
  Block *block = own.getBlock();
  const unsigned count = element.arguments.size();
  Value value = valueOf(own, count + element.result), reference;
  if (element.reference)
    reference = valueOf(own, count + *element.reference);
  const bool isUnder =
      !element.reference || (value && reference && reference.getType() == value.getType() &&
                             reference.getParentBlock() == block);
  SmallVector<int64_t> numbers;
  for (auto [n, argument] : llvm::enumerate(element.arguments)) {
    auto axis = llvm::find(element.indices, std::optional<unsigned>(n));
    numbers.push_back(axis != element.indices.end()
                          ? -1 - (axis - element.indices.begin())
                          : llvm::find(arguments, argument) - arguments.begin());
  }
  if (value && isWide(value.getType()) && value.getParentBlock() == block && isUnder) {
    OpBuilder builder(function);
    builder.setInsertionPointAfter(function);
    auto op = gpu::ElementOp::create(
        builder, own.getLoc(), function.getSymNameAttr(), builder.getI64IntegerAttr(element.result),
        element.reference ? builder.getI64IntegerAttr(*element.reference) : IntegerAttr(),
        builder.getDenseI64ArrayAttr(numbers),
        element.readsTile ? builder.getUnitAttr() : UnitAttr());
    SmallVector<gpu::StoreOp> stores;
    own.walk([&](gpu::StoreOp store) { stores.push_back(store); });
    for (gpu::StoreOp store : stores)
      store.erase();
    Operation *end = block->getTerminator();
    builder.setInsertionPoint(end);
    gpu::ElementEndOp::create(builder, own.getLoc(), value, reference);
    end->erase();
    block->eraseArguments(count, block->getNumArguments() - count);
    op.getBody().takeBody(own.getBody());
    IRRewriter rewriter(builder.getContext());
    (void)runRegionDCE(rewriter, op.getBody());
  }
  own.erase();
}
