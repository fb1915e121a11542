//===- TileComponents.cpp - tiles that share one layout -------------------===//
#include "passes/layout/TileComponents.h"

#include "dialects/tkgpu/TkGpuHistogramOps.h"
#include "dialects/tkgpu/TkGpuRecurrenceOps.h"
#include "dialects/tkgpu/TkGpuSortOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk;

bool tk::isReduction(Operation *op) {
  return isa<gpu::ReduceOp, gpu::ReduceRunsOp, gpu::ArgReduceOp, gpu::MomentsOp, gpu::WeightsOp,
             gpu::HistogramOp, gpu::SortOp>(op);
}

bool tk::crossesWarps(Value tile, int64_t axis) {
  gpu::LayoutAttr layout = gpu::getLayout(tile.getType());
  return layout && gpu::axisBits(layout, axis).warps != 0;
}

bool tk::isMeeting(Operation *op) {
  if (isa<gpu::HistogramOp, gpu::SortOp>(op))
    return true;
  if (auto reduce = dyn_cast<gpu::ReduceOp>(op))
    return crossesWarps(reduce.getSource(), reduce.getAxis());
  if (auto reduce = dyn_cast<gpu::ReduceRunsOp>(op)) {
    gpu::LayoutAttr layout = gpu::getLayout(reduce.getSource().getType());
    return layout && gpu::runBits(layout, reduce.getAxis(), reduce.getRun()).warps != 0;
  }
  auto reduce = dyn_cast<gpu::ArgReduceOp>(op);
  return reduce && crossesWarps(reduce.getSource(), reduce.getAxis());
}

bool tk::hasProducts(gpu::FuncOp function) {
  return function
      .walk([](Operation *op) {
        return isa<gpu::DotOp, gpu::WarpgroupDotOp>(op) ? WalkResult::interrupt()
                                                        : WalkResult::advance();
      })
      .wasInterrupted();
}

bool tk::isCheapTile(Value value) {
  if (!isTile(value))
    return false;
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<gpu::IotaOp, gpu::RotatedIotaOp, arith::ConstantOp>(op))
    return true;
  auto isCheapOperand = [](Value operand) { return !isTile(operand) || isCheapTile(operand); };
  if (auto broadcast = dyn_cast<gpu::BroadcastOp>(op))
    return isCheapOperand(broadcast.getSource());
  if (!op->hasTrait<OpTrait::Elementwise>() || op->getNumResults() != 1)
    return false;
  Type element = cast<RankedTensorType>(value.getType()).getElementType();
  return element.isIntOrIndex() && llvm::all_of(op->getOperands(), isCheapOperand);
}

int64_t tk::registersOfTile(Type tile) {
  constexpr int64_t bitsOfIndex = 64, bitsOfRegister = 32;
  gpu::LayoutAttr layout = gpu::getLayout(tile);
  Type element = getElementTypeOrSelf(tile);
  const int64_t bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : bitsOfIndex;
  return layout ? llvm::divideCeil(layout.getNumRegisters() * bits, bitsOfRegister) : 0;
}

bool tk::readsPrivate(Value value) {
  llvm::SetVector<Value> reached;
  reached.insert(value);
  for (size_t i = 0; i < reached.size(); ++i) {
    Operation *op = reached[i].getDefiningOp();
    if (!op || !isTile(reached[i]))
      continue;
    if (isa<gpu::PrivateLoadOp>(op))
      return true;
    reached.insert_range(op->getOperands());
  }
  return false;
}

TileComponents::TileComponents(gpu::FuncOp function) {
  collect(function);
  classes.grow(values.size());
  function.walk([&](Operation *op) { tie(op); });
  classes.compress();
  memberLists.resize(classes.getNumClasses());
  for (auto [number, value] : llvm::enumerate(values))
    memberLists[classes[number]].push_back(value);
}

void TileComponents::collect(gpu::FuncOp function) {
  auto add = [&](Value value) {
    if (!isTile(value) || isCheapTile(value))
      return;
    numbers[value] = values.size();
    values.push_back(value);
  };
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    llvm::for_each(op->getResults(), add);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), add);
  });
}

void TileComponents::tie(Value a, Value b) {
  auto first = numbers.find(a), second = numbers.find(b);
  if (first == numbers.end() || second == numbers.end())
    return;
  if (cast<RankedTensorType>(a.getType()).getShape() ==
      cast<RankedTensorType>(b.getType()).getShape())
    classes.join(first->second, second->second);
}

void TileComponents::tie(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case<scf::ForOp>([&](scf::ForOp loop) {
        auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
        for (auto [init, argument, yielded, result] :
             llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs(), yield.getOperands(),
                             loop.getResults())) {
          tie(result, argument);
          tie(result, init);
          tie(result, yielded);
        }
      })
      .Case<scf::IfOp>([&](scf::IfOp branch) {
        for (Region &region : branch->getRegions())
          if (!region.empty())
            for (auto [yielded, result] : llvm::zip_equal(
                     region.front().getTerminator()->getOperands(), branch.getResults()))
              tie(result, yielded);
      })
      .Case<gpu::DotOp>([&](gpu::DotOp dot) { tie(dot.getAcc(), dot.getResult()); })
      .Case<gpu::WarpgroupDotOp>(
          [&](gpu::WarpgroupDotOp dot) { tie(dot.getAcc(), dot.getResult()); })
      .Case<gpu::WarpgroupWaitOp>([&](gpu::WarpgroupWaitOp wait) {
        for (auto [source, result] : llvm::zip_equal(wait.getSources(), wait.getResults()))
          tie(source, result);
      })
      .Case<gpu::FunnelOp>([&](gpu::FunnelOp funnel) {
        tie(funnel.getBefore(), funnel.getResult());
        tie(funnel.getHere(), funnel.getResult());
      })
      .Case<gpu::ScanOp>([&](gpu::ScanOp scan) { tie(scan.getSource(), scan.getResult()); })
      .Case<gpu::RecurrenceOp>([&](gpu::RecurrenceOp recurrence) {
        tie(recurrence.getDecays(), recurrence.getResult());
        tie(recurrence.getSource(), recurrence.getResult());
      })
      .Case<gpu::HistogramOp>(
          [&](gpu::HistogramOp histogram) { tie(histogram.getBins(), histogram.getWeights()); })
      .Case<gpu::ArgReduceOp>([&](gpu::ArgReduceOp reduce) {
        tie(reduce.getSource(), reduce.getIndices());
        tie(reduce.getValue(), reduce.getIndex());
      })
      .Default([&](Operation *other) {
        if (!other->hasTrait<OpTrait::Elementwise>() || other->getNumResults() != 1)
          return;
        for (Value operand : other->getOperands())
          tie(operand, other->getResult(0));
      });
}
