//===- UnrollReductions.cpp - reductions of a few elements ----------------===//
//
// Part of tk-simplify. Some sums have so few elements that a tile of them would be mostly empty:
// those over the two amplitudes of a qubit, the coordinates of a point, or the columns of a small
// matrix. The thread of a result computes such a sum quickly. If the number of elements is known,
// the sum is written out:
//
//   tk.reduce [sum] ["j"] from (0) to (2) {%x = load %u[%i, %j]; ...}
//     →  addf (load %u[%i, 0] ...), (load %u[%i, 1] ...)
//
// Elements that read neighbours along the index (windows) slide in registers instead, unless their
// places are folded at the ends of the tensor, by a clamp or a remainder. Long functions, loops and
// gathers are not repeated. Contractions whose operands many results share are left to tiles.
//
//===----------------------------------------------------------------------===//
#include "passes/machine/limits/Operands.h"
#include "passes/tensor/normalize/Simplify.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/LongFunctions.h"
#include "passes/analysis/PresentTerms.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/ScheduleEntries.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/analysis/ValueCopies.h"
#include "passes/plan/ScheduleBlock.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tk;

using namespace limits::unroll_reductions;

/// Does the kernel's schedule block say something of the index of `reduce`?
static bool isScheduled(ReduceOp reduce) {
  auto kernel = reduce->getParentOfType<KernelOp>();
  DictionaryAttr entries = kernel ? findScheduleBlock(kernel) : DictionaryAttr();
  auto name = cast<StringAttr>(reduce.getIndexNames()[0]);
  return entries && llvm::any_of(entries, [&](NamedAttribute entry) {
           auto axes = dyn_cast<DictionaryAttr>(entry.getValue());
           return axes && axes.contains(name);
         });
}

/// How many values each index of `reduce` has, if that is known.
static std::optional<SmallVector<int64_t>> countTerms(ReduceOp reduce) {
  auto kernel = reduce->getParentOfType<KernelOp>();
  SmallVector<int64_t> counts;
  for (auto [lower, upper] : llvm::zip_equal(reduce.getLower(), reduce.getUpper())) {
    std::optional<int64_t> count = kernel ? getSizeFact(kernel, upper).exact : std::nullopt;
    if (!count || getConstantIndex(lower) != 0)
      return std::nullopt;
    counts.push_back(*count);
  }
  return counts;
}

/// Does the place `at` follow `index` through a clamp or a remainder? Such a window does not slide.
static bool isFolded(Value at, Value index) {
  Dependence onIndex{ValueRange{index}};
  SmallVector<Value> work = {at};
  llvm::SmallDenseSet<Value> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || !seen.insert(value).second || !onIndex.on(value))
      continue;
    if (isa<arith::MinSIOp, arith::MaxSIOp, FloorModOp>(op))
      return true;
    llvm::append_range(work, op->getOperands());
  }
  return false;
}

static bool hasFolded(ReduceOp reduce) {
  return reduce
      ->walk([&](LoadOp load) {
        const bool any = llvm::any_of(load.getIndices(), [&](Value at) {
          return llvm::any_of(reduce.getBlock()->getArguments(),
                              [&](Value index) { return at != index && isFolded(at, index); });
        });
        return any ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Is something loaded on the way to `value`, within its statement?
static bool readsTensors(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || isa<KernelOp>(op->getParentOp()))
    return false;
  return isa<LoadOp>(op) || llvm::any_of(op->getOperands(), readsTensors);
}

/// Does `load`, or what computes its tensor, read at indices from tensors? Each result would gather
/// the terms of all.
static bool isGathered(LoadOp load) {
  if (llvm::any_of(load.getIndices(), readsTensors))
    return true;
  auto producer = load.getTensor().getDefiningOp<ComputeOp>();
  return producer && producer
                         ->walk([](LoadOp inner) {
                           return isGathered(inner) ? WalkResult::interrupt()
                                                    : WalkResult::advance();
                         })
                         .wasInterrupted();
}

/// Is each access along `index` at that index alone or at a folded place, and is nothing in `block`
/// repeated in vain?
static bool isPlain(Block &block, Value index) {
  for (Operation &op : block.without_terminator()) {
    if (op.getNumRegions() > 0 || isLongFunction(&op) || isa<math::ExpOp, math::LogOp>(op))
      return false;
    auto load = dyn_cast<LoadOp>(op);
    if (!load)
      continue;
    if (isGathered(load))
      return false;
    for (Value at : load.getIndices())
      if (at != index && llvm::is_contained(getIterationIndices(at), index) && !isFolded(at, index))
        return false;
  }
  return true;
}

/// Do results of a product share so little of what lies along memory that reading it for each of
/// them costs little? Products inside other reductions are those of chains.
static bool sharesLittle(ReduceOp reduce) {
  auto compute = dyn_cast<ComputeOp>(reduce->getParentOp());
  if (!compute || compute.getNumIndices() == 0)
    return compute != nullptr;
  Value last = compute.getIndex(compute.getNumIndices() - 1);
  bool isLittle = true;
  reduce.getBody().walk([&](LoadOp load) {
    SmallVector<BlockArgument> over = getIterationIndices(load.getResult());
    if (!llvm::is_contained(over, last))
      return;
    int64_t times = 1;
    for (auto [index, extent] : llvm::zip(compute.getBlock()->getArguments(), compute.getExtents()))
      if (!llvm::is_contained(over, index)) {
        int64_t upper = getUpperBound(extent);
        times =
            upper < 0 || upper > mostReads ? mostReads + 1 : times * std::max<int64_t>(upper, 1);
      }
    isLittle &= times <= mostReads;
  });
  return isLittle;
}

bool tk::unrollReduction(ReduceOp reduce) {
  ReduceKind kind = reduce.getKind(0);
  bool isKnown = kind == ReduceKind::Sum || kind == ReduceKind::Prod || kind == ReduceKind::Max ||
                 kind == ReduceKind::Min;
  const bool isWindow = hasFolded(reduce);
  if (reduce.isOnline() || !isKnown || (reduce.getNumIndices() != 1 && !isWindow) ||
      isScheduled(reduce) || (isContraction(reduce) && !sharesLittle(reduce)))
    return false;
  std::optional<SmallVector<int64_t>> counts = countTerms(reduce);
  Block *body = reduce.getBlock();
  if (!counts || llvm::any_of(reduce.getBlock()->getArguments(),
                              [&](Value index) { return !isPlain(*body, index); }))
    return false;
  int64_t terms = 1;
  for (int64_t count : *counts)
    terms = count >= 0 && count <= mostOperations ? terms * count : mostOperations;
  if (terms < 2 || terms > (isWindow ? mostWindowTerms : mostTerms) ||
      terms * static_cast<int64_t>(body->getOperations().size()) >
          (isWindow ? mostWindowOperations : mostOperations))
    return false;
  OpBuilder builder(reduce);
  Location loc = reduce.getLoc();
  Value result;
  // Without the reduction nothing says any more which terms exist.
  PresentTerms present = addPresentTerms(reduce, Conditions::OfElements);
  auto conditions = present.find(reduce);
  Value exists = conditions == present.end() ? Value() : conditions->second[0];
  for (int64_t n = 0; n < terms; ++n) {
    IRMapping mapping;
    int64_t rest = n;
    for (unsigned i = counts->size(); i-- > 0; rest /= (*counts)[i])
      mapping.map(reduce.getIndex(i),
                  arith::ConstantIndexOp::create(builder, loc, rest % (*counts)[i]).getResult());
    for (Operation &op : body->without_terminator())
      builder.clone(op, mapping);
    Value term = mapping.lookupOrDefault(reduce.getYield().getValues()[0]);
    if (exists)
      term = arith::SelectOp::create(builder, loc, mapping.lookupOrDefault(exists), term,
                                     createIdentity(builder, loc, kind, term.getType()));
    result = result ? createCombination(builder, loc, kind, result, term) : term;
  }
  if (Attribute number = joinComputations(reduce))
    result.getDefiningOp()->setAttr(computationsAttrName, number);
  reduce.getResult(0).replaceAllUsesWith(result);
  reduce.erase();
  return true;
}
