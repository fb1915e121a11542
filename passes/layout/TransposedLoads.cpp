//===- TransposedLoads.cpp - loads whose tile is transposed ---------------===//
#include "passes/layout/TransposedLoads.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tk;

/// The axis lists of an access whose result axis `a` becomes axis `position[a]`.
static ArrayAttr renumberAxes(OpBuilder &builder, ArrayAttr dims, ArrayRef<int64_t> position) {
  SmallVector<Attribute> renumbered;
  for (Attribute list : dims) {
    SmallVector<int64_t> axes;
    for (int64_t axis : cast<DenseI64ArrayAttr>(list).asArrayRef())
      axes.push_back(position[axis]);
    renumbered.push_back(builder.getDenseI64ArrayAttr(axes));
  }
  return builder.getArrayAttr(renumbered);
}

void tk::foldTransposedLoads(gpu::FuncOp function) {
  function.walk([](gpu::TransposeOp transpose) {
    auto load = transpose.getSource().getDefiningOp<gpu::LoadOp>();
    bool hasTileOther = load && load.getOther() && isa<RankedTensorType>(load.getOther().getType());
    if (!load || !load->hasOneUse() || hasTileOther)
      return;
    SmallVector<int64_t> position(transpose.getPermutation().size());
    for (auto [axis, from] : llvm::enumerate(transpose.getPermutation()))
      position[from] = axis;
    OpBuilder builder(load);
    load.setIndexDimsAttr(renumberAxes(builder, load.getIndexDims(), position));
    load.setMaskDimsAttr(renumberAxes(builder, load.getMaskDims(), position));
    load.getResult().setType(transpose.getType());
    transpose.replaceAllUsesWith(load.getResult());
    transpose.erase();
  });
}

SmallVector<TransposedCopy> tk::separateTransposedLoads(gpu::FuncOp function) {
  SmallVector<TransposedCopy> copies;
  function.walk([&](gpu::TransposeOp transpose) {
    auto load = transpose.getSource().getDefiningOp<gpu::LoadOp>();
    if (!load || load->hasOneUse() || !llvm::all_of(load->getUsers(), [](Operation *user) {
          return isa<gpu::TransposeOp, gpu::DotOp>(user);
        }))
      return;
    OpBuilder builder(load);
    auto copy = cast<gpu::LoadOp>(builder.clone(*load));
    copies.push_back({copy, load, transpose.getPermutationAttr()});
    transpose.setOperand(copy.getResult());
  });
  return copies;
}

void tk::joinTransposedLoads(ArrayRef<TransposedCopy> copies) {
  for (auto [copy, original, permutation] : copies) {
    OpBuilder builder(original->getContext());
    builder.setInsertionPointAfter(original);
    Value transposed = gpu::TransposeOp::create(builder, copy.getLoc(), copy.getType(),
                                                original.getResult(), permutation);
    copy.replaceAllUsesWith(transposed);
    copy.erase();
  }
}
