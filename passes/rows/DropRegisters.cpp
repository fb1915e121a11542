//===- DropRegisters.cpp - no registers past the end of a row -------------===//
//
// Tiles have power-of-two sizes. For a row of 5120 elements in a tile of 8192, a thread would hold
// and compute 3 elements past the end for every 5 of the row. This pass shortens the layouts.
//
// 1. Pattern `row-ends` takes kernels in which all tiles have one register, or all registers along
//    one axis and at the same places. No thread may take elements over from others, except in
//    reductions.
// 2. The indices along that axis (`tkgpu.iota`) say where the elements in use end. Every reduced
//    tile must be computed from such an index. If the last registers of all threads lie past the
//    end, the layouts hold only the registers before (`held`), in whole vectors.
// 3. Pattern `true-masks` takes kernels without matrix products. A comparison that holds in some
//    registers of all threads, whatever the sizes are, gets an attribute that says so
//    (SettledMasks.h). These statically true predicates cost no instruction.
//
// Before: %j = iota to 5120 : tensor<8192xindex, #tkgpu.layout<register = ...>>
// After:  %j = iota to 5120 : tensor<8192xindex, #tkgpu.layout<register = ..., held = 40>>
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuPrivateOps.h"
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/layout/SettledMasks.h"
#include "passes/layout/TileComponents.h"

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
  SmallVector<LayoutBit> registers; ///< none: they are not the same for all
  int64_t end = 0;                  ///< of the elements of use; 0: not known
};

} // namespace

static bool hasOneRegister(LayoutAttr layout) { return layout.getRegisterBits().empty(); }

/// Do all registers of a layout lie along one axis?
static bool isAlongOneAxis(LayoutAttr layout) {
  ArrayRef<LayoutBit> bits = layout.getRegisterBits();
  return llvm::all_of(bits, [&](LayoutBit bit) { return bit.axis == bits.front().axis; });
}

/// Does a thread have the same places along an axis in both?
static bool haveSamePlaces(ArrayRef<LayoutBit> a, ArrayRef<LayoutBit> b) {
  return a.size() == b.size() &&
         llvm::all_of_zip(a, b, [](LayoutBit x, LayoutBit y) { return x.step == y.step; });
}

/// Does `op` leave each element of its tiles in its thread and register, or join all of them?
static bool staysInPlace(Operation *op) {
  if (op->getDialect()->getNamespace() != TkGpuDialect::getDialectNamespace())
    return true;
  return isa<FuncOp, gpu::ReturnOp, ProgramIdOp, NumProgramsOp, MisalignmentOp, IotaOp,
             RotatedIotaOp, BroadcastOp, FunnelOp, gpu::LoadOp, StoreOp, gpu::ReduceOp, ArgReduceOp,
             HoldOp, AllocPrivateOp, PrivateStoreOp, PrivateLoadOp>(op);
}

/// Is an iota along the registers among what the elements of `tile` are computed from? If not, all
/// of them are of use, wherever the iotas of others end.
static bool isNumbered(Value tile, llvm::SmallPtrSetImpl<Operation *> &seen) {
  Operation *op = tile.getDefiningOp();
  if (!op || !seen.insert(op).second)
    return false;
  if (isa<IotaOp, RotatedIotaOp>(op))
    return !hasOneRegister(getLayout(tile.getType()));
  return llvm::any_of(op->getOperands(),
                      [&](Value operand) { return isTile(operand) && isNumbered(operand, seen); });
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
      if (!layout || layout.getHeld() != 0 || !isAlongOneAxis(layout))
        return WalkResult::interrupt();
      if (hasOneRegister(layout))
        continue;
      if (tiles.registers.empty())
        tiles.registers.assign(layout.getRegisterBits().begin(), layout.getRegisterBits().end());
      else if (!haveSamePlaces(tiles.registers, layout.getRegisterBits()))
        return WalkResult::interrupt();
    }
    if (isa<IotaOp, RotatedIotaOp>(op) && hasOneRegister(getLayout(op->getResult(0).getType())))
      return WalkResult::advance();
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
static unsigned registersBefore(ArrayRef<LayoutBit> registers, int64_t end) {
  int64_t vector = 1, held = int64_t(1) << registers.size();
  for (LayoutBit bit : registers) {
    if (bit.step != vector)
      break;
    vector *= 2;
  }
  auto placeOf = [&](int64_t number) {
    int64_t place = 0;
    for (auto [b, bit] : llvm::enumerate(registers))
      place += number >> b & 1 ? bit.step : 0;
    return place;
  };
  while (held > vector && placeOf(held - vector) >= end)
    held -= vector;
  return held;
}

/// Has all tiles hold so many registers, but for those of one.
static void holdRegisters(FuncOp function, unsigned held) {
  auto shorter = [&](RankedTensorType tile) {
    LayoutAttr layout = getLayout(tile);
    if (hasOneRegister(layout))
      return tile;
    return withLayout(tile, LayoutAttr::get(function.getContext(), layout.getRank(),
                                            layout.getRegisterBits(), layout.getLaneBits(),
                                            layout.getWarpBits(), held));
  };
  auto set = [&](ValueRange values) {
    for (Value value : values)
      if (auto tile = dyn_cast<RankedTensorType>(value.getType()))
        value.setType(shorter(tile));
      else if (auto memory = dyn_cast<PrivateType>(value.getType()))
        value.setType(PrivateType::get(value.getContext(), memory.getStages(),
                                       shorter(memory.getTile()), memory.getVector()));
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
  if (tiles.registers.empty() || tiles.end == 0)
    return 0;
  unsigned all = 1u << tiles.registers.size(), held = registersBefore(tiles.registers, tiles.end);
  if (held == all)
    return 0;
  holdRegisters(function, held);
  return all - held;
}

namespace {

struct DropRegisters : tk::impl::DropRegistersBase<DropRegisters> {
  using DropRegistersBase::DropRegistersBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    patterns.run("row-ends", [&] {
      for (FuncOp function : getOperation().getOps<FuncOp>())
        numDropped += dropRegisters(function);
    });
    patterns.run("true-masks", [&] {
      for (FuncOp function : getOperation().getOps<FuncOp>())
        if (!hasProducts(function))
          settleMasks(function);
    });
  }
};

} // namespace
