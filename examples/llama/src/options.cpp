#include "options.h"

#include <charconv>
#include <functional>
#include <map>
#include <optional>

#include <tk/error.h>

namespace llama {

std::string usage() {
  return R"(llama: generates tokens with a Llama model on tk's kernels
  --model DIR          config.json and *.safetensors; without it, the weights are random
  --size NAME          of random models: tiny (default) or 8b
  --weight-seed N      of random weights (0)
  --prompt IDS         token ids with commas between; repeat it for several sequences
  --random-prompts BxN B prompts of N tokens
  --tokens N           tokens to generate for each prompt (16)
  --sample KIND        greedy (default) or top-p
  --temperature X      for top-p (1)
  --top X              for top-p: the least sum of the probabilities that are kept (0.9)
  --seed N             for top-p: sequence i has the seed N + i (0)
  --context N          tokens that a sequence may have (what the prompts and --tokens need)
  --page N             tokens in a page of the cache (16)
  --target T           cpu, gpu, emu, sm_90a (a GPU if there is one, else the CPU)
  --kernels DIR        the folder with llama.tk and sample.tk
  --time               print times to standard error
)";
}

namespace {

[[noreturn]] void fail(const std::string &what) {
  throw tk::Error(tk::ErrorCode::invalid_argument, what);
}

template <typename Number> std::optional<Number> parse(std::string_view text) {
  Number value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole ? std::optional(value) : std::nullopt;
}

int64_t integer(const std::string &name, std::string_view text, int64_t least) {
  std::optional<int64_t> value = parse<int64_t>(text);
  constexpr int64_t most = 1 << 24;
  if (!value || *value < least || *value > most)
    fail(name + ": expected an integer from " + std::to_string(least) + " to " +
         std::to_string(most) + ", got '" + std::string(text) + "'");
  return *value;
}

double real(const std::string &name, std::string_view text) {
  std::optional<double> value = parse<double>(text);
  if (!value)
    fail(name + ": expected a number, got '" + std::string(text) + "'");
  return *value;
}

Tokens token_list(const std::string &name, std::string_view text) {
  Tokens tokens;
  while (true) {
    size_t comma = text.find(',');
    tokens.push_back(static_cast<int32_t>(integer(name, text.substr(0, comma), 0)));
    if (comma == text.npos)
      return tokens;
    text.remove_prefix(comma + 1);
  }
}

/// Prompts whose tokens do not matter, for measurements: "4x4096".
std::vector<Tokens> random_prompts(const std::string &name, std::string_view text) {
  size_t by = text.find('x');
  if (by == text.npos)
    fail(name + ": expected a number, `x` and a number, such as 4x4096");
  std::vector<Tokens> prompts(integer(name, text.substr(0, by), 1));
  int64_t length = integer(name, text.substr(by + 1), 1);
  uint32_t state = 1;
  for (Tokens &prompt : prompts)
    for (int64_t i = 0; i < length; ++i) {
      state = state * 1664525 + 1013904223;
      prompt.push_back(static_cast<int32_t>(state >> 24)); // every model has 256 tokens
    }
  return prompts;
}

} // namespace

Options parse_options(int argc, const char *const *argv) {
  Options o;
  o.cache.context = 0;
  using Setter = std::function<void(const std::string &, const std::string &)>;
  auto text = [](std::string &to) {
    return Setter([&to](const std::string &, const std::string &value) { to = value; });
  };
  auto count = [](int64_t &to, int64_t least) {
    return Setter([&to, least](const std::string &name, const std::string &value) {
      to = integer(name, value, least);
    });
  };
  auto number = [](double &to) {
    return Setter(
        [&to](const std::string &name, const std::string &value) { to = real(name, value); });
  };
  std::map<std::string, Setter> setters = {{"--model", text(o.model)},
                                           {"--size", text(o.size)},
                                           {"--target", text(o.target)},
                                           {"--kernels", text(o.kernels)},
                                           {"--tokens", count(o.tokens, 1)},
                                           {"--weight-seed", count(o.weight_seed, 0)},
                                           {"--seed", count(o.sampling.seed, 0)},
                                           {"--context", count(o.cache.context, 1)},
                                           {"--page", count(o.cache.page, 1)},
                                           {"--temperature", number(o.sampling.temperature)},
                                           {"--top", number(o.sampling.top)}};
  setters["--prompt"] = [&](const std::string &name, const std::string &value) {
    o.prompts.push_back(token_list(name, value));
  };
  setters["--random-prompts"] = [&](const std::string &name, const std::string &value) {
    o.prompts = random_prompts(name, value);
  };
  setters["--sample"] = [&](const std::string &name, const std::string &value) {
    if (value != "greedy" && value != "top-p")
      fail(name + ": expected greedy or top-p, got '" + value + "'");
    o.sampling.is_greedy = value == "greedy";
  };
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    if (name == "--time") {
      o.print_times = true;
    } else if (name == "--help" || name == "-h") {
      o.ask_help = true;
    } else if (auto setter = setters.find(name); setter == setters.end()) {
      fail("unknown option '" + name + "'; --help lists all");
    } else if (i + 1 == argc) {
      fail(name + ": a value is missing");
    } else {
      setter->second(name, argv[++i]);
    }
  }
  return o;
}

} // namespace llama
