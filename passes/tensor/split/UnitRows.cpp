//===- UnitRows.cpp - a row of one value for attention with one query -----===//
//
// Part of tk-pack-rows. If each query head has its own keys and one query, no index of the compute
// op is a row that shares the keys. The matrix products lack one side, and each column of the
// values would recompute all scores. An index of one value becomes that side. The tile of the
// matrix unit then has one useful row, and keys and values are read once.
//
//   %s = tk.compute ["b", "h", "e"] in (%B, %H, %D) {
//     .. q[b, h, d] * k[b, h, j, d] .. v[b, h, j, e]}
//   .. load %s[b, h, e]
//     =>
//   %s = tk.compute ["b", "h", "row", "e"] in (%B, %H, 1, %D) {
//     .. q[b, h + row, d] * k[b, h, j, d] .. v[b, h, j, e]}
//   .. load %s[b, h, 0, e]
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/split/UnitRows.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

/// What the products in the terms of `chain` multiply by that is the same at each of its steps.
static SmallVector<LoadOp> findHeldFactors(ReduceOp chain) {
  Dependence onStep(ValueRange{chain.getIndex(0)});
  SmallVector<LoadOp> loads;
  for (ReduceOp product : chain.getBlock()->getOps<ReduceOp>()) {
    Dependence onTerm(product.getBlock()->getArguments());
    product.getBody().walk([&](LoadOp load) {
      if (!onStep.on(load.getResult()) && onTerm.on(load.getResult()))
        loads.push_back(load);
    });
  }
  return loads;
}

/// The axis of `load` along which the row goes: the last one that the sum does not run along.
static unsigned axisOfRow(LoadOp load, ReduceOp product) {
  Dependence onTerm(product.getBlock()->getArguments());
  for (unsigned axis = load.getIndices().size(); axis-- > 0;)
    if (!onTerm.on(load.getIndices()[axis]))
      return axis;
  return 0;
}

/// `values` with `row` before the last of them, which the columns are.
template <typename T> static SmallVector<T> withRow(SmallVector<T> values, T row, unsigned place) {
  values.insert(values.begin() + place, row);
  return values;
}

/// The loads of result `r` go to that of `made`, at the row's one value.
static void moveLoads(ComputeOp compute, ComputeOp made, unsigned r, unsigned place) {
  for (Operation *user : llvm::make_early_inc_range(compute.getResult(r).getUsers())) {
    auto load = cast<LoadOp>(user);
    OpBuilder builder(load);
    Value zero = arith::ConstantIndexOp::create(builder, load.getLoc(), 0);
    SmallVector<Value> at;
    for (auto [position, index] : llvm::zip_equal(compute.getIndicesOf(r), load.getIndices())) {
      if (position >= place && !llvm::is_contained(at, zero))
        at.push_back(zero);
      at.push_back(index);
    }
    if (!llvm::is_contained(at, zero))
      at.push_back(zero);
    Value moved = LoadOp::create(builder, load.getLoc(), made.getResult(r), at, load.getPad());
    load.replaceAllUsesWith(moved);
    load.erase();
  }
}

ComputeOp tk::addUnitRow(ComputeOp compute, const ChainRows &chain) {
  ReduceOp old = chain.reduce;
  if (findHeldFactors(old).empty())
    return {};
  OpBuilder builder(compute);
  Location loc = compute.getLoc();
  const unsigned place = chain.batch.empty() ? 0 : chain.batch.back() + 1;
  SmallVector<StringRef> names, results;
  for (Attribute name : compute.getIndexNames())
    names.push_back(cast<StringAttr>(name).getValue());
  names = withRow(names, StringRef("row"), place);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  SmallVector<Value> extents = withRow(SmallVector<Value>(compute.getExtents()), one, place);
  SmallVector<Type> types;
  SmallVector<SmallVector<unsigned>> over;
  for (unsigned r = 0; r < compute.getNumResults(); ++r) {
    types.push_back(cast<RankedTensorType>(compute.getResult(r).getType()).getElementType());
    results.push_back(cast<StringAttr>(compute.getNames()[r]).getValue());
    over.emplace_back();
    for (unsigned p : compute.getIndicesOf(r))
      over.back().push_back(p < place ? p : p + 1);
    over.back().push_back(place);
    llvm::sort(over.back());
  }
  IRMapping mapping;
  Value row;
  auto made = ComputeOp::create(builder, loc, names, extents, types, results, over,
                                [&](OpBuilder &body, Location, ValueRange indices) {
                                  SmallVector<Value> own(indices);
                                  row = own[place];
                                  own.erase(own.begin() + place);
                                  mapping.map(compute.getBlock()->getArguments(), own);
                                  for (Operation &op : *compute.getBlock())
                                    body.clone(op, mapping);
                                });
  auto reduce = mapping.lookup(old.getResult(0)).getDefiningOp<ReduceOp>();
  for (LoadOp load : findHeldFactors(reduce)) {
    OpBuilder before(load);
    const unsigned axis = axisOfRow(load, load->getParentOfType<ReduceOp>());
    Value moved = arith::AddIOp::create(before, loc, load.getIndices()[axis], row);
    load.getIndicesMutable()[axis].set(moved);
  }
  for (unsigned r = 0; r < compute.getNumResults(); ++r)
    moveLoads(compute, made, r, place);
  compute.erase();
  return made;
}
