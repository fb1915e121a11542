//===- StoreInvariants.cpp - storing long functions that many elements share ===//
//
// A compute op recomputes, for each of its elements, values that depend on some of its indices
// only. An example is the rotation of a position, which all heads of a token share. A thread has
// neighbours in memory, which belong to one head. If the value is a long function, a compute op
// stores it once.
//
// 1. The pattern matches values of a compute op, and of reductions and scans in it over one whole
//    range. A value is computed element by element with at least one long function. It varies along
//    the contiguous index of memory, many elements share it, and another value that they do not
//    share is computed from it.
// 2. Equal values in a reduction or scan and in the compute op around it are one value. A value
//    that an earlier compute op stores is read from there.
// 3. The value is stored if the computation takes longer than the memory accesses, and if the saved
//    time is longer than that of storing and reading the value. Values over the same indices share
//    a compute op.
//
//   %y = tk.compute ["t", "h", "d"] {x[t, h, d] * cos(p[t] * exp(d))}
//     =>
//   %c = tk.compute ["t", "d"] {cos(p[t] * exp(d))}
//   %y = tk.compute ["t", "h", "d"] {x[t, h, d] * c[t, d]}
//
// Values in operands of matrix products are found by OperandInvariants.cpp.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/operands/InvariantStores.h"
#include "passes/tensor/operands/MaterializeOperands.h"

#include "passes/analysis/BoundsApart.h"
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/Declines.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/LongFunctions.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"
#include "passes/machine/OperationCost.h"
#include "passes/machine/limits/Operands.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-materialize-operands:invariants";
using namespace limits::store_invariants;

/// How many functions that take a thread tens of instructions are in `op`?
static double functionsOf(Operation *op) {
  return isa<math::PowFOp>(op) ? longFunctionsOfPower : isLongFunction(op) ? 1.0 : 0.0;
}

/// Are both lists of one length, and all but their last entries the same?
static bool haveSameOuter(const Invariant &a, const Invariant &b) {
  return a.over.size() == b.over.size() && a.extents == b.extents &&
         ArrayRef(a.over).drop_back() == ArrayRef(b.over).drop_back();
}

std::optional<SmallVector<Operation *>> tk::getElementwise(ComputeOp compute, Value value) {
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

double InvariantStores::sizeOf(ValueRange extents) {
  double count = 1;
  for (Value extent : extents)
    count *= guessSize(kernel, extent);
  return count;
}

AlongIndex InvariantStores::ofStatement() {
  const unsigned last = compute.getNumIndices() - 1;
  return {cast<BlockArgument>(compute.getIndex(last)), compute.getExtents()[last],
          cast<StringAttr>(compute.getIndexNames()[last]).str(), /*isOfStatement=*/true};
}

AlongIndex InvariantStores::ofReduction(ReduceOp reduce) {
  return {cast<BlockArgument>(reduce.getIndex(0)), wholeExtent(reduce, 0, compute),
          cast<StringAttr>(reduce.getIndexNames()[0]).str()};
}

AlongIndex InvariantStores::ofScan(ScanOp scan) {
  Value upper = scan.getUpper();
  const bool isWhole =
      isConstantIntValue(scan.getLower(), 0) && llvm::is_contained(compute.getExtents(), upper);
  return {scan.getBlock()->getArgument(0), isWhole ? upper : Value(), scan.getIndexName().str()};
}

/// `value` if it is over some, but not all, of the indices that the statement has, and over
/// `along`.
std::optional<Invariant> InvariantStores::read(Value value, const AlongIndex &along) {
  if (!isa<FloatType>(value.getType()))
    return std::nullopt;
  std::optional<SmallVector<Operation *>> slice = getElementwise(compute, value);
  if (!slice)
    return std::nullopt;
  Invariant result;
  result.value = value;
  for (Operation *op : *slice) {
    result.functions += functionsOf(op);
    if (isa<math::MathDialect, arith::ArithDialect>(op->getDialect()))
      result.instructions += elementCost(op).instructions;
  }
  if (!inOperands && result.functions == 0)
    return std::nullopt;
  SmallVector<BlockArgument> indices = getIterationIndices(value);
  for (unsigned p = 0; p < compute.getNumIndices(); ++p)
    if (llvm::is_contained(indices, compute.getIndex(p))) {
      result.over.push_back(cast<BlockArgument>(compute.getIndex(p)));
      result.extents.push_back(compute.getExtents()[p]);
      result.names.push_back(cast<StringAttr>(compute.getIndexNames()[p]).str());
    }
  if (!along.isOfStatement && llvm::is_contained(indices, along.index)) {
    result.over.push_back(along.index);
    result.extents.push_back(along.extent);
    result.names.push_back(along.name);
  }
  // What is not over the last index threads compute once for many elements.
  if (result.over.empty() || result.over.back() != along.index || !result.extents.back() ||
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
  result.users = sizeOf(compute.getExtents());
  return result;
}

/// Do many elements share each of its values?
bool InvariantStores::isShared(const Invariant &invariant) {
  return invariant.users >= leastShare * sizeOf(invariant.extents);
}

/// Finds what is stored of the values in `block`: from it something is computed at once that is
/// not shared by many.
void InvariantStores::collect(Block *block, const AlongIndex &along) {
  for (Operation &op : *block) {
    if (op.getNumResults() != 1 || op.getNumRegions() > 0)
      continue;
    std::optional<Invariant> invariant = read(op.getResult(0), along);
    if (!invariant || !isShared(*invariant))
      continue;
    auto isOverMore = [&](Operation *user) {
      if (user->getNumResults() != 1 || user->getNumRegions() > 0)
        return true;
      std::optional<Invariant> next = read(user->getResult(0), along);
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
  double functions = 0, bytes = 0, shared = sizeOf(together.front()->extents);
  llvm::SmallPtrSet<Operation *, 8> counted;
  for (Invariant *invariant : together) {
    SmallVector<Operation *> slice = *getElementwise(compute, invariant->value);
    for (Operation *op : slice)
      if (counted.insert(op).second)
        functions += functionsOf(op);
    bytes += invariant->value.getType().getIntOrFloatBitWidth() / 8.0;
  }
  double all = sizeOf(compute.getExtents()), computed = cost::longFunction * functions * all;
  double saved = computed - cost::longFunction * functions * shared;
  double cost = 2 * cost::byte * bytes * shared + cost::sharedByte * bytes * all + cost::launch;
  return computed > cost::byte * bytesOfElement() * all &&
         savesTime(compute, "tk-materialize-operands:invariants", "storing shared functions", saved,
                   cost);
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
  for (auto [n, invariant] : llvm::enumerate(together))
    replace(*invariant, statement.getResult(n));
}

/// Loads `invariant`, and what is equal to it, from `tensor`.
void InvariantStores::replace(Invariant &invariant, Value tensor) {
  auto load = [&](Invariant &own) {
    OpBuilder after(compute.getContext());
    after.setInsertionPointAfterValue(own.value);
    SmallVector<Value> at(own.over.begin(), own.over.end());
    Value stored = LoadOp::create(after, own.value.getLoc(), tensor, at, Value());
    own.value.replaceAllUsesWith(stored);
  };
  for (auto &[copy, of] : copies)
    if (&found[of] == &invariant)
      load(copy);
  load(invariant);
  ++stored;
}

/// A result of an earlier statement that is `invariant`; null if there is none.
Value InvariantStores::findStored(const Invariant &invariant) {
  for (ComputeOp other : kernel.getBody().getOps<ComputeOp>()) {
    if (other == compute)
      return {};
    if (!llvm::equal(other.getExtents(), invariant.extents))
      continue;
    ScalarEquality equality;
    for (auto [n, index] : llvm::enumerate(invariant.over))
      equality.identify(other.getIndex(n), index);
    for (auto [result, value] : llvm::zip_equal(other.getResults(), other.getYield().getValues()))
      if (value.getType() == invariant.value.getType() && equality.equal(value, invariant.value))
        return result;
  }
  return {};
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
  if (!inOperands) {
    collect(compute.getBlock(), ofStatement());
    for (ScanOp scan : compute.getBlock()->getOps<ScanOp>())
      collect(scan.getBlock(), ofScan(scan));
  }
  for (ReduceOp reduce : compute.getBlock()->getOps<ReduceOp>()) {
    if (reduce.getNumIndices() != 1)
      continue;
    if (!inOperands)
      collect(reduce.getBlock(), ofReduction(reduce));
    else if (isMatrixProduct(reduce) && reduce.getNumAccumulators() == 1 &&
             wholeExtent(reduce, 0, compute))
      collectOperands(reduce);
  }
  SmallVector<SmallVector<Invariant *>> groups;
  for (Invariant &invariant : found) {
    if (Value tensor = findStored(invariant)) {
      replace(invariant, tensor);
      continue;
    }
    auto group = llvm::find_if(groups, [&](ArrayRef<Invariant *> other) {
      return other.front()->over == invariant.over && other.size() < mostResults;
    });
    if (group != groups.end())
      group->push_back(&invariant);
    else
      groups.push_back({&invariant});
  }
  for (ArrayRef<Invariant *> group : groups)
    if (inOperands ? paysInOperands(group) : pays(group)) {
      note(compute, passName, Verdict::Derived,
           "a value that " + describe(compute) +
               " computes for many elements alike is stored by a statement of its own");
      store(group);
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
