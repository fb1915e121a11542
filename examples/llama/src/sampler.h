// How the next token is chosen from the logits.
#pragma once

#include <cstdint>

#include "device.h"
#include "kernels.h"

namespace llama {

struct Sampling {
  bool is_greedy = true;
  double temperature = 1; ///< above 0
  double top = 0.9;       ///< the least sum of the probabilities that are kept
  int64_t seed = 0;       ///< sequence i has the seed plus i
};

class Sampler {
public:
  /// Throws `invalid_argument` for a temperature or a `top` that is out of range.
  Sampler(Device &device, const Kernels &kernels, Sampling sampling, int64_t slots);

  /// Adds the choice of `token` (i32[slots]) from `logits` (f32[slots, vocabulary]). The random
  /// numbers depend on `position` (i32[slots]).
  void add_to(LaunchList &list, const tk::TensorView &logits, const tk::TensorView &position,
              const tk::TensorView &token) const;

private:
  const Kernels &m_kernels;
  Sampling m_sampling;
  Tensor m_seeds;
};

} // namespace llama
