//===- PartStates.cpp - compute ops of partial softmax states -------------===//
#include "passes/tensor/split/PartStates.h"
#include "passes/machine/limits/Splits.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/Machine.h"
#include "passes/plan/Planner.h"
#include "passes/tensor/ranges/ChainMasks.h"
#include "passes/tensor/split/ChainRows.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;

using namespace limits::part_states;

/// The reduction goes from 0, or from max(0, begin - part * length), to min(length, end - part *
/// length), and nothing else needs the part's number but where its terms are; the end follows from
/// what is loaded.
bool PartStates::matchBounds() {
  auto upper = reduce.getUpper()[0].getDefiningOp<arith::MinSIOp>();
  if (!upper || upper->getBlock() != compute.getBlock() || !upper->hasOneUse())
    return false;
  for (unsigned n : {0, 1}) {
    std::optional<int64_t> length = getConstantIntValue(upper->getOperand(n));
    auto rest = upper->getOperand(1 - n).getDefiningOp<arith::SubIOp>();
    auto first = rest ? rest.getRhs().getDefiningOp<arith::MulIOp>() : nullptr;
    if (!length || !first || first.getLhs() != compute.getIndex(0) ||
        getConstantIntValue(first.getRhs()) != length || !compute.getIndex(0).hasOneUse())
      continue;
    offset = first;
    partLength = *length;
    end = rest.getLhs();
  }
  if (!offset)
    return false;
  Value lower = reduce.getLower()[0];
  if (getConstantIntValue(lower) != 0) {
    auto positive = lower.getDefiningOp<arith::MaxSIOp>();
    auto rest = positive ? positive.getRhs().getDefiningOp<arith::SubIOp>() : nullptr;
    if (!rest || getConstantIntValue(positive.getLhs()) != 0 || rest.getRhs() != offset)
      return false;
    begin = rest.getLhs();
  }
  SmallVector<Operation *> slice = getSlice(end, compute.getBlock());
  SmallVector<Value> ofRows =
      llvm::map_to_vector(rows, [&](unsigned p) -> Value { return compute.getIndex(p); });
  Dependence onRows(ofRows);
  variesByRow = onRows.on(end) || (begin && onRows.on(begin));
  if (variesByRow && findScores(reduce).empty())
    return false;
  return isOfRange(end) && (!begin || isOfRange(begin)) &&
         llvm::any_of(slice, [](Operation *op) { return isa<LoadOp>(op); });
}

/// Does a bound depend on nothing of the statement but batch indices and rows?
bool PartStates::isOfRange(Value bound) {
  return llvm::all_of(llvm::seq(compute.getNumIndices()), [&](unsigned p) {
    Dependence onIndex(ValueRange{compute.getIndex(p)});
    return isBatch(p) || llvm::is_contained(rows, p) || !onIndex.on(bound);
  });
}

/// Is `load` one of those that a reduction over all parts combines?
bool PartStates::matchReader(LoadOp load) {
  auto reader = load->getParentOfType<ReduceOp>();
  if (!reader || load.getPad() || load->getBlock() != reader.getBlock() ||
      reader.getNumIndices() != 1 || load.getIndices()[0] != reader.getIndex(0) ||
      !rangesOver(reader, 0, compute.getExtents()[0]))
    return false;
  Dependence onPart(ValueRange{reader.getIndex(0)});
  readers.insert(reader);
  return llvm::none_of(load.getIndices().drop_front(),
                       [&](Value index) { return onPart.on(index); });
}

/// Will blocks of warpgroups compute the states, each of which has a multiprocessor for itself, as
/// a share has, and is that worth the launches? A schedule block's `persistent` decides instead.
bool PartStates::paysInShares(gpu::TargetAttr target) {
  StatementShape shape = analyzeStatement(kernel, compute);
  Planner planner(shape, target, /*coarse=*/true);
  std::optional<int64_t> parts = getSizeFact(kernel, compute.getExtents()[0]).upper;
  const int64_t length = parts.value_or(0) * partLength;
  return llvm::any_of(shape.contractions, [&](Contraction &product) {
    if (!product.isOuter || !planner.isChainForWarpgroups(product, /*inShares=*/true))
      return false;
    // Warpgroups that divide the columns of the outputs have one tile of 64 rows.
    if (shape.upperOf(product.n).value_or(0) > mostColumnsOfWarpgroup)
      tilesOfRows = std::max<int64_t>(
          llvm::divideCeil(shape.upperOf(product.m).value_or(1), rowsOfWarpgroup), 1);
    int64_t size = length * mostBatch * shape.upperOf(product.n).value_or(0);
    bool isLong = size >= target.getProcessors() * termsOfProcessor * columnsOfResult;
    return planner.block.persistent.value_or(isLong && length >= leastRange);
  });
}

bool PartStates::match(gpu::TargetAttr target) {
  std::optional<ChainRows> chain = matchChain(kernel, compute);
  if (!chain || chain->grouped || compute->getParentOp() != kernel)
    return false;
  reduce = chain->reduce;
  rows = chain->rows;
  batch = chain->batch;
  if (batch.empty() || batch.front() != 0)
    return false;
  batch.erase(batch.begin());
  std::optional<int64_t> numRows = chain->countRows(kernel, compute);
  if (!numRows || *numRows > mostSharingRows || !matchBounds())
    return false;
  for (unsigned p : batch) {
    std::optional<int64_t> count = getSizeFact(kernel, compute.getExtents()[p]).upper;
    if (!count || *count > mostRanges)
      return false;
    mostBatch *= std::max<int64_t>(*count, 1);
  }
  if (mostBatch > mostRanges || !paysInShares(target))
    return false;
  for (unsigned r = 0; r < compute.getNumResults(); ++r) {
    SmallVector<unsigned> over = compute.getIndicesOf(r);
    if (over.front() != 0 ||
        !llvm::all_of(batch, [&](unsigned p) { return llvm::is_contained(over, p); }))
      return false;
    for (Operation *user : compute.getResult(r).getUsers()) {
      auto load = dyn_cast<LoadOp>(user);
      if (!load || !matchReader(load))
        return false;
    }
  }
  return llvm::all_of(readers, [&](ReduceOp reader) { return readsOneRange(reader); });
}

Value PartStates::batchIndexOf(LoadOp load, unsigned position) {
  unsigned result = cast<OpResult>(load.getTensor()).getResultNumber();
  SmallVector<unsigned> over = compute.getIndicesOf(result);
  return load.getIndices()[llvm::find(over, position) - over.begin()];
}

/// Are the states that `reader` combines those of one range, and is nothing else read by the parts'
/// numbers?
bool PartStates::readsOneRange(ReduceOp reader) {
  ScalarEquality equality;
  LoadOp first;
  return llvm::all_of(reader.getIndex(0).getUsers(), [&](Operation *user) {
    auto load = dyn_cast<LoadOp>(user);
    if (!load || load.getTensor().getDefiningOp() != compute.getOperation())
      return false;
    if (!first)
      first = load;
    return llvm::all_of(batch, [&](unsigned p) {
      return equality.equal(batchIndexOf(load, p), batchIndexOf(first, p));
    });
  });
}
