//===- PackOperands.cpp - two values of a row or column in one number -----===//
//
// A pairwise contraction has tiles like a matrix product: its elements are functions of one value
// for a row and of one for a column. Elements that need two values of a
// row or of a column become such functions of numbers of 64 bits. So do elements of values that are
// computed from a row or a column alone:
//
//   %c = tk.compute ["i", "j"] {tk.reduce [sum] ["k"] {mulf s[k], (mulf d, d)}}    d = a[i, k] -
//   b[k, j]
//     =>
//   %p = tk.compute ["i", "k"] {ori (extui (bitcast a[i, k])), (shli (extui (bitcast s[k])), 32)}
//   %c = tk.compute ["i", "j"] {tk.reduce [sum] ["k"] {mulf (high p[i, k]), (mulf d, d)}}
//                                                                d = (low p[i, k]) - b[k, j]
//
// 1. Take the element of the reduction apart into the largest f32 values that do not depend on the
//    rows, or do not depend on the columns. Up to two values of the rows and two of the columns are
//    allowed; a value over the reduction's index alone belongs to the side with fewer values.
// 2. Store the two values of a side, bit by bit, as one i64; store one computed value as it is.
// 3. Quotients by a value over the reduction's index alone become products with its reciprocal
//    (CommonQuotients.cpp). The reduction is a compute op of its own then, and where its result is
//    NaN the reader computes it again with quotients.
// 4. The pattern declines products, elements that are a function of two loads already, reductions
//    that the planner of pairwise contractions does not take, and sums that take less time as they
//    are.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/Declines.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/PairTerms.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"
#include "passes/machine/OperationCost.h"
#include "passes/machine/limits/Splits.h"
#include "passes/tensor/normalize/PadConditions.h"
#include "passes/tensor/split/CommonQuotients.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

namespace tk {
#define GEN_PASS_DEF_PACKOPERANDS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-pack-operands";
using namespace limits::pack_operands;

namespace {

/// The values of one side.
using Side = llvm::SmallSetVector<Value, 2>;

/// The element of a reduction as a function of values of rows and of columns.
class Sides {
public:
  Sides(ReduceOp reduce, Value row, Value column) : reduce(reduce), row(row), column(column) {}

  /// Adds what `value` is computed from; false if it is no such function.
  bool add(Value value);
  /// Gives the values over the reduction's index alone to a side; `toRows`: if both have as many.
  bool shareOut(bool toRows);
  /// Is the element 0 if all values are? Zeros may then stand behind the last element.
  bool isZeroOfZeros() const;
  /// Instructions of an element, beside those for its values.
  double countInstructions() const;

  Side rows, columns;

private:
  ReduceOp reduce;
  Value row, column;
  Side shared;
  llvm::SetVector<Operation *> body;
};

class OperandPacking {
public:
  OperandPacking(KernelOp kernel, bool always) : kernel(kernel), always(always) {}
  bool run(ComputeOp compute);

private:
  bool isCandidate(ComputeOp compute, ReduceOp reduce);
  bool pays(ComputeOp compute, ReduceOp reduce, double bytes);
  bool isStored(ComputeOp compute, ReduceOp reduce, Value value);
  bool areStored(ComputeOp compute, ReduceOp reduce, const Side &side);
  std::optional<Sides> match(ComputeOp compute, ReduceOp reduce);
  void store(ComputeOp compute, ReduceOp reduce, const Side &side, StringRef suffix);
  double bytesOf(ComputeOp compute, ReduceOp reduce, const Sides &sides);
  bool hoistQuotients(ComputeOp compute, ReduceOp reduce);

  KernelOp kernel;
  bool always;
};

} // namespace

bool Sides::add(Value value) {
  SmallVector<BlockArgument> indices = getIterationIndices(value);
  const bool isOverRow = llvm::is_contained(indices, row);
  const bool isOverColumn = llvm::is_contained(indices, column);
  const bool varies = llvm::is_contained(indices, reduce.getIndex(0));
  Operation *op = value.getDefiningOp();
  if (!varies && !isOverRow && !isOverColumn) {
    if (isa_and_nonnull<arith::ConstantOp>(op))
      body.insert(op);
    return true;
  }
  if (varies && !(isOverRow && isOverColumn) && value.getType().isF32()) {
    (isOverRow ? rows : isOverColumn ? columns : shared).insert(value);
    return true;
  }
  if (!op || op->getNumRegions() > 0 || op->getNumResults() != 1 ||
      !op->hasTrait<OpTrait::Elementwise>() ||
      !llvm::all_of(op->getOperands(), [&](Value operand) { return add(operand); }))
    return false;
  body.insert(op);
  return true;
}

bool Sides::shareOut(bool toRows) {
  for (Value value : shared) {
    const bool isRow = rows.size() == columns.size() ? toRows : rows.size() < columns.size();
    (isRow ? rows : columns).insert(value);
  }
  return !rows.empty() && !columns.empty() && rows.size() <= 2 && columns.size() <= 2;
}

bool Sides::isZeroOfZeros() const {
  SmallVector<Value> values(rows.begin(), rows.end());
  values.append(columns.begin(), columns.end());
  return tk::isZeroOfZeros(values, body.getArrayRef());
}

double Sides::countInstructions() const {
  double count = 0;
  for (Operation *op : body)
    count += elementCost(op).instructions;
  return count;
}

/// Is the element of `reduce` a product of one value of the rows and one of the columns? CUDA cores
/// multiply computed operands as they are.
static bool isProduct(ReduceOp reduce, const Sides &sides) {
  auto product = reduce.getYield().getValues()[0].getDefiningOp<arith::MulFOp>();
  auto isOneOf = [&](Value value, const Side &side) {
    return side.size() == 1 && side.contains(value);
  };
  return product && reduce.getKind(0) == ReduceKind::Sum &&
         ((isOneOf(product.getLhs(), sides.rows) && isOneOf(product.getRhs(), sides.columns)) ||
          (isOneOf(product.getRhs(), sides.rows) && isOneOf(product.getLhs(), sides.columns)));
}

/// Is `reduce` one that pairwise contractions take, with known sizes?
bool OperandPacking::isCandidate(ComputeOp compute, ReduceOp reduce) {
  auto isKnown = [&](Value extent) { return getSizeFact(kernel, extent).upper.has_value(); };
  const ReduceKind kind = reduce.getKind(0);
  return compute.getNumIndices() >= 2 && !reduce.isOnline() && reduce.getNumAccumulators() == 1 &&
         reduce.getNumIndices() == 1 && reduce.getResult(0).getType().isF32() &&
         (kind == ReduceKind::Sum || kind == ReduceKind::Max || kind == ReduceKind::Min) &&
         matchPattern(reduce.getLower()[0], m_Zero()) && !isMatrixProduct(reduce) &&
         llvm::all_of(compute.getExtents(), isKnown) && isKnown(reduce.getUpper()[0]);
}

/// Is `value` the element of an f32 tensor that a tile is copied from?
static bool isPlain(Value value) {
  auto load = value.getDefiningOp<LoadOp>();
  return load && !load.getPad() && llvm::all_of(load.getIndices(), llvm::IsaPred<BlockArgument>);
}

/// Can `value`, of `reduce`, be stored by a compute op of its own?
bool OperandPacking::isStored(ComputeOp compute, ReduceOp reduce, Value value) {
  ComputedFactor factor(kernel, compute, ReduceOp(), reduce, value);
  return getElementsOf(value) && factor.read() && factor.hasBareIndices();
}

/// Can the values of a side be stored together, by the indices of one of them?
bool OperandPacking::areStored(ComputeOp compute, ReduceOp reduce, const Side &side) {
  if (side.size() == 1)
    return isPlain(side.front()) || isStored(compute, reduce, side.front());
  for (auto [value, other] : {std::pair(side[0], side[1]), std::pair(side[1], side[0])}) {
    const SmallVector<BlockArgument> indices = getIterationIndices(value);
    auto isKnown = [&](BlockArgument index) { return llvm::is_contained(indices, index); };
    if (isStored(compute, reduce, value) && getElementsOf(other) &&
        llvm::all_of(getIterationIndices(other), isKnown))
      return true;
  }
  return false;
}

/// The element of `reduce` as a function of up to two values of each side.
std::optional<Sides> OperandPacking::match(ComputeOp compute, ReduceOp reduce) {
  Value term = reduce.getYield().getValues()[0], k = reduce.getIndex(0);
  Value column = compute.getBlock()->getArguments().back();
  auto sizeOf = [&](unsigned n) { return guessSize(kernel, compute.getExtents()[n]); };
  const unsigned last = compute.getNumIndices() - 1;
  if (sizeOf(last) < leastSide)
    return std::nullopt;
  for (unsigned n = last; n-- > 0;) {
    Value row = compute.getIndex(n);
    if (sizeOf(n) < leastSide)
      continue;
    if (getPairTerm(term, row, column, k))
      return std::nullopt;
    Sides sides(reduce, row, column);
    if (!sides.add(term) || !sides.shareOut(sizeOf(n) <= sizeOf(last)) ||
        sides.countInstructions() > mostInstructions || isProduct(reduce, sides))
      continue;
    if (!areStored(compute, reduce, sides.rows) || !areStored(compute, reduce, sides.columns))
      continue;
    const bool isPadded = reduce.getKind(0) == ReduceKind::Sum && sides.isZeroOfZeros();
    if (isPadded || getSizeFact(kernel, reduce.getUpper()[0]).divisor % leastTerms == 0)
      return sides;
  }
  return std::nullopt;
}

/// Does the pairwise contraction, with the stored operands, take less time than a loop over the
/// elements of each result?
bool OperandPacking::pays(ComputeOp compute, ReduceOp reduce, double bytes) {
  double terms = guessSize(kernel, reduce.getUpper()[0]);
  if (terms < leastTerms)
    return false;
  for (Value extent : compute.getExtents())
    terms *= guessSize(kernel, extent);
  // Tiles of pairs take about half of the time.
  return savesTime(reduce, "tk-pack-operands", "storing both operands",
                   terms * cost::termOfCountedTaps / 2, 2 * (cost::launch + bytes * cost::byte));
}

/// Stores the values of a side as one tensor, and has the element read that.
void OperandPacking::store(ComputeOp compute, ReduceOp reduce, const Side &side, StringRef suffix) {
  if (side.size() == 1) {
    if (!isPlain(side.front()))
      if (ComputedFactor factor(kernel, compute, ReduceOp(), reduce, side.front()); factor.read())
        factor.store(suffix);
    return;
  }
  Location loc = reduce.getLoc();
  OpBuilder builder(reduce.getYield()), outside(compute);
  Type bits = builder.getI32Type(), pair = builder.getI64Type(), number = builder.getF32Type();
  Value half = arith::ConstantOp::create(outside, loc, builder.getI64IntegerAttr(32));
  auto widen = [&](Value value) -> Value {
    Value own = arith::BitcastOp::create(builder, loc, bits, value);
    return arith::ExtUIOp::create(builder, loc, pair, own);
  };
  Value low = side[0], high = side[1];
  Value shifted = arith::ShLIOp::create(builder, loc, widen(high), half);
  Operation *packed = arith::OrIOp::create(builder, loc, widen(low), shifted);
  auto narrow = [&](Value value) -> Value {
    Value own = arith::TruncIOp::create(builder, loc, bits, value);
    return arith::BitcastOp::create(builder, loc, number, own);
  };
  Value upper = arith::ShRUIOp::create(builder, loc, packed->getResult(0), half);
  const SmallVector<Operation *> slice = getSlice(packed->getResult(0), reduce.getBlock());
  auto replace = [&](Value value, Value unpacked) {
    value.replaceUsesWithIf(
        unpacked, [&](OpOperand &use) { return !llvm::is_contained(slice, use.getOwner()); });
  };
  Value ofLow = narrow(packed->getResult(0)), ofHigh = narrow(upper);
  replace(low, ofLow);
  replace(high, ofHigh);
  sortTopologically(reduce.getBlock());
  ComputedFactor factor(kernel, compute, ReduceOp(), reduce, packed->getResult(0));
  if (factor.read())
    factor.store(suffix);
}

/// Bytes of the tensors that the values of both sides are stored in.
double OperandPacking::bytesOf(ComputeOp compute, ReduceOp reduce, const Sides &sides) {
  double bytes = 0;
  for (const Side *side : {&sides.rows, &sides.columns})
    if (side->size() > 1 || !isPlain(side->front())) {
      double most = 0;
      for (Value value : *side) {
        ComputedFactor factor(kernel, compute, ReduceOp(), reduce, value);
        most = std::max(most, factor.read() ? factor.bytes() : 0);
      }
      bytes += most * static_cast<double>(side->size());
    }
  return bytes;
}

/// Computes `reduce` by tiles of pairs with products in the place of quotients by a value of all
/// pairs.
bool OperandPacking::hoistQuotients(ComputeOp compute, ReduceOp reduce) {
  const unsigned last = compute.getNumIndices() - 1;
  Value column = compute.getIndex(last);
  for (unsigned n = last; n-- > 0;) {
    if (!hasCommonQuotients(reduce, compute.getIndex(n), column))
      continue;
    ComputeOp stored = copySum(compute, reduce, ".sum");
    ReduceOp copy = *stored.getBlock()->getOps<ReduceOp>().begin();
    multiplyByReciprocals(copy, stored.getIndex(n), stored.getIndex(last));
    eraseDead(stored);
    std::optional<Sides> sides = match(stored, copy);
    double results = 1;
    for (Value extent : compute.getExtents())
      results *= guessSize(kernel, extent);
    // Sums are stored and read.
    const double bytes =
        sides ? bytesOf(stored, copy, *sides) + 2 * cost::bytesOfWide * results : 0;
    const double saved =
        cost::savedByReciprocals * guessSize(kernel, reduce.getUpper()[0]) * results;
    if (!sides ||
        (!always && !savesTime(reduce, "tk-pack-operands", "tiles that multiply by reciprocals",
                               saved, 4 * (cost::launch + bytes * cost::byte)))) {
      stored.erase();
      continue;
    }
    note(reduce, passName, Verdict::Derived,
         "the " + describe(reduce) +
             " multiplies by reciprocals, which are had once for all pairs; results that are NaN "
             "are computed again");
    OpBuilder builder(reduce);
    computeNaNAgain(reduce, LoadOp::create(builder, reduce.getLoc(), stored.getResult(0),
                                           compute.getBlock()->getArguments(), Value()));
    store(stored, copy, sides->rows, ".rows");
    store(stored, copy, sides->columns, ".columns");
    eraseDead(stored);
    return true;
  }
  return false;
}

bool OperandPacking::run(ComputeOp compute) {
  auto reduces = compute.getBlock()->getOps<ReduceOp>();
  if (!llvm::hasSingleElement(reduces))
    return false;
  ReduceOp reduce = *reduces.begin();
  if (!isCandidate(compute, reduce))
    return false;
  std::optional<Sides> sides = match(compute, reduce);
  if (!sides)
    return hoistQuotients(compute, reduce);
  const double bytes = bytesOf(compute, reduce, *sides);
  if (bytes == 0 || (!always && !pays(compute, reduce, bytes)))
    return false;
  note(reduce, passName, Verdict::Derived,
       "the values of a row, or of a column, of the " + describe(reduce) +
           " are stored as one number");
  store(compute, reduce, sides->rows, ".rows");
  store(compute, reduce, sides->columns, ".columns");
  eraseDead(compute);
  return true;
}

namespace {

struct PackOperands : tk::impl::PackOperandsBase<PackOperands> {
  using PackOperandsBase::PackOperandsBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    PackOperandsBase::getDependentDialects(registry);
    registry.insert<math::MathDialect>();
  }

  void runOnOperation() override {
    if (!getOperation()->hasAttr(gpu::targetAttrName))
      return;
    getOperation()->walk([&](KernelOp kernel) {
      OperandPacking packing(kernel, always);
      for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
        numSums += packing.run(compute);
    });
  }
};

} // namespace
