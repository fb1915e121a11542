//===- RefillParts.cpp - refill a row's staging chunk by chunk ------------===//
//
// If shared memory has room for one row of a block, the next row's copy starts when this row has
// been read for the last time (tk-fetch-ahead). The kernel stores by chunks (tk-cut-stores), and
// stores take as long as loads, during which no load would be in flight.
//
// 1. Pattern `chunks` takes loops that copy to thread-private staging of one stage, which they read
//    first as a whole and then by chunks of one size that fill it. Each chunk is copied as soon as
//    it has been read, before the results of it are stored. No barrier is needed: a thread reads
//    what it copies. The copies still form one group.
// 2. If the loop copies nothing else, each chunk is a group that is waited for by itself. Spare
//    shared memory then holds chunks of a further row (PartRing.h). In this form, the pattern also
//    takes several stages, if one block fills a multiprocessor.
// 3. Pattern `early-loads` takes rows that are read only before the reduction across warps. Their
//    next copies start before that reduction, because nothing else would be in flight meanwhile.
// 4. Pattern `late-waits` takes a large block's only row. It is copied by chunks, and each chunk is
//    waited for where the row is first read (AwaitParts.h).
//
// Before: %a = private_load %row part 0; store (f %a); %b = private_load %row part 1; store (f %b);
//         copy %row, x[next]; async_commit
// After:  %a = private_load %row part 0; copy %row part 0, x[next]; store (f %a);
//         %b = private_load %row part 1; copy %row part 1, x[next]; store (f %b); async_commit
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuExchange.h"
#include "dialects/tkgpu/TkGpuPrivateOps.h"
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/layout/TileComponents.h"
#include "passes/layout/TilePieces.h"
#include "passes/pipeline/MovedOperations.h"
#include "passes/rows/AwaitParts.h"
#include "passes/rows/PartRing.h"
#include "passes/rows/RowMemory.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_REFILLPARTS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// The reads of parts of what `copy` brings next, in their order; none where it is otherwise read
/// or written between them.
static SmallVector<PrivateLoadOp> findParts(CopyPrivateOp copy) {
  PrivateType memory = copy.getTarget().getType();
  SmallVector<PrivateLoadOp> parts;
  if (memory.getTile().getRank() != 1 || copy.getOffsets())
    return {};
  for (Operation &op : llvm::make_range(copy->getBlock()->begin(), copy->getIterator())) {
    auto load = dyn_cast<PrivateLoadOp>(op);
    if (load && load.getSource() == copy.getTarget()) {
      if (load.getOffsets())
        parts.push_back(load);
      else if (!parts.empty())
        return {};
    } else if (op.getNumRegions() > 0 || llvm::is_contained(op.getOperands(), copy.getTarget())) {
      return {};
    }
  }
  for (Operation *user : copy.getTarget().getUsers())
    if (user->getBlock() == copy->getBlock() && copy->isBeforeInBlock(user))
      return {};
  return parts;
}

/// Are `parts`, each read once, all of the tile, one behind the other?
static bool fillTile(ArrayRef<PrivateLoadOp> parts, RankedTensorType tile) {
  int64_t end = 0;
  for (PrivateLoadOp part : parts) {
    auto type = cast<RankedTensorType>(part.getType());
    if (part.getOffsets()->front() != end ||
        type.getShape() != cast<RankedTensorType>(parts.front()->getResult(0).getType()).getShape())
      return false;
    end += type.getDimSize(0);
  }
  return parts.size() > 1 && end == tile.getDimSize(0);
}

/// Moves what `op` needs of the operations behind `place` before that; false, and nothing is moved,
/// if it is not only arithmetic.
static bool bringBefore(Operation *op, Operation *place) {
  llvm::SetVector<Operation *> moved;
  if (!collectNeeds(op, place, moved, [](Operation *other) { return !isa<gpu::LoadOp>(other); }))
    return false;
  for (Operation *needed : moved)
    needed->moveBefore(place);
  return true;
}

/// How many parts of a row, fewer than it has, find room in shared memory beside what the function
/// takes of it. What the loop loads itself, such as weights that all rows share, needs that room as
/// a cache. Of rows that are handed out (tk-hand-out-tiles) one that is begun is one more to be
/// done when other clusters have none left: less than half of one is not worth that.
static int64_t partsBeside(CopyPrivateOp copy, int64_t numParts, TargetAttr target) {
  if (llvm::any_of(copy->getBlock()->getOps<gpu::LoadOp>(),
                   [](gpu::LoadOp load) { return isTile(load.getResult()); }))
    return 0;
  auto function = copy->getParentOfType<FuncOp>();
  int64_t room = sharedBytesOfBlock(target, blocksThatReduce(function)) -
                 exchangeBytesOf(function) - bytesOfBuffers(function);
  int64_t threads = function.getBlockWarps() * 32;
  PrivateType memory = copy.getTarget().getType();
  int64_t bytes = memory.getBytesOfThread() * threads / (memory.getStages() * numParts);
  int64_t parts = std::clamp<int64_t>(room / bytes, 0, numParts - 1);
  bool isHandedOut = function.isSpread() && blocksThatReduce(function) > 1;
  return isHandedOut && 2 * parts < numParts ? 0 : parts;
}

/// Brings the next rows, which take the places of those that are read as a whole, before the
/// threads meet: nothing else would be on its way meanwhile.
static bool bringBeforeMeeting(scf::ForOp loop) {
  Block &body = *loop.getBody();
  auto meeting = llvm::find_if(body, [](Operation &op) { return isMeeting(&op); });
  SmallVector<CopyPrivateOp> copies(body.getOps<CopyPrivateOp>());
  auto commits = llvm::to_vector(body.getOps<AsyncCommitOp>());
  if (meeting == body.end() || copies.empty() || commits.size() != 1)
    return false;
  Operation *place = &*meeting;
  for (CopyPrivateOp copy : copies) {
    if (copy.getTarget().getType().getStages() != 1 || !place->isBeforeInBlock(copy) ||
        !copy->isBeforeInBlock(commits.front()))
      return false;
    for (Operation *user : copy.getTarget().getUsers())
      if (user != copy && loop->isAncestor(user) &&
          (user->getBlock() != &body || !user->isBeforeInBlock(place)))
        return false;
  }
  for (CopyPrivateOp copy : copies) {
    if (!bringBefore(copy, place))
      return false;
    copy->moveBefore(place);
  }
  commits.front()->moveBefore(place);
  return true;
}

/// Returns how many parts `copy` becomes.
static unsigned refillParts(CopyPrivateOp copy, TargetAttr target) {
  auto function = copy->getParentOfType<FuncOp>();
  SmallVector<PrivateLoadOp> parts = findParts(copy);
  // Two blocks of several rows each have as much on its way with those.
  bool isOne = copy.getTarget().getType().getStages() == 1;
  if (!isOne && blocksThatReduce(function) > 1)
    return 0;
  if (!fillTile(parts, copy.getTarget().getType().getTile()) || !bringBefore(copy, parts.front()))
    return 0;
  if (PartRing ring(copy, parts); target && ring.analyse()) {
    ring.apply(partsBeside(copy, parts.size(), target));
    return parts.size();
  }
  if (!isOne)
    return 0;
  OpBuilder builder(copy);
  for (PrivateLoadOp part : parts) {
    builder.setInsertionPointAfter(part);
    ArrayRef<int64_t> shape = cast<RankedTensorType>(part.getType()).getShape();
    SmallVector<Value> operands(copy->getOperands());
    for (Value &operand : operands)
      if (isTile(operand))
        operand = TilePieces(operand, copy.getOperation())
                      .build(builder, operand, *part.getOffsets(), shape);
    auto refill = cast<CopyPrivateOp>(builder.clone(*copy));
    refill->setOperands(operands);
    refill.setOffsets(part.getOffsets());
    refill.setExtents(shape);
  }
  copy.erase();
  return parts.size();
}

namespace {

struct RefillParts : tk::impl::RefillPartsBase<RefillParts> {
  using RefillPartsBase::RefillPartsBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    auto target = getOperation()->getAttrOfType<TargetAttr>(targetAttrName);
    patterns.run("chunks", [&] {
      SmallVector<CopyPrivateOp> copies;
      getOperation().walk([&](CopyPrivateOp copy) {
        if (isa<scf::ForOp>(copy->getParentOp()))
          copies.push_back(copy);
      });
      for (CopyPrivateOp copy : copies)
        numParts += refillParts(copy, target);
    });
    patterns.run("early-loads", [&] {
      for (FuncOp function : getOperation().getOps<FuncOp>())
        for (auto loop : function.getBlock()->getOps<scf::ForOp>())
          numEarly += bringBeforeMeeting(loop);
    });
    patterns.run("late-waits", [&] {
      for (FuncOp function : getOperation().getOps<FuncOp>())
        numAwaited += awaitParts(function);
    });
  }
};

} // namespace
