//===- PartRing.cpp - a ring of the parts of rows -------------------------===//
//
// A part's place is filled as soon as the part has been read for the last time: with the same part
// of a later row where memory has whole rows, with one further ahead where it has more. P parts a
// row, S rows, N places, 0 <= n = N - S P < P:
//   1. Before the loop S rows and n parts of the next one are brought.
//   2. Part p of the loop's row lies in place (first + p) % N, `first` carried by the loop, and its
//      place is filled with part p + n of the row S ahead, or p + n - P of the one behind it.
//   3. Each part is a group of its own, for which the row's first reader waits alone: what comes
//      first is converted while the others are on their way.
//
//===----------------------------------------------------------------------===//
#include "passes/rows/PartRing.h"
#include "passes/layout/TileComponents.h"
#include "passes/layout/TilePieces.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// The only operation of its kind in `range`; null if there is none, or another.
template <typename Op> static Op onlyOne(llvm::iterator_range<Block::iterator> range) {
  Op found;
  for (Operation &operation : range)
    if (auto op = dyn_cast<Op>(operation)) {
      if (found)
        return {};
      found = op;
    }
  return found;
}

bool PartRing::analyse() {
  Block *body = loop.getBody();
  auto all = llvm::make_range(body->begin(), body->end());
  wait = onlyOne<AsyncWaitOp>(all);
  commit = onlyOne<AsyncCommitOp>(all);
  if (!wait || int64_t(wait.getPending()) != numRows() - 1 || !commit ||
      !copy->isBeforeInBlock(commit) || onlyOne<CopyPrivateOp>(all) != copy)
    return false;
  for (Operation *user : copy.getTarget().getUsers()) {
    if (user == copy || llvm::is_contained(parts, user))
      continue;
    auto load = dyn_cast<PrivateLoadOp>(user);
    if (load && load->getBlock() == body && wait->isBeforeInBlock(load) &&
        load->isBeforeInBlock(parts.front())) {
      wholes.push_back(load);
      continue;
    }
    auto brought = dyn_cast<CopyPrivateOp>(user);
    if (!brought || brought->getBlock() != loop->getBlock() || !brought->isBeforeInBlock(loop) ||
        brought.getOffsets())
      return false;
    first.push_back(brought);
  }
  if (int64_t(first.size()) != numRows() || wholes.empty())
    return false;
  auto inOrder = [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); };
  llvm::sort(wholes, inOrder);
  llvm::sort(first, inOrder);
  for (auto [row, brought] : llvm::enumerate(first)) {
    Operation *end = row + 1 < first.size() ? first[row + 1].getOperation() : loop;
    firstCommits.push_back(
        onlyOne<AsyncCommitOp>(llvm::make_range(brought->getIterator(), end->getIterator())));
    if (!firstCommits.back())
      return false;
  }
  return llvm::all_of(copy->getOperands(), [&](Value operand) {
    return operand == copy.getStage() || slice.add(operand);
  });
}

/// Begins the copy of a part of what `whole` brings, with `operands` for its own, as a group.
void PartRing::copyPart(CopyPrivateOp whole, ValueRange operands, int64_t number, Value slot) {
  ArrayRef<int64_t> shape = part.getShape();
  SmallVector<Value> cut(operands);
  for (Value &operand : cut)
    if (isTile(operand))
      operand = TilePieces(operand, whole.getOperation())
                    .build(builder, operand, number * shape.front(), shape);
  auto brought = cast<CopyPrivateOp>(builder.clone(*whole));
  brought->setOperands(cut);
  brought.getTargetMutable().assign(ring);
  brought.getStageMutable().assign(slot);
  AsyncCommitOp::create(builder, whole.getLoc());
}

/// What `copy` has for operands in the iteration of that number.
SmallVector<Value> PartRing::operandsAt(Value iteration) {
  IRMapping mapping = slice.cloneFor(builder, loop.getInductionVar(), iteration);
  return llvm::map_to_vector(copy->getOperands(),
                             [&](Value operand) { return mapping.lookupOrDefault(operand); });
}

/// Fills all places before the loop.
void PartRing::fill() {
  int64_t slot = 0;
  auto place = [&] { return arith::ConstantIndexOp::create(builder, copy.getLoc(), slot++); };
  for (auto [brought, end] : llvm::zip_equal(first, firstCommits)) {
    builder.setInsertionPoint(end);
    for (int64_t number = 0; number < numParts(); ++number)
      copyPart(brought, brought->getOperands(), number, place());
  }
  if (beside > 0) {
    builder.setInsertionPoint(loop);
    SmallVector<Value> next = operandsAt(loop.getLowerBound());
    for (int64_t number = 0; number < beside; ++number)
      copyPart(copy, next, number, place());
  }
  for (CopyPrivateOp brought : first)
    brought.erase();
  for (AsyncCommitOp end : firstCommits)
    end.erase();
}

/// Where the row behind that at `slot` begins.
static Value nextRow(OpBuilder &builder, Location loc, Value slot, int64_t parts, int64_t stages) {
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value end = arith::AddIOp::create(builder, loc, slot, constant(parts));
  Value around = arith::SubIOp::create(builder, loc, end, constant(stages));
  Value isBehind =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, end, constant(stages));
  return arith::SelectOp::create(builder, loc, isBehind, around, end);
}

/// Erases `op` if nothing uses it, and what it alone used. An operation may be an operand of
/// several of those: it waits until the last one is gone.
static void eraseDead(Operation *op) {
  llvm::SetVector<Operation *> unused;
  unused.insert(op);
  while (!unused.empty()) {
    Operation *next = unused.pop_back_val();
    if (!next || !isOpTriviallyDead(next))
      continue;
    for (Value operand : next->getOperands())
      unused.insert(operand.getDefiningOp());
    next->erase();
  }
}

/// Lets the loop carry where its row begins, if that is not always the same, in place of the stage
/// that it may carry.
void PartRing::addSlots() {
  Location loc = copy.getLoc();
  builder.setInsertionPoint(loop);
  if (stages == numParts()) {
    for (int64_t slot = 0; slot < stages; ++slot)
      slots.push_back(arith::ConstantIndexOp::create(builder, loc, slot));
    return;
  }
  if (auto carried = dyn_cast<BlockArgument>(copy.getStage())) {
    Operation *yield = loop.getBody()->getTerminator();
    OpOperand &next = yield->getOpOperand(carried.getArgNumber() - loop.getNumInductionVars());
    Operation *before = next.get().getDefiningOp();
    builder.setInsertionPoint(yield);
    next.set(nextRow(builder, loc, carried, numParts(), stages));
    eraseDead(before);
    slots.push_back(carried);
  } else {
    IRRewriter rewriter(loop.getContext());
    rewriter.setInsertionPoint(loop);
    auto yieldNext = [&](OpBuilder &b, Location, ArrayRef<BlockArgument> added) {
      return SmallVector<Value>{nextRow(b, loc, added.back(), numParts(), stages)};
    };
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    auto replaced = cast<LoopLikeOpInterface>(loop.getOperation())
                        .replaceWithAdditionalYields(
                            rewriter, zero, /*replaceInitOperandUsesInLoop=*/false, yieldNext);
    loop = cast<scf::ForOp>(replaced->getOperation());
    slots.push_back(loop.getRegionIterArgs().back());
  }
  builder.setInsertionPointToStart(loop.getBody());
  while (int64_t(slots.size()) < numParts())
    slots.push_back(nextSlot(builder, loc, slots.back(), stages));
}

void PartRing::readWhole(PrivateLoadOp load, bool isFirst) {
  builder.setInsertionPoint(load);
  SmallVector<Value> read;
  for (auto [number, slot] : llvm::enumerate(slots)) {
    if (isFirst)
      AsyncWaitOp::create(builder, load.getLoc(), stages - 1 - int64_t(number));
    read.push_back(PrivateLoadOp::create(builder, load.getLoc(), part, ring, slot));
  }
  load.replaceAllUsesWith(JoinOp::create(builder, load.getLoc(), load.getType(), read).getResult());
  load.erase();
}

/// Reads parts where they are, and fills their places.
void PartRing::refill() {
  SmallVector<Value> next(copy->getOperands());
  builder.setInsertionPoint(parts.front());
  SmallVector<Value> behind;
  if (beside > 0)
    behind = operandsAt(
        arith::AddIOp::create(builder, copy.getLoc(), loop.getInductionVar(), loop.getStep()));
  for (auto [number, load] : llvm::enumerate(parts)) {
    PrivateLoadOp old = load;
    builder.setInsertionPoint(old);
    auto read = PrivateLoadOp::create(builder, old.getLoc(), old.getType(), ring, slots[number]);
    old.replaceAllUsesWith(read.getResult());
    int64_t later = int64_t(number) + beside;
    bool isNext = later < numParts();
    copyPart(copy, isNext ? next : behind, isNext ? later : later - numParts(), slots[number]);
    old.erase();
  }
}

void PartRing::apply(int64_t numBeside) {
  beside = numBeside;
  stages = numRows() * numParts() + beside;
  auto alloc = copy.getTarget().getDefiningOp<AllocPrivateOp>();
  builder.setInsertionPoint(alloc);
  auto type =
      PrivateType::get(builder.getContext(), stages, part, copy.getTarget().getType().getVector());
  ring = AllocPrivateOp::create(builder, alloc.getLoc(), type, nullptr);
  fill();
  addSlots();
  for (auto [number, load] : llvm::enumerate(wholes))
    readWhole(load, number == 0);
  refill();
  wait.erase();
  copy.erase();
  commit.erase();
  alloc.erase();
}
