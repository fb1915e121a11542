//===- ReferenceLoop.cpp - what the reference of weights is for -----------===//
#include "passes/pipeline/ReferenceLoop.h"

#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuProducts.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

bool tk::isPlainScore(Value score) { return score.getDefiningOp<WarpgroupWaitOp>() != nullptr; }

bool ReferenceLoop::findMaximum(bool isMasked) {
  for (auto reduce : loop.getBody()->getOps<gpu::ReduceOp>()) {
    if (reduce.getKind() != ReduceKind::Max)
      continue;
    if (joined || !reduce.getFreeReference() || !reduce->hasOneUse() ||
        !(isMasked || isPlainScore(reduce.getSource())))
      return false;
    joined = dyn_cast<arith::MaximumFOp>(*reduce->user_begin());
    if (!joined || joined->getBlock() != loop.getBody())
      return false;
    reference = dyn_cast<BlockArgument>(joined.getLhs() == reduce.getResult() ? joined.getRhs()
                                                                              : joined.getLhs());
    if (!reference || reference.getOwner() != loop.getBody() ||
        loop.getTiedLoopYieldedValue(reference)->get() != joined.getResult())
      return false;
  }
  return joined != nullptr;
}

/// What takes sums from one reference to the next, which does nothing else.
bool ReferenceLoop::findFactor() {
  for (Operation *user : reference.getUsers()) {
    if (user == joined)
      continue;
    if (factor || !hasMode(user, MathMode::Rescale) || user->getOperand(0) != reference ||
        user->getOperand(1) != joined.getResult())
      return false;
    factor = user;
  }
  if (!factor)
    return false;
  bool isSum = false;
  auto addScaling = [&](Operation *product, Value by) {
    auto scaling = dyn_cast<arith::MulFOp>(product);
    if (!scaling || scaling->getBlock() != loop.getBody() || scaling.getLhs() == by)
      return false;
    scalings.push_back(scaling);
    auto before = dyn_cast<BlockArgument>(scaling.getLhs());
    if (!before)
      return true;
    if (scaling->hasOneUse())
      if (auto dot = dyn_cast<WarpgroupDotOp>(*scaling->user_begin());
          dot && dot.getAcc() == scaling.getResult())
        return true;
    // Of what else the loop carries, only the sum of weights is scaled before something is added.
    auto after =
        scaling->hasOneUse() ? dyn_cast<arith::AddFOp>(*scaling->user_begin()) : arith::AddFOp();
    if (isSum || !after || before.getOwner() != loop.getBody() ||
        loop.getTiedLoopYieldedValue(before)->get() != after.getResult())
      return false;
    isSum = true;
    sum = before.getArgNumber() - 1;
    return true;
  };
  for (Operation *user : factor->getUsers()) {
    if (!isa<BroadcastOp>(user)) {
      if (!addScaling(user, factor->getResult(0)))
        return false;
      continue;
    }
    for (Operation *product : user->getUsers())
      if (!addScaling(product, user->getResult(0)))
        return false;
  }
  return isSum;
}

/// The step as it is under a reference that stays.
void ReferenceLoop::dropMaximum() {
  for (arith::MulFOp scaling : scalings) {
    scaling.replaceAllUsesWith(scaling.getLhs());
    scaling.erase();
  }
  for (Operation *spread : llvm::make_early_inc_range(factor->getUsers()))
    spread->erase();
  factor->erase();
  Operation *reduce =
      (joined.getLhs() == reference ? joined.getRhs() : joined.getLhs()).getDefiningOp();
  joined.replaceAllUsesWith(reference);
  joined.erase();
  reduce->erase();
}

void tk::takeFirstIteration(scf::ForOp loop) {
  Location loc = loop.getLoc();
  OpBuilder builder(loop);
  Value lower = loop.getLowerBound();
  Value isAny =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, lower, loop.getUpperBound());
  auto branch = scf::IfOp::create(builder, loc, loop.getResultTypes(), isAny, true);
  builder.setInsertionPointToStart(branch.thenBlock());
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), lower);
  for (auto [argument, init] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs()))
    mapping.map(argument, init);
  for (Operation &op : loop.getBody()->without_terminator())
    builder.clone(op, mapping);
  SmallVector<Value> first;
  for (Value value : loop.getBody()->getTerminator()->getOperands())
    first.push_back(mapping.lookupOrDefault(value));
  auto others = cast<scf::ForOp>(builder.clone(*loop));
  builder.setInsertionPoint(others);
  others.setLowerBound(arith::AddIOp::create(builder, loc, lower, loop.getStep()));
  others.getInitArgsMutable().assign(first);
  builder.setInsertionPointAfter(others);
  scf::YieldOp::create(builder, loc, others.getResults());
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, loop.getInitArgs());
  loop.replaceAllUsesWith(branch.getResults());
  loop.erase();
}
