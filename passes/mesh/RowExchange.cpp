//===- RowExchange.cpp - rows that go where their table entries are -------===//
#include "passes/mesh/RowExchange.h"

#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/CostModel.h"
#include "passes/mesh/ChooseCarrier.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using tk::network::Collective;

namespace tk::mesh {
namespace {

/// The element of an integer tensor that a subscript is, or null.
LoadOp loadedIndex(Value subscript) {
  while (auto cast = subscript.getDefiningOp<arith::IndexCastOp>())
    subscript = cast.getIn();
  auto load = subscript.getDefiningOp<LoadOp>();
  return load && load.getResult().getType().isInteger() ? load : LoadOp();
}

class Finder {
public:
  Finder(const ExchangeQuery &query, int axis, double ranks) : query(query) {
    found.axis = axis, found.ranks = ranks;
  }
  std::optional<RowExchange> run();

private:
  int dimOf(const TensorUse &use) const {
    const Sharding sharding = query.shardingOf(use.load.getTensor());
    const auto *dim = llvm::find(sharding, found.axis);
    return dim == sharding.end() ? noShard : static_cast<int>(dim - sharding.begin());
  }
  bool isIds(LoadOp load) const {
    return load.getTensor() == found.ids.getTensor() &&
           llvm::equal(load.getIndices(), found.ids.getIndices());
  }
  bool findTables();
  bool chooseCarrier();
  bool readsRow(const TensorUse &use) const;
  bool sortUses();
  bool rowsSelectOnly() const;

  const ExchangeQuery &query;
  RowExchange found;
};

bool Finder::findTables() {
  for (auto [number, use] : llvm::enumerate(query.uses)) {
    const int dim = dimOf(use);
    if (dim == noShard || !use.subscripts[dim].isLoaded)
      continue;
    LoadOp ids = loadedIndex(use.load.getIndices()[dim]);
    if (!ids || (found.ids && !isIds(ids) && found.ids != ids))
      return false;
    const Value entries = extentsOf(use.load.getTensor())[dim];
    if (found.entries && !isSame(found.entries, entries))
      return false;
    found.entries = entries;
    if (!found.ids)
      found.ids = ids;
    found.tables.push_back(number);
  }
  if (!found.ids)
    return false;
  for (Value index : found.ids.getIndices()) {
    auto row = dyn_cast<BlockArgument>(index);
    if (!row || row.getOwner() != query.compute.getBlock() || found.isRow(row))
      return false;
    found.rows.push_back(row);
  }
  return !found.rows.empty();
}

/// A row index that the axis divides in the result or in an operand.
bool Finder::chooseCarrier() {
  for (auto [k, row] : llvm::enumerate(found.rows)) {
    bool isDivided = query.desired[row.getArgNumber()] == found.axis;
    for (const TensorUse &use : query.uses)
      if (const int dim = dimOf(use); dim != noShard)
        isDivided |= use.subscripts[dim].index == row && !use.subscripts[dim].isQuotient;
    if (isDivided) {
      found.carrier = k;
      return true;
    }
  }
  return false;
}

bool Finder::readsRow(const TensorUse &use) const {
  Dependence onRows(SmallVector<Value>(found.rows.begin(), found.rows.end()));
  return llvm::any_of(use.load.getIndices(), [&](Value index) { return onRows.on(index); });
}

/// Each operand is a table, the rows that go with the ids, or the same for all rows.
bool Finder::sortUses() {
  Dependence onRows(SmallVector<Value>(found.rows.begin(), found.rows.end()));
  for (auto [number, use] : llvm::enumerate(query.uses)) {
    const int sharded = dimOf(use);
    const bool isTable = llvm::is_contained(found.tables, number);
    SmallVector<Value> seen;
    for (auto [dim, subscript, index] : llvm::enumerate(use.subscripts, use.load.getIndices())) {
      if (isTable && static_cast<int>(dim) == sharded)
        continue;
      if (!onRows.on(index))
        continue;
      if (isTable || !found.isRow(index) || !subscript.index || llvm::is_contained(seen, index))
        return false;
      seen.push_back(index);
    }
    if (isTable)
      continue;
    if (sharded != noShard && use.subscripts[sharded].index != found.carrierIndex())
      return false;
    if (!seen.empty())
      found.rowReads.push_back(number);
  }
  return true;
}

/// Whether row indices are nothing but subscripts of the rows' operands.
bool Finder::rowsSelectOnly() const {
  for (BlockArgument row : found.rows)
    for (Operation *user : row.getUsers())
      if (llvm::none_of(found.rowReads,
                        [&](unsigned number) { return query.uses[number].load == user; }))
        return false;
  return true;
}

std::optional<RowExchange> Finder::run() {
  if (query.compute.getNumResults() != 1 || !findTables() || !chooseCarrier() || !sortUses() ||
      !rowsSelectOnly())
    return std::nullopt;
  // Another axis that divides the ids would divide the rows, too.
  for (int axis : query.shardingOf(found.ids.getTensor()))
    if (axis != noShard && axis != found.axis)
      return std::nullopt;
  for (unsigned number : found.rowReads)
    for (auto [axis, subscript] : llvm::zip(query.shardingOf(query.uses[number].load.getTensor()),
                                            query.uses[number].subscripts))
      if (axis != noShard && axis != found.axis && subscript.index && found.isRow(subscript.index))
        return std::nullopt;
  return found;
}

} // namespace

std::optional<RowExchange> findRowExchange(const ExchangeQuery &query, int axis, double ranks) {
  return Finder(query, axis, ranks).run();
}

/// Bytes of what a use reads for all rows: each row is sent to one rank.
static double bytesOfRows(const RowExchange &exchange, const TensorUse &use) {
  SmallVector<Value> extents;
  for (BlockArgument row : exchange.rows)
    extents.push_back(extentOf(row));
  const SmallVector<Value> own = extentsOf(use.load.getTensor());
  for (auto [extent, index] : llvm::zip(own, use.load.getIndices()))
    if (!exchange.isRow(index))
      extents.push_back(extent);
  return bytesOf(extents, cast<RankedTensorType>(use.load.getTensor().getType()).getElementType());
}

double timeOfExchange(const ExchangeQuery &query, const RowExchange &exchange,
                      const MeshCosts &costs, llvm::function_ref<bool(Value)> isThere) {
  constexpr double launches = 2; // that sort the rows, and that put results back
  // A rank goes through a slot for each row of all ranks, as all might come.
  double time = launches * cost::launch + timeOfWork(query.compute, costs);
  for (unsigned number : exchange.rowReads)
    if (const TensorUse &use = query.uses[number]; !isThere(use.load.getTensor()))
      time += costs.timeOf(Collective::AllToAll, exchange.axis, bytesOfRows(exchange, use));
  const Value result = query.compute.getResult(0);
  return time + costs.timeOf(Collective::AllToAll, exchange.axis, bytesOf(result));
}

double timeWithoutExchange(const ExchangeQuery &query, const RowExchange &exchange,
                           const MeshCosts &costs) {
  const Value result = query.compute.getResult(0);
  const double work = timeOfWork(query.compute, costs);
  if (isGather(query.compute)) // the ranks combine what each of them has
    return work + costs.timeOf(llvm::is_contained(query.desired, exchange.axis)
                                   ? Collective::ReduceScatter
                                   : Collective::AllReduce,
                               exchange.axis, bytesOf(result));
  double time = work / exchange.ranks;
  llvm::SmallPtrSet<void *, 4> seen;
  for (unsigned number : exchange.tables)
    if (Value table = query.uses[number].load.getTensor();
        seen.insert(table.getAsOpaquePointer()).second)
      time += costs.timeOf(Collective::AllGather, exchange.axis, bytesOf(table));
  return time;
}

} // namespace tk::mesh
