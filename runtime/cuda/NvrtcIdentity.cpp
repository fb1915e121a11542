#include "runtime/cuda/NvrtcIdentity.h"

#include "runtime/Environment.h"

#include <cstdlib>

#include <sys/stat.h>

namespace tk::cuda {
namespace {

/// All that the search in Nvrtc::candidates depends on.
detail::Digest environment_key() {
  detail::CacheKey key;
  key.add("entry", "nvrtc identity");
  key.add("TK_NVRTC", detail::environment(detail::EnvVar::nvrtc).value_or(""));
  for (const char *variable :
       {"LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "PATH", "HOME"}) {
    const char *value = std::getenv(variable);
    key.add(variable, value ? value : "");
  }
  // ldconfig rewrites it when a library comes to the loader's path or goes.
  struct stat status;
  bool listed = ::stat("/etc/ld.so.cache", &status) == 0;
  key.add("ld.so.cache", listed ? int64_t{status.st_mtime} : 0);
  return key.digest();
}

bool stat_file(NvrtcIdentity &identity) {
  struct stat status;
  if (::stat(identity.path.c_str(), &status) != 0)
    return false;
  identity.size = static_cast<uint64_t>(status.st_size);
  identity.modified = status.st_mtime;
  return true;
}

std::string stamp(const NvrtcIdentity &identity) {
  return std::to_string(identity.size) + "/" + std::to_string(identity.modified);
}

} // namespace

NvrtcIdentity remember_identity(const Nvrtc &nvrtc, const detail::Cache &cache) {
  NvrtcIdentity identity;
  identity.path = nvrtc.path;
  identity.version = nvrtc.version();
  if (stat_file(identity))
    cache.store(
        environment_key(),
        {{"path", identity.path}, {"stamp", stamp(identity)}, {"version", identity.version}});
  return identity;
}

Expected<NvrtcIdentity> nvrtc_identity(const detail::Cache &cache) {
  if (std::optional<detail::CacheEntry> entry = cache.load(environment_key())) {
    NvrtcIdentity identity;
    identity.path = (*entry)["path"];
    identity.version = (*entry)["version"];
    if (stat_file(identity) && stamp(identity) == (*entry)["stamp"])
      return identity;
  }
  Expected<const Nvrtc *> nvrtc = Nvrtc::get();
  if (!nvrtc)
    return nvrtc.error();
  return remember_identity(**nvrtc, cache);
}

} // namespace tk::cuda
