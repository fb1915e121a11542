//===- Placement.h - a model on a mesh of GPUs ------------------*- C++ -*-===//
//
// The axes of parallelism and their groups on a network:
//
//   tp   tensor parallelism: the columns and rows of matrices, and the rows between them
//   ep   experts; the axis takes its GPUs from dp
//   dp   data parallelism: the sequences of a batch
//   pp   pipeline parallelism: the layers
//
// The mesh is tp * dp * pp GPUs. ep divides dp: the weights that are not of experts have copies on
// all of dp, those of an expert on dp / ep.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_STEP_PLACEMENT_H
#define TK_COMPILER_STEP_PLACEMENT_H

#include "compiler/step/Block.h"
#include "passes/network/Collectives.h"

namespace tk::step {

/// What a collective is for. Each has a group.
enum class Parallelism : uint8_t { None, Tensor, Experts, Data, ExpertData, Pipeline };
inline constexpr size_t numParallelisms = 6;
/// "tp", "ep", "dp", "dp/ep", "pp"; "-" of none.
llvm::StringRef nameOf(Parallelism parallelism);

struct Placement {
  Block block;
  network::Network network;
  network::Mesh mesh; ///< the axes tp, ep, dp / ep (called "dp") and pp, from the innermost out
  Machine machine;
  std::array<network::Group, numParallelisms> groups;

  double size(Parallelism of) const { return groups[static_cast<size_t>(of)].size; }
  const network::Group &group(Parallelism of) const { return groups[static_cast<size_t>(of)]; }
  double tensor() const { return size(Parallelism::Tensor); }
  double experts() const { return size(Parallelism::Experts); }
  double data() const { return size(Parallelism::Data); }
  double stages() const { return size(Parallelism::Pipeline); }
  /// Rows of the activations of one microbatch on one data-parallel rank.
  double rows() const;
};

/// The mesh of axes as they are written after --mesh, with ep taken out of dp.
llvm::Expected<network::Mesh> meshFor(llvm::ArrayRef<network::Axis> axes, llvm::StringRef order);

/// `axes` as they are written after --mesh; `order` names the axes from the innermost out, or is
/// empty for tp, ep, dp, pp. The error is a DescriptionError.
llvm::Expected<Placement> place(Block block, network::Network network, const Machine &machine,
                                llvm::ArrayRef<network::Axis> axes, llvm::StringRef order);

} // namespace tk::step

#endif // TK_COMPILER_STEP_PLACEMENT_H
