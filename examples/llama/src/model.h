// The decoder: prefill of packed prompts, and decode steps over the paged cache.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cache.h"
#include "config.h"
#include "device.h"
#include "kernels.h"
#include "sampler.h"
#include "weights.h"

namespace llama {

using Tokens = std::vector<int32_t>;

class Model {
public:
  Model(Device &device, const Kernels &kernels, const Config &config, const Weights &weights,
        CacheSizes sizes, Sampling sampling);

  /// Runs prompts through the model, one a slot, and returns the first token after each. What slots
  /// had before is dropped. Throws `invalid_argument` for an empty or too long prompt, or a bad
  /// token.
  Tokens prefill(const std::vector<Tokens> &prompts);
  /// The next token of each sequence. On a GPU the second step is captured in a CUDA graph, which
  /// all further ones launch.
  Tokens decode();
  size_t launches_per_step() const { return m_step.size(); }

private:
  /// The tensors between the kernels of a layer, for a number of rows.
  struct Activations {
    Activations(Device &device, const Config &config, int64_t rows);
    Tensor x, scale, qkv, q, attention, hidden;
    int64_t rows;
  };
  /// Those of a decode step, whose `scale` is 1.
  struct StepActivations : Activations {
    StepActivations(Device &device, const Config &config, int64_t slots);
    Tensor y;     ///< normalised rows
    Tensor parts; ///< of a product: f32[num_parts, slots, width]
  };
  /// Prompts in a row, each from the first row of a page on.
  struct PackedPrompts {
    Tokens token, position, first;
    Tokens last_row, last_position; ///< a slot each
    int64_t first_page = 0, num_pages = 0;
  };

  void check(const std::vector<Tokens> &prompts) const;
  PackedPrompts pack(const std::vector<Tokens> &prompts);
  void add_prefill_attention(LaunchList &list, int64_t layer, const Activations &rows,
                             const PackedPrompts &packed, const tk::TensorView &position,
                             const tk::TensorView &first) const;
  void add_decode_attention(LaunchList &list, int64_t layer) const;
  void add_prefill_layer(LaunchList &list, int64_t layer, const Activations &rows,
                         const PackedPrompts &packed, const tk::TensorView &position,
                         const tk::TensorView &first) const;
  void add_decode_layer(LaunchList &list, int64_t layer) const;
  void add_projection(LaunchList &list, const Tensor &from, const Tensor &weights) const;
  void add_choice(LaunchList &list) const;
  void build_step();
  Tokens read_tokens();

  Device &m_device;
  const Kernels &m_kernels;
  Config m_config;
  const Weights &m_weights;
  Cache m_cache;
  Sampler m_sampler;
  Tensor m_cosine, m_sine;
  Tensor m_token, m_position, m_logits; ///< a slot each
  StepActivations m_rows;
  LaunchList m_step{true};
  std::unique_ptr<Graph> m_graph;
  Tokens m_positions; ///< of each slot's next token; -1 without a sequence
  int64_t m_num_prompts = 0;
  int64_t m_num_steps = 0;
};

} // namespace llama
