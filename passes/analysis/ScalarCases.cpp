//===- ScalarCases.cpp - what is known of a launch's scalars --------------===//
//
// A pass may gain from what a launch's scalars are like, such as the sign of a factor. Where the
// program does not say it, each launch finds out, and has code of its own where it is so:
//
// 1. Parameters that are factors or divisors of what an exponential is taken of should be positive:
//    they then join the exponent (passes/tiling/FoldScales.cpp).
// 2. Those that a hyperbolic tangent is multiplied by there are soft caps. They should be positive
//    and no larger than kLargestCap (passes/tiling/BoundScores.cpp).
//
//   p[i, j] = softmax[j](cap * tanh(s[i, j] / cap))    →    tk.scalar_case %0, %1, "0 < cap <= 50"
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

void addScalarCases(KernelOp kernel) {
  const SmallVector<Value> scores = findScores(kernel);
  if (scores.empty())
    return;
  OpBuilder builder(*kernel.getBody().getOps<ComputeOp>().begin());
  for (auto [number, parameter] : llvm::enumerate(kernel.getParamArguments()))
    if (parameter.getType().isF32())
      if (Role role = roleOf(parameter, scores); role != Role::None)
        addCase(builder, parameter, kernel.getParam(number).getName(), role);
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
      if (Operation *compare = condition.getDefiningOp(); condition.use_empty()) {
        Operation *literal = compare->getOperand(1).getDefiningOp();
        compare->erase();
        if (literal->use_empty())
          literal->erase();
      }
  }
}

} // namespace tk
