//===- BandOperands.cpp - the statements of a band product ----------------===//
#include "passes/tensor/normalize/BandProduct.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/limits/Windows.h"
#include "passes/tensor/normalize/PadConditions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

using namespace limits::band_products;

/// The part of a place that is the same for all results and terms, outside of the statement.
Value BandProduct::rest(OpBuilder &builder, const BandPlace &place) {
  SmallVector<std::pair<Value, int64_t>> known;
  for (auto [value, factor] : place.values) {
    IRMapping hoisted;
    known.emplace_back(cloneFrom(builder, value, compute, hoisted), factor);
  }
  return sum(builder, known, place.number);
}

/// Creates `load` in a statement of its own, at `at` along its axis number `axis`.
static Value loadAt(OpBuilder &body, LoadOp load, unsigned axis, Value at, ComputeOp compute,
                    IRMapping &mapping) {
  SmallVector<Value> indices;
  for (auto [n, index] : llvm::enumerate(load.getIndices()))
    indices.push_back(n == axis ? at : cloneFrom(body, index, compute, mapping));
  Value zero = arith::ConstantOp::create(body, load.getLoc(), body.getZeroAttr(load.getType()));
  return LoadOp::create(body, load.getLoc(), load.getTensor(), indices, zero);
}

ComputeOp BandProduct::createBand() {
  OpBuilder builder(compute);
  Location loc = reduce.getLoc();
  Value taps = getExtents(kernel, filter.load.getTensor())[filter.at];
  Value offset = rest(builder, filter.place);
  // The filter's place is columnStep i + k + offset, or columnStep i - k + offset.
  const int64_t most = std::abs(columnStep) * (size - 1);
  first = isTurned ? sum(builder, {{offset, 1}, {taps, -1}}, 1 - (columnStep < 0 ? most : 0))
                   : sum(builder, {{offset, -1}}, -(columnStep > 0 ? most : 0));
  Value unit = arith::ConstantIndexOp::create(builder, loc, termsOfSlice);
  Value slices = builder.createOrFold<FloorDivOp>(
      loc, builder.getIndexType(), sum(builder, {{taps, 1}}, most + termsOfSlice - 1), unit);
  length = builder.createOrFold<arith::MulIOp>(loc, slices, unit);
  SmallVector<Value> extents;
  SmallVector<StringRef> names;
  for (unsigned p : shared) {
    extents.push_back(compute.getExtents()[p]);
    names.push_back(nameOf(p));
  }
  extents.push_back(length);
  extents.push_back(arith::ConstantIndexOp::create(builder, loc, size));
  const std::string k = "k", i = nameOf(result).str() + "_in_block";
  names.append({k, i});
  const std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + ".band").str();
  auto band = ComputeOp::create(
      builder, loc, names, extents, ArrayRef<Type>{filter.load.getType()},
      ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{},
      [&](OpBuilder &body, Location, ValueRange own) {
        IRMapping mapping;
        for (auto [n, p] : llvm::enumerate(shared))
          mapping.map(compute.getIndex(p), own[n]);
        Value k = own[own.size() - 2], i = own.back();
        const int64_t sign = isTurned ? -1 : 1;
        Value at = sum(body, {{i, columnStep}, {k, sign}, {first, sign}, {offset, 1}}, 0);
        YieldOp::create(body, loc, loadAt(body, filter.load, filter.at, at, compute, mapping));
      });
  band->setAttr(storedApartAttrName, builder.getUnitAttr());
  return band;
}

/// The indices of the windows and of the blocks, but for the last: those of the filter first, as
/// there is a product for each of them.
SmallVector<unsigned> BandProduct::orderOfIndices() {
  SmallVector<unsigned> order(shared.begin(), shared.end());
  for (unsigned p = 0; p < compute.getNumIndices(); ++p)
    if (p != result && !shared.contains(p))
      order.push_back(p);
  return order;
}

/// A stored statement over those indices, the blocks, and `extent` values of an index `last`.
ComputeOp BandProduct::createRows(StringRef suffix, StringRef last, Value extent, Type type,
                                  llvm::function_ref<Value(OpBuilder &, ValueRange)> element) {
  OpBuilder builder(compute);
  Location loc = reduce.getLoc();
  SmallVector<Value> extents;
  SmallVector<StringRef> names;
  for (unsigned p : orderOfIndices()) {
    extents.push_back(compute.getExtents()[p]);
    names.push_back(nameOf(p));
  }
  Value unit = arith::ConstantIndexOp::create(builder, loc, size);
  Value all = sum(builder, {{compute.getExtents()[result], 1}}, size - 1);
  extents.push_back(builder.createOrFold<FloorDivOp>(loc, builder.getIndexType(), all, unit));
  extents.push_back(extent);
  const std::string block = nameOf(result).str() + "_block";
  names.append({block, last});
  const std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + suffix).str();
  auto rows = ComputeOp::create(builder, loc, names, extents, ArrayRef<Type>{type},
                                ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{},
                                [&](OpBuilder &body, Location, ValueRange own) {
                                  YieldOp::create(body, loc, element(body, own));
                                });
  rows->setAttr(storedApartAttrName, builder.getUnitAttr());
  return rows;
}

/// What each block of results needs of a row.
ComputeOp BandProduct::createWindows() {
  OpBuilder builder(compute);
  Value offset = rest(builder, rows.place);
  return createRows(
      ".windows", "k", length, rows.load.getType(), [&](OpBuilder &body, ValueRange own) {
        IRMapping mapping;
        for (auto [n, p] : llvm::enumerate(orderOfIndices()))
          mapping.map(compute.getIndex(p), own[n]);
        Value u = own[own.size() - 2], k = own.back();
        Value at = sum(body, {{u, rowStep * size}, {k, 1}, {first, 1}, {offset, 1}}, 0);
        return loadAt(body, rows.load, rows.at, at, compute, mapping);
      });
}

ComputeOp BandProduct::createBlocks(ComputeOp band, ComputeOp windows) {
  OpBuilder builder(compute);
  Location loc = reduce.getLoc();
  Value unit = arith::ConstantIndexOp::create(builder, loc, size);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  const std::string i = nameOf(result).str() + "_in_block";
  return createRows(
      ".blocks", i, unit, builder.getF32Type(), [&](OpBuilder &body, ValueRange own) -> Value {
        auto product = ReduceOp::create(
            body, loc, ReduceKind::Sum, ArrayRef<StringRef>{"k"}, ValueRange{zero},
            ValueRange{length}, body.getF32Type(),
            [&](OpBuilder &inner, Location, ValueRange terms) -> Value {
              SmallVector<Value> ofRow(own.drop_back()), ofBand(own.take_front(shared.size()));
              ofRow.push_back(terms[0]);
              ofBand.append({terms[0], own.back()});
              Value x = LoadOp::create(inner, loc, windows->getResult(0), ofRow, Value());
              Value w = LoadOp::create(inner, loc, band->getResult(0), ofBand, Value());
              x = arith::ExtFOp::create(inner, loc, inner.getF32Type(), x);
              w = arith::ExtFOp::create(inner, loc, inner.getF32Type(), w);
              return arith::MulFOp::create(inner, loc, x, w);
            });
        return product.getResult(0);
      });
}

/// Takes the results from the blocks, and computes those that are NaN again.
void BandProduct::readBlocks(ComputeOp blocks) {
  OpBuilder builder(reduce);
  Location loc = reduce.getLoc();
  Value unit = arith::ConstantIndexOp::create(builder, loc, size), l = compute.getIndex(result);
  SmallVector<Value> at;
  for (unsigned p : orderOfIndices())
    at.push_back(compute.getIndex(p));
  at.push_back(FloorDivOp::create(builder, loc, builder.getIndexType(), l, unit));
  at.push_back(FloorModOp::create(builder, loc, builder.getIndexType(), l, unit));
  Value value = LoadOp::create(builder, loc, blocks->getResult(0), at, Value());
  computeNaNAgain(reduce, value);
}
