//===- FetchOperands.cpp - load the operands that threads convert ahead ---===//
//
// An operand of a contraction that threads convert, such as keys in 8 bits beside queries in bf16,
// cannot go from global to shared memory by `cp.async`: it passes through registers. The loop then
// waits for memory in every iteration, once for each operand. This pass starts the loads of the
// next iteration as copies to thread-private staging in shared memory.
//
// 1. A load is taken if a thread reads several vectors of 16 bytes, if its address follows from the
//    induction variable, and if a contraction of the loop takes what is computed from it.
// 2. The staging has one stage. A thread reads what it copies itself, so no barrier is needed.
// 3. A prologue starts the copies of the first iteration, one group for each load.
// 4. Where the loop has a load, it waits for the oldest group, reads the tile, and starts the copy
//    of the next iteration into the same memory. The groups of the other loads stay in flight.
// 5. Loads of few elements, such as scales of the keys, are carried from one iteration to the next
//    (CarryLoads.h).
// 6. After the loop, nothing may be in flight. Loops behind one another share the staging.
// 7. The loop may have other copies in flight (tk-pipeline-copies), of which it begins one group at
//    its start. Waits then leave as many groups more in flight as come between.
//
//   for k:                          copy_private %p, a[0]; async_commit
//     %x = load a[k]                for k, %s = load s[0]:
//     %y = extf %x                    %t = load s[k + 1]
//     local_store %y                  async_wait 0; %x = private_load %p
//     %s = load s[k]            →     copy_private %p, a[k + 1]; async_commit
//     ... dot                         %y = extf %x; local_store %y; ... dot
//
// A contraction with scales of blocks starts a new sum in each iteration, and scales it once it is
// complete. Its loops carry the scales, too: a load that is issued with the contraction would end
// after it.
//
// The pass declines loops of one iteration, and staging that would leave a multiprocessor with
// fewer bytes in flight than it needs.
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuExchange.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuPrivateOps.h"
#include "dialects/tkgpu/TkGpuProducts.h"
#include "passes/Passes.h"
#include "passes/analysis/Declines.h"
#include "passes/layout/TileComponents.h"
#include "passes/machine/Machine.h"
#include "passes/machine/limits/Rows.h"
#include "passes/pipeline/LoopSlice.h"
#include "passes/pipeline/LoopSteps.h"
#include "passes/rows/CarryLoads.h"
#include "passes/rows/RowMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_FETCHOPERANDS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::fetch_operands;

namespace {

/// Staging that loops behind one another share, by its type.
using SharedStaging = llvm::MapVector<Type, SmallVector<Value>>;

/// One loop and the loads in it that can run ahead.
class OperandFetcher {
public:
  OperandFetcher(FuncOp function, scf::ForOp loop)
      : function(function), loop(loop), slice(loop), builder(loop.getContext()) {}

  /// Finds the loads; false if there are none.
  bool analyse();
  /// Bytes of the copies of an iteration, and of the staging that does not exist yet.
  int64_t getBytes();
  int64_t getNewBytes(const SharedStaging &staging);
  void apply(SharedStaging &staging);

private:
  bool isGroupAtStart();
  SmallVector<Value> allocate(SharedStaging &staging);
  PrivateType typeOf(gpu::LoadOp load) {
    return PrivateType::get(builder.getContext(), 1, cast<RankedTensorType>(load.getType()),
                            load.getVector());
  }
  bool isCopyable(gpu::LoadOp load);
  void beginCopy(gpu::LoadOp load, Value memory, const IRMapping &mapping, Value isReached);
  Value isReached(Value iteration) {
    return arith::CmpIOp::create(builder, loop.getLoc(), arith::CmpIPredicate::slt, iteration,
                                 loop.getUpperBound());
  }

  FuncOp function;
  scf::ForOp loop;
  LoopSlice slice; ///< what the addresses are computed from
  OpBuilder builder;
  SmallVector<gpu::LoadOp> loads;
  Value zero;            ///< the only stage
  AsyncWaitOp otherWait; ///< at the start of the loop, for copies of another pass
};

} // namespace

/// Does a contraction in the same block take what is computed from `load`, through registers and
/// shared memory?
static bool feedsProduct(gpu::LoadOp load) {
  llvm::SetVector<Operation *> users;
  users.insert(load);
  for (unsigned n = 0; n < users.size(); ++n) {
    if (isa<DotOp>(users[n]))
      return true;
    for (Value result : users[n]->getResults())
      for (Operation *user : result.getUsers())
        if (user->getBlock() == load->getBlock())
          users.insert(user);
    if (auto store = dyn_cast<LocalStoreOp>(users[n]))
      for (Operation *user : store.getTarget().getUsers())
        if (isa<LocalLoadOp>(user) && user->getBlock() == load->getBlock())
          users.insert(user);
  }
  return false;
}

/// Copies leave zeros where masks are false, so that a load with other values there stays.
bool OperandFetcher::isCopyable(gpu::LoadOp load) {
  auto tile = dyn_cast<RankedTensorType>(load.getType());
  Value other = load.getOther();
  const bool isZero =
      !other || matchPattern(other, m_Zero()) || matchPattern(other, m_PosZeroFloat());
  return tile && tile.getElementType().isIntOrFloat() && load.getRun() == 1 && isZero &&
         load.getBuffer().getType().getElementType() == tile.getElementType() &&
         load.getVector() * tile.getElementTypeBitWidth() == vectorBits &&
         getLayout(tile).getNumRegisters() > int64_t(load.getVector()) &&
         llvm::all_of(load->getOperands(), [&](Value operand) { return slice.add(operand); });
}

/// Does a load bring something else in each iteration?
static bool varies(gpu::LoadOp load, scf::ForOp loop) {
  return llvm::any_of(load->getOperands(), [&](Value operand) {
    Operation *op = operand.getDefiningOp();
    return operand == loop.getInductionVar() || (op && loop->isProperAncestor(op));
  });
}

/// Are other copies one group, which begins at the start of the loop behind the wait for an earlier
/// one? Or are there none?
bool OperandFetcher::isGroupAtStart() {
  unsigned commits = 0;
  for (Operation &op : *loop.getBody()) {
    if (op.getNumRegions() > 0 || isa<CopyPrivateOp>(op))
      return false;
    if (auto wait = dyn_cast<AsyncWaitOp>(op)) {
      if (otherWait || commits > 0)
        return false;
      otherWait = wait;
    }
    // What is read before the group begins would come behind it.
    const bool isCopy = isa<CopyAsyncOp, AsyncCommitOp>(op);
    if ((isCopy && !otherWait) || (isa<CopyAsyncOp>(op) && commits > 0) ||
        (isa<LocalLoadOp, LocalStoreOp>(op) && otherWait && commits == 0))
      return false;
    commits += isa<AsyncCommitOp>(op);
  }
  return commits == (otherWait ? 1 : 0);
}

bool OperandFetcher::analyse() {
  Block *body = loop.getBody();
  if (body->getOps<DotOp>().empty() || !isGroupAtStart())
    return false;
  std::optional<int64_t> length = mostBeyond(loop.getUpperBound(), loop.getLowerBound());
  std::optional<int64_t> step = mostBeyond(loop.getStep(), {});
  if (length && step && *length <= *step)
    return false;
  for (auto load : body->getOps<gpu::LoadOp>()) {
    const bool isBehind = !otherWait || otherWait->isBeforeInBlock(load);
    if (isBehind && isCopyable(load) && varies(load, loop) && feedsProduct(load))
      loads.push_back(load);
  }
  return !loads.empty();
}

int64_t OperandFetcher::getBytes() {
  int64_t bytes = 0;
  for (gpu::LoadOp load : loads)
    bytes += typeOf(load).getBytesOfThread();
  return bytes * function.getBlockWarps() * 32;
}

int64_t OperandFetcher::getNewBytes(const SharedStaging &staging) {
  int64_t bytes = 0;
  llvm::SmallDenseMap<Type, unsigned> used;
  for (gpu::LoadOp load : loads) {
    PrivateType type = typeOf(load);
    const auto *known = staging.find(type);
    if (known == staging.end() || used[type]++ >= known->second.size())
      bytes += type.getBytesOfThread();
  }
  return bytes * function.getBlockWarps() * 32;
}

void OperandFetcher::beginCopy(gpu::LoadOp load, Value memory, const IRMapping &mapping,
                               Value isReached) {
  auto resolve = [&](OperandRange values) {
    return llvm::map_to_vector(values, [&](Value v) { return mapping.lookupOrDefault(v); });
  };
  SmallVector<Value> masks = resolve(load.getMasks());
  SmallVector<Attribute> maskDims(load.getMaskDims().getValue());
  masks.push_back(isReached);
  maskDims.push_back(builder.getDenseI64ArrayAttr({}));
  CopyPrivateOp::create(builder, load.getLoc(), memory, zero, load.getBuffer(),
                        resolve(load.getIndices()), resolve(load.getStrides()), masks,
                        load.getIndexDims(), builder.getArrayAttr(maskDims));
  AsyncCommitOp::create(builder, load.getLoc());
}

/// One stage for each load, of those that earlier loops have, if there are any.
SmallVector<Value> OperandFetcher::allocate(SharedStaging &staging) {
  SmallVector<Value> memories;
  llvm::SmallDenseMap<Type, unsigned> used;
  for (gpu::LoadOp load : loads) {
    PrivateType type = typeOf(load);
    SmallVector<Value> &known = staging[type];
    const unsigned number = used[type]++;
    if (number == known.size()) {
      builder.setInsertionPointToStart(function.getBlock());
      known.push_back(AllocPrivateOp::create(builder, load.getLoc(), type, nullptr));
    }
    memories.push_back(known[number]);
  }
  return memories;
}

void OperandFetcher::apply(SharedStaging &staging) {
  Location loc = loop.getLoc();
  const SmallVector<Value> memories = allocate(staging);
  builder.setInsertionPoint(loop);
  zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value first = loop.getLowerBound(), isFirst = isReached(first);
  IRMapping mapping = slice.cloneFor(builder, loop.getInductionVar(), first);
  for (auto [load, memory] : llvm::zip_equal(loads, memories))
    beginCopy(load, memory, mapping, isFirst);

  builder.setInsertionPointToStart(loop.getBody());
  Value next = arith::AddIOp::create(builder, loc, loop.getInductionVar(), loop.getStep());
  Value isNext = isReached(next);
  mapping = slice.cloneFor(builder, loop.getInductionVar(), next);
  // Behind the group of a load come those of the other loads, and the other group of an iteration.
  const auto numLoads = static_cast<int64_t>(loads.size());
  const int64_t pending = numLoads - (otherWait ? 0 : 1);
  if (otherWait)
    otherWait.setPending(otherWait.getPending() + numLoads);
  for (auto [load, memory] : llvm::zip_equal(loads, memories)) {
    gpu::LoadOp old = load;
    builder.setInsertionPoint(old);
    AsyncWaitOp::create(builder, old.getLoc(), pending);
    Value tile = PrivateLoadOp::create(builder, old.getLoc(), old.getType(), memory, zero);
    beginCopy(old, memory, mapping, isNext);
    old.replaceAllUsesWith(tile);
    old.erase();
  }
  loop = carryLoads(loop, mostCarried);
  builder.setInsertionPointAfter(loop);
  AsyncWaitOp::create(builder, loc, 0);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Registers of a thread for the scales of the next iteration.
static constexpr int64_t mostScales = 4;

/// Does each contraction of a loop start a new sum, which is complete in the same iteration?
static bool scalesSums(scf::ForOp loop) {
  auto isCarried = [&](Value acc) {
    auto argument = dyn_cast_or_null<BlockArgument>(acc);
    return argument && argument.getOwner() == loop.getBody();
  };
  auto dots = llvm::to_vector(loop.getBody()->getOps<WarpgroupDotOp>());
  auto waits = llvm::to_vector(loop.getBody()->getOps<WarpgroupWaitOp>());
  return !dots.empty() && llvm::none_of(dots, [&](WarpgroupDotOp dot) {
    return isa<RankedTensorType>(dot.getA().getType()) || isCarried(dot.getAcc()) ||
           dot.getAcc().getDefiningOp<WarpgroupWaitOp>();
  }) && llvm::all_of(waits, [&](WarpgroupWaitOp wait) { return wait.getPending() < dots.size(); });
}

namespace {

struct FetchOperands : tk::impl::FetchOperandsBase<FetchOperands> {
  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<TargetAttr>(targetAttrName);
    if (!target)
      return;
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      // What replaces a parameter is written while later tiles are read.
      if (!hasProducts(function) || getPlan(function).inPlace)
        continue;
      SmallVector<scf::ForOp> loops;
      function.walk([&](scf::ForOp loop) { loops.push_back(loop); });
      SharedStaging staging;
      for (scf::ForOp loop : loops) {
        if (scalesSums(loop)) {
          numLoops += carryLoads(loop, mostScales) != loop;
          continue;
        }
        OperandFetcher fetcher(function, loop);
        if (!fetcher.analyse()) {
          decline(loop, "tk-fetch-operands", "no thread computes operands from loads of the loop");
          continue;
        }
        if (!hasRoom(function, fetcher, staging, target)) {
          decline(loop, "tk-fetch-operands",
                  "with staging a multiprocessor would have too few bytes in flight");
          continue;
        }
        fetcher.apply(staging);
        ++numLoops;
      }
    }
  }

private:
  /// Has a multiprocessor enough in flight with the staging of each of its blocks?
  static bool hasRoom(FuncOp function, OperandFetcher &fetcher, const SharedStaging &staging,
                      TargetAttr target) {
    const int64_t before = exchangeBytesOf(function) + bytesOfBuffers(function),
                  used = before + fetcher.getNewBytes(staging),
                  threads = function.getBlockWarps() * 32;
    if (used > target.getShared())
      return false;
    auto blocksWith = [&](int64_t bytes) {
      return std::min((target.getShared() + sharedOfSystem) / (bytes + sharedOfSystem),
                      std::max<int64_t>(usualThreadsOfProcessor / threads, 1));
    };
    const int64_t blocks = blocksWith(used);
    // One block's threads convert while another one multiplies.
    if (blocks < std::min<int64_t>(blocksWith(before), 2))
      return false;
    return blocks * fetcher.getBytes() >= bytesInFlight;
  }
};

} // namespace
