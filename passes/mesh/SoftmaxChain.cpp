//===- SoftmaxChain.cpp - a softmax, and the sums by its weights ----------===//
//
//   max[i]   = max[j](x[i, j])
//   sum[i]   = sum[j](exp(x[i, j] - max[i]))
//   p[i, j]  = exp(x[i, j] - max[i]) / sum[i]
//   o[i, e]  = sum[j](p[i, j] * v[j, e])
//   lse[i]   = max[j](x[i, j]) + log(sum[j](exp(x[i, j] - max[j](x[i, j]))))
//
// 1. Find a pair of max and sum over the same dimension of the same tensor x.
// 2. Require that all readers of both are weights p, and all readers of those are sums over j of
//    products with one weight, whose other subscripts are indices of the statement.
// 3. Add the statements that compute lse of the same x, and those that x is computed by.
//
//===----------------------------------------------------------------------===//
#include "passes/mesh/SoftmaxChain.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tk::mesh {
namespace {

/// A reduction of one index to one value, from 0 to the end of that dimension of the tensor.
bool isOverDimension(ReduceOp reduce, ReduceKind kind, Value extent) {
  return reduce && !reduce.isOnline() && reduce.getNumIndices() == 1 &&
         reduce->getNumResults() == 1 && reduce.getKind(0) == kind &&
         isSame(extentOf(reduce.getIndex(0)), extent);
}

Value yieldOf(ReduceOp reduce) { return reduce.getBlock()->getTerminator()->getOperand(0); }

/// Whether a load's subscripts are the indices of `compute` in their order, with `key` inserted at
/// a dimension if there is one.
bool readsInOrder(LoadOp load, ComputeOp compute, Value key, unsigned dim) {
  if (load.getPad())
    return false;
  unsigned next = 0;
  for (auto [d, index] : llvm::enumerate(load.getIndices())) {
    if (key && d == dim) {
      if (index != key)
        return false;
    } else {
      if (next >= compute.getNumIndices() || index != compute.getIndex(next))
        return false;
      ++next;
    }
  }
  return next == compute.getNumIndices();
}

/// Compute ops have their indices in the order of their result's dimensions.
bool isInOrder(ComputeOp compute) {
  return compute.getNumResults() == 1 &&
         llvm::all_of(llvm::enumerate(compute.getIndicesOf(0)),
                      [](auto pair) { return pair.value() == pair.index(); });
}

class Finder {
public:
  bool run(ComputeOp sum);
  SoftmaxChain chain;

private:
  bool findMaximum(ComputeOp candidate);
  bool readsRow(Value value, ComputeOp from, ComputeOp reader) const;
  bool isWeight(ComputeOp compute) const;
  bool addWeights();
  bool addSums(ComputeOp weight);
  bool isLog(ComputeOp compute) const;
  void addProducers();
};

/// Whether `value` is what `from`, which reduces the key, has for the position of `reader`.
bool Finder::readsRow(Value value, ComputeOp from, ComputeOp reader) const {
  auto load = value.getDefiningOp<LoadOp>();
  if (!load || load.getPad() || load.getTensor() != from.getResult(0))
    return false;
  unsigned dim = 0;
  for (unsigned i = 0; i < reader.getNumIndices(); ++i) {
    const bool isKey = reader.getNumIndices() > from.getNumIndices() && i == chain.key;
    if (!isKey && load.getIndices()[dim++] != reader.getIndex(i))
      return false;
  }
  return dim == load.getIndices().size();
}

bool Finder::findMaximum(ComputeOp candidate) {
  ReduceOp reduce = soleReduction(candidate);
  if (!reduce || reduce.getKind(0) != ReduceKind::Sum || !isInOrder(candidate))
    return false;
  auto term = yieldOf(reduce).getDefiningOp<ExpDiffOp>();
  auto load = term ? term.getA().getDefiningOp<LoadOp>() : LoadOp();
  auto row = term ? term.getB().getDefiningOp<LoadOp>() : LoadOp();
  if (!load || !row)
    return false;
  const auto key = llvm::find(load.getIndices(), Value(reduce.getIndex(0)));
  if (key == load.getIndices().end() || load.getIndices().size() < 2)
    return false;
  chain.logits = load.getTensor();
  chain.key = key - load.getIndices().begin();
  chain.sum = candidate;
  const Value extent = extentsOf(chain.logits)[chain.key];
  chain.max = row.getTensor().getDefiningOp<ComputeOp>();
  ReduceOp most = chain.max ? soleReduction(chain.max) : ReduceOp();
  if (!isOverDimension(reduce, ReduceKind::Sum, extent) ||
      !isOverDimension(most, ReduceKind::Max, extent) || !isInOrder(chain.max))
    return false;
  auto score = yieldOf(most).getDefiningOp<LoadOp>();
  return score && score.getTensor() == chain.logits &&
         readsInOrder(score, chain.max, most.getIndex(0), chain.key) &&
         readsInOrder(load, candidate, reduce.getIndex(0), chain.key) &&
         readsRow(row, chain.max, candidate);
}

bool Finder::isWeight(ComputeOp compute) const {
  if (!isInOrder(compute))
    return false;
  auto weight = compute.getYield().getValues()[0].getDefiningOp<DivOrZeroOp>();
  auto term = weight ? weight.getA().getDefiningOp<ExpDiffOp>() : ExpDiffOp();
  auto load = term ? term.getA().getDefiningOp<LoadOp>() : LoadOp();
  return load && load.getTensor() == chain.logits && readsInOrder(load, compute, Value(), 0) &&
         readsRow(term.getB(), chain.max, compute) && readsRow(weight.getB(), chain.sum, compute);
}

/// Weights are all that read the maximum and the denominator.
bool Finder::addWeights() {
  llvm::SetVector<Operation *> readers;
  for (Value row : {chain.max.getResult(0), chain.sum.getResult(0)})
    for (Operation *user : row.getUsers()) {
      if (!isa<LoadOp>(user))
        return false;
      readers.insert(user->getParentOfType<ComputeOp>());
    }
  readers.remove(chain.sum);
  for (Operation *reader : readers) {
    auto compute = cast<ComputeOp>(reader);
    if (!isWeight(compute))
      return false;
    chain.weights.push_back(compute);
    if (!addSums(compute))
      return false;
  }
  return !chain.sums.empty();
}

/// Whether a term of a sum is a product with `factor`, however rounded.
bool isProductWith(Value term, Value factor) {
  if (term == factor)
    return true;
  Operation *op = term.getDefiningOp();
  return op && isa<arith::ExtFOp, arith::TruncFOp, arith::MulFOp>(op) &&
         llvm::any_of(op->getOperands(),
                      [&](Value operand) { return isProductWith(operand, factor); });
}

/// All readers of a weight sum it up over the key.
bool Finder::addSums(ComputeOp weight) {
  const Value extent = extentsOf(chain.logits)[chain.key];
  for (Operation *user : weight.getResult(0).getUsers()) {
    auto load = dyn_cast<LoadOp>(user);
    auto reduce = load ? dyn_cast<ReduceOp>(load->getParentOp()) : ReduceOp();
    auto compute = reduce ? dyn_cast<ComputeOp>(reduce->getParentOp()) : ComputeOp();
    if (!compute || load.getPad() || !isOverDimension(reduce, ReduceKind::Sum, extent) ||
        !load->hasOneUse() || compute.getNumResults() != 1 ||
        !isa<FloatType>(reduce->getResult(0).getType()))
      return false;
    if (llvm::any_of(chain.sums, [&](const auto &other) { return other.reduce == reduce; }) ||
        !isProductWith(yieldOf(reduce), load.getResult()))
      return false;
    llvm::SmallPtrSet<void *, 4> seen;
    for (auto [d, index] : llvm::enumerate(load.getIndices())) {
      auto argument = dyn_cast<BlockArgument>(index);
      const bool isKey = argument && argument == reduce.getIndex(0);
      if (!argument || isKey != (d == chain.key) ||
          !seen.insert(index.getAsOpaquePointer()).second ||
          (!isKey && argument.getOwner() != compute.getBlock()))
        return false;
    }
    chain.sums.push_back({{compute, indicesOfWeights(chain, reduce, compute)}, reduce});
  }
  return true;
}

/// `select(max == inf, inf, max + log(sum))`, with its own maximum and sum of the same logits.
bool Finder::isLog(ComputeOp compute) const {
  if (!isInOrder(compute) || compute.getNumIndices() != chain.max.getNumIndices() ||
      compute.getResult(0).getType() != chain.max.getResult(0).getType())
    return false;
  auto select = compute.getYield().getValues()[0].getDefiningOp<arith::SelectOp>();
  auto total = select ? select.getFalseValue().getDefiningOp<arith::AddFOp>() : arith::AddFOp();
  auto log = total ? total.getRhs().getDefiningOp<math::LogOp>() : math::LogOp();
  auto most = total ? total.getLhs().getDefiningOp<ReduceOp>() : ReduceOp();
  auto sum = log ? log.getOperand().getDefiningOp<ReduceOp>() : ReduceOp();
  auto test = select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : arith::CmpFOp();
  const Value extent = extentsOf(chain.logits)[chain.key];
  if (!sum || !most || !test || test.getPredicate() != arith::CmpFPredicate::OEQ ||
      test.getLhs() != most->getResult(0) || !matchPattern(test.getRhs(), m_PosInfFloat()) ||
      !matchPattern(select.getTrueValue(), m_PosInfFloat()) ||
      !isOverDimension(most, ReduceKind::Max, extent) ||
      !isOverDimension(sum, ReduceKind::Sum, extent))
    return false;
  auto term = yieldOf(sum).getDefiningOp<ExpDiffOp>();
  auto first = yieldOf(most).getDefiningOp<LoadOp>();
  auto second = term ? term.getA().getDefiningOp<LoadOp>() : LoadOp();
  return first && second && term.getB() == most->getResult(0) &&
         first.getTensor() == chain.logits && second.getTensor() == chain.logits &&
         readsInOrder(first, compute, most.getIndex(0), chain.key) &&
         readsInOrder(second, compute, sum.getIndex(0), chain.key);
}

/// The compute ops from which the logits follow, as far as the key's index goes.
void Finder::addProducers() {
  const size_t rank = cast<RankedTensorType>(chain.logits.getType()).getRank();
  llvm::SmallPtrSet<Operation *, 8> seen;
  auto add = [&](Value tensor, ArrayRef<int> dims) { // the dimension of each one of the logits
    auto compute = tensor.getDefiningOp<ComputeOp>();
    if (!compute || dims[chain.key] < 0 || !seen.insert(compute).second)
      return;
    const unsigned result = cast<OpResult>(tensor).getResultNumber();
    SmallVector<int> indices;
    for (int dim : dims)
      indices.push_back(dim < 0 ? -1 : static_cast<int>(compute.getIndicesOf(result)[dim]));
    chain.producers.push_back({compute, indices});
  };
  SmallVector<int> all;
  for (size_t d = 0; d < rank; ++d)
    all.push_back(static_cast<int>(d));
  add(chain.logits, all);
  for (size_t i = 0; i < chain.producers.size(); ++i) { // grows
    const SoftmaxChain::Member member = chain.producers[i];
    ComputeOp compute = member.compute;
    compute.walk([&](LoadOp load) {
      SmallVector<int> dims;
      for (int index : member.indexOf) {
        const auto found = index < 0
                               ? load.getIndices().end()
                               : llvm::find(load.getIndices(), Value(compute.getIndex(index)));
        dims.push_back(found == load.getIndices().end()
                           ? -1
                           : static_cast<int>(found - load.getIndices().begin()));
      }
      add(load.getTensor(), dims);
    });
  }
}

bool Finder::run(ComputeOp sum) {
  if (!findMaximum(sum) || !addWeights())
    return false;
  for (Operation *user : chain.logits.getUsers()) {
    auto compute = user->getParentOfType<ComputeOp>();
    if (compute && !llvm::is_contained(chain.logs, compute) && isLog(compute))
      chain.logs.push_back(compute);
  }
  addProducers();
  return true;
}

} // namespace

SmallVector<int> indicesOfWeights(const SoftmaxChain &chain, ReduceOp reduce, ComputeOp compute) {
  SmallVector<int> indices;
  reduce.walk([&](LoadOp load) {
    if (llvm::none_of(chain.weights,
                      [&](ComputeOp weight) { return load.getTensor() == weight.getResult(0); }))
      return;
    for (Value index : load.getIndices()) {
      auto argument = cast<BlockArgument>(index);
      const bool isOuter = argument.getOwner() == compute.getBlock();
      indices.push_back(isOuter ? static_cast<int>(argument.getArgNumber()) : -1);
    }
  });
  return indices;
}

std::vector<SoftmaxChain> findSoftmaxChains(KernelOp kernel) {
  std::vector<SoftmaxChain> chains;
  llvm::SmallPtrSet<Operation *, 8> taken; // a sum of products with weights of two softmaxes
  for (ComputeOp compute : kernel.getOps<ComputeOp>()) {
    Finder finder;
    if (!finder.run(compute) || llvm::any_of(finder.chain.sums, [&](const auto &sum) {
          return !taken.insert(sum.reduce).second;
        }))
      continue;
    chains.push_back(std::move(finder.chain));
  }
  return chains;
}

} // namespace tk::mesh
