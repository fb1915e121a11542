//===- InspectReport.h - what tkc inspect says, as JSON ----------*- C++ -*-===//
#ifndef TK_COMPILER_INSPECTREPORT_H
#define TK_COMPILER_INSPECTREPORT_H

#include "compiler/CompiledSource.h"
#include "compiler/CostReport.h"
#include "compiler/LaunchReport.h"

namespace tk {

/// Sizes by dimension, then scalars, in the signature's order.
using GivenVariables = std::vector<std::optional<Scalar>>;

/// What is assumed of usual tensors of sizes that may be known (`dims`, in the signature's order).
/// Where all are, they and the scalars' defaults decide the conditions of schedules and cases.
Facts factsAt(const Signature &signature, std::span<const std::optional<int64_t>> dims);

/// The cost of a launch by the name of its function; null where it is not known.
const LaunchCost *costOf(const std::unique_ptr<PredictedCost> &cost, const std::string &symbol);

/// What the launches cost at sizes that are all given; null where one is not.
Expected<std::unique_ptr<PredictedCost>> predictCost(CompiledSource &source, size_t kernel,
                                                     std::string_view target, const Facts &facts,
                                                     const GivenVariables &given,
                                                     const std::vector<LaunchReport> &reports);

/// What the code of a kernel uses, and what its launches cost where that is known.
std::string inspectJson(const std::vector<LaunchReport> &reports,
                        const detail::Executable &executable,
                        const std::unique_ptr<PredictedCost> &cost, const Signature &signature);
/// What is known before any code is compiled: the launches' costs alone.
std::string inspectJson(const PredictedCost &cost, const Signature &signature,
                        const std::string &target);

/// One of both for sizes that may be known (`dims`, in the signature's order): of the code, or with
/// `costAlone` of the cost. The scalars have their defaults.
Expected<std::string> inspectKernel(CompiledSource &source, size_t kernel, std::string_view target,
                                    std::span<const std::optional<int64_t>> dims, bool costAlone);

} // namespace tk

#endif // TK_COMPILER_INSPECTREPORT_H
