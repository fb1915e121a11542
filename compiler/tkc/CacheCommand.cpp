//===- CacheCommand.cpp - tkc cache: what is kept on disk -----------------===//
#include "compiler/tkc/Commands.h"

#include "runtime/Cache.h"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace tk::tkc {

static int cache(bool clear) {
  detail::Cache cache = detail::Cache::from_environment();
  if (!cache.enabled()) {
    std::puts("the cache is off");
    return Done;
  }
  if (clear)
    std::printf("removed %llu entries\n", static_cast<unsigned long long>(cache.clear()));
  detail::CacheStatistics statistics = cache.statistics();
  std::printf("%s: %llu entries, %.1f MB\n", statistics.directory.c_str(),
              static_cast<unsigned long long>(statistics.entries),
              static_cast<double>(statistics.bytes) / 1e6);
  return Done;
}

void addCache(CLI::App &app, int &status) {
  CLI::App *command = app.add_subcommand("cache", "Shows or clears the cache of compiled kernels.");
  auto clear = std::make_shared<bool>(false);
  command->add_flag("--clear", *clear, "Remove every entry");
  command->callback([clear, &status] { status = cache(*clear); });
}

} // namespace tk::tkc
