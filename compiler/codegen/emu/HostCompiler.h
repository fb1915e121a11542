//===- HostCompiler.h - C++ text to code in this process ---------*- C++ -*-===//
#ifndef TK_COMPILER_CODEGEN_EMU_HOSTCOMPILER_H
#define TK_COMPILER_CODEGEN_EMU_HOSTCOMPILER_H

#include "tk/error.h"

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace tk::emu {

/// A file of runtime/device, embedded in the compiler.
struct DeviceFile {
  std::string_view name;
  std::string_view text;
};
/// All that a kernel's text includes for the emulator, by flat names.
const std::vector<DeviceFile> &deviceFiles();

/// A loaded shared object.
class HostCode {
public:
  explicit HostCode(void *handle) : handle(handle) {}
  ~HostCode();
  HostCode(const HostCode &) = delete;
  HostCode &operator=(const HostCode &) = delete;
  /// nullptr if there is no such symbol.
  void *symbol(const std::string &name) const;
  /// Held by who runs its kernels: the object knows one engine at a time.
  std::mutex attached;

private:
  void *handle;
};

/// Compiles in a temporary directory, loads, and removes the directory.
Expected<std::shared_ptr<HostCode>> compileOnHost(std::string_view text);

} // namespace tk::emu

#endif // TK_COMPILER_CODEGEN_EMU_HOSTCOMPILER_H
