//===- BatchInvariance.cpp - code whose bits do not depend on sizes -------===//
//
// 1. findSizeUses() says of each dimension whether a plan may rest on its size.
// 2. referenceFacts() are those of the reference plan: whole tiles of unknown number.
// 3. invariantFacts() are what a call's plan is tried with: the call's own facts, then the same
//    with bounds of at least 16, without bounds, and without divisors.
// OrderOfSums.cpp says in which order a plan adds.
//
//===----------------------------------------------------------------------===//
#include "compiler/BatchInvariance.h"

#include "compiler/RelevantFacts.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tk {
namespace {

/// Rows that a plan has at least: those that the matrix unit multiplies. Fewer rows would go to
/// CUDA cores, which add in another order. Back-to-back contractions want twice as many.
constexpr int64_t leastRows = 16;
/// Multiples of the largest tile.
constexpr uint32_t wholeTiles = 128;
/// What allocators align addresses to, as far as vector accesses ask, and the same of strides.
constexpr uint32_t usualAlignment = 16, usualStrides = 32;

/// Is a value computed from an index of the compute ops and reductions inside a kernel?
bool restsOnIndex(Value value, Value dim) {
  if (auto index = dyn_cast<BlockArgument>(value)) {
    Operation *owner = index.getOwner()->getParentOp();
    auto runsOver = [&](OperandRange extents) {
      return index.getArgNumber() < extents.size() && extents[index.getArgNumber()] == dim;
    };
    if (auto compute = dyn_cast<ComputeOp>(owner))
      return runsOver(compute.getExtents());
    if (auto reduce = dyn_cast<ReduceOp>(owner))
      return runsOver(reduce.getUpper());
    return false;
  }
  Operation *op = value.getDefiningOp();
  return !isa<LoadOp>(op) &&
         llvm::any_of(op->getOperands(), [&](Value operand) { return restsOnIndex(operand, dim); });
}

/// Does a comparison, or the range of a reduction, take a part of the elements along `dim`?
bool isCut(KernelOp kernel, Value dim) {
  return kernel
      ->walk([&](Operation *op) {
        if (auto compare = dyn_cast<arith::CmpIOp>(op))
          if (llvm::any_of(compare->getOperands(),
                           [&](Value side) { return restsOnIndex(side, dim); }))
            return WalkResult::interrupt();
        if (!isa<ReduceOp, ScanOp>(op))
          return WalkResult::advance();
        // A bound such as min(T, i + 1), or one that is loaded.
        for (Value bound : op->getOperands())
          if (Operation *computed = bound.getDefiningOp();
              computed && llvm::is_contained(computed->getOperands(), dim))
            return WalkResult::interrupt();
        return WalkResult::advance();
      })
      .wasInterrupted();
}

/// Is a value used in a compute op, or an extent of one?
bool reachesComputes(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return isa<ComputeOp>(user) || user->getParentOfType<ComputeOp>() ||
           (user->getNumResults() == 1 && reachesComputes(user->getResult(0)));
  });
}

/// Do elements rest on a quotient of the dimension, such as H / G of heads that share keys? Then it
/// is part of the form of the kernel.
bool isDivided(Value dim) {
  return llvm::any_of(dim.getUsers(), [](Operation *user) {
    if (isa<FloorDivOp, FloorModOp>(user))
      return user->getParentOfType<ComputeOp>() || reachesComputes(user->getResult(0));
    return isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::IndexCastOp>(user) &&
           isDivided(user->getResult(0));
  });
}

/// Is a value computed from results of a contraction that are tensors?
bool readsContraction(Value value, llvm::SmallPtrSetImpl<Operation *> &seen) {
  Operation *op = value.getDefiningOp();
  if (!op || !seen.insert(op).second)
    return false;
  auto load = dyn_cast<LoadOp>(op);
  if (!load)
    return llvm::any_of(op->getOperands(),
                        [&](Value operand) { return readsContraction(operand, seen); });
  auto compute = load.getTensor().getDefiningOp<ComputeOp>();
  if (!compute || !seen.insert(compute).second)
    return false;
  return compute
      .walk([&](Operation *inner) {
        auto reduce = dyn_cast<ReduceOp>(inner);
        const bool found = (reduce && isContraction(reduce)) ||
                           (isa<LoadOp>(inner) && readsContraction(inner->getResult(0), seen));
        return found ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Does the dimension count the columns of the second one of two contractions, such as the width of
/// a head's values? A warpgroup holds them all: how many there are decides the unit, and the
/// dimension is part of the form of the kernel.
bool isWidthOfChain(KernelOp kernel, Value dim) {
  auto isWidth = [&](ReduceOp reduce) {
    auto compute = reduce->getParentOfType<ComputeOp>();
    if (!compute || !isContraction(reduce))
      return false;
    Operation *term = reduce.getYield().getValues()[0].getDefiningOp();
    for (unsigned second : {0u, 1u}) {
      llvm::SmallPtrSet<Operation *, 16> seen;
      if (!readsContraction(term->getOperand(1 - second), seen))
        continue;
      const auto own = getIterationIndices(term->getOperand(second));
      const auto others = getIterationIndices(term->getOperand(1 - second));
      for (unsigned p = 0; p < compute.getNumIndices(); ++p)
        if (compute.getExtents()[p] == dim && llvm::is_contained(own, compute.getIndex(p)) &&
            !llvm::is_contained(others, compute.getIndex(p)))
          return true;
    }
    return false;
  };
  return kernel
      ->walk([&](ReduceOp reduce) {
        return isWidth(reduce) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace

std::vector<SizeUse> findSizeUses(KernelOp kernel) {
  const std::vector<bool> reduced = findReducedDims(kernel);
  std::vector<SizeUse> uses;
  for (unsigned d = 0; d < kernel.getNumDims(); ++d) {
    const Value dim = kernel.getBody().getArgument(d);
    if (reduced[d] && isCut(kernel, dim))
      uses.push_back(SizeUse::Cut);
    else
      uses.push_back(reduced[d] || isDivided(dim) || isWidthOfChain(kernel, dim) ? SizeUse::Whole
                                                                                 : SizeUse::Batch);
  }
  return uses;
}

Facts referenceFacts(const Facts &facts, ArrayRef<SizeUse> uses) {
  Facts reference = facts;
  for (auto [fact, use] : llvm::zip(reference.dims, uses))
    if (use != SizeUse::Whole)
      fact = DimFact{wholeTiles, -1, {}};
  for (TensorFact &fact : reference.tensors) {
    fact.alignment = usualAlignment;
    fact.stride_divisor = usualStrides;
  }
  reference.small_tensors = true;
  reference.schedules.clear();
  reference.cases.clear();
  return reference;
}

std::vector<Facts> invariantFacts(const Facts &facts, ArrayRef<SizeUse> uses) {
  std::vector<Facts> candidates(6, facts);
  for (auto [d, use] : llvm::enumerate(uses)) {
    if (use == SizeUse::Whole || d >= facts.dims.size())
      continue;
    DimFact own = facts.dims[d];
    own.exact.reset();
    auto atLeast = [&](int64_t rows) {
      DimFact fact = own;
      if (fact.upper >= 0 && fact.upper < rows)
        fact = {1, rows, {}};
      return fact;
    };
    const DimFact open{own.divisor, -1, {}};
    const bool isCut = use == SizeUse::Cut;
    candidates[0].dims[d] = own;
    candidates[1].dims[d] = isCut ? own : atLeast(leastRows);
    candidates[2].dims[d] = isCut ? open : atLeast(leastRows);
    candidates[3].dims[d] = isCut ? open : atLeast(2 * leastRows);
    candidates[4].dims[d] = open;
    candidates[5].dims[d] = DimFact{1, -1, {}};
  }
  return candidates;
}

void leaveOutSizedSteps(llvm::StringSet<> &disabled) {
  for (StringRef step :
       {"tk-split-reductions:histograms", "tk-split-reductions:ranks", "tk-split-reductions:chunks",
        "tk-split-reductions:thresholds", "tk-split-reductions:segments",
        "tk-split-reductions:scans", "tk-parallelize-reductions:split-k",
        "tk-parallelize-reductions:depths", "tk-parallelize-reductions:work-units",
        "tk-bound-masks", "tk-attach-reductions", "tk-join-ends", "tk-keep-references",
        "tk-guard-masked-values"})
    disabled.insert(step);
}

} // namespace tk
