// The command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache.h"
#include "model.h"
#include "sampler.h"

namespace llama {

struct Options {
  std::string model;         ///< a folder with config.json and *.safetensors; empty: random weights
  std::string size = "tiny"; ///< of a model with random weights
  std::string target;        ///< as for tkc; empty: a GPU if there is one, else the CPU
  std::string kernels;       ///< the folder with the .tk files
  std::vector<Tokens> prompts;
  int64_t tokens = 16; ///< to generate for each prompt
  int64_t weight_seed = 0;
  CacheSizes cache;
  Sampling sampling;
  bool print_times = false;
  bool ask_help = false;
};

/// Throws `tk::Error` with `invalid_argument`.
Options parse_options(int argc, const char *const *argv);
std::string usage();

} // namespace llama
