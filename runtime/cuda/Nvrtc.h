// NVRTC, loaded at run time.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tk/error.h"

namespace tk::cuda {

struct NvrtcOptions {
  std::string arch = "sm_80"; ///< a real architecture: PTX and cubin both come out
  std::string file_name = "kernel.cu";
  std::vector<std::pair<std::string, std::string>> headers; ///< name in #include, and text
  bool line_info = true;
  bool resource_usage = true; ///< the log tells registers, shared memory and spills
  std::vector<std::string> extra;
};

struct NvrtcResult {
  std::string ptx;
  std::string cubin;
  std::string log;
};

class Nvrtc {
public:
  /// The process's NVRTC, searched on first use: TK_NVRTC, the loader's path by soname, CUDA
  /// toolkits, the Python packages nvidia-cuda-nvrtc. The same error each time where there is none.
  static Expected<const Nvrtc *> get();
  /// Loads a library by path.
  static Expected<std::unique_ptr<Nvrtc>> load(const std::string &path);
  /// Every path that get() would try, in order.
  static std::vector<std::string> candidates();

  /// The command line that compile() gives to NVRTC.
  static std::vector<std::string> flags(const NvrtcOptions &options);
  /// Compiles; from any thread. A rejected program is `nvrtc_failed` with the log in the message.
  Expected<NvrtcResult> compile(const std::string &source, const NvrtcOptions &options) const;
  /// "12.9".
  std::string version() const;
  int major = 0, minor = 0;
  std::string path;
  /// Whether it knows an architecture such as "sm_90a".
  bool supports(const std::string &arch) const;

private:
  struct Functions;
  std::shared_ptr<const Functions> m_functions;
  std::vector<int> m_archs; ///< 80, 90, …; empty: not known
};

/// The folders of CUDA's Python packages, which have `lib` and `bin`, in the order in which they
/// are looked through.
std::vector<std::filesystem::path> python_packages();

} // namespace tk::cuda
