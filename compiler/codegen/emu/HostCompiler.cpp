//===- HostCompiler.cpp - C++ text to code in this process ----------------===//
#include "compiler/codegen/emu/HostCompiler.h"

#include "runtime/Environment.h"
#include "runtime/Files.h"
#include "runtime/Interrupt.h"
#include "runtime/TemporaryFolder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace tk::emu {
namespace fs = std::filesystem;

HostCode::~HostCode() { dlclose(handle); }
void *HostCode::symbol(const std::string &name) const { return dlsym(handle, name.c_str()); }

namespace {

bool isExecutable(const std::string &path) { return access(path.c_str(), X_OK) == 0; }

/// The words of $CXX, else the first compiler on PATH; empty if there is none.
std::vector<std::string> findCompiler() {
  if (auto chosen = detail::environment(detail::EnvVar::cxx)) {
    std::istringstream words(*chosen);
    return {std::istream_iterator<std::string>(words), {}};
  }
  const char *path = std::getenv("PATH");
  for (const char *name : {"clang++-22", "clang++", "g++", "c++"}) {
    std::istringstream folders(path ? path : "/usr/bin");
    for (std::string folder; std::getline(folders, folder, ':');)
      if (isExecutable(folder + "/" + name))
        return {folder + "/" + name};
  }
  return {};
}

/// Pointers to texts, as exec takes them.
std::vector<char *> pointersTo(const std::vector<std::string> &texts) {
  std::vector<char *> pointers;
  for (const std::string &text : texts)
    pointers.push_back(const_cast<char *>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// This process's environment, with another directory for temporary files.
std::vector<std::string> environmentWith(const std::string &temporary) {
  std::vector<std::string> variables = {"TMPDIR=" + temporary};
  for (char **variable = environ; *variable; ++variable)
    if (!std::string_view(*variable).starts_with("TMPDIR="))
      variables.emplace_back(*variable);
  return variables;
}

/// Runs a program with its output in `output`, which is in a folder that also gets its temporary
/// files; the exit status, or -1 if it did not start.
int runProgram(const std::vector<std::string> &words, const fs::path &output) {
  std::vector<char *> arguments = pointersTo(words);
  const std::vector<std::string> variables = environmentWith(output.parent_path().string());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(),
                                 pointersTo(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

std::string readFile(const fs::path &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace

Expected<std::shared_ptr<HostCode>> compileOnHost(std::string_view text) {
  std::vector<std::string> command = findCompiler();
  if (command.empty())
    return Error(ErrorCode::unsupported,
                 "the emulator needs a C++ compiler: clang++-22, clang++, g++ or c++ on PATH, or "
                 "one named by CXX");
  detail::TemporaryFolder folder("tk-emu");
  if (!folder.ok())
    return Error(ErrorCode::write_failed,
                 "the emulator needs a temporary folder: " + folder.error());
  const fs::path source = folder.file("kernel.cpp"), object = folder.file("kernel.so"),
                 log = folder.file("log");
  Status written = detail::write_file(source.string(), text);
  for (const DeviceFile &file : deviceFiles())
    if (written)
      written = detail::write_file(folder.file(std::string(file.name)), file.text);
  if (!written)
    return written.error();
  // No contraction and no assumptions beyond what NVRTC makes; variables start as NaNs. Nearly all
  // of a run's time goes to the engine: optimising the kernel takes longer than it saves. Nor does
  // an object without constructors need the C++ library and start files.
  for (const char *option :
       {"-std=c++17", "-O0", "-fPIC", "-shared", "-nostdlib", "-w", "-ffp-contract=off", "-fwrapv",
        "-fno-strict-aliasing", "-fno-exceptions", "-ftrivial-auto-var-init=pattern"})
    command.push_back(option);
  command.insert(command.end(), {"-o", object.string(), source.string(), "-lm", "-lc", "-lgcc"});
  detail::InterruptScope scope;
  const int status = runProgram(command, log);
  // The terminal's SIGINT reaches the compiler, too: that it failed says nothing about the text.
  if (detail::interrupt_requested())
    return Error(ErrorCode::interrupted, "the host's compiler was interrupted");
  if (status < 0 || status == 127)
    return Error(ErrorCode::unsupported,
                 "the emulator cannot run the compiler '" + command[0] + "'");
  if (status != 0)
    return Error(ErrorCode::internal,
                 "the host's compiler rejected the emitted text:\n" + readFile(log));
  void *handle = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *why = dlerror();
    return Error(ErrorCode::internal, std::string("the emulator cannot load a kernel: ") +
                                          (why ? why : "no reason given"));
  }
  return std::make_shared<HostCode>(handle);
}

} // namespace tk::emu
