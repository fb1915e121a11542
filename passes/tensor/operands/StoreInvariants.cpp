//===- StoreInvariants.cpp - storing long functions that many elements share ===//
//
// A compute op recomputes, for each of its elements, values that depend on some of its indices
// only. An example is the rotation of a position, which all heads of a token share. A thread has
// neighbours in memory, which belong to one head. If the value is a long function, a compute op
// stores it once.
//
// 1. The pattern matches values of a compute op, and of reductions in it over one whole range. A
//    value is computed element by element with at least one long function. It varies along the
//    contiguous index of memory, many elements share it, and another value that they do not share
//    is computed from it.
// 2. Equal values in a reduction and in the compute op around it are one value.
// 3. The value is stored if the computation takes longer than the memory accesses, and if the saved
//    time is longer than that of storing and reading the value. Values over the same indices share
//    a compute op.
//
//   %y = tk.compute ["t", "h", "d"] {x[t, h, d] * cos(p[t] * exp(d))}
//     =>
//   %c = tk.compute ["t", "d"] {cos(p[t] * exp(d))}
//   %y = tk.compute ["t", "h", "d"] {x[t, h, d] * c[t, d]}
//
// An operand of a matrix product may be computed from a value that lacks the operand's own row
// index, such as the decay of a key. Each thread that holds elements of the operand's tile computes
// that value for its columns again.
//
// 4. Values over the sum's index and fewer indices than the operand are matched in compute ops
//    whose reductions are plain matrix products. The instructions of such a value count, also those
//    of short functions.
//
//   %s = tk.compute ["h", "p", "n"] {tk.reduce [sum] ["j"] {x[j, h, p] * (exp(a[h, j]) * b[j, n])}}
//     =>
//   %c = tk.compute ["h", "j"] {exp(a[h, j])}
//   %s = tk.compute ["h", "p", "n"] {tk.reduce [sum] ["j"] {x[j, h, p] * (c[h, j] * b[j, n])}}
//
//===----------------------------------------------------------------------===//
#include "passes/machine/limits/Operands.h"
#include "passes/tensor/operands/MaterializeOperands.h"

#include "passes/analysis/BoundsApart.h"
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/LongFunctions.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"
#include "passes/machine/OperationCost.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-materialize-operands:invariants";
using namespace limits::store_invariants;

/// Elements of a row of an operand's tile that one thread computes one such value for.
static constexpr double elementsOfThread = 4;
/// Instructions of a value that is worth a compute op of its own: a load takes one or two.
static constexpr double leastInstructions = 8;
/// Rows of a tile of a product, at least: a stored value is read once for all of them.
static constexpr double rowsOfTileAtLeast = 64;

/// Is `op` a function that takes a thread tens of instructions?
static bool isLong(Operation *op) { return isLongFunction(op) || isa<math::PowFOp>(op); }

namespace {

/// A value that is over some indices of its statement.
struct Invariant {
  Value value;
  SmallVector<BlockArgument> over; ///< of the statement in their order, or a reduction's last
  SmallVector<Value> extents;
  SmallVector<std::string> names;
  unsigned functions = 0;
  double instructions = 0;
  double users = 0; ///< elements that are computed from it
};

class InvariantStores {
public:
  InvariantStores(KernelOp kernel, ComputeOp compute) : kernel(kernel), compute(compute) {}
  unsigned run();

private:
  std::optional<Invariant> read(Value value, ReduceOp around);
  void collect(Block *block, ReduceOp around);
  void collectOperands(ReduceOp product);
  void add(Invariant &&invariant);
  bool pays(ArrayRef<Invariant *> together);
  bool paysInOperands(ArrayRef<Invariant *> together);
  bool isShared(const Invariant &invariant);
  double bytesOfElement();
  void store(ArrayRef<Invariant *> together);

  KernelOp kernel;
  ComputeOp compute;
  bool inOperands = false; ///< values in operands of matrix products are looked for
  SmallVector<Invariant> found;
  SmallVector<std::pair<Invariant, size_t>> copies; ///< with the number of what they are equal to
};

} // namespace

/// Are both lists of one length, and all but their last entries the same?
static bool haveSameOuter(const Invariant &a, const Invariant &b) {
  return a.over.size() == b.over.size() && a.extents == b.extents &&
         ArrayRef(a.over).drop_back() == ArrayRef(b.over).drop_back();
}

/// The operations inside `compute` that `value` is computed by, if nothing is reduced or scanned
/// among them.
static std::optional<SmallVector<Operation *>> getElementwise(ComputeOp compute, Value value) {
  llvm::SetVector<Operation *> slice;
  SmallVector<Value> work = {value};
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !compute->isProperAncestor(op) || !slice.insert(op))
      continue;
    if (op->getNumRegions() > 0)
      return std::nullopt;
    llvm::append_range(work, op->getOperands());
  }
  return slice.takeVector();
}

static double sizeOf(KernelOp kernel, ValueRange extents) {
  double count = 1;
  for (Value extent : extents)
    count *= guessSize(kernel, extent);
  return count;
}

/// `value` if it is over some, but not all, of the indices that `around`, or the statement, has.
std::optional<Invariant> InvariantStores::read(Value value, ReduceOp around) {
  if (!isa<FloatType>(value.getType()))
    return std::nullopt;
  std::optional<SmallVector<Operation *>> slice = getElementwise(compute, value);
  if (!slice)
    return std::nullopt;
  Invariant result;
  result.value = value;
  result.functions = llvm::count_if(*slice, isLong);
  for (Operation *op : *slice)
    if (isa<math::MathDialect, arith::ArithDialect>(op->getDialect()))
      result.instructions += elementCost(op).instructions;
  if (!inOperands && result.functions == 0)
    return std::nullopt;
  SmallVector<BlockArgument> indices = getIterationIndices(value);
  for (unsigned p = 0; p < compute.getNumIndices(); ++p)
    if (llvm::is_contained(indices, compute.getIndex(p))) {
      result.over.push_back(cast<BlockArgument>(compute.getIndex(p)));
      result.extents.push_back(compute.getExtents()[p]);
      result.names.push_back(cast<StringAttr>(compute.getIndexNames()[p]).str());
    }
  Value along = around ? around.getIndex(0) : compute.getIndex(compute.getNumIndices() - 1);
  if (around && llvm::is_contained(indices, along)) {
    result.over.push_back(cast<BlockArgument>(along));
    result.extents.push_back(wholeExtent(around, 0, compute));
    result.names.push_back(cast<StringAttr>(around.getIndexNames()[0]).str());
  }
  // What is not over the last index threads compute once for many elements.
  if (result.over.empty() || result.over.back() != along || !result.extents.back() ||
      result.over.size() != indices.size())
    return std::nullopt;
  SmallVector<Value> others;
  for (unsigned p = 0; p < compute.getNumIndices(); ++p)
    if (!llvm::is_contained(result.over, compute.getIndex(p)))
      others.push_back(compute.getExtents()[p]);
  Dependence onOthers(others);
  if (!llvm::all_of(*slice,
                    [&](Operation *op) { return isInBoundsApart(op, onOthers, result.extents); }))
    return std::nullopt;
  result.users = sizeOf(kernel, compute.getExtents());
  return result;
}

/// Do many elements share each of its values?
bool InvariantStores::isShared(const Invariant &invariant) {
  return invariant.users >= leastShare * sizeOf(kernel, invariant.extents);
}

/// Finds what is stored of the values in `block`: from it something is computed at once that is
/// not shared by many.
void InvariantStores::collect(Block *block, ReduceOp around) {
  for (Operation &op : *block) {
    if (op.getNumResults() != 1 || op.getNumRegions() > 0)
      continue;
    std::optional<Invariant> invariant = read(op.getResult(0), around);
    if (!invariant || !isShared(*invariant))
      continue;
    auto isOverMore = [&](Operation *user) {
      if (user->getNumResults() != 1 || user->getNumRegions() > 0)
        return true;
      std::optional<Invariant> next = read(user->getResult(0), around);
      return !next || !isShared(*next);
    };
    if (llvm::none_of(op.getUsers(), isOverMore))
      continue;
    add(std::move(*invariant));
  }
}

/// Notes `invariant`, or that it is equal to one that was found before.
void InvariantStores::add(Invariant &&invariant) {
  for (size_t same = 0; same < found.size(); ++same) {
    ScalarEquality equality;
    if (!haveSameOuter(found[same], invariant))
      continue;
    equality.identify(found[same].over.back(), invariant.over.back());
    if (equality.equal(found[same].value, invariant.value)) {
      copies.emplace_back(std::move(invariant), same);
      return;
    }
  }
  found.push_back(std::move(invariant));
}

/// Finds values in the operands of `product` that lack an index of the operand: something over more
/// indices is computed from them inside the operand.
void InvariantStores::collectOperands(ReduceOp product) {
  for (Value operand : product.getYield().getValues()[0].getDefiningOp()->getOperands()) {
    std::optional<SmallVector<Operation *>> slice = getElementwise(compute, operand);
    if (!slice)
      continue;
    const size_t numIndices = getIterationIndices(operand).size();
    double elements = guessSize(kernel, wholeExtent(product, 0, compute));
    for (BlockArgument index : getIterationIndices(operand))
      if (index.getOwner() == compute.getBlock())
        elements *= guessSize(kernel, compute.getExtents()[index.getArgNumber()]);
    auto isOverFewer = [&](Operation *op) {
      return op->getNumResults() == 1 && getIterationIndices(op->getResult(0)).size() < numIndices;
    };
    for (Operation &op : *product.getBlock()) {
      if (!llvm::is_contained(*slice, &op) || !isOverFewer(&op))
        continue;
      std::optional<Invariant> invariant = read(op.getResult(0), product);
      if (!invariant)
        continue;
      invariant->users = elements;
      auto isInside = [&](Operation *user) {
        return llvm::is_contained(*slice, user) && !isOverFewer(user);
      };
      if (invariant->instructions >= leastInstructions && isShared(*invariant) &&
          llvm::any_of(op.getUsers(), isInside))
        add(std::move(*invariant));
    }
  }
}

/// What memory moves for each element: results and what is loaded along the last index and one
/// that is not of the invariants.
double InvariantStores::bytesOfElement() {
  double bits = 0;
  for (Value result : compute.getResults())
    bits += cast<RankedTensorType>(result.getType()).getElementTypeBitWidth();
  llvm::SmallPtrSet<Value, 4> tensors;
  Value last = compute.getIndex(compute.getNumIndices() - 1);
  for (LoadOp load : compute.getBlock()->getOps<LoadOp>()) {
    SmallVector<BlockArgument> over;
    for (Value index : load.getIndices())
      llvm::append_range(over, getIterationIndices(index));
    llvm::SmallDenseSet<Value> different(over.begin(), over.end());
    if (different.contains(last) && different.size() == compute.getNumIndices() &&
        tensors.insert(load.getTensor()).second)
      bits += cast<RankedTensorType>(load.getTensor().getType()).getElementTypeBitWidth();
  }
  return bits / 8;
}

bool InvariantStores::pays(ArrayRef<Invariant *> together) {
  double functions = 0, bytes = 0, shared = sizeOf(kernel, together.front()->extents);
  llvm::SmallPtrSet<Operation *, 8> counted;
  for (Invariant *invariant : together) {
    SmallVector<Operation *> slice = *getElementwise(compute, invariant->value);
    for (Operation *op : slice)
      functions += isLong(op) && counted.insert(op).second;
    bytes += invariant->value.getType().getIntOrFloatBitWidth() / 8.0;
  }
  double all = sizeOf(kernel, compute.getExtents()),
         computed = cost::longFunction * functions * all;
  double saved = computed - cost::longFunction * functions * shared;
  double cost = 2 * cost::byte * bytes * shared + cost::sharedByte * bytes * all + cost::launch;
  return computed > cost::byte * bytesOfElement() * all && saved > cost;
}

/// As pays(), where threads compute each value for some elements of an operand's tile.
bool InvariantStores::paysInOperands(ArrayRef<Invariant *> together) {
  double saved = 0, bytes = 0, shared = sizeOf(kernel, together.front()->extents), users = 0;
  for (Invariant *invariant : together) {
    saved += cost::instruction * invariant->instructions *
             (invariant->users / elementsOfThread - shared);
    bytes += invariant->value.getType().getIntOrFloatBitWidth() / 8.0;
    users = std::max(users, invariant->users);
  }
  return saved > 2 * cost::byte * bytes * shared +
                     cost::sharedByte * bytes * users / rowsOfTileAtLeast + cost::launch;
}

void InvariantStores::store(ArrayRef<Invariant *> together) {
  Invariant &first = *together.front();
  SmallVector<StringRef> names(first.names.begin(), first.names.end());
  SmallVector<Type> types;
  SmallVector<std::string> texts;
  std::string name = cast<StringAttr>(compute.getNames()[0]).str();
  for (auto [n, invariant] : llvm::enumerate(together)) {
    types.push_back(invariant->value.getType());
    texts.push_back(name + ".shared" + (n ? std::to_string(n) : ""));
  }
  OpBuilder builder(compute);
  auto statement = ComputeOp::create(
      builder, first.value.getLoc(), names, first.extents, types,
      SmallVector<StringRef>(texts.begin(), texts.end()), ArrayRef<SmallVector<unsigned>>{},
      [&](OpBuilder &body, Location loc, ValueRange places) {
        IRMapping mapping;
        SmallVector<Value> results;
        for (Invariant *invariant : together) {
          for (auto [index, place] : llvm::zip_equal(invariant->over, places))
            mapping.map(index, place);
          results.push_back(cloneFrom(body, invariant->value, compute, mapping));
        }
        YieldOp::create(body, loc, results);
      });
  auto load = [&](Invariant &invariant, Value tensor) {
    OpBuilder after(compute.getContext());
    after.setInsertionPointAfterValue(invariant.value);
    SmallVector<Value> at(invariant.over.begin(), invariant.over.end());
    Value stored = LoadOp::create(after, invariant.value.getLoc(), tensor, at, Value());
    invariant.value.replaceAllUsesWith(stored);
  };
  for (auto [n, invariant] : llvm::enumerate(together)) {
    for (auto &[copy, of] : copies)
      if (&found[of] == invariant)
        load(copy, statement.getResult(n));
    load(*invariant, statement.getResult(n));
  }
}

unsigned InvariantStores::run() {
  if (compute.getNumIndices() < 2)
    return 0;
  // Whole operands of products are stored as products read them (tk-materialize-operands).
  WalkResult products = compute.walk([](ReduceOp reduce) {
    return isContraction(reduce) ? WalkResult::interrupt() : WalkResult::advance();
  });
  inOperands = products.wasInterrupted();
  if (inOperands && !computesPlainProducts(compute))
    return 0;
  if (!inOperands)
    collect(compute.getBlock(), nullptr);
  for (ReduceOp reduce : compute.getBlock()->getOps<ReduceOp>()) {
    if (reduce.getNumIndices() != 1)
      continue;
    if (!inOperands)
      collect(reduce.getBlock(), reduce);
    else if (isMatrixProduct(reduce) && reduce.getNumAccumulators() == 1 &&
             wholeExtent(reduce, 0, compute))
      collectOperands(reduce);
  }
  SmallVector<SmallVector<Invariant *>> groups;
  for (Invariant &invariant : found) {
    auto group = llvm::find_if(groups, [&](ArrayRef<Invariant *> other) {
      return other.front()->over == invariant.over && other.size() < mostResults;
    });
    if (group != groups.end())
      group->push_back(&invariant);
    else
      groups.push_back({&invariant});
  }
  unsigned stored = 0;
  for (ArrayRef<Invariant *> group : groups)
    if (inOperands ? paysInOperands(group) : pays(group)) {
      note(compute, passName, Verdict::Derived,
           "a value that " + describe(compute) +
               " computes for many elements alike is stored by a statement of its own");
      store(group);
      stored += group.size();
    }
  if (stored)
    eraseDead(compute);
  return stored;
}

unsigned tk::storeInvariants(KernelOp kernel) {
  unsigned stored = 0;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
    stored += InvariantStores(kernel, compute).run();
  return stored;
}
