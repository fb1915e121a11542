//===- StepMasks.cpp - masks of steps at the ends of a range --------------===//
#include "passes/pipeline/StepMasks.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// Collects the comparisons of a step with bounds, one of which holds where it is masked.
static bool collectBounds(Value condition, scf::ForOp loop, StepBounds &bounds) {
  Operation *op = condition.getDefiningOp();
  if (auto either = dyn_cast_or_null<arith::OrIOp>(op))
    return collectBounds(either.getLhs(), loop, bounds) &&
           collectBounds(either.getRhs(), loop, bounds);
  auto compare = dyn_cast_or_null<arith::CmpIOp>(op);
  if (!compare || !loop.isDefinedOutsideOfLoop(compare.getRhs()))
    return false;
  Value step = compare.getLhs();
  if (compare.getPredicate() == arith::CmpIPredicate::slt && step == loop.getInductionVar()) {
    bounds.lower.push_back(compare.getRhs());
    return true;
  }
  auto end = step.getDefiningOp<arith::AddIOp>();
  APInt length;
  if (compare.getPredicate() != arith::CmpIPredicate::sgt || !end ||
      end.getLhs() != loop.getInductionVar() || !matchPattern(end.getRhs(), m_ConstantInt(&length)))
    return false;
  bounds.upper.push_back({compare.getRhs(), length.getSExtValue()});
  return true;
}

scf::IfOp tk::findMask(scf::ForOp loop, StepBounds &bounds) {
  scf::IfOp mask;
  bool isInFlight = false;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (auto wait = dyn_cast<WarpgroupWaitOp>(op))
      isInFlight = wait.getPending() > 0;
    auto branch = dyn_cast<scf::IfOp>(op);
    if (!branch || branch.getElseRegion().empty() || !isMemoryEffectFree(branch))
      continue;
    if (mask || !isInFlight || branch.getNumResults() == 0 ||
        !branch.elseBlock()->without_terminator().empty())
      return {};
    mask = branch;
  }
  return mask && collectBounds(mask.getCondition(), loop, bounds) ? mask : scf::IfOp();
}

bool tk::isMaskOfEnds(scf::IfOp branch) {
  auto either = branch.getCondition().getDefiningOp<arith::OrIOp>();
  auto before = either ? either.getLhs().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  auto behind = either ? either.getRhs().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  return before && behind && before.getPredicate() == arith::CmpIPredicate::slt &&
         behind.getPredicate() == arith::CmpIPredicate::sgt && branch.getNumResults() > 0 &&
         !branch.getElseRegion().empty() && branch.elseBlock()->without_terminator().empty() &&
         isMemoryEffectFree(branch);
}
