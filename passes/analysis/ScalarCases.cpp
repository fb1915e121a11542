//===- ScalarCases.cpp - what is known of a launch's scalars --------------===//
//
// A pass may gain from what a launch's scalars are like, such as the sign of a factor. Where the
// program does not say it, each launch finds out, and has code of its own where it is so:
//
// 1. Parameters that are factors or divisors of what an exponential is taken of should be positive:
//    they then join the exponent (passes/numerics/FoldScales.cpp).
// 2. Those that a hyperbolic tangent is multiplied by there are soft caps. They should be positive
//    and no larger than kLargestCap (passes/numerics/BoundScores.cpp).
//
// 3. Integers that bound the distance of two indices there are lengths of windows. They should be
//    multiples of a tile's rows (passes/pipeline/JoinEnds.cpp).
//
//   p[i, j] = softmax[j](cap * tanh(s[i, j] / cap))    →    tk.scalar_case %0, %1, "0 < cap <= 50"
//
// 4. Integers that are the number of groups of a sum by a key have bounds: powers of four. Elements
//    are sorted by their key if a bound is known (passes/tensor/keys/SortTerms.cpp).
//
//   y[g in 0..G] = sum[i](s[i] == g ? x[i] : 0)    →    tk.scalar_case %0, "G <= 1024", and others
//
// 5. Integers that an extent of a compute op is computed from have bounds and divisors. These are
//    powers of two, as those of dimensions. Tiles fit rows of known bounds, and vectors need
//    divisors.
//
//   y[q in 0..Q] = x[2 * q]    →    tk.scalar_case %0, "Q <= 4", and others; %1, "Q % 2 == 0", …
//
// A case is one of all its conditions. NaN and infinity are in none.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ScalarCases.h"

#include "dialects/tk/TkScheduleOps.h"
#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

using namespace mlir;

namespace tk {

AssumedNumber assumedOf(Value scalar) {
  AssumedNumber known;
  for (Operation *user : scalar.getUsers()) {
    auto compare = dyn_cast<arith::CmpFOp>(user);
    APFloat literal(0.0f);
    if (!compare || compare.getLhs() != scalar ||
        !matchPattern(compare.getRhs(), m_ConstantFloat(&literal)) ||
        llvm::none_of(compare->getUsers(), [](Operation *use) { return isa<AssumeOp>(use); }))
      continue;
    const double limit = literal.convertToDouble();
    const arith::CmpFPredicate predicate = compare.getPredicate();
    known.isPositive |= predicate == arith::CmpFPredicate::OGT && limit >= 0;
    if (predicate == arith::CmpFPredicate::OLT || predicate == arith::CmpFPredicate::OLE)
      known.largest = std::min(limit, known.largest.value_or(limit));
  }
  return known;
}

/// What `value` is a conversion of, between integers.
static Value withoutConversion(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::IndexCastOp, arith::ExtSIOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// `scalar` and its conversions.
static SmallVector<Value> withConversions(Value scalar) {
  SmallVector<Value> values = {scalar};
  for (size_t n = 0; n < values.size(); ++n)
    for (Operation *user : values[n].getUsers())
      if (isa<arith::IndexCastOp, arith::ExtSIOp>(user))
        values.push_back(user->getResult(0));
  return values;
}

static bool isAssumed(Value condition) {
  return llvm::any_of(condition.getUsers(), [](Operation *use) { return isa<AssumeOp>(use); });
}

AssumedInteger assumedIntegerOf(Value scalar) {
  AssumedInteger known;
  APInt literal;
  for (Value value : withConversions(withoutConversion(scalar)))
    for (Operation *user : value.getUsers()) {
      auto compare = dyn_cast<arith::CmpIOp>(user);
      if (compare && compare.getLhs() == value && isAssumed(compare) &&
          matchPattern(compare.getRhs(), m_ConstantInt(&literal))) {
        const int64_t limit = literal.getSExtValue();
        const arith::CmpIPredicate predicate = compare.getPredicate();
        const int64_t open =
            predicate == arith::CmpIPredicate::sgt || predicate == arith::CmpIPredicate::slt;
        if (predicate == arith::CmpIPredicate::sgt || predicate == arith::CmpIPredicate::sge)
          known.least = std::max(limit + open, known.least.value_or(limit));
        if (predicate == arith::CmpIPredicate::slt || predicate == arith::CmpIPredicate::sle)
          known.most = std::min(limit - open, known.most.value_or(limit));
      }
      auto rest = dyn_cast<FloorModOp>(user);
      if (!rest || rest.getLhs() != value || !matchPattern(rest.getRhs(), m_ConstantInt(&literal)))
        continue;
      const int64_t divisor = literal.getSExtValue() & -literal.getSExtValue();
      for (Operation *other : rest->getUsers())
        if (auto equal = dyn_cast<arith::CmpIOp>(other);
            equal && equal.getPredicate() == arith::CmpIPredicate::eq && isAssumed(equal) &&
            matchPattern(equal.getRhs(), m_Zero()))
          known.divisor = std::max(known.divisor, divisor);
    }
  return known;
}

namespace {

/// How a parameter takes part in scores.
enum class Role : uint8_t { None, Factor, Cap };

} // namespace

/// What exponentials are taken of.
static SmallVector<Value> findScores(KernelOp kernel) {
  SmallVector<Value> scores;
  kernel.walk([&](Operation *op) {
    if (isa<ExpDiffOp, math::ExpOp>(op))
      scores.push_back(op->getOperand(0));
  });
  return scores;
}

/// Are indices and `parameter` what `value` adds and subtracts, but for constants?
static bool isDistance(Value value, Value parameter, unsigned &indices, bool &hasParameter) {
  value = withoutConversion(value);
  if (value == parameter)
    return hasParameter = true;
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getType().isIndex() && ++indices != 0;
  Operation *op = value.getDefiningOp();
  return matchPattern(value, m_Constant()) ||
         (isa<arith::AddIOp, arith::SubIOp>(op) &&
          isDistance(op->getOperand(0), parameter, indices, hasParameter) &&
          isDistance(op->getOperand(1), parameter, indices, hasParameter));
}

/// Does `parameter` bound the distance of two indices?
static bool isWindow(KernelOp kernel, Value parameter) {
  return kernel
      ->walk([&](arith::CmpIOp compare) {
        unsigned indices = 0;
        bool hasParameter = false;
        bool isBound = isDistance(compare.getLhs(), parameter, indices, hasParameter) &&
                       isDistance(compare.getRhs(), parameter, indices, hasParameter);
        return isBound && hasParameter && indices == 2 ? WalkResult::interrupt()
                                                       : WalkResult::advance();
      })
      .wasInterrupted();
}

static void addWindowCase(OpBuilder &builder, BlockArgument parameter, StringRef name) {
  const AssumedInteger known = assumedIntegerOf(parameter);
  const bool isWide = parameter.getType().isIndex() || parameter.getType().isInteger(64);
  if (known.divisor >= kWindowTile && known.least.value_or(0) >= kLeastWindow &&
      (!isWide || known.most.value_or(kLongestWindow + 1) <= kLongestWindow))
    return;
  Location loc = parameter.getLoc();
  auto constant = [&](int64_t number) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, number);
  };
  auto compare = [&](arith::CmpIPredicate predicate, Value a, int64_t number) -> Value {
    return arith::CmpIOp::create(builder, loc, predicate, a, constant(number));
  };
  Value length = parameter.getType().isIndex()
                     ? Value(parameter)
                     : arith::IndexCastOp::create(builder, loc, builder.getIndexType(), parameter);
  Value rest = FloorModOp::create(builder, loc, length, constant(kWindowTile));
  SmallVector<Value> conditions = {compare(arith::CmpIPredicate::eq, rest, 0),
                                   compare(arith::CmpIPredicate::sge, length, kLeastWindow)};
  std::string text =
      llvm::formatv("{0} % {1} == 0 and {0} >= {2}", name, kWindowTile, kLeastWindow);
  if (isWide) {
    conditions.push_back(compare(arith::CmpIPredicate::sle, length, kLongestWindow));
    text += llvm::formatv(" and {0} <= {1}", name, kLongestWindow);
  }
  ScalarCaseOp::create(builder, loc, conditions, text);
}

static Role roleOf(BlockArgument parameter, ArrayRef<Value> scores) {
  Dependence onIt{ValueRange(parameter)};
  if (llvm::none_of(scores, [&](Value score) { return onIt.on(score); }))
    return Role::None;
  Role role = Role::None;
  for (Operation *user : parameter.getUsers()) {
    bool isCap = isa<arith::MulFOp>(user) && llvm::any_of(user->getOperands(), [](Value factor) {
                   return factor.getDefiningOp<math::TanhOp>() != nullptr;
                 });
    if (isa<arith::MulFOp, arith::DivFOp>(user))
      role = std::max(role, isCap ? Role::Cap : Role::Factor);
  }
  return role;
}

/// The conditions on a parameter that has a role, of which not all are known.
static void addCase(OpBuilder &builder, BlockArgument parameter, StringRef name, Role role) {
  Location loc = parameter.getLoc();
  const double largest = role == Role::Cap ? kLargestCap : std::numeric_limits<float>::max();
  const AssumedNumber known = assumedOf(parameter);
  if (known.isPositive && (role == Role::Factor || known.largest.value_or(2 * largest) <= largest))
    return;
  auto compare = [&](arith::CmpFPredicate predicate, double limit) -> Value {
    Value literal =
        arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(static_cast<float>(limit)));
    return arith::CmpFOp::create(builder, loc, predicate, parameter, literal);
  };
  Value conditions[] = {compare(arith::CmpFPredicate::OGT, 0),
                        compare(arith::CmpFPredicate::OLE, largest)};
  const std::string text = role == Role::Cap
                               ? llvm::formatv("0 < {0} <= {1:F0}", name, kLargestCap).str()
                               : (name + " > 0").str();
  ScalarCaseOp::create(builder, loc, conditions, text);
}

/// Does a reduction in a compute op compare an index, of which `parameter` is the extent, with an
/// integer of its own?
static bool isNumberOfGroups(KernelOp kernel, BlockArgument parameter) {
  for (auto compute : kernel.getBody().getOps<ComputeOp>())
    for (auto [index, extent] :
         llvm::zip_equal(compute.getBlock()->getArguments(), compute.getExtents())) {
      if (withoutConversion(extent) != parameter)
        continue;
      for (Value value : withConversions(index))
        for (Operation *user : value.getUsers())
          if (auto compare = dyn_cast<arith::CmpIOp>(user);
              compare && compare.getPredicate() == arith::CmpIPredicate::eq &&
              compare->getParentOfType<ReduceOp>())
            return true;
    }
  return false;
}

static void addBoundCases(OpBuilder &builder, BlockArgument parameter, StringRef name) {
  const int64_t most = assumedIntegerOf(parameter).most.value_or(kMostGroups + 1);
  Location loc = parameter.getLoc();
  for (int64_t bound = kFewestGroups; bound <= kMostGroups && bound < most; bound *= 4) {
    Value number = parameter;
    if (!parameter.getType().isIndex())
      number = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), parameter);
    Value limit = arith::ConstantIndexOp::create(builder, loc, bound);
    Value isWithin = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, number, limit);
    ScalarCaseOp::create(builder, loc, ValueRange{isWithin},
                         llvm::formatv("{0} <= {1}", name, bound).str());
  }
}

/// Is an extent of a compute op computed from `parameter`?
static bool isSize(KernelOp kernel, BlockArgument parameter) {
  Dependence onIt{ValueRange(parameter)};
  return llvm::any_of(kernel.getBody().getOps<ComputeOp>(), [&](ComputeOp compute) {
    return llvm::any_of(compute.getExtents(), [&](Value extent) { return onIt.on(extent); });
  });
}

static void addSizeCases(OpBuilder &builder, BlockArgument parameter, StringRef name) {
  const AssumedInteger known = assumedIntegerOf(parameter);
  Location loc = parameter.getLoc();
  Value size = parameter.getType().isIndex()
                   ? Value(parameter)
                   : arith::IndexCastOp::create(builder, loc, builder.getIndexType(), parameter);
  auto add = [&](arith::CmpIPredicate predicate, Value value, int64_t number,
                 const std::string &text) {
    Value limit = arith::ConstantIndexOp::create(builder, loc, number);
    Value holds = arith::CmpIOp::create(builder, loc, predicate, value, limit);
    ScalarCaseOp::create(builder, loc, ValueRange{holds}, text);
  };
  for (int64_t bound = kShortestExtent; bound <= kLongestExtent; bound *= 2)
    if (!known.most || bound < *known.most)
      add(arith::CmpIPredicate::sle, size, bound, llvm::formatv("{0} <= {1}", name, bound).str());
  for (int64_t divisor = 2; divisor <= kLargestExtentDivisor; divisor *= 2)
    if (known.divisor < divisor) {
      Value by = arith::ConstantIndexOp::create(builder, loc, divisor);
      add(arith::CmpIPredicate::eq, FloorModOp::create(builder, loc, size, by), 0,
          llvm::formatv("{0} % {1} == 0", name, divisor).str());
    }
}

bool isOfSize(ScalarCaseOp scalars) {
  return scalars.getConditions().size() == 1 &&
         scalars.getConditions().front().getDefiningOp<arith::CmpIOp>();
}

void addScalarCases(KernelOp kernel) {
  auto computes = kernel.getBody().getOps<ComputeOp>();
  if (computes.empty())
    return;
  const SmallVector<Value> scores = findScores(kernel);
  OpBuilder builder(*computes.begin());
  for (auto [number, parameter] : llvm::enumerate(kernel.getParamArguments())) {
    if (parameter.getType().isSignlessInteger(32) || parameter.getType().isSignlessInteger(64) ||
        parameter.getType().isIndex()) {
      if (isNumberOfGroups(kernel, parameter))
        addBoundCases(builder, parameter, kernel.getParam(number).getName());
      else if (isSize(kernel, parameter))
        addSizeCases(builder, parameter, kernel.getParam(number).getName());
    }
    if (scores.empty())
      continue;
    Dependence onIt{ValueRange(parameter)};
    if (parameter.getType().isIntOrIndex() && !parameter.getType().isInteger(1) &&
        isWindow(kernel, parameter) &&
        llvm::any_of(scores, [&](Value score) { return onIt.on(score); }))
      addWindowCase(builder, parameter, kernel.getParam(number).getName());
    if (parameter.getType().isF32())
      if (Role role = roleOf(parameter, scores); role != Role::None)
        addCase(builder, parameter, kernel.getParam(number).getName(), role);
  }
}

/// Erases what only `value` needed, if nothing needs `value`.
static void eraseUnused(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !op->use_empty())
    return;
  SmallVector<Value> operands(op->getOperands());
  op->erase();
  for (Value operand : operands)
    eraseUnused(operand);
}

void settleScalarCases(KernelOp kernel, const std::vector<bool> &holds) {
  size_t next = 0;
  for (auto op : llvm::make_early_inc_range(kernel.getBody().getOps<ScalarCaseOp>())) {
    const size_t number = next++;
    OpBuilder builder(op);
    SmallVector<Value> conditions(op.getConditions());
    if (number < holds.size() && holds[number])
      for (Value condition : conditions)
        AssumeOp::create(builder, op.getLoc(), condition, op.getTextAttr(), /*bounds=*/false);
    op.erase();
    for (Value condition : conditions)
      eraseUnused(condition);
  }
}

} // namespace tk
