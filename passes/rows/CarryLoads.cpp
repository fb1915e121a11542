//===- CarryLoads.cpp - numbers of the next iteration ---------------------===//
//
// A row's label comes by a load, and what it names by another that needs its result: a block that
// goes through rows would wait for memory at the start of each. Here the label of the next row is
// on its way while this one is reduced.
//
//   scf.for %r = %own ...                    %first = load labels[%own]
//     %l = load labels[%r]           →       scf.for %r = %own ... iter_args(%l = %first)
//     ... load x[%r, %l]                       %next = load labels[%r + step], if there is one
//                                              ... load x[%r, %l]
//                                              yield %next
//
//===----------------------------------------------------------------------===//
#include "passes/rows/CarryLoads.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/layout/TileComponents.h"
#include "passes/pipeline/LoopSlice.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace tk;

/// The loads as they are in `iteration`, if the loop reaches that.
static SmallVector<Value> loadFor(ArrayRef<gpu::LoadOp> loads, const LoopSlice &slice,
                                  scf::ForOp loop, Value iteration, OpBuilder &builder) {
  Location loc = loop.getLoc();
  Value isReached = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, iteration,
                                          loop.getUpperBound());
  IRMapping mapping = slice.cloneFor(builder, loop.getInductionVar(), iteration);
  return llvm::map_to_vector(loads, [&](gpu::LoadOp load) -> Value {
    auto clone = cast<gpu::LoadOp>(builder.clone(*load, mapping));
    clone.getMasksMutable().append(isReached);
    SmallVector<Attribute> dims(clone.getMaskDims().getValue());
    dims.push_back(builder.getDenseI64ArrayAttr({}));
    clone.setMaskDimsAttr(builder.getArrayAttr(dims));
    if (!clone.getOther()) {
      OpBuilder before(clone);
      TypedAttr zero = before.getZeroAttr(clone.getType());
      clone.getOtherMutable().assign(arith::ConstantOp::create(before, loc, zero));
    }
    return clone;
  });
}

/// The registers for a thread's elements of what `load` brings; too many without a layout.
static int64_t registersOf(gpu::LoadOp load) {
  if (!isTile(load.getResult()))
    return 1;
  const int64_t registers = registersOfTile(load.getType());
  return registers > 0 ? registers : std::numeric_limits<int64_t>::max();
}

scf::ForOp tk::carryScalarLoads(scf::ForOp loop) { return carryLoads(loop, 0); }

scf::ForOp tk::carryLoads(scf::ForOp loop, int64_t registers) {
  LoopSlice slice(loop);
  SmallVector<gpu::LoadOp> loads;
  for (auto load : loop.getBody()->getOps<gpu::LoadOp>()) {
    const bool isSingle = load.getType().isIntOrFloat();
    if ((!isSingle && registersOf(load) > registers) ||
        !llvm::all_of(load->getOperands(), [&](Value operand) { return slice.add(operand); }))
      continue;
    registers -= isSingle ? 0 : registersOf(load);
    loads.push_back(load);
  }
  if (loads.empty())
    return loop;

  IRRewriter rewriter(loop.getContext());
  rewriter.setInsertionPoint(loop);
  SmallVector<Value> first = loadFor(loads, slice, loop, loop.getLowerBound(), rewriter);
  auto loadNext = [&](OpBuilder &, Location loc, ArrayRef<BlockArgument>) {
    OpBuilder top = OpBuilder::atBlockBegin(loop.getBody());
    Value next = arith::AddIOp::create(top, loc, loop.getInductionVar(), loop.getStep());
    return loadFor(loads, slice, loop, next, top);
  };
  auto replaced = cast<LoopLikeOpInterface>(loop.getOperation())
                      .replaceWithAdditionalYields(
                          rewriter, first, /*replaceInitOperandUsesInLoop=*/false, loadNext);
  loop = cast<scf::ForOp>(replaced->getOperation());
  for (auto [load, carried] :
       llvm::zip_equal(loads, loop.getRegionIterArgs().take_back(loads.size()))) {
    gpu::LoadOp old = load;
    rewriter.replaceAllUsesWith(old.getResult(), carried);
    rewriter.eraseOp(old);
  }
  return loop;
}
