//===- InvariantPlans.cpp - plans that add in one order for all sizes -----===//
//
// 1. The reference plan of a batch-invariant kernel is made from facts without sizes.
// 2. A call's plan is made from the call's facts. It is accepted if it adds in the same order.
// 3. Else plans from fewer facts are tried. They suit more sizes, and take longer for a few
//    of them.
// 4. If none adds in that order, the call is refused.
//
//===----------------------------------------------------------------------===//
#include "compiler/BatchInvariance.h"
#include "compiler/CompiledSource.h"
#include "compiler/Dump.h"
#include "compiler/PassDiagnostics.h"
#include "compiler/RelevantFacts.h"
#include "runtime/Environment.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace tk {

Expected<std::string> CompiledSource::orderOf(size_t kernel, std::string_view target,
                                              const Facts &facts) {
  Expected<OwningOpRef<ModuleOp>> copy = isolateFor(kernel, target, facts);
  if (!copy)
    return copy.error();
  // Nobody looks at the passes of a comparison.
  llvm::SaveAndRestore pipeline(driver.pipeline);
  driver.pipeline.printAfter.clear();
  driver.pipeline.afterPass = nullptr;
  driver.pipeline.last = PipelineOptions::allPasses;
  std::string fused;
  auto seen = [&](StringRef stage, ModuleOp lowered) {
    if (stage == "fused")
      fused = orderOfFused(lowered);
  };
  if (Status lowered = lower(**copy, Stage::Gpu, Dump(), seen); !lowered)
    return lowered.error();
  return fused + orderOfFunctions(**copy);
}

/// The first lines of two orders that differ.
static std::string differenceOf(StringRef reference, StringRef order) {
  while (!reference.empty() && !order.empty()) {
    auto [a, moreOfReference] = reference.split('\n');
    auto [b, moreOfOrder] = order.split('\n');
    if (a != b)
      return "'" + b.trim().str() + "' instead of '" + a.trim().str() + "'";
    reference = moreOfReference;
    order = moreOfOrder;
  }
  return order.empty() ? "fewer steps" : "more steps";
}

Expected<Facts> CompiledSource::matchReference(size_t kernel, std::string_view target,
                                               const Facts &facts) {
  const std::string key = kernelNames[kernel] + "\n" + std::string(target) + "\n" + facts.key();
  if (auto found = invariantPlans.find(key); found != invariantPlans.end())
    return found->second;
  Facts open = referenceFacts(facts, sizeUses[kernel]);
  // The matrix unit wants aligned rows. Other plans for rows of any alignment serve all sizes.
  for (auto [fact, use] : llvm::zip(open.dims, sizeUses[kernel]))
    if (products[kernel] == Products::none && use != SizeUse::Whole)
      fact.divisor = 1;
  Expected<std::string> reference = orderOf(kernel, target, open);
  if (!reference)
    return reference.error();
  std::string difference;
  for (const Facts &candidate : invariantFacts(facts, sizeUses[kernel])) {
    Expected<std::string> order = orderOf(kernel, target, candidate);
    if (!order)
      return order.error();
    if (*order == *reference)
      return invariantPlans[key] = candidate;
    difference = differenceOf(*reference, *order);
    detail::log_message("batch-invariant '" + kernelNames[kernel] + "': no plan from [" +
                        candidate.key() + "]: " + difference);
  }
  Diagnostics diags(sources);
  diags.error(Diag::NotBatchInvariant, spanOf(sources, kernelOp(kernel).getLoc()))
          .help("sizes and addresses that are multiples of 16 bytes share most plans")
      << "'" << kernelNames[kernel]
      << "' is batch-invariant, and its plan for these sizes adds in another order than that for "
         "others: "
      << difference;
  return compileError(diags, {driver.colour, driver.json});
}

Expected<OwningOpRef<ModuleOp>> CompiledSource::isolate(size_t kernel, std::string_view target,
                                                        const Facts &facts) {
  // The CPU's facts have no sizes that results are not reduced over.
  if (sizeUses[kernel].empty() || !isGpuText(target))
    return isolateFor(kernel, target, facts);
  Expected<Facts> matched = matchReference(kernel, target, facts);
  return matched ? isolateFor(kernel, target, *matched)
                 : Expected<OwningOpRef<ModuleOp>>(matched.error());
}

} // namespace tk
