#include "runtime/Environment.h"

#include <cstdio>
#include <cstdlib>

namespace tk::detail {
namespace {

constexpr EnvRow table[] = {
    {EnvVar::target, "TK_TARGET",
     "target where none is asked for: cpu, gpu, emu, emu-sm_80, sm_80, sm_90a, ..."},
    {EnvVar::cache_dir, "TK_CACHE_DIR", "directory of the compilation cache"},
    {EnvVar::cache, "TK_CACHE", "'off' turns the compilation cache off"},
    {EnvVar::nvrtc, "TK_NVRTC", "path of the NVRTC library"},
    {EnvVar::libcuda, "TK_LIBCUDA", "path of the CUDA driver library"},
    {EnvVar::dump, "TK_DUMP", "directory that gets every stage of every kernel compiled"},
    {EnvVar::log, "TK_LOG", "'1' logs compilations, cache hits and loads to standard error"},
    {EnvVar::emu_mode, "TK_EMU_MODE",
     "when the emulator's asynchronous copies take effect: late, early or random:SEED; else one "
     "run after the other takes each"},
    {EnvVar::cxx, "CXX", "C++ compiler that the emulator uses; default: the first on PATH"},
};

} // namespace

std::span<const EnvRow> environment_table() { return table; }

std::optional<std::string> environment(EnvVar variable) {
  const char *value = std::getenv(table[static_cast<unsigned>(variable)].name);
  return value && *value ? std::optional<std::string>(value) : std::nullopt;
}

bool cache_disabled_by_environment() {
  std::string value = environment(EnvVar::cache).value_or("");
  return value == "off" || value == "0" || value == "no";
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

bool log_enabled() {
  std::string value = environment(EnvVar::log).value_or("0");
  return value != "0" && value != "off";
}

void log_message(const std::string &message) {
  if (log_enabled())
    std::fprintf(stderr, "tk: %s\n", message.c_str());
}

} // namespace tk::detail
