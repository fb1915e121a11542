//===- CountedBox.cpp - boxes of rows that are counted through ------------===//
//
// Of a tile of two axes the columns run along the tensor's last axis, and along the rows several
// indices are digits of one count (CountedRows.h).
//
// 1. Where these axes are contiguous in memory, they are one axis of the box, with the count as its
//    index.
// 2. Else the rows of a load are places of windows, if they are counted through along all axes but
//    the last: the copy counts through them itself. What is added to multiples of a digit are the
//    numbers of the window's elements, of which the range must be known.
//
// Masks may compare the count with the number of all rows, and indices with the ends of their axes.
// A load's outermost index may have a mask of its own: rows behind the last one read as zero.
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/layout/BulkBox.h"
#include "passes/layout/MemoryAccess.h"
#include "passes/layout/RunIndices.h"
#include "passes/plan/WindowPlaces.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

namespace {

class CountedBoxReader {
public:
  CountedBoxReader(const MemoryAccess &access, bool isLoad, BulkBox &box, std::string &why)
      : access(access), isLoad(isLoad), box(box), why(why) {}
  bool read();

private:
  bool decline(const Twine &reason) {
    why = reason.str();
    return false;
  }
  bool readDistances();
  void addAxes();
  bool readMask(Value mask, ArrayRef<int64_t> axes);
  std::optional<unsigned> digitOf(Value index) const;
  bool alwaysHolds(arith::CmpIPredicate predicate, unsigned digit, Value limit) const;
  bool isCount(Value index) const;
  bool isForWarpgroups() const;

  const MemoryAccess &access;
  bool isLoad;
  BulkBox &box;
  std::string &why;
  CountedRows rows;
  int64_t rowsAxis = 0;
  bool isOne = false; ///< the counted axes are one of the box
};

} // namespace

bool CountedBoxReader::isCount(Value index) const {
  return index == rows.count || sameRun(index, rows.count);
}

/// Finds the range of what is added to each digit's multiples, but the first one's.
bool CountedBoxReader::readDistances() {
  const unsigned rank = access.indices.size();
  if (rows.first != 0 || rows.end() + 1 != rank || mostCornerOfPlaces(rank) == 0 ||
      !rows.digits.front().isPlain())
    return decline("windows are not counted through along all axes but the last one");
  for (CountedDigit &digit : llvm::drop_begin(rows.digits)) {
    int64_t least = digit.number, most = digit.number;
    for (auto [scalar, factor] : digit.scalars) {
      std::optional<ScalarRange> range = rangeOfScalar(scalar);
      if (!range)
        return decline("it is not known how far a window reaches");
      least += std::min(factor * range->least, factor * range->most);
      most += std::max(factor * range->least, factor * range->most);
    }
    if (digit.step > mostStepOfPlaces || most - least > mostDistanceOfPlaces(rank))
      return decline("a window reaches farther than bulk copies do");
    box.lower.push_back(least);
  }
  return true;
}

/// Describes the box's axes. Along those of windows copies count rows at the innermost one.
void CountedBoxReader::addAxes() {
  SmallVector<Value> columns;
  isRun(access.indices.back(), columns, /*fromConstants=*/true);
  for (unsigned d = 0; d < access.indices.size(); ++d) {
    const bool isCounted = d >= rows.first && d < rows.end(), isLast = d + 1 == rows.end();
    if (isOne && isCounted && !isLast)
      continue;
    box.strides.push_back(access.strides[d]);
    box.axesOfTensor.push_back(isOne && isCounted ? rows.digits.size() : 1);
    box.box.push_back(isCounted && isLast ? access.tile.getDimSize(rowsAxis) : 1);
    SmallVector<Value> &summands = box.coordinates.emplace_back();
    if (d + 1 == access.indices.size())
      summands = columns;
    else if (!isCounted)
      summands = {access.indices[d]};
    else if (isOne)
      summands = rows.starts;
  }
  box.limits.assign(box.box.size(), {});
  box.box.back() = access.tile.getDimSize(1 - rowsAxis);
  if (!isOne) {
    box.axesOfTensor.clear();
    box.places = rows;
  }
}

/// Was the kernel planned for products of warpgroups? Others are planned without bulk copies of
/// rows whose outermost index has a mask.
bool CountedBoxReader::isForWarpgroups() const {
  Value count = rows.count;
  auto function = count.getParentRegion()->getParentOfType<FuncOp>();
  return function && gpu::getPlan(function).unit == gpu::PlanUnit::Wgmma;
}

/// The digit that `index` is, without anything added to it.
std::optional<unsigned> CountedBoxReader::digitOf(Value index) const {
  for (unsigned d = rows.first; d < rows.end(); ++d)
    if (access.indices[d] == index && rows.digits[d - rows.first].isPlain())
      return d - rows.first;
  return std::nullopt;
}

/// A digit but the outermost one is from 0 to its extent. No copy begins at a count below 0 for
/// elements of a tensor.
bool CountedBoxReader::alwaysHolds(arith::CmpIPredicate predicate, unsigned digit,
                                   Value limit) const {
  if (predicate == arith::CmpIPredicate::sge)
    return constantIndex(limit) == 0;
  if (predicate != arith::CmpIPredicate::slt || digit == 0)
    return false;
  const CountedExtent &extent = rows.digits[digit].extent;
  if (std::optional<int64_t> number = constantIndex(limit))
    return extent.number == number;
  return splatSource(limit) == extent.value;
}

bool CountedBoxReader::readMask(Value mask, ArrayRef<int64_t> axes) {
  auto compare = mask.getDefiningOp<arith::CmpIOp>();
  if (!compare || axes.size() > 1)
    return decline("a mask is not a bound of one index");
  const bool isBelow = compare.getPredicate() == arith::CmpIPredicate::slt;
  Value index = compare.getLhs(), limit = splatSource(compare.getRhs());
  if (!limit && constantIndex(compare.getRhs()))
    limit = compare.getRhs();
  std::optional<unsigned> digit = isLoad && isForWarpgroups() ? digitOf(index) : std::nullopt;
  if (digit && alwaysHolds(compare.getPredicate(), *digit, compare.getRhs()))
    return true;
  if (digit == 0U && isOne && isBelow && limit) {
    if (box.firstLimit && box.firstLimit != limit)
      return decline("the outermost index has two upper bounds");
    box.firstLimit = limit;
    return true;
  }
  // Of the box's axes the one that the mask ends.
  int64_t axis = -1;
  if (!axes.empty() && axes[0] != rowsAxis) {
    if (sameRun(index, access.indices.back()))
      axis = static_cast<int64_t>(box.box.size()) - 1;
  } else if (isCount(index) && isBelow && limit) {
    Value &end = isOne ? box.limits[rows.first] : box.total;
    if (end && end != limit)
      return decline("a count has two upper bounds");
    end = limit;
    return true;
  } else if (!isOne) {
    for (unsigned d = isForWarpgroups() ? 0 : 1; d < rows.end(); ++d)
      if (access.indices[d] == index)
        axis = d;
  }
  if (axis < 0)
    return decline("a mask is not a bound of one of the indices");
  if (compare.getPredicate() == arith::CmpIPredicate::sge && constantIndex(compare.getRhs()) == 0)
    return !isOne || decline("an index may begin below 0");
  if (!isBelow || !limit || (box.limits[axis] && box.limits[axis] != limit))
    return decline("a mask is not an upper bound that is the same for all");
  box.limits[axis] = limit;
  return true;
}

bool CountedBoxReader::read() {
  const size_t rank = access.indices.size();
  SmallVector<Value> columns;
  if (access.tile.getRank() != 2 || rank < 3 || access.indexAxes(rank - 1).size() != 1 ||
      !isRun(access.indices.back(), columns, /*fromConstants=*/true))
    return false;
  rowsAxis = 1 - access.indexAxes(rank - 1)[0];
  std::optional<CountedRows> counted = readCountedRows(access, rowsAxis);
  if (!counted)
    return false;
  rows = *counted;
  for (unsigned d = 0; d + 1 < rank; ++d)
    if ((d < rows.first || d >= rows.end()) && !access.indexAxes(d).empty())
      return false;
  isOne = rows.areContiguous(access.strides);
  if (!isOne && !isLoad)
    return decline("rows that are counted through are not contiguous");
  if (!isOne && !readDistances())
    return false;
  addAxes();
  for (auto [m, mask] : llvm::enumerate(access.masks))
    if (!matchPattern(mask, m_One()) && !readMask(mask, access.maskAxes(m)))
      return false;
  return true;
}

bool tk::readCountedBox(const MemoryAccess &access, bool isLoad, BulkBox &box, std::string &why) {
  return CountedBoxReader(access, isLoad, box, why).read();
}
