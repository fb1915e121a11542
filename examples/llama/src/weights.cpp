#include "weights.h"

#include <cmath>
#include <string>

#include "safetensors.h"

namespace llama {

Weights Weights::allocate(Device &device, const Config &config) {
  auto matrix = [&](int64_t rows, int64_t columns) {
    return Tensor(device, tk::DType::bf16, {rows, columns});
  };
  Weights weights;
  weights.embedding = matrix(config.vocabulary, config.width);
  weights.head = matrix(config.vocabulary, config.width);
  for (int64_t i = 0; i < config.layers; ++i) {
    LayerWeights layer;
    layer.qkv = matrix(config.qkv_rows(), config.width);
    layer.out = matrix(config.width, config.heads * config.head_size);
    layer.gate = matrix(config.intermediate, config.width);
    layer.up = matrix(config.intermediate, config.width);
    layer.down = matrix(config.width, config.intermediate);
    weights.layers.push_back(std::move(layer));
  }
  return weights;
}

int64_t Weights::bytes_per_step(const Config &config) const {
  int64_t bytes = head.view().storage_bytes;
  for (const LayerWeights &layer : layers)
    for (const Tensor *tensor : {&layer.qkv, &layer.out, &layer.gate, &layer.up, &layer.down})
      bytes += tensor->view().storage_bytes;
  return bytes + config.width * static_cast<int64_t>(tk::size_of(tk::DType::bf16));
}

Weights Weights::random(Device &device, const Kernels &kernels, const Config &config,
                        int64_t seed) {
  Weights weights = allocate(device, config);
  int64_t number = 0; // each tensor has 2^40 random numbers of its own
  // A product of a row whose squares have the mean 1 has about the variance gain^2.
  auto fill = [&](const Tensor &tensor, double gain, int64_t inputs) {
    int64_t count = tensor.view().shape[0] * tensor.view().shape[1];
    LaunchList list;
    list.add(kernels.random_weights,
             {seed, number++ << 40, gain * std::sqrt(3.0 / inputs), count, tensor.as({count})});
    list.run(device.stream());
  };
  fill(weights.embedding, 1, 1);
  fill(weights.head, 4, config.width);
  for (const LayerWeights &layer : weights.layers) {
    fill(layer.qkv, 1, config.width);
    fill(layer.out, 1, config.heads * config.head_size);
    fill(layer.gate, 1, config.width);
    fill(layer.up, 1, config.width);
    fill(layer.down, 1, config.intermediate);
  }
  return weights;
}

namespace {

/// Copies tensors of a checkpoint to the device.
class Loader {
public:
  Loader(Device &device, const Kernels &kernels, const std::filesystem::path &folder)
      : m_device(device), m_kernels(kernels), m_checkpoint(folder) {}

  bool contains(const std::string &name) const { return m_checkpoint.contains(name); }

  void copy(const std::string &name, const Tensor &to) const {
    copyRows({name}, {to.view().shape[0]}, to);
  }

  /// Several matrices, one below the other.
  void copyRows(const std::vector<std::string> &names, const std::vector<int64_t> &rows,
                const Tensor &to) const {
    int64_t columns = to.view().shape[1];
    std::vector<uint16_t> all;
    for (size_t i = 0; i < names.size(); ++i) {
      std::vector<uint16_t> values = m_checkpoint.bf16(names[i], {rows[i], columns});
      if (names.size() == 1)
        all = std::move(values);
      else
        all.insert(all.end(), values.begin(), values.end());
    }
    to.write(m_device, all.data(), all.size() * sizeof(uint16_t));
  }

  /// Multiplies the weights of a norm into the columns of matrices.
  void scaleColumns(const std::string &name, std::initializer_list<const Tensor *> matrices) const {
    int64_t columns = (*matrices.begin())->view().shape[1];
    std::vector<uint16_t> values = m_checkpoint.bf16(name, {columns});
    Tensor gamma(m_device, tk::DType::bf16, {columns}, std::span<const uint16_t>(values));
    LaunchList list;
    for (const Tensor *matrix : matrices)
      list.add(m_kernels.scale_columns, {gamma.view(), matrix->view()});
    list.run(m_device.stream());
    m_device.synchronize(); // gamma is freed
  }

private:
  Device &m_device;
  const Kernels &m_kernels;
  Checkpoint m_checkpoint;
};

} // namespace

Weights Weights::load(Device &device, const Kernels &kernels, const Config &config,
                      const std::filesystem::path &folder) {
  Weights weights = allocate(device, config);
  Loader loader(device, kernels, folder);
  loader.copy("model.embed_tokens.weight", weights.embedding);
  bool has_head = !config.tied_embeddings && loader.contains("lm_head.weight");
  loader.copy(has_head ? "lm_head.weight" : "model.embed_tokens.weight", weights.head);
  loader.scaleColumns("model.norm.weight", {&weights.head});
  int64_t key_rows = config.key_heads * config.head_size;
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    const LayerWeights &layer = weights.layers[i];
    std::string name = "model.layers." + std::to_string(i) + ".";
    std::string attention = name + "self_attn.", mlp = name + "mlp.";
    loader.copyRows(
        {attention + "q_proj.weight", attention + "k_proj.weight", attention + "v_proj.weight"},
        {config.heads * config.head_size, key_rows, key_rows}, layer.qkv);
    loader.copy(attention + "o_proj.weight", layer.out);
    loader.copy(mlp + "gate_proj.weight", layer.gate);
    loader.copy(mlp + "up_proj.weight", layer.up);
    loader.copy(mlp + "down_proj.weight", layer.down);
    loader.scaleColumns(name + "input_layernorm.weight", {&layer.qkv});
    loader.scaleColumns(name + "post_attention_layernorm.weight", {&layer.gate, &layer.up});
  }
  return weights;
}

} // namespace llama
