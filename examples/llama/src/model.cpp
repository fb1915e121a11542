#include "model.h"

#include <algorithm>
#include <string>

#include <tk/error.h>

namespace llama {

Model::Activations::Activations(Device &device, const Config &config, int64_t rows)
    : x(device, tk::DType::bf16, {rows, config.width}), scale(device, tk::DType::f32, {rows}),
      qkv(device, tk::DType::bf16, {rows, config.qkv_rows()}),
      q(device, tk::DType::bf16, {rows, config.heads, config.head_size}),
      attention(device, tk::DType::bf16, {rows, config.heads, config.head_size}),
      hidden(device, tk::DType::bf16, {rows, config.intermediate}), rows(rows) {}

/// Into how many parts a decode step cuts the sums of a product.
static constexpr int64_t num_parts = 2;

Model::StepActivations::StepActivations(Device &device, const Config &config, int64_t slots)
    : Activations(device, config, slots), y(device, tk::DType::bf16, {slots, config.width}),
      parts(device, tk::DType::f32, {num_parts, slots, config.width}) {
  std::vector<float> ones(slots, 1);
  scale.write(device, ones.data(), ones.size() * sizeof(float));
}

Model::Model(Device &device, const Kernels &kernels, const Config &config, const Weights &weights,
             CacheSizes sizes, Sampling sampling)
    : m_device(device), m_kernels(kernels), m_config(config), m_weights(weights),
      m_cache(device, kernels, config, sizes), m_sampler(device, kernels, sampling, sizes.slots),
      m_token(device, tk::DType::i32, {sizes.slots}),
      m_position(device, tk::DType::i32, {sizes.slots}),
      m_logits(device, tk::DType::f32, {sizes.slots, config.vocabulary}),
      m_rows(device, config, sizes.slots), m_positions(sizes.slots, -1) {
  RopeTable table = rope_table(config, sizes.context);
  tk::Extents shape = {sizes.context, config.head_size / 2};
  m_cosine = Tensor(device, tk::DType::f32, shape, std::span<const float>(table.cosine));
  m_sine = Tensor(device, tk::DType::f32, shape, std::span<const float>(table.sine));
  build_step();
}

/// The rows of a product as heads.
static tk::TensorView by_heads(const Tensor &qkv, const Config &config) {
  int64_t heads = config.heads + 2 * config.key_heads;
  return qkv.as({qkv.view().shape[0], heads, config.head_size});
}

void Model::add_prefill_attention(LaunchList &list, int64_t layer, const Activations &rows,
                                  const PackedPrompts &packed, const tk::TensorView &position,
                                  const tk::TensorView &first) const {
  tk::TensorView keys = m_cache.key_rows(layer, packed.first_page, packed.num_pages),
                 values = m_cache.value_rows(layer, packed.first_page, packed.num_pages);
  list.add(m_kernels.rope, {by_heads(rows.qkv, m_config), position, m_cosine.view(), m_sine.view(),
                            m_config.key_heads, rows.q.view(), keys, values});
  list.add(m_kernels.attention_prefill,
           {rows.q.view(), keys, values, first, rows.attention.view()});
}

void Model::add_decode_attention(LaunchList &list, int64_t layer) const {
  list.add(m_kernels.rope_keep,
           {by_heads(m_rows.qkv, m_config), m_position.view(), m_cosine.view(), m_sine.view(),
            m_cache.open_keys(layer), m_cache.open_values(layer), m_rows.q.view()});
  list.add(m_kernels.attention_decode,
           {m_rows.q.view(), m_cache.keys(layer), m_cache.values(layer), m_cache.table(),
            m_position.view(), m_rows.attention.view()});
}

void Model::add_prefill_layer(LaunchList &list, int64_t layer, const Activations &rows,
                              const PackedPrompts &packed, const tk::TensorView &position,
                              const tk::TensorView &first) const {
  const LayerWeights &weights = m_weights.layers[layer];
  double epsilon = m_config.norm_epsilon;
  list.add(m_kernels.qkv, {rows.x.view(), rows.scale.view(), weights.qkv.view(), rows.qkv.view()});
  add_prefill_attention(list, layer, rows, packed, position, first);
  list.add(m_kernels.project, {rows.attention.as({rows.rows, m_config.heads * m_config.head_size}),
                               weights.out.view(), rows.x.view(), epsilon, rows.scale.view()});
  list.add(m_kernels.gate_up, {rows.x.view(), rows.scale.view(), weights.gate.view(),
                               weights.up.view(), rows.hidden.view()});
  list.add(m_kernels.project,
           {rows.hidden.view(), weights.down.view(), rows.x.view(), epsilon, rows.scale.view()});
}

void Model::add_decode_layer(LaunchList &list, int64_t layer) const {
  const LayerWeights &weights = m_weights.layers[layer];
  list.add(m_kernels.qkv,
           {m_rows.y.view(), m_rows.scale.view(), weights.qkv.view(), m_rows.qkv.view()});
  add_decode_attention(list, layer);
  add_projection(list, m_rows.attention, weights.out);
  list.add(m_kernels.gate_up, {m_rows.y.view(), m_rows.scale.view(), weights.gate.view(),
                               weights.up.view(), m_rows.hidden.view()});
  add_projection(list, m_rows.hidden, weights.down);
}

/// Adds a product to the residual stream, and normalises it.
void Model::add_projection(LaunchList &list, const Tensor &from, const Tensor &weights) const {
  int64_t terms = weights.view().shape[1];
  int64_t parts = terms % num_parts == 0 ? num_parts : 1;
  tk::TensorView sums = m_rows.parts.as({parts, m_rows.rows, m_config.width});
  list.add(m_kernels.project_parts, {from.as({m_rows.rows, parts, terms / parts}),
                                     weights.as({m_config.width, parts, terms / parts}), sums});
  list.add(m_kernels.add_parts, {sums, m_rows.x.view(), m_config.norm_epsilon, m_rows.y.view()});
}

/// The logits of the slots' rows, the next tokens, and their positions.
void Model::add_choice(LaunchList &list) const {
  list.add(m_kernels.logits,
           {m_rows.y.view(), m_rows.scale.view(), m_weights.head.view(), m_logits.view()});
  m_sampler.add_to(list, m_logits, m_position, m_token);
  list.add(m_kernels.advance, {m_position.view()});
}

void Model::build_step() {
  m_step.add(m_kernels.embed_normed, {m_token.view(), m_weights.embedding.view(),
                                      m_config.norm_epsilon, m_rows.x.view(), m_rows.y.view()});
  for (int64_t layer = 0; layer < m_config.layers; ++layer)
    add_decode_layer(m_step, layer);
  add_choice(m_step);
}

void Model::check(const std::vector<Tokens> &prompts) const {
  auto fail = [](const std::string &what) {
    throw tk::Error(tk::ErrorCode::invalid_argument, what);
  };
  const CacheSizes &sizes = m_cache.sizes();
  if (prompts.empty() || static_cast<int64_t>(prompts.size()) > sizes.slots)
    fail("expected 1 to " + std::to_string(sizes.slots) + " prompts, got " +
         std::to_string(prompts.size()));
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (prompts[i].empty() || static_cast<int64_t>(prompts[i].size()) > sizes.context)
      fail("prompt " + std::to_string(i) + " has " + std::to_string(prompts[i].size()) +
           " tokens; expected 1 to " + std::to_string(sizes.context));
    for (int32_t token : prompts[i])
      if (token < 0 || token >= m_config.vocabulary)
        fail("prompt " + std::to_string(i) + ": token " + std::to_string(token) +
             " is outside of the vocabulary of " + std::to_string(m_config.vocabulary));
  }
}

Model::PackedPrompts Model::pack(const std::vector<Tokens> &prompts) {
  const CacheSizes &sizes = m_cache.sizes();
  PackedPrompts packed;
  packed.last_row.assign(sizes.slots, -1);
  packed.last_position.assign(sizes.slots, -1);
  for (size_t slot = 0; slot < prompts.size(); ++slot) {
    auto start = static_cast<int32_t>(packed.token.size());
    auto length = static_cast<int32_t>(prompts[slot].size());
    int64_t rows = m_cache.pages_for(length) * sizes.page;
    packed.token.insert(packed.token.end(), prompts[slot].begin(), prompts[slot].end());
    packed.token.resize(start + rows); // the rows behind the prompt are computed, and not read
    for (int32_t i = 0; i < rows; ++i)
      packed.position.push_back(i);
    packed.first.insert(packed.first.end(), rows, start);
    packed.last_row[slot] = start + length - 1;
    packed.last_position[slot] = length - 1;
  }
  packed.num_pages = static_cast<int64_t>(packed.token.size()) / sizes.page;
  packed.first_page = m_cache.take(packed.num_pages);
  return packed;
}

Tokens Model::prefill(const std::vector<Tokens> &prompts) {
  check(prompts);
  for (int64_t slot = 0; slot < m_cache.sizes().slots; ++slot)
    m_cache.clear(slot);
  PackedPrompts packed = pack(prompts);
  auto tensor = [&](const Tokens &values) {
    return Tensor(m_device, tk::DType::i32, {static_cast<int64_t>(values.size())},
                  std::span<const int32_t>(values));
  };
  Tensor token = tensor(packed.token), position = tensor(packed.position),
         first = tensor(packed.first), last = tensor(packed.last_row);
  m_position.write(m_device, packed.last_position.data(), packed.last_position.size() * 4);

  Activations rows(m_device, m_config, token.view().shape[0]);
  LaunchList list;
  list.add(m_kernels.embed, {token.view(), m_weights.embedding.view(), m_config.norm_epsilon,
                             rows.x.view(), rows.scale.view()});
  for (int64_t layer = 0; layer < m_config.layers; ++layer)
    add_prefill_layer(list, layer, rows, packed, position, first);
  list.add(m_kernels.last_rows, {rows.x.view(), rows.scale.view(), last.view(), m_rows.y.view()});
  add_choice(list);
  list.run(m_device.stream());

  int64_t page = packed.first_page;
  for (size_t slot = 0; slot < prompts.size(); ++slot) {
    auto length = static_cast<int64_t>(prompts[slot].size());
    m_cache.adopt(static_cast<int64_t>(slot), page, length);
    page += m_cache.pages_for(length);
  }
  std::fill(m_positions.begin(), m_positions.end(), -1);
  for (size_t slot = 0; slot < prompts.size(); ++slot)
    m_positions[slot] = static_cast<int32_t>(prompts[slot].size());
  m_num_prompts = static_cast<int64_t>(prompts.size());
  return read_tokens(); // waits, so that the prefill's memory may be freed
}

Tokens Model::decode() {
  for (int64_t slot = 0; slot < m_num_prompts; ++slot)
    m_cache.make_room(slot, m_positions[slot]);
  m_cache.upload_table();
  // The first step is launched kernel by kernel: it loads code and reserves scratch memory, which a
  // capture must not.
  if (!m_graph && m_num_steps > 0 && m_device.has_graphs()) {
    m_device.begin_capture();
    m_step.run(m_device.stream());
    m_graph = m_device.end_capture();
  }
  if (m_graph)
    m_graph->launch();
  else
    m_step.run(m_device.stream());
  ++m_num_steps;
  for (int64_t slot = 0; slot < m_num_prompts; ++slot)
    ++m_positions[slot];
  return read_tokens();
}

Tokens Model::read_tokens() {
  Tokens tokens(m_cache.sizes().slots);
  m_device.download(tokens.data(), m_token.view().data, tokens.size() * sizeof(int32_t));
  tokens.resize(m_num_prompts);
  return tokens;
}

} // namespace llama
