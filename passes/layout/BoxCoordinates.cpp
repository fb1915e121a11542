//===- BoxCoordinates.cpp - where a TMA box lies --------------------------===//
//
// Builds the coordinates of a box that BulkBox.cpp has read: sums of its starts, places of windows
// taken apart outside the loops that do not change them, and the window of the tensor map behind
// which rows end that the launch does not know.
//
//===----------------------------------------------------------------------===//
#include "passes/layout/BulkBox.h"
#include "passes/machine/Machine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

std::optional<unsigned> BulkBox::rowsAxis() const {
  if (gatheredRows)
    return std::nullopt;
  for (unsigned axis = 0; axis + 1 < box.size(); ++axis)
    if (box[axis] == rows())
      return axis;
  return std::nullopt;
}

std::optional<unsigned> BulkBox::copiedRowsAxis() const {
  if (!gatheredRows)
    return rowsAxis();
  for (unsigned axis = 0; axis + 1 < box.size(); ++axis)
    if (gathered[axis] && box[axis] == gatheredRows)
      return axis;
  return std::nullopt;
}

int64_t BulkBox::rows() const {
  SharedType type = shared;
  return type.getShape()[type.getAxisOrder()[1]];
}

int64_t BulkBox::rowsOfGroup() const {
  int64_t parts = shared.getInterleave();
  return parts > 1 ? 2 * parts : 1;
}

bool tk::endAtWindow(BulkBox &box) {
  if (box.gatheredRows)
    return box.end != nullptr;
  std::optional<unsigned> axis = box.rowsAxis();
  if (!axis || box.places || !box.axesOfTensor.empty() || *axis + 1 >= box.box.size() ||
      box.box.size() >= mostAxesOfTensorMap || box.rowsOfGroup() > 1)
    return false;
  if (box.end)
    return true;
  box.end = std::exchange(box.limits[*axis], Value());
  box.endBase = box.coordinates[*axis];
  return box.end != nullptr;
}

/// How many of a copy's rows lie before their end, of which the first has the number that `base`
/// adds up to.
static Value countRows(OpBuilder &builder, Location loc, const BulkBox &box, ValueRange base) {
  Value count = box.end;
  for (Value summand : base)
    count = arith::SubIOp::create(builder, loc, count, summand);
  Value none = arith::ConstantIndexOp::create(builder, loc, 0);
  Value all = arith::ConstantIndexOp::create(builder, loc, box.copiedRows());
  count = arith::MaxSIOp::create(builder, loc, count, none);
  return arith::MinSIOp::create(builder, loc, count, all);
}

/// The window is entered so far before its end as there are rows.
Value tk::endRows(OpBuilder &builder, Location loc, const BulkBox &box, ValueRange base,
                  Value isInside, SmallVectorImpl<Value> &coordinates) {
  Value count = countRows(builder, loc, box, base), &row = coordinates[*box.copiedRowsAxis()];
  Value none = arith::ConstantIndexOp::create(builder, loc, 0);
  Value rows = arith::ConstantIndexOp::create(builder, loc, box.copiedRows());
  Value hasSome = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, count, none);
  Value lacksSome = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, count, rows);
  Value isPart = arith::AndIOp::create(builder, loc, hasSome, lacksSome);
  if (isInside)
    isPart = arith::AndIOp::create(builder, loc, isPart, isInside);
  Value before = arith::SelectOp::create(builder, loc, isPart, count, none);
  row = arith::AddIOp::create(builder, loc, row, before);
  Value first = arith::SubIOp::create(builder, loc, rows, count);
  coordinates.insert(std::prev(coordinates.end()), first);
  return isPart;
}

/// The loops around `op` that do not change `values`, the outermost one; `op` if there are none.
static Operation *outsideLoops(Operation *op, ValueRange values) {
  for (auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
       loop &&
       llvm::all_of(values, [&](Value value) { return loop.isDefinedOutsideOfLoop(value); });
       loop = dyn_cast<scf::ForOp>(op->getParentOp()))
    op = loop;
  return op;
}

/// Where the first row's place is. It is taken apart where a tile's rows begin, not for each slice.
static SmallVector<Value> buildPlace(OpBuilder &builder, Location loc, const BulkBox &box) {
  OpBuilder outside(outsideLoops(&*builder.getInsertionPoint(), box.places->starts));
  SmallVector<Value> at = box.places->buildFirst(outside, loc);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(outside, loc, value);
  };
  for (auto [value, digit, lower] :
       llvm::zip_equal(llvm::drop_begin(at), llvm::drop_begin(box.places->digits), box.lower)) {
    if (digit.step != 1)
      value = arith::MulIOp::create(outside, loc, value, constant(digit.step));
    if (lower != 0)
      value = arith::AddIOp::create(outside, loc, value, constant(lower));
  }
  Value column;
  for (Value summand : box.coordinates.back())
    column = column ? arith::AddIOp::create(builder, loc, column, summand).getResult() : summand;
  at.push_back(column ? column : arith::ConstantIndexOp::create(builder, loc, 0).getResult());
  return at;
}

SmallVector<Value> tk::buildDistances(OpBuilder &builder, Location loc, const BulkBox &box) {
  SmallVector<Value> distances;
  if (box.places)
    for (auto [digit, lower] : llvm::zip_equal(llvm::drop_begin(box.places->digits), box.lower))
      distances.push_back(digit.buildDistance(builder, loc, lower));
  return distances;
}

SmallVector<Value> tk::buildCoordinates(OpBuilder &builder, Location loc, const BulkBox &box) {
  if (box.places)
    return buildPlace(builder, loc, box);
  SmallVector<Value> coordinates;
  int64_t group = box.rowsOfGroup();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  for (auto [axis, summands] : llvm::enumerate(box.coordinates)) {
    Value sum;
    for (Value summand : summands)
      sum = sum ? arith::AddIOp::create(builder, loc, sum, summand).getResult() : summand;
    if (sum && group > 1 && axis == *box.rowsAxis())
      sum = arith::DivSIOp::create(builder, loc, sum, constant(group));
    coordinates.push_back(sum ? sum : constant(0));
  }
  if (group > 1)
    coordinates.insert(std::prev(coordinates.end()), constant(0));
  return coordinates;
}
