// Generates tokens with a Llama model. One line a sequence: the ids of the new tokens.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include <tk/error.h>

#include "model.h"
#include "options.h"

namespace {

using namespace llama;

double seconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

std::vector<Tokens> generate(Model &model, const Config &config, const Options &options) {
  double start = seconds();
  Tokens next = model.prefill(options.prompts);
  double prefilled = seconds();
  std::vector<Tokens> all(next.size());
  std::vector<bool> is_done(next.size());
  std::vector<double> steps;
  while (true) {
    for (size_t i = 0; i < next.size(); ++i) {
      if (is_done[i])
        continue;
      all[i].push_back(next[i]);
      is_done[i] = static_cast<int64_t>(all[i].size()) == options.tokens ||
                   std::count(config.end_tokens.begin(), config.end_tokens.end(), next[i]) > 0;
    }
    if (std::count(is_done.begin(), is_done.end(), false) == 0)
      break;
    double begin = seconds();
    next = model.decode();
    steps.push_back(seconds() - begin);
  }
  if (options.print_times) {
    std::fprintf(stderr, "prefill      %10.3f ms\n", 1e3 * (prefilled - start));
    if (!steps.empty()) {
      std::nth_element(steps.begin(), steps.begin() + steps.size() / 2, steps.end());
      std::fprintf(stderr, "decode step  %10.3f ms (median of %zu), %zu kernels\n",
                   1e3 * steps[steps.size() / 2], steps.size(), model.launches_per_step());
    }
  }
  return all;
}

void run(Options options) {
  double start = seconds();
  std::string target = tk::resolve_target(options.target).value();
  Config config = options.model.empty() ? Config::named(options.size)
                                        : Config::read(options.model + "/config.json");
  if (options.prompts.empty())
    options.prompts = {{1, 2, 3}};
  options.cache.slots = static_cast<int64_t>(options.prompts.size());
  if (options.cache.context == 0)
    for (const Tokens &prompt : options.prompts)
      options.cache.context =
          std::max(options.cache.context, static_cast<int64_t>(prompt.size()) + options.tokens);
  std::unique_ptr<Device> device = make_device(target);
  Kernels kernels(options.kernels.empty() ? LLAMA_KERNELS : options.kernels, target);
  Weights weights = options.model.empty()
                        ? Weights::random(*device, kernels, config, options.weight_seed)
                        : Weights::load(*device, kernels, config, options.model);
  Model model(*device, kernels, config, weights, options.cache, options.sampling);
  device->synchronize();
  if (options.print_times) {
    std::fprintf(stderr, "start        %10.3f ms\n", 1e3 * (seconds() - start));
    std::fprintf(stderr, "weights      %10.3f GB read a step\n",
                 1e-9 * static_cast<double>(weights.bytes_per_step(config)));
  }
  for (const Tokens &tokens : generate(model, config, options)) {
    for (size_t i = 0; i < tokens.size(); ++i)
      std::printf("%s%d", i ? " " : "", tokens[i]);
    std::printf("\n");
  }
}

} // namespace

int main(int argc, char **argv) try {
  Options options = parse_options(argc, argv);
  if (options.ask_help)
    std::printf("%s", usage().c_str());
  else
    run(std::move(options));
  return 0;
} catch (const tk::Error &error) {
  std::fprintf(stderr, "error[%s]: %s\n", std::string(tk::name(error.code())).c_str(),
               error.what());
  return error.code() == tk::ErrorCode::invalid_argument ? 2 : 1;
}
