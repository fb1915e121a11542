// The sizes and constants of a Llama model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace llama {

struct Config {
  int64_t vocabulary = 0;
  int64_t width = 0;        ///< of the residual stream
  int64_t intermediate = 0; ///< of the gated layer
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t key_heads = 0;
  int64_t head_size = 0;
  double norm_epsilon = 1e-5;
  double rope_base = 500000;
  /// Llama 3's scaling of low frequencies; none if `rope_factor` is 1.
  double rope_factor = 1, rope_low = 1, rope_high = 4;
  int64_t rope_original_context = 8192;
  bool tied_embeddings = false; ///< the last product has the embedding's weights
  std::vector<int64_t> end_tokens;

  /// The rows of the product that makes queries, keys and values.
  int64_t qkv_rows() const { return (heads + 2 * key_heads) * head_size; }

  /// Reads a checkpoint's config.json. Throws `io`, `bad_file`, or `unsupported` for another model.
  static Config read(const std::filesystem::path &path);
  /// "tiny" or "8b". Throws `invalid_argument` for another name.
  static Config named(std::string_view name);
  /// Throws `bad_file` with `source` in the message if the sizes do not fit each other.
  void check(std::string_view source) const;
};

/// cos and sin of position * frequency, [positions, head_size / 2] each, by rows.
struct RopeTable {
  std::vector<float> cosine, sine;
};
RopeTable rope_table(const Config &config, int64_t positions);

} // namespace llama
