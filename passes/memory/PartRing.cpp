//===- PartRing.cpp - a ring of the parts of rows -------------------------===//
//
// A part's place is filled as soon as the part has been read for the last time: with the same part
// of the next row where memory has one row, with one further ahead where it has more. P parts a
// row, N places, 0 <= n = N - P < P:
//   1. Before the loop the first row and n parts of the next one are brought.
//   2. Part p of the loop's row lies in place (first + p) % N, `first` carried by the loop, and its
//      place is filled with part p + n of the next row, or p + n - P of the one behind it.
//   3. Each part is a group of its own, for which the row's first reader waits alone: what comes
//      first is converted while the others are on their way.
//
//===----------------------------------------------------------------------===//
#include "passes/memory/PartRing.h"
#include "passes/memory/TileComponents.h"
#include "passes/memory/TilePieces.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"

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
  if (!wait || wait.getPending() != 0 || !commit || !copy->isBeforeInBlock(commit) ||
      onlyOne<CopyPrivateOp>(all) != copy)
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
    if (first || !brought || brought->getBlock() != loop->getBlock() ||
        !brought->isBeforeInBlock(loop) || brought.getOffsets())
      return false;
    first = brought;
  }
  if (!first || wholes.empty())
    return false;
  llvm::sort(wholes, [](PrivateLoadOp a, PrivateLoadOp b) { return a->isBeforeInBlock(b); });
  firstCommit = onlyOne<AsyncCommitOp>(llvm::make_range(first->getIterator(), loop->getIterator()));
  return firstCommit &&
         llvm::all_of(copy->getOperands(), [&](Value operand) { return slice.add(operand); });
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
  builder.setInsertionPoint(firstCommit);
  auto place = [&](int64_t slot) {
    return arith::ConstantIndexOp::create(builder, copy.getLoc(), slot);
  };
  for (int64_t slot = 0; slot < numParts(); ++slot)
    copyPart(first, first->getOperands(), slot, place(slot));
  SmallVector<Value> next;
  if (stages > numParts())
    next = operandsAt(loop.getLowerBound());
  for (int64_t slot = numParts(); slot < stages; ++slot)
    copyPart(copy, next, slot - numParts(), place(slot));
  first.erase();
  firstCommit.erase();
}

/// Lets the loop carry where its row begins, if that is not always the same.
void PartRing::addSlots() {
  Location loc = copy.getLoc();
  auto constant = [&](OpBuilder &b, int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  builder.setInsertionPoint(loop);
  if (stages == numParts()) {
    for (int64_t slot = 0; slot < stages; ++slot)
      slots.push_back(constant(builder, slot));
    return;
  }
  auto yieldNext = [&](OpBuilder &b, Location, ArrayRef<BlockArgument> carried) {
    Value end = arith::AddIOp::create(b, loc, carried.back(), constant(b, numParts()));
    Value around = arith::SubIOp::create(b, loc, end, constant(b, stages));
    Value isBehind =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, end, constant(b, stages));
    return SmallVector<Value>{arith::SelectOp::create(b, loc, isBehind, around, end)};
  };
  IRRewriter rewriter(loop.getContext());
  rewriter.setInsertionPoint(loop);
  Value zero = constant(builder, 0);
  auto replaced = cast<LoopLikeOpInterface>(loop.getOperation())
                      .replaceWithAdditionalYields(
                          rewriter, zero, /*replaceInitOperandUsesInLoop=*/false, yieldNext);
  loop = cast<scf::ForOp>(replaced->getOperation());
  builder.setInsertionPointToStart(loop.getBody());
  slots.push_back(loop.getRegionIterArgs().back());
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
  if (stages > numParts())
    behind = operandsAt(
        arith::AddIOp::create(builder, copy.getLoc(), loop.getInductionVar(), loop.getStep()));
  for (auto [number, load] : llvm::enumerate(parts)) {
    PrivateLoadOp old = load;
    builder.setInsertionPoint(old);
    auto read = PrivateLoadOp::create(builder, old.getLoc(), old.getType(), ring, slots[number]);
    old.replaceAllUsesWith(read.getResult());
    int64_t later = int64_t(number) + stages - numParts();
    bool isNext = later < numParts();
    copyPart(copy, isNext ? next : behind, isNext ? later : later - numParts(), slots[number]);
    old.erase();
  }
}

void PartRing::apply(int64_t beside) {
  stages = numParts() + beside;
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
