//===- PipelineCopies.cpp - multistage pipeline of cp.async copies --------===//
//
// A loop that copies a tile by `cp.async` and reads it at once waits for memory in every iteration.
// This pass starts the copies some iterations early.
//
// 1. A copy can start early if its address follows from the induction variable alone, and only the
//    loop reads its buffer. The buffer gets S stages.
// 2. A prologue starts the copies of the first S - 1 iterations, one group each. A copy of an
//    iteration that the loop does not reach is masked off, so that nothing depends on the number of
//    iterations.
// 3. Iteration i waits until its own group is complete (S - 2 may be pending). It starts the copies
//    of iteration i + S - 1 into the stage that iteration i - 1 has read, and then reads its own
//    stage.
// 4. After the loop, nothing may be in flight, because the memory can be used again.
//
// S is option `stages`, else the schedule's number, else 3, but no more than fits shared memory.
// The pass declines if fewer than 2 stages fit. It reports an error if a schedule block asks for
// more stages than fit.
//
//   for k:                               prologue: copies of k = 0 .. S-2, one group each
//     copy_async %s, a[k]                for k, read, write:
//     ... = local_load %s            →     async_wait S-2
//                                          copy_async %s[write], a[k + S-1]; async_commit
//                                          ... = local_load %s[read]
//                                        async_wait 0
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuExchange.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/Passes.h"
#include "passes/analysis/Declines.h"
#include "passes/machine/Machine.h"
#include "passes/pipeline/LoopSlice.h"
#include "passes/pipeline/SharedHazards.h"
#include "passes/plan/ScheduleLimits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_PIPELINECOPIES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

namespace {

/// One loop and the copies in it that can run ahead.
class CopyPipeline {
public:
  explicit CopyPipeline(scf::ForOp loop) : loop(loop), builder(loop.getContext()), slice(loop) {}

  /// Finds the copies; false if there are none.
  bool analyse();
  int64_t getStageBytes() const;
  void apply(int64_t stages);

private:
  bool isOnlyUsedHere(CopyAsyncOp copy);
  void addStages();
  void beginCopies(Value iteration, Value slot);
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loop.getLoc(), value);
  }

  scf::ForOp loop;
  OpBuilder builder;
  int64_t stages = 0;
  SmallVector<CopyAsyncOp> copies;
  LoopSlice slice; ///< what the addresses are computed from
  DenseMap<Operation *, Value> stagedBuffers;
};

} // namespace

/// Is the copy's buffer used by nothing but this copy and loads in this loop?
bool CopyPipeline::isOnlyUsedHere(CopyAsyncOp copy) {
  return copy.getTarget().getDefiningOp<AllocSharedOp>() &&
         llvm::all_of(copy.getTarget().getUsers(), [&](Operation *user) {
           return user == copy || (isa<LocalLoadOp>(user) && loop->isProperAncestor(user));
         });
}

bool CopyPipeline::analyse() {
  for (auto copy : loop.getBody()->getOps<CopyAsyncOp>()) {
    auto isKnown = [&](Value operand) {
      return isa<SharedType>(operand.getType()) || slice.add(operand);
    };
    if (isOnlyUsedHere(copy) && llvm::all_of(copy->getOperands(), isKnown))
      copies.push_back(copy);
  }
  return !copies.empty();
}

int64_t CopyPipeline::getStageBytes() const {
  int64_t bytes = 0;
  for (CopyAsyncOp copy : copies)
    bytes += cast<SharedType>(CopyAsyncOp(copy).getTarget().getType()).getSizeInBytes();
  return bytes;
}

void CopyPipeline::addStages() {
  for (CopyAsyncOp copy : copies) {
    auto alloc = copy.getTarget().getDefiningOp<AllocSharedOp>();
    builder.setInsertionPoint(alloc);
    stagedBuffers[copy] =
        AllocSharedOp::create(builder, alloc.getLoc(), alloc.getType().withStages(stages), nullptr);
  }
}

/// Begins all copies of the iteration with induction value `iteration`, as one group.
void CopyPipeline::beginCopies(Value iteration, Value slot) {
  Location loc = loop.getLoc();
  Value isReached = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, iteration,
                                          loop.getUpperBound());
  IRMapping mapping = slice.cloneFor(builder, loop.getInductionVar(), iteration);
  for (CopyAsyncOp copy : copies) {
    auto resolve = [&](OperandRange values) {
      return llvm::map_to_vector(values, [&](Value v) { return mapping.lookupOrDefault(v); });
    };
    SmallVector<Value> masks = resolve(copy.getMasks());
    SmallVector<Attribute> maskDims(copy.getMaskDims().getValue());
    masks.push_back(isReached);
    maskDims.push_back(builder.getDenseI64ArrayAttr({}));
    Value stage =
        StageOp::create(builder, loc, copy.getTarget().getType(), stagedBuffers[copy], slot);
    CopyAsyncOp::create(builder, copy.getLoc(), stage, copy.getBuffer(), resolve(copy.getIndices()),
                        resolve(copy.getStrides()), masks, copy.getIndexDims(),
                        builder.getArrayAttr(maskDims), copy.getLayout(), copy.getVector());
  }
  AsyncCommitOp::create(builder, loc);
}

void CopyPipeline::apply(int64_t stageCount) {
  stages = stageCount;
  Location loc = loop.getLoc();
  addStages();
  builder.setInsertionPoint(loop);
  Value iteration = loop.getLowerBound();
  for (int64_t stage = 0; stage < stages - 1; ++stage) {
    if (stage > 0)
      iteration = arith::AddIOp::create(builder, loc, iteration, loop.getStep());
    beginCopies(iteration, constant(stage));
  }
  // Of two stages in turn one is read and the other written.
  Value ahead = arith::MulIOp::create(builder, loc, loop.getStep(), constant(stages - 1));
  IRRewriter rewriter(loop.getContext());
  rewriter.setInsertionPoint(loop);
  Value readInit = constant(0), writeInit = constant(stages - 1);
  auto yieldNext = [&](OpBuilder &b, Location, ArrayRef<BlockArgument> slots) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(b.getInsertionBlock(), b.getInsertionPoint());
    return SmallVector<Value>{nextSlot(builder, loc, slots[0], stages),
                              nextSlot(builder, loc, slots[1], stages)};
  };
  auto replaced =
      cast<LoopLikeOpInterface>(loop.getOperation())
          .replaceWithAdditionalYields(rewriter, {readInit, writeInit},
                                       /*replaceInitOperandUsesInLoop=*/false, yieldNext);
  loop = cast<scf::ForOp>(replaced->getOperation());
  Value read = loop.getRegionIterArgs()[loop.getNumRegionIterArgs() - 2];
  Value write = loop.getRegionIterArgs().back();

  builder.setInsertionPointToStart(loop.getBody());
  AsyncWaitOp::create(builder, loc, stages - 2);
  Value later = arith::AddIOp::create(builder, loc, loop.getInductionVar(), ahead);
  beginCopies(later, write);
  // The builder stands before what was first in the loop, which may be a copy: erased at the end.
  SmallVector<Value> toRead;
  for (CopyAsyncOp copy : copies)
    toRead.push_back(
        StageOp::create(builder, loc, copy.getTarget().getType(), stagedBuffers[copy], read));
  stagedBuffers.clear();
  for (auto [copy, stage] : llvm::zip(copies, toRead)) {
    Value old = copy.getTarget();
    copy.erase();
    old.replaceAllUsesWith(stage);
    old.getDefiningOp()->erase();
  }
  builder.setInsertionPointAfter(loop);
  AsyncWaitOp::create(builder, loc, 0);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Bytes of all shared buffers of `function`.
static int64_t sharedBytesOf(FuncOp function) {
  int64_t bytes = 0;
  function.walk([&](AllocSharedOp alloc) { bytes += alloc.getType().getSizeInBytes(); });
  return bytes;
}

namespace {

struct PipelineCopies : tk::impl::PipelineCopiesBase<PipelineCopies> {
  using Base::Base;

  int64_t stagesFor(FuncOp function) {
    if (stages > 0)
      return stages;
    auto schedule = getTiles(function);
    return schedule ? schedule.getStages() : 3;
  }

  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<TargetAttr>(targetAttrName);
    int64_t limit = target ? target.getShared() : sharedWithoutOptIn;
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      SmallVector<scf::ForOp> loops;
      function.walk([&](scf::ForOp loop) { loops.push_back(loop); });
      for (scf::ForOp loop : loops) {
        CopyPipeline pipeline(loop);
        if (!pipeline.analyse()) {
          decline(loop, "tk-pipeline-copies",
                  "no copy into shared memory can run ahead in the loop");
          continue;
        }
        int64_t wanted = stagesFor(function);
        int64_t used = sharedBytesOf(function) + exchangeBytesOf(function);
        int64_t rest = std::max<int64_t>(limit - used, 0);
        int64_t depth = std::min(wanted, 1 + rest / pipeline.getStageBytes());
        if (depth < wanted && target && asksForStages(function)) {
          reportSharedLimit(function, used + (wanted - 1) * pipeline.getStageBytes(), target,
                            depth);
          return signalPassFailure();
        }
        if (depth < 2) {
          decline(loop, "tk-pipeline-copies",
                  "shared memory has no room for two stages, or the plan asks for one");
          continue;
        }
        pipeline.apply(depth);
        ++numLoops;
      }
    }
  }
};

} // namespace
