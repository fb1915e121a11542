//===- BeginProducts.cpp - issue products early in unordered warpgroups ---===//
//
// An unordered warpgroup is bound by its own chain of instructions: scores, softmax numerators, and
// the product that takes the numerators. A warp issues its instructions in order. An instruction
// that stands before a product without feeding it makes the chain longer. This pass moves such
// instructions after the product.
//
// 1. Pattern `waits`: a wait for a pipeline stage that a later product reads moves after the
//    products in front of that one. Only other waits, products and pure operations may stand in
//    between.
// 2. Pattern `row-work`: elementwise work on a tile's rows, such as bounds of masks and running row
//    maxima, moves after the first product of a branch. All uses must stand in the branch, after
//    that product.
//
// The pass takes only kernels whose warpgroups are unordered (`takeTurns` in Rings.h).
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
// Speed with the pass relative to without, H100, a window of 1024 keys: 1.02 with a soft cap, 1.005
// without one, and 1.005 with a soft cap and ALiBi (lab/results/2026-11-28-h100-chains.md).
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/Patterns.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/pipeline/Rings.h"

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
