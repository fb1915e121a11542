// The weights of the model on the device.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "config.h"
#include "device.h"
#include "kernels.h"

namespace llama {

/// One layer. Matrices are [outputs, inputs]; each norm is multiplied into the one that follows it.
struct LayerWeights {
  Tensor qkv; ///< the rows of queries, then those of keys, then those of values
  Tensor out; ///< of the attention
  Tensor gate, up, down;
};

struct Weights {
  Tensor embedding; ///< [vocabulary, width]
  std::vector<LayerWeights> layers;
  Tensor head; ///< [vocabulary, width]

  /// Reads all safetensors files of a folder. Throws `io` or `bad_file`.
  static Weights load(Device &device, const Kernels &kernels, const Config &config,
                      const std::filesystem::path &folder);
  /// Uniform weights by a seed: the same on every target.
  static Weights random(Device &device, const Kernels &kernels, const Config &config, int64_t seed);
  /// The bytes that a decode step reads: all but the embedding, of which it reads a few rows.
  int64_t bytes_per_step(const Config &config) const;

private:
  static Weights allocate(Device &device, const Config &config);
};

} // namespace llama
