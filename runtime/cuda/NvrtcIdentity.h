// Which NVRTC this process would use, without loading it.
#pragma once

#include "runtime/Cache.h"
#include "runtime/cuda/Nvrtc.h"

namespace tk::cuda {

/// What the code that a library makes depends on, besides its input.
struct NvrtcIdentity {
  std::string path; ///< of the file, resolved
  uint64_t size = 0;
  int64_t modified = 0; ///< seconds since the epoch
  std::string version;  ///< "12.9"

  /// For cache keys: minor updates of one version differ in their files' sizes.
  std::string key() const { return version + "/" + std::to_string(size); }
};

/// The identity that `cache` remembers for this environment, if the file is still the same; else
/// loads the library and remembers. Loading takes tens of milliseconds, this none.
Expected<NvrtcIdentity> nvrtc_identity(const detail::Cache &cache);
/// The identity of a loaded library; remembered in `cache`.
NvrtcIdentity remember_identity(const Nvrtc &nvrtc, const detail::Cache &cache);

} // namespace tk::cuda
