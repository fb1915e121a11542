// Every environment variable that tk reads, in one typed table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace tk::detail {

enum class EnvVar : unsigned {
  target,
  cache_dir,
  cache,
  nvrtc,
  libcuda,
  dump,
  log,
  emu_mode,
  cxx,
  nccl,
  mesh_copies
};
constexpr unsigned num_env_vars = static_cast<unsigned>(EnvVar::mesh_copies) + 1;

struct EnvRow {
  EnvVar variable;
  const char *name;
  const char *meaning;
};

/// All variables with what they mean; `tkc doctor` prints them.
std::span<const EnvRow> environment_table();
/// The value, or nullopt where unset or empty. Read anew at each call, so that tests can set it.
std::optional<std::string> environment(EnvVar variable);

/// TK_CACHE=off, 0 or no. Another value than these and on, 1 and yes is a warning, and leaves the
/// cache on.
bool cache_disabled_by_environment();
/// What is wrong with TK_CACHE's value; nullopt where nothing is.
std::optional<std::string> problem_of_cache_switch();
/// $TK_CACHE_DIR, else $XDG_CACHE_HOME/tk, else ~/.cache/tk; nullopt where none of them is set.
std::optional<std::string> cache_directory();

/// The memory that the machine has, or that this process's control group may take.
uint64_t memory_bytes();

/// Whether TK_LOG asks for messages; anything but 0 and off does.
bool log_enabled();
/// Prints "tk: warning: message" to standard error, for each variable once a process.
void warn_once(EnvVar variable, const std::string &message);
/// Prints "tk: message" to standard error if log_enabled().
void log_message(const std::string &message);

} // namespace tk::detail
