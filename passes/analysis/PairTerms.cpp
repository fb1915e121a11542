//===- PairTerms.cpp - terms of two values --------------------------------===//
#include "passes/analysis/PairTerms.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/limits/Elements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

namespace {
struct Splitter {
  Value m, n, k;
  PairTerm result;

  /// Adds what `value` is computed by; is it a function of the two loaded values?
  bool add(Value value) {
    SmallVector<BlockArgument> indices = getIterationIndices(value);
    const bool isOverM = llvm::is_contained(indices, m), isOverN = llvm::is_contained(indices, n);
    Operation *op = value.getDefiningOp();
    if (!isOverM && !isOverN && !llvm::is_contained(indices, k)) {
      if (isa_and_nonnull<arith::ConstantOp>(op))
        result.body.insert(op);
      return true;
    }
    if (auto load = dyn_cast_or_null<LoadOp>(op)) {
      if (isOverM == isOverN || !llvm::is_contained(indices, k))
        return false;
      LoadOp &known = isOverM ? result.a : result.b;
      if (known && known != load)
        return false;
      known = load;
      return true;
    }
    if (!op || op->getNumRegions() > 0 || op->getNumResults() != 1 ||
        !op->hasTrait<OpTrait::Elementwise>())
      return false;
    for (Value operand : op->getOperands())
      if (!add(operand))
        return false;
    result.body.insert(op);
    return true;
  }
};
} // namespace

bool tk::isZeroOfZeros(PairTerm &pair) {
  return isZeroOfZeros({pair.a.getResult(), pair.b.getResult()}, pair.body.getArrayRef());
}

/// `a * b + c` of three constants, rounded once; null if one is not known.
static Attribute foldMultiplyAdd(ArrayRef<Attribute> operands) {
  if (!llvm::all_of(operands, llvm::IsaAndPresentPred<FloatAttr>))
    return {};
  APFloat result = cast<FloatAttr>(operands[0]).getValue();
  result.fusedMultiplyAdd(cast<FloatAttr>(operands[1]).getValue(),
                          cast<FloatAttr>(operands[2]).getValue(), APFloat::rmNearestTiesToEven);
  return FloatAttr::get(cast<FloatAttr>(operands[0]).getType(), result);
}

bool tk::isZeroOfZeros(ArrayRef<Value> elements, ArrayRef<Operation *> body) {
  llvm::DenseMap<Value, Attribute> known;
  for (Value element : elements)
    known[element] = Builder(element.getContext()).getZeroAttr(element.getType());
  Attribute last;
  for (Operation *op : body) {
    auto operands =
        llvm::map_to_vector(op->getOperands(), [&](Value v) { return known.lookup(v); });
    // Folding may change the operation that it is asked of.
    Operation *copy = op->clone();
    SmallVector<OpFoldResult> results;
    last = {};
    if (succeeded(copy->fold(operands, results)) && results.size() == 1) {
      auto operand = dyn_cast<Value>(results.front());
      last = operand ? known.lookup(operand) : cast<Attribute>(results.front());
    }
    copy->destroy();
    if (isa<math::FmaOp>(op))
      last = foldMultiplyAdd(operands);
    known[op->getResult(0)] = last;
  }
  auto value = dyn_cast_or_null<FloatAttr>(last);
  return value && value.getValue().isPosZero();
}

std::optional<PairTerm> tk::getPairTerm(Value term, Value m, Value n, Value k) {
  Splitter splitter{m, n, k, {}};
  if (!splitter.add(term) || !splitter.result.a || !splitter.result.b)
    return std::nullopt;
  return std::move(splitter.result);
}

/// Is an index of `extent` values long enough for tiles? Where nothing is known, it is.
static bool isLong(Value extent, int64_t least) {
  const int64_t upper = getUpperBound(extent);
  return upper < 0 || upper >= least;
}

/// Can the terms of `reduce` end where its tiles do?
static bool hasWholeSlices(ReduceOp reduce, PairTerm &pair) {
  if (reduce.getKind(0) == ReduceKind::Sum && isZeroOfZeros(pair))
    return true;
  auto kernel = reduce->getParentOfType<KernelOp>();
  return getSizeFact(kernel, reduce.getUpper()[0]).divisor % limits::plan_pairs::shortestSlice == 0;
}

/// The indices around `reduce`, each with its extent: its statement's, and those of reductions.
static SmallVector<std::pair<Value, Value>> indicesAround(ReduceOp reduce) {
  SmallVector<std::pair<Value, Value>> indices;
  for (ReduceOp around : getEnclosingReductions(reduce))
    for (unsigned n = 0; n < around.getNumIndices(); ++n)
      indices.emplace_back(around.getIndex(n), around.getUpper()[n]);
  auto compute = reduce->getParentOfType<ComputeOp>();
  for (unsigned n = 0; n < compute.getNumIndices(); ++n)
    indices.emplace_back(compute.getIndex(n), compute.getExtents()[n]);
  return indices;
}

bool tk::isPairwise(ReduceOp reduce) {
  if (reduce.isOnline() || reduce.getNumIndices() != 1 || reduce.getNumAccumulators() != 1)
    return false;
  const ReduceKind kind = reduce.getKind(0);
  Type type = reduce.getResult(0).getType();
  if ((kind != ReduceKind::Sum && kind != ReduceKind::Max && kind != ReduceKind::Min) ||
      !type.isIntOrFloat() || type.getIntOrFloatBitWidth() != 32 ||
      !matchPattern(reduce.getLower()[0], m_Zero()) ||
      !isLong(reduce.getUpper()[0], limits::plan_pairs::leastTerms))
    return false;
  Value term = reduce.getYield().getValues()[0], k = reduce.getIndex(0);
  const auto indices = indicesAround(reduce);
  for (auto [m, rows] : indices)
    for (auto [n, columns] : indices) {
      if (m == n || !isLong(rows, limits::plan_pairs::leastSide) ||
          !isLong(columns, limits::plan_pairs::leastSide))
        continue;
      if (std::optional<PairTerm> pair = getPairTerm(term, m, n, k);
          pair && hasWholeSlices(reduce, *pair))
        return true;
    }
  return false;
}

bool tk::computesPairs(ComputeOp compute) {
  auto reduces = compute.getBlock()->getOps<ReduceOp>();
  return llvm::hasSingleElement(reduces) && isPairwise(*reduces.begin());
}
