//===- HandOutTiles.cpp - dynamic tile scheduler for clusters -------------===//
//
// Persistent clusters with a fixed list of rows finish at different times. If several blocks share
// a multiprocessor, the warps of the oldest block are issued first. Even clusters that do not share
// multiprocessors differ in speed, and their number seldom divides the number of rows. This pass
// lets each cluster take its next tile from an atomic counter.
//
// 1. Find the loop of a cluster's blocks over tiles, from the block's own number in steps of the
//    grid size. The loop must have a barrier across the cluster, such as a reduction over a row.
// 2. Find the tile numbers that the body computes ahead of its own, for example to prefetch. The
//    loop becomes an `scf.while` that carries these numbers, and runs as long as its own tile
//    exists. The first numbers are the tiles of the fixed list. All later numbers come from the
//    counter.
// 3. When an iteration begins, one thread increments the counter for the tile furthest ahead. It
//    sends the number to the cluster at the barrier. The threads read the number at its first use
//    behind the barrier. Loads before the barrier that need the number move behind it.
// 4. The counter wraps to 0 after one increment for each row, where a row is one tile for each
//    block of the cluster. Each iteration increments the counter once, so the launch leaves it at
//    0.
//
// The assignment of rows to clusters changes no result. The pass declines if the body uses the grid
// size in another way, or if shared memory has no room for the number.
//
//   for %a = id to %tiles step %n:              while %a < %tiles:
//     %b = %a + %n                                %drawn = increment counter
//     ... barrier ...                      =>     send %drawn; ... barrier ...
//     copy x[%b]                                  %b = tile of the number; copy x[%b]
//                                                 yield %b
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuExchange.h"
#include "passes/Passes.h"
#include "passes/analysis/Declines.h"
#include "passes/layout/BulkBox.h"
#include "passes/rows/RowMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_HANDOUTTILES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

namespace {

/// A loop of the blocks of a cluster over tiles, which are handed out.
class TileLoop {
public:
  TileLoop(FuncOp function, scf::ForOp loop) : function(function), loop(loop) {}

  /// Can tiles be handed out? Finds what knows later tiles' numbers.
  bool analyse();
  void apply(LaunchArguments arguments);

private:
  bool findAhead();
  Operation *inBody(Operation *op) { return loop.getBody()->findAncestorOpInBlock(*op); }
  bool collectEarly();
  Operation *firstUse();
  scf::WhileOp makeWhile(OpBuilder &builder);
  Value constant(OpBuilder &builder, int64_t value) {
    return arith::ConstantIndexOp::create(builder, loop.getLoc(), value);
  }
  SmallVector<Value> beginnings(OpBuilder &builder);
  Value tileOf(OpBuilder &builder, Value number);

  FuncOp function;
  scf::ForOp loop;
  Operation *meeting = nullptr;
  /// Sums that are the number of the tile so many iterations ahead.
  SmallVector<std::pair<Operation *, int64_t>> sums;
  int64_t carried = 1; ///< numbers that an iteration begins with
  /// What stands before the threads meet, needs the number that comes behind, and may wait for it.
  SmallVector<Operation *> early;
};

} // namespace

/// Do all threads of the cluster meet in `op`?
static bool joinsCluster(Operation *op, FuncOp function) {
  if (isa<MomentsOp, WeightsOp>(op))
    return true;
  auto reduce = dyn_cast<gpu::ReduceOp>(op);
  return reduce && getLayout(reduce.getSource().getType()) &&
         joinKindOf(reduce, function, joinedBits(reduce)) == JoinKind::Blocks;
}

static bool isStep(Value value) { return value.getDefiningOp<NumProgramsOp>() != nullptr; }

/// How many steps `value` is; 0 if it is no multiple of one.
static int64_t stepsOf(Value value) {
  if (isStep(value))
    return 1;
  auto product = value.getDefiningOp<arith::MulIOp>();
  std::optional<int64_t> times =
      product ? getConstantIntValue(product.getRhs()) : std::optional<int64_t>();
  return times && *times > 0 && isStep(product.getLhs()) ? *times : 0;
}

/// Does `value` follow from how many blocks there are?
static bool dependsOnStep(Value value) {
  if (isStep(value))
    return true;
  Operation *op = value.getDefiningOp();
  return op && llvm::any_of(op->getOperands(), dependsOnStep);
}

/// Finds the sums of the loop's number and steps; false if anything else in the loop knows how far
/// apart tiles are.
bool TileLoop::findAhead() {
  DenseMap<Value, int64_t> aheadOf = {{loop.getInductionVar(), 0}};
  WalkResult result = loop.getBody()->walk<WalkOrder::PreOrder>([&](Operation *op) {
    bool knowsStep = llvm::any_of(op->getOperands(), [&](Value operand) {
      Operation *definition = operand.getDefiningOp();
      bool isOutside = definition && !loop->isAncestor(definition);
      return isStep(operand) || (isOutside && dependsOnStep(operand));
    });
    if (!knowsStep)
      return WalkResult::advance();
    auto sum = dyn_cast<arith::AddIOp>(op);
    if (!sum)
      return WalkResult::interrupt();
    Value from = sum.getLhs(), steps = sum.getRhs();
    if (stepsOf(from) > 0)
      std::swap(from, steps);
    auto known = aheadOf.find(from);
    if (known == aheadOf.end() || stepsOf(steps) == 0)
      return WalkResult::interrupt();
    int64_t ahead = known->second + stepsOf(steps);
    aheadOf[sum] = ahead;
    sums.push_back({op, ahead});
    return WalkResult::advance();
  });
  return !result.wasInterrupted();
}

/// Collects what needs the number that is drawn before the threads meet; false if that is more
/// than arithmetic and loads.
bool TileLoop::collectEarly() {
  llvm::DenseSet<Value> needing;
  for (auto [sum, distance] : sums)
    if (distance == carried)
      needing.insert(sum->getResult(0));
  for (Operation &op : llvm::make_range(loop.getBody()->begin(), meeting->getIterator())) {
    bool needs = op.walk([&](Operation *inner) {
                     return llvm::any_of(inner->getOperands(),
                                         [&](Value value) { return needing.contains(value); })
                                ? WalkResult::interrupt()
                                : WalkResult::advance();
                   }).wasInterrupted();
    if (!needs)
      continue;
    if (!isMemoryEffectFree(&op) || op.getNumRegions() != 0)
      return false;
    needing.insert(op.getResults().begin(), op.getResults().end());
    early.push_back(&op);
  }
  return llvm::none_of(meeting->getOperands(),
                       [&](Value value) { return needing.contains(value); });
}

/// The first operation behind the meeting that uses the number that is drawn; null if none does.
Operation *TileLoop::firstUse() {
  Operation *first = nullptr;
  for (auto [sum, distance] : sums)
    if (distance == carried)
      for (Operation *user : sum->getUsers()) {
        Operation *here = inBody(user);
        if (here && meeting->isBeforeInBlock(here) && (!first || here->isBeforeInBlock(first)))
          first = here;
      }
  return first;
}

bool TileLoop::analyse() {
  auto range = loop.getBody()->without_terminator();
  auto found = llvm::find_if(range, [&](Operation &op) { return joinsCluster(&op, function); });
  if (found == range.end() || !isStep(loop.getStep()) ||
      !loop.getLowerBound().getDefiningOp<ProgramIdOp>() || !findAhead())
    return false;
  meeting = &*found;
  int64_t most = 0;
  for (auto [sum, distance] : sums)
    most = std::max(most, distance);
  carried = std::max<int64_t>(most, 1);
  // What is used before the threads meet has to be known when the iteration begins.
  if (!collectEarly()) {
    early.clear();
    ++carried;
  }
  return true;
}

/// The numbers of the first tiles.
SmallVector<Value> TileLoop::beginnings(OpBuilder &builder) {
  SmallVector<Value> values = {loop.getLowerBound()};
  while (int64_t(values.size()) < carried)
    values.push_back(arith::AddIOp::create(builder, loop.getLoc(), values.back(), loop.getStep()));
  return values;
}

/// This block's number of the tile that the cluster drew, behind those that it begins with.
Value TileLoop::tileOf(OpBuilder &builder, Value number) {
  Location loc = loop.getLoc();
  Value blocks = constant(builder, function.getCluster());
  Value rank = arith::RemSIOp::create(builder, loc, loop.getLowerBound(), blocks);
  Value begun =
      builder.createOrFold<arith::MulIOp>(loc, loop.getStep(), constant(builder, carried));
  Value drawn = arith::MulIOp::create(builder, loc, number, blocks);
  Value first = arith::AddIOp::create(builder, loc, begun, rank);
  return arith::AddIOp::create(builder, loc, drawn, first);
}

/// Builds the loop around the body's operations, with what it carries.
scf::WhileOp TileLoop::makeWhile(OpBuilder &builder) {
  Location loc = loop.getLoc();
  SmallVector<Value> initial = beginnings(builder);
  llvm::append_range(initial, loop.getInitArgs());
  SmallVector<Type> types(ValueRange(initial).getTypes());
  SmallVector<Location> places(types.size(), loc);
  auto handed = scf::WhileOp::create(builder, loc, types, initial);
  OpBuilder::InsertionGuard guard(builder);
  Block *before = builder.createBlock(&handed.getBefore(), {}, types, places);
  Value more = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                     before->getArgument(0), loop.getUpperBound());
  scf::ConditionOp::create(builder, loc, more, before->getArguments());
  Block *after = builder.createBlock(&handed.getAfter(), {}, types, places);
  after->getOperations().splice(after->end(), loop.getBody()->getOperations());
  loop.getInductionVar().replaceAllUsesWith(after->getArgument(0));
  for (auto [old, argument] :
       llvm::zip_equal(loop.getRegionIterArgs(), after->getArguments().drop_front(carried)))
    old.replaceAllUsesWith(argument);
  for (auto [old, result] :
       llvm::zip_equal(loop.getResults(), handed.getResults().drop_front(carried)))
    old.replaceAllUsesWith(result);
  return handed;
}

void TileLoop::apply(LaunchArguments arguments) {
  Location loc = loop.getLoc();
  Value counter = arguments.addCounter();
  OpBuilder builder(loop);
  Value blocks = constant(builder, function.getCluster());
  Value count = arith::DivSIOp::create(builder, loc, loop.getUpperBound(), blocks);
  Operation *use = firstUse();
  scf::WhileOp handed = makeWhile(builder);
  Block *body = handed.getAfterBody();
  ValueRange numbers = body->getArguments().take_front(carried);

  builder.setInsertionPointToStart(body);
  Value drawn = DrawOp::create(builder, loc, builder.getIndexType(), counter, count);
  builder.setInsertionPoint(meeting);
  TellOp::create(builder, loc, drawn);
  // Loads that waited for the number begin as soon as it is there.
  builder.setInsertionPoint(early.empty() && use ? use : meeting->getNextNode());
  Value next = tileOf(builder, ToldOp::create(builder, loc, builder.getIndexType()));
  for (Operation *op : llvm::reverse(early))
    op->moveAfter(next.getDefiningOp());

  SmallVector<Value> yielded(numbers.drop_front());
  yielded.push_back(next);
  llvm::append_range(yielded, body->getTerminator()->getOperands());
  body->getTerminator()->setOperands(yielded);
  // The sum for a tile further ahead is made from that before.
  for (auto [sum, distance] : llvm::reverse(sums)) {
    sum->getResult(0).replaceAllUsesWith(distance < carried ? numbers[distance] : next);
    sum->erase();
  }
  loop.erase();
}

/// The loop of a function's blocks over tiles; null if they do not stay.
static scf::ForOp loopOverTiles(FuncOp function) {
  auto loops = function.getBlock()->getOps<scf::ForOp>();
  auto found = llvm::find_if(loops, [](scf::ForOp loop) { return isStep(loop.getStep()); });
  return found == loops.end() ? scf::ForOp() : *found;
}

/// Have as many blocks as share a multiprocessor room for what they are told?
static bool hasRoomForNumbers(FuncOp function, TargetAttr target) {
  int64_t blocks = function.getMinBlocks().value_or(1);
  int64_t bytes = function.getSharedBytes().value_or(0) + exchangeBytesOf(function) + kToldBytes;
  return bytes <= sharedBytesOfBlock(target, blocks);
}

namespace {

struct HandOutTiles : tk::impl::HandOutTilesBase<HandOutTiles> {
  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<TargetAttr>(targetAttrName);
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      std::optional<LaunchArguments> arguments = LaunchArguments::of(function);
      scf::ForOp loop = loopOverTiles(function);
      constexpr StringLiteral pass = "tk-hand-out-tiles";
      if (!target || !function.isSpread() || !arguments || !loop) {
        decline(function, pass, "no cluster goes through several tiles");
        continue;
      }
      if (!hasRoomForNumbers(function, target)) {
        decline(function, pass, "shared memory has no room for the number of a tile");
        continue;
      }
      TileLoop tiles(function, loop);
      if (!tiles.analyse()) {
        decline(function, pass, "the loop over tiles uses the grid's size in another way");
        continue;
      }
      tiles.apply(*arguments);
      ++numHandedOut;
    }
  }
};

} // namespace
