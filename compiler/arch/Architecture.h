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

/// An architecture with a device of that name, or with the one that its row assumes; fails with
/// `invalid_argument` if there is none, or if it is of another compute capability.
inline Expected<Machine> findMachine(std::string_view architecture, std::string_view device) {
  Expected<const Architecture *> row = findArchitecture(architecture);
  if (!row)
    return row.error();
  if (device.empty())
    return machineOf(**row, *findDevice((*row)->device));
  const DeviceSpec *found = findDevice(device);
  if (found && found->arch == (*row)->arch)
    return machineOf(**row, *found);
  auto capabilityOf = [](const DeviceSpec &spec) { return "sm_" + std::to_string(spec.arch); };
  if (found)
    return Error(ErrorCode::invalid_argument,
                 "device '" + found->name.str() + "' is of " + capabilityOf(*found) + ", not of " +
                     std::string(architecture) + "; name its architecture with --target");
  std::string known;
  for (const DeviceSpec &spec : allDevices())
    known += (known.empty() ? "" : ", ") + spec.name.str() + " (" + capabilityOf(spec) + ")";
  return Error(ErrorCode::invalid_argument,
               "no device '" + std::string(device) + "'; tk knows " + known);
}

} // namespace tk

#endif // TK_COMPILER_ARCH_ARCHITECTURE_H
