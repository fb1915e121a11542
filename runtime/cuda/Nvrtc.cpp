#include "runtime/cuda/Nvrtc.h"

#include "runtime/Environment.h"
#include "runtime/Interrupt.h"
#include "runtime/cuda/NvrtcSignals.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <sstream>
#include <thread>

#include <dirent.h>
#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

namespace tk::cuda {

namespace fs = std::filesystem;
using Program = struct NvrtcProgram_st *;
using Result = int;

struct Nvrtc::Functions {
  Result (*version)(int *major, int *minor);
  Result (*create)(Program *program, const char *source, const char *name, int count,
                   const char *const *headers, const char *const *names);
  Result (*destroy)(Program *program);
  Result (*compile)(Program program, int count, const char *const *options);
  Result (*ptx_size)(Program program, size_t *size);
  Result (*ptx)(Program program, char *text);
  Result (*cubin_size)(Program program, size_t *size);
  Result (*cubin)(Program program, char *bytes);
  Result (*log_size)(Program program, size_t *size);
  Result (*log)(Program program, char *text);
  const char *(*error_string)(Result result);
  Result (*num_archs)(int *count);
  Result (*archs)(int *list);
  /// Null before NVRTC 12.8: a compilation cannot be stopped.
  Result (*set_flow_callback)(Program program, int (*callback)(void *, void *), void *payload);
};

namespace {

constexpr const char *sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
constexpr int min_major = 12;

/// What is in `base` and has a name that starts with `prefix`, newest name first. Not by
/// directory_iterator, which ends the process where memory runs out.
std::vector<fs::path> subdirectories(const fs::path &base, const std::string &prefix) {
  std::vector<fs::path> found;
  std::unique_ptr<DIR, int (*)(DIR *)> listing(::opendir(base.c_str()), ::closedir);
  while (const dirent *item = listing ? ::readdir(listing.get()) : nullptr)
    if (std::string_view(item->d_name).starts_with(prefix))
      found.push_back(base / item->d_name);
  std::sort(found.rbegin(), found.rend());
  return found;
}

void add_existing(std::vector<std::string> &paths, const fs::path &directory) {
  std::error_code error;
  for (const char *soname : sonames)
    if (fs::exists(directory / soname, error))
      paths.push_back((directory / soname).string());
}

void add_toolkit(std::vector<std::string> &paths, const fs::path &toolkit) {
  add_existing(paths, toolkit / "lib64");
  add_existing(paths, toolkit / "lib");
}

void add_python(std::vector<fs::path> &packages, const fs::path &site) {
  for (const fs::path &package : subdirectories(site / "nvidia", "cu"))
    packages.push_back(package);
}

void add_python_prefix(std::vector<fs::path> &packages, const fs::path &prefix) {
  for (const fs::path &python : subdirectories(prefix / "lib", "python")) {
    add_python(packages, python / "site-packages");
    add_python(packages, python / "dist-packages");
  }
}

/// The Python environments that PATH names: bin/python3 beside lib/python3.x.
void add_python_on_path(std::vector<fs::path> &packages) {
  const char *variable = std::getenv("PATH");
  std::stringstream directories(variable ? variable : "");
  std::error_code error;
  for (std::string directory; std::getline(directories, directory, ':');)
    if (directory.starts_with("/") && fs::exists(fs::path(directory) / "python3", error))
      add_python_prefix(packages, fs::path(directory).parent_path());
}

/// The Python environment whose package tk this code belongs to: libtk.so lies in site-packages/tk,
/// and tkc in bin. The environment need not be active.
void add_own_python(std::vector<fs::path> &packages) {
  Dl_info info;
  std::error_code error;
  if (dladdr(reinterpret_cast<void *>(&add_python_on_path), &info) && info.dli_fname)
    if (fs::path own = fs::canonical(info.dli_fname, error);
        !error && own.parent_path().filename() == "tk")
      add_python(packages, own.parent_path().parent_path());
  fs::path prefix = fs::read_symlink("/proc/self/exe", error).parent_path().parent_path();
  for (const fs::path &python : subdirectories(prefix / "lib", "python"))
    for (const char *name : {"site-packages", "dist-packages"})
      if (fs::path site = python / name; fs::exists(site / "tk" / "libtk.so", error))
        add_python(packages, site);
}

/// NVRTC opens its builtins by soname; where it lies outside the loader's path, they must be loaded
/// first.
void preload_builtins(const std::string &path) {
  fs::path directory = fs::path(path).parent_path();
  if (directory.empty())
    return;
  for (const fs::path &file : subdirectories(directory, "libnvrtc-builtins.so"))
    if (dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL))
      return;
}

int arch_number(const std::string &arch) {
  return arch.starts_with("sm_") ? std::atoi(arch.c_str() + 3) : 0;
}

/// A program that is destroyed with its scope.
struct ProgramHandle {
  explicit ProgramHandle(Result (*destroy)(Program *)) : destroy(destroy) {}
  ~ProgramHandle() {
    if (program)
      destroy(&program);
  }
  ProgramHandle(const ProgramHandle &) = delete;
  ProgramHandle &operator=(const ProgramHandle &) = delete;
  Program program = nullptr;
  Result (*destroy)(Program *);
};

/// NVRTC's flow callback: other than 0 cancels the compilation.
int cancel_if_interrupted(void *watch, void *) {
  return static_cast<const detail::InterruptWatch *>(watch)->requested() ? 1 : 0;
}

/// Fetches a text or binary of a program; "" where there is none.
std::string fetch(Program program, Result (*size_of)(Program, size_t *),
                  Result (*get)(Program, char *), bool text) {
  size_t size = 0;
  if (size_of(program, &size) != 0 || size == 0)
    return {};
  std::string bytes(size, '\0');
  if (get(program, bytes.data()) != 0)
    return {};
  if (text && bytes.back() == '\0')
    bytes.pop_back();
  return bytes;
}

} // namespace

std::vector<std::string> Nvrtc::candidates() {
  if (auto path = detail::environment(detail::EnvVar::nvrtc))
    return {*path};
  std::vector<std::string> paths;
  std::vector<fs::path> own;
  add_own_python(own);
  for (const fs::path &package : own)
    add_existing(paths, package / "lib");
  paths.insert(paths.end(), std::begin(sonames), std::end(sonames));
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *home = std::getenv(variable); home && *home)
      add_toolkit(paths, home);
  add_toolkit(paths, "/usr/local/cuda");
  for (const fs::path &toolkit : subdirectories("/usr/local", "cuda-"))
    add_toolkit(paths, toolkit);
  for (const char *directory : {"/usr/lib/x86_64-linux-gnu", "/opt/cuda/lib64", "/usr/lib64"})
    add_existing(paths, directory);
  for (const fs::path &package : python_packages())
    add_existing(paths, package / "lib");
  return paths;
}

std::vector<fs::path> python_packages() {
  std::vector<fs::path> packages;
  add_own_python(packages);
  if (const char *venv = std::getenv("VIRTUAL_ENV"); venv && *venv)
    add_python_prefix(packages, venv);
  add_python_on_path(packages);
  if (const char *home = std::getenv("HOME"); home && *home)
    add_python_prefix(packages, fs::path(home) / ".local");
  for (const char *prefix : {"/usr/local", "/usr", "/opt/conda"})
    add_python_prefix(packages, prefix);
  add_python(packages, "/usr/lib/python3/dist-packages");
  return packages;
}

Expected<const Nvrtc *> Nvrtc::get() {
  static const Expected<std::unique_ptr<Nvrtc>> loaded = []() -> Expected<std::unique_ptr<Nvrtc>> {
    std::string reasons;
    ErrorCode code = ErrorCode::no_nvrtc;
    for (const std::string &path : candidates()) {
      Expected<std::unique_ptr<Nvrtc>> library = load(path);
      if (library)
        return library;
      if (library.error().code() == ErrorCode::nvrtc_too_old)
        code = ErrorCode::nvrtc_too_old;
      reasons += "\n  " + library.error().message();
    }
    return Error(code, "cannot load NVRTC; install the CUDA toolkit or the Python package "
                       "nvidia-cuda-nvrtc-cu12, or set TK_NVRTC to the library's path:" +
                           reasons);
  }();
  if (!loaded)
    return loaded.error();
  return loaded->get();
}

Expected<std::unique_ptr<Nvrtc>> Nvrtc::load(const std::string &path) {
  preload_builtins(path);
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *text = dlerror();
    return Error(ErrorCode::no_nvrtc, text ? text : "cannot load '" + path + "'");
  }
  auto functions = std::make_shared<Functions>();
  const char *missing = nullptr;
  auto find = [&](auto &function, const char *symbol) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, symbol));
    if (!function && !missing)
      missing = symbol;
  };
  find(functions->version, "nvrtcVersion");
  find(functions->create, "nvrtcCreateProgram");
  find(functions->destroy, "nvrtcDestroyProgram");
  find(functions->compile, "nvrtcCompileProgram");
  find(functions->ptx_size, "nvrtcGetPTXSize");
  find(functions->ptx, "nvrtcGetPTX");
  find(functions->cubin_size, "nvrtcGetCUBINSize");
  find(functions->cubin, "nvrtcGetCUBIN");
  find(functions->log_size, "nvrtcGetProgramLogSize");
  find(functions->log, "nvrtcGetProgramLog");
  find(functions->error_string, "nvrtcGetErrorString");
  find(functions->num_archs, "nvrtcGetNumSupportedArchs");
  find(functions->archs, "nvrtcGetSupportedArchs");
  if (missing)
    return Error(ErrorCode::nvrtc_too_old, "'" + path + "' lacks " + missing);
  functions->set_flow_callback = reinterpret_cast<decltype(functions->set_flow_callback)>(
      dlsym(library, "nvrtcSetFlowCallback"));
  if (!keep_signal_handlers(library))
    detail::log_message("NVRTC at " + path + " may handle SIGINT while it compiles");
  auto nvrtc = std::make_unique<Nvrtc>();
  // The file that the loader chose, where a bare name was asked for.
  Dl_info info;
  bool located = dladdr(reinterpret_cast<void *>(functions->version), &info) && info.dli_fname;
  nvrtc->path = located ? info.dli_fname : path;
  if (functions->version(&nvrtc->major, &nvrtc->minor) != 0 || nvrtc->major < min_major)
    return Error(ErrorCode::nvrtc_too_old,
                 "'" + path + "': expected NVRTC 12.0 or later, got " + nvrtc->version());
  int count = 0;
  if (functions->num_archs(&count) == 0 && count > 0 && count < 1000) {
    nvrtc->m_archs.resize(static_cast<size_t>(count));
    if (functions->archs(nvrtc->m_archs.data()) != 0)
      nvrtc->m_archs.clear();
  }
  nvrtc->m_functions = std::move(functions);
  return nvrtc;
}

/// Runs `work` on a thread whose working directory is the root, where the system allows one that is
/// the thread's own: NVRTC writes the working directory before relative names of files in line
/// information, and code would depend on where it was compiled.
static void run_in_root(const std::function<void()> &work) {
  std::thread([&] {
    if (unshare(CLONE_FS) == 0)
      (void)!chdir("/");
    work();
  }).join();
}

/// PTX whose files have no leading slash: names are as the text has them.
static std::string with_relative_files(const std::string &ptx) {
  std::string text;
  for (size_t at = 0; at < ptx.size();) {
    const size_t end = std::min(ptx.find('\n', at), ptx.size() - 1) + 1;
    std::string line = ptx.substr(at, end - at);
    const size_t quote = line.find("\"/");
    if (line.find(".file") < quote && quote != line.npos &&
        line.find('/', quote + 2) == line.npos) // a path that was absolute stays
      line.erase(quote + 1, 1);
    text += line;
    at = end;
  }
  return text;
}

std::string Nvrtc::version() const { return std::to_string(major) + "." + std::to_string(minor); }

bool Nvrtc::supports(const std::string &arch) const {
  return m_archs.empty() ||
         std::find(m_archs.begin(), m_archs.end(), arch_number(arch)) != m_archs.end();
}

std::vector<std::string> Nvrtc::flags(const NvrtcOptions &options) {
  std::vector<std::string> flags = {"--gpu-architecture=" + options.arch, "--std=c++17",
                                    "--device-as-default-execution-space"};
  if (options.line_info)
    flags.push_back("--generate-line-info");
  if (options.resource_usage)
    flags.push_back("--ptxas-options=-v");
  flags.insert(flags.end(), options.extra.begin(), options.extra.end());
  return flags;
}

Expected<NvrtcResult> Nvrtc::compile(const std::string &source, const NvrtcOptions &options) const {
  if (!supports(options.arch))
    return Error(ErrorCode::nvrtc_too_old,
                 "NVRTC " + version() + " does not support " + options.arch);
  std::vector<const char *> headers, names;
  for (const auto &[name, text] : options.headers) {
    names.push_back(name.c_str());
    headers.push_back(text.c_str());
  }
  ProgramHandle handle(m_functions->destroy);
  Result result =
      m_functions->create(&handle.program, source.c_str(), options.file_name.c_str(),
                          static_cast<int>(headers.size()), headers.data(), names.data());
  if (result != 0)
    return Error(ErrorCode::nvrtc_failed,
                 std::string("nvrtcCreateProgram failed: ") + m_functions->error_string(result));
  std::vector<std::string> flags = Nvrtc::flags(options);
  std::vector<const char *> pointers;
  for (const std::string &flag : flags)
    pointers.push_back(flag.c_str());
  detail::InterruptScope scope;
  detail::InterruptWatch watch;
  if (m_functions->set_flow_callback)
    m_functions->set_flow_callback(handle.program, cancel_if_interrupted, &watch);
  run_in_root([&] {
    result =
        m_functions->compile(handle.program, static_cast<int>(pointers.size()), pointers.data());
  });
  if (detail::interrupt_requested())
    return Error(ErrorCode::interrupted, "NVRTC's compilation was interrupted");
  NvrtcResult output;
  output.log = fetch(handle.program, m_functions->log_size, m_functions->log, true);
  if (result != 0)
    return Error(ErrorCode::nvrtc_failed, std::string("NVRTC ") + version() + " failed (" +
                                              m_functions->error_string(result) + "):\n" +
                                              output.log);
  output.ptx =
      with_relative_files(fetch(handle.program, m_functions->ptx_size, m_functions->ptx, true));
  output.cubin = fetch(handle.program, m_functions->cubin_size, m_functions->cubin, false);
  if (output.ptx.empty() || output.cubin.empty())
    return Error(ErrorCode::nvrtc_failed, "NVRTC returned no code for " + options.arch);
  return output;
}

} // namespace tk::cuda
