//===- ElementScan.cpp - one element of a result, term by term ------------===//
//
// A result that is not finite mostly sees a value that is not. That is found without scores: every
// weight is a small number in place of its exponential. What only served the scores is left out.
// Behind a function of the sums that may be infinite or NaN for finite ones, as exp and log, the
// result does not tell which values its row sees: its scores are computed at once.
//
//   for %j { %s = sum of %d; %w = exp(%s - %m); %o += %w * %v }
//     →  %x = for %j { %o += 2^-14 * %v }
//        %y = if %x is finite { for %j { ... } } else { %x }
//
//===----------------------------------------------------------------------===//
#include "passes/pipeline/ElementScan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// In place of a weight: the least normal number of f16, to which weights may be rounded.
static constexpr double kWeight = 0x1p-14;

/// Copies the body of `element`; returns the copy of its value, for `reference` if there is one.
static Value cloneBody(OpBuilder &builder, ElementOp element, IRMapping mapping,
                       Value reference = {}) {
  Block &body = element.getBody().front();
  for (Operation &op : body.without_terminator())
    builder.clone(op, mapping);
  auto end = cast<ElementEndOp>(body.getTerminator());
  Value value = mapping.lookupOrDefault(end.getValue());
  if (!reference)
    return value;
  Value own = mapping.lookupOrDefault(end.getReference());
  Value factor = ExpDiffOp::create(builder, element.getLoc(), own.getType(), own, reference);
  return arith::MulFOp::create(builder, element.getLoc(), value, factor);
}

/// Marks which of the numbers that `loop` carries serve its results that are read.
static SmallVector<bool> findServing(scf::ForOp loop) {
  SmallVector<bool> serves(loop.getNumRegionIterArgs(), false);
  llvm::DenseSet<Value> seen;
  SmallVector<Value> work;
  auto take = [&](unsigned number) {
    if (!serves[number])
      work.push_back(loop.getYieldedValues()[number]);
    serves[number] = true;
  };
  for (auto [number, result] : llvm::enumerate(loop.getResults()))
    if (!result.use_empty())
      take(number);
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner() == loop.getBody() && argument != loop.getInductionVar())
        take(argument.getArgNumber() - 1);
      else if (argument.getOwner() != loop.getBody() &&
               loop.getRegion().isProperAncestor(argument.getOwner()->getParent()))
        llvm::append_range(work, argument.getOwner()->getParentOp()->getOperands());
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (!loop.getRegion().isAncestor(op->getParentRegion()))
      continue;
    llvm::append_range(work, op->getOperands());
    op->walk([&](Operation *inner) { llvm::append_range(work, inner->getOperands()); });
  }
  return serves;
}

/// Leaves out what `loop` carries for none of its results.
static void dropIdle(scf::ForOp loop) {
  for (auto [number, serves] : llvm::enumerate(findServing(loop))) {
    if (serves)
      continue;
    BlockArgument carried = loop.getRegionIterArg(number);
    carried.replaceAllUsesWith(loop.getInitArgs()[number]);
    loop.getBody()->getTerminator()->setOperand(number, carried);
  }
}

/// Has weights be the same number in what `region` holds, and leaves out the rest.
static void flattenWeights(Region &region) {
  IRRewriter rewriter(region.getContext());
  region.walk([&](Operation *op) {
    if (!isa<ExpDiffOp, ScaledExpDiffOp, math::ExpOp, math::Exp2Op>(op) ||
        !op->getParentOfType<scf::ForOp>() || !isa<FloatType>(op->getResult(0).getType()))
      return;
    OpBuilder builder(op);
    Value weight = arith::ConstantOp::create(
        builder, op->getLoc(), builder.getFloatAttr(op->getResult(0).getType(), kWeight));
    op->getResult(0).replaceAllUsesWith(weight);
  });
  (void)runRegionDCE(rewriter, region);
  region.walk([](scf::ForOp loop) { dropIdle(loop); });
  (void)runRegionDCE(rewriter, region);
}

/// Is `value` a sum, product or quotient of what `loop`s give and of what does not depend on them?
static bool isRational(Value value) {
  llvm::SetVector<Operation *> slice;
  SmallVector<Value> work = {value};
  auto dependsOnLoop = [](Value first) {
    llvm::DenseSet<Operation *> seen;
    SmallVector<Value> values = {first};
    while (!values.empty()) {
      Operation *op = values.pop_back_val().getDefiningOp();
      if (isa_and_nonnull<scf::ForOp>(op))
        return true;
      if (op && seen.insert(op).second)
        llvm::append_range(values, op->getOperands());
    }
    return false;
  };
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || isa<scf::ForOp>(op) || !slice.insert(op))
      continue;
    if (!isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp,
             arith::TruncFOp, arith::ExtFOp, arith::SelectOp, DivOrZeroOp>(op)) {
      if (llvm::any_of(op->getOperands(), dependsOnLoop))
        return false;
      continue;
    }
    llvm::append_range(work, op->getOperands());
  }
  return true;
}

Value tk::addElement(OpBuilder &builder, ElementOp element, const IRMapping &mapping,
                     Value reference) {
  Location loc = element.getLoc();
  auto end = cast<ElementEndOp>(element.getBody().front().getTerminator());
  if (!isRational(end.getValue()))
    return cloneBody(builder, element, mapping, reference);
  auto flat = cast<ElementOp>(element->clone());
  cast<ElementEndOp>(flat.getBody().front().getTerminator()).getReferenceMutable().clear();
  flattenWeights(flat.getBody());
  IRMapping own = mapping;
  for (auto [from, to] :
       llvm::zip_equal(element.getBody().getArguments(), flat.getBody().getArguments()))
    own.map(to, mapping.lookup(from));
  Value seen = cloneBody(builder, flat, own);
  flat->destroy();
  Value size = math::AbsFOp::create(builder, loc, seen);
  Value infinity = arith::ConstantOp::create(
      builder, loc, builder.getFloatAttr(seen.getType(), std::numeric_limits<double>::infinity()));
  Value isFinite = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, size, infinity);
  auto branch = scf::IfOp::create(builder, loc, seen.getType(), isFinite,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, loc, cloneBody(builder, element, mapping, reference));
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, seen);
  return branch.getResult(0);
}
