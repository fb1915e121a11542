//===- LaunchReport.cpp - what a launch's compiled code uses --------------===//
#include "compiler/LaunchReport.h"

namespace tk {

std::vector<LaunchReport> reportsOf(const detail::Executable &executable, unsigned arch,
                                    std::span<const Scalar> variables) {
  std::map<std::string, FunctionReport> functions = readCodeReport(executable.log);
  std::vector<LaunchReport> reports;
  for (const Launch &launch : executable.plan.launches) {
    LaunchReport report{&launch, functions[launch.symbol], {}, {}};
    if (Expected<int64_t> bytes = launch.shared_bytes.evaluate_integer(variables))
      report.dynamicShared = *bytes;
    if (report.dynamicShared && report.code.registers > 0)
      report.occupancy = occupancyOf(arch, {launch.block[0] * launch.block[1] * launch.block[2],
                                            report.code.registers,
                                            report.code.staticShared + *report.dynamicShared});
    reports.push_back(report);
  }
  return reports;
}

} // namespace tk
