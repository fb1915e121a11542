//===- OrderFactors.cpp - sums of three or more factors -------------------===//
//
// A sum over several indices of a product of three or more factors multiplies all factors for each
// combination of the indices. By the distributive law, an inner sum takes those factors alone that
// have its index. Its results are stored, and the other factors multiply them:
//
//   %y = tk.compute ["m"] {tk.reduce [sum] ["d", "e"] {x[m, d] * w[d, e] * z[m, e]}}
//     =>
//   %t = tk.compute ["m", "d"] {tk.reduce [sum] ["e"] {w[d, e] * z[m, e]}}
//   %y = tk.compute ["m"] {tk.reduce [sum] ["d"] {t[m, d] * x[m, d]}}
//
// 1. Take the term apart into factors. The pattern declines if there are conditions, other
//    reductions, bounds that vary, or accesses whose bounds rest on another index.
// 2. Search the order of least time (FactorOrder.cpp). The pattern declines if no step has a result
//    to store, if sizes are unknown, or if one loop takes less than 1.3 times as long.
// 3. Make a compute op of each step that sums over an index, but of the last one, which takes the
//    place of the sum. The results are f32. They are rounded to bf16 if the next step multiplies
//    them with a factor that is stored in bf16, as the frontend rounds computed operands.
//
// docs/reference/numerics.md says what may differ: an infinite factor beside terms that are 0.
// Exact sums and batch-invariant kernels stay as they are.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/split/OrderFactors.h"
#include "passes/machine/limits/Splits.h"

#include "passes/analysis/BoundsApart.h"
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/Declines.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/ScheduleEntries.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/analysis/ValueCopies.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"
#include "passes/tensor/split/FactorOrder.h"

#include "dialects/tk/TkInvariance.h"
#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-split-reductions:contraction-order";
using namespace limits::order_factors;

namespace {
class FactorOrdering {
public:
  FactorOrdering(KernelOp kernel, ComputeOp compute, ReduceOp reduce, const Machine &machine)
      : kernel(kernel), compute(compute), reduce(reduce), machine(machine) {}

  bool run();

private:
  bool isSum();
  void collectFactors(Value value);
  bool collectIndices();
  bool isPlain(Value value, llvm::DenseSet<Operation *> &seen, Dependence &onExtents);
  bool pays(const FactorOrder &order);

  SmallVector<unsigned> positionsOf(BitSet set);
  Value extentOf(unsigned n);
  Value productOf(OpBuilder &builder, const FactorOrder &order, BitSet set, IRMapping &mapping);
  Value createSum(OpBuilder &builder, const FactorOrder &order, BitSet set, IRMapping &mapping);
  void createStep(const FactorOrder &order, BitSet set, Type type);
  void createParts(const FactorOrder &order, BitSet set);
  void replace(const FactorOrder &order);

  KernelOp kernel;
  ComputeOp compute;
  ReduceOp reduce;
  const Machine &machine;
  SmallVector<Value> factors;
  SmallVector<BlockArgument> indices; ///< of the sum, then of the compute op
  SmallVector<StringRef> names;       ///< of the indices
  FactoredSum sum;
  llvm::DenseMap<BitSet, ComputeOp> stored; ///< the steps that have a result
};
} // namespace

bool FactorOrdering::isSum() {
  if (reduce.isOnline() || reduce.getNumIndices() < 2 || reduce.getKind(0) != ReduceKind::Sum ||
      reduce.getPrecision() != Precision::Default || !reduce.getResult(0).getType().isF32())
    return false;
  return llvm::all_of(llvm::zip_equal(reduce.getLower(), reduce.getUpper()), [&](auto bounds) {
    auto [lower, upper] = bounds;
    return isConstantIntValue(lower, 0) && isKernelLevel(upper, compute);
  });
}

/// Appends the factors of `value`. A rounding of a product that only a contraction asks for falls
/// away.
void FactorOrdering::collectFactors(Value value) {
  Value product = value;
  auto extension = value.getDefiningOp<arith::ExtFOp>();
  auto rounding = extension ? extension.getIn().getDefiningOp<arith::TruncFOp>() : nullptr;
  if (rounding && rounding->hasAttr(roundedFactorAttr)) {
    sum.rounds = true;
    product = rounding.getIn();
  }
  auto multiply = product.getDefiningOp<arith::MulFOp>();
  if (!multiply || multiply->getBlock() != reduce.getBlock())
    return factors.push_back(value);
  collectFactors(multiply.getLhs());
  collectFactors(multiply.getRhs());
}

/// Is `value` computed from elements without conditions and reductions, at places that its own
/// indices say?
bool FactorOrdering::isPlain(Value value, llvm::DenseSet<Operation *> &seen,
                             Dependence &onExtents) {
  Operation *op = value.getDefiningOp();
  if (!op || !compute->isProperAncestor(op) || !seen.insert(op).second)
    return true;
  if (op->getNumRegions() > 0 || isa<arith::SelectOp>(op) || value.getType().isInteger(1) ||
      !isInBoundsApart(op, onExtents))
    return false;
  return llvm::all_of(op->getOperands(),
                      [&](Value operand) { return isPlain(operand, seen, onExtents); });
}

Value FactorOrdering::extentOf(unsigned n) {
  return n < reduce.getNumIndices() ? reduce.getUpper()[n]
                                    : compute.getExtents()[indices[n].getArgNumber()];
}

/// Numbers the indices, and finds those of each factor.
bool FactorOrdering::collectIndices() {
  llvm::append_range(indices, reduce.getBlock()->getArguments());
  sum.reduced = (BitSet(1) << indices.size()) - 1;
  SmallVector<Value> extents(reduce.getUpper());
  llvm::append_range(extents, compute.getExtents());
  Dependence onExtents(extents);
  llvm::DenseSet<Operation *> seen;
  for (Value factor : factors) {
    if (!factor.getType().isF32() || !isPlain(factor, seen, onExtents))
      return false;
    for (BlockArgument index : getIterationIndices(factor))
      if (!llvm::is_contained(indices, index))
        indices.push_back(index);
  }
  if (indices.size() > mostIndices)
    return false;
  // Compute ops have the indices of a result in the order of the program.
  std::sort(indices.begin() + reduce.getNumIndices(), indices.end(),
            [](BlockArgument a, BlockArgument b) { return a.getArgNumber() < b.getArgNumber(); });
  llvm::StringSet<> different;
  for (auto [n, index] : llvm::enumerate(indices)) {
    auto all = n < reduce.getNumIndices() ? reduce.getIndexNames() : compute.getIndexNames();
    names.push_back(cast<StringAttr>(all[index.getArgNumber()]).getValue());
    std::optional<int64_t> size = getSizeFact(kernel, extentOf(n)).upper;
    if (!size || !different.insert(names.back()).second)
      return false;
    sum.sizes.push_back(static_cast<double>(std::max<int64_t>(*size, 1)));
  }
  for (auto [n, factor] : llvm::enumerate(factors)) {
    BitSet own = 0;
    for (BlockArgument index : getIterationIndices(factor))
      own |= BitSet(1) << (llvm::find(indices, index) - indices.begin());
    sum.factors.push_back(own);
    auto extension = factor.getDefiningOp<arith::ExtFOp>();
    if (extension && extension.getIn().getType().isBF16())
      sum.narrow |= BitSet(1) << n;
  }
  return (sum.indicesOf(sum.all()) & sum.reduced) == sum.reduced;
}

bool FactorOrdering::pays(const FactorOrder &order) {
  const double steps = order.time();
  auto text = [](double time) { return llvm::formatv("{0:F1} us", time / 1000).str(); };
  if (order.timeOfOneLoop() < leastGain * steps)
    return decline(reduce, passName,
                   "the best order of its factors takes " + text(steps) + ", and one loop " +
                       text(order.timeOfOneLoop()));
  note(reduce, passName, Verdict::Derived,
       "the " + describe(reduce) + " multiplies its factors pair by pair, which takes about " +
           text(steps) + " instead of " + text(order.timeOfOneLoop()));
  return true;
}

SmallVector<unsigned> FactorOrdering::positionsOf(BitSet set) {
  SmallVector<unsigned> positions;
  for (unsigned n = reduce.getNumIndices(); n < indices.size(); ++n)
    if (set >> n & 1)
      positions.push_back(n);
  for (unsigned n = 0; n < reduce.getNumIndices(); ++n)
    if (set >> n & 1)
      positions.push_back(n);
  return positions;
}

/// The operand that `set` is, where `mapping` knows its indices.
Value FactorOrdering::productOf(OpBuilder &builder, const FactorOrder &order, BitSet set,
                                IRMapping &mapping) {
  Location loc = reduce.getLoc();
  if (llvm::has_single_bit(set))
    return cloneFrom(builder, factors[llvm::countr_zero(set)], compute, mapping);
  auto step = stored.find(set);
  if (step == stored.end()) {
    auto [left, right] = order.partsOf(set);
    Value first = productOf(builder, order, left, mapping);
    return arith::MulFOp::create(builder, loc, first, productOf(builder, order, right, mapping));
  }
  SmallVector<Value> place;
  for (unsigned n : positionsOf(sum.keptOf(set)))
    place.push_back(mapping.lookup(indices[n]));
  Value element = LoadOp::create(builder, loc, step->second->getResult(0), place, Value());
  return element.getType().isF32()
             ? element
             : arith::ExtFOp::create(builder, loc, builder.getF32Type(), element).getResult();
}

/// What the step of `set` comes to, where `mapping` knows the indices that are left.
Value FactorOrdering::createSum(OpBuilder &builder, const FactorOrder &order, BitSet set,
                                IRMapping &mapping) {
  Location loc = reduce.getLoc();
  auto [left, right] = order.partsOf(set);
  auto multiply = [&, left = left, right = right](OpBuilder &at) -> Value {
    Value first = productOf(at, order, left, mapping);
    return arith::MulFOp::create(at, loc, first, productOf(at, order, right, mapping));
  };
  const SmallVector<unsigned> summed = positionsOf(order.summedBy(set));
  if (summed.empty())
    return multiply(builder);
  SmallVector<StringRef> summedNames;
  SmallVector<Value> lower, upper;
  for (unsigned n : summed) {
    summedNames.push_back(names[n]);
    lower.push_back(cloneFrom(builder, reduce.getLower()[n], compute, mapping));
    upper.push_back(cloneFrom(builder, extentOf(n), compute, mapping));
  }
  auto inner = [&](OpBuilder &at, Location, ValueRange terms) {
    for (auto [n, index] : llvm::zip_equal(summed, terms))
      mapping.map(indices[n], index);
    return multiply(at);
  };
  return ReduceOp::create(builder, loc, ReduceKind::Sum, summedNames, lower, upper,
                          builder.getF32Type(), inner)
      .getResult(0);
}

/// Makes the compute op of the step of `set`, with results of `type`.
void FactorOrdering::createStep(const FactorOrder &order, BitSet set, Type type) {
  createParts(order, set);
  OpBuilder builder(compute);
  const SmallVector<unsigned> kept = positionsOf(sum.keptOf(set));
  SmallVector<StringRef> keptNames;
  SmallVector<Value> extents;
  IRMapping hoisted;
  for (unsigned n : kept) {
    keptNames.push_back(names[n]);
    extents.push_back(cloneFrom(builder, extentOf(n), compute, hoisted));
  }
  auto body = [&](OpBuilder &inner, Location loc, ValueRange own) {
    IRMapping mapping;
    for (auto [n, index] : llvm::zip_equal(kept, own))
      mapping.map(indices[n], index);
    Value result = createSum(inner, order, set, mapping);
    if (!type.isF32())
      result = arith::TruncFOp::create(inner, loc, type, result);
    YieldOp::create(inner, loc, result);
  };
  const std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + ".step").str();
  stored[set] =
      ComputeOp::create(builder, reduce.getLoc(), keptNames, extents, ArrayRef<Type>{type},
                        ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{}, body);
}

/// Makes the compute ops that the element of the step of `set` reads.
void FactorOrdering::createParts(const FactorOrder &order, BitSet set) {
  auto [left, right] = order.partsOf(set);
  Type narrow;
  if (order.isNarrow(set))
    for (BitSet side : {left, right})
      if (llvm::has_single_bit(side) && (side & sum.narrow))
        narrow = factors[llvm::countr_zero(side)].getDefiningOp<arith::ExtFOp>().getIn().getType();
  for (BitSet side : {left, right}) {
    if (llvm::has_single_bit(side))
      continue;
    if (order.isStored(side))
      createStep(order, side, narrow ? narrow : Float32Type::get(reduce.getContext()));
    else
      createParts(order, side);
  }
}

/// Makes the last step, in the place of the sum.
void FactorOrdering::replace(const FactorOrder &order) {
  createParts(order, sum.all());
  OpBuilder builder(reduce);
  IRMapping mapping;
  for (BlockArgument index : indices)
    if (index.getOwner() == compute.getBlock())
      mapping.map(index, index);
  Value result = createSum(builder, order, sum.all(), mapping);
  if (Attribute number = joinComputations(reduce))
    result.getDefiningOp()->setAttr(computationsAttrName, number);
  reduce.getResult(0).replaceAllUsesWith(result);
  reduce.erase();
  eraseDead(compute);
}

bool FactorOrdering::run() {
  if (!isSum())
    return false;
  collectFactors(reduce.getYield().getValues()[0]);
  if (factors.size() < 3 || factors.size() > mostFactors)
    return false;
  if (!collectIndices())
    return decline(
        reduce, passName,
        "a factor has a condition, another sum or a place that rests on a size, an index "
        "has no known size, or no factor has it");
  const FactorOrder order(sum, machine);
  if (!order.storesAny(sum.all()) || !pays(order))
    return false;
  replace(order);
  return true;
}

unsigned tk::orderFactors(KernelOp kernel) {
  auto target =
      kernel->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  if (!target || findScheduleBlock(kernel) || isBatchInvariant(kernel))
    return 0;
  const Machine machine = machineOf(target);
  unsigned ordered = 0;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().front().getOps<ComputeOp>()))
    for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>()))
      ordered += FactorOrdering(kernel, compute, reduce, machine).run();
  return ordered;
}
