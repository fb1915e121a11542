//===- ChooseCarrier.h - the index that an axis divides ---------*- C++ -*-===//
#ifndef TK_PASSES_MESH_CHOOSECARRIER_H
#define TK_PASSES_MESH_CHOOSECARRIER_H

#include "passes/mesh/IndexUses.h"
#include "passes/mesh/MeshCosts.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace tk::mesh {

/// A compute op whose indices are to be divided among ranks.
struct CarrierQuery {
  mutable ComputeOp compute;
  mlir::ArrayRef<TensorUse> uses;
  llvm::function_ref<Sharding(mlir::Value)> shardingOf; ///< of a tensor that is read
  Sharding desired;                                     ///< of the result
  bool isRequired = false;                              ///< else desired is what readers prefer
  const MeshCosts *costs = nullptr;
};

/// What an operand needs if an axis divides an index.
enum class Movement { none, allToAll, allGather };
/// `index` may be null. `to` receives the dimension that is sharded behind an all-to-all.
Movement movementOf(const TensorUse &use, const Sharding &sharding, int axis,
                    mlir::BlockArgument index, unsigned *to = nullptr);

/// The index that the `ranks` ranks of an axis divide, none of `taken`; null if every rank computes
/// all. `why` says how it was chosen.
mlir::BlockArgument chooseCarrier(const CarrierQuery &query, int axis, int64_t ranks,
                                  mlir::ArrayRef<mlir::BlockArgument> taken, std::string &why);

/// The predicted time of a compute op on one rank that computes all of it.
double timeOfWork(ComputeOp compute, const MeshCosts &costs);

} // namespace tk::mesh

#endif // TK_PASSES_MESH_CHOOSECARRIER_H
