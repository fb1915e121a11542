//===- RowExchange.h - rows that go where their table entries are -*- C++ -*-===//
//
// A compute op that reads `table[ids[m, j], …]`, of which each rank of an axis holds a share, can
// be computed row by row where the entries are. A row is one value of the indices of `ids`.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_MESH_ROWEXCHANGE_H
#define TK_PASSES_MESH_ROWEXCHANGE_H

#include "passes/mesh/IndexUses.h"
#include "passes/mesh/MeshCosts.h"

#include <optional>

namespace tk::mesh {

/// A compute op of that kind.
struct RowExchange {
  int axis = noShard;
  double ranks = 1;
  mutable LoadOp ids;                           ///< that selects the entries
  mlir::SmallVector<mlir::BlockArgument> rows;  ///< the indices of `ids`, in their order
  unsigned carrier = 0;                         ///< which of them the axis divides
  mlir::SmallVector<unsigned> tables, rowReads; ///< numbers of uses
  mlir::Value entries;                          ///< extent of the tables
  mlir::BlockArgument carrierIndex() const { return rows[carrier]; }
  bool isRow(mlir::Value index) const {
    return llvm::is_contained(rows, llvm::dyn_cast<mlir::BlockArgument>(index));
  }
};

/// What is asked of a compute op.
struct ExchangeQuery {
  mutable ComputeOp compute;
  mlir::ArrayRef<TensorUse> uses;
  llvm::function_ref<Sharding(mlir::Value)> shardingOf;
  Sharding desired; ///< of the result
};

/// The exchange over an axis that the compute op allows, if any.
std::optional<RowExchange> findRowExchange(const ExchangeQuery &query, int axis, double ranks);

/// The predicted time of the statement with the exchange, and without.
double timeOfExchange(const ExchangeQuery &query, const RowExchange &exchange,
                      const MeshCosts &costs, llvm::function_ref<bool(mlir::Value)> isThere);
double timeWithoutExchange(const ExchangeQuery &query, const RowExchange &exchange,
                           const MeshCosts &costs);

} // namespace tk::mesh

#endif // TK_PASSES_MESH_ROWEXCHANGE_H
