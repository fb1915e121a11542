//===- DigitOrder.cpp - rows sorted by two digits of their group ----------===//
//
// RowSorter counts each group in each chunk. Of many groups, the rows are sorted by a lower digit
// with about the square root of the number of groups as values, and then by the higher digit. Both
// orders keep rows of one value in their order.
//
// 1. `row` has the rows in the order of both digits, and `group` the group of each.
// 2. `start` has the first of the rows of each group: a binary search in `group`.
// 3. Blocks of one row are the rows. Of longer blocks, `first`, `group` and `row` follow from
//    `start` as in RowOrder.cpp.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/keys/DigitOrder.h"
#include "passes/machine/limits/Keys.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/SortCost.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;
using namespace tk;
using arith::CmpIPredicate;

using namespace limits::digit_order;

/// The number of values of the lower digit: a power of two.
static double valuesOf(double groups) { return std::exp2(std::round(std::log2(groups) / 2)); }

double DigitSorter::timeOf(double rows, double groups, int64_t rowsOfBlock) {
  const double low = valuesOf(groups), high = std::ceil(groups / low);
  const double steps = std::log2(rows) + 1;
  const double blocks = rowsOfBlock == 1 ? 0 : rows / static_cast<double>(rowsOfBlock) + groups;
  constexpr double launches = 3;
  return RowSorter::timeOf(1, rows, low, 1) + RowSorter::timeOf(1, rows, high, 1) +
         launches * cost::launch + cost::searched * (2 * rows + groups * steps) +
         cost::searched * blocks * (static_cast<double>(rowsOfBlock) + std::log2(groups));
}

/// Stores the rows in the order of both digits.
Value DigitSorter::storeRows(Value numRows, Value numGroups, GroupOf groupOf) {
  const bool isKnown = getSizeFact(kernel, numGroups).upper.has_value();
  const auto values =
      static_cast<int64_t>(isKnown ? valuesOf(guessSize(kernel, numGroups)) : valuesOfUnknown);
  Value raised = arith::AddIOp::create(builder, loc, numGroups, constant(builder, values - 1));
  Value high = divide(builder, raised, values);
  RowSorter byLow(kernel, ComputeWriter(builder, loc, prefix + ".low"));
  RowOrder low =
      byLow.sort({}, numRows, constant(builder, values), 1,
                 [&](OpBuilder &at, Value row) { return remainder(at, groupOf(at, row), values); });
  low.place.getDefiningOp()->erase();
  RowSorter byHigh(kernel, ComputeWriter(builder, loc, prefix + ".high"));
  RowOrder both = byHigh.sort({}, numRows, high, 1, [&](OpBuilder &at, Value place) {
    Value row = loadIndex(at, low.blockRow, {place, constant(at, 0)});
    return divide(at, groupOf(at, row), values);
  });
  both.place.getDefiningOp()->erase();
  return define(".sorted", {"place"}, {numRows}, builder.getI32Type(),
                [&](OpBuilder &at, ValueRange place) -> Value {
                  Value own = loadIndex(at, both.blockRow, {place[0], constant(at, 0)});
                  return LoadOp::create(
                      at, loc, low.blockRow, ValueRange{own, constant(at, 0)},
                      arith::ConstantOp::create(at, loc, at.getI32IntegerAttr(0)));
                });
}

/// Stores the blocks of the groups.
void DigitSorter::storeBlocks(RowOrder &order, Value rows, Value numRows, Value numGroups) {
  Type type = builder.getI32Type();
  Value size = constant(builder, order.rowsOfBlock);
  order.numBlocks =
      arith::AddIOp::create(builder, loc, divide(builder, numRows, order.rowsOfBlock), numGroups);
  auto rowsOf = [&](OpBuilder &at, Value group) -> Value {
    Value next = arith::AddIOp::create(at, loc, group, constant(at, 1));
    return arith::SubIOp::create(at, loc, loadIndex(at, start, {next}, 0),
                                 loadIndex(at, start, {group}, 0));
  };
  auto blocksOf = [&](OpBuilder &at, Value group) -> Value {
    Value raised =
        arith::AddIOp::create(at, loc, rowsOf(at, group), constant(at, order.rowsOfBlock - 1));
    return word(at, divide(at, raised, order.rowsOfBlock));
  };
  order.first =
      define(".first", {"g"}, {numGroups}, type, [&](OpBuilder &at, ValueRange g) -> Value {
        auto upTo = ScanOp::create(
            at, loc, ReduceKind::Sum, "h", constant(at, 0), numGroups, g[0], type,
            [&](OpBuilder &in, Location, ValueRange h) -> Value { return blocksOf(in, h[0]); });
        return arith::SubIOp::create(at, loc, upTo.getResult(), blocksOf(at, g[0]));
      });
  order.blockGroup =
      define(".group", {"b"}, {order.numBlocks}, type, [&](OpBuilder &at, ValueRange b) -> Value {
        auto begins = [&](OpBuilder &in, Value group) -> Value {
          Value first = loadIndex(in, order.first, {group}, std::numeric_limits<int32_t>::max());
          return arith::CmpIOp::create(in, loc, CmpIPredicate::sle, first, b[0]);
        };
        Value begun = countLeading(at, getMost(kernel, numGroups), begins);
        return word(at, arith::SubIOp::create(at, loc, begun, constant(at, 1)));
      });
  order.blockRow = define(
      ".row", {"b", "t"}, {order.numBlocks, size}, type,
      [&](OpBuilder &at, ValueRange bt) -> Value {
        Value group = loadIndex(at, order.blockGroup, {bt[0]});
        Value block = arith::SubIOp::create(at, loc, bt[0], loadIndex(at, order.first, {group}, 0));
        Value number = arith::MulIOp::create(at, loc, block, constant(at, order.rowsOfBlock));
        number = arith::AddIOp::create(at, loc, number, bt[1]);
        Value place = arith::AddIOp::create(at, loc, loadIndex(at, start, {group}, 0), number);
        Value row = loadIndex(at, rows, {place}, -1);
        Value isRow = arith::CmpIOp::create(at, loc, CmpIPredicate::slt, number, rowsOf(at, group));
        return word(at, arith::SelectOp::create(at, loc, isRow, row, constant(at, -1)));
      });
}

RowOrder DigitSorter::sort(Value numRows, Value numGroups, int64_t rowsOfBlock, GroupOf groupOf) {
  Type type = builder.getI32Type();
  RowOrder order;
  order.rowsOfBlock = rowsOfBlock;
  Value rows = storeRows(numRows, numGroups, groupOf);
  Value groups =
      define(".groups", {"place"}, {numRows}, type, [&](OpBuilder &at, ValueRange place) {
        return word(at, groupOf(at, loadIndex(at, rows, place)));
      });
  // Behind the last group all rows have begun.
  Value bounds = arith::AddIOp::create(builder, loc, numGroups, constant(builder, 1));
  const int64_t most = getMost(kernel, numRows);
  start = define(".start", {"g"}, {bounds}, type, [&](OpBuilder &at, ValueRange g) {
    return word(at, countLeading(at, most, [&](OpBuilder &in, Value place) -> Value {
                  Value own = loadIndex(in, groups, {place}, std::numeric_limits<int32_t>::max());
                  return arith::CmpIOp::create(in, loc, CmpIPredicate::slt, own, g[0]);
                }));
  });
  if (rowsOfBlock > 1) {
    storeBlocks(order, rows, numRows, numGroups);
    return order;
  }
  order.numBlocks = numRows;
  order.first = start;
  order.blockGroup = groups;
  order.blockRow = define(".row", {"b", "t"}, {numRows, constant(builder, 1)}, type,
                          [&](OpBuilder &at, ValueRange bt) -> Value {
                            return LoadOp::create(at, loc, rows, ValueRange{bt[0]}, Value());
                          });
  return order;
}
