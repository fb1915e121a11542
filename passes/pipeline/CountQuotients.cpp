//===- CountQuotients.cpp - strength reduction of quotients ---------------===//
//
// One thread of the producer warp issues all TMA loads. In a sum over pixels that are counted
// through, each load needs the pixel's row and image: quotients and remainders of the loop's
// counter by sizes that are known only at the launch. A division takes some 60 dependent
// instructions. Two pairs of them take longer than the contraction of the same iteration.
//
// This pass lets the loop carry quotient and remainder instead (strength reduction). They are the
// digits of a number, and each iteration adds the digits of the step:
//
// 1. Find quotients and remainders in a loop of producer warps. Each iteration adds the same
// constant
//    to the dividend, as to the induction variable, its multiples, and its quotients by divisors of
//    the step. Or the dividend is a quotient that is found already. The divisor is invariant, and
//    no constant.
// 2. Compute the digits of the first dividend and those of the step before the loop.
// 3. Add the digits at the end of an iteration. A digit that reaches its divisor is reduced by it,
//    and the next digit gets a carry.
//
//   for %i = 0 to %n step 64 {             %r0, %q0 = 0; %dr = 64 mod %d; %dq = 64 div %d
//     %r = %i mod %d               →       for %i = 0 to %n step 64 iter(%r = %r0, %q = %q0) {
//     %q = %i div %d                         use %r, %q
//     use %r, %q                             %t = %r + %dr; %c = %t >= %d
//   }                                        yield %c ? %t - %d : %t, %q + %dq + (%c ? 1 : 0)
//                                          }
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"

#include "dialects/tk/TkDialect.h"
#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_COUNTQUOTIENTS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

namespace {

/// The remainder and the quotient of one dividend by one divisor.
struct Digit {
  Value dividend, divisor;
  SmallVector<Operation *> remainders, quotients;
  std::optional<unsigned> before;             ///< the digit whose quotient is the dividend
  Value step, stepRemainder, stepQuotient;    ///< before the loop
  Value first, firstRemainder, firstQuotient; ///< of the first iteration
};

class QuotientCounter {
public:
  explicit QuotientCounter(scf::ForOp loop) : loop(loop) {}

  bool analyse();
  void apply();

private:
  std::optional<int64_t> stepOf(Value value);
  void computeFirst(Digit &digit, OpBuilder &builder);
  Value atFirst(OpBuilder &builder, Value value);
  SmallVector<Value> advance(OpBuilder &builder, ValueRange carried);

  scf::ForOp loop;
  SmallVector<Digit> digits;
};

struct CountQuotients : tk::impl::CountQuotientsBase<CountQuotients> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](gpu::WarpRolesOp roles) {
      roles.getProducer().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    });
    for (scf::ForOp loop : loops) {
      QuotientCounter counter(loop);
      if (!counter.analyse())
        continue;
      counter.apply();
      ++numLoops;
    }
  }
};

} // namespace

/// Divisions of indices: those without a sign in their name have dividends that are not negative.
static bool isQuotient(Operation *op) { return isa<FloorDivOp, arith::DivSIOp>(op); }
static bool isRemainder(Operation *op) { return isa<FloorModOp, arith::RemSIOp>(op); }

/// What each iteration adds to `value`, if that is a constant.
std::optional<int64_t> QuotientCounter::stepOf(Value value) {
  APInt number;
  if (value == loop.getInductionVar())
    return matchPattern(loop.getStep(), m_ConstantInt(&number))
               ? std::optional(number.getSExtValue())
               : std::nullopt;
  if (loop.isDefinedOutsideOfLoop(value))
    return 0;
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != loop.getBody())
    return std::nullopt;
  if (isa<arith::AddIOp>(op)) {
    auto a = stepOf(op->getOperand(0)), b = stepOf(op->getOperand(1));
    return a && b ? std::optional(*a + *b) : std::nullopt;
  }
  if (isa<arith::MulIOp>(op))
    for (unsigned n : {0u, 1u})
      if (matchPattern(op->getOperand(1 - n), m_ConstantInt(&number)))
        if (auto of = stepOf(op->getOperand(n)))
          return *of * number.getSExtValue();
  if (isQuotient(op) && matchPattern(op->getOperand(1), m_ConstantInt(&number)))
    if (auto of = stepOf(op->getOperand(0));
        of && number.isStrictlyPositive() && *of % number.getSExtValue() == 0)
      return *of / number.getSExtValue();
  return std::nullopt;
}

bool QuotientCounter::analyse() {
  for (Operation &op : loop.getBody()->without_terminator()) {
    if ((!isQuotient(&op) && !isRemainder(&op)) || !op.getResult(0).getType().isIndex())
      continue;
    Value dividend = op.getOperand(0), divisor = op.getOperand(1);
    if (!loop.isDefinedOutsideOfLoop(divisor) || matchPattern(divisor, m_Constant()))
      continue;
    auto digit = llvm::find_if(digits, [&](const Digit &known) {
      return known.dividend == dividend && known.divisor == divisor;
    });
    if (digit == digits.end()) {
      Digit found;
      found.dividend = dividend;
      found.divisor = divisor;
      auto before = llvm::find_if(digits, [&](const Digit &known) {
        return llvm::is_contained(known.quotients, dividend.getDefiningOp());
      });
      if (before != digits.end())
        found.before = before - digits.begin();
      else if (stepOf(dividend).value_or(0) <= 0)
        continue;
      digits.push_back(found);
      digit = std::prev(digits.end());
    }
    (isRemainder(&op) ? digit->remainders : digit->quotients).push_back(&op);
  }
  return !digits.empty();
}

/// What `value` is in the first iteration.
Value QuotientCounter::atFirst(OpBuilder &builder, Value value) {
  if (value == loop.getInductionVar())
    return loop.getLowerBound();
  if (loop.isDefinedOutsideOfLoop(value))
    return value;
  Operation *op = value.getDefiningOp();
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(atFirst(builder, operand));
  Operation *copy = builder.clone(*op);
  copy->setOperands(operands);
  SmallVector<Value> folded;
  if (failed(builder.tryFold(copy, folded)) || folded.empty())
    return copy->getResult(0);
  copy->erase();
  return folded.front();
}

void QuotientCounter::computeFirst(Digit &digit, OpBuilder &builder) {
  Location loc = loop.getLoc();
  if (digit.before) {
    digit.first = digits[*digit.before].firstQuotient;
    digit.step = digits[*digit.before].stepQuotient;
  } else {
    digit.first = atFirst(builder, digit.dividend);
    digit.step = arith::ConstantIndexOp::create(builder, loc, *stepOf(digit.dividend));
  }
  // A loop without iterations may have a divisor of 0.
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value divisor = arith::MaxSIOp::create(builder, loc, digit.divisor, one);
  digit.firstRemainder = FloorModOp::create(builder, loc, digit.first, divisor);
  digit.firstQuotient = FloorDivOp::create(builder, loc, digit.first, divisor);
  digit.stepRemainder = FloorModOp::create(builder, loc, digit.step, divisor);
  digit.stepQuotient = FloorDivOp::create(builder, loc, digit.step, divisor);
}

/// The digits of the next iteration, of which `carried` are remainder and quotient of each.
SmallVector<Value> QuotientCounter::advance(OpBuilder &builder, ValueRange carried) {
  Location loc = loop.getLoc();
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  SmallVector<Value> carries, next;
  for (auto [n, digit] : llvm::enumerate(digits)) {
    Value sum = arith::AddIOp::create(builder, loc, carried[2 * n], digit.stepRemainder);
    if (digit.before)
      sum = arith::AddIOp::create(builder, loc, sum, carries[*digit.before]);
    Value isFull =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, sum, digit.divisor);
    Value rest = arith::SubIOp::create(builder, loc, sum, digit.divisor);
    next.push_back(arith::SelectOp::create(builder, loc, isFull, rest, sum));
    carries.push_back(arith::SelectOp::create(builder, loc, isFull, one, zero));
    Value quotient = arith::AddIOp::create(builder, loc, carried[2 * n + 1], digit.stepQuotient);
    next.push_back(arith::AddIOp::create(builder, loc, quotient, carries.back()));
  }
  return next;
}

void QuotientCounter::apply() {
  OpBuilder builder(loop);
  SmallVector<Value> inits;
  for (Digit &digit : digits) {
    computeFirst(digit, builder);
    inits.push_back(digit.firstRemainder);
    inits.push_back(digit.firstQuotient);
  }
  IRRewriter rewriter(loop.getContext());
  auto yieldNext = [&](OpBuilder &inside, Location, ArrayRef<BlockArgument> arguments) {
    SmallVector<Value> carried(arguments.begin(), arguments.end());
    return advance(inside, carried);
  };
  auto replaced =
      cast<scf::ForOp>(loop.replaceWithAdditionalYields(
                               rewriter, inits, /*replaceInitOperandUsesInLoop=*/false, yieldNext)
                           ->getOperation());
  auto arguments = replaced.getRegionIterArgs().take_back(2 * digits.size());
  for (auto [n, digit] : llvm::enumerate(digits)) {
    for (Operation *op : digit.remainders)
      op->getResult(0).replaceAllUsesWith(arguments[2 * n]);
    for (Operation *op : digit.quotients)
      op->getResult(0).replaceAllUsesWith(arguments[2 * n + 1]);
  }
  for (Digit &digit : llvm::reverse(digits))
    for (Operation *op : llvm::concat<Operation *>(digit.remainders, digit.quotients))
      op->erase();
  // What only the divisions needed.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*replaced.getBody())))
    if (isOpTriviallyDead(&op))
      op.erase();
}
