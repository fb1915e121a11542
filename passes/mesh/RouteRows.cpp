//===- RouteRows.cpp - which rank each row goes to ------------------------===//
//
// Each rank numbers its rows from 0. A row goes to the rank that holds the entry of its id, in a
// slot of that rank's block: the p-th row that goes to rank d has slot d * rows + p. A block has as
// many slots as there are rows, so no row is ever left out.
//
//   owner[row]      = ids[row] / share
//   before[d, row]  = sum[k <= row](owner[k] == d)
//   slot[row]       = owner[row] * rows + before[owner[row], row] - 1
//   row[slot]       = sum[k](if slot[k] == slot then k + 1 else 0)          0: an empty slot
//   sent[d]         = sum[k](owner[k] == d)
//
//===----------------------------------------------------------------------===//
#include "passes/mesh/Placer.h"

#include "passes/mesh/WriteCompute.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace tk::mesh {

static Value isEqual(OpBuilder &b, Location loc, Value x, Value y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, y);
}

/// The sum over `k` from 0 to `count` of what `term` gives.
static Value sumOver(OpBuilder &b, Location loc, Value count,
                     llvm::function_ref<Value(OpBuilder &, Value)> term) {
  auto kinds = b.getArrayAttr({ReduceKindAttr::get(b.getContext(), ReduceKind::Sum)});
  auto reduce = ReduceOp::create(b, loc, TypeRange{b.getI32Type()}, kinds, b.getStrArrayAttr({"k"}),
                                 ValueRange{indexOf(b, loc, 0)}, ValueRange{count});
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(&reduce.getBody(), {}, {b.getIndexType()}, {loc});
  YieldOp::create(b, loc, ValueRange{term(b, block->getArgument(0))});
  return reduce.getResult(0);
}

static Value oneIf(OpBuilder &b, Location loc, Value condition) {
  return arith::ExtUIOp::create(b, loc, b.getI32Type(), condition);
}

/// The coordinates of a row by its number: the last index runs fastest. Rows of negative numbers
/// have a first coordinate below 0.
SmallVector<Value> Placer::rowCoordinates(OpBuilder &b, Location loc, const Route &route,
                                          Value row) const {
  SmallVector<Value> position(route.extents.size());
  for (size_t k = route.extents.size(); k-- > 0;) {
    const Value extent = route.extents[k];
    position[k] = k == 0 ? row : FloorModOp::create(b, loc, row.getType(), row, extent).getResult();
    if (k > 0)
      row = FloorDivOp::create(b, loc, row.getType(), row, extent).getResult();
  }
  return position;
}

/// The position of a row in a tensor that the axis shards along the carrier's dimension, or that is
/// whole.
Value Placer::rowPosition(OpBuilder &b, Location loc, const Route &route, size_t k, Value own,
                          const Placed &tensor, unsigned dim) {
  if (k != route.carrier || tensor.sharding[dim] == route.axis)
    return own;
  return arith::AddIOp::create(b, loc, own, route.offset);
}

Value Placer::exchangeRows(Location loc, const Route &route, Value tensor, bool isBack,
                           bool isCounted) {
  Value sent = isBack ? route.received : route.sent,
        received = isBack ? route.sent : route.received;
  return ExchangeOp::create(builder, loc, tensor.getType(), tensor, isCounted ? sent : Value(),
                            isCounted ? received : Value(), axes[route.axis].name);
}

/// The id of a row; 0 if it is none.
Value Placer::idOfRow(OpBuilder &b, Location loc, const Route &route, Value ids, Value row) {
  const Placed placed = tensors[ids];
  SmallVector<Value> position = rowCoordinates(b, loc, route, row);
  for (size_t k = 0; k < position.size(); ++k)
    position[k] = rowPosition(b, loc, route, k, position[k], placed, k);
  Type element = cast<RankedTensorType>(placed.tensor.getType()).getElementType();
  Value zero = arith::ConstantOp::create(b, loc, b.getIntegerAttr(element, 0));
  Value read = LoadOp::create(b, loc, placed.tensor, position, zero).getResult();
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), read);
}

/// Finds for each row its rank and its slot, and for each slot its row.
void Placer::sortRows(Route &route, const RowExchange &exchange, Location loc) {
  const int64_t ranks = axes[route.axis].size;
  Value ids = exchange.ids.getTensor();
  const std::string name = route.name;
  Type i32 = builder.getI32Type();
  Value share = shareOf(values.lookup(exchange.entries), route.axis);
  Value count = indexOf(builder, loc, ranks), rows = route.rows;
  Value owner = makeCompute(
      builder, loc, {"row"}, {rows}, i32, name + ".owner",
      [&](OpBuilder &b, Location at, ValueRange row) {
        Value whole = arith::MaxSIOp::create(b, at, share, indexOf(b, at, 1));
        Value id = idOfRow(b, at, route, ids, row[0]);
        Value rank = FloorDivOp::create(b, at, id.getType(), id, whole).getResult();
        rank = arith::MaxSIOp::create(b, at, rank, indexOf(b, at, 0));
        return asI32(b, at, arith::MinSIOp::create(b, at, rank, indexOf(b, at, ranks - 1)));
      });
  auto goesTo = [&](OpBuilder &b, Location at, Value row, Value rank) {
    return isEqual(b, at, loadIndex(b, at, owner, row), rank);
  };
  Value before = makeCompute(
      builder, loc, {"rank", "row"}, {count, rows}, i32, name + ".before",
      [&](OpBuilder &b, Location at, ValueRange p) {
        return ScanOp::create(b, at, ReduceKind::Sum, "k", indexOf(b, at, 0), rows, p[1], i32,
                              [&](OpBuilder &inner, Location where, ValueRange k) {
                                return oneIf(inner, where, goesTo(inner, where, k[0], p[0]));
                              })
            .getResult();
      });
  route.slots =
      makeCompute(builder, loc, {"row"}, {rows}, i32, name + ".slot",
                  [&](OpBuilder &b, Location at, ValueRange row) {
                    Value rank = loadIndex(b, at, owner, row[0]);
                    Value begin = arith::MulIOp::create(b, at, rank, rows);
                    Value number = loadIndex(b, at, before, {rank, row[0]});
                    Value slot = arith::AddIOp::create(b, at, begin, number);
                    return asI32(b, at, arith::SubIOp::create(b, at, slot, indexOf(b, at, 1)));
                  });
  route.sent = makeCompute(builder, loc, {"rank"}, {count}, i32, name + ".sent",
                           [&](OpBuilder &b, Location at, ValueRange rank) {
                             return sumOver(b, at, rows, [&](OpBuilder &inner, Value k) {
                               return oneIf(inner, at, goesTo(inner, at, k, rank[0]));
                             });
                           });
  // The row of a slot, from 1; 0 if it is empty.
  route.rowOfSlot = makeCompute(
      builder, loc, {"slot"}, {route.slotCount}, i32, name + ".row",
      [&](OpBuilder &b, Location at, ValueRange slot) {
        return sumOver(b, at, rows, [&](OpBuilder &inner, Value k) {
          Value isOwn = isEqual(inner, at, loadIndex(inner, at, route.slots, k), slot[0]);
          Value next = arith::AddIOp::create(inner, at, k, indexOf(inner, at, 1));
          Value none = arith::ConstantOp::create(inner, at, inner.getI32IntegerAttr(0));
          return Value(arith::SelectOp::create(inner, at, isOwn, asI32(inner, at, next), none));
        });
      });
}

/// Sends the ids, and counts those that arrive from each rank.
void Placer::sendIds(Route &route, const RowExchange &exchange, Location loc) {
  Value ids = exchange.ids.getTensor(), entries = values.lookup(exchange.entries);
  Value count = indexOf(builder, loc, axes[route.axis].size), rows = route.rows;
  const std::string name = route.name;
  Type i32 = builder.getI32Type();
  // Ids of no entry are sent as the one behind the last entry, empty slots as -1.
  Value out = makeCompute(
      builder, loc, {"slot"}, {route.slotCount}, i32, name + ".out",
      [&](OpBuilder &b, Location at, ValueRange slot) {
        Value row = rowOf(b, at, route, slot[0]);
        Value id = idOfRow(b, at, route, ids, row), none = indexOf(b, at, -1);
        Value isBelow = arith::CmpIOp::create(b, at, arith::CmpIPredicate::ult, id, entries);
        id = arith::SelectOp::create(b, at, isBelow, id, entries);
        Value isEmpty =
            arith::CmpIOp::create(b, at, arith::CmpIPredicate::slt, row, indexOf(b, at, 0));
        return asI32(b, at, arith::SelectOp::create(b, at, isEmpty, none, id));
      });
  route.arrived = exchangeRows(loc, route, out, false, false);
  route.received =
      makeCompute(builder, loc, {"rank"}, {count}, i32, name + ".received",
                  [&](OpBuilder &b, Location at, ValueRange rank) {
                    Value begin = arith::MulIOp::create(b, at, rank[0], rows);
                    return sumOver(b, at, rows, [&](OpBuilder &inner, Value k) {
                      Value slot = arith::AddIOp::create(inner, at, begin, k);
                      Value id = loadIndex(inner, at, route.arrived, slot);
                      return oneIf(inner, at,
                                   arith::CmpIOp::create(inner, at, arith::CmpIPredicate::sge, id,
                                                         indexOf(inner, at, 0)));
                    });
                  });
}

/// The row of a slot; -1 if it is empty.
Value Placer::rowOf(OpBuilder &b, Location loc, const Route &route, Value slot) const {
  Value row = loadIndex(b, loc, route.rowOfSlot, slot);
  return arith::SubIOp::create(b, loc, row, indexOf(b, loc, 1));
}

/// The route of rows by these ids, which statements share.
Placer::Route &Placer::routeFor(const RowExchange &exchange, ComputeOp compute) {
  std::unique_ptr<Route> &known =
      routes[{exchange.ids.getTensor().getAsOpaquePointer(), exchange.axis, exchange.carrier}];
  if (known)
    return *known;
  known = std::make_unique<Route>();
  Route &route = *known;
  const Placed &ids = tensors[exchange.ids.getTensor()];
  Location loc = compute.getLoc();
  OpBuilder old(compute);
  route.axis = exchange.axis, route.carrier = exchange.carrier;
  route.name = llvm::formatv("rows{0}", routes.size() == 1 ? "" : std::to_string(routes.size()));
  auto product = [&](OpBuilder &b, Value x, Value y) {
    Value made = x ? arith::MulIOp::create(b, loc, x, y).getResult() : y;
    if (x)
      made.getDefiningOp()->setAttr(rowsAttr, b.getUnitAttr());
    return made;
  };
  for (auto [k, extent] : llvm::enumerate(ids.extents)) {
    route.extents.push_back(k == route.carrier ? shareOf(extent, route.axis) : extent);
    route.rows = product(builder, route.rows, route.extents.back());
    route.oldRows = product(old, route.oldRows, extentOf(exchange.rows[k]));
  }
  Value count = indexOf(builder, loc, axes[route.axis].size);
  route.offset = offsetOf(ids.extents[route.carrier], route.axis);
  route.slotCount = product(builder, route.rows, count);
  Value whole = product(builder, route.slotCount, count);
  // Of the old kernel's rows, as many as there are; of the new one's, those that there is room for.
  if (exchange.rows.size() == 1)
    route.oldRows = product(old, route.oldRows, indexOf(old, loc, 1));
  values.map(route.oldRows, whole);
  shares[{whole, route.axis}] = route.slotCount;
  divided.insert(whole);
  sortRows(route, exchange, loc);
  sendIds(route, exchange, loc);
  route.oldIds =
      standFor(compute, {route.oldRows}, {route.arrived, {route.axis}, {whole}}, route.name);
  return route;
}

} // namespace tk::mesh
