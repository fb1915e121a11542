//===- PieceReductions.cpp - reductions of tiles that are cut -------------===//
#include "passes/memory/PieceReductions.h"

#include "passes/analysis/ScalarExpr.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

PieceReductions::PieceReductions(StoreOp store, int64_t axis) {
  auto stored = cast<RankedTensorType>(store.getValue().getType());
  for (auto reduce : store->getBlock()->getOps<gpu::ReduceOp>()) {
    auto tile = cast<RankedTensorType>(reduce.getSource().getType());
    if (reduce->isBeforeInBlock(store) && reduce.getAxis() == uint64_t(axis) &&
        tile.getShape() == stored.getShape() && tile.getEncoding() == stored.getEncoding() &&
        llvm::all_of(reduce->getUsers(), [&](Operation *user) {
          return user->getBlock() == store->getBlock() && store->isBeforeInBlock(user);
        }))
      reductions.push_back(reduce);
  }
  results.resize(reductions.size());
}

SmallVector<Value> PieceReductions::tiles() const {
  return llvm::map_to_vector(reductions,
                             [](gpu::ReduceOp reduce) -> Value { return reduce.getSource(); });
}

void PieceReductions::add(OpBuilder &builder, TilePieces &pieces, ArrayRef<int64_t> offsets,
                          ArrayRef<int64_t> shape) {
  for (auto [reduce, result] : llvm::zip_equal(reductions, results)) {
    Value piece = pieces.build(builder, reduce.getSource(), offsets, shape);
    Value part = gpu::ReduceOp::create(builder, reduce.getLoc(), reduce.getType(), piece,
                                       reduce.getKind(), reduce.getAxis());
    result =
        result ? createCombination(builder, reduce.getLoc(), reduce.getKind(), result, part) : part;
  }
}

void PieceReductions::finish() {
  for (auto [reduce, result] : llvm::zip_equal(reductions, results)) {
    reduce->replaceAllUsesWith(ValueRange(result));
    reduce->erase();
  }
}
