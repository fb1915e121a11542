//===- CompareAsIntegers.cpp - row maxima by integer comparison -----------===//
//
// The bits of two f32 numbers, read as integers, have the order of the numbers if at least one of
// the two is not negative. One instruction takes the maximum of three integers, but only of two
// floats. This pass takes row maxima of scores as integers once the running row maximum is not
// negative. A maximum of negative scores may then be wrong, but it is negative, and the running
// maximum wins.
//
// 1. The pass finds consumer loops that join a row maximum of f32 scores with a carried running
//    maximum. A thread must have at least 16 elements of a row. A NaN in the tile must have no sign
//    bit: the scores come from matrix products, which make none, and from constants.
// 2. Before the loop, the warpgroup tests whether all its running maxima are at least 0; from there
//    on they only grow. If so, it runs a copy of the loop that compares integers, else the loop as
//    it was.
// 3. The test stands outside of the loop. A branch in an iteration would divide the code that ptxas
//    schedules as a whole, and would take registers that a product in flight reads.
//
//   %m = for %j = %a to %b (%m = %m0) {       %any = none_negative %m0
//     %s = wait ...                           %mid = select %any, %a, %b
//     %t = reduce max %s                 →    %m1 = for %j = %a to %mid (%m = %m0) { as before }
//     yield maximum %m, %t                    %m = for %j = %mid to %b (%m = %m1) {
//   }                                           %t = reduce max %s {as_integers} ... }
//
// The pass declines loops whose running maximum begins at a negative constant such as -inf, and
// loops that begin at a computed index, as in windows. The longest tile must have 64 iterations, or
// 16 if the next scores are in flight. Products of 256 or more columns are declined if all tiles
// have the same number of iterations. A loop with masks beside a loop without masks is declined,
// because it has few iterations.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/Declines.h"
#include "passes/machine/limits/Loops.h"

#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace tk {
#define GEN_PASS_DEF_COMPAREASINTEGERS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::compare_as_integers;

/// Maxima over rows in a loop, each with the number of what it is joined with and becomes.
using RunningMaxima = llvm::SmallVector<std::pair<gpu::ReduceOp, unsigned>>;

namespace {

/// Values whose NaN have no sign: sums of products, choices between these, and numbers.
class Unsigned {
public:
  bool holdsFor(Value value);

private:
  bool holdsForCarried(BlockArgument argument);
  llvm::SmallPtrSet<Value, 8> assumed; ///< what loops carry
};

} // namespace

bool Unsigned::holdsForCarried(BlockArgument argument) {
  auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
  if (!loop || argument == loop.getInductionVar())
    return false;
  if (!assumed.insert(argument).second)
    return true;
  unsigned number = argument.getArgNumber() - 1;
  return holdsFor(loop.getInitArgs()[number]) &&
         holdsFor(loop.getBody()->getTerminator()->getOperand(number));
}

bool Unsigned::holdsFor(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return holdsForCarried(argument);
  Operation *op = value.getDefiningOp();
  unsigned number = cast<OpResult>(value).getResultNumber();
  if (isa<WarpgroupDotOp>(op))
    return true;
  if (auto wait = dyn_cast<WarpgroupWaitOp>(op))
    return holdsFor(wait.getSources()[number]);
  if (auto choice = dyn_cast<arith::SelectOp>(op))
    return holdsFor(choice.getTrueValue()) && holdsFor(choice.getFalseValue());
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return holdsFor(branch.thenYield().getOperand(number)) &&
           holdsFor(branch.elseYield().getOperand(number));
  FloatAttr constant;
  DenseElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat())
    constant = dyn_cast<FloatAttr>(elements.getSplatValue<Attribute>());
  return constant && !constant.getValue().isNaN();
}

/// Is the answer known to be no? A loop that no step stands before begins with -inf.
static bool beginsBelowZero(Value initial) {
  DenseElementsAttr elements;
  return matchPattern(initial, m_Constant(&elements)) && elements.isSplat() &&
         elements.getSplatValue<APFloat>().isNegative();
}

static RunningMaxima findMaxima(scf::ForOp loop) {
  RunningMaxima maxima;
  for (auto reduce : loop.getBody()->getOps<gpu::ReduceOp>()) {
    LayoutAttr layout = getLayout(reduce.getSource().getType());
    if (reduce.getKind() != ReduceKind::Max || !layout || !reduce->hasOneUse() ||
        !getElementTypeOrSelf(reduce.getSource().getType()).isF32() ||
        llvm::popcount(axisBits(layout, reduce.getAxis()).registers) < int(kFewestBits))
      continue;
    auto joined = dyn_cast<arith::MaximumFOp>(*reduce->user_begin());
    if (!joined || joined->getBlock() != loop.getBody())
      continue;
    auto running = dyn_cast<BlockArgument>(joined.getLhs() == reduce.getResult() ? joined.getRhs()
                                                                                 : joined.getLhs());
    if (!running || running.getOwner() != loop.getBody() || running == loop.getInductionVar())
      continue;
    unsigned number = running.getArgNumber() - 1;
    if (loop.getBody()->getTerminator()->getOperand(number) == joined.getResult() &&
        isa<RankedTensorType>(running.getType()) && !beginsBelowZero(loop.getInitArgs()[number]) &&
        Unsigned().holdsFor(reduce.getSource()))
      maxima.emplace_back(reduce, number);
  }
  return maxima;
}

/// The most that an index is known to be.
static std::optional<int64_t> mostOf(Value bound) {
  Operation *op = bound.getDefiningOp();
  if (auto least = dyn_cast_or_null<arith::MinSIOp>(op)) {
    auto left = mostOf(least.getLhs()), right = mostOf(least.getRhs());
    return left && right ? std::min(*left, *right) : left ? left : right;
  }
  if (isa_and_nonnull<OfWarpgroupOp>(op)) {
    std::optional<int64_t> most = 0;
    for (Value own : op->getOperands()) {
      auto mine = mostOf(own);
      most = most && mine ? std::max(*most, *mine) : std::optional<int64_t>();
    }
    return most;
  }
  return getConstantIntValue(bound);
}

/// A number, or the sum of two: where a loop begins behind a first step.
static std::optional<int64_t> constantOf(Value index) {
  auto sum = index.getDefiningOp<arith::AddIOp>();
  auto left = sum ? getConstantIntValue(sum.getLhs()) : std::nullopt,
       right = sum ? getConstantIntValue(sum.getRhs()) : std::nullopt;
  return left && right ? *left + *right : getConstantIntValue(index);
}

/// Do the steps of the longest tile pay for the question? A window's tiles, which begin anywhere,
/// have few.
static bool isLong(scf::ForOp loop) {
  auto lower = constantOf(loop.getLowerBound()), most = mostOf(loop.getUpperBound()),
       step = getConstantIntValue(loop.getStep());
  bool isUnderProduct = llvm::any_of(loop.getInitArgs(), [](Value initial) {
    return initial.getDefiningOp<WarpgroupDotOp>() != nullptr;
  });
  return lower && most && step &&
         *most >= (isUnderProduct ? kFewestStepsUnderProduct : kFewestSteps) * *step;
}

static bool hasWideSums(scf::ForOp loop) {
  return llvm::any_of(loop.getBody()->getOps<WarpgroupDotOp>(), [](WarpgroupDotOp dot) {
    return cast<RankedTensorType>(dot.getType()).getDimSize(1) >= kWideSums;
  });
}

static bool isPlain(const RunningMaxima &maxima) {
  return llvm::all_of(maxima, [](auto maximum) {
    return maximum.first.getSource().template getDefiningOp<WarpgroupWaitOp>();
  });
}

static void copyWithIntegers(scf::ForOp loop, const RunningMaxima &maxima) {
  Location loc = loop.getLoc();
  OpBuilder builder(loop);
  Value holds;
  for (auto [reduce, number] : maxima) {
    Value one = NoneNegativeOp::create(builder, loc, loop.getInitArgs()[number]);
    holds = holds ? Value(arith::AndIOp::create(builder, loc, holds, one)) : one;
  }
  Value between =
      arith::SelectOp::create(builder, loc, holds, loop.getLowerBound(), loop.getUpperBound());
  builder.setInsertionPointAfter(loop);
  IRMapping mapping;
  auto copy = cast<scf::ForOp>(builder.clone(*loop, mapping));
  loop.replaceAllUsesWith(copy.getResults());
  loop.setUpperBound(between);
  copy.setLowerBound(between);
  copy.getInitArgsMutable().assign(loop.getResults());
  for (auto [reduce, number] : maxima)
    mapping.lookup(reduce.getResult()).getDefiningOp<gpu::ReduceOp>().setAsIntegers(true);
}

namespace {

struct CompareAsIntegers : tk::impl::CompareAsIntegersBase<CompareAsIntegers> {
  void runOnOperation() override {
    SmallVector<std::pair<scf::ForOp, RunningMaxima>> loops;
    getOperation().walk([&](WarpRolesOp roles) {
      roles.getConsumer().walk([&](scf::ForOp loop) {
        if (RunningMaxima maxima = findMaxima(loop); !maxima.empty())
          loops.emplace_back(loop, std::move(maxima));
      });
    });
    llvm::SmallPtrSet<Block *, 4> withPlainLoop;
    llvm::erase_if(loops, [&](auto &entry) {
      auto &[loop, maxima] = entry;
      const bool isWide = hasWideSums(loop);
      const bool isPlainLoop = isPlain(maxima);
      bool pays = isLong(loop) && !(isWide && getConstantIntValue(loop.getUpperBound()));
      if (pays && isPlainLoop)
        withPlainLoop.insert(loop->getBlock());
      if (!pays)
        decline(loop, "tk-compare-as-integers",
                "the loop is short, or its products are too wide for its number of iterations");
      return !pays;
    });
    for (auto &[loop, maxima] : loops) {
      // Steps with masks that have a loop of their own are few (tk-split-masked-steps).
      if (!isPlain(maxima) && withPlainLoop.contains(loop->getBlock())) {
        decline(loop, "tk-compare-as-integers", "the loop has masks, beside one without masks");
        continue;
      }
      changePlan(loop->getParentOfType<FuncOp>(),
                 [](KernelPlan &plan) { plan.maximumType = MaximumType::Integer; });
      copyWithIntegers(loop, maxima);
      ++numLoops;
    }
  }
};

} // namespace
