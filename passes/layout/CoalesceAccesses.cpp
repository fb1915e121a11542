//===- CoalesceAccesses.cpp - layouts, and coalesced accesses -------------===//
//
// A layout says which thread and which register holds each element of a tile. This pass gives every
// tile a layout, such that accesses to global memory are coalesced, and widens the accesses.
//
// 1. Pattern `transposed-loads`: the transpose of a loaded tile becomes a load of the transposed
//    tile.
// 2. Pattern `layouts`: tiles that elementwise operations and loops connect form a class
//    (TileComponents). Each class gets one layout (LayoutChoice). Matrix products prescribe theirs.
//    Accesses to global memory want consecutive threads at consecutive addresses, with vectors of
//    up to 16 bytes.
// 3. Cheap tiles (indices, masks, constants) are computed again in each layout in which they are
//    used. Other tiles get a `tkgpu.convert_layout` for a use in another layout.
// 4. Pattern `vectors`: an access takes the widest vector that alignment, masks and the layout's
//    registers allow. If masks allow no more than 4 bytes, the access takes the longest run of
//    neighbours instead: a vector where the mask holds for all of it, single elements elsewhere.
//    Kernels with matrix products have no runs.
// 5. Pattern `vector-masks`: if a bound cuts no aligned group of a vector's elements, one
//    comparison serves all of them.
//
// The pass reports an error if threads cannot hold their part of a product's operand. With option
// `naive`, consecutive threads go along the first axis, and each access takes one element.
//
//   %i = tkgpu.iota : tensor<512xindex>            %i = tkgpu.iota : tensor<512xindex, #l>
//   %x = tkgpu.load %a[%i] ... : tensor<512xf32> → %x = tkgpu.load %a[%i] ... {vector = 4}
//   tkgpu.store %x, ...                              : tensor<512xf32, #l>
//
// Here `#l` gives each thread 4 consecutive elements.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/layout/LayoutChoice.h"
#include "passes/layout/TransposedLoads.h"
#include "passes/machine/Machine.h"
#include "passes/plan/ScheduleLimits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tk {
#define GEN_PASS_DEF_COALESCEACCESSES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

namespace {

/// Puts the chosen layouts into the types of a function.
class LayoutRewriter {
public:
  LayoutRewriter(FuncOp function, const LayoutChoice &choice)
      : function(function), choice(choice) {}

  void run();
  unsigned getNumConversions() const { return numConversions; }

private:
  void recordLayouts();
  void rewriteOperands(Operation *op);
  void rewriteAccess(OperandRange indices, ArrayAttr indexDims, OperandRange masks,
                     ArrayAttr maskDims, LayoutAttr layout, Operation *op);
  void rewriteLoad(gpu::LoadOp load);
  void rewriteStore(StoreOp store);
  void rewriteReduction(Operation *op, ValueRange reduced, Value source,
                        llvm::function_ref<LayoutAttr(LayoutAttr)> leftOf);
  void setOperand(OpOperand &operand, LayoutAttr layout) {
    if (isTile(operand.get()))
      operand.set(inLayout(operand.get(), layout));
  }

  /// `value` as a tile with `layout`.
  Value inLayout(Value value, LayoutAttr layout);
  Value recompute(Value cheap, LayoutAttr layout);

  FuncOp function;
  const LayoutChoice &choice;
  DenseMap<Value, LayoutAttr> layouts; ///< of the tiles that are not cheap
  DenseMap<std::pair<Value, Attribute>, Value> versions;
  SmallVector<Operation *> cheapOps;
  unsigned numConversions = 0;
};

} // namespace

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
      .Case<gpu::ScanOp>([&](gpu::ScanOp scan) {
        rewriteReduction(op, scan.getTotal(), scan.getResult(), sliceAlong(scan.getAxis()));
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

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Gives `op` the vectors, or else the runs, that its access may take in its layout.
template <class Op> static void widen(Op op, AxisInfo &info, int64_t maxBytes, bool mayRun) {
  MemoryAccess access = MemoryAccess::of(op);
  LayoutAttr layout = getLayout(access.tile);
  VectorAccess vectors = analyseVectors(access, info, maxBytes);
  if (vectors.axis < 0 || !layout)
    return;
  int64_t neighbours = layout.getVectorWidth(vectors.axis);
  bool isRun = mayRun && vectors.run > 1 && neighbours > 1;
  op.setVector(std::min(isRun ? vectors.run : vectors.width, neighbours));
  op.setRun(isRun ? std::min(vectors.run, neighbours) : 1);
}

/// Are the elements that a load does not read all the same?
static bool hasOneOther(gpu::LoadOp load) {
  Value other = load.getOther();
  return !other || !isTile(other) || matchPattern(other, m_Constant());
}

static unsigned widenAccesses(FuncOp function) {
  AxisInfo info;
  int64_t maxBytes = vectorBytesOf(function);
  unsigned numVectors = 0;
  // Operands of products go through shared memory, by copies of whole vectors.
  bool hasDots = hasProducts(function);
  function.walk([&](Operation *op) {
    if (auto load = dyn_cast<gpu::LoadOp>(op); load && isTile(load.getResult())) {
      widen(load, info, maxBytes, !hasDots && hasOneOther(load));
      numVectors += load.getVector() > 1;
    } else if (auto store = dyn_cast<StoreOp>(op); store && isTile(store.getValue())) {
      widen(store, info, maxBytes, !hasDots);
      numVectors += store.getVector() > 1;
    }
  });
  return numVectors;
}

/// Where a bound cuts no aligned group of a vector's elements, compares the group's first index
/// with it, so that one comparison serves all of them.
static void compareGroups(FuncOp function) {
  // Bulk copies around products are recognised by their bounds as they stand.
  if (hasProducts(function))
    return;
  AxisInfo info;
  function.walk([&](arith::CmpIOp compare) {
    auto tile = dyn_cast<RankedTensorType>(compare.getLhs().getType());
    LayoutAttr layout = tile ? getLayout(tile) : LayoutAttr();
    if (!layout || tile.getRank() != 1 || compare.getPredicate() != arith::CmpIPredicate::slt)
      return;
    const AxisFacts left = info.of(compare.getLhs()).axes[0];
    const AxisFacts right = info.of(compare.getRhs()).axes[0];
    int64_t group = std::min({left.contiguity, left.divisibility, right.constancy,
                              right.divisibility, layout.getVectorWidth(0)});
    if (group <= 1)
      return;
    OpBuilder builder(compare);
    auto mask = arith::ConstantOp::create(
        builder, compare.getLoc(),
        DenseElementsAttr::get(tile, builder.getIntegerAttr(tile.getElementType(), -group)));
    Value first = arith::AndIOp::create(builder, compare.getLoc(), compare.getLhs(), mask);
    compare.getLhsMutable().assign(first);
  });
}

/// Whether threads can hold their shares of the products' factors; reports the first that they
/// cannot.
static bool holdsFactors(FuncOp function, const LayoutChoice &choice) {
  return !function
              .walk([&](DotOp dot) {
                DotPlan plan = choice.planOf(dot);
                if (plan.a && plan.b)
                  return WalkResult::advance();
                reportFactorLimit(function, plan.a ? dot.getB() : dot.getA());
                return WalkResult::interrupt();
              })
              .wasInterrupted();
}

namespace {

struct CoalesceAccesses : tk::impl::CoalesceAccessesBase<CoalesceAccesses> {
  using Base::Base;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    auto target = getOperation()->getAttrOfType<TargetAttr>(targetAttrName);
    const bool hasByteFloats = hasFeature(target, Feature::ByteFloats);
    patterns.run("transposed-loads", [&] {
      for (FuncOp function : getOperation().getOps<FuncOp>())
        foldTransposedLoads(function);
    });
    bool isPossible = true;
    patterns.run("layouts", [&] {
      for (FuncOp function : getOperation().getOps<FuncOp>())
        isPossible = isPossible && giveLayouts(function, hasByteFloats);
    });
    if (!isPossible)
      return signalPassFailure();
    if (naive)
      return;
    patterns.run("vectors", [&] {
      for (FuncOp function : getOperation().getOps<FuncOp>())
        numVectors += widenAccesses(function);
    });
    patterns.run("vector-masks", [&] {
      for (FuncOp function : getOperation().getOps<FuncOp>())
        compareGroups(function);
    });
  }

private:
  /// Returns false if a layout cannot hold what the schedule asks for.
  bool giveLayouts(FuncOp function, bool hasByteFloats) {
    AxisInfo info;
    LayoutChoice choice(function, info, hasByteFloats, /*coalesce=*/!naive);
    if (!holdsFactors(function, choice))
      return false;
    LayoutRewriter rewriter(function, choice);
    rewriter.run();
    numConversions += rewriter.getNumConversions();
    return true;
  }
};

} // namespace
