//===- ChainRows.cpp - the rows that share the streamed operands of a loop ===//
#include "passes/tensor/split/ChainRows.h"
#include "passes/machine/limits/Splits.h"

#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace tk {

using namespace limits::chain_rows;

namespace {

/// How the streamed factors of a chain are over one index of the statement.
struct IndexUse {
  bool isBare = false;          ///< other than by a quotient
  SmallVector<Value> quotients; ///< the divisors of its quotients
};

/// Finds how addresses use the statement's indices.
class UseFinder {
public:
  explicit UseFinder(ComputeOp compute) : compute(compute), uses(compute.getNumIndices()) {}

  void visit(Value value) {
    if (!visited.insert(value).second)
      return;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (argument.getOwner() == compute.getBlock())
        uses[argument.getArgNumber()].isBare = true;
      return;
    }
    Operation *op = value.getDefiningOp();
    if (!compute->isProperAncestor(op))
      return;
    if (auto quotient = dyn_cast<FloorDivOp>(op)) {
      auto index = dyn_cast<BlockArgument>(quotient.getLhs());
      if (index && index.getOwner() == compute.getBlock() &&
          !compute.getBody().isAncestor(quotient.getRhs().getParentRegion())) {
        uses[index.getArgNumber()].quotients.push_back(quotient.getRhs());
        return;
      }
    }
    for (Value input : getInputs(op))
      visit(input);
  }

  ComputeOp compute;
  SmallVector<IndexUse> uses;

private:
  llvm::DenseSet<Value> visited;
};

} // namespace

/// Is `factor` loaded, or computed from loads, by the index of `chain`? Weights, which are computed
/// from the results of sums, are not.
static bool isStreamed(Value factor, ReduceOp chain) {
  Dependence onStep(ValueRange{chain.getIndex(0)});
  bool hasLoad = false;
  SmallVector<Value> work = {factor};
  llvm::DenseSet<Value> visited;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !chain->isProperAncestor(op) || !visited.insert(value).second)
      continue;
    if (op->getNumRegions() > 0)
      return false;
    hasLoad |= isa<LoadOp>(op) && onStep.on(value);
    llvm::append_range(work, op->getOperands());
  }
  return hasLoad;
}

/// The factors that products inside `chain` multiply by and that its own index selects.
static SmallVector<Value> findStreamedFactors(ReduceOp chain) {
  SmallVector<Value> factors;
  chain.walk([&](ReduceOp reduce) {
    for (auto [k, term] : llvm::enumerate(reduce.getYield().getValues())) {
      auto product = term.getDefiningOp<arith::MulFOp>();
      if (product && reduce.getKind(k) == ReduceKind::Sum)
        llvm::copy_if(product->getOperands(), std::back_inserter(factors),
                      [&](Value factor) { return isStreamed(factor, chain); });
    }
  });
  return factors;
}

/// The number of groups of `size` values that divide `extent` without remainder by what the kernel
/// assumes; null where that is not known.
static Value countGroups(KernelOp kernel, Value extent, Value size) {
  ScalarEquality equality;
  if (auto both = extent.getDefiningOp<arith::MulIOp>())
    for (unsigned n : {0, 1})
      if (equality.equal(both->getOperand(n), size))
        return both->getOperand(1 - n);
  for (AssumeOp assume : kernel.getBody().getOps<AssumeOp>()) {
    auto compare = assume.getCondition().getDefiningOp<arith::CmpIOp>();
    if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq ||
        !getConstantIndex(compare.getRhs()) || *getConstantIndex(compare.getRhs()) != 0)
      continue;
    auto rest = compare.getLhs().getDefiningOp<FloorModOp>();
    if (!rest || !equality.equal(rest.getLhs(), extent))
      continue;
    // extent = count * (extent / count).
    auto quotient = size.getDefiningOp<FloorDivOp>();
    if (quotient && equality.equal(quotient.getLhs(), extent) &&
        equality.equal(quotient.getRhs(), rest.getRhs()))
      return rest.getRhs();
  }
  return {};
}

std::optional<ChainRows> matchChain(KernelOp kernel, ComputeOp compute) {
  SmallVector<ReduceOp> reduces(compute.getBlock()->getOps<ReduceOp>());
  return reduces.size() == 1 ? matchChain(kernel, compute, reduces.front()) : std::nullopt;
}

std::optional<ChainRows> matchChain(KernelOp kernel, ComputeOp compute, ReduceOp reduce) {
  if (reduce.getNumIndices() != 1)
    return std::nullopt;
  ChainRows chain{reduce, {}, {}, {}, {}, {}};
  SmallVector<ReduceOp> inner(chain.reduce.getBlock()->getOps<ReduceOp>());
  SmallVector<Value> factors = findStreamedFactors(chain.reduce);
  if (inner.empty() || factors.empty())
    return std::nullopt;
  UseFinder finder(compute);
  for (Value factor : factors)
    finder.visit(factor);
  ScalarEquality equality;
  for (auto [p, use] : llvm::enumerate(finder.uses)) {
    if (!use.isBare && use.quotients.empty()) {
      chain.rows.push_back(p);
      continue;
    }
    bool isQuotient = !use.isBare && llvm::all_of(use.quotients, [&](Value divisor) {
      return equality.equal(divisor, use.quotients.front());
    });
    Value groups;
    if (isQuotient && !chain.grouped)
      groups = countGroups(kernel, compute.getExtents()[p], use.quotients.front());
    if (groups) {
      chain.grouped = p;
      chain.groupSize = use.quotients.front();
      chain.numGroups = groups;
      continue;
    }
    Dependence onIndex(ValueRange{compute.getIndex(p)});
    if (llvm::any_of(inner, [&](ReduceOp reduce) { return onIndex.on(reduce.getResult(0)); }))
      chain.batch.push_back(p);
  }
  return chain;
}

/// Reads `compute` as a carried reduction of elements that are each result's own.
static std::optional<ChainRows> matchCarried(ComputeOp compute) {
  SmallVector<ReduceOp> reduces(compute.getBlock()->getOps<ReduceOp>());
  if (reduces.size() != 1 || !reduces.front().isOnline() ||
      !reduces.front().getBlock()->getOps<ReduceOp>().empty())
    return std::nullopt;
  ChainRows carried{reduces.front(), {}, {}, {}, {}, {}};
  llvm::append_range(carried.batch, llvm::seq<unsigned>(compute.getNumIndices()));
  return carried;
}

SmallVector<ChainRows> findChains(ComputeOp compute) {
  auto kernel = compute->getParentOfType<KernelOp>();
  SmallVector<ReduceOp> reduces(compute.getBlock()->getOps<ReduceOp>());
  SmallVector<ChainRows> chains;
  for (ReduceOp reduce : reduces) {
    Dependence onResult(reduce.getResults());
    for (ReduceOp other : reduces)
      if (other != reduce && onResult.on(other.getResult(0)))
        return {};
    if (std::optional<ChainRows> chain = matchChain(kernel, compute, reduce))
      chains.push_back(std::move(*chain));
  }
  if (reduces.size() == 1 && chains.empty())
    if (std::optional<ChainRows> carried = matchCarried(compute))
      chains.push_back(std::move(*carried));
  return chains;
}

/// At most so many combinations of values the indices of `compute` at `positions` have, times those
/// of an index with `extra` values, if any; nullopt where that is not known or beyond all reason.
static std::optional<int64_t> countCombinations(KernelOp kernel, ComputeOp compute,
                                                ArrayRef<unsigned> positions, Value extra) {
  constexpr int64_t most = int64_t(1) << 30;
  SmallVector<Value> extents;
  for (unsigned p : positions)
    extents.push_back(compute.getExtents()[p]);
  if (extra)
    extents.push_back(extra);
  int64_t count = 1;
  for (Value extent : extents) {
    std::optional<int64_t> upper = getSizeFact(kernel, extent).upper;
    if (!upper || *upper > most)
      return std::nullopt;
    count *= std::max<int64_t>(*upper, 1);
    if (count > most)
      return std::nullopt;
  }
  return count;
}

std::optional<int64_t> ChainRows::countRows(KernelOp kernel, ComputeOp compute) const {
  return countCombinations(kernel, compute, rows, groupSize);
}

std::optional<int64_t> ChainRows::countBatch(KernelOp kernel, ComputeOp compute) const {
  return countCombinations(kernel, compute, batch, numGroups);
}

bool ChainRows::lacksRows(KernelOp kernel, ComputeOp compute) const {
  if (!rows.empty() || grouped)
    return false;
  int64_t columns = 1;
  for (unsigned p = 0; p < compute.getNumIndices(); ++p) {
    if (llvm::is_contained(batch, p))
      continue;
    std::optional<int64_t> upper = getSizeFact(kernel, compute.getExtents()[p]).upper;
    columns = std::min(columns, manyColumns) * std::min(upper.value_or(manyColumns), manyColumns);
  }
  return columns > fewColumns;
}

void ChainRows::dissolveGroups() {
  if (grouped)
    batch.insert(llvm::upper_bound(batch, *grouped), *grouped);
  grouped.reset();
  groupSize = numGroups = Value();
}

} // namespace tk
