//===- PlanHistogram.cpp - tiles of sums by a key -------------------------===//
//
// A block has counters for all bins, or for as many as its shared memory is to hold, and takes as
// many terms at a time as its threads hold.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/BinnedTerm.h"
#include "passes/machine/limits/Keys.h"
#include "passes/plan/Planner.h"

using namespace mlir;
using namespace tk;

using namespace limits::sum_by_key;

bool Planner::planHistogram() {
  ComputeOp compute = shape.compute;
  auto isByKey = [&](Operation *op) {
    auto reduce = dyn_cast<ReduceOp>(op);
    return reduce && llvm::all_of(llvm::seq(reduce.getNumAccumulators()), [&](unsigned k) {
             return matchBinnedTerm(compute, reduce, k).has_value();
           });
  };
  if (gpu::getPlan(compute).family != gpu::PlanFamily::Histogram ||
      !llvm::all_of(shape.reductions, isByKey))
    return false;
  family = gpu::PlanFamily::Histogram;
  // A tile of one bin would be none.
  constexpr int64_t fewestBins = 32;
  int64_t most = binsOfBlock;
  for (Operation *op : shape.reductions) {
    auto reduce = cast<ReduceOp>(op);
    for (Type type : reduce->getResultTypes())
      if (isa<FloatType>(type))
        most = floatBinsOfBlock;
    int64_t left = warpsOfBlock * 32 * termsOfThread;
    for (unsigned n = reduce.getNumIndices(); n-- > 0;) {
      tiles[reduce.getIndex(n)] = fit(reduce.getIndex(n), left);
      left = std::max<int64_t>(left / tileOf(reduce.getIndex(n)), 1);
    }
  }
  Value bins = compute.getIndex(compute.getNumIndices() - 1);
  tiles[bins] = std::max(fit(bins, most), fewestBins);
  warps = warpsOfBlock;
  perThread = termsOfThread;
  return true;
}
