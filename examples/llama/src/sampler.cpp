#include "sampler.h"

#include <numeric>
#include <vector>

#include <tk/error.h>

namespace llama {

Sampler::Sampler(Device &device, const Kernels &kernels, Sampling sampling, int64_t slots)
    : m_kernels(kernels), m_sampling(sampling) {
  if (!(sampling.temperature > 0))
    throw tk::Error(tk::ErrorCode::invalid_argument, "expected a temperature above 0");
  if (!(sampling.top > 0 && sampling.top <= 1))
    throw tk::Error(tk::ErrorCode::invalid_argument, "expected a sum of probabilities in (0, 1]");
  std::vector<int64_t> seeds(slots);
  std::iota(seeds.begin(), seeds.end(), sampling.seed);
  m_seeds = Tensor(device, tk::DType::i64, {slots}, std::span<const int64_t>(seeds));
}

void Sampler::add_to(LaunchList &list, const tk::TensorView &logits, const tk::TensorView &position,
                     const tk::TensorView &token) const {
  if (m_sampling.is_greedy)
    list.add(m_kernels.greedy, {logits, token});
  else
    list.add(m_kernels.top_p,
             {logits, m_seeds.view(), position, m_sampling.temperature, m_sampling.top, token});
}

} // namespace llama
