#include "runtime/Environment.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include <unistd.h>

namespace tk::detail {
namespace {

constexpr EnvRow table[] = {
    {EnvVar::target, "TK_TARGET",
     "target where none is asked for: cpu, gpu, emu, emu-sm_80, sm_80, sm_90a, ..."},
    {EnvVar::cache_dir, "TK_CACHE_DIR", "directory of the compilation cache"},
    {EnvVar::cache, "TK_CACHE", "'off' turns the compilation cache off; default: 'on'"},
    {EnvVar::nvrtc, "TK_NVRTC", "path of the NVRTC library"},
    {EnvVar::libcuda, "TK_LIBCUDA", "path of the CUDA driver library"},
    {EnvVar::dump, "TK_DUMP", "directory that gets every stage of every kernel compiled"},
    {EnvVar::log, "TK_LOG", "'1' logs compilations, cache hits and loads to standard error"},
    {EnvVar::emu_mode, "TK_EMU_MODE",
     "when the emulator's asynchronous copies take effect: late, early or random:SEED; else one "
     "run after the other takes each"},
    {EnvVar::cxx, "CXX", "C++ compiler that the emulator uses; default: the first on PATH"},
    {EnvVar::nccl, "TK_NCCL", "path of the NCCL library"},
    {EnvVar::mesh_copies, "TK_MESH_COPIES",
     "how blocks beside launches go from GPU to GPU: auto, engines or nccl"},
};

static_assert(std::size(table) == num_env_vars);

} // namespace

std::span<const EnvRow> environment_table() { return table; }

std::optional<std::string> environment(EnvVar variable) {
  const char *value = std::getenv(table[static_cast<unsigned>(variable)].name);
  return value && *value ? std::optional<std::string>(value) : std::nullopt;
}

bool cache_disabled_by_environment() {
  if (std::optional<std::string> problem = problem_of_cache_switch())
    warn_once(EnvVar::cache, *problem);
  std::string value = environment(EnvVar::cache).value_or("");
  return value == "off" || value == "0" || value == "no";
}

std::optional<std::string> problem_of_cache_switch() {
  std::string value = environment(EnvVar::cache).value_or("on");
  for (const char *known : {"off", "0", "no", "on", "1", "yes"})
    if (value == known)
      return std::nullopt;
  return "TK_CACHE=" + value + ": expected 'on' or 'off'; the compilation cache stays on";
}

std::optional<std::string> cache_directory() {
  if (auto directory = environment(EnvVar::cache_dir))
    return directory;
  if (const char *xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg == '/')
    return std::string(xdg) + "/tk";
  if (const char *home = std::getenv("HOME"); home && *home)
    return std::string(home) + "/.cache/tk";
  return std::nullopt;
}

uint64_t memory_bytes() {
  static const uint64_t bytes = [] {
    const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
    uint64_t found = pages > 0 && size > 0
                         ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(size)
                         : UINT64_MAX;
    // Version 2 of control groups, as a container sees its own.
    if (std::FILE *file = std::fopen("/sys/fs/cgroup/memory.max", "re")) {
      unsigned long long limit = 0;
      if (std::fscanf(file, "%llu", &limit) == 1)
        found = std::min<uint64_t>(found, limit);
      std::fclose(file);
    }
    return found;
  }();
  return bytes;
}

bool log_enabled() {
  std::string value = environment(EnvVar::log).value_or("0");
  return value != "0" && value != "off";
}

void warn_once(EnvVar variable, const std::string &message) {
  static std::atomic<bool> warned[num_env_vars];
  if (!warned[static_cast<unsigned>(variable)].exchange(true))
    std::fprintf(stderr, "tk: warning: %s\n", message.c_str());
}

void log_message(const std::string &message) {
  if (log_enabled())
    std::fprintf(stderr, "tk: %s\n", message.c_str());
}

} // namespace tk::detail
