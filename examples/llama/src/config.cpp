#include "config.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include <tk/error.h>

#include "json.h"
#include "safetensors.h"

namespace llama {

namespace {

/// Typed members of config.json, with errors that name the file and the member.
class Settings {
public:
  Settings(const Json &json, std::string name) : m_json(json), m_name(std::move(name)) {}

  int64_t size(const char *key) const {
    const Json *value = m_json.find(key);
    if (!value)
      fail(std::string("`") + key + "` is missing");
    return sizeOr(key, 0);
  }
  int64_t sizeOr(const char *key, int64_t otherwise) const {
    const Json *value = m_json.find(key);
    if (!value)
      return otherwise;
    std::optional<int64_t> number = value->integer();
    if (!number || *number <= 0 || *number > std::numeric_limits<int32_t>::max())
      fail(std::string("expected a positive integer as `") + key + "`");
    return *number;
  }
  double numberOr(const char *key, double otherwise) const {
    const Json *value = m_json.find(key);
    if (value && !value->number())
      fail(std::string("expected a number as `") + key + "`");
    return value ? *value->number() : otherwise;
  }
  [[noreturn]] void fail(const std::string &what) const {
    throw tk::Error(tk::ErrorCode::bad_file, m_name + ": " + what);
  }

private:
  const Json &m_json;
  std::string m_name;
};

void readRope(const Json &json, const std::string &name, Config &config) {
  config.rope_base = Settings(json, name).numberOr("rope_theta", 10000);
  const Json *scaling = json.find("rope_scaling");
  if (!scaling)
    return;
  const Json *type = scaling->find("rope_type");
  if (!type || !type->string() || *type->string() != "llama3")
    throw tk::Error(tk::ErrorCode::unsupported, name + ": `rope_scaling` is not of type `llama3`");
  Settings settings(*scaling, name);
  config.rope_factor = settings.numberOr("factor", 1);
  config.rope_low = settings.numberOr("low_freq_factor", 1);
  config.rope_high = settings.numberOr("high_freq_factor", 4);
  config.rope_original_context = settings.sizeOr("original_max_position_embeddings", 8192);
}

} // namespace

Config Config::read(const std::filesystem::path &path) {
  std::string name = path.string();
  MappedFile file(path);
  Json json = Json::parse(file.bytes(), name);
  const Json *type = json.find("model_type");
  if (!type || !type->string() || *type->string() != "llama")
    throw tk::Error(tk::ErrorCode::unsupported, name + ": expected \"model_type\": \"llama\"");
  Settings settings(json, name);
  Config config;
  config.vocabulary = settings.size("vocab_size");
  config.width = settings.size("hidden_size");
  config.intermediate = settings.size("intermediate_size");
  config.layers = settings.size("num_hidden_layers");
  config.heads = settings.size("num_attention_heads");
  config.key_heads = settings.sizeOr("num_key_value_heads", config.heads);
  config.head_size = settings.sizeOr("head_dim", std::max<int64_t>(config.width / config.heads, 1));
  config.norm_epsilon = settings.numberOr("rms_norm_eps", 1e-5);
  readRope(json, name, config);
  if (const Json *tied = json.find("tie_word_embeddings"))
    config.tied_embeddings = tied->boolean().value_or(false);
  if (const Json *end = json.find("eos_token_id")) {
    if (auto token = end->integer())
      config.end_tokens.push_back(*token);
    else if (end->array())
      for (const Json &token : *end->array())
        config.end_tokens.push_back(token.integer().value_or(-1));
  }
  config.check(name);
  return config;
}

Config Config::named(std::string_view name) {
  Config config;
  if (name == "tiny") {
    config.vocabulary = 320, config.width = 64, config.intermediate = 160, config.layers = 2;
    config.heads = 4, config.key_heads = 2, config.head_size = 16;
    config.rope_base = 10000;
    return config;
  }
  if (name == "8b") {
    config.vocabulary = 128256, config.width = 4096, config.intermediate = 14336;
    config.layers = 32, config.heads = 32, config.key_heads = 8, config.head_size = 128;
    return config;
  }
  throw tk::Error(tk::ErrorCode::invalid_argument,
                  "unknown size '" + std::string(name) + "'; expected `tiny` or `8b`");
}

void Config::check(std::string_view source) const {
  auto fail = [&](const char *what) {
    throw tk::Error(tk::ErrorCode::bad_file, std::string(source) + ": " + what);
  };
  if (heads % key_heads != 0)
    fail("`num_attention_heads` is no multiple of `num_key_value_heads`");
  if (head_size % 2 != 0)
    fail("`head_dim` is odd");
  if (!(norm_epsilon > 0) || !(rope_base > 0) || !(rope_factor >= 1) || !(rope_low > 0) ||
      !(rope_high > rope_low))
    fail("a constant of the norm or of the rotary embedding is out of range");
}

RopeTable rope_table(const Config &config, int64_t positions) {
  int64_t half = config.head_size / 2;
  RopeTable table;
  table.cosine.resize(positions * half);
  table.sine.resize(positions * half);
  for (int64_t d = 0; d < half; ++d) {
    double frequency = std::pow(config.rope_base, -2.0 * d / config.head_size);
    // Turns in the context of the training. Few turns: slower by the factor; many: unchanged.
    double turns = config.rope_original_context * frequency / (2 * std::numbers::pi);
    double kept = (turns - config.rope_low) / (config.rope_high - config.rope_low);
    kept = kept < 0 ? 0 : kept > 1 ? 1 : kept;
    frequency *= kept + (1 - kept) / config.rope_factor;
    for (int64_t p = 0; p < positions; ++p) {
      table.cosine[p * half + d] = static_cast<float>(std::cos(p * frequency));
      table.sine[p * half + d] = static_cast<float>(std::sin(p * frequency));
    }
  }
  return table;
}

} // namespace llama
