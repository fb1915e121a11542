//===- HoldNarrowTiles.cpp - keep packed, unpack at each use --------------===//
//
// A kernel that reads a row once may use it several times: for the sum, for the squares about the
// mean, and for the result. Reductions over the block's threads stand in between. Registers keep
// the values across the reductions, and f32 values take twice the registers of the 16-bit elements
// that they come from. This pass keeps the packed elements, and unpacks them at each use.
//
// 1. The reductions divide a block of code into sections.
// 2. A tile of f32 is computed again in each later section that uses it, if a thread has at least
//    `min-registers` elements of it. It must follow from loaded 8- or 16-bit tiles, scalars and
//    cheap tiles by conversions, basic arithmetic, and exponentials of one instruction. Divisions
//    and other functions are kept.
// 3. The computation starts from a `tkgpu.hold` of the loaded tile. Without it, the compiler of the
//    emitted text would find that it has the value already, and keep it.
// 4. A tile in thread-private staging is read again instead, also of f32, and takes no registers in
//    between. Exponentials of it stay in registers, and so does a tile whose staging is filled anew
//    before the last section.
//
// Before: %x = load; %f = extf %x; %s = reduce %f; %d = subf %f, %s
// After:  %x = load; %f = extf %x; %s = reduce %f; %h = hold %x; %g = extf %h; %d = subf %g, %s
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuPrivateOps.h"
#include "passes/Passes.h"
#include "passes/layout/TileComponents.h"
#include "passes/numerics/ApproximateExps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_HOLDNARROWTILES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

namespace {

/// One block of code, whose operations it divides into phases.
class Phases {
public:
  Phases(Block &block, int64_t minRegisters) : block(block), minRegisters(minRegisters) {}

  /// Returns how many tiles are recomputed.
  unsigned run();

private:
  bool isRefilled(PrivateLoadOp load);
  bool isSource(Value value);
  bool isRecomputable(Value value);
  bool isKept(Value value);
  Value inPhase(Value value, unsigned phase);

  Block &block;
  int64_t minRegisters;
  SmallVector<Operation *> starts; ///< of phases 1, 2, ...: the reductions
  DenseMap<Operation *, unsigned> phaseOf;
  DenseMap<Value, bool> recomputable;
  DenseMap<std::pair<Value, unsigned>, Value> versions;
  unsigned numRecomputed = 0;
};

} // namespace

static unsigned elementBits(Value tile) {
  Type element = getElementTypeOrSelf(tile.getType());
  return element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 64;
}

/// Is the staging that a tile was read from written anew before the last phase begins?
bool Phases::isRefilled(PrivateLoadOp load) {
  auto isOther = [&](Value stage) { // than the one that was read
    std::optional<int64_t> a = getConstantIntValue(stage), b = getConstantIntValue(load.getStage());
    return a && b && *a != *b;
  };
  for (Operation *op = load->getNextNode(); op && op != starts.back(); op = op->getNextNode()) {
    WalkResult walked = op->walk([&](Operation *inner) {
      auto copy = dyn_cast<CopyPrivateOp>(inner);
      auto store = dyn_cast<PrivateStoreOp>(inner);
      const bool writes =
          (copy && copy.getTarget() == load.getSource() && !isOther(copy.getStage())) ||
          (store && store.getTarget() == load.getSource() && !isOther(store.getStage()));
      return writes ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return true;
  }
  return false;
}

bool Phases::isSource(Value value) {
  if (auto load = dyn_cast_or_null<PrivateLoadOp>(value.getDefiningOp()))
    return !isRefilled(load);
  unsigned bits = elementBits(value);
  LayoutAttr layout = getLayout(value.getType());
  return (bits == 8 || bits == 16) && layout && layout.getNumRegisters() * bits % 32 == 0 &&
         isa_and_nonnull<gpu::LoadOp, HoldOp>(value.getDefiningOp());
}

/// Not worth an instruction in every phase: a tile whose elements are few, or no wider than those
/// that it comes from.
bool Phases::isKept(Value value) {
  if (isa_and_nonnull<PrivateLoadOp>(value.getDefiningOp()))
    return false;
  LayoutAttr layout = getLayout(value.getType());
  return !layout || layout.getNumRegisters() < minRegisters || elementBits(value) < 32;
}

bool Phases::isRecomputable(Value value) {
  if (!isTile(value) || isCheapTile(value))
    return true;
  auto [known, isNew] = recomputable.try_emplace(value, false);
  if (!isNew)
    return known->second;
  Operation *op = value.getDefiningOp();
  bool result = false;
  if (op && op->getBlock() == &block) {
    if (isSource(value))
      result = true;
    else if (isa<arith::ExtFOp, arith::SIToFPOp, arith::AddFOp, arith::SubFOp, arith::MulFOp,
                 arith::NegFOp, arith::SelectOp, BroadcastOp>(op) ||
             (isa<ExpDiffOp>(op) && hasMode(op, MathMode::Approx) && !readsPrivate(value)))
      result = llvm::all_of(op->getOperands(), [&](Value v) { return isRecomputable(v); });
  }
  return recomputable[value] = result;
}

/// `value`, which is recomputable, as a value of `phase`.
Value Phases::inPhase(Value value, unsigned phase) {
  Operation *op = value.getDefiningOp();
  if (!isTile(value) || isCheapTile(value) || phaseOf.lookup(op) == phase)
    return value;
  Value &version = versions[{value, phase}];
  if (version)
    return version;
  OpBuilder builder(starts[phase - 1]);
  Operation *&start = starts[phase - 1];
  Value result;
  if (isSource(value) && !isa<PrivateLoadOp>(op)) {
    builder.setInsertionPointAfter(start);
    result = HoldOp::create(builder, value.getLoc(), value.getType(), value);
  } else {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(inPhase(operand, phase));
    builder.setInsertionPointAfter(start);
    Operation *clone = builder.clone(*op);
    clone->setOperands(operands);
    result = clone->getResult(0);
    ++numRecomputed;
  }
  start = result.getDefiningOp();
  phaseOf[start] = phase;
  return versions[{value, phase}] = result;
}

unsigned Phases::run() {
  for (Operation &op : block) {
    if (isReduction(&op))
      starts.push_back(&op);
    phaseOf[&op] = starts.size();
  }
  if (starts.empty())
    return 0;
  SmallVector<Operation *> ops = llvm::to_vector(llvm::make_pointer_range(block));
  for (Operation *op : ops) {
    unsigned phase = phaseOf.lookup(op);
    if (isReduction(op))
      --phase; // it reads what the phase before it left
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      Operation *def = value.getDefiningOp();
      if (!def || def->getBlock() != &block || !isTile(value) || isCheapTile(value) ||
          isKept(value) || phaseOf.lookup(def) >= phase || !isRecomputable(value))
        continue;
      operand.set(inPhase(value, phase));
    }
  }
  return numRecomputed;
}

namespace {

struct HoldNarrowTiles : tk::impl::HoldNarrowTilesBase<HoldNarrowTiles> {
  using Base::Base;

  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      SmallVector<Block *> blocks;
      function.walk([&](Block *block) { blocks.push_back(block); });
      for (Block *block : blocks)
        numRecomputed += Phases(*block, minRegisters).run();
    }
  }
};

} // namespace
