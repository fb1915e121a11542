//===- SumSegments.cpp - sums of the terms with a key ---------------------===//
//
// A segment sum adds up the terms whose key is the index of the result. As it is written, each
// result goes through the terms of all keys. Terms that are sorted by their key are read once.
//
// 1. The pattern matches sums whose element is 0 unless the entry of a table at the sum's index
//    equals an index of the compute op. The element does not depend on that index otherwise. A
//    count of such terms is such a sum, too.
// 2. The terms are sorted by their entry into blocks of 128 (RowOrder.cpp). Terms whose entry is
//    outside of the index's range have no place.
// 3. A compute op adds up each block, in the order of the terms.
// 4. The sum goes over the blocks of the index.
//
// The order of the additions is the same in every run. The pattern declines if the sum of all terms
// takes less time.
//
//   %y = tk.compute ["g", "c"] {tk.reduce [sum] ["i"] {s[i] == g ? x[i, c] : 0}}
//     =>
//   %first, %row = the order of the terms (RowOrder.cpp)
//   %p = tk.compute ["b", "c"] {tk.reduce [sum] ["t"] {row[b, t] >= 0 ? x[row[b, t], c] : 0}}
//   %y = tk.compute ["g", "c"] {tk.reduce [sum] ["b"] from first[g] to first[g + 1] {p[b, c]}}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/split/SumSegments.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProducerKind.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/RowOrderCost.h"
#include "passes/tensor/operands/RowOrder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

#include <deque>

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-split-reductions:segments";
/// The terms of a block.
static constexpr int64_t termsOfBlock = 128;

namespace {

/// A sum of the terms whose key is an index of the compute op.
struct SegmentSum {
  ReduceOp reduce;
  LoadOp table;                  ///< the key, at the sum's index
  unsigned index;                ///< the position of the compute op's index
  Value value;                   ///< the term, or null if terms are counted
  SmallVector<Value> conditions; ///< under which the term is not 0, besides
  SmallVector<unsigned> columns; ///< the positions of indices that the term depends on
};

/// Sorts the terms of sums in one compute op.
class SegmentSorting {
public:
  SegmentSorting(KernelOp kernel, ComputeOp compute)
      : kernel(kernel), compute(compute), sorter(kernel, compute), builder(compute),
        loc(compute.getLoc()) {}

  bool pays(MutableArrayRef<SegmentSum> sums, bool isSorted);
  /// Has the sums go over blocks of the terms in `sorted`, which is created if there is none.
  void rewrite(MutableArrayRef<SegmentSum> sums, std::optional<RowOrder> &sorted);

private:
  RowOrder sort(SegmentSum &sum);
  Value storeBlocks(SegmentSum &sum, unsigned number);
  Value termOf(OpBuilder &at, const SegmentSum &sum, ValueRange indices, ReduceOp reduce);
  void sumBlocks(SegmentSum &sum, Value blocks);

  KernelOp kernel;
  ComputeOp compute;
  RowSorter sorter;
  OpBuilder builder;
  Location loc;
  RowOrder order;
};

} // namespace

//===----------------------------------------------------------------------===//
// The match
//===----------------------------------------------------------------------===//

static void collectConditions(Value condition, SmallVectorImpl<Value> &conditions) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
    collectConditions(both.getLhs(), conditions);
    return collectConditions(both.getRhs(), conditions);
  }
  conditions.push_back(condition);
}

/// The table whose entry at the sum's index `condition` compares with an index of `compute`, and
/// the position of that index.
static std::optional<std::pair<LoadOp, unsigned>> keyOf(Value condition, ReduceOp reduce,
                                                        ComputeOp compute) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq)
    return std::nullopt;
  for (auto [key, other] : {std::pair(compare.getLhs(), compare.getRhs()),
                            std::pair(compare.getRhs(), compare.getLhs())}) {
    auto index = dyn_cast<BlockArgument>(other);
    auto cast = key.getDefiningOp<arith::IndexCastOp>();
    auto table = cast ? cast.getIn().getDefiningOp<LoadOp>() : LoadOp();
    if (index && index.getOwner() == compute.getBlock() && table && !table.getPad() &&
        table.getIndices().size() == 1 && table.getIndices()[0] == reduce.getIndex(0) &&
        table.getType().isInteger(32))
      return std::pair(table, index.getArgNumber());
  }
  return std::nullopt;
}

/// The condition under which `term` is `value`, and not 0. Without a value, 1 is counted.
static Value splitTerm(Value term, Value &value) {
  Operation *op = term.getDefiningOp();
  if (auto select = dyn_cast_or_null<arith::SelectOp>(op)) {
    if (!matchPattern(select.getFalseValue(), m_AnyZeroFloat()) &&
        !matchPattern(select.getFalseValue(), m_Zero()))
      return {};
    value = select.getTrueValue();
    return select.getCondition();
  }
  if (isa_and_nonnull<arith::ExtUIOp, arith::UIToFPOp>(op) &&
      op->getOperand(0).getType().isInteger(1))
    return op->getOperand(0);
  return {};
}

static std::optional<SegmentSum> match(ReduceOp reduce, ComputeOp compute) {
  if (reduce.isOnline() || reduce.getNumAccumulators() != 1 || reduce.getNumIndices() != 1 ||
      reduce.getKind(0) != ReduceKind::Sum || !isConstantIntValue(reduce.getLower()[0], 0) ||
      !isKernelLevel(reduce.getUpper()[0], compute))
    return std::nullopt;
  SegmentSum sum{reduce, {}, 0, {}, {}, {}};
  Value condition = splitTerm(reduce.getYield().getValues()[0], sum.value);
  if (!condition)
    return std::nullopt;
  SmallVector<Value> conditions;
  collectConditions(condition, conditions);
  for (Value each : conditions) {
    auto key = sum.table ? std::nullopt : keyOf(each, reduce, compute);
    if (key)
      std::tie(sum.table, sum.index) = *key;
    else
      sum.conditions.push_back(each);
  }
  if (!sum.table)
    return std::nullopt;
  SmallVector<Value> parts = sum.conditions;
  if (sum.value)
    parts.push_back(sum.value);
  for (unsigned p = 0; p < compute.getNumIndices(); ++p) {
    Dependence onIndex(ValueRange{compute.getIndex(p)});
    if (llvm::none_of(parts, [&](Value part) { return onIndex.on(part); }))
      continue;
    if (p == sum.index)
      return std::nullopt;
    sum.columns.push_back(p);
  }
  // A reduction inside the term would be computed for each place.
  bool isPlain =
      llvm::none_of(*reduce.getBlock(), [](Operation &op) { return op.getNumRegions() > 0; });
  return isPlain ? std::optional(sum) : std::nullopt;
}

/// The sums of `compute` by one table and index.
static SmallVector<SegmentSum> findSums(KernelOp kernel, ComputeOp compute) {
  SmallVector<SegmentSum> sums;
  if (replacesParameter(kernel, compute))
    return sums;
  for (auto reduce : compute.getBlock()->getOps<ReduceOp>()) {
    std::optional<SegmentSum> sum = match(reduce, compute);
    if (sum && (sums.empty() || (sum->table.getTensor() == sums[0].table.getTensor() &&
                                 sum->index == sums[0].index &&
                                 isSameExtent(reduce.getUpper()[0], sums[0].reduce.getUpper()[0]))))
      sums.push_back(*sum);
  }
  return sums;
}

/// Whether the sums of sorted terms take less time.
bool SegmentSorting::pays(MutableArrayRef<SegmentSum> sums, bool isSorted) {
  auto isKnown = [&](Value extent) { return getSizeFact(kernel, extent).upper.has_value(); };
  Value numTerms = sums[0].reduce.getUpper()[0], numGroups = compute.getExtents()[sums[0].index];
  if (!llvm::all_of(compute.getExtents(), isKnown) || !isKnown(numTerms))
    return false;
  const double terms = guessSize(kernel, numTerms), groups = guessSize(kernel, numGroups) + 1;
  double plain = 0, sorted = isSorted ? 0 : RowSorter::timeOf(terms, groups, termsOfBlock);
  for (SegmentSum &sum : sums) {
    double columns = 1;
    for (unsigned p : sum.columns)
      columns *= guessSize(kernel, compute.getExtents()[p]);
    const double bytes = sum.reduce.getResult(0).getType().getIntOrFloatBitWidth() / 8.0;
    plain +=
        (sum.columns.empty() ? cost::countedTerm : cost::guardedTerm) * terms * groups * columns;
    sorted += 2 * cost::launch + cost::byte * bytes * terms * columns;
  }
  return sorted < plain;
}

//===----------------------------------------------------------------------===//
// The sums of blocks
//===----------------------------------------------------------------------===//

/// The term of the place `indices[0]`, `reduce`'s index; 0 if it has none. The other `indices` are
/// the columns.
Value SegmentSorting::termOf(OpBuilder &at, const SegmentSum &sum, ValueRange indices,
                             ReduceOp reduce) {
  Value row = indices[0];
  IRMapping mapping;
  mapping.map(reduce.getIndex(0), row);
  for (auto [p, column] : llvm::zip_equal(sum.columns, indices.drop_front()))
    mapping.map(compute.getIndex(p), column);
  Value holds =
      arith::CmpIOp::create(at, loc, arith::CmpIPredicate::sge, row, sorter.constant(at, 0));
  for (Value condition : sum.conditions) {
    Value other = cloneFrom(at, condition, compute, mapping);
    holds = arith::AndIOp::create(at, loc, holds, other);
  }
  Type type = reduce.getResult(0).getType();
  Value value = sum.value ? cloneFrom(at, sum.value, compute, mapping)
                          : createIdentity(at, loc, ReduceKind::Prod, type);
  Value zero = createIdentity(at, loc, ReduceKind::Sum, type);
  return arith::SelectOp::create(at, loc, holds, value, zero);
}

/// Stores the sum of each block's terms.
Value SegmentSorting::storeBlocks(SegmentSum &sum, unsigned number) {
  SmallVector<StringRef> names = {"block"};
  SmallVector<Value> extents = {order.numBlocks};
  for (unsigned p : sum.columns) {
    names.push_back(cast<StringAttr>(compute.getIndexNames()[p]).getValue());
    extents.push_back(compute.getExtents()[p]);
  }
  Type type = sum.reduce.getResult(0).getType();
  Value size = sorter.constant(builder, termsOfBlock);
  SmallVector<Value> rows;
  Value blocks = sorter.define(
      ".blocks" + std::string(number == 0 ? "" : std::to_string(number)), names, extents, type,
      [&](OpBuilder &at, ValueRange indices) -> Value {
        return ReduceOp::create(at, loc, ReduceKind::Sum, ArrayRef<StringRef>{"place"},
                                ValueRange{sorter.constant(at, 0)}, ValueRange{size}, type,
                                [&](OpBuilder &in, Location, ValueRange place) -> Value {
                                  SmallVector<Value> own = {
                                      sorter.loadIndex(in, order.blockRow, {indices[0], place[0]})};
                                  rows.push_back(own[0]);
                                  llvm::append_range(own, indices.drop_front());
                                  return termOf(in, sum, own, sum.reduce);
                                })
            .getResult(0);
      });
  // What depends on a row that is none reads 0.
  Dependence onRow(rows);
  blocks.getDefiningOp()->walk([&](LoadOp load) {
    if (load.getPad() ||
        llvm::none_of(load.getIndices(), [&](Value index) { return onRow.on(index); }))
      return;
    OpBuilder at(load);
    load.getPadMutable().assign(createIdentity(at, loc, ReduceKind::Sum, load.getType()));
  });
  return blocks;
}

/// Has the sum go over the blocks of its index.
void SegmentSorting::sumBlocks(SegmentSum &sum, Value blocks) {
  OpBuilder at(sum.reduce);
  Value group = compute.getIndex(sum.index);
  Value next = arith::AddIOp::create(at, loc, group, sorter.constant(at, 1));
  Value from = sorter.loadIndex(at, order.first, {group}),
        to = sorter.loadIndex(at, order.first, {next});
  auto total = ReduceOp::create(
      at, loc, ReduceKind::Sum, ArrayRef<StringRef>{"block"}, ValueRange{from}, ValueRange{to},
      sum.reduce.getResult(0).getType(), [&](OpBuilder &in, Location, ValueRange block) -> Value {
        SmallVector<Value> indices = {block[0]};
        for (unsigned p : sum.columns)
          indices.push_back(compute.getIndex(p));
        // Blocks of a group are blocks of the tensor, which the bounds do not show.
        Value zero = createIdentity(in, loc, ReduceKind::Sum, sum.reduce.getResult(0).getType());
        return LoadOp::create(in, loc, blocks, indices, zero);
      });
  sum.reduce.getResult(0).replaceAllUsesWith(total.getResult(0));
}

/// Sorts the terms by their entry.
RowOrder SegmentSorting::sort(SegmentSum &sum) {
  // The last group has no terms: its first block ends the blocks of the others.
  Value extent = compute.getExtents()[sum.index];
  Value numGroups = arith::AddIOp::create(builder, loc, extent, sorter.constant(builder, 1));
  return sorter.sort(
      sum.reduce.getUpper()[0], numGroups, termsOfBlock, [&](OpBuilder &at, Value row) -> Value {
        Value entry = sorter.loadIndex(at, sum.table.getTensor(), {row});
        Value least = sorter.constant(at, 0), none = sorter.constant(at, -1);
        Value isLeast = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::sge, entry, least);
        Value isBelow = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, entry, extent);
        Value isInside = arith::AndIOp::create(at, loc, isLeast, isBelow);
        return arith::SelectOp::create(at, loc, isInside, entry, none);
      });
}

void SegmentSorting::rewrite(MutableArrayRef<SegmentSum> sums, std::optional<RowOrder> &sorted) {
  SegmentSum &first = sums[0];
  for (SegmentSum &sum : sums)
    note(sum.reduce, passName, Verdict::Derived,
         "terms of the " + describe(sum.reduce) +
             " are sorted by the entry of a table, into blocks of " + Twine(termsOfBlock));
  if (!sorted)
    sorted = sort(first);
  order = *sorted;
  for (auto [number, sum] : llvm::enumerate(sums))
    sumBlocks(sum, storeBlocks(sum, static_cast<unsigned>(number)));
  eraseDead(compute);
}

namespace {
/// The terms of a table's entries, sorted.
struct SortedTerms {
  Value table, numTerms, numGroups;
  std::optional<RowOrder> order;
};
} // namespace

unsigned tk::sumSegments(KernelOp kernel) {
  unsigned numSums = 0;
  std::deque<SortedTerms> all;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>())) {
    SmallVector<SegmentSum> sums = findSums(kernel, compute);
    if (sums.empty())
      continue;
    SortedTerms own = {sums[0].table.getTensor(),
                       sums[0].reduce.getUpper()[0],
                       compute.getExtents()[sums[0].index],
                       {}};
    auto known = llvm::find_if(all, [&](const SortedTerms &sorted) {
      return sorted.table == own.table && isSameExtent(sorted.numTerms, own.numTerms) &&
             isSameExtent(sorted.numGroups, own.numGroups);
    });
    SegmentSorting sorting(kernel, compute);
    if (!sorting.pays(sums, known != all.end()))
      continue;
    SortedTerms &sorted = known == all.end() ? all.emplace_back(own) : *known;
    sorting.rewrite(sums, sorted.order);
    numSums += sums.size();
  }
  return numSums;
}
