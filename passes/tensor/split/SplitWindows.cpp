//===- SplitWindows.cpp - windows reduced one axis after the other --------===//
//
// A pool of 10 x 10 elements adds up 100 elements for each result. Neighbouring results share most
// of them: 10 columns of 10 elements each, of which the next result has all but a few again. This
// pass reduces the axes of windows one after the other, in a statement each.
//
// 1. Find reductions over several indices, of a kind whose elements may be combined in any order.
// 2. Find an index of the reduction and one of the statement of which only one sum is read, such as
//    the place 2 h + i. All accesses, and all conditions, must be on that sum. Factors of a sum
//    that follow from the reduction's index alone are weights of this axis, as in `g[i] * g[j] *
//    x[…]`.
// 3. A new statement has the place for its index, and reduces over the other indices. The reduction
//    then combines the new statement's results over the index that was found.
// 4. Do the same with the new statement, which has one index less.
//
// The pass declines if the new statement's results take longer to store and to read than the
// elements take that are combined once instead of several times. Extrema of 16-bit numbers are
// stored in 16 bits.
//
//   %y = tk.compute ["h", "w"] {tk.reduce [max] ["i", "j"] {x[2 h + i, w + j]}}
//     =>
//   %t = tk.compute ["h", "w"] in (2 H + 1, W) {tk.reduce [max] ["j"] {x[h, w + j]}}
//   %y = tk.compute ["h", "w"] {tk.reduce [max] ["i"] {t[2 h + i, w]}}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/split/SplitWindows.h"
#include "passes/machine/limits/Shapes.h"

#include "passes/analysis/IndexGrowth.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/ScheduleEntries.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"
#include "passes/machine/OperationCost.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-split-reductions:windows";
using namespace limits::split_windows;

namespace {

/// One axis of windows: the statement's index `place`, that of the reduction at `position`, and by
/// how many places windows are apart.
struct WindowAxis {
  BlockArgument place;
  unsigned position = 0;
  int64_t stride = 0;
  SmallVector<Value> weights, others; ///< factors of a term: of this axis alone, and all others
};

class WindowSplitting {
public:
  WindowSplitting(KernelOp kernel, ComputeOp compute, ReduceOp reduce, gpu::TargetAttr target)
      : kernel(kernel), compute(compute), reduce(reduce), target(target) {}

  /// The statement that reduces the windows' other axes; null if the pass declines.
  ComputeOp run();

private:
  bool isSplittable();
  bool isWeight(Value factor, unsigned position, BlockArgument place);
  std::optional<int64_t> strideOf(BlockArgument place, BlockArgument term, ArrayRef<Value> factors);
  std::optional<WindowAxis> findAxis();
  bool pays(const WindowAxis &axis);
  Value countPlaces(OpBuilder &builder, const WindowAxis &axis);
  ComputeOp createInner(const WindowAxis &axis);
  Value createOuter(const WindowAxis &axis, ComputeOp inner);

  KernelOp kernel;
  ComputeOp compute;
  ReduceOp reduce;
  gpu::TargetAttr target;
};

} // namespace

/// May the elements of a reduction of this kind be combined in any order and grouping?
static bool isAnyOrder(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::Sum:
  case ReduceKind::Max:
  case ReduceKind::Min:
    return true;
  default:
    return false;
  }
}

/// What an extremum of 16-bit numbers is the extension of; null if `reduce` is no such.
static arith::ExtFOp narrowTermOf(ReduceOp reduce) {
  constexpr unsigned narrowBits = 16;
  auto extension = reduce.getYield().getValues()[0].getDefiningOp<arith::ExtFOp>();
  if (!extension || reduce.getKind(0) == ReduceKind::Sum ||
      extension.getIn().getType().getIntOrFloatBitWidth() != narrowBits)
    return {};
  return extension;
}

bool WindowSplitting::isSplittable() {
  if (reduce.isOnline() || reduce.getNumIndices() < 2 || !isAnyOrder(reduce.getKind(0)) ||
      reduce.getPrecision() != Precision::Default || isContraction(reduce))
    return false;
  const Type type = reduce.getResult(0).getType();
  if (!type.isF32() && !type.isF64() && !type.isInteger(32) && !type.isInteger(64))
    return false;
  for (auto [lower, upper] : llvm::zip_equal(reduce.getLower(), reduce.getUpper()))
    if (!isConstantIntValue(lower, 0) || !isKernelLevel(upper, compute))
      return false;
  return llvm::none_of(*reduce.getBlock(), [](Operation &op) { return op.getNumRegions() > 0; });
}

/// The factors of a term that a sum adds up; the term itself for other kinds.
static void findFactors(Value term, ReduceOp reduce, SmallVectorImpl<Value> &factors) {
  auto product = term.getDefiningOp<arith::MulFOp>();
  if (!product || reduce.getKind(0) != ReduceKind::Sum ||
      product->getBlock() != reduce.getBlock()) {
    factors.push_back(term);
    return;
  }
  findFactors(product.getLhs(), reduce, factors);
  findFactors(product.getRhs(), reduce, factors);
}

/// Does a factor vary with the reduction's index at `position`, and neither with its other indices
/// nor with `place`?
bool WindowSplitting::isWeight(Value factor, unsigned position, BlockArgument place) {
  if (!Dependence{ValueRange{reduce.getIndex(position)}}.on(factor) ||
      Dependence{ValueRange{place}}.on(factor))
    return false;
  for (unsigned n = 0; n < reduce.getNumIndices(); ++n)
    if (n != position && Dependence{ValueRange{reduce.getIndex(n)}}.on(factor))
      return false;
  return true;
}

/// By how much the place of a window grows with `place`, if `term` is counted from it wherever
/// either is used in what `factors` follow from.
std::optional<int64_t> WindowSplitting::strideOf(BlockArgument place, BlockArgument term,
                                                 ArrayRef<Value> factors) {
  Dependence onPlace{ValueRange{place}};
  std::optional<int64_t> stride;
  llvm::SetVector<Operation *> ops;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitBlockArguments = true;
  options.filter = [&](Operation *op) { return op->getBlock() == reduce.getBlock(); };
  for (Value factor : factors) {
    (void)getBackwardSlice(factor, &ops, options);
    if (factor.getParentBlock() != reduce.getBlock() && onPlace.on(factor))
      return std::nullopt;
  }
  for (Operation *op : ops) {
    if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op) &&
        op->getResult(0).getType().isIndex())
      continue; // of a place, which another operation uses
    for (Value operand : op->getOperands()) {
      if (!operand.getType().isIndex()) {
        if (operand.getParentBlock() != reduce.getBlock() && onPlace.on(operand))
          return std::nullopt;
        continue;
      }
      const std::optional<int64_t> ofPlace = growth(operand, place), ofTerm = growth(operand, term);
      if (ofPlace == 0 && ofTerm == 0)
        continue;
      if (!ofPlace || ofTerm != 1 || *ofPlace < 1 || (stride && stride != ofPlace))
        return std::nullopt;
      stride = ofPlace;
    }
  }
  return stride;
}

/// The outermost axis whose elements are read as windows.
std::optional<WindowAxis> WindowSplitting::findAxis() {
  SmallVector<Value> factors;
  findFactors(reduce.getYield().getValues()[0], reduce, factors);
  for (unsigned n = 0; n < reduce.getNumIndices(); ++n)
    for (BlockArgument place : compute.getBlock()->getArguments()) {
      WindowAxis axis{place, n, 0, {}, {}};
      for (Value factor : factors)
        (isWeight(factor, n, place) ? axis.weights : axis.others).push_back(factor);
      if (std::optional<int64_t> stride = strideOf(place, reduce.getIndex(n), axis.others)) {
        axis.stride = *stride;
        return axis;
      }
    }
  return std::nullopt;
}

/// Do fewer combinations save more than the inner results cost?
bool WindowSplitting::pays(const WindowAxis &axis) {
  double results = 1, terms = 1, places = 1;
  for (BlockArgument index : getIterationIndices(reduce.getResult(0))) {
    std::optional<int64_t> upper =
        getSizeFact(kernel, compute.getExtents()[index.getArgNumber()]).upper;
    if (!upper)
      return false;
    results *= static_cast<double>(std::max<int64_t>(*upper, 1));
  }
  for (Value end : reduce.getUpper()) {
    std::optional<int64_t> upper = getSizeFact(kernel, end).upper;
    if (!upper)
      return false;
    terms *= static_cast<double>(std::max<int64_t>(*upper, 1));
  }
  const auto length = static_cast<double>(
      std::max<int64_t>(*getSizeFact(kernel, reduce.getUpper()[axis.position]).upper, 1));
  const auto windows = static_cast<double>(std::max<int64_t>(
      *getSizeFact(kernel, compute.getExtents()[axis.place.getArgNumber()]).upper, 1));
  places = results / windows * ((windows - 1) * static_cast<double>(axis.stride) + length);
  const double saved = results * terms - places * terms / length - results * length;
  arith::ExtFOp narrow = narrowTermOf(reduce);
  const Type stored = narrow ? narrow.getIn().getType() : reduce.getResult(0).getType();
  const Machine machine = machineOf(target);
  return saved * instructionsOfTerm * cost::instruction >
         cost::ofScratch(machine, places * elementBytes(stored));
}

/// How many places the windows have along `axis`: none without windows.
Value WindowSplitting::countPlaces(OpBuilder &builder, const WindowAxis &axis) {
  Location loc = reduce.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  IRMapping hoisted;
  Value windows = compute.getExtents()[axis.place.getArgNumber()];
  Value length = cloneSlice(builder, reduce.getUpper()[axis.position], compute.getBlock(), hoisted);
  Value before = arith::SubIOp::create(builder, loc, windows, constant(1));
  before = arith::MulIOp::create(builder, loc, before, constant(axis.stride));
  Value places = arith::AddIOp::create(builder, loc, before, length);
  if (getSizeFact(kernel, windows).exact.value_or(0) > 0)
    return places;
  Value isAny = arith::MinSIOp::create(builder, loc, windows, constant(1));
  return arith::MulIOp::create(builder, loc, places, isAny);
}

/// The statement that reduces the other axes at each place of `axis`.
ComputeOp WindowSplitting::createInner(const WindowAxis &axis) {
  OpBuilder builder(compute);
  Location loc = reduce.getLoc();
  const SmallVector<BlockArgument> needed = getIterationIndices(reduce.getResult(0));
  SmallVector<StringRef> names, terms;
  SmallVector<Value> extents;
  for (BlockArgument index : compute.getBlock()->getArguments()) {
    if (!llvm::is_contained(needed, index))
      continue;
    const unsigned p = index.getArgNumber();
    names.push_back(cast<StringAttr>(compute.getIndexNames()[p]).getValue());
    extents.push_back(index == axis.place ? countPlaces(builder, axis) : compute.getExtents()[p]);
  }
  for (Attribute name : reduce.getIndexNames())
    terms.push_back(cast<StringAttr>(name).getValue());
  terms.erase(terms.begin() + axis.position);
  arith::ExtFOp narrow = narrowTermOf(reduce);
  const Type type = reduce.getResult(0).getType();
  const Type stored = narrow ? narrow.getIn().getType() : type;
  const std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + ".windows").str();
  auto body = [&](OpBuilder &inner, Location, ValueRange own) {
    IRMapping mapping;
    Value place, zero = arith::ConstantIndexOp::create(inner, loc, 0);
    unsigned next = 0;
    for (BlockArgument index : compute.getBlock()->getArguments()) {
      if (!llvm::is_contained(needed, index))
        continue;
      mapping.map(index, index == axis.place ? zero : own[next]);
      if (index == axis.place)
        place = own[next];
      ++next;
    }
    SmallVector<Value> lower, upper;
    for (unsigned n = 0; n < reduce.getNumIndices(); ++n)
      if (n != axis.position) {
        lower.push_back(zero);
        upper.push_back(cloneFrom(inner, reduce.getUpper()[n], compute, mapping));
      }
    auto part = ReduceOp::create(
        inner, loc, reduce.getKind(0), terms, lower, upper, type,
        [&](OpBuilder &at, Location, ValueRange indices) -> Value {
          for (unsigned n = 0, i = 0; n < reduce.getNumIndices(); ++n)
            mapping.map(reduce.getIndex(n), n == axis.position ? place : indices[i++]);
          Value term;
          for (Value factor : axis.others) {
            Value copy = cloneFrom(at, factor, compute, mapping);
            term = term ? arith::MulFOp::create(at, loc, term, copy).getResult() : copy;
          }
          return term;
        });
    Value result = part.getResult(0);
    if (narrow)
      result = arith::TruncFOp::create(inner, loc, stored, result);
    YieldOp::create(inner, loc, result);
  };
  return ComputeOp::create(builder, loc, names, extents, ArrayRef<Type>{stored},
                           ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{}, body);
}

/// What the inner results come to along `axis`, in the place of the reduction.
Value WindowSplitting::createOuter(const WindowAxis &axis, ComputeOp inner) {
  OpBuilder builder(reduce);
  Location loc = reduce.getLoc();
  const SmallVector<BlockArgument> needed = getIterationIndices(reduce.getResult(0));
  const Type type = reduce.getResult(0).getType();
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  StringRef name = cast<StringAttr>(reduce.getIndexNames()[axis.position]).getValue();
  auto combined =
      ReduceOp::create(builder, loc, reduce.getKind(0), ArrayRef<StringRef>{name}, ValueRange{zero},
                       ValueRange{reduce.getUpper()[axis.position]}, type,
                       [&](OpBuilder &at, Location, ValueRange indices) -> Value {
                         SmallVector<Value> own;
                         for (BlockArgument index : compute.getBlock()->getArguments()) {
                           if (!llvm::is_contained(needed, index))
                             continue;
                           if (index != axis.place) {
                             own.push_back(index);
                             continue;
                           }
                           Value stride = arith::ConstantIndexOp::create(at, loc, axis.stride);
                           Value first =
                               axis.stride == 1
                                   ? Value(index)
                                   : arith::MulIOp::create(at, loc, index, stride).getResult();
                           own.push_back(arith::AddIOp::create(at, loc, first, indices.front()));
                         }
                         Value element = LoadOp::create(at, loc, inner->getResult(0), own, Value());
                         if (element.getType() != type)
                           element = arith::ExtFOp::create(at, loc, type, element);
                         IRMapping mapping;
                         mapping.map(reduce.getIndex(axis.position), indices.front());
                         for (Value weight : axis.weights) {
                           Value copy = cloneSlice(at, weight, reduce.getBlock(), mapping);
                           element = arith::MulFOp::create(at, loc, copy, element);
                         }
                         return element;
                       });
  return combined.getResult(0);
}

ComputeOp WindowSplitting::run() {
  std::optional<WindowAxis> axis = isSplittable() ? findAxis() : std::nullopt;
  if (!axis || !pays(*axis))
    return {};
  note(reduce, passName, Verdict::Derived,
       "the " + describe(reduce) + " reduces the axes of its windows one after the other");
  ComputeOp inner = createInner(*axis);
  reduce.getResult(0).replaceAllUsesWith(createOuter(*axis, inner));
  reduce.erase();
  return inner;
}

unsigned tk::splitWindows(KernelOp kernel) {
  auto target =
      kernel->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  if (!target || findScheduleBlock(kernel))
    return 0;
  unsigned split = 0;
  SmallVector<ComputeOp> work(kernel.getBody().front().getOps<ComputeOp>());
  while (!work.empty()) {
    ComputeOp compute = work.pop_back_val();
    for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>()))
      if (ComputeOp inner = WindowSplitting(kernel, compute, reduce, target).run()) {
        work.push_back(inner);
        ++split;
      }
  }
  return split;
}
