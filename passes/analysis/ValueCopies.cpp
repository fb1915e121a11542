//===- ValueCopies.cpp - computations of one named value ------------------===//
#include "passes/analysis/ValueCopies.h"

#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/CopyPairs.h"
#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;

namespace tk {

//===----------------------------------------------------------------------===//
// What is derived from the copies of one computation
//===----------------------------------------------------------------------===//

namespace {
/// Follows the copies of one computation through a kernel.
class Derivation {
public:
  /// Of a sum that is computed at several places. May rows of one copy be normalised by statistics
  /// of another?
  Derivation(KernelOp kernel, ArrayRef<OpResult> copies, bool mayNormalize);
  /// Of a product: there are two computations of it, a rounded one and the exact one of
  /// multiply-adds.
  Derivation(KernelOp kernel, const llvm::DenseSet<Value> &products);
  /// Does an operation receive values of two copies?
  bool findsMixture();

private:
  using Copies = llvm::SmallBitVector;
  enum : unsigned { rounded, exact }; ///< computations of a product

  Copies getCopies(Value value) const;
  bool add(Value value, const Copies &copies);
  bool visitBlock(Block &block);
  bool visit(Operation *op);
  bool visitRegions(Operation *op, const Copies &own);
  Copies collect(Operation *op) const;
  Copies collectOfProducts(Operation *op) const;
  bool isMixed(const Copies &copies) const;
  bool isCopiesMean(Value value) const;
  bool isStatistic(Value value, bool &hasSum) const;
  Value findNorm(Operation *op) const;

  KernelOp kernel;
  SmallVector<OpResult> copies;
  unsigned count; ///< of computations
  bool mayNormalize = false;
  llvm::DenseSet<Value> products;
  SmallVector<Copies> near; ///< for each copy: those of the same element that may differ in bits
  DenseMap<Value, Copies> derived;
  bool mixed = false;
};
} // namespace

Derivation::Derivation(KernelOp kernel, ArrayRef<OpResult> copies, bool mayNormalize)
    : kernel(kernel), copies(copies), count(copies.size()), mayNormalize(mayNormalize) {
  near.assign(count, Copies(count));
  for (unsigned a = 0; a < count; ++a) {
    for (unsigned b = 0; b < a; ++b)
      if (!areApart(copies[a], copies[b]) && !areAlike(copies[a], copies[b])) {
        near[a].set(b);
        near[b].set(a);
      }
    Copies own(count);
    own.set(a);
    derived[copies[a]] = own;
  }
}

Derivation::Derivation(KernelOp kernel, const llvm::DenseSet<Value> &products)
    : kernel(kernel), count(2), products(products), near(2, Copies(2)) {
  near[rounded].set(exact);
  near[exact].set(rounded);
  Copies own(count);
  own.set(rounded);
  for (Value product : products)
    derived[product] = own;
}

Derivation::Copies Derivation::getCopies(Value value) const {
  auto found = derived.find(value);
  return found == derived.end() ? Copies(count) : found->second;
}

/// Returns true if that is news.
bool Derivation::add(Value value, const Copies &more) {
  if (more.none())
    return false;
  Copies &known = derived.try_emplace(value, count).first->second;
  Copies all = known;
  all |= more;
  if (all == known)
    return false;
  known = all;
  return true;
}

bool Derivation::isMixed(const Copies &from) const {
  return llvm::any_of(from.set_bits(), [&](unsigned n) { return from.anyCommon(near[n]); });
}

/// Is `value` one of the copies, or one times what is no copy: the mean of a sum?
bool Derivation::isCopiesMean(Value value) const {
  for (;;) {
    if (llvm::is_contained(copies, value))
      return true;
    Operation *op = value.getDefiningOp();
    if (auto load = dyn_cast_or_null<LoadOp>(op)) {
      auto stored = dyn_cast<OpResult>(load.getTensor());
      auto compute = stored ? dyn_cast<ComputeOp>(stored.getOwner()) : ComputeOp();
      if (!compute)
        return false;
      value = compute.getYield().getValues()[stored.getResultNumber()];
    } else if (isa_and_nonnull<arith::MulFOp, arith::DivFOp>(op)) {
      const bool isFirst = getCopies(op->getOperand(0)).any();
      if (getCopies(op->getOperand(isFirst ? 1 : 0)).any())
        return false;
      value = op->getOperand(isFirst ? 0 : 1);
    } else {
      return false;
    }
  }
}

/// Is `value` derived from reductions over the copies alone? `hasSum` is set if one is a sum.
bool Derivation::isStatistic(Value value, bool &hasSum) const {
  SmallVector<Value> work = {value};
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value one = work.pop_back_val();
    if (getCopies(one).none() || !seen.insert(one).second)
      continue;
    Operation *op = one.getDefiningOp();
    if (!op || llvm::is_contained(copies, one))
      return false;
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      hasSum |= reduce.getKind(cast<OpResult>(one).getResultNumber()) == ReduceKind::Sum;
    } else if (auto load = dyn_cast<LoadOp>(op)) {
      auto stored = dyn_cast<OpResult>(load.getTensor());
      auto compute = stored ? dyn_cast<ComputeOp>(stored.getOwner()) : ComputeOp();
      if (!compute)
        return false;
      work.push_back(compute.getYield().getValues()[stored.getResultNumber()]);
    } else if (op->getNumRegions() == 0) {
      llvm::append_range(work, op->getOperands());
    } else {
      return false;
    }
  }
  return true;
}

/// The operand of `op` by which it normalises an element of a copy's row: the maximum that an
/// exponential is relative to, or what sums of the row are reduced to. Null if there is none.
Value Derivation::findNorm(Operation *op) const {
  if (!mayNormalize ||
      !isa<ExpDiffOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, DivOrZeroOp>(op))
    return {};
  const bool isEither = isa<arith::MulFOp, arith::SubFOp>(op);
  for (unsigned n : {1U, 0U}) {
    bool hasSum = false;
    if ((n == 1 || isEither) && getCopies(op->getOperand(1 - n)).any() &&
        isStatistic(op->getOperand(n), hasSum) && (hasSum || isa<ExpDiffOp>(op)))
      return op->getOperand(n);
  }
  return {};
}

/// Is `value` a distance whose squares a sum adds up, and nothing else? A variance may be taken
/// about the mean that its own loop, or a part of it, computes (docs/reference/numerics.md).
static bool isSummedSquared(Value value) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    auto square = dyn_cast<arith::MulFOp>(user);
    return square && square.getLhs() == value && square.getRhs() == value &&
           llvm::all_of(square->getUsers(), [](Operation *end) {
             auto reduce = dyn_cast<ReduceOp>(end->getParentOp());
             return reduce && isa<YieldOp>(end) && reduce.getKind(0) == ReduceKind::Sum;
           });
  });
}

/// A sum or difference takes a product exactly; of two of one name one is rounded.
Derivation::Copies Derivation::collectOfProducts(Operation *op) const {
  Copies all(count);
  const bool contracts = isa<arith::AddFOp, arith::SubFOp>(op);
  bool isFirst = true;
  for (Value operand : op->getOperands()) {
    if (contracts && products.contains(operand)) {
      all.set(isFirst ? exact : rounded);
      isFirst = false;
    } else {
      all |= getCopies(operand);
    }
  }
  return all;
}

/// The copies that the operands of `op` are derived from.
Derivation::Copies Derivation::collect(Operation *op) const {
  if (!products.empty())
    return collectOfProducts(op);
  Copies all(count);
  auto difference = dyn_cast<arith::SubFOp>(op);
  const bool isVariance =
      difference && isSummedSquared(difference) && isCopiesMean(difference.getRhs());
  const Value left = isVariance ? difference.getRhs() : findNorm(op);
  for (Value operand : op->getOperands())
    if (operand != left)
      all |= getCopies(operand);
  return all;
}

/// The bodies of a statement or reduction, until running values bring nothing new. `own` is what
/// the operands of `op` are derived from.
bool Derivation::visitRegions(Operation *op, const Copies &own) {
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    for (Region &region : op->getRegions())
      for (Block &block : region)
        again |= visitBlock(block);
    auto reduce = dyn_cast<ReduceOp>(op);
    for (unsigned n = 0; n < op->getNumResults(); ++n) {
      Operation *end = op->getRegion(0).front().getTerminator();
      Copies from = own;
      const bool isSum = reduce && dependsOnOrder(reduce.getKind(n), reduce.getResult(n).getType());
      if (!isSum || products.empty())
        from |= getCopies(end->getOperand(n));
      if (reduce && reduce.isOnline() && n > 0)
        from |= getCopies(reduce.getRescale().front().getTerminator()->getOperand(n - 1));
      mixed |= isMixed(from);
      again |= add(op->getResult(n), from);
      if (reduce && n + 1 < reduce.getNumAccumulators()) {
        Block &rescale = reduce.getRescale().front();
        const Copies running = getCopies(op->getResult(n));
        again |= add(reduce.getRunning(n), running);
        again |= add(rescale.getArgument(n), running);
        again |= add(rescale.getArgument(reduce.getNumAccumulators() - 1 + n), running);
      }
    }
    changed |= again;
  }
  return changed;
}

bool Derivation::visit(Operation *op) {
  if (op->hasTrait<OpTrait::IsTerminator>())
    return false;
  if (isa<ComputeOp>(op)) // how many elements there are is no operation on them
    return visitRegions(op, Copies(count));
  Copies from = collect(op);
  mixed |= isMixed(from);
  if (op->getNumRegions() > 0)
    return visitRegions(op, from);
  bool changed = false;
  for (Value result : op->getResults())
    changed |= add(result, from);
  return changed;
}

bool Derivation::visitBlock(Block &block) {
  bool changed = false;
  for (Operation &op : block)
    changed |= visit(&op);
  return changed;
}

bool Derivation::findsMixture() {
  visitBlock(kernel.getBody().front());
  return mixed;
}

SmallVector<int64_t> findMixedCopies(KernelOp kernel, const llvm::DenseSet<int64_t> &chosen) {
  llvm::MapVector<int64_t, SmallVector<OpResult>> copies;
  kernel->walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (auto [n, number] : llvm::enumerate(getComputations(op)))
      if (number >= 0)
        copies[number].push_back(op->getResult(n));
  });
  SmallVector<int64_t> found;
  for (auto &[number, list] : copies)
    if (list.size() > 1 && Derivation(kernel, list, chosen.contains(number)).findsMixture())
      found.push_back(number);
  return found;
}

static constexpr StringLiteral productAttrName = "tk.product";

void numberProducts(KernelOp kernel) {
  int64_t next = 0;
  Builder builder(kernel.getContext());
  for (ComputeOp compute : kernel.getBody().front().getOps<ComputeOp>())
    for (Value value : compute.getYield().getValues())
      if (auto product = value.getDefiningOp<arith::MulFOp>())
        product->setAttr(productAttrName, builder.getI64IntegerAttr(next++));
}

void roundMixedProducts(KernelOp kernel) {
  llvm::MapVector<int64_t, llvm::DenseSet<Value>> products;
  kernel->walk([&](arith::MulFOp product) {
    if (auto number = product->getAttrOfType<IntegerAttr>(productAttrName))
      products[number.getInt()].insert(product.getResult());
    product->removeDiscardableAttr(productAttrName);
  });
  for (auto &[number, list] : products)
    if (Derivation(kernel, list).findsMixture())
      for (Value product : list)
        gpu::addMode(product.getDefiningOp(), gpu::MathMode::Rounded);
}

} // namespace tk
