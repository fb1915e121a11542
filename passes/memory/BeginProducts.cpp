//===- BeginProducts.cpp - products begin before what they do not need -----===//
//
// Where warpgroups come apart (takeTurns), each is bound by its own chain of instructions: scores,
// weights, the product that takes them. Instructions are issued in order, so that whatever stands
// before a product and does not feed it makes the chain longer.
//
//   1. A wait for a stage that products further on read goes behind those in front of them.
//   2. What a tile computes of its rows, such as bounds of masks and references, goes behind the
//      first product of the branch that needs it, if nothing else does.
//
//   phase_wait %values[%i]                    phase_wait %keys[%j]
//   phase_wait %keys[%j]                      %s = warpgroup_dot %q, stage %k[%j]
//   %s = warpgroup_dot %q, stage %k[%j]   →   phase_wait %values[%i]
//   %o = warpgroup_dot %p, stage %v[%i]       %o = warpgroup_dot %p, stage %v[%i]
//
//   %r = maximumf %a, %b : tensor<64xf32>     scf.if %any {
//   scf.if %any {                               %s = warpgroup_dot %q, %k
//     %s = warpgroup_dot %q, %k           →     %r = maximumf %a, %b : tensor<64xf32>
//     %w = warpgroup_wait %s                    %w = warpgroup_wait %s
//
// A window of 1024 keys with a soft cap, H100: 1.02, plain or with ALiBi, too, 1.005
// (lab/results/2026-11-28-h100-chains.md).
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/Patterns.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/memory/Rings.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SetVector.h"

namespace tk {
#define GEN_PASS_DEF_BEGINPRODUCTS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// The first stage after `wait` that it waits for, if all that reads it comes later still and a
/// product is in between.
static StageOp findLaterStage(PhaseWaitOp wait) {
  for (Operation *op = wait->getPrevNode(); op; op = op->getPrevNode())
    if (auto stage = dyn_cast<StageOp>(op); stage && stage.getStage() == wait.getSlot())
      return {};
  bool isBehindProduct = false;
  for (Operation *op = wait->getNextNode(); op; op = op->getNextNode()) {
    auto stage = dyn_cast<StageOp>(op);
    if (stage && stage.getStage() == wait.getSlot())
      return isBehindProduct ? stage : StageOp();
    isBehindProduct |= isa<WarpgroupDotOp>(op);
    if (!isa<PhaseWaitOp, WarpgroupDotOp>(op) && !(isPure(op) && op->getNumRegions() == 0))
      return {};
  }
  return {};
}

/// Does each thread compute the tile that `op` gives by itself?
static bool isOfThreads(Operation *op) {
  return (isa<BroadcastOp, IotaOp>(op) || op->hasTrait<OpTrait::Elementwise>()) && isPure(op) &&
         op->getNumRegions() == 0 && op->getNumResults() == 1 &&
         isa<RankedTensorType>(op->getResult(0).getType());
}

/// What is computed before `branch` of rows, and needed behind `first`, a product in it, alone; in
/// order.
static SmallVector<Operation *> findRows(scf::IfOp branch, WarpgroupDotOp first) {
  llvm::SetVector<Operation *> found;
  auto isNeededLater = [&](Operation *user) {
    Operation *inside = first->getBlock()->findAncestorOpInBlock(*user);
    return found.contains(user) || (inside && first->isBeforeInBlock(inside));
  };
  for (Operation *op = branch->getPrevNode(); op; op = op->getPrevNode())
    if (isOfThreads(op) && !op->use_empty() && llvm::all_of(op->getUsers(), isNeededLater))
      found.insert(op);
  return llvm::to_vector(llvm::reverse(found));
}

namespace {

struct BeginProducts : tk::impl::BeginProductsBase<BeginProducts> {
  using BeginProductsBase::BeginProductsBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    auto forRoles = [&](llvm::function_ref<void(WarpRolesOp)> move) {
      getOperation().walk([&](FuncOp func) {
        if (!takeTurns(func))
          func.walk([&](WarpRolesOp roles) { move(roles); });
      });
    };
    patterns.run("waits", [&] {
      forRoles([&](WarpRolesOp roles) {
        roles.walk([&](PhaseWaitOp wait) {
          if (StageOp stage = findLaterStage(wait)) {
            wait->moveBefore(stage);
            ++numWaits;
          }
        });
      });
    });
    patterns.run("row-work", [&] {
      forRoles([&](WarpRolesOp roles) {
        roles.walk([&](scf::IfOp branch) {
          auto products = branch.thenBlock()->getOps<WarpgroupDotOp>();
          if (products.empty())
            return;
          Operation *last = *products.begin();
          for (Operation *op : findRows(branch, *products.begin())) {
            op->moveAfter(last);
            last = op;
            ++numRows;
          }
        });
      });
    });
  }
};

} // namespace
