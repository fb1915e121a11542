//===- KeyTests.cpp - comparisons solved for an index ---------------------===//
//
// Elements are sorted by a key that has to equal an index of the result. A comparison that asks for
// such a value in another form is solved for the index:
//
//   s[i] == g + 1, s[i] - g == 1                 →  s[i] - 1 == g
//   s[i] == 2 * g + 1                            →  (s[i] - 1) mod 2 == 0 ? (s[i] - 1) / 2 : -1, ==
//   8 * g <= s[i] and s[i] < 8 * g + 8           →  s[i] / 8 == g
//
// Sums are solved in their own number of bits, in which both forms wrap alike. Multiples are solved
// if they have at most 30 bits.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/keys/KeyTests.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/Conditions.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/tensor/keys/RowKey.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;
using arith::CmpIPredicate;

namespace {

/// `rest + factor * index + constant`, where `rest` is a sum of summands with a sign.
struct LinearTest {
  BlockArgument index; ///< of the compute op
  int64_t factor = 0, constant = 0;
  SmallVector<std::pair<Value, bool>> rest; ///< with true: subtracted
};

/// Solves comparisons in one reduction.
class TestSolver {
public:
  /// Writes comparisons of `type` at `at`.
  TestSolver(ComputeOp compute, Operation *at, Type type)
      : compute(compute), builder(at), loc(at->getLoc()), type(type) {}

  std::optional<LinearTest> read(arith::CmpIOp compare);
  /// The index that is asked for, of `type`; null if no table is read.
  Value keyOf(const LinearTest &test, bool isRange);
  Value compareWith(const LinearTest &test, Value key);

private:
  bool add(Value value, int64_t factor, LinearTest &test);
  Value number(int64_t value) {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
  }
  Value asOwnType(Value value) {
    return value.getType() == type ? value
                                   : Value(arith::IndexCastOp::create(builder, loc, type, value));
  }

  ComputeOp compute;
  OpBuilder builder;
  Location loc;
  Type type;
};

} // namespace

/// Adds `factor * value`.
bool TestSolver::add(Value value, int64_t factor, LinearTest &test) {
  constexpr int64_t most = int64_t(1) << 31;
  if (auto cast = value.getDefiningOp<arith::IndexCastOp>();
      cast && cast.getIn().getType().isIndex())
    value = cast.getIn();
  if (std::optional<int64_t> constant = getConstantIndex(value)) {
    test.constant += factor * *constant;
    return std::abs(*constant) < most && std::abs(test.constant) < most;
  }
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument && argument.getOwner() == compute.getBlock()) {
    if (test.index && test.index != argument)
      return false;
    test.index = argument;
    test.factor += factor;
    return true;
  }
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op))
    return add(op->getOperand(0), factor, test) &&
           add(op->getOperand(1), isa<arith::AddIOp>(op) ? factor : -factor, test);
  if (isa_and_nonnull<arith::MulIOp>(op))
    for (unsigned n : {0U, 1U}) {
      std::optional<int64_t> number = getConstantIndex(op->getOperand(n));
      Value other = op->getOperand(1 - n);
      if (number && std::abs(*number) < most / std::abs(factor) && *number != 0 &&
          !getIterationIndices(other).empty() &&
          llvm::all_of(getIterationIndices(other),
                       [&](BlockArgument index) { return index.getOwner() == compute.getBlock(); }))
        return add(other, factor * *number, test);
    }
  test.rest.push_back({value, factor < 0});
  return std::abs(factor) == 1;
}

std::optional<LinearTest> TestSolver::read(arith::CmpIOp compare) {
  LinearTest test;
  if (!add(compare.getLhs(), 1, test) || !add(compare.getRhs(), -1, test) || !test.index ||
      test.factor == 0)
    return std::nullopt;
  for (auto [value, isSubtracted] : test.rest)
    if (Dependence{ValueRange{test.index}}.on(value))
      return std::nullopt;
  if (std::abs(test.factor) == 1)
    return test;
  // Multiples are solved in 64 bits, which may become 32 if all sizes allow it.
  constexpr int64_t most = int64_t(1) << 30;
  auto kernel = compute->getParentOfType<KernelOp>();
  std::optional<int64_t> keys =
      getSizeFact(kernel, compute.getExtents()[test.index.getArgNumber()]).upper;
  const bool isWide = type.isInteger(64) || type.isIndex();
  if (!isWide || !keys || *keys >= most / std::abs(test.factor) || std::abs(test.constant) >= most)
    return std::nullopt;
  return test;
}

Value TestSolver::keyOf(const LinearTest &test, bool isRange) {
  // rest + factor * index + constant == 0: the index is (rest + constant) / -factor.
  const bool isSwapped = test.factor > 0;
  Value sum = number(isSwapped ? -test.constant : test.constant);
  for (auto [value, isSubtracted] : test.rest) {
    Value own = asOwnType(value);
    sum = isSubtracted != isSwapped ? Value(arith::SubIOp::create(builder, loc, sum, own))
                                    : Value(arith::AddIOp::create(builder, loc, sum, own));
  }
  if (!readsTable(sum, compute))
    return {};
  const int64_t factor = std::abs(test.factor);
  if (factor == 1)
    return sum;
  Value quotient = FloorDivOp::create(builder, loc, type, sum, number(factor));
  if (isRange)
    return quotient;
  Value remainder = FloorModOp::create(builder, loc, type, sum, number(factor));
  Value isWhole = arith::CmpIOp::create(builder, loc, CmpIPredicate::eq, remainder, number(0));
  return arith::SelectOp::create(builder, loc, isWhole, quotient, number(-1));
}

Value TestSolver::compareWith(const LinearTest &test, Value key) {
  return arith::CmpIOp::create(builder, loc, CmpIPredicate::eq, key, asOwnType(test.index));
}

/// Is a side of `compare` an index of `compute` already?
static bool isSolved(ComputeOp compute, arith::CmpIOp compare) {
  return llvm::any_of(compare->getOperands(), [&](Value side) {
    if (auto cast = side.getDefiningOp<arith::IndexCastOp>())
      side = cast.getIn();
    auto argument = dyn_cast<BlockArgument>(side);
    return argument && argument.getOwner() == compute.getBlock();
  });
}

/// `compare` as `summands >= 0`: what is added to the left side less the right one, and whether the
/// sides are swapped; nothing for equality.
static std::optional<std::pair<int64_t, bool>> asLowerBound(CmpIPredicate predicate) {
  switch (predicate) {
  case CmpIPredicate::sge:
    return std::pair(0, false);
  case CmpIPredicate::sgt:
    return std::pair(-1, false);
  case CmpIPredicate::sle:
    return std::pair(0, true);
  case CmpIPredicate::slt:
    return std::pair(-1, true);
  default:
    return std::nullopt;
  }
}

/// `test >= 0` of a comparison of `predicate` that was read as `test`.
static std::optional<LinearTest> readBound(TestSolver &solver, arith::CmpIOp compare) {
  auto how = asLowerBound(compare.getPredicate());
  std::optional<LinearTest> test = how ? solver.read(compare) : std::nullopt;
  if (!test)
    return std::nullopt;
  if (how->second) {
    test->factor = -test->factor;
    test->constant = -test->constant;
    for (auto &summand : test->rest)
      summand.second = !summand.second;
  }
  test->constant += how->first;
  return test;
}

/// Are both bounds those of a range of a key, `key - w * g - b >= 0` and `w * g + b + w - 1 - key
/// >= 0`?
static bool isRange(const LinearTest &first, const LinearTest &last) {
  const int64_t width = -first.factor;
  if (width < 1 || last.factor != width || first.index != last.index ||
      first.constant + last.constant != width - 1 || first.rest.size() != 1 ||
      last.rest.size() != 1)
    return false;
  auto [key, isSubtracted] = first.rest.front();
  auto [same, isAdded] = last.rest.front();
  // Both comparisons are of numbers that do not wrap.
  return !isSubtracted && isAdded && ScalarEquality().equal(key, same) &&
         isa_and_nonnull<arith::ExtSIOp, arith::ExtUIOp, arith::IndexCastOp>(key.getDefiningOp()) &&
         key.getDefiningOp()->getOperand(0).getType().getIntOrFloatBitWidth() <= 32;
}

/// Solves ranges among the conjuncts of `condition`.
void KeyTests::solveRanges(Value condition) {
  SmallVector<Value> parts;
  addParts<arith::AndIOp>(condition, parts);
  struct Bound {
    arith::CmpIOp compare;
    LinearTest test;
  };
  SmallVector<Bound> bounds;
  for (Value part : parts) {
    auto compare = part.getDefiningOp<arith::CmpIOp>();
    if (!compare || !compare->hasOneUse() || compare.getLhs().getType().isInteger(1))
      continue;
    TestSolver solver(compute, compare, compare.getLhs().getType());
    if (std::optional<LinearTest> test = readBound(solver, compare))
      bounds.push_back({compare, *test});
  }
  for (Bound &first : bounds)
    for (Bound &last : bounds) {
      if (first.compare.use_empty() || last.compare.use_empty() ||
          first.compare.getLhs().getType() != last.compare.getLhs().getType() ||
          !isRange(first.test, last.test))
        continue;
      TestSolver solver(compute, first.compare, first.compare.getLhs().getType());
      Value key = solver.keyOf(first.test, /*isRange=*/true);
      if (!key)
        continue;
      replace(first.compare, solver.compareWith(first.test, key));
      OpBuilder at(last.compare);
      replace(last.compare, arith::ConstantIntOp::create(at, last.compare.getLoc(), 1, 1));
    }
}

void KeyTests::replace(Value written, Value solved) {
  written.replaceAllUsesWith(solved);
  replaced.push_back({written, solved});
}

KeyTests::KeyTests(ComputeOp compute, ReduceOp reduce) : compute(compute) {
  for (auto both : llvm::to_vector(reduce.getBlock()->getOps<arith::AndIOp>()))
    if (llvm::none_of(both->getUsers(), [](Operation *user) { return isa<arith::AndIOp>(user); }))
      solveRanges(both);
  for (auto compare : llvm::to_vector(reduce.getBlock()->getOps<arith::CmpIOp>())) {
    if (compare.getPredicate() != CmpIPredicate::eq || compare.use_empty() ||
        compare.getLhs().getType().isInteger(1) || isSolved(compute, compare))
      continue;
    TestSolver solver(compute, compare, compare.getLhs().getType());
    std::optional<LinearTest> test = solver.read(compare);
    if (Value key = test ? solver.keyOf(*test, /*isRange=*/false) : Value())
      replace(compare, solver.compareWith(*test, key));
  }
}

void KeyTests::restore() {
  for (auto [written, solved] : llvm::reverse(replaced))
    solved.replaceAllUsesWith(written);
  if (!replaced.empty())
    eraseDead(compute);
  replaced.clear();
}

Value tk::convertTotal(OpBuilder &builder, Location loc, Value total, Type type) {
  if (isa<FloatType>(type))
    return arith::SIToFPOp::create(builder, loc, type, total);
  if (type.isIndex())
    return arith::IndexCastOp::create(builder, loc, type, total);
  if (type.getIntOrFloatBitWidth() > total.getType().getIntOrFloatBitWidth())
    return arith::ExtSIOp::create(builder, loc, type, total);
  return total;
}

void tk::replaceByTotal(OpBuilder &builder, ReduceOp reduce, Value total) {
  Type type = reduce.getResult(0).getType();
  if (total.getType() != type)
    total = convertTotal(builder, reduce.getLoc(), total, type);
  reduce.getResult(0).replaceAllUsesWith(total);
}
