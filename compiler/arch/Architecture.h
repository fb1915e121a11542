//===- Architecture.h - names of GPU architectures ---------------*- C++ -*-===//
#ifndef TK_COMPILER_ARCH_ARCHITECTURE_H
#define TK_COMPILER_ARCH_ARCHITECTURE_H

#include "passes/machine/Machine.h"
#include "tk/error.h"

#include <string>
#include <string_view>

namespace tk {

/// The architecture of that name; fails with `invalid_argument`, listing those there are.
inline Expected<const Architecture *> findArchitecture(std::string_view name) {
  if (const Architecture *row = findArchitectureRow(name))
    return row;
  std::string known;
  for (const Architecture &row : allArchitectures())
    known += (known.empty() ? "" : ", ") + row.name.str();
  return Error(ErrorCode::invalid_argument,
               "no architecture '" + std::string(name) + "'; tk knows " + known);
}

} // namespace tk

#endif // TK_COMPILER_ARCH_ARCHITECTURE_H
