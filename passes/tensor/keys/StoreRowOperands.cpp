//===- StoreRowOperands.cpp - the operands of sorted rows -----------------===//
//
// A sorted row reads its operand at a place that a table gives. Bulk copies need boxes of a tensor.
//
// 1. Factors of the product are grouped into two operands: beside an operand that the block
//    selects, factors of the row join the row's operand.
// 2. A compute op stores the operand of the rows in their order, unless it is an element of one
//    tensor at the block and the place. Products with equal operands share it.
//
//   tk.reduce [sum] ["c"] {x[row[b, t], c] * w[group[b], c, f]}
//     =>
//   %r = tk.compute ["b", "t", "c"] {x[row[b, t], c]}
//   tk.reduce [sum] ["c"] {r[b, t, c] * w[group[b], c, f]}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/keys/StoreRowOperands.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/tensor/keys/RowKey.h"
#include "passes/tensor/normalize/GroupFactors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

/// Is `operand` an element of a tensor at iteration indices, each of them once?
static bool isElement(Value operand) {
  auto load = operand.getDefiningOp<LoadOp>();
  return load &&
         llvm::all_of(load.getIndices(), [](Value index) { return isa<BlockArgument>(index); });
}

namespace {
/// An operand of `reduce` and the tensor that has it.
struct StoredOperand {
  ReduceOp reduce;
  Value operand, tensor;
};
} // namespace

/// Stores `operand`, in a reduction of `sorted`, over `indices`.
static Value storeOperand(ComputeOp sorted, Value operand, ArrayRef<Value> indices) {
  OpBuilder builder(sorted);
  SmallVector<StringRef> names;
  SmallVector<Value> extents;
  for (Value index : indices) {
    names.push_back(getName(index));
    extents.push_back(getExtent(index, sorted));
  }
  ComputeWriter writer(builder, sorted.getLoc(), cast<StringAttr>(sorted.getNames()[0]).getValue());
  return writer.define(".rows", names, extents, operand.getType(),
                       [&](OpBuilder &at, ValueRange places) {
                         IRMapping mapping;
                         mapping.map(ValueRange(indices), places);
                         return cloneFrom(at, operand, sorted, mapping);
                       });
}

/// Do both reductions have the same operand?
static bool isSame(StoredOperand &stored, ReduceOp reduce, Value operand) {
  if (stored.reduce.getNumIndices() != reduce.getNumIndices() ||
      !haveSameRanges(stored.reduce, reduce))
    return false;
  ScalarEquality equality;
  for (auto [a, b] :
       llvm::zip_equal(stored.reduce.getBlock()->getArguments(), reduce.getBlock()->getArguments()))
    equality.identify(a, b);
  return equality.equal(stored.operand, operand);
}

void tk::storeRowOperands(ComputeOp sorted) {
  SmallVector<StoredOperand> all;
  SmallVector<ReduceOp> reduces;
  sorted->walk([&](ReduceOp reduce) { reduces.push_back(reduce); });
  for (ReduceOp reduce : reduces) {
    SmallVector<ReduceOp> around = getEnclosingReductions(reduce);
    if (reduce.isOnline() || reduce.getKind(0) != ReduceKind::Sum ||
        llvm::any_of(around, [](ReduceOp outer) { return outer.isOnline(); }))
      continue;
    groupFactors(reduce);
    Operation *multiply = reduce.getYield().getValues()[0].getDefiningOp();
    if (!isa_and_nonnull<arith::MulFOp, arith::MulIOp>(multiply))
      continue;
    for (Value factor : multiply->getOperands()) {
      Value operand = withoutExtension(factor);
      llvm::SetVector<Value> indices = getIndicesBeside({}, operand);
      SmallVector<Value> own = {sorted.getIndex(0), sorted.getIndex(1)};
      for (ReduceOp outer : llvm::reverse(around))
        llvm::append_range(own, outer.getBlock()->getArguments());
      llvm::append_range(own, reduce.getBlock()->getArguments());
      auto isOwn = [&](Value index) { return llvm::is_contained(own, index); };
      Value other = multiply->getOperand(factor == multiply->getOperand(0) ? 1 : 0);
      bool isOfRows = indices.contains(own[0]) && indices.contains(own[1]) &&
                      llvm::all_of(indices, isOwn) &&
                      !llvm::all_of(getIndicesBeside({}, other), isOwn);
      if (!isOfRows || isElement(operand))
        continue;
      auto known = llvm::find_if(all, [&](StoredOperand &stored) {
        return around.empty() && getEnclosingReductions(stored.reduce).empty() &&
               isSame(stored, reduce, operand);
      });
      Value tensor = known != all.end() ? known->tensor : storeOperand(sorted, operand, own);
      if (known == all.end())
        all.push_back({reduce, operand, tensor});
      OpBuilder at(multiply);
      IRMapping mapping;
      mapping.map(operand, LoadOp::create(at, reduce.getLoc(), tensor, own, Value()).getResult());
      Value loaded = cloneFrom(at, factor, sorted, mapping);
      multiply->replaceUsesOfWith(factor, loaded);
      break;
    }
  }
  eraseDead(sorted);
}
