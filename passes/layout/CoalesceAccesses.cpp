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
#include "passes/layout/LayoutRewriter.h"
#include "passes/layout/TransposedLoads.h"
#include "passes/machine/Machine.h"
#include "passes/plan/ScheduleLimits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_COALESCEACCESSES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

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
