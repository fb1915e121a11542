//===- PlaceExchanges.cpp - rows sent to the ranks that hold their entries ===//
//
//   h[m @ ep, j, f] = sum[c](x[m, c] * w[ids[m, j], c, f])        with w: [E @ ep, C, F]
//
// 1. Each rank finds a slot for each of its rows (m, j) in the block of the rank that holds the
//    entry (RouteRows.cpp).
// 2. tk.exchange sends the ids, and then what the statement reads by rows, with counts: only slots
//    that are taken travel.
// 3. The statement is computed over the slots that arrived, on the share of the table. An empty
//    slot has an id of no entry, which reads 0.
// 4. tk.exchange sends the results back, and each row reads its slot. A statement that reads them
//    with the same ids computes on what is still in the slots.
//
//   %owner, %slot, %from, %sent = tk.compute …
//   %i = tk.exchange %ids.out over "ep"
//   %x = tk.exchange %x.out over "ep" counts(%sent, %received)
//   %r = tk.compute ["row", "f"] {sum[c] x[row, c] * w[i[row] - first, c, f]}
//   %b = tk.exchange %r over "ep" counts(%received, %sent)
//   %h = tk.compute ["m", "j", "f"] {b[slot[m * J + j], f]}
//
//===----------------------------------------------------------------------===//
#include "passes/mesh/Placer.h"

#include "passes/analysis/Notes.h"
#include "passes/mesh/WriteCompute.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace tk::mesh {

static constexpr llvm::StringLiteral passName = "tk-place-collectives";

/// A tensor of the old kernel that stands for one of the new kernel.
Value Placer::standFor(ComputeOp before, ArrayRef<Value> extents, Placed placed, StringRef name) {
  OpBuilder old(before);
  SmallVector<std::string> indices;
  for (size_t i = 0; i < extents.size(); ++i)
    indices.push_back("i" + std::to_string(i));
  Type type = cast<RankedTensorType>(placed.tensor.getType()).getElementType();
  Value tensor = makeCompute(old, before.getLoc(), indices, extents, type, name.str(),
                             [&](OpBuilder &b, Location at, ValueRange) {
                               return Value(arith::ConstantOp::create(b, at, b.getZeroAttr(type)));
                             });
  tensors[tensor] = std::move(placed);
  return tensor;
}

/// What a statement reads by rows, as it arrives in the slots.
Value Placer::sendRows(Route &route, const RowExchange &exchange, const TensorUse &use,
                       ComputeOp compute) {
  Value tensor = use.load.getTensor();
  SmallVector<int> dims; // where each row index stands, then which others there are
  for (BlockArgument row : exchange.rows) {
    auto indices = use.load.getIndices();
    const auto found = llvm::find(indices, Value(row));
    dims.push_back(found == indices.end() ? -1 : static_cast<int>(found - indices.begin()));
  }
  std::vector<int> key(dims.begin(), dims.end());
  Value &known = route.sentRows[{tensor.getAsOpaquePointer(), key}];
  if (known)
    return known;
  const Placed from = tensors[tensor];
  const Value slots = values.lookup(route.oldRows);
  Placed placed{{}, {route.axis}, {slots}};
  SmallVector<Value> extents{route.slotCount}, oldExtents{route.oldRows};
  SmallVector<std::string> indices{"slot"};
  SmallVector<unsigned> others;
  for (auto [dim, extent] : llvm::enumerate(extentsOf(tensor))) {
    if (llvm::is_contained(dims, static_cast<int>(dim)))
      continue;
    others.push_back(dim), oldExtents.push_back(extent);
    indices.push_back("i" + std::to_string(dim));
    placed.sharding.push_back(from.sharding[dim]), placed.extents.push_back(from.extents[dim]);
    extents.push_back(shareOf(from.extents[dim], from.sharding[dim]));
  }
  Type type = cast<RankedTensorType>(from.tensor.getType()).getElementType();
  const std::string name = cast<StringAttr>(compute.getNames()[0]).getValue().str() + ".in";
  Value out = makeCompute(builder, use.load.getLoc(), indices, extents, type, name,
                          [&](OpBuilder &b, Location at, ValueRange p) {
                            SmallVector<Value> row =
                                rowCoordinates(b, at, route, rowOf(b, at, route, p[0]));
                            SmallVector<Value> position(from.sharding.size());
                            for (auto [k, dim] : llvm::enumerate(dims))
                              if (dim >= 0)
                                position[dim] = rowPosition(b, at, route, k, row[k], from, dim);
                            for (auto [i, dim] : llvm::enumerate(others))
                              position[dim] = p[i + 1];
                            Type element = type.isInteger(8) ? b.getI8Type() : type;
                            Value zero = arith::ConstantOp::create(b, at, b.getZeroAttr(element));
                            return LoadOp::create(b, at, from.tensor, position, zero).getResult();
                          });
  placed.tensor = exchangeRows(use.load.getLoc(), route, out, false, true);
  note(placed.tensor.getDefiningOp(), passName, Verdict::Derived,
       "rows that " + describe(compute) + " reads go to the ranks of '" +
           axes[route.axis].name.str() + "' that hold their entries: exchange with counts");
  return known = standFor(compute, oldExtents, placed, name);
}

/// The statement over slots, in front of the one over rows.
ComputeOp Placer::computeOnSlots(Route &route, const RowExchange &exchange,
                                 ArrayRef<TensorUse> uses, ComputeOp compute) {
  SmallVector<Value> arrived(uses.size());
  for (unsigned number : exchange.rowReads) {
    const TensorUse &use = uses[number];
    const auto there = route.computed.find(use.load.getTensor());
    if (use.load.getTensor() == exchange.ids.getTensor() &&
        llvm::equal(use.load.getIndices(), exchange.ids.getIndices()))
      arrived[number] = route.oldIds;
    else
      arrived[number] = there != route.computed.end() && isWholeRow(exchange, use)
                            ? there->second
                            : sendRows(route, exchange, use, compute);
  }
  OpBuilder old(compute);
  SmallVector<Value> extents{route.oldRows};
  SmallVector<StringRef> names{"row"};
  SmallVector<unsigned> others;
  for (unsigned i = 0; i < compute.getNumIndices(); ++i)
    if (!exchange.isRow(compute.getIndex(i))) {
      others.push_back(i), extents.push_back(compute.getExtents()[i]);
      names.push_back(cast<StringAttr>(compute.getIndexNames()[i]).getValue());
    }
  Type type = cast<RankedTensorType>(compute.getResult(0).getType()).getElementType();
  StringRef name = cast<StringAttr>(compute.getNames()[0]).getValue();
  const std::string rowName = (name + ".rows").str();
  auto made = ComputeOp::create(old, compute.getLoc(), names, extents, ArrayRef<Type>{type},
                                ArrayRef<StringRef>{rowName}, ArrayRef<SmallVector<unsigned>>{},
                                [&](OpBuilder &b, Location, ValueRange p) {
                                  IRMapping mapping;
                                  for (BlockArgument row : exchange.rows)
                                    mapping.map(row, p[0]);
                                  for (auto [i, index] : llvm::enumerate(others))
                                    mapping.map(compute.getIndex(index), p[i + 1]);
                                  for (Operation &op : *compute.getBlock())
                                    b.clone(op, mapping);
                                });
  SmallVector<LoadOp> loads;
  made.walk([&](LoadOp load) { loads.push_back(load); });
  for (auto [number, load] : llvm::enumerate(loads)) {
    if (!arrived[number])
      continue;
    OpBuilder b(load);
    SmallVector<Value> position{made.getIndex(0)};
    for (auto [index, before] : llvm::zip(load.getIndices(), uses[number].load.getIndices()))
      if (!exchange.isRow(before))
        position.push_back(index);
    Value read = LoadOp::create(b, load.getLoc(), arrived[number], position, Value()).getResult();
    if (read.getType() != load.getResult().getType()) // ids of 64 bits
      read = arith::ExtSIOp::create(b, load.getLoc(), load.getResult().getType(), read);
    load.getResult().replaceAllUsesWith(read);
    load.erase();
  }
  return made;
}

/// Whether a statement reads what was computed by rows as it was computed: the row indices first.
bool Placer::isWholeRow(const RowExchange &exchange, const TensorUse &use) {
  for (auto [k, row] : llvm::enumerate(exchange.rows))
    if (k >= use.load.getIndices().size() || use.load.getIndices()[k] != Value(row))
      return false;
  return true;
}

bool Placer::placeByExchange(ComputeOp compute) {
  SmallVector<TensorUse> uses = usesOf(compute);
  bool ignored = false;
  auto sharding = [&](Value tensor) { return tensors.lookup(tensor).sharding; };
  const ExchangeQuery query{compute, uses, sharding, desiredOf(compute.getResult(0), ignored)};
  std::optional<RowExchange> exchange;
  for (int axis = 0; axis < static_cast<int>(axes.size()) && !exchange; ++axis)
    if (axes[axis].size > 1)
      exchange = findRowExchange(query, axis, static_cast<double>(axes[axis].size));
  if (!exchange)
    return false;
  const auto known = routes.find(
      {exchange->ids.getTensor().getAsOpaquePointer(), exchange->axis, exchange->carrier});
  auto isThere = [&](Value tensor) {
    return known != routes.end() &&
           (known->second->computed.contains(tensor) || tensor == exchange->ids.getTensor());
  };
  const double with = timeOfExchange(query, *exchange, costs, isThere),
               without = timeWithoutExchange(query, *exchange, costs);
  const std::string times = llvm::formatv(": {0:F1} us are predicted, and {1:F1} us without",
                                          with * 1e-3, without * 1e-3);
  if (with >= without) {
    note(made, passName, Verdict::Declined,
         "rows of " + describe(compute) + " do not go to the ranks that hold their entries" +
             times);
    return false;
  }
  Route &route = routeFor(*exchange, compute);
  ComputeOp onSlots = computeOnSlots(route, *exchange, uses, compute);
  placeOnSlots(onSlots, *exchange, query.desired);
  bringBack(route, *exchange, onSlots, compute);
  note(tensors[compute.getResult(0)].tensor.getDefiningOp(), passName, Verdict::Derived,
       describe(compute) + " is computed by the ranks of '" + axes[exchange->axis].name.str() +
           "' that hold the entries of each row" + times);
  return true;
}

/// Divides the slots by the exchange's axis, and all else as usual.
void Placer::placeOnSlots(ComputeOp onSlots, const RowExchange &exchange, const Sharding &desired) {
  SmallVector<TensorUse> uses = usesOf(onSlots);
  for (TensorUse &use : uses)
    for (auto [axis, subscript] :
         llvm::zip(tensors.lookup(use.load.getTensor()).sharding, use.subscripts))
      subscript.keepsShare |= axis == exchange.axis && subscript.isLoaded;
  Sharding own{exchange.axis};
  for (unsigned i = 0; i < desired.size(); ++i)
    if (!llvm::any_of(exchange.rows, [&](BlockArgument row) { return row.getArgNumber() == i; }))
      own.push_back(desired[i]);
  placeWith(onSlots, uses, own, false, exchange.axis);
}

/// The result over rows: each reads the slot that it was sent in.
void Placer::bringBack(Route &route, const RowExchange &exchange, ComputeOp onSlots,
                       ComputeOp compute) {
  const Placed slots = tensors[onSlots.getResult(0)];
  Value back = exchangeRows(compute.getLoc(), route, slots.tensor, true, true);
  note(back.getDefiningOp(), passName, Verdict::Derived,
       "the rows of " + describe(compute) + " go back to their ranks: exchange with counts");
  Placed placed{{}, Sharding(compute.getNumIndices(), noShard), {}};
  SmallVector<Value> extents;
  SmallVector<std::string> indices;
  unsigned other = 1;
  for (unsigned i = 0; i < compute.getNumIndices(); ++i) {
    const BlockArgument index = compute.getIndex(i);
    if (index == exchange.carrierIndex())
      placed.sharding[i] = route.axis;
    else if (!exchange.isRow(index))
      placed.sharding[i] = slots.sharding[other++];
    placed.extents.push_back(values.lookup(compute.getExtents()[i]));
    extents.push_back(shareOf(placed.extents.back(), placed.sharding[i]));
    indices.push_back(cast<StringAttr>(compute.getIndexNames()[i]).getValue().str());
  }
  Type type = cast<RankedTensorType>(back.getType()).getElementType();
  placed.tensor = makeCompute(builder, compute.getLoc(), indices, extents, type,
                              cast<StringAttr>(compute.getNames()[0]).getValue().str(),
                              [&](OpBuilder &b, Location at, ValueRange p) {
                                Value row;
                                for (auto [k, index] : llvm::enumerate(exchange.rows)) {
                                  Value next = p[index.getArgNumber()];
                                  if (row) {
                                    row = arith::MulIOp::create(b, at, row, route.extents[k]);
                                    next = arith::AddIOp::create(b, at, row, next);
                                  }
                                  row = next;
                                }
                                SmallVector<Value> position{loadIndex(b, at, route.slots, row)};
                                for (unsigned i = 0; i < compute.getNumIndices(); ++i)
                                  if (!exchange.isRow(compute.getIndex(i)))
                                    position.push_back(p[i]);
                                Type element = type.isInteger(8) ? b.getI8Type() : type;
                                Value zero =
                                    arith::ConstantOp::create(b, at, b.getZeroAttr(element));
                                return LoadOp::create(b, at, back, position, zero).getResult();
                              });
  bool isFirst = true; // the rows are the first dimensions of the result
  for (auto [k, row] : llvm::enumerate(exchange.rows))
    isFirst &= row.getArgNumber() == k;
  if (isFirst)
    route.computed[compute.getResult(0)] = onSlots.getResult(0);
  tensors[compute.getResult(0)] = std::move(placed);
}

} // namespace tk::mesh
