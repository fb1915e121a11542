// Object code of kernels for the CPU, linked into this process without a compiler.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "tk/cpu_abi.h"
#include "tk/error.h"

namespace tk::cpu {

/// "x86-64-v4", "x86-64-v3", or "" for a processor that bundles have no code for.
std::string_view processor_level();
/// Whether code for a level runs on this processor.
bool runs_level(std::string_view level);

/// An object file in memory that may be executed. Immutable.
class ObjectCode {
public:
  /// Links an ELF object file for x86-64. Fails with `bad_file` for anything else, and with
  /// `unsupported` where the code calls a function that this process does not have.
  static Expected<std::shared_ptr<const ObjectCode>> link(std::string_view object);
  ~ObjectCode();
  ObjectCode(const ObjectCode &) = delete;
  ObjectCode &operator=(const ObjectCode &) = delete;

  tk_cpu_entry entry() const { return m_entry; }

private:
  ObjectCode() = default;

  void *m_memory = nullptr;
  size_t m_bytes = 0;
  tk_cpu_entry m_entry = nullptr;
  friend class Linker;
};

} // namespace tk::cpu
