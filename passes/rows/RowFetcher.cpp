//===- RowFetcher.cpp - copies of rows ahead of the iterations ------------===//
//
// Chooses which loads become copies, given the shared memory of a block, and rewrites the loop: it
// waits for the copies of an iteration, reads the tiles from shared memory, and begins the copies
// of a later iteration. Tiles that all iterations share are copied once, or held in registers.
//
//===----------------------------------------------------------------------===//
#include "passes/rows/RowFetcher.h"
#include "passes/machine/limits/Rows.h"

#include "dialects/tkgpu/TkGpuExchange.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuRecurrenceOps.h"
#include "passes/analysis/TileLoops.h"
#include "passes/layout/TileComponents.h"
#include "passes/machine/TileFacts.h"
#include "passes/pipeline/LoopSteps.h"
#include "passes/pipeline/MovedOperations.h"
#include "passes/rows/CarryLoads.h"
#include "passes/rows/RowMemory.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::row_fetcher;

bool tk::addsUp(scf::ForOp loop) {
  return !loop.getInitArgs().empty() &&
         llvm::all_of(loop.getBody()->without_terminator(), [](Operation &op) {
           return op.getNumRegions() == 0 && isMemoryEffectFree(&op) && !isMeeting(&op) &&
                  !isReduction(&op) && !isa<gpu::ScanOp, RecurrenceOp, ConvertLayoutOp>(op);
         });
}

bool RowFetcher::isCopyable(gpu::LoadOp load) {
  auto tile = dyn_cast<RankedTensorType>(load.getType());
  return tile && tile.getElementType().isIntOrFloat() && load.getRun() == 1 &&
         load.getVector() * tile.getElementTypeBitWidth() == vectorBits &&
         llvm::all_of(load->getOperands(), [&](Value operand) { return slice.add(operand); });
}

/// In the shared memory of a block, one of each.
int64_t RowFetcher::bytesOf(ArrayRef<gpu::LoadOp> loads) {
  int64_t bytes = 0;
  for (gpu::LoadOp load : loads) {
    auto type = cast<RankedTensorType>(load.getType());
    bytes += PrivateType::get(load.getContext(), 1, type, 1).getBytesOfThread();
  }
  return bytes * function.getBlockWarps() * 32;
}

/// Moves what makes tiles before the loop to where the loop first uses it, but for cheap ones.
void RowFetcher::moveIntoLoop() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*function.getBlock()))) {
    if (!op.isBeforeInBlock(loop) || op.getNumResults() != 1 || !isTile(op.getResult(0)) ||
        isCheapTile(op.getResult(0)) || !isMemoryEffectFree(&op) || op.use_empty())
      continue;
    Operation *first = nullptr;
    for (Operation *user : op.getUsers()) {
      Operation *here = loop.getBody()->findAncestorOpInBlock(*user);
      if (!here) {
        first = nullptr;
        break;
      }
      if (!first || here->isBeforeInBlock(first))
        first = here;
    }
    if (first)
      op.moveBefore(first);
  }
}

/// The registers for a thread's parts of tiles; more than there are for those of wide elements,
/// which would not stay packed.
static int64_t registersFor(ArrayRef<gpu::LoadOp> loads) {
  int64_t registers = 0;
  for (gpu::LoadOp load : loads) {
    int64_t bits = getElementTypeOrSelf(load.getType()).getIntOrFloatBitWidth();
    registers +=
        bits <= 16 ? getLayout(load.getType()).getNumRegisters() * bits / 32 : registersOfProcessor;
  }
  return registers;
}

/// Does a load bring something else in each iteration?
bool RowFetcher::varies(gpu::LoadOp load) {
  return llvm::any_of(load->getOperands(), [&](Value operand) {
    Operation *op = operand.getDefiningOp();
    return operand == loop.getInductionVar() || (op && loop->isProperAncestor(op));
  });
}

bool RowFetcher::analyseSums(int64_t budget) {
  std::optional<int64_t> length = mostBeyond(loop.getUpperBound(), loop.getLowerBound());
  std::optional<int64_t> step = mostBeyond(loop.getStep(), {});
  if (loop.getNumResults() < 2 || (length && step && *length <= *step * stagesOfSums))
    return false;
  Value buffer;
  for (auto load : loop.getBody()->getOps<gpu::LoadOp>()) {
    if (!isCopyable(load) || !varies(load) || (buffer && buffer != load.getBuffer()))
      return false;
    buffer = load.getBuffer();
    rows.push_back(load);
  }
  int64_t bytes = bytesOf(rows);
  if (bytes < leastBytesOfSums * function.getBlockWarps() * 32)
    return false;
  stages = std::min(budget / bytes, stagesOfSums);
  return stages > 1;
}

bool RowFetcher::analyse(int64_t blocks, int64_t budget) {
  moveIntoLoop();
  for (auto load : loop.getBody()->getOps<gpu::LoadOp>())
    if (isCopyable(load))
      (varies(load) ? rows : kept).push_back(load);
  int64_t bytes = bytesOf(rows);
  int64_t least = function.isSpread() ? 1 : 2;
  if (bytes == 0 || least * bytes > budget)
    return false;
  int64_t free = registersOfProcessor / (function.getBlockWarps() * 32 * blocks) - workingInRows;
  int64_t wanted = std::min<int64_t>(budget / bytes, 2);
  if (function.isSpread() && bytesOf(kept) + wanted * bytes > budget && registersFor(kept) <= free)
    std::swap(kept, held);
  // One stage is filled again a part at a time (tk-refill-parts): a second one comes behind what a
  // cluster would otherwise read once more for each row.
  if (bytesOf(kept) + least * bytes > budget)
    least = wanted;
  while (bytesOf(kept) + least * bytes > budget) {
    gpu::LoadOp load = kept.pop_back_val();
    held.clear();
    if (function.isSpread() && registersFor(load) <= free)
      held.push_back(load);
  }
  stages = std::min((budget - bytesOf(kept)) / bytes, enoughStages);
  // Beside rows that are on their way, a cluster that carries sums of columns has two on chip
  // (tk-overlap-exchanges).
  const int64_t onChip = getPlan(function).carriesTiles ? rowsOnChip : 0;
  if (function.isSpread() && blocks == 1)
    stages = std::min(stages, int64_t(llvm::divideCeil(enoughBytes, bytes)) + onChip);
  return true;
}

AllocPrivateOp RowFetcher::allocate(gpu::LoadOp load, int64_t count) {
  auto tile = cast<RankedTensorType>(load.getType());
  auto type = PrivateType::get(builder.getContext(), count, tile, load.getVector());
  return AllocPrivateOp::create(builder, load.getLoc(), type, nullptr);
}

void RowFetcher::beginCopy(gpu::LoadOp load, Value memory, Value slot, const IRMapping &mapping,
                           Value isReached) {
  auto resolve = [&](OperandRange values) {
    return llvm::map_to_vector(values, [&](Value v) { return mapping.lookupOrDefault(v); });
  };
  SmallVector<Value> masks = resolve(load.getMasks());
  SmallVector<Attribute> maskDims(load.getMaskDims().getValue());
  if (isReached) {
    masks.push_back(isReached);
    maskDims.push_back(builder.getDenseI64ArrayAttr({}));
  }
  CopyPrivateOp::create(builder, load.getLoc(), memory, slot, load.getBuffer(),
                        resolve(load.getIndices()), resolve(load.getStrides()), masks,
                        load.getIndexDims(), builder.getArrayAttr(maskDims));
}

/// Begins the copies of an iteration, if the loop reaches it, as one group.
void RowFetcher::fetch(Value iteration, Value slot) {
  Value isReached = arith::CmpIOp::create(builder, loop.getLoc(), arith::CmpIPredicate::slt,
                                          iteration, loop.getUpperBound());
  IRMapping mapping = slice.cloneFor(builder, loop.getInductionVar(), iteration);
  for (auto [load, memory] : llvm::zip_equal(rows, memories))
    beginCopy(load, memory, slot, mapping, isReached);
  AsyncCommitOp::create(builder, loop.getLoc());
}

/// Loads a tile before the loop; what is computed from it there is computed again in the loop.
void RowFetcher::hold(gpu::LoadOp load) {
  builder.setInsertionPoint(load);
  auto held = HoldOp::create(builder, load.getLoc(), load.getType(), load.getResult());
  load.getResult().replaceAllUsesExcept(held, held);
  load->moveBefore(loop);
}

/// The tile that a load would have brought. Copies leave zeros where masks are false.
Value RowFetcher::readFrom(gpu::LoadOp load, Value memory, Value slot) {
  Location loc = load.getLoc();
  Value tile = PrivateLoadOp::create(builder, loc, load.getType(), memory, slot);
  Value other = load.getOther();
  if (!other || matchPattern(other, m_Zero()) || matchPattern(other, m_PosZeroFloat()))
    return tile;
  auto type = cast<RankedTensorType>(load.getType());
  auto spread = [&](Value value, Type element, ArrayRef<int64_t> dims) -> Value {
    auto whole = RankedTensorType::get(type.getShape(), element, type.getEncoding());
    return value.getType() == whole ? value : BroadcastOp::create(builder, loc, whole, value, dims);
  };
  other = spread(other, type.getElementType(), {});
  for (auto [mask, dims] : llvm::zip_equal(load.getMasks(), load.getMaskDims())) {
    Value isIn = spread(mask, builder.getI1Type(), cast<DenseI64ArrayAttr>(dims).asArrayRef());
    tile = arith::SelectOp::create(builder, loc, isIn, tile, other);
  }
  return tile;
}

/// Moves what the first copies need, so that they begin before what the block waits for ahead of
/// the loop, such as a sample of what it adds up.
void RowFetcher::beginEarly() {
  auto mayMove = [](Operation *) { return true; };
  for (Operation &place : *loop->getBlock()) {
    if (&place == loop.getOperation())
      return;
    if (!isa<scf::ForOp>(place) && !isReduction(&place))
      continue;
    llvm::SetVector<Operation *> moved;
    auto need = [&](auto &self, Value value) -> bool {
      Operation *def = value.getDefiningOp();
      if (!def)
        return true;
      if (!loop->isProperAncestor(def))
        return collectMoved(def, &place, moved, mayMove);
      return llvm::all_of(def->getOperands(), [&](Value operand) { return self(self, operand); });
    };
    auto needsOf = [&](Operation *op) {
      return llvm::all_of(op->getOperands(), [&](Value value) { return need(need, value); });
    };
    Value bounds[] = {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()};
    if (!llvm::all_of(bounds, [&](Value bound) { return need(need, bound); }) ||
        !llvm::all_of(rows, needsOf))
      continue;
    for (Operation *op : moved)
      op->moveBefore(&place);
    builder.setInsertionPoint(&place);
    return;
  }
}

/// Has a loop before this one no more than one iteration, this one's first? Then what it reads of
/// the tiles has come already.
void RowFetcher::readFirst(scf::ForOp earlier) {
  if (!addsUp(earlier) || !hasFirstStepAlone(earlier, loop))
    return;
  bool isFirst = true;
  for (auto load : llvm::make_early_inc_range(earlier.getBody()->getOps<gpu::LoadOp>())) {
    auto same = llvm::find_if(
        rows, [&](gpu::LoadOp row) { return isSameAt(earlier, load.getResult(), loop, row); });
    if (same == rows.end())
      continue;
    if (isFirst) {
      builder.setInsertionPointToStart(earlier.getBody());
      AsyncWaitOp::create(builder, loop.getLoc(), stages - 1);
    }
    isFirst = false;
    builder.setInsertionPoint(load);
    load.replaceAllUsesWith(readFrom(load, memories[same - rows.begin()], constant(0)));
    load.erase();
  }
}

void RowFetcher::apply() {
  Location loc = loop.getLoc();
  builder.setInsertionPoint(loop);
  if (addsUp(loop))
    beginEarly();
  Value zero = constant(0);
  SmallVector<Value> keptMemories;
  for (gpu::LoadOp load : kept) {
    keptMemories.push_back(allocate(load, 1));
    beginCopy(load, keptMemories.back(), zero, IRMapping(), Value());
  }
  for (gpu::LoadOp load : rows)
    memories.push_back(allocate(load, stages));
  Value iteration = loop.getLowerBound();
  for (int64_t stage = 0; stage < stages; ++stage) {
    if (stage > 0)
      iteration = arith::AddIOp::create(builder, loc, iteration, loop.getStep());
    fetch(iteration, constant(stage));
  }
  Value ahead = arith::MulIOp::create(builder, loc, loop.getStep(), constant(stages));
  if (addsUp(loop))
    for (auto earlier : loop->getBlock()->getOps<scf::ForOp>())
      if (earlier->isBeforeInBlock(loop) &&
          memories.back().getDefiningOp()->isBeforeInBlock(earlier))
        readFirst(earlier);

  IRRewriter rewriter(loop.getContext());
  rewriter.setInsertionPoint(loop);
  auto yieldNext = [&](OpBuilder &b, Location, ArrayRef<BlockArgument> slots) {
    return SmallVector<Value>{stages == 1 ? zero : nextSlot(b, loc, slots.back(), stages)};
  };
  auto replaced = cast<LoopLikeOpInterface>(loop.getOperation())
                      .replaceWithAdditionalYields(
                          rewriter, zero, /*replaceInitOperandUsesInLoop=*/false, yieldNext);
  loop = cast<scf::ForOp>(replaced->getOperation());
  Value slot = loop.getRegionIterArgs().back();

  builder.setInsertionPointToStart(loop.getBody());
  AsyncWaitOp::create(builder, loc, stages - 1);
  builder.setInsertionPoint(loop.getBody()->getTerminator());
  Value later = arith::AddIOp::create(builder, loc, loop.getInductionVar(), ahead);
  fetch(later, slot);
  auto replace = [&](ArrayRef<gpu::LoadOp> loads, ArrayRef<Value> from, Value stage) {
    for (auto [number, load] : llvm::enumerate(loads)) {
      gpu::LoadOp old = load;
      builder.setInsertionPoint(old);
      old.replaceAllUsesWith(readFrom(old, from[number], stage));
      old.erase();
    }
  };
  replace(rows, memories, slot);
  replace(kept, keptMemories, zero);
  for (gpu::LoadOp load : held)
    hold(load);
  loop = carryScalarLoads(loop);
  builder.setInsertionPointAfter(loop);
  AsyncWaitOp::create(builder, loc, 0);
}
