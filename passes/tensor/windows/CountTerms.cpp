//===- CountTerms.cpp - sums over pixels become matrix products -----------===//
//
// 1. Store the operands that TMA loads cannot bring from where they lie, as [pixels, part and
//    column]. Along a window the windows' operand has the elements of the tensor, or, if the
//    window's taps are columns, the pixels. Whole vectors of columns are stored: nothing reads what
//    those behind the last one give.
// 2. One index counts the pixels. Each share has whole slices of them. Pixels behind the last one
//    lie outside of both tensors, where loads give zeros.
// 3. A compute op stores the product for each share, tap, row and column. Each tap is a remainder,
//    which says how far copies reach from a pixel. The original compute op adds the shares.
// 4. A batch has its groups' rows and columns side by side in the stored operands. Several groups
//    are one product: of its results those of a row and a column of one group are read.
//
//   %dw = tk.compute ["o", "r", "c"] {tk.reduce [sum] ["n", "a"] {
//           dy[n, a, o] * x[n, a + r, c]}}
//     =>
//   %z = tk.compute ["share", "tap", "row", "column"] {tk.reduce [sum] ["pixel"] {
//          dy[p / A, p % A, row] * x[p / A, p % A + tap, column]}}   p = share * length + pixel
//   %dw = tk.compute ["o", "r", "c"] {%z[0, r, o, c] + %z[1, r, o, c]}
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/TileFacts.h"
#include "passes/machine/limits/Windows.h"
#include "passes/tensor/normalize/IndexArithmetic.h"
#include "passes/tensor/normalize/PadConditions.h"
#include "passes/tensor/operands/PadFactors.h"
#include "passes/tensor/split/SignificandParts.h"
#include "passes/tensor/windows/CountedTerms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tk;

using namespace limits::count_terms;

namespace {

/// The rewriting of one sum.
class TermCounter {
public:
  TermCounter(const CountedSum &counted, const TermPlan &plan);
  void rewrite();

private:
  Value storeWindows();
  Value storeRows();
  Value
  storeOperand(StringRef suffix, SmallVector<Value> extents, Value width, bool hasPad, LoadOp load,
               llvm::function_ref<SmallVector<Value>(Arithmetic, ValueRange, Value)> indicesAt);
  void mapGroup(Arithmetic at, Value column, Value width, Value group, IRMapping &mapping);
  Value storeShares(Value windows, Value rows);
  Value createTerm(Arithmetic at, Value windows, Value rows, ValueRange places, Value count,
                   Value pair);
  Value createLoad(Arithmetic at, Value tensor, ValueRange indices);
  SmallVector<Value> clonesOf(Arithmetic at, ValueRange indices, const IRMapping &mapping);
  bool isColumns(const WindowAxis &axis) const {
    return plan.unrolled >> (&axis - sum.axes.begin()) & 1;
  }
  std::string nameOf(StringRef suffix) {
    return (cast<StringAttr>(sum.compute.getNames()[0]).getValue() + suffix).str();
  }

  CountedSum counted;
  WindowSum &sum;
  TermPlan plan;
  Location loc;
  OpBuilder before;                                 ///< at the compute op
  SmallVector<const WindowAxis *> windows, columns; ///< whose taps are taps, and columns
  SmallVector<Value> pixelExtents, tapExtents, columnExtents, rowExtents;
  Value width, height;                                ///< columns and rows of a product
  bool isWidthPadded = false, isHeightPadded = false; ///< there are some behind the last one
  Value products;                                     ///< products of the batch
  bool hasProducts() const { return static_cast<bool>(counted.batch); }
};

} // namespace

TermCounter::TermCounter(const CountedSum &given, const TermPlan &plan)
    : counted(given), sum(counted.sum), plan(plan), loc(ReduceOp(sum.reduce).getLoc()),
      before(sum.compute) {
  for (BlockArgument pixel : counted.pixels)
    pixelExtents.push_back(sum.extentOf(pixel));
  for (const WindowAxis &axis : sum.axes) {
    (isColumns(axis) ? columns : windows).push_back(&axis);
    (isColumns(axis) ? columnExtents : tapExtents).push_back(sum.extentOf(axis.place));
  }
  Arithmetic at{before, loc};
  Value groups = at.number(plan.groups);
  rowExtents = {sum.extentOf(counted.row)};
  if (counted.batch) {
    columnExtents.push_back(groups);
    rowExtents.insert(rowExtents.begin(), groups);
  }
  if (counted.column)
    columnExtents.push_back(sum.extentOf(counted.column));
  width = at.product(columnExtents);
  height = at.product(rowExtents);
  // Loads along a row of several tensors begin at whole vectors.
  auto isWhole = [&](Value size) {
    return getSizeFact(sum.kernel, size).divisor % halvesOfVector == 0;
  };
  isWidthPadded = counted.isStored && !isWhole(width);
  isHeightPadded = counted.isRowStored && !isWhole(height);
  if (isWidthPadded)
    width = createMultiple(before, loc, width, halvesOfVector);
  if (isHeightPadded)
    height = createMultiple(before, loc, height, halvesOfVector);
  products = counted.batch ? at.div(sum.extentOf(counted.batch), groups) : at.number(1);
}

SmallVector<Value> TermCounter::clonesOf(Arithmetic at, ValueRange indices,
                                         const IRMapping &mapping) {
  IRMapping own = mapping;
  return llvm::map_to_vector(
      indices, [&](Value index) { return cloneFrom(at.builder, index, sum.compute, own); });
}

/// An operand as [pixels, part and column], with `extents` of pixels and columns of a part.
/// `indicesAt` gives the indices of `load` at a place and a column.
Value TermCounter::storeOperand(
    StringRef suffix, SmallVector<Value> extents, Value width, bool hasPad, LoadOp load,
    llvm::function_ref<SmallVector<Value>(Arithmetic, ValueRange, Value)> indicesAt) {
  Arithmetic outside{before, loc};
  SmallVector<std::string> texts;
  for (size_t n = 0; n < extents.size(); ++n)
    texts.push_back("pixel" + std::to_string(n));
  texts.push_back("lane");
  extents.push_back(outside.mul(outside.number(sum.countParts()), width));
  std::string name = nameOf(suffix);
  auto statement = ComputeOp::create(
      before, loc, llvm::to_vector_of<StringRef>(texts), extents,
      ArrayRef<Type>{sum.isInParts() ? before.getBF16Type() : sum.element},
      ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{},
      [&](OpBuilder &body, Location, ValueRange places) {
        Arithmetic at{body, loc};
        Value part = at.div(places.back(), width);
        Value column = sum.isInParts() ? at.mod(places.back(), width) : places.back();
        Value pad;
        if (hasPad)
          pad = arith::ConstantOp::create(body, loc, body.getZeroAttr(sum.element));
        Value element = LoadOp::create(body, loc, load.getTensor(),
                                       indicesAt(at, places.drop_back(), column), pad);
        YieldOp::create(body, loc,
                        sum.isInParts() ? createPart(body, loc, element, part, /*isBounded=*/false)
                                        : element);
      });
  // The plan takes it to be stored, so that TMA loads bring it.
  statement->setAttr(storedApartAttrName, before.getUnitAttr());
  return statement->getResult(0);
}

/// The batch's index at `column` of the products of `width` columns each, with `group` in the
/// product.
void TermCounter::mapGroup(Arithmetic at, Value column, Value width, Value group,
                           IRMapping &mapping) {
  if (hasProducts())
    mapping.map(counted.batch,
                at.add(at.mul(at.div(column, width), at.number(plan.groups)), group));
}

/// The windows' operand: along a window whose taps are not columns all elements of the tensor.
Value TermCounter::storeWindows() {
  LoadOp load = sum.window;
  SmallVector<Value> all = getExtents(sum.kernel, load.getTensor()), extents;
  for (auto [pixel, extent] : llvm::zip_equal(counted.pixels, pixelExtents)) {
    const WindowAxis *axis = counted.windowOf(pixel);
    extents.push_back(axis && !isColumns(*axis) ? all[axis->axis] : extent);
  }
  auto indicesAt = [&](Arithmetic at, ValueRange places, Value column) {
    IRMapping mapping;
    for (auto [pixel, place] : llvm::zip_equal(counted.pixels, places))
      mapping.map(pixel, place);
    SmallVector<Value> digits =
        at.digits(hasProducts() ? at.mod(column, width) : column, columnExtents);
    for (auto [axis, digit] : llvm::zip(columns, digits))
      mapping.map(axis->place, digit);
    if (counted.column)
      mapping.map(counted.column, digits.pop_back_val());
    mapGroup(at, column, width, digits.empty() ? Value() : digits.back(), mapping);
    for (const WindowAxis *axis : windows) // replaced below
      mapping.map(axis->place, at.number(0));
    SmallVector<Value> indices = clonesOf(at, LoadOp(sum.window).getIndices(), mapping);
    for (const WindowAxis *axis : windows)
      indices[axis->axis] = mapping.lookup(axis->tap);
    return indices;
  };
  return storeOperand(".windows", extents, Arithmetic{before, loc}.mul(products, width),
                      !columns.empty() || isWidthPadded, load, indicesAt);
}

/// The operand of rows: at its pixels.
Value TermCounter::storeRows() {
  auto indicesAt = [&](Arithmetic at, ValueRange places, Value column) {
    IRMapping mapping;
    for (auto [pixel, place] : llvm::zip_equal(counted.pixels, places))
      mapping.map(pixel, place);
    SmallVector<Value> digits =
        at.digits(hasProducts() ? at.mod(column, height) : column, rowExtents);
    mapping.map(counted.row, digits.back());
    mapGroup(at, column, height, digits.front(), mapping);
    return clonesOf(at, LoadOp(sum.weights).getIndices(), mapping);
  };
  return storeOperand(".weights", pixelExtents, Arithmetic{before, loc}.mul(products, height),
                      isHeightPadded || sum.weights.getPad(), sum.weights, indicesAt);
}

/// An element as f32, or zero outside of the tensor.
Value TermCounter::createLoad(Arithmetic at, Value tensor, ValueRange indices) {
  auto element = cast<RankedTensorType>(tensor.getType()).getElementType();
  Value zero = arith::ConstantOp::create(at.builder, loc, at.builder.getZeroAttr(element));
  Value loaded = LoadOp::create(at.builder, loc, tensor, indices, zero);
  return arith::ExtFOp::create(at.builder, loc, at.builder.getF32Type(), loaded);
}

/// The product at pixel `count`, for [share, tap, row, column] and the product of a batch behind
/// them, of a pair of parts if there is one.
Value TermCounter::createTerm(Arithmetic at, Value windowsAt, Value rowsAt, ValueRange places,
                              Value count, Value pair) {
  IRMapping mapping;
  SmallVector<Value> digits = at.digits(count, pixelExtents);
  for (auto [pixel, digit] : llvm::zip_equal(counted.pixels, digits))
    mapping.map(pixel, digit);
  SmallVector<Value> taps = at.digits(places[1], tapExtents);
  if (!taps.empty())
    taps[0] = at.mod(taps[0], tapExtents[0]);
  for (auto [axis, tap] : llvm::zip_equal(windows, taps))
    mapping.map(axis->place, tap);
  mapping.map(counted.row, places[2]);
  if (counted.column)
    mapping.map(counted.column, places[3]);
  auto columnOf = [&](Value column, Value width, bool isLeft) {
    if (hasProducts())
      column = at.add(at.mul(places[4], width), column);
    return pair ? at.add(at.mul(createPartOfPair(at.builder, loc, pair, isLeft),
                                at.mul(products, width)),
                         column)
                : column;
  };
  SmallVector<Value> ofRows = digits, ofWindows = digits;
  if (counted.isStored) {
    for (auto [n, pixel] : llvm::enumerate(counted.pixels))
      if (const WindowAxis *axis = counted.windowOf(pixel); axis && !isColumns(*axis))
        ofWindows[n] = clonesOf(at, sum.window.getIndices()[axis->axis], mapping)[0];
    ofWindows.push_back(columnOf(places[3], width, false));
  } else {
    ofWindows = clonesOf(at, sum.window.getIndices(), mapping);
  }
  if (counted.isRowStored)
    ofRows.push_back(columnOf(places[2], height, true));
  else
    ofRows = clonesOf(at, sum.weights.getIndices(), mapping);
  return arith::MulFOp::create(at.builder, loc, createLoad(at, rowsAt, ofRows),
                               createLoad(at, windowsAt, ofWindows));
}

/// The products of all shares as [share, tap, row, column], with the product of a batch behind the
/// share.
Value TermCounter::storeShares(Value windowsAt, Value rowsAt) {
  Arithmetic outside{before, loc};
  const int64_t terms = sum.isInParts() ? termsOfPartsSlice : termsOfCountedSlice;
  Value slice = outside.number(terms), zero = outside.number(0);
  Value slices =
      outside.ceilDiv(outside.ceilDiv(outside.product(pixelExtents), terms), plan.shares);
  SmallVector<StringRef> names = {"pixel"};
  SmallVector<Value> lengths = {outside.mul(slices, slice)};
  if (sum.isInParts()) {
    names = {"slice", "pair", "pixel"};
    lengths = {slices, outside.number(sum.countPairs()), slice};
  }
  std::string name = nameOf(".flat");
  SmallVector<StringRef> own = {"share", "tap", "row", "column"};
  SmallVector<Value> extents = {outside.number(plan.shares), outside.product(tapExtents), height,
                                width};
  if (hasProducts()) {
    own.insert(own.begin() + 1, "product");
    extents.insert(extents.begin() + 1, products);
  }
  auto statement = ComputeOp::create(
      before, loc, own, extents, ArrayRef<Type>{before.getF32Type()}, ArrayRef<StringRef>{name},
      ArrayRef<SmallVector<unsigned>>{}, [&](OpBuilder &body, Location, ValueRange indices) {
        SmallVector<Value> places(indices);
        if (hasProducts())
          std::rotate(places.begin() + 1, places.begin() + 2, places.end());
        Value first = Arithmetic{body, loc}.mul(places[0], sum.isInParts() ? slices : lengths[0]);
        auto product = ReduceOp::create(
            body, loc, ReduceKind::Sum, names, SmallVector<Value>(names.size(), zero), lengths,
            before.getF32Type(),
            [&](OpBuilder &inner, Location, ValueRange indices) {
              Arithmetic in{inner, loc};
              Value count = in.add(first, indices[0]);
              if (sum.isInParts())
                count = in.add(in.mul(count, slice), indices[2]);
              return createTerm(in, windowsAt, rowsAt, places, count,
                                sum.isInParts() ? indices[1] : Value());
            },
            sum.isInParts() ? Precision::Blocked : sum.reduce.getPrecision());
        YieldOp::create(body, loc, product.getResult(0));
      });
  // Computed where it is read, each result would be one product for all shares.
  if (plan.shares > 1)
    statement->setAttr(storedApartAttrName, before.getUnitAttr());
  return statement->getResult(0);
}

void TermCounter::rewrite() {
  Value windowsAt = counted.isStored ? storeWindows() : sum.window.getTensor();
  Value rowsAt = counted.isRowStored ? storeRows() : sum.weights.getTensor();
  Value product = storeShares(windowsAt, rowsAt);
  ReduceOp reduce = sum.reduce;
  OpBuilder builder(reduce);
  Arithmetic at{builder, loc};
  SmallVector<Value> taps, lanes;
  for (const WindowAxis *axis : windows)
    taps.push_back(axis->place);
  for (const WindowAxis *axis : columns)
    lanes.push_back(axis->place);
  SmallVector<Value> ofRows = {counted.row}, place;
  if (counted.batch) {
    Value groups = at.number(plan.groups), group = at.mod(counted.batch, groups);
    lanes.push_back(group);
    ofRows.insert(ofRows.begin(), group);
    place.push_back(at.div(counted.batch, groups));
  }
  if (counted.column)
    lanes.push_back(counted.column);
  place.append({at.countOf(taps, tapExtents), at.countOf(ofRows, rowExtents),
                at.countOf(lanes, columnExtents)});
  auto load = [&](OpBuilder &inner, Value share) -> Value {
    SmallVector<Value> indices(place);
    indices.insert(indices.begin(), share);
    return LoadOp::create(inner, loc, product, indices, Value());
  };
  Value result;
  if (plan.shares > mostAddedOneByOne) {
    auto all = ReduceOp::create(
        builder, loc, ReduceKind::Sum, ArrayRef<StringRef>{"share"}, ValueRange{at.number(0)},
        ValueRange{at.number(plan.shares)}, builder.getF32Type(),
        [&](OpBuilder &inner, Location, ValueRange share) { return load(inner, share[0]); });
    result = all.getResult(0);
  } else {
    for (int64_t share = 0; share < plan.shares; ++share) {
      Value part = load(builder, at.number(share));
      result = result ? createCombination(builder, loc, ReduceKind::Sum, result, part) : part;
    }
  }
  reduce.replaceAllUsesWith(ValueRange{result});
  eraseDead(sum.compute);
}

void tk::countTerms(const CountedSum &counted, const TermPlan &plan) {
  TermCounter(counted, plan).rewrite();
}
