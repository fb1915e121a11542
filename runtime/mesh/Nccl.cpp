#include "runtime/mesh/Nccl.h"

#include <filesystem>

#include <dlfcn.h>

#include "runtime/Environment.h"
#include "runtime/cuda/Nvrtc.h"

namespace tk::cuda {
namespace {

constexpr const char *soname = "libnccl.so.2";
/// ncclCommSplit is of 2.18.
constexpr int min_version = 21800;

std::string text_of(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

template <typename Function> bool find(void *library, const char *name, Function &function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

/// The name of the first function that a library lacks, or null.
const char *find_all(void *library, Nccl::Functions &f) {
  const std::pair<const char *, bool> found[] = {
      {"ncclGetVersion", find(library, "ncclGetVersion", f.get_version)},
      {"ncclGetErrorString", find(library, "ncclGetErrorString", f.error_string)},
      {"ncclGetUniqueId", find(library, "ncclGetUniqueId", f.unique_id)},
      {"ncclCommInitRank", find(library, "ncclCommInitRank", f.init_rank)},
      {"ncclCommSplit", find(library, "ncclCommSplit", f.split)},
      {"ncclCommCount", find(library, "ncclCommCount", f.count)},
      {"ncclCommUserRank", find(library, "ncclCommUserRank", f.user_rank)},
      {"ncclCommGetAsyncError", find(library, "ncclCommGetAsyncError", f.async_error)},
      {"ncclCommAbort", find(library, "ncclCommAbort", f.abort)},
      {"ncclCommDestroy", find(library, "ncclCommDestroy", f.destroy)},
      {"ncclGroupStart", find(library, "ncclGroupStart", f.group_start)},
      {"ncclGroupEnd", find(library, "ncclGroupEnd", f.group_end)},
      {"ncclAllGather", find(library, "ncclAllGather", f.all_gather)},
      {"ncclAllReduce", find(library, "ncclAllReduce", f.all_reduce)},
      {"ncclReduceScatter", find(library, "ncclReduceScatter", f.reduce_scatter)},
      {"ncclSend", find(library, "ncclSend", f.send)},
      {"ncclRecv", find(library, "ncclRecv", f.receive)}};
  for (auto [name, is_there] : found)
    if (!is_there)
      return name;
  return nullptr;
}

Expected<std::unique_ptr<Nccl>> search() {
  std::string tried;
  if (const std::optional<std::string> path = detail::environment(detail::EnvVar::nccl))
    return Nccl::load(*path);
  for (const std::string &path : Nccl::candidates()) {
    Expected<std::unique_ptr<Nccl>> found = Nccl::load(path);
    if (found || found.error().code() != ErrorCode::no_nccl)
      return found;
    tried += (tried.empty() ? "" : ", ") + path;
  }
  return Error(ErrorCode::no_nccl, "NCCL is missing: tried " + tried +
                                       "; install the Python package nvidia-nccl-cu13, or set "
                                       "TK_NCCL to the path of " +
                                       soname);
}

} // namespace

std::vector<std::string> Nccl::candidates() {
  std::vector<std::string> paths{soname};
  std::error_code ignored;
  for (const std::filesystem::path &package : python_packages())
    if (auto path = package.parent_path() / "nccl" / "lib" / soname;
        std::filesystem::exists(path, ignored))
      paths.push_back(path.string());
  return paths;
}

Expected<std::unique_ptr<Nccl>> Nccl::load(const std::string &path) {
  // What PyTorch has loaded has the same soname: the process then has one NCCL.
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return Error(ErrorCode::no_nccl,
                 "cannot load NCCL from '" + path + "': " + (why ? why : "unknown"));
  }
  auto nccl = std::make_unique<Nccl>();
  nccl->path = path;
  if (const char *missing = find_all(library, nccl->m_functions)) {
    dlclose(library);
    return Error(ErrorCode::nccl_too_old,
                 "NCCL in '" + path + "' has no function " + std::string(missing));
  }
  if (nccl->m_functions.get_version(&nccl->version) != 0 || nccl->version < min_version) {
    const std::string found = text_of(nccl->version);
    dlclose(library);
    return Error(ErrorCode::nccl_too_old, "NCCL in '" + path + "' is version " + found +
                                              "; tk needs " + text_of(min_version) + " or newer");
  }
  return nccl;
}

Expected<const Nccl *> Nccl::get() {
  static const Expected<std::unique_ptr<Nccl>> nccl = search();
  if (!nccl)
    return nccl.error();
  return nccl->get();
}

std::string Nccl::version_text() const { return text_of(version); }

void Nccl::check(NcclResult result, const char *call) const {
  if (result != 0)
    throw Error(ErrorCode::nccl_failed,
                std::string(call) + ": " + m_functions.error_string(result));
}

} // namespace tk::cuda
