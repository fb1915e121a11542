//===- Architecture.h - facts of GPU architectures ---------------*- C++ -*-===//
#ifndef TK_COMPILER_ARCH_ARCHITECTURE_H
#define TK_COMPILER_ARCH_ARCHITECTURE_H

#include "tk/error.h"

#include <string>
#include <string_view>

namespace tk {

/// One row of Architectures.def.
struct Architecture {
  std::string_view name;
  unsigned arch;
  unsigned shared;
  unsigned processors;
  bool hopper;
};

/// The architecture of that name; fails with `invalid_argument`, listing those there are.
inline Expected<Architecture> findArchitecture(std::string_view name) {
  static constexpr Architecture table[] = {
#define TK_ARCHITECTURE(NAME, ARCH, SHARED, PROCESSORS, HOPPER)                                    \
  {NAME, ARCH, SHARED, PROCESSORS, HOPPER},
#include "compiler/arch/Architectures.def"
  };
  std::string known;
  for (const Architecture &row : table) {
    if (row.name == name)
      return row;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  return Error(ErrorCode::invalid_argument,
               "no architecture '" + std::string(name) + "'; tk knows " + known);
}

} // namespace tk

#endif // TK_COMPILER_ARCH_ARCHITECTURE_H
