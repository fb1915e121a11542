//===- FormRecurrences.cpp - sums whose terms decay are scans -------------===//
//
// A sum of the terms up to an index, each weighted by how far back it lies, is computed again for
// each value of the index. As a recurrence, y[t] = decay(t) * y[t - 1] + x[t], all of them take one
// pass.
//
// 1. Take sums in f32 over the terms before an index `t` of the compute op, or behind it. A bound,
//    or a condition around a factor of the term, says so.
// 2. The term is a product. Weights depend on both indices. They are powers, `pow(c, t - s)`, or
//    exponentials, `exp((t - s) * l)` and `exp(g(t) - g(s) + h(s))`. The product of weights of one
//    step is the decay. The weight of the nearest term belongs to the term.
// 3. The difference of a running sum `g` from one element to the next is the running sum's term.
// 4. Factors that depend on `t` alone move behind the scan. The term without `t` is scanned as sums
//    without weights are (FormScans.cpp): at `t - 1`, with the weight of one step, if the sum ends
//    before `t`.
//
// 5. The distance may be a factor, as in gradients by a decay: Y[t] = decay * Y[t - 1] + y[t],
// where
//    y is the sum without it. Such sums over both indices are nested first: the sum over `s` is a
//    compute op over `t`.
// 6. A compute op scans in one direction. A recurrence in the other one, or beside another
//    reduction, is a compute op of its own.
//
// No weight is divided by another. A GPU alone has such scans. Batch-invariant kernels and those
// with a schedule stay as they are.
//
//   %y = tk.compute ["r", "t"] {tk.reduce [sum] ["s"] {s <= t ? powf(%c, t - s) * x[r, s] : 0}}
//     =>
//   %y = tk.compute ["r", "t"] {tk.scan sum "s" from 0 to %T at %t {yield x[r, s], %c}}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/normalize/FormRecurrences.h"
#include "passes/tensor/normalize/DecayWeights.h"
#include "passes/tensor/normalize/RecurrenceSide.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/ScanPosition.h"
#include "passes/analysis/ScheduleEntries.h"

#include "dialects/tk/TkInvariance.h"
#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;

namespace {

class Recurrence {
public:
  Recurrence(ReduceOp reduce, ComputeOp compute) : reduce(reduce), compute(compute) {}

  bool match();
  bool isOpposed();
  void rewrite();

private:
  bool isSum();
  Value termAt(OpBuilder &at, Value number, Value last);
  Value scanAt(OpBuilder &at, Value position, Value extent, Value last, bool hasDistance);

  ReduceOp reduce;
  ComputeOp compute;
  RecurrenceSide side;
  std::optional<DecayWeights> weights;
};

} // namespace

/// Does a compute op multiply matrices in another sum? Its blocks have tiles, not rows.
static bool multipliesMatrices(ComputeOp compute, ReduceOp beside) {
  return compute
      .walk([&](ReduceOp reduce) {
        return reduce != beside && isContraction(reduce) ? WalkResult::interrupt()
                                                         : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Is this a plain sum in f32?
bool Recurrence::isSum() {
  return !reduce.isOnline() && reduce.getNumIndices() == 1 &&
         reduce.getKind(0) == ReduceKind::Sum && reduce.getPrecision() == Precision::Default &&
         reduce.getResult(0).getType().isF32() &&
         llvm::none_of(*reduce.getBlock(), [](Operation &op) { return op.getNumRegions() > 0; });
}

bool Recurrence::match() {
  auto module = compute->getParentOfType<ModuleOp>();
  Value term = reduce.getYield().getValues()[0];
  auto kernel = compute->getParentOfType<KernelOp>();
  if (!module->hasAttr(gpu::targetAttrName) || isBatchInvariant(kernel) ||
      findScheduleBlock(kernel) || !isSum())
    return false;
  std::optional<RecurrenceSide> found = RecurrenceSide::of(reduce, compute);
  if (!found)
    return false;
  side = *found;
  weights.emplace(reduce, side.place, side.isBackward, side.condition);
  if (!weights->match(term, side.isIncluded) || multipliesMatrices(compute, reduce) ||
      (weights->hasDistance() && side.isBackward))
    return false;
  side.isIncluded &= !weights->hasDistance();
  return true;
}

/// Does the compute op scan in the other direction, or reduce something else?
bool Recurrence::isOpposed() {
  if (llvm::any_of(compute.getBlock()->getOps<ReduceOp>(),
                   [&](ReduceOp other) { return other != reduce; }))
    return true;
  return llvm::any_of(compute.getBlock()->getOps<ScanOp>(), [&](ScanOp scan) {
    std::optional<IndexOrMirror> position = getScanPosition(scan, compute);
    return position && position->index == side.place && position->isMirrored != side.isBackward;
  });
}

/// The term of the scan's number: that of the same place, or of the one before.
Value Recurrence::termAt(OpBuilder &at, Value number, Value last) {
  Location loc = reduce.getLoc();
  auto placeOf = [&](Value n) -> Value {
    return side.isBackward ? arith::SubIOp::create(at, loc, last, n).getResult() : n;
  };
  Value place = placeOf(number);
  if (side.isIncluded)
    return weights->termAt(at, place, place);
  Value zero = arith::ConstantIndexOp::create(at, loc, 0);
  Value one = arith::ConstantIndexOp::create(at, loc, 1);
  Value before = arith::SubIOp::create(at, loc, number, one);
  Value earlier = placeOf(arith::MaxSIOp::create(at, loc, before, zero));
  Value term = weights->termAt(at, earlier, place);
  Value isLater = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::sgt, number, zero);
  Value none = createIdentity(at, loc, ReduceKind::Sum, term.getType());
  return arith::SelectOp::create(at, loc, isLater, term, none);
}

/// The decayed sum at `position`, of terms up to `extent`. If the distance is a factor, each term
/// is the sum without that factor, up to there.
Value Recurrence::scanAt(OpBuilder &at, Value position, Value extent, Value last,
                         bool hasDistance) {
  Location loc = reduce.getLoc();
  Value zero = arith::ConstantIndexOp::create(at, loc, 0);
  auto scan = ScanOp::create(at, loc, ReduceKind::Sum,
                             cast<StringAttr>(reduce.getIndexNames()[0]).getValue(), zero, extent,
                             position, reduce.getResult(0).getType(),
                             [&](OpBuilder &inner, Location, ValueRange indices) -> Value {
                               return hasDistance
                                          ? scanAt(inner, indices.front(), extent, last, false)
                                          : termAt(inner, indices.front(), last);
                             });
  auto yield = scan.getYield();
  OpBuilder inner(yield);
  Value one = arith::ConstantIndexOp::create(inner, loc, 1);
  Value place = scan.getBlock()->getArgument(0), before;
  if (side.isBackward) {
    place = arith::SubIOp::create(inner, loc, last, place);
    Value next = arith::AddIOp::create(inner, loc, place, one);
    before = arith::MinSIOp::create(inner, loc, next, last);
  } else {
    Value previous = arith::SubIOp::create(inner, loc, place, one);
    before = arith::MaxSIOp::create(inner, loc, previous, zero);
  }
  yield->insertOperands(1, weights->decayAt(inner, place, before));
  return scan.getResult();
}

void Recurrence::rewrite() {
  OpBuilder builder(reduce);
  Location loc = reduce.getLoc();
  Value extent = compute.getExtents()[side.place.getArgNumber()], position = side.place;
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value last = builder.createOrFold<arith::SubIOp>(loc, extent, one);
  if (side.isBackward)
    position = arith::SubIOp::create(builder, loc, last, side.place);
  Value sum = scanAt(builder, position, extent, last, weights->hasDistance());
  reduce.getResult(0).replaceAllUsesWith(weights->withFactors(builder, sum));
  reduce.erase();
}

/// Is the term of `reduce` there only where one of its indices, `index`, is not behind another one?
static bool isOrderedBy(ReduceOp reduce, unsigned index) {
  SmallVector<arith::SelectOp> choices;
  collectChoices(reduce.getYield().getValues()[0], choices);
  return llvm::any_of(choices, [&](arith::SelectOp choice) {
    auto compare = choice.getCondition().getDefiningOp<arith::CmpIOp>();
    using Predicate = arith::CmpIPredicate;
    return compare && compare.getLhs() == reduce.getIndex(index) &&
           (compare.getPredicate() == Predicate::sle || compare.getPredicate() == Predicate::slt);
  });
}

/// The indices of `compute` and of `reduce` but for `index`, in the order in which a load of a term
/// has most of them.
static SmallVector<BlockArgument> orderedIndices(ReduceOp reduce, unsigned index,
                                                 ComputeOp compute) {
  SmallVector<BlockArgument> all(compute.getBlock()->getArguments()), last;
  for (BlockArgument own : reduce.getBlock()->getArguments())
    if (own.getArgNumber() != index)
      all.push_back(own);
  reduce.walk([&](LoadOp load) {
    SmallVector<BlockArgument> found;
    for (Value axis : load.getIndices())
      if (auto own = dyn_cast<BlockArgument>(axis); own && llvm::is_contained(all, own))
        found.push_back(own);
    if (found.size() > last.size())
      last = found;
  });
  llvm::erase_if(all, [&](BlockArgument own) { return llvm::is_contained(last, own); });
  llvm::append_range(all, last);
  return all;
}

/// A compute op over the `old` indices of `compute` and of `reduce`, which sums over `index`.
static ComputeOp sumOver(ReduceOp reduce, unsigned index, ComputeOp compute,
                         ArrayRef<BlockArgument> old) {
  SmallVector<StringRef> names;
  SmallVector<Value> extents;
  for (BlockArgument own : old) {
    const bool isOfCompute = own.getOwner() == compute.getBlock();
    const unsigned n = own.getArgNumber();
    Attribute name = isOfCompute ? compute.getIndexNames()[n] : reduce.getIndexNames()[n];
    names.push_back(cast<StringAttr>(name).getValue());
    extents.push_back(isOfCompute ? compute.getExtents()[n] : reduce.getUpper()[n]);
  }
  OpBuilder builder(compute);
  const Type type = reduce.getResult(0).getType();
  const std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + ".nested").str();
  return ComputeOp::create(
      builder, reduce.getLoc(), names, extents, ArrayRef<Type>{type}, ArrayRef<StringRef>{name},
      ArrayRef<SmallVector<unsigned>>{}, [&](OpBuilder &body, Location loc, ValueRange own) {
        auto sum = ReduceOp::create(
            body, loc, ReduceKind::Sum,
            ArrayRef<StringRef>{cast<StringAttr>(reduce.getIndexNames()[index]).getValue()},
            ValueRange{reduce.getLower()[index]}, ValueRange{reduce.getUpper()[index]}, type,
            [&](OpBuilder &inner, Location, ValueRange numbers) -> Value {
              IRMapping mapping;
              for (auto [from, to] : llvm::zip_equal(old, own))
                mapping.map(from, to);
              mapping.map(reduce.getIndex(index), numbers.front());
              return cloneFrom(inner, reduce.getYield().getValues()[0], compute, mapping);
            });
        YieldOp::create(body, loc, sum.getResult(0));
      });
}

bool tk::formRecurrence(ReduceOp reduce) {
  auto compute = dyn_cast<ComputeOp>(reduce->getParentOp());
  if (!compute)
    return false;
  Recurrence recurrence(reduce, compute);
  if (!recurrence.match())
    return false;
  if (!recurrence.isOpposed()) {
    recurrence.rewrite();
    return true;
  }
  SmallVector<BlockArgument> indices(compute.getBlock()->getArguments());
  ComputeOp apart = sumOver(reduce, 0, compute, indices);
  formRecurrence(*apart.getBlock()->getOps<ReduceOp>().begin());
  OpBuilder builder(reduce);
  Value sum = LoadOp::create(builder, reduce.getLoc(), apart->getResult(0),
                             compute.getBlock()->getArguments(), Value());
  reduce.getResult(0).replaceAllUsesWith(sum);
  reduce.erase();
  return true;
}

bool tk::nestRecurrence(ReduceOp reduce) {
  auto compute = dyn_cast<ComputeOp>(reduce->getParentOp());
  auto isOutside = [&](Value bound) {
    return !compute->isAncestor(bound.getParentBlock()->getParentOp());
  };
  if (!compute || reduce.isOnline() || reduce.getNumIndices() < 2 ||
      reduce.getKind(0) != ReduceKind::Sum || reduce.getPrecision() != Precision::Default ||
      !llvm::all_of(reduce.getLower(), [](Value low) { return isConstantIntValue(low, 0); }) ||
      !llvm::all_of(reduce.getOperands(), isOutside))
    return false;
  for (unsigned index = 0; index < reduce.getNumIndices(); ++index) {
    if (!isOrderedBy(reduce, index))
      continue;
    const SmallVector<BlockArgument> indices = orderedIndices(reduce, index, compute);
    ComputeOp nested = sumOver(reduce, index, compute, indices);
    if (!formRecurrence(*nested.getBlock()->getOps<ReduceOp>().begin())) {
      nested.erase();
      continue;
    }
    SmallVector<StringRef> names;
    SmallVector<Value> lower, upper;
    for (unsigned n = 0; n < reduce.getNumIndices(); ++n)
      if (n != index) {
        names.push_back(cast<StringAttr>(reduce.getIndexNames()[n]).getValue());
        lower.push_back(reduce.getLower()[n]);
        upper.push_back(reduce.getUpper()[n]);
      }
    OpBuilder builder(reduce);
    auto sum = ReduceOp::create(
        builder, reduce.getLoc(), ReduceKind::Sum, names, lower, upper,
        reduce.getResult(0).getType(), [&](OpBuilder &inner, Location loc, ValueRange numbers) {
          SmallVector<Value> at;
          for (BlockArgument own : indices) {
            const unsigned n = own.getArgNumber();
            at.push_back(own.getOwner() == compute.getBlock() ? Value(own)
                                                              : numbers[n - (n > index ? 1 : 0)]);
          }
          return LoadOp::create(inner, loc, nested->getResult(0), at, Value()).getResult();
        });
    reduce.getResult(0).replaceAllUsesWith(sum.getResult(0));
    reduce.erase();
    return true;
  }
  return false;
}
