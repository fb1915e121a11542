//===- ReducedPairs.cpp - sums over pairs under a reduction ---------------===//
//
// Part of the third rule of FuseProducersCost.cpp. A pairwise contraction is a sum, or an extremum,
// of a function of one value for a row and one for a column: a squared distance, for example. As a
// statement of its own it has tiles like a matrix product, and each thread uses a loaded value for
// 8 rows or columns. In the terms of another reduction each pair loads both its values. The
// contraction is stored in these cases:
//
// 1. The reduction around it begins in its tiles (tk-attach-reductions), and no pair is stored.
// 2. The loads that tiles save take longer than storing and reading each pair.
//
// Neither holds where the loads take less time than one more launch. A contraction has no tiles if
// it has fewer than 32 rows or columns, or fewer than 8 terms, or if zeros behind the last term
// would count.
//
//===----------------------------------------------------------------------===//
#include "passes/machine/limits/Operands.h"
#include "passes/tensor/fuse/FuseProducersCost.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/PairTerms.h"
#include "passes/analysis/StoredReductions.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace tk {

bool isReducedPair(ReduceOp reduce) {
  auto around = dyn_cast<ReduceOp>(reduce->getParentOp());
  return around && !around.isOnline() && !isHeavy(reduce) && isPairwise(reduce);
}

/// At most so many of what `extents` count, or the assumed size where nothing is known.
static double countAll(KernelOp kernel, ValueRange extents) {
  double all = 1;
  for (Value extent : extents)
    all *= guessSize(kernel, extent);
  return all;
}

std::optional<std::string> whyNotPairs(ReduceOp reduce, Read read, const Reach &reach) {
  auto module = read.consumer->getParentOfType<ModuleOp>();
  auto producer = cast<ComputeOp>(read.producer.getOwner());
  if (!module->hasAttr(gpu::targetAttrName) || reach.reduced.empty() || !reach.extra.empty() ||
      reduce->getBlock() != producer.getBlock() || !isPairwise(reduce))
    return std::nullopt;
  auto kernel = producer->getParentOfType<KernelOp>();
  const double pairs = countAll(kernel, producer.getExtents());
  const double saved = pairs * countAll(kernel, reduce.getUpper()) * cost::termOfCountedTaps / 2;
  if (saved <= cost::launch)
    return std::nullopt;
  auto isReduction = [&](Operation *user) {
    auto load = dyn_cast<LoadOp>(user);
    auto consumer = load ? load->getParentOfType<ComputeOp>() : ComputeOp();
    return consumer && readsForReductionsOnly(consumer, read.producer);
  };
  if (llvm::all_of(read.producer.getUsers(), isReduction))
    return "the reader's reduction begins in its tiles of pairs";
  const double bytes = pairs * 2 * sizeof(float);
  if (bytes <= limits::reduced_pairs::mostBytes && saved > cost::launch + bytes * cost::byte)
    return "its tiles of pairs save more loads than storing it takes";
  return std::nullopt;
}

} // namespace tk
