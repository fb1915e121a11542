#include "runtime/TemporaryFolder.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string_view>

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace tk::detail {
namespace {

namespace fs = std::filesystem;

/// Waits for the end of its input, then removes $1. A program that the killed process had started
/// may still write there for a while, so it tries again.
constexpr const char *guard_script =
    "trap '' HUP INT QUIT TERM PIPE; read -r _; "
    "for n in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- \"$1\" && exit; sleep 1; done";

/// 16 characters that no other process guesses or meets.
std::string random_name() {
  constexpr std::string_view characters = "abcdefghijklmnopqrstuvwxyz012345";
  std::random_device source;
  std::string name(16, ' ');
  for (char &character : name)
    character = characters[source() % characters.size()];
  return name;
}

} // namespace

TemporaryFolder::TemporaryFolder(const std::string &name) {
  std::error_code missing;
  const fs::path base = fs::temp_directory_path(missing);
  if (missing) {
    const char *chosen = std::getenv("TMPDIR");
    m_error = "no temporary directory '" + std::string(chosen ? chosen : "/tmp") +
              "': " + missing.message();
    return;
  }
  const std::string path = (base / (name + "-" + random_name())).string();
  // The guard comes first: a process killed after it has made the folder has one.
  start_guard(path);
  if (::mkdir(path.c_str(), 0700) != 0) {
    m_error = "cannot make a folder in '" + base.string() + "': " + std::strerror(errno);
    return;
  }
  m_path = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (ok())
    fs::remove_all(m_path, ignored);
  if (m_guard > 0) {
    // By force: another process may have inherited the pipe, so that its end never comes.
    ::kill(m_guard, SIGKILL);
    while (::waitpid(m_guard, nullptr, 0) < 0 && errno == EINTR)
      ;
  }
  if (m_pipe >= 0)
    ::close(m_pipe);
}

void TemporaryFolder::start_guard(const std::string &path) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return;
  m_pipe = ends[1];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[0], 0);
  // A reader of this process's output must not wait for the guard.
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // What is sent to this process's group does not reach it.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  const char *words[] = {"sh", "-c", guard_script, "sh", path.c_str(), nullptr};
  if (::posix_spawn(&m_guard, "/bin/sh", &actions, &attributes, const_cast<char **>(words),
                    environ) != 0)
    m_guard = -1;
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[0]);
}

} // namespace tk::detail
