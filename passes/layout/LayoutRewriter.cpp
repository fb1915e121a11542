//===- LayoutRewriter.cpp - layouts in the types of tiles -----------------===//
//
// Each tile's type gets the layout of its class. A use in another layout gets a conversion, or, of
// a cheap tile, a computation in that layout. Reductions and scans give the layouts of their
// results.
//
//===----------------------------------------------------------------------===//
#include "passes/layout/LayoutRewriter.h"

#include "dialects/tkgpu/TkGpuHistogramOps.h"
#include "dialects/tkgpu/TkGpuRecurrenceOps.h"
#include "dialects/tkgpu/TkGpuSortOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

void LayoutRewriter::run() {
  recordLayouts();
  SmallVector<Operation *> work;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    bool isCheap = op->getNumResults() == 1 && isCheapTile(op->getResult(0));
    (isCheap ? cheapOps : work).push_back(op);
  });
  // Types last: what a cheap tile or a choice rests on must not change meanwhile.
  for (Operation *op : work)
    rewriteOperands(op);
  for (auto [value, layout] : layouts)
    value.setType(withLayout(value.getType(), layout));
  for (Operation *op : llvm::reverse(cheapOps))
    if (op->use_empty())
      op->erase();
}

void LayoutRewriter::recordLayouts() {
  auto record = [&](Value value) {
    if (isTile(value) && !isCheapTile(value))
      layouts[value] = choice.layoutOf(value);
  };
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    llvm::for_each(op->getResults(), record);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), record);
  });
}

Value LayoutRewriter::inLayout(Value value, LayoutAttr layout) {
  auto known = layouts.find(value);
  if (known != layouts.end() && known->second == layout)
    return value;
  Value &version = versions[{value, layout}];
  if (version)
    return version;
  if (known == layouts.end()) {
    Value computed = recompute(value, layout);
    return versions[{value, layout}] = computed;
  }
  OpBuilder builder(function.getContext());
  builder.setInsertionPointAfterValue(value);
  // The source's type gets its layout at the end, as all do.
  version = ConvertLayoutOp::create(builder, value.getLoc(), withLayout(value.getType(), layout),
                                    value, nullptr, nullptr);
  ++numConversions;
  return version;
}

Value LayoutRewriter::recompute(Value cheap, LayoutAttr layout) {
  Operation *op = cheap.getDefiningOp();
  OpBuilder builder(op->getContext());
  RankedTensorType type = withLayout(cheap.getType(), layout);
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    builder.setInsertionPointAfter(op);
    auto value = cast<DenseElementsAttr>(constant.getValue());
    return arith::ConstantOp::create(builder, op->getLoc(), type,
                                     value.isSplat() ? value.resizeSplat(type)
                                                     : value.reshape(type));
  }
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    LayoutAttr operandLayout = layout;
    if (auto broadcast = dyn_cast<BroadcastOp>(op); broadcast && isTile(operand))
      operandLayout = broadcastSourceLayout(layout, broadcast.getDims(),
                                            cast<RankedTensorType>(operand.getType()).getShape());
    operands.push_back(isTile(operand) ? inLayout(operand, operandLayout) : operand);
  }
  builder.setInsertionPointAfter(op);
  Operation *clone = builder.clone(*op);
  clone->setOperands(operands);
  clone->getResult(0).setType(type);
  return clone->getResult(0);
}

void LayoutRewriter::rewriteOperands(Operation *op) {
  auto sliceAlong = [](uint64_t axis) {
    return [axis](LayoutAttr layout) { return sliceLayout(layout, axis); };
  };
  auto followResult = [&](Operation *op) {
    if (op->getNumResults() == 1 && isTile(op->getResult(0)))
      for (OpOperand &operand : op->getOpOperands())
        setOperand(operand, layouts.lookup(op->getResult(0)));
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case<gpu::LoadOp>([&](gpu::LoadOp load) { rewriteLoad(load); })
      .Case<StoreOp>([&](StoreOp store) { rewriteStore(store); })
      .Case<DotOp>([&](DotOp dot) {
        DotPlan plan = choice.planOf(dot);
        setOperand(dot.getAMutable(), plan.a);
        setOperand(dot.getBMutable(), plan.b);
        setOperand(dot.getAccMutable(), plan.accumulator);
      })
      .Case<WarpgroupDotOp>([&](WarpgroupDotOp dot) {
        LayoutAttr accumulator = layouts.lookup(dot.getResult());
        setOperand(dot.getAccMutable(), accumulator);
        if (auto a = dyn_cast<RankedTensorType>(dot.getA().getType()))
          setOperand(dot.getAMutable(), warpgroupOperandLayout(accumulator, a.getDimSize(1),
                                                               a.getElementTypeBitWidth()));
      })
      .Case<gpu::ReduceOp>([&](gpu::ReduceOp reduce) {
        rewriteReduction(op, op->getResults(), reduce.getSource(), sliceAlong(reduce.getAxis()));
      })
      .Case<ReduceRunsOp>([&](ReduceRunsOp reduce) {
        rewriteReduction(op, op->getResults(), reduce.getSource(), [&](LayoutAttr layout) {
          return runsLayout(layout, reduce.getAxis(), reduce.getRun());
        });
      })
      .Case<ArgReduceOp>([&](ArgReduceOp reduce) {
        rewriteReduction(op, op->getResults(), reduce.getSource(), sliceAlong(reduce.getAxis()));
      })
      .Case<HistogramOp>([&](HistogramOp histogram) {
        rewriteReduction(op, {}, histogram.getBins(), sliceAlong(0));
      })
      .Case<SortOp>([&](SortOp sort) { rewriteReduction(op, {}, sort.getSource(), sliceAlong(0)); })
      .Case<gpu::ScanOp>([&](gpu::ScanOp scan) {
        rewriteReduction(op, scan.getTotal(), scan.getResult(), sliceAlong(scan.getAxis()));
      })
      .Case<RecurrenceOp>([&](RecurrenceOp recurrence) {
        rewriteReduction(op, recurrence.getLast(), recurrence.getResult(),
                         sliceAlong(recurrence.getAxis()));
      })
      .Case<BroadcastOp>([&](BroadcastOp broadcast) {
        if (auto source = dyn_cast<RankedTensorType>(broadcast.getSource().getType()))
          setOperand(broadcast.getSourceMutable(),
                     broadcastSourceLayout(layouts.lookup(broadcast.getResult()),
                                           broadcast.getDims(), source.getShape()));
      })
      .Case<TransposeOp>([&](TransposeOp transpose) {
        SmallVector<int64_t> inverse(transpose.getPermutation().size());
        for (auto [axis, from] : llvm::enumerate(transpose.getPermutation()))
          inverse[from] = axis;
        setOperand(transpose.getSourceMutable(),
                   permuteLayout(layouts.lookup(transpose.getResult()), inverse));
      })
      .Case<scf::ForOp>([&](scf::ForOp loop) {
        for (auto [init, result] : llvm::zip_equal(loop.getInitArgsMutable(), loop.getResults()))
          setOperand(init, layouts.lookup(result));
      })
      .Case<scf::YieldOp>([&](scf::YieldOp yield) {
        for (auto [operand, result] :
             llvm::zip_equal(yield->getOpOperands(), yield->getParentOp()->getResults()))
          setOperand(operand, layouts.lookup(result));
      })
      .Default(followResult);
}

void LayoutRewriter::rewriteAccess(OperandRange indices, ArrayAttr indexDims, OperandRange masks,
                                   ArrayAttr maskDims, LayoutAttr layout, Operation *op) {
  auto rewrite = [&](OperandRange values, ArrayAttr dims) {
    for (auto [i, value] : llvm::enumerate(values)) {
      auto tile = dyn_cast<RankedTensorType>(value.getType());
      if (!tile)
        continue;
      ArrayRef<int64_t> axes = cast<DenseI64ArrayAttr>(dims[i]).asArrayRef();
      setOperand(op->getOpOperand(values.getBeginOperandIndex() + i),
                 broadcastSourceLayout(layout, axes, tile.getShape()));
    }
  };
  rewrite(indices, indexDims);
  rewrite(masks, maskDims);
}

void LayoutRewriter::rewriteLoad(gpu::LoadOp load) {
  if (!isTile(load.getResult()))
    return;
  LayoutAttr layout = layouts.lookup(load.getResult());
  rewriteAccess(load.getIndices(), load.getIndexDims(), load.getMasks(), load.getMaskDims(), layout,
                load);
  if (load.getOther() && isTile(load.getOther()))
    setOperand(load.getOtherMutable()[0], layout);
}

void LayoutRewriter::rewriteStore(StoreOp store) {
  if (!isTile(store.getValue()))
    return;
  // A conversion has a layout, but was not there when the classes were formed.
  LayoutAttr coalesced = choice.storeLayout(store, layouts.lookup(store.getValue()));
  setOperand(store.getValueMutable(), coalesced);
  rewriteAccess(store.getIndices(), store.getIndexDims(), store.getMasks(), store.getMaskDims(),
                coalesced, store);
}

void LayoutRewriter::rewriteReduction(Operation *op, ValueRange reduced, Value source,
                                      llvm::function_ref<LayoutAttr(LayoutAttr)> leftOf) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(source.getType()).getShape();
  LayoutAttr layout = layouts.lookup(source);
  if (!layout)
    layout = choice.defaultLayout(shape);
  for (OpOperand &operand : op->getOpOperands())
    setOperand(operand, layout);
  for (Value result : reduced) {
    if (!isTile(result))
      continue;
    // What the reduction leaves has its layout; where its class has another one, convert at once.
    LayoutAttr left = leftOf(layout), wanted = layouts.lookup(result);
    if (left == wanted)
      continue;
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    auto convert = ConvertLayoutOp::create(
        builder, op->getLoc(), withLayout(result.getType(), wanted), result, nullptr, nullptr);
    result.replaceAllUsesExcept(convert, convert);
    layouts[result] = left;
    layouts[convert] = wanted;
    ++numConversions;
  }
}
