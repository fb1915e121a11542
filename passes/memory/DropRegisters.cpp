//===- DropRegisters.cpp - rows that end before their tiles do -------------===//
//
// Tiles have power-of-two sizes. Of a row of 5120 elements in a tile of 8192, a thread would keep
// and compute with 3 elements beyond the end for every 5 of the row.
//   1. Functions are looked at whose tiles all have one axis and one layout, and in which no thread
//      takes elements over from others but by reductions.
//   2. The numbers along their tiles say where what is of use ends, if all that is reduced goes by
//      such numbers. Where all threads' elements of the last registers are beyond that, the layout
//      holds only the registers before.
//   3. In functions without products masks say which registers no end lies before (SettledMasks.h).
//
// Before: %j = iota to 5120 : tensor<8192xindex, #tkgpu.layout<register = ...>>
// After:  %j = iota to 5120 : tensor<8192xindex, #tkgpu.layout<register = ..., held = 40>>
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuPrivateOps.h"
#include "passes/Passes.h"
#include "passes/memory/SettledMasks.h"
#include "passes/memory/TileComponents.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_DROPREGISTERS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

namespace {

/// What the tiles of a function have in common.
struct Tiles {
  LayoutAttr layout; ///< null: not the same for all
  int64_t end = 0;   ///< of the elements of use; 0: not known
};

} // namespace

/// Does `op` leave each element of its tiles in its thread and register, or join all of them?
static bool staysInPlace(Operation *op) {
  if (op->getDialect()->getNamespace() != TkGpuDialect::getDialectNamespace())
    return true;
  return isa<FuncOp, gpu::ReturnOp, ProgramIdOp, NumProgramsOp, MisalignmentOp, IotaOp,
             RotatedIotaOp, BroadcastOp, FunnelOp, gpu::LoadOp, StoreOp, gpu::ReduceOp, ArgReduceOp,
             HoldOp, AllocPrivateOp, PrivateStoreOp, PrivateLoadOp>(op);
}

/// Is an iota among what the elements of `tile` are computed from? If not, all of them are of use,
/// wherever the iotas of others end.
static bool isNumbered(Value tile, llvm::SmallPtrSetImpl<Operation *> &seen) {
  Operation *op = tile.getDefiningOp();
  if (!op || !seen.insert(op).second)
    return false;
  return isa<IotaOp, RotatedIotaOp>(op) || llvm::any_of(op->getOperands(), [&](Value operand) {
           return isTile(operand) && isNumbered(operand, seen);
         });
}

static Tiles commonTiles(FuncOp function) {
  Tiles tiles;
  WalkResult walked = function.walk([&](Operation *op) {
    if (!staysInPlace(op))
      return WalkResult::interrupt();
    llvm::SmallPtrSet<Operation *, 16> seen;
    if (isReduction(op) && isTile(op->getOperand(0)) && !isNumbered(op->getOperand(0), seen))
      return WalkResult::interrupt();
    for (Value result : op->getResults()) {
      if (!isTile(result))
        continue;
      LayoutAttr layout = getLayout(result.getType());
      if (!layout || layout.getRank() != 1 || (tiles.layout && layout != tiles.layout))
        return WalkResult::interrupt();
      tiles.layout = layout;
    }
    std::optional<uint64_t> end;
    if (auto iota = dyn_cast<IotaOp>(op))
      end = iota.getEnd();
    else if (auto rotated = dyn_cast<RotatedIotaOp>(op))
      end = rotated.getAround();
    else
      return WalkResult::advance();
    if (!end)
      return WalkResult::interrupt();
    tiles.end = std::max<int64_t>(tiles.end, *end);
    return WalkResult::advance();
  });
  return walked.wasInterrupted() ? Tiles() : tiles;
}

/// How many registers have elements before `end`, in whole vectors.
static unsigned registersBefore(LayoutAttr layout, int64_t end) {
  unsigned vector = layout.getVectorWidth(0), held = layout.getNumRegisters();
  while (held > vector && layout.getRegisterOffset(held - vector)[0] >= end)
    held -= vector;
  return held;
}

static void setLayout(FuncOp function, LayoutAttr layout) {
  auto set = [&](ValueRange values) {
    for (Value value : values)
      if (isTile(value))
        value.setType(withLayout(value.getType(), layout));
      else if (auto memory = dyn_cast<PrivateType>(value.getType()))
        value.setType(PrivateType::get(value.getContext(), memory.getStages(),
                                       withLayout(memory.getTile(), layout), memory.getVector()));
  };
  function.walk([&](Operation *op) {
    set(op->getResults());
    for (Region &region : op->getRegions())
      for (Block &block : region)
        set(block.getArguments());
    if (auto constant = dyn_cast<arith::ConstantOp>(op); constant && isTile(constant)) {
      auto elements = cast<DenseElementsAttr>(constant.getValue());
      constant.setValueAttr(elements.reshape(cast<ShapedType>(constant.getType())));
    }
  });
}

/// Returns how many registers of a thread are dropped.
static unsigned dropRegisters(FuncOp function) {
  Tiles tiles = commonTiles(function);
  if (!tiles.layout || tiles.end == 0 || tiles.layout.getHeld() != 0)
    return 0;
  unsigned held = registersBefore(tiles.layout, tiles.end);
  if (held == tiles.layout.getNumRegisters())
    return 0;
  auto shorter = LayoutAttr::get(function.getContext(), 1, tiles.layout.getRegisterBits(),
                                 tiles.layout.getLaneBits(), tiles.layout.getWarpBits(), held);
  setLayout(function, shorter);
  return tiles.layout.getNumRegisters() - held;
}

namespace {

struct DropRegisters : tk::impl::DropRegistersBase<DropRegisters> {
  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      numDropped += dropRegisters(function);
      if (!hasProducts(function))
        settleMasks(function);
    }
  }
};

} // namespace
