//===- InspectReport.cpp - what tkc inspect says, as JSON -----------------===//
#include "compiler/InspectReport.h"

#include "compiler/arch/Architecture.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace tk {

Facts factsAt(const Signature &signature, std::span<const std::optional<int64_t>> dims) {
  Facts facts = usual_facts(signature, dims);
  std::vector<int64_t> sizes;
  for (const std::optional<int64_t> &dim : dims)
    if (dim)
      sizes.push_back(*dim);
  if (sizes.size() < dims.size())
    return facts;
  std::vector<std::optional<Scalar>> defaults(signature.num_scalars());
  if (auto variables = complete_variables(signature, sizes, defaults)) {
    facts.schedules = schedule_conditions(signature, *variables);
    facts.cases = scalar_cases(signature, *variables);
  }
  return facts;
}

const LaunchCost *costOf(const std::unique_ptr<PredictedCost> &cost, const std::string &symbol) {
  if (cost)
    for (const LaunchCost &launch : cost->kernel.launches)
      if (launch.symbol == symbol)
        return &launch;
  return nullptr;
}

Expected<std::unique_ptr<PredictedCost>> predictCost(CompiledSource &source, size_t kernel,
                                                     std::string_view target, const Facts &facts,
                                                     const GivenVariables &given,
                                                     const std::vector<LaunchReport> &reports) {
  const size_t numDims = source.signatures()[kernel].dims.size();
  std::vector<int64_t> dims;
  for (const std::optional<Scalar> &dim : llvm::ArrayRef(given).take_front(numDims))
    if (dim)
      dims.push_back(dim->i);
  auto blocksOf = [&](llvm::StringRef symbol) -> unsigned {
    for (const LaunchReport &launch : reports)
      if (launch.launch->symbol == symbol)
        return launch.occupancy.blocks;
    return 0;
  };
  return source.predictCost(kernel, target, facts, dims, llvm::ArrayRef(given).drop_front(numDims),
                            blocksOf);
}

std::string inspectJson(const std::vector<LaunchReport> &reports,
                        const detail::Executable &executable,
                        const std::unique_ptr<PredictedCost> &cost, const Signature &signature) {
  std::string text =
      llvm::formatv("{{\"kernel\":\"{0}\",\"target\":\"{1}\",\"code_bytes\":{2},\"launches\":[",
                    signature.name, executable.target, executable.cubin.size());
  llvm::StringRef separator = "";
  for (const LaunchReport &report : reports) {
    const Launch &launch = *report.launch;
    char occupancy[32];
    std::snprintf(occupancy, sizeof occupancy, "%.4g", report.occupancy.fraction);
    text += llvm::formatv(
                "{0}{{\"symbol\":\"{1}\",\"threads\":{2},\"registers\":{3},"
                "\"static_shared\":{4},\"dynamic_shared\":{5},\"spill_stores\":{6},"
                "\"spill_loads\":{7},\"blocks_per_sm\":{8},\"occupancy\":{9}",
                separator, launch.symbol, launch.block[0] * launch.block[1] * launch.block[2],
                report.code.registers, report.code.staticShared, report.dynamicShared.value_or(-1),
                report.code.spillStores, report.code.spillLoads, report.occupancy.blocks, occupancy)
                .str();
    if (const LaunchCost *launchCost = costOf(cost, launch.symbol))
      text += "," + planJson(*cost, launch.symbol) + "," + costJson(*launchCost) + "," +
              linesJson(*cost, launch.symbol);
    text += "}";
    separator = ",";
  }
  return text + "]" + (cost ? "," + totalJson(*cost) : "") + "}";
}

std::string inspectJson(const PredictedCost &cost, const Signature &signature,
                        const std::string &target) {
  std::string text =
      "{\"kernel\":\"" + signature.name + "\",\"target\":\"" + target + "\",\"launches\":[";
  const char *separator = "";
  for (const LaunchCost &launch : cost.kernel.launches) {
    text += separator + ("{\"symbol\":\"" + launch.symbol) + "\"," + planJson(cost, launch.symbol) +
            "," + costJson(launch) + "," + linesJson(cost, launch.symbol) + "}";
    separator = ",";
  }
  return text + "]," + totalJson(cost) + "}";
}

Expected<std::string> inspectKernel(CompiledSource &source, size_t kernel, std::string_view target,
                                    std::span<const std::optional<int64_t>> dims, bool costAlone) {
  const Signature &signature = source.signatures()[kernel];
  if (target == "cpu")
    return Error(ErrorCode::invalid_argument,
                 "target 'cpu' has no GPU code to inspect; name an architecture, such as sm_90a");
  Expected<const Architecture *> row = findArchitecture(detail::architecture_of(target));
  if (!row)
    return row.error();
  const Facts facts = factsAt(signature, dims);
  GivenVariables given;
  std::vector<Scalar> known; // up to the first that is not
  for (const std::optional<int64_t> &dim : dims) {
    given.push_back(dim ? std::optional<Scalar>(*dim) : std::nullopt);
    if (dim && known.size() + 1 == given.size())
      known.push_back(Scalar(*dim));
  }
  given.resize(dims.size() + signature.num_scalars());
  if (known.size() == dims.size()) {
    std::vector<int64_t> sizes;
    for (const Scalar &dim : known)
      sizes.push_back(dim.i);
    std::vector<std::optional<Scalar>> defaults(signature.num_scalars());
    if (auto variables = complete_variables(signature, sizes, defaults))
      if (Status met = run_checks(signature, *variables); !met)
        return met.error();
  }
  if (costAlone) {
    auto cost = predictCost(source, kernel, target, facts, given, {});
    if (!cost)
      return cost.error();
    if (!*cost)
      return Error(ErrorCode::invalid_argument, "the cost of kernel '" + signature.name +
                                                    "' depends on all of its dimensions (" +
                                                    llvm::join(signature.dims, ", ") +
                                                    "): give each in dims");
    return inspectJson(**cost, signature, std::string(target));
  }
  Expected<detail::Executable> executable = source.specialise(kernel, target, facts);
  if (!executable)
    return executable.error();
  std::vector<LaunchReport> reports =
      reportsOf(*executable, static_cast<unsigned>((*row)->arch), known);
  auto cost = predictCost(source, kernel, target, facts, given, reports);
  if (!cost)
    return cost.error();
  return inspectJson(reports, *executable, *cost, signature);
}

} // namespace tk
