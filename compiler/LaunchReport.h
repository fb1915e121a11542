//===- LaunchReport.h - what a launch's compiled code uses -------*- C++ -*-===//
#ifndef TK_COMPILER_LAUNCHREPORT_H
#define TK_COMPILER_LAUNCHREPORT_H

#include "compiler/CodeReport.h"
#include "passes/machine/Occupancy.h"
#include "tk/backend.h"

#include <optional>
#include <span>
#include <vector>

namespace tk {

/// One launch of the plan with what its function uses.
struct LaunchReport {
  const Launch *launch = nullptr;
  FunctionReport code;
  std::optional<int64_t> dynamicShared; ///< where the sizes given determine it
  Occupancy occupancy;                  ///< no blocks: not known
};

/// The launches of an executable, in order. `arch` is the compute capability times ten; `variables`
/// are those of the plan's expressions, up to the first that is not known.
std::vector<LaunchReport> reportsOf(const detail::Executable &executable, unsigned arch,
                                    std::span<const Scalar> variables);

} // namespace tk

#endif // TK_COMPILER_LAUNCHREPORT_H
