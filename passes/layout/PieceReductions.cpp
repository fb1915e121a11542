//===- PieceReductions.cpp - reductions of tiles that are cut -------------===//
#include "passes/layout/PieceReductions.h"

#include "passes/analysis/ScalarExpr.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// Moves what is computed of `reduce` before `store` behind it; false if that cannot be, as where
/// it is stored.
static bool moveReadersBehind(gpu::ReduceOp reduce, StoreOp store) {
  Block *block = store->getBlock();
  llvm::SetVector<Operation *> readers;
  readers.insert(reduce);
  for (size_t i = 0; i < readers.size(); ++i)
    for (Operation *user : readers[i]->getUsers()) {
      if (user == store || user->getBlock() != block ||
          (user->isBeforeInBlock(store) && !isMemoryEffectFree(user)))
        return false;
      if (user->isBeforeInBlock(store))
        readers.insert(user);
    }
  Operation *last = store;
  for (Operation &op :
       llvm::make_early_inc_range(llvm::make_range(reduce->getIterator(), store->getIterator())))
    if (&op != reduce && readers.contains(&op)) {
      op.moveAfter(last);
      last = &op;
    }
  return true;
}

PieceReductions::PieceReductions(StoreOp store, int64_t axis) {
  auto stored = cast<RankedTensorType>(store.getValue().getType());
  auto isLaidOutAlike = [&](Value source) {
    auto tile = cast<RankedTensorType>(source.getType());
    return tile.getShape() == stored.getShape() && tile.getEncoding() == stored.getEncoding();
  };
  for (auto reduce : llvm::to_vector(store->getBlock()->getOps<gpu::ReduceOp>()))
    if (reduce.getAxis() == uint64_t(axis) && isLaidOutAlike(reduce.getSource()) &&
        reduce->isBeforeInBlock(store) && moveReadersBehind(reduce, store))
      reductions.push_back(reduce);
  for (auto reduce : store->getBlock()->getOps<ReduceRunsOp>())
    if (reduce.getAxis() != uint64_t(axis) && isLaidOutAlike(reduce.getSource()) &&
        reduce->isBeforeInBlock(store) && reduce->hasOneUse())
      if (auto user = dyn_cast<StoreOp>(*reduce->user_begin());
          user && user->getBlock() == store->getBlock() && store->isBeforeInBlock(user))
        across.push_back(reduce);
  results.resize(reductions.size());
}

SmallVector<Operation *> PieceReductions::get() const {
  SmallVector<Operation *> all(reductions.begin(), reductions.end());
  all.append(across.begin(), across.end());
  return all;
}

SmallVector<Value> PieceReductions::tiles() const {
  return llvm::map_to_vector(get(),
                             [](Operation *reduce) -> Value { return reduce->getOperand(0); });
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
  for (ReduceRunsOp reduce : across)
    addAcross(builder, pieces, reduce, offsets, shape);
}

/// What is reduced across the pieces' axis is stored for each piece at once.
void PieceReductions::addAcross(OpBuilder &builder, TilePieces &pieces, ReduceRunsOp reduce,
                                ArrayRef<int64_t> offsets, ArrayRef<int64_t> shape) {
  Value piece = pieces.build(builder, reduce.getSource(), offsets, shape);
  auto whole = cast<RankedTensorType>(reduce.getType());
  SmallVector<int64_t> part(shape);
  part[reduce.getAxis()] = whole.getDimSize(reduce.getAxis());
  auto type = RankedTensorType::get(
      part, whole.getElementType(),
      runsLayout(getLayout(piece.getType()), reduce.getAxis(), reduce.getRun()));
  Value reduced = ReduceRunsOp::create(builder, reduce.getLoc(), type, piece, reduce.getKind(),
                                       reduce.getAxis());
  pieces.storePiece(builder, cast<StoreOp>(*reduce->user_begin()), reduced, offsets);
}

SmallVector<StoreOp> PieceReductions::replacedStores() const {
  return llvm::map_to_vector(
      across, [](ReduceRunsOp reduce) { return cast<StoreOp>(*reduce->user_begin()); });
}

void PieceReductions::finish() {
  for (auto [reduce, result] : llvm::zip_equal(reductions, results)) {
    reduce->replaceAllUsesWith(ValueRange(result));
    reduce->erase();
  }
  for (ReduceRunsOp reduce : across) {
    reduce->user_begin()->erase();
    reduce->erase();
  }
}
