//===- Block.h - a transformer model as plain data --------------*- C++ -*-===//
//
// The sizes of a transformer's blocks and of a training step. docs/reference/mesh.md lists the
// fields of the file.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_STEP_BLOCK_H
#define TK_COMPILER_STEP_BLOCK_H

#include "passes/machine/CostModel.h"
#include "passes/network/Fields.h"

namespace tk::step {

/// A type of elements.
struct ElementType {
  std::string name;
  double bytes = 2;
  MatrixType matrix = MatrixType::Half;
};

/// Experts in place of the dense products of a block.
struct Experts {
  int64_t count = 0; ///< 0: the blocks are dense
  int64_t topK = 0;
  int64_t hidden = 0;      ///< of one expert
  int64_t shared = 0;      ///< experts that each row goes to
  int64_t denseLayers = 0; ///< layers without experts, at the beginning
};

struct Block {
  std::string name, source;
  int64_t layers = 1, width = 0, heads = 0, kvHeads = 0, headSize = 0, hidden = 0;
  bool isCausal = true, isGated = true;
  Experts experts;
  int64_t vocabulary = 0;                            ///< 0: no product with the vocabulary
  int64_t sequence = 0, batch = 0, microbatches = 1; ///< batch: sequences of a step, of all GPUs
  int64_t chunks =
      1; ///< of a pipeline's stage: layers that are not neighbours (interleaved stages)
  ElementType type, wire, gradients;
  bool areWeightsSharded = false; ///< over the data-parallel axis, and gathered before use
  double optimizerBytes = 0;      ///< read and written of a weight by the optimizer

  /// Matrices of a block's feed-forward part.
  double matrices() const { return isGated ? 3 : 2; }
  double attentionWeights() const;
  /// Of the dense feed-forward part, of one expert, of the shared experts, and of the router.
  double denseWeights() const;
  double expertWeights() const;
  double sharedWeights() const;
  double routerWeights() const;
  double headWeights() const;
  int64_t expertLayers() const { return experts.count ? layers - experts.denseLayers : 0; }
  /// Weights of the whole model but for the embedding; those that one row is multiplied with.
  double allWeights() const;
  double activeWeights() const;
};

/// Reads a description; the error is a DescriptionError.
llvm::Expected<Block> parseBlock(llvm::StringRef text);

} // namespace tk::step

#endif // TK_COMPILER_STEP_BLOCK_H
