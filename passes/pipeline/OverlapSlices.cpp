//===- OverlapSlices.cpp - read the next slice under a product ------------===//
//
// A loop over slices of a contraction waits for a slice of `cp.async` copies, synchronises, and
// reads the first fragments from shared memory. Until they are there, no matrix instruction runs.
// Matrix instructions of f64 take long, a slice has few of them, and little else runs beside them.
// For f64, this pass moves the next slice's head before this slice's last product.
//
// 1. The head of an iteration ends with the later one of the two loads of its first product's
//    operands. It consists of the wait, the barrier, the copies of a later slice, and these loads.
//    It may depend on the iteration's number and on positions in the circular buffer, not on
//    accumulators.
// 2. The head of the first iteration goes before the loop. Each iteration executes the head of the
//    next one before its last product, and carries the loaded fragments. Pure operations of the
//    head that later operations use are computed again.
// 3. The head after the last iteration is harmless. It waits for nothing and copies nothing,
//    because its slices lie past the end, and reads a stage that nothing needs. A head that copies
//    its own iteration's slice, and waits for it, does not move.
//
//   for %k, %slot, %sum {                        async_wait; barrier; copy_async ...
//     async_wait; barrier; copy_async ...        %a0 = local_load %s[%slot0]
//     %a = local_load %s[%slot]                  for %k, %slot, %sum, %a {
//     %b = local_load %s[%slot]                    %b = local_load %s[%slot]
//     %0 = dot %a, ..., %sum                →      %0 = dot %a, ..., %sum
//     %1 = dot %b, ..., %0                         async_wait; barrier; copy_async ...
//     yield %next, %1                              %a1 = local_load %s[%next]
//   }                                              %1 = dot %b, ..., %0
//                                                  yield %next, %1, %a1
//                                                }
//
// Accesses to memory keep their order, so that the planned offsets and barriers remain valid.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SetVector.h"

namespace tk {
#define GEN_PASS_DEF_OVERLAPSLICES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

namespace {

class SliceOverlap {
public:
  explicit SliceOverlap(scf::ForOp loop) : loop(loop), builder(loop) {}

  bool analyse();
  void apply();

private:
  bool takeHead();
  bool isHeadAlone();
  bool isLastAtEnd();
  SmallVector<Value> cloneHead(IRMapping &mapping);

  scf::ForOp loop;
  OpBuilder builder;
  SmallVector<DotOp> dots;
  llvm::SetVector<Operation *> head;
  llvm::SetVector<LocalLoadOp> loads; ///< of the head
};

} // namespace

/// May `op` stand in a head: has it no effects, or those by which slices arrive?
static bool isOfHead(Operation *op) {
  return op->getNumRegions() == 0 &&
         (isMemoryEffectFree(op) ||
          isa<AsyncWaitOp, BarrierOp, CopyAsyncOp, AsyncCommitOp, LocalLoadOp>(op));
}

/// Collects the head; false if there is none that waits for copies.
bool SliceOverlap::takeHead() {
  SmallVector<LocalLoadOp> operands;
  for (Value operand : {dots.front().getA(), dots.front().getB()}) {
    auto load = operand.getDefiningOp<LocalLoadOp>();
    if (!load || load->getBlock() != loop.getBody())
      return false;
    operands.push_back(load);
  }
  Operation *end = operands[0]->isBeforeInBlock(operands[1]) ? operands[1] : operands[0];
  bool waits = false, meets = false, copies = false;
  for (Operation &op : *loop.getBody()) {
    if (!isOfHead(&op))
      return false;
    // A slice that is copied before a wait is the iteration's own. Past the end, its places are not
    // masked; a later slice's are.
    copies |= isa<CopyAsyncOp>(op);
    if (copies && isa<AsyncWaitOp>(op))
      return false;
    head.insert(&op);
    if (auto load = dyn_cast<LocalLoadOp>(op))
      loads.insert(load);
    waits |= isa<AsyncWaitOp>(op);
    meets |= isa<BarrierOp>(op);
    if (&op == end)
      break;
  }
  return waits && meets && loads.size() == operands.size();
}

/// Does the head depend on nothing that products of its iteration take or leave?
bool SliceOverlap::isHeadAlone() {
  return llvm::all_of(head, [&](Operation *op) {
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      auto argument = dyn_cast<BlockArgument>(operand);
      return !argument || argument.getOwner() != loop.getBody() ||
             !isa<RankedTensorType>(argument.getType());
    });
  });
}

/// Is the last product only the loop's result, and are there no effects behind it?
bool SliceOverlap::isLastAtEnd() {
  DotOp last = dots.back();
  for (Operation *op = last->getNextNode(); op != loop.getBody()->getTerminator();
       op = op->getNextNode())
    if (!isMemoryEffectFree(op) || op->getNumRegions() > 0)
      return false;
  return llvm::all_of(last->getUsers(),
                      [&](Operation *user) { return user == loop.getBody()->getTerminator(); });
}

bool SliceOverlap::analyse() {
  llvm::append_range(dots, loop.getBody()->getOps<DotOp>());
  auto isOfDoubles = [](DotOp dot) { return dot.getA().getType().getElementType().isF64(); };
  return dots.size() > 1 && llvm::all_of(dots, isOfDoubles) && takeHead() && isHeadAlone() &&
         isLastAtEnd();
}

/// The head of the iteration whose arguments `mapping` takes the loop's to; what it loads.
SmallVector<Value> SliceOverlap::cloneHead(IRMapping &mapping) {
  for (Operation *op : head)
    builder.clone(*op, mapping);
  return llvm::map_to_vector(
      loads, [&](LocalLoadOp load) -> Value { return mapping.lookup(load.getResult()); });
}

void SliceOverlap::apply() {
  Location loc = loop.getLoc();
  IRMapping first;
  first.map(loop.getInductionVar(), loop.getLowerBound());
  first.map(loop.getRegionIterArgs(), loop.getInitArgs());
  SmallVector<Value> initial(loop.getInitArgs());
  llvm::append_range(initial, cloneHead(first));
  auto rotated = scf::ForOp::create(builder, loc, loop.getLowerBound(), loop.getUpperBound(),
                                    loop.getStep(), initial);
  size_t count = loop.getNumResults();
  builder.setInsertionPointToStart(rotated.getBody());
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), rotated.getInductionVar());
  mapping.map(loop.getRegionIterArgs(), rotated.getRegionIterArgs().take_front(count));
  for (auto [load, tile] :
       llvm::zip_equal(loads.getArrayRef(), rotated.getRegionIterArgs().drop_front(count)))
    mapping.map(load->getResult(0), tile);
  // What later operations take from the head is computed again.
  DotOp last = dots.back();
  for (Operation &op : loop.getBody()->without_terminator()) {
    bool isKept = !head.contains(&op) || isMemoryEffectFree(&op);
    if (&op != last && isKept)
      builder.clone(op, mapping);
  }
  IRMapping next;
  Value at = arith::AddIOp::create(builder, loc, rotated.getInductionVar(), loop.getStep());
  next.map(loop.getInductionVar(), at);
  for (auto [argument, value] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getYieldedValues()))
    if (value != last.getResult())
      next.map(argument, mapping.lookupOrDefault(value));
  SmallVector<Value> ahead = cloneHead(next);
  builder.clone(*last, mapping);
  SmallVector<Value> results = llvm::map_to_vector(
      loop.getYieldedValues(), [&](Value value) { return mapping.lookupOrDefault(value); });
  llvm::append_range(results, ahead);
  scf::YieldOp::create(builder, loc, results);
  loop.replaceAllUsesWith(rotated.getResults().take_front(count));
  loop.erase();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*rotated.getBody())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

namespace {

struct OverlapSlices : tk::impl::OverlapSlicesBase<OverlapSlices> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) {
      SliceOverlap overlap(loop);
      if (!overlap.analyse())
        continue;
      overlap.apply();
      ++numLoops;
    }
  }
};

} // namespace
