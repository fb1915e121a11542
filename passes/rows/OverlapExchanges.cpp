//===- OverlapExchanges.cpp - exchange a row's sums under the row before --===//
//
// The blocks of a cluster that share rows exchange their parts of each row's sums. A block that has
// a multiprocessor to itself, as sums of columns fill its registers, computes nothing meanwhile.
// The parts of the next row are sent before the rest of this row is computed.
//
// 1. The rewrite takes loops of clusters over rows that carry sums of columns. Rows come in
//    thread-private staging of three or more stages (tk-fetch-ahead), so that the next row is
//    there, and another one on its way.
// 2. It finds the reductions over the cluster that need no other reduction of the row, and what the
//    body computes for them: the head of the iteration.
// 3. The head is copied to the front of the body, where it reads the next row, and before the loop
//    for the first row. What else of the body needs the row reads it again.
// 4. The reductions' results become values that the loop carries. The blocks send their parts where
//    the reductions stand. They wait for the others' at the end of the body, as nothing else reads
//    the results (gpu::isReadAtEnd).
//
//   for row, slot:                                   %first = reduce (private_load %rows at 0)
//     async_wait 3                                   for row, slot, %s = %first:
//     %x = private_load %rows at slot                  async_wait 2
//     %s = reduce %x                            →      %next = reduce (private_load %rows at
//     store %x * %s                                        slot + 1)
//     copy %rows at slot, x[row + 4]; async_commit     %x = private_load %rows at slot
//                                                      store %x * %s
//                                                      copy %rows at slot, x[row + 4]; async_commit
//                                                      yield %next
//
// The last iteration sends parts of a row that does not exist, whose staging holds zeros.
//
//===----------------------------------------------------------------------===//
#include "passes/rows/OverlapExchanges.h"
#include "dialects/tkgpu/TkGpuExchange.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuPrivateOps.h"
#include "dialects/tkgpu/TkGpuRecurrenceOps.h"
#include "passes/analysis/Declines.h"
#include "passes/layout/TileComponents.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// Do the blocks of the cluster exchange what `op` reduces a row to?
static bool isExchange(Operation *op, FuncOp function) {
  if (isa<MomentsOp>(op))
    return true;
  auto reduce = dyn_cast<gpu::ReduceOp>(op);
  return reduce && getLayout(reduce.getSource().getType()) && reduce.getType().isF32() &&
         !reduce.getOpen() && !reduce.getAsIntegers() &&
         joinKindOf(reduce, function, joinedBits(reduce)) == JoinKind::Blocks;
}

namespace {

/// A loop over rows, of which the next one's sums are exchanged while this one is computed.
class RowLoop {
public:
  RowLoop(FuncOp function, scf::ForOp loop) : function(function), loop(loop) {}

  /// Can the sums of the next row be exchanged early? Finds the head.
  bool analyse();
  void apply();

private:
  using Operations = llvm::SetVector<Operation *>;

  bool collect(Value value, Operations &ops, bool isHead);
  bool findWait();
  void sort(Operations &ops);
  SmallVector<Value> cloneHead(OpBuilder &builder, IRMapping &mapping);

  FuncOp function;
  scf::ForOp loop;
  SmallVector<Operation *> exchanges;
  Operations head;                        ///< what the exchanges need, of a row
  Operations steps;                       ///< what the next iteration's head needs to be known
  llvm::SetVector<BlockArgument> carried; ///< of the loop, that the head uses
  AsyncWaitOp wait;                       ///< for the row's copies
  int64_t groups = 0;                     ///< of copies in each iteration
};

} // namespace

/// Adds what `value` follows from in the body; false if it cannot be computed at another place.
bool RowLoop::collect(Value value, Operations &ops, bool isHead) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (isHead && argument.getOwner() == loop.getBody() && argument != loop.getInductionVar())
      carried.insert(argument);
    return true;
  }
  Operation *op = value.getDefiningOp();
  if (!loop->isProperAncestor(op) || ops.contains(op))
    return true;
  const bool mayMove = isMemoryEffectFree(op) || (isHead && isa<PrivateLoadOp>(op)) ||
                       (!isHead && isa<gpu::LoadOp>(op));
  if (op->getBlock() != loop.getBody() || op->getNumRegions() > 0 || !mayMove || isReduction(op) ||
      isa<gpu::ScanOp, RecurrenceOp, ConvertLayoutOp>(op) ||
      !llvm::all_of(op->getOperands(), [&](Value v) { return collect(v, ops, isHead); }))
    return false;
  ops.insert(op);
  return true;
}

/// The only wait of the body, which leaves copies of further rows in flight.
bool RowLoop::findWait() {
  for (Operation &op : *loop.getBody()) {
    if (auto found = dyn_cast<AsyncWaitOp>(op)) {
      if (wait)
        return false;
      wait = found;
    }
    groups += isa<AsyncCommitOp>(op);
  }
  return wait && groups > 0 && int64_t(wait.getPending()) >= 2 * groups;
}

bool RowLoop::analyse() {
  if (!findWait())
    return decline(loop, "tk-join-reductions:next-rows", "too few rows are in flight");
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (!isExchange(&op, function))
      continue;
    Operations needs = head;
    const auto known = carried;
    const bool isFirst =
        wait->isBeforeInBlock(&op) && llvm::all_of(op.getOperands(), [&](Value operand) {
          return collect(operand, needs, /*isHead=*/true);
        });
    if (isFirst) {
      head = std::move(needs);
      exchanges.push_back(&op);
    } else {
      carried = known;
    }
  }
  if (exchanges.empty())
    return decline(loop, "tk-join-reductions:next-rows",
                   "no sum of a row follows from the row alone");
  for (BlockArgument argument : carried)
    if (!collect(loop.getTiedLoopYieldedValue(argument)->get(), steps, /*isHead=*/false))
      return decline(loop, "tk-join-reductions:next-rows", "the next row is known too late");
  sort(head);
  sort(steps);
  return true;
}

void RowLoop::sort(Operations &ops) {
  SmallVector<Operation *> sorted = ops.takeVector();
  llvm::sort(sorted, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  ops.insert_range(sorted);
}

/// Computes the head as `mapping` has it, and returns what it is reduced to.
SmallVector<Value> RowLoop::cloneHead(OpBuilder &builder, IRMapping &mapping) {
  Operations all = head;
  all.insert_range(exchanges);
  sort(all);
  SmallVector<Value> results;
  for (Operation *op : all) {
    Operation *clone = builder.clone(*op, mapping);
    if (llvm::is_contained(exchanges, op))
      llvm::append_range(results, clone->getResults());
  }
  return results;
}

void RowLoop::apply() {
  IRRewriter rewriter(loop.getContext());
  rewriter.setInsertionPoint(loop);
  IRMapping first;
  first.map(loop.getInductionVar(), loop.getLowerBound());
  for (BlockArgument argument : carried)
    first.map(argument, loop.getTiedLoopInit(argument)->get());
  rewriter.clone(*wait);
  SmallVector<Value> inits = cloneHead(rewriter, first);

  Operation *last = wait;
  for (Operation *op : steps)
    if (wait->isBeforeInBlock(op)) {
      op->moveAfter(last);
      last = op;
    }
  rewriter.setInsertionPointAfter(last);
  IRMapping next;
  next.map(loop.getInductionVar(),
           arith::AddIOp::create(rewriter, loop.getLoc(), loop.getInductionVar(), loop.getStep()));
  for (BlockArgument argument : carried)
    next.map(argument, loop.getTiedLoopYieldedValue(argument)->get());
  SmallVector<Value> results = cloneHead(rewriter, next);
  wait.setPending(wait.getPending() - groups);

  rewriter.setInsertionPoint(loop);
  auto yieldNext = [&](OpBuilder &, Location, ArrayRef<BlockArgument>) { return results; };
  auto replaced = cast<LoopLikeOpInterface>(loop.getOperation())
                      .replaceWithAdditionalYields(
                          rewriter, inits, /*replaceInitOperandUsesInLoop=*/false, yieldNext);
  loop = cast<scf::ForOp>(replaced->getOperation());
  auto arguments = loop.getRegionIterArgs().take_back(results.size());
  for (Operation *op : exchanges)
    for (Value result : op->getResults()) {
      result.replaceAllUsesWith(arguments.front());
      arguments = arguments.drop_front();
    }
  for (Operation *op : exchanges)
    op->erase();
  for (Operation *op : llvm::reverse(head))
    if (isOpTriviallyDead(op))
      op->erase();
}

bool tk::exchangesAlone(FuncOp function) {
  const KernelPlan plan = getPlan(function);
  return function.isSpread() && plan.carriesTiles && !plan.inPlace;
}

unsigned tk::overlapExchanges(FuncOp function) {
  unsigned count = 0;
  if (!exchangesAlone(function))
    return count;
  for (scf::ForOp loop : llvm::to_vector(function.getBlock()->getOps<scf::ForOp>())) {
    RowLoop rows(function, loop);
    if (!rows.analyse())
      continue;
    rows.apply();
    ++count;
  }
  return count;
}
