//===- RowKey.cpp - the integer that rows are sorted by -------------------===//
#include "passes/tensor/keys/RowKey.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/tensor/keys/DigitOrder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tk;

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

/// Calls `visit` for each value in `compute` that `value` is computed from, until it returns false.
static bool walkInputs(Value value, ComputeOp compute, llvm::function_ref<bool(Value)> visit) {
  SmallVector<Value> work = {value};
  llvm::SmallDenseSet<Value> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    Operation *op = next.getDefiningOp();
    if (op && !compute->isProperAncestor(op))
      continue;
    if (!visit(next))
      return false;
    if (op)
      llvm::append_range(work, getInputs(op));
  }
  return true;
}

bool tk::readsTable(Value key, ComputeOp compute) {
  bool reads = false;
  return walkInputs(key, compute,
                    [&](Value value) {
                      Operation *op = value.getDefiningOp();
                      reads |= isa_and_nonnull<LoadOp>(op);
                      return !op || op->getNumRegions() == 0;
                    }) &&
         reads;
}

SmallVector<LoadOp> tk::getLoads(Value value, ComputeOp compute) {
  SmallVector<LoadOp> loads;
  walkInputs(value, compute, [&](Value input) {
    if (auto load = input.getDefiningOp<LoadOp>())
      loads.push_back(load);
    return true;
  });
  return loads;
}

llvm::SetVector<Value> tk::getIndicesBeside(Value key, Value value) {
  llvm::SetVector<Value> indices;
  ScalarEquality equality;
  SmallVector<Value> work = {value};
  llvm::SmallDenseSet<Value> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (!seen.insert(next).second || (key && equality.equal(next, key)))
      continue;
    if (auto argument = dyn_cast<BlockArgument>(next)) {
      if (!isa<KernelOp>(argument.getOwner()->getParentOp()))
        indices.insert(next);
      continue;
    }
    llvm::append_range(work, getInputs(next.getDefiningOp()));
  }
  return indices;
}

Value tk::getExtent(Value index, ComputeOp compute) {
  auto argument = cast<BlockArgument>(index);
  if (argument.getOwner() == compute.getBlock())
    return compute.getExtents()[argument.getArgNumber()];
  auto reduce = dyn_cast<ReduceOp>(argument.getOwner()->getParentOp());
  if (!reduce || argument.getArgNumber() >= reduce.getNumIndices())
    return {};
  Value upper = reduce.getUpper()[argument.getArgNumber()];
  return rangesOver(reduce, argument.getArgNumber(), upper) &&
                 !compute->isAncestor(upper.getParentBlock()->getParentOp())
             ? upper
             : Value();
}

StringRef tk::getName(Value index) {
  auto argument = cast<BlockArgument>(index);
  Operation *owner = argument.getOwner()->getParentOp();
  ArrayAttr names = isa<ComputeOp>(owner) ? cast<ComputeOp>(owner).getIndexNames()
                                          : cast<ReduceOp>(owner).getIndexNames();
  return cast<StringAttr>(names[argument.getArgNumber()]).getValue();
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

SmallVector<Value> tk::splitRow(OpBuilder &at, Location loc, Value row, ValueRange extents) {
  SmallVector<Value> indices(extents.size());
  for (unsigned n = extents.size(); n-- > 1;) {
    indices[n] = FloorModOp::create(at, loc, row.getType(), row, extents[n]);
    row = FloorDivOp::create(at, loc, row.getType(), row, extents[n]);
  }
  indices[0] = row;
  return indices;
}

Value tk::joinRow(OpBuilder &at, Location loc, ValueRange indices, ValueRange extents) {
  Value row = indices[0];
  for (auto [index, extent] : llvm::drop_begin(llvm::zip_equal(indices, extents))) {
    row = arith::MulIOp::create(at, loc, row, extent);
    row = arith::AddIOp::create(at, loc, row, index);
  }
  return row;
}

RowOrders::Entry *RowOrders::find(const RowKey &key, int64_t rowsOfBlock) {
  for (Entry &entry : entries) {
    if (entry.rowsOfBlock != rowsOfBlock || entry.key.numBatches != key.numBatches ||
        entry.key.indices.size() != key.indices.size() ||
        !isSameExtent(entry.key.numKeys, key.numKeys))
      continue;
    ScalarEquality equality;
    bool isSame = true;
    for (unsigned n = 0; n < key.indices.size(); ++n) {
      isSame &= isSameExtent(entry.key.extents[n], key.extents[n]);
      equality.identify(entry.key.indices[n], key.indices[n]);
    }
    if (isSame && equality.equal(entry.key.key, key.key))
      return &entry;
  }
  return nullptr;
}

/// The first place in the kernel where all that `key` is computed from is known.
OpBuilder RowOrders::getPlace(const RowKey &key) {
  Block &body = kernel.getBody().front();
  Operation *place = *body.getOps<ComputeOp>().begin();
  auto needs = [&](Value value) {
    Operation *op = value.getDefiningOp();
    while (op && op->getBlock() != &body)
      op = op->getParentOp();
    if (op && op != key.compute && !op->isBeforeInBlock(place))
      place = op->getNextNode();
  };
  walkInputs(key.key, key.compute, [&](Value value) {
    if (Operation *op = value.getDefiningOp())
      llvm::for_each(op->getOperands(), needs);
    return true;
  });
  llvm::for_each(key.extents, needs);
  needs(key.numKeys);
  return OpBuilder(place);
}

/// Are rows sorted by two digits of their group? If the number of groups is not known they are, so
/// that chunks need not count each group.
static bool hasDigits(double batches, double rows, double groups, int64_t rowsOfBlock) {
  constexpr double fewGroups = 1024;
  return batches == 1 && groups > fewGroups &&
         DigitSorter::timeOf(rows, groups, rowsOfBlock) <
             RowSorter::timeOf(batches, rows, groups, rowsOfBlock);
}

double RowOrders::timeOf(double batches, double rows, double groups, int64_t rowsOfBlock) {
  return hasDigits(batches, rows, groups, rowsOfBlock)
             ? DigitSorter::timeOf(rows, groups, rowsOfBlock)
             : RowSorter::timeOf(batches, rows, groups, rowsOfBlock);
}

const RowOrder &RowOrders::get(const RowKey &key, int64_t rowsOfBlock, bool withPlaces) {
  if (Entry *entry = find(key, rowsOfBlock))
    return entry->order;
  OpBuilder builder = getPlace(key);
  ComputeOp compute = key.compute;
  Location loc = compute.getLoc();
  ComputeWriter writer(builder, loc, cast<StringAttr>(compute.getNames()[0]).getValue());
  Value numRows, batches;
  for (auto [n, extent] : llvm::enumerate(key.extents)) {
    Value &number = n < key.numBatches ? batches : numRows;
    number = number ? Value(arith::MulIOp::create(builder, loc, number, extent)) : extent;
  }
  // A last group has the rows whose key is outside.
  Value numGroups = arith::AddIOp::create(builder, loc, key.numKeys, writer.constant(builder, 1));
  Entry &entry = entries.emplace_back(Entry{key, rowsOfBlock, {}});
  auto groupOf = [&](OpBuilder &at, Value row) -> Value {
    SmallVector<Value> indices = splitRow(at, loc, row, key.extents);
    IRMapping mapping;
    mapping.map(ValueRange(key.indices), ValueRange(indices));
    Value own = cloneFrom(at, key.key, compute, mapping);
    // The compute op of the key may be erased.
    entry.key.key = own;
    entry.key.indices = indices;
    if (!own.getType().isIndex())
      own = arith::IndexCastOp::create(at, loc, at.getIndexType(), own);
    auto compare = [&](arith::CmpIPredicate predicate, Value bound) -> Value {
      return arith::CmpIOp::create(at, loc, predicate, own, bound);
    };
    Value isInside =
        arith::AndIOp::create(at, loc, compare(arith::CmpIPredicate::sge, writer.constant(at, 0)),
                              compare(arith::CmpIPredicate::slt, key.numKeys));
    return arith::SelectOp::create(at, loc, isInside, own, key.numKeys);
  };
  const StringRef name = cast<StringAttr>(compute.getNames()[0]).getValue();
  const bool isKnown = getSizeFact(kernel, numGroups).upper.has_value();
  if (!withPlaces &&
      (!isKnown || hasDigits(batches ? guessSize(kernel, batches) : 1, guessSize(kernel, numRows),
                             guessSize(kernel, numGroups), rowsOfBlock)))
    entry.order =
        DigitSorter(kernel, builder, loc, name).sort(numRows, numGroups, rowsOfBlock, groupOf);
  else
    entry.order = RowSorter(kernel, ComputeWriter(builder, loc, name))
                      .sort(batches, numRows, numGroups, rowsOfBlock, groupOf);
  return entry.order;
}

void RowOrders::eraseUnused() {
  for (Entry &entry : entries)
    if (entry.order.place && entry.order.place.use_empty())
      entry.order.place.getDefiningOp()->erase();
}
