//===- OverwriteRows.cpp - overwrite inout rows in place ------------------===//
//
// tk-place-results copies a result over its `inout` parameter at the end if the compute op reads
// more of the parameter than the element it writes. If a block holds the whole row, it has read the
// row before it stores any of it, and no other block reads the row. The copy is then not needed.
//
// 1. Find a compute op at the end of the kernel that only copies a result over an `inout`
//    parameter. Nothing else may read the result.
// 2. No later compute op may read the parameter. The compute op of the result may read the
//    parameter along each axis at its own index, or at the index of a reduction.
// 3. Along an axis of the second kind, the tile and the tile of the reduction must have the whole
//    extent. The block then loads each element once, and reduces the loaded tile.
// 4. Mark the compute op `tk.in_place`, and plan it again. The new schedule must have such tiles,
//    too.
// 5. Return the result in place of the parameter, and erase the copy.
//
// The pass declines schedules with clusters, with one tile for each warpgroup, or with rows in
// chunks.
//
//   %y:2 = tk.compute ["r", "c"] { h = x[r, c] + p[r, c]; f(h, sum[k](x[r, k] + p[r, k])), h }
//   %p' = tk.compute ["i", "j"] { y#1[i, j] }          tk.return %y#0, %p'      // replaces p
//     =>
//   %y:2 = tk.compute ["r", "c"] { the same, in_place }      tk.return %y#0, %y#1
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/plan/StatementShape.h"

namespace tk {
#define GEN_PASS_DEF_OVERWRITEROWS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

/// The result that `copy` stores element by element, and nothing else does anything with; null if
/// it is no such statement.
static OpResult copiedResult(ComputeOp copy) {
  if (copy.getNumResults() != 1 || copy.getResultIndices())
    return {};
  auto load = copy.getYield().getValues()[0].getDefiningOp<LoadOp>();
  if (!load || load.getPad() || !llvm::equal(load.getIndices(), copy.getBlock()->getArguments()))
    return {};
  auto source = dyn_cast<OpResult>(load.getTensor());
  return source && source.hasOneUse() && isa<ComputeOp>(source.getOwner()) ? source : OpResult();
}

static ComputeOp statementOf(Operation *op) {
  auto compute = dyn_cast<ComputeOp>(op);
  return compute ? compute : op->getParentOfType<ComputeOp>();
}

/// Is result `r` over all indices of its statement, in order?
static bool coversAllIndices(ComputeOp compute, unsigned r) {
  return llvm::equal(compute.getIndicesOf(r), llvm::seq<unsigned>(0, compute.getNumIndices()));
}

namespace {

/// Asks of a statement with a schedule whether its blocks have whole rows.
class RowOwnership {
public:
  RowOwnership(KernelOp kernel, ComputeOp compute, gpu::ScheduleAttr schedule)
      : kernel(kernel), compute(compute), schedule(schedule) {
    unsigned next = 0;
    compute.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto reduction = dyn_cast<ReduceOp>(op))
        for (unsigned i = 0; i < reduction.getNumIndices(); ++i)
          reduceTiles[reduction.getIndex(i)] = schedule.getReduce()[next++];
      else if (isa<ScanOp>(op))
        ++next;
    });
  }

  /// Has a block read what it overwrites of `param` by then, and does no other block read that?
  bool mayOverwrite(Value param) {
    if (schedule.getCluster() > 1 || schedule.getTeams() > 1 || !schedule.getStep().empty())
      return false;
    return llvm::all_of(param.getUsers(), [&](Operation *user) {
      if (isa<BindOp, ReturnOp>(user))
        return true;
      ComputeOp reader = statementOf(user);
      if (reader && reader != compute)
        return reader->isBeforeInBlock(compute);
      auto load = dyn_cast<LoadOp>(user);
      return reader && load && !load.getPad() && isOfOwnRow(load);
    });
  }

private:
  bool isOfOwnRow(LoadOp load) {
    if (load.getIndices().size() != compute.getNumIndices())
      return false;
    for (auto [p, place] : llvm::enumerate(load.getIndices())) {
      if (place == compute.getIndex(p))
        continue;
      auto along = reduceTiles.find(place);
      std::optional<int64_t> upper = getSizeFact(kernel, compute.getExtents()[p]).upper;
      if (along == reduceTiles.end() || !upper || schedule.getTile()[p] < *upper ||
          along->second < *upper)
        return false;
    }
    return true;
  }

  KernelOp kernel;
  ComputeOp compute;
  gpu::ScheduleAttr schedule;
  llvm::DenseMap<Value, int64_t> reduceTiles;
};

struct OverwriteRows : tk::impl::OverwriteRowsBase<OverwriteRows> {
  /// Marks the statement of `result`, and plans it anew, if that may overwrite `param`.
  static bool overwrites(KernelOp kernel, OpResult result, Value param) {
    auto compute = cast<ComputeOp>(result.getOwner());
    auto schedule = gpu::getTiles(compute);
    if (!schedule || !coversAllIndices(compute, result.getResultNumber()) ||
        !RowOwnership(kernel, compute, schedule).mayOverwrite(param))
      return false;
    StatementShape shape = analyzeStatement(kernel, compute);
    const gpu::KernelPlan before = gpu::getPlan(compute);
    PlannedTiles planned = planSchedule(shape, getTarget(kernel), true);
    const bool isCoarse = schedule == planned.tiles;
    gpu::changePlan(compute, [](gpu::KernelPlan &plan) { plan.inPlace = true; });
    if (isCoarse)
      planned = planSchedule(shape, getTarget(kernel), true);
    if (!RowOwnership(kernel, compute, isCoarse ? planned.tiles : schedule).mayOverwrite(param)) {
      gpu::setPlan(compute, before);
      return false;
    }
    if (isCoarse)
      planned.writeTo(compute);
    return true;
  }

  void runOnKernel(KernelOp kernel) {
    ReturnOp ret = kernel.getReturn();
    unsigned place = kernel.getResultNames().size();
    for (auto [i, param] : llvm::enumerate(kernel.getParamArguments())) {
      if (!kernel.getParam(i).getInout())
        continue;
      Value value = ret.getResults()[place];
      auto copy = value.getDefiningOp<ComputeOp>();
      OpResult result = copy && value.hasOneUse() ? copiedResult(copy) : OpResult();
      if (result && overwrites(kernel, result, param)) {
        ret->setOperand(place, result);
        copy->erase();
        ++numOverwritten;
      }
      ++place;
    }
  }

  void runOnOperation() override {
    for (KernelOp kernel : getOperation().getOps<KernelOp>())
      runOnKernel(kernel);
  }
};

} // namespace
