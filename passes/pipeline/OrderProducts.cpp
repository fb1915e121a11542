//===- OrderProducts.cpp - where a step's products begin and end ----------===//
//
// A step of the gradients of attention has two products of scores, and one or two sums of what is
// computed from both. Each is waited for where it begins. The step is put in another order:
//
// 1. Products of what lies in shared memory come first, and with one sum of weights they are begun
//    together. With two, the first one is waited for before the second begins, whose time what
//    needs the first alone has (H200, dk and dv of heads of 128: 672 to 691 TFLOP/s, begun together
//    610 to 630).
//    Behind the first one, and before a product is waited for, elements are loaded that are needed
//    then: they come meanwhile.
// 2. Of sums of weights those come first whose weights need less.
// 3. Before each product comes what its operands are computed from and has not been computed, with
//    the waits for the products in that; these leave in flight what has begun since.
// 4. Behind each wait, stages are left that no product in flight reads.
//
//   %s = dot %q, %k; wait %s pending 0          %s = dot %q, %k
//   %d = dot %o, %v; wait %d pending 0     →    %d = dot %o, %v
//   %p = f(%s); %w = g(%p, %d)                  wait %s pending 1; %p = f(%s)
//   %r = dot %w, %k, %sum; wait                 wait %d pending 0; %w = g(%p, %d)
//                                               %r = dot %w, %k, %sum; wait
//
//===----------------------------------------------------------------------===//
#include "passes/pipeline/OrderProducts.h"

#include "passes/pipeline/ProductWaits.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

namespace {

class StepOrder {
public:
  explicit StepOrder(scf::ForOp loop) : body(loop.getBody()) {}

  bool analyse();
  void apply();

private:
  void collectNeeds(Operation *op, llvm::SetVector<Operation *> &needs);
  void place(Operation *op);
  void placeNeeds(Operation *op);
  void placeLoads(WarpgroupDotOp dot);
  void placeArrivals();

  Block *body;
  SmallVector<WarpgroupDotOp> scores, sums;
  llvm::MapVector<Operation *, SmallVector<Operation *>> after; ///< what must come before, unseen
  llvm::SetVector<Operation *> placed;
  int64_t complete = 0; ///< products, of those that have been placed
};

} // namespace

/// The waits that stand between an operation and what it may reach are no operands of it.
bool StepOrder::analyse() {
  SmallVector<Operation *> entered, waits;
  for (Operation &op : body->without_terminator()) {
    if (op.getNumRegions() > 0)
      return false;
    if (auto dot = dyn_cast<WarpgroupDotOp>(op)) {
      if (!findPlainWait(dot))
        return false;
      (isa<SharedType>(dot.getA().getType()) ? scores : sums).push_back(dot);
      after[&op] = entered;
    } else if (isa<PhaseWaitOp>(op)) {
      entered.push_back(&op);
    } else if (isa<WarpgroupWaitOp>(op)) {
      waits.push_back(&op);
    } else if (isa<PhaseArriveOp>(op)) {
      after[&op] = waits;
    } else if (!isMemoryEffectFree(&op)) {
      return false;
    }
  }
  // Scores that are added up are one product's.
  auto addsToOther = [](WarpgroupDotOp dot) {
    return isa_and_nonnull<WarpgroupWaitOp>(dot.getAcc().getDefiningOp());
  };
  return scores.size() == 2 && !sums.empty() && sums.size() <= 2 &&
         llvm::none_of(scores, addsToOther) && llvm::none_of(sums, addsToOther);
}

/// What `op` needs of the step, itself left out.
void StepOrder::collectNeeds(Operation *op, llvm::SetVector<Operation *> &needs) {
  SmallVector<Operation *> work = {op};
  while (!work.empty()) {
    Operation *current = work.pop_back_val();
    SmallVector<Operation *> before = after.lookup(current);
    for (Value operand : current->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        before.push_back(producer);
    for (Operation *need : before)
      if (need->getBlock() == body && needs.insert(need))
        work.push_back(need);
  }
}

void StepOrder::place(Operation *op) {
  if (!placed.insert(op))
    return;
  op->moveBefore(body->getTerminator());
  auto wait = dyn_cast<WarpgroupWaitOp>(op);
  if (!wait)
    return;
  // What has begun since stays in flight, unless a later one has been waited for.
  SmallVector<Operation *> begun;
  for (Operation *other : placed)
    if (isa<WarpgroupDotOp>(other))
      begun.push_back(other);
  Operation *dot = wait.getSources().front().getDefiningOp();
  complete = std::max<int64_t>(complete, llvm::find(begun, dot) - begun.begin() + 1);
  wait.setPending(begun.size() - complete);
  placeArrivals();
}

void StepOrder::placeArrivals() {
  for (auto &[op, needs] : after)
    if (isa<PhaseArriveOp>(op) && !placed.contains(op) &&
        llvm::all_of(needs, [&](Operation *need) { return placed.contains(need); }))
      place(op);
}

/// Places what `op` needs, in the order that it had, but waits where they are needed.
void StepOrder::placeNeeds(Operation *op) {
  llvm::SetVector<Operation *> needs;
  collectNeeds(op, needs);
  SmallVector<Operation *> ordered;
  for (Operation &other : *body)
    if (needs.contains(&other) && !placed.contains(&other))
      ordered.push_back(&other);
  for (Operation *need : ordered) {
    if (isa<WarpgroupWaitOp>(need))
      continue;
    for (Value operand : need->getOperands())
      if (auto wait = operand.getDefiningOp<WarpgroupWaitOp>(); wait && wait->getBlock() == body)
        place(wait);
    place(need);
  }
  for (Operation *need : ordered)
    place(need);
}

/// Begins to load what `dot` needs.
void StepOrder::placeLoads(WarpgroupDotOp dot) {
  llvm::SetVector<Operation *> needs;
  collectNeeds(dot, needs);
  for (Operation &op : llvm::make_early_inc_range(*body))
    if (isa<gpu::LoadOp>(op) && needs.contains(&op) && !placed.contains(&op)) {
      placeNeeds(&op);
      place(&op);
    }
}

void StepOrder::apply() {
  auto countNeeds = [&](WarpgroupDotOp dot) {
    llvm::SetVector<Operation *> needs;
    collectNeeds(dot, needs);
    return needs.size();
  };
  if (sums.size() > 1 && countNeeds(sums.back()) < countNeeds(sums.front()))
    std::swap(sums.front(), sums.back());
  SmallVector<Operation *> rest;
  for (Operation &op : body->without_terminator())
    rest.push_back(&op);
  for (WarpgroupDotOp dot : scores) {
    placeNeeds(dot);
    place(dot);
    if (dot == scores.front())
      placeLoads(sums.front());
    if (sums.size() > 1 && dot == scores.front())
      place(findPlainWait(dot));
  }
  // ptxas lets no sum of weights run beside scores that are read before it is complete (C7517).
  placeNeeds(sums.front());
  placeLoads(sums.back());
  place(findPlainWait(scores.back()));
  for (WarpgroupDotOp dot : sums) {
    placeNeeds(dot);
    place(dot);
  }
  for (Operation *op : rest) {
    placeNeeds(op);
    place(op);
  }
}

bool tk::orderProducts(scf::ForOp loop) {
  StepOrder order(loop);
  if (!order.analyse())
    return false;
  order.apply();
  return true;
}
