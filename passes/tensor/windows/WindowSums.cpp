//===- WindowSums.cpp - matching convolutions -----------------------------===//
//
// A convolution multiplies an element of one tensor, the weights, by an element of another one, the
// input. At least one axis of the input is read at `s * p + d * r + c`. Here p is an index of the
// compute op, r is an index of the sum, s and d are constants, and c is a number of the launch.
// Each such index stands in one axis of the input. All other axes of both tensors are read at any
// expressions of the other indices.
//
// The number of taps may be a number of the launch. It may also decrease with indices of the
// compute op at which the input is not read: the phases of a transposed convolution
// (SplitResidues.cpp).
//
// If windows do not overlap (s is at least the number of taps), the taps of an axis count as
// channels, because each element is in one window only.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/windows/WindowSums.h"

#include "passes/analysis/IndexGrowth.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/TileFacts.h"
#include "passes/plan/WindowPlaces.h"
#include "passes/tensor/split/SignificandParts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

int64_t WindowSum::countParts() const { return isInParts() ? tk::countParts : 1; }
int64_t WindowSum::countPairs() const { return isInParts() ? tk::countPairs : 1; }

bool WindowSum::endsWithProduct() const {
  ComputeOp statement = compute;
  ReduceOp sum = reduce;
  if (isInParts() || statement.getNumResults() != 1 || !phases.empty() ||
      statement.getIndicesOf(0).size() != statement.getNumIndices())
    return false;
  llvm::SmallDenseSet<Value> own(rows.begin(), rows.end());
  own.insert_range(batches);
  SmallVector<Value> work = {statement.getYield().getValues()[0]};
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (value == sum.getResult(0) || own.contains(value) || isKernelLevel(value, statement))
      continue;
    if (!op || op->getNumRegions() != 0)
      return false;
    llvm::append_range(work, op->getOperands());
  }
  return true;
}

bool WindowSum::isResult() const {
  ComputeOp statement = compute;
  Value value = statement.getYield().getValues()[0];
  if (auto rounded = value.getDefiningOp<arith::TruncFOp>())
    value = rounded.getIn();
  return statement.getNumResults() == 1 && value == ReduceOp(reduce).getResult(0);
}

const WindowAxis *WindowSum::axisOf(BlockArgument index) const {
  const auto *found = llvm::find_if(
      axes, [&](const WindowAxis &axis) { return axis.place == index || axis.tap == index; });
  return found == axes.end() ? nullptr : found;
}

Value WindowSum::extentOf(BlockArgument index) const {
  ComputeOp statement = compute;
  ReduceOp sum = reduce;
  return index.getOwner() == sum.getBlock() ? sum.getUpper()[index.getArgNumber()]
                                            : statement.getExtents()[index.getArgNumber()];
}

void WindowSum::unroll(unsigned n) {
  channels.push_back(axes[n].tap);
  llvm::sort(channels,
             [](BlockArgument a, BlockArgument b) { return a.getArgNumber() < b.getArgNumber(); });
  axes.erase(axes.begin() + n);
}

namespace {

/// Reads the axes of one load, and puts the indices in order.
class WindowReader {
public:
  WindowReader(WindowSum &sum) : sum(sum) {}
  bool read();

private:
  void readAxis(unsigned axis);
  bool areIndicesOfSum();
  bool readPhases(unsigned index);
  void sortIndices();

  WindowSum &sum;
};

} // namespace

/// Reads the axis if it is one of windows.
void WindowReader::readAxis(unsigned axis) {
  Value index = sum.window.getIndices()[axis];
  BlockArgument place, tap;
  SmallVector<BlockArgument> own = getIterationIndices(index);
  for (BlockArgument of : own)
    (of.getOwner() == sum.compute.getBlock() ? place : tap) = of;
  if (own.size() != 2 || !place || !tap || tap.getOwner() != sum.reduce.getBlock())
    return;
  std::optional<int64_t> stride = growth(index, place), dilation = growth(index, tap);
  if (stride && dilation && *stride >= 1 && *dilation != 0)
    sum.axes.push_back({axis, place, tap, *stride, std::abs(*dilation), *dilation < 0});
}

/// Does the end of an index' range, that of a tap, get less with indices of the statement alone?
bool WindowReader::readPhases(unsigned index) {
  Value end = sum.reduce.getUpper()[index];
  auto quotient = end.getDefiningOp<FloorDivOp>();
  if (quotient && getConstantIndex(quotient.getRhs()).value_or(0) <= 0)
    return false;
  for (BlockArgument phase : getIterationIndices(end)) {
    std::optional<int64_t> step = growth(quotient ? quotient.getLhs() : end, phase);
    if (phase.getOwner() != sum.compute.getBlock() || !step || *step > 0 ||
        Dependence(ValueRange{phase}).on(sum.window.getResult()))
      return false;
    if (!llvm::is_contained(sum.phases, phase))
      sum.phases.push_back(phase);
  }
  return sum.axisOf(sum.reduce.getIndex(index)) != nullptr;
}

/// Do all indices of the sum run from 0 to numbers of the launch, or to what phases make of these,
/// and stand in both factors?
bool WindowReader::areIndicesOfSum() {
  for (unsigned n = 0; n < sum.reduce.getNumIndices(); ++n) {
    Dependence on{ValueRange{sum.reduce.getIndex(n)}};
    if (getConstantIndex(sum.reduce.getLower()[n]) != 0 ||
        !(isKernelLevel(sum.reduce.getUpper()[n], sum.compute) || readPhases(n)) ||
        !on.on(sum.window.getResult()) || !on.on(sum.weights.getResult()))
      return false;
  }
  return true;
}

void WindowReader::sortIndices() {
  for (BlockArgument index : sum.compute.getBlock()->getArguments()) {
    Dependence on{ValueRange{index}};
    if (llvm::is_contained(sum.phases, index))
      continue;
    const bool ofWindow = on.on(sum.window.getResult()), ofWeights = on.on(sum.weights.getResult());
    if (ofWindow || ofWeights)
      (ofWindow && ofWeights ? sum.batches : ofWindow ? sum.pixels : sum.rows).push_back(index);
  }
  for (BlockArgument index : sum.reduce.getBlock()->getArguments())
    if (!sum.axisOf(index))
      sum.channels.push_back(index);
}

bool WindowReader::read() {
  for (unsigned axis = 0; axis < sum.window.getIndices().size(); ++axis)
    readAxis(axis);
  // An index of a window stands nowhere else in the tensor's indices; nor does a place in weights.
  llvm::erase_if(sum.axes, [&](const WindowAxis &window) {
    Dependence on(ValueRange{window.place, window.tap}), onPlace(ValueRange{window.place});
    for (auto [axis, index] : llvm::enumerate(sum.window.getIndices()))
      if (axis != window.axis && on.on(index))
        return true;
    return onPlace.on(sum.weights.getResult());
  });
  if (sum.axes.empty() || !areIndicesOfSum())
    return false;
  llvm::sort(sum.axes, [](const WindowAxis &a, const WindowAxis &b) {
    return a.place.getArgNumber() < b.place.getArgNumber();
  });
  sortIndices();
  for (unsigned n = sum.axes.size(); n-- > 0;) {
    std::optional<int64_t> taps = getSizeFact(sum.kernel, sum.extentOf(sum.axes[n].tap)).upper;
    if (taps && *taps > 1 && sum.axes[n].dilation == 1 && sum.axes[n].stride >= *taps)
      sum.unroll(n);
  }
  llvm::sort(sum.phases,
             [](BlockArgument a, BlockArgument b) { return a.getArgNumber() < b.getArgNumber(); });
  return sum.batches.size() + (sum.phases.empty() ? 0 : 1) <= 1 && !sum.rows.empty() &&
         !sum.pixels.empty();
}

/// Does the load's last axis have whole vectors of neighbours along one of `indices`?
static bool hasVectorsAlong(const WindowSum &sum, LoadOp load, ArrayRef<BlockArgument> indices) {
  auto last = dyn_cast<BlockArgument>(load.getIndices().back());
  return last && llvm::is_contained(indices, last) &&
         getSizeFact(sum.kernel, getExtents(sum.kernel, load.getTensor()).back()).divisor %
                 halvesOfVector ==
             0;
}

bool tk::isZeroOutside(LoadOp load) {
  return !load.getPad() || matchPattern(load.getPad(), m_AnyZeroFloat());
}

bool tk::isCopiedAsItLies(const WindowSum &sum) {
  ComputeOp compute = sum.compute;
  if (!(sum.element.isF16() || sum.element.isBF16()) || !sum.batches.empty() ||
      !sum.phases.empty() || sum.rows.size() != 1 || compute.getNumResults() != 1)
    return false;
  SmallVector<Value> counted(sum.pixels.begin(), sum.pixels.end());
  for (auto [n, index] : llvm::enumerate(sum.pixels))
    if (index.getArgNumber() != sum.pixels.front().getArgNumber() + n)
      return false;
  SmallVector<BlockArgument> rowsAndChannels(sum.channels);
  llvm::append_range(rowsAndChannels, sum.rows);
  return hasVectorsAlong(sum, sum.window, sum.channels) &&
         hasVectorsAlong(sum, sum.weights, rowsAndChannels) &&
         areWindowsCopied(sum.kernel, sum.window, counted);
}

std::optional<WindowSum> tk::readWindowSum(KernelOp kernel, ComputeOp compute, ReduceOp reduce) {
  if (reduce->getBlock() != compute.getBlock() || reduce.isOnline() ||
      reduce.getKind(0) != ReduceKind::Sum || reduce.getPrecision() == Precision::Exact ||
      reduce.getPrecision() == Precision::Blocked || !isMatrixProduct(reduce))
    return std::nullopt;
  auto product = reduce.getYield().getValues()[0].getDefiningOp<arith::MulFOp>();
  if (!product || !product.getType().isF32())
    return std::nullopt;
  LoadOp factors[2];
  for (auto [factor, operand] : llvm::zip_equal(factors, product->getOperands())) {
    factor = withoutExtension(operand).getDefiningOp<LoadOp>();
    if (!factor || factor->getBlock() != reduce.getBlock())
      return std::nullopt;
  }
  Type element = factors[0].getType();
  if (element != factors[1].getType() || !(element.isF32() || element.isF16() || element.isBF16()))
    return std::nullopt;
  if (element.isF32() && reduce.getPrecision() == Precision::Fast)
    return std::nullopt;
  for (unsigned side : {0, 1}) {
    WindowSum sum{kernel, compute, reduce, factors[side], factors[1 - side], element, {}, {}, {},
                  {},     {},      {}};
    if (WindowReader(sum).read())
      return sum;
  }
  return std::nullopt;
}
