//===- CopyPairs.cpp - two computations of one named value ----------------===//
#include "passes/analysis/CopyPairs.h"

#include "dialects/tk/TkDialect.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/ScanPosition.h"
#include "passes/analysis/ScheduleEntries.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace tk {

/// Do the copies, which begin as one expression, read a tensor at different constant places? Then
/// they are different elements of the named tensor. `seen` bounds the search.
static bool readDifferentPlaces(Value a, Value b, llvm::DenseSet<std::pair<Value, Value>> &seen) {
  if (a == b || !seen.insert({a, b}).second)
    return false;
  Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
  if (!x || !y || x->getName() != y->getName() || x->getNumOperands() != y->getNumOperands() ||
      x->getNumRegions() != y->getNumRegions())
    return false;
  if (auto load = dyn_cast<LoadOp>(x)) {
    auto other = cast<LoadOp>(y);
    if (load.getTensor() != other.getTensor())
      return false;
    for (auto [p, q] : llvm::zip_equal(load.getIndices(), other.getIndices())) {
      std::optional<int64_t> first = getConstantIntValue(p), second = getConstantIntValue(q);
      if (first && second && *first != *second)
        return true;
    }
  }
  for (auto [p, q] : llvm::zip_equal(x->getOperands(), y->getOperands()))
    if (readDifferentPlaces(p, q, seen))
      return true;
  for (auto [p, q] : llvm::zip_equal(x->getRegions(), y->getRegions())) {
    if (!p.hasOneBlock() || !q.hasOneBlock())
      continue;
    ValueRange terms = p.front().getTerminator()->getOperands(),
               others = q.front().getTerminator()->getOperands();
    for (auto [term, other] : llvm::zip(terms, others))
      if (readDifferentPlaces(term, other, seen))
        return true;
  }
  return false;
}

bool areApart(OpResult a, OpResult b) {
  llvm::DenseSet<std::pair<Value, Value>> seen;
  return readDifferentPlaces(a, b, seen);
}

static bool haveSameNames(ReduceOp a, ReduceOp b) { return a.getIndexNames() == b.getIndexNames(); }

/// The operation around the scans that `op` is the innermost of. The number of each scan's term
/// counts as the index of the statement that the scan is taken at.
static Operation *leaveScans(Operation *op, ScalarEquality &equality) {
  auto compute = op->getParentOfType<ComputeOp>();
  for (auto scan = dyn_cast<ScanOp>(op); scan; scan = dyn_cast<ScanOp>(op)) {
    if (!getScanPosition(scan, compute))
      return op;
    equality.identify(scan.getBlock()->getArgument(0), scan.getPosition());
    equality.identify(scan.getPosition(), scan.getBlock()->getArgument(0));
    op = scan->getParentOp();
  }
  return op;
}

bool areAlike(OpResult a, OpResult b) {
  ScalarEquality equality;
  Operation *x = a.getOwner()->getParentOp(), *y = b.getOwner()->getParentOp();
  if (x == y)
    return false; // equal ones in one place would be one
  x = leaveScans(x, equality);
  y = leaveScans(y, equality);
  const bool isScheduled =
      static_cast<bool>(findScheduleBlock(a.getOwner()->getParentOfType<KernelOp>()));
  for (; x != y; x = x->getParentOp(), y = y->getParentOp()) {
    auto first = dyn_cast<ReduceOp>(x), second = dyn_cast<ReduceOp>(y);
    if (!first || !second || first.getNumIndices() != second.getNumIndices() ||
        !haveSameRanges(first, second) || (isScheduled && !haveSameNames(first, second)))
      return false;
    for (unsigned n = 0; n < first.getNumIndices(); ++n)
      equality.identify(first.getIndex(n), second.getIndex(n));
  }
  return equality.equal(Value(a), Value(b));
}

} // namespace tk
