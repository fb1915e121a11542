//===- LimitRegisters.cpp - how many blocks a multiprocessor should hold --===//
//
// A row kernel loads, reduces and stores, and only other blocks load while one reduces. Without a
// limit, the assembler spends registers on loading everything at once, and few blocks fit a
// multiprocessor. Pattern `blocks` asks for more:
//
// 1. It takes kernels without matrix products that contain a reduction.
// 2. It counts the registers that a thread needs across a reduction. They hold the tiles that are
//    defined before and used after it, or before a loop around it. They also hold what a loop
//    carries, loads, and reads from thread-private staging.
// 3. A thread gets these and 32 registers to compute with. `min_blocks` is how many such blocks
//    fill the register file, up to 6 of 128 threads, or more of smaller blocks. The number never
//    forces a spill.
// 4. It asks for up to 8 blocks if the tiles that are loaded after the reduction fit, too. With
//    misalignment shifts (`tkgpu.funnel`), a thread gets 48 registers to compute with, and the
//    limit is 8. A persistent schedule bounds the number. Fewer than 2 blocks are no limit. Nor is
//    there one for threads that scan alone in a loop, of which there are as many as states.
//
// Pattern `consumers` sets the registers of consumer threads in kernels that rescale accumulators:
//
// 5. A thread gets what an iteration holds and 36 registers to compute with, and 24 more if scores
//    are masked. With more, ptxas computes all softmax numerators before the wait for the product
//    of the previous ones. Then only the rescaling and the conversion of numerators are left to do
//    after it. With this limit, ptxas computes some numerators after the wait.
//
// This pattern declines if it would free fewer than 24 registers, if numerators are not carried as
// 16 bits, or if an iteration loads tiles or computes with masked scores.
//
// Pattern `products` asks for two blocks where threads convert or compute operands of `mma.sync`
// that were copied ahead (tk-fetch-operands). Products of one block then run while another block's
// threads convert. It takes blocks of which the registers of only one would fit without a limit.
//
// 6. It counts the registers of the tiles that are live at once in the loop. These and 24 registers
//    to compute with must fit twice, and so must the shared memory. Loops beside it, such as those
//    of masked iterations, may spill: they have few iterations.
//
// Pattern `elements` asks for blocks of 1536 threads where threads compute much that needs no data
// from memory, such as random numbers. For 2048 threads, the most there are, ptxas takes 32
// registers a thread, and issues loads behind that arithmetic. With 40 registers it issues them
// first.
//
// Before: tkgpu.func @rows { ... } {num_warps = 4}
// After:  tkgpu.func @rows { ... } {min_blocks = 6, num_warps = 4}
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuPrivateOps.h"
#include "dialects/tkgpu/TkGpuProducts.h"
#include "dialects/tkgpu/TkGpuRecurrenceOps.h"
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/analysis/Declines.h"
#include "passes/analysis/TileLoops.h"
#include "passes/layout/TileComponents.h"
#include "passes/machine/Machine.h"
#include "passes/machine/OperationCost.h"
#include "passes/machine/TileFacts.h"
#include "passes/machine/limits/Launches.h"
#include "passes/rows/RowMemory.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/MathExtras.h"

namespace tk {
#define GEN_PASS_DEF_LIMITREGISTERS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::limit_registers;

/// Registers for the tiles from before a loop that it uses.
static int64_t registersOutside(scf::ForOp loop) {
  llvm::DenseSet<Value> outside;
  loop.walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (isTile(operand) && !isCheapTile(operand) &&
          !loop->isAncestor(operand.getParentBlock()->getParentOp()))
        outside.insert(operand);
  });
  int64_t sum = 0;
  for (Value value : outside)
    sum += registersOfTile(value.getType());
  return sum;
}

/// Of what is defined in the block of `reduction` before it, the registers that are used later on;
/// and those of what a loop around it uses.
static int64_t registersAcross(Operation *reduction) {
  int64_t sum = 0;
  for (Operation &op : *reduction->getBlock()) {
    if (&op == reduction)
      break;
    for (Value value : op.getResults()) {
      auto isLater = [&](Operation *user) {
        Operation *here = reduction->getBlock()->findAncestorOpInBlock(*user);
        return here && reduction->isBeforeInBlock(here);
      };
      if (isTile(value) && !isCheapTile(value) && llvm::any_of(value.getUsers(), isLater))
        sum += registersOfTile(value.getType());
    }
  }
  for (BlockArgument argument : reduction->getBlock()->getArguments())
    if (isTile(argument))
      sum += registersOfTile(argument.getType());
  if (auto loop = dyn_cast<scf::ForOp>(reduction->getParentOp()))
    sum += registersOutside(loop);
  return sum;
}

/// What finds the places of extrema compares all elements once more when an extremum is known, and
/// computes little else meanwhile.
static int64_t registersWithin(Operation *reduction) {
  auto places = dyn_cast<ArgReduceOp>(reduction);
  if (!places || !isTile(places.getSource()))
    return 0;
  return std::max<int64_t>(registersOfTile(places.getSource().getType()) - workingRegisters / 2, 0);
}

static bool isReductionOrScan(Operation &op) {
  return isReduction(&op) || isa<gpu::ScanOp, RecurrenceOp>(op);
}

/// Does a loop carry states from tile to tile, each of which a warp scans by itself?
static bool carriesStates(Operation *op) {
  auto scan = dyn_cast<gpu::ScanOp>(op);
  auto recurrence = dyn_cast<RecurrenceOp>(op);
  return (scan || recurrence) && isa<scf::ForOp>(op->getParentOp()) &&
         !crossesWarps(op->getOperand(0), scan ? scan.getAxis() : recurrence.getAxis());
}

/// Registers for what a loop carries from one step to the next, and for what it loads meanwhile,
/// when it computes little else.
static int64_t registersCarried(scf::ForOp loop) {
  int64_t carried = 0, loaded = 0;
  for (Value value : loop.getRegionIterArgs())
    if (isTile(value))
      carried += registersOfTile(value.getType());
  for (auto load : loop.getOps<gpu::LoadOp>())
    if (isTile(load.getResult()))
      loaded += registersOfTile(load.getType());
  // What has come early is all there at once.
  int64_t read = 0;
  for (auto load : loop.getOps<PrivateLoadOp>())
    read += registersOfTile(load.getType());
  if (carried > 0 && read > 0 && llvm::none_of(*loop.getBody(), isReductionOrScan))
    return carried + loaded + read + registersOutside(loop);
  return carried > 0 ? std::max<int64_t>(carried + loaded - workingRegisters / 2, 0) : 0;
}

/// Is a tile computed element by element where the only reader, an elementwise operation, needs it?
static bool isComputedAtUse(Value tile) {
  return tile.hasOneUse() && tile.getDefiningOp()->hasTrait<OpTrait::Elementwise>() &&
         tile.user_begin()->hasTrait<OpTrait::Elementwise>();
}

/// Registers of the tiles that are live at once in a loop of products. Products add to accumulators
/// in place, and a tile that is broadcast keeps its registers.
static int64_t registersInLoop(scf::ForOp loop) {
  llvm::DenseMap<Operation *, int64_t> ending;
  int64_t live = 0, most = 0;
  for (Operation &op : *loop.getBody()) {
    int64_t begun = 0;
    for (Value value : op.getResults()) {
      if (!isTile(value) || isCheapTile(value) || isa<DotOp, BroadcastOp>(op) ||
          value.use_empty() || isComputedAtUse(value))
        continue;
      Operation *last = nullptr;
      for (Operation *user : value.getUsers()) {
        Operation *here = loop.getBody()->findAncestorOpInBlock(*user);
        last = !last || last->isBeforeInBlock(here) ? here : last;
      }
      begun += registersOfTile(value.getType());
      ending[last] += registersOfTile(value.getType());
    }
    // The result of an elementwise operation takes the place of an operand.
    const bool isInPlace = op.hasTrait<OpTrait::Elementwise>();
    live += begun - (isInPlace ? ending.lookup(&op) : 0);
    most = std::max(most, live);
    live -= isInPlace ? 0 : ending.lookup(&op);
  }
  for (Value value : loop.getRegionIterArgs())
    if (isTile(value))
      most += registersOfTile(value.getType());
  return most + registersOutside(loop);
}

/// Registers for the tiles that are loaded behind `reduction`.
static int64_t registersBehind(Operation *reduction) {
  int64_t sum = 0;
  for (Operation &op : llvm::make_range(reduction->getIterator(), reduction->getBlock()->end()))
    if (auto load = dyn_cast<gpu::LoadOp>(op); load && isTile(load.getResult()))
      sum += registersOfTile(load.getType());
  return sum;
}

/// How many blocks of so many threads fit, of which each has `held` values and computes.
static int64_t blocksWith(int64_t held, int64_t working, int64_t threads) {
  int64_t registers = std::max(leastRegisters, held + working);
  return registersOfProcessor / (threads * llvm::alignTo(registers, registerUnitOfThread));
}

namespace {
/// What a step of a loop holds that takes accumulators from one reference to the next.
struct HeldInStep {
  int64_t registers = 0;
  bool hasMasks = false;
};
} // namespace

/// Whether `op` leaves scores as they are, or puts a constant in their place.
static bool isMask(arith::SelectOp op) {
  return op.getTrueValue().getDefiningOp<WarpgroupWaitOp>() &&
         matchPattern(op.getFalseValue(), m_Constant());
}

/// What is carried, and the scores. None where weights are not carried as 16 bits, or where a step
/// loads or chooses otherwise; nor where scores that are masked are computed with.
static std::optional<HeldInStep> heldInStep(scf::ForOp loop) {
  HeldInStep held;
  bool hasWeights = false, hasOthers = false, hasArithmetic = false;
  for (Value value : loop.getRegionIterArgs())
    if (isTile(value)) {
      Type element = getElementTypeOrSelf(value.getType());
      hasWeights |= element.isBF16() || element.isF16();
      held.registers += registersOfTile(value.getType());
    }
  loop.walk([&](Operation *op) {
    if (op->getNumResults() == 0 || !isTile(op->getResult(0)))
      return;
    auto select = dyn_cast<arith::SelectOp>(op);
    held.hasMasks |= select && isMask(select);
    hasOthers |= isa<gpu::LoadOp>(op) || (select && !isMask(select));
    auto product = dyn_cast<arith::MulFOp>(op);
    hasArithmetic |= cast<RankedTensorType>(op->getResult(0).getType()).getRank() > 1 &&
                     isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, math::FmaOp>(op) &&
                     !(product && isRescaledSum(product));
    if (auto dot = dyn_cast<WarpgroupDotOp>(op); dot && !isa<BlockArgument>(dot.getAcc()))
      held.registers += registersOfTile(dot.getType());
  });
  const bool isKnown = hasWeights && !hasOthers && !(held.hasMasks && hasArithmetic);
  return isKnown ? std::optional(held) : std::nullopt;
}

/// Step 5.
static void limitConsumers(WarpRolesOp roles) {
  HeldInStep most;
  WalkResult walked = roles.getConsumer().walk([&](arith::MulFOp product) {
    auto loop = dyn_cast<scf::ForOp>(product->getParentOp());
    if (!loop || !isRescaledSum(product))
      return WalkResult::advance();
    std::optional<HeldInStep> held = heldInStep(loop);
    if (!held)
      return WalkResult::interrupt();
    most.registers = std::max(most.registers, held->registers);
    most.hasMasks |= held->hasMasks;
    return WalkResult::advance();
  });
  const int64_t registers = llvm::alignTo(most.registers + workingInSteps, registerUnitOfThread);
  const int64_t had = roles.getConsumerRegisters().value_or(0);
  if (most.registers > 0 && !walked.wasInterrupted() && registers + spareInSteps <= had)
    roles.setConsumerRegisters(std::min(had, registers + (most.hasMasks ? workingWithMasks : 0)));
}

namespace {

struct LimitRegisters : tk::impl::LimitRegistersBase<LimitRegisters> {
  using LimitRegistersBase::LimitRegistersBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    patterns.run("consumers", [&] {
      getOperation().walk([](WarpRolesOp roles) {
        if (roles.getConsumerRegisters())
          limitConsumers(roles);
      });
    });
    patterns.run("blocks", [&] {
      for (FuncOp function : getOperation().getOps<FuncOp>())
        numLimited += limitBlocks(function);
    });
    patterns.run("products", [&] {
      auto target = getOperation()->getAttrOfType<TargetAttr>(targetAttrName);
      for (FuncOp function : getOperation().getOps<FuncOp>())
        numLimited += target && limitProducts(function, target);
    });
    patterns.run("elements", [&] {
      for (FuncOp function : getOperation().getOps<FuncOp>())
        numLimited += limitElements(function);
    });
  }

private:
  /// Asks for two blocks whose threads compute operands in turn; true if it did.
  static bool limitProducts(FuncOp function, TargetAttr target) {
    constexpr int64_t blocks = 2;
    const int64_t threads = function.getBlockWarps() * 32;
    int64_t most = 0;
    bool isOther = false;
    function.walk([&](Operation *op) {
      auto loop = dyn_cast<scf::ForOp>(op);
      isOther |= isa<WarpgroupDotOp, WarpRolesOp, BulkCopyOp>(op);
      if (loop && !loop.getBody()->getOps<DotOp>().empty() &&
          !loop.getBody()->getOps<PrivateLoadOp>().empty())
        most = std::max(most, registersInLoop(loop));
    });
    if (most == 0 || isOther || blocksWith(registersOfThread, 0, threads) >= blocks ||
        blocksWith(most, workingBesideProducts, threads) < blocks ||
        sharedBytesOfBlock(target, blocks) < bytesOfBuffers(function))
      return false;
    function.setMinBlocks(blocks);
    return true;
  }

  /// Of what threads compute for addresses and masks.
  static bool isAddress(Type element) { return element.isIndex() || element.isInteger(1); }

  /// Asks for fewer blocks than could be resident, so that loads come first; true if it did.
  static bool limitElements(FuncOp function) {
    double instructions = 0, loaded = 0;
    llvm::DenseSet<Operation *> waiting;
    bool isStraight = true;
    function.getBody().walk([&](Operation *op) {
      isStraight &= op->getNumRegions() == 0 && !isReduction(op) && !isa<DotOp>(op);
      const bool isLoad =
          isa<gpu::LoadOp>(op) && op->getNumResults() == 1 && isTile(op->getResult(0));
      if (isLoad)
        loaded = std::max(loaded, countThreadElements(op->getResult(0).getType()));
      if (isLoad || llvm::any_of(op->getOperands(), [&](Value operand) {
            return waiting.contains(operand.getDefiningOp());
          }))
        waiting.insert(op);
      else if (op->getNumResults() == 1 && isTile(op->getResult(0)) &&
               !isAddress(getElementTypeOrSelf(op->getResult(0).getType())))
        instructions +=
            elementCost(op).instructions * countThreadElements(op->getResult(0).getType());
    });
    const int64_t blocks = threadsBesideLoads / (function.getBlockWarps() * lanesOfWarp);
    if (!isStraight || loaded == 0 || instructions < leastBesideLoads * loaded || blocks < 2)
      return false;
    function.setMinBlocks(blocks);
    return true;
  }

  /// Asks for a number of blocks a multiprocessor; true if it did.
  static bool limitBlocks(FuncOp function) {
    int64_t across = -1, withLoads = 0, carried = 0;
    bool hasProduct = false, hasFunnels = false, hasStates = false;
    function.walk([&](Operation *op) {
      hasProduct |= isa<DotOp, WarpgroupDotOp>(op);
      hasStates |= carriesStates(op);
      hasFunnels |= isa<FunnelOp>(op);
      if (auto loop = dyn_cast<scf::ForOp>(op))
        carried = std::max(carried, registersCarried(loop));
      if (!isReduction(op))
        return;
      int64_t held = registersAcross(op) + registersWithin(op);
      across = std::max(across, held);
      withLoads = std::max(withLoads, held + registersBehind(op));
    });
    if (across < 0 || hasProduct)
      return decline(function, "tk-limit-registers:blocks", "the function reduces no rows");
    if (hasStates)
      return decline(function, "tk-limit-registers:blocks", "threads carry the states of a scan");
    across = std::max(across, carried);
    withLoads = std::max(withLoads, carried);
    int64_t threads = function.getBlockWarps() * 32;
    const int64_t share = std::max<int64_t>(usualThreads / threads, 1);
    const int64_t enough = enoughBlocks * share, most = mostBlocks * share;
    int64_t blocks =
        hasFunnels ? std::min(blocksWith(across, workingWithFunnels, threads), most)
                   : std::max(std::min(blocksWith(across, workingRegisters, threads), enough),
                              std::min(blocksWith(withLoads, workingRegisters, threads), most));
    // Of blocks that go through rows there are no more than have room for them.
    auto schedule = getTiles(function);
    if (schedule && schedule.getPersistent() != 0)
      blocks = getPlan(function).carriesTiles ? schedule.getPersistent()
                                              : std::min<int64_t>(blocks, schedule.getPersistent());
    if (blocks < 2)
      return decline(function, "tk-limit-registers:blocks",
                     "what a thread holds leaves no room for a second block");
    function.setMinBlocks(blocks);
    return true;
  }
};

} // namespace
