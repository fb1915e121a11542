//===- MeshCost.h - what the steps of a kernel on a mesh cost ---*- C++ -*-===//
//
// One rank's steps at given sizes: launches by the cost model (passes/machine), collectives by the
// network model (passes/network). docs/explanation/mesh.md has the formulas.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_TKC_MESHCOST_H
#define TK_COMPILER_TKC_MESHCOST_H

#include "compiler/CompiledSource.h"
#include "compiler/tkc/MeshChoice.h"

#include "llvm/Support/JSON.h"

namespace tk::tkc {

/// Times in nanoseconds.
struct MeshStepCost {
  std::string what;                        ///< "all_gather over tp", "launch up_1"
  std::string tensor;                      ///< that is moved; empty of a launch
  double math = 0, memory = 0, launch = 0; ///< of launches: the busiest unit, memory, and in all
  double bytes = 0;                        ///< of the whole array that a collective moves
  double latency = 0, comms = 0;           ///< of collectives: before the bytes, and in all
  double hidden = 0;                       ///< of both, the time in which both run
  std::string bound;                       ///< a unit of the launch, or the network's level
  double total() const { return launch + comms - hidden; }
};

struct MeshCost {
  std::string kernel, target, mesh, network;
  std::vector<MeshStepCost> steps;
};

/// The cost on rank 0 for sizes that are all given, with scalars by the signature's order.
Expected<MeshCost> costOnMesh(const CompiledSource &source, size_t kernel,
                              const std::string &target, const MeshChoice &choice,
                              const std::vector<std::optional<Scalar>> &given);

std::string textOf(const MeshCost &cost);
llvm::json::Value jsonOf(const MeshCost &cost);

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_MESHCOST_H
