//===- LimitedRanks.cpp - ranks that are compared with a limit ------------===//
//
// All readers of such a sum compare it with a limit that depends on no index of the bound alone:
//
//   sum[u](a[u] > a[v] ? a[u] : 0) < p        k <= sum[u](a[t, u] < a[t, v] ? 1 : 0)
//
// They stand beside the sum, or load it where it is stored. No term is negative. A term that is NaN
// makes all sums NaN from its key on, and no comparison with NaN holds. So a sum that is to be
// above a limit must have no such term: it is a count, or a sum of the keys themselves.
//
// The match declines ties that an index decides.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/keys/LimitedRanks.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/Signs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;
using arith::CmpFPredicate;
using arith::CmpIPredicate;

/// Does a comparison hold for small values of its operand `sum`, for large ones, or neither?
static std::optional<bool> holdsBelow(Operation *compare, unsigned sum) {
  bool isLess = false, isGreater = false;
  if (auto floats = dyn_cast<arith::CmpFOp>(compare)) {
    const CmpFPredicate predicate = floats.getPredicate();
    isLess = predicate == CmpFPredicate::OLT || predicate == CmpFPredicate::OLE;
    isGreater = predicate == CmpFPredicate::OGT || predicate == CmpFPredicate::OGE;
  } else if (auto integers = dyn_cast<arith::CmpIOp>(compare)) {
    const CmpIPredicate predicate = integers.getPredicate();
    isLess = predicate == CmpIPredicate::slt || predicate == CmpIPredicate::sle;
    isGreater = predicate == CmpIPredicate::sgt || predicate == CmpIPredicate::sge;
  }
  if (!isLess && !isGreater)
    return std::nullopt;
  return isLess == (sum == 0);
}

/// Is `limit`, where an element has `indices`, the same for all elements of a row?
static bool isRowsOwn(const LimitedRank &limited, Value limit, ArrayRef<Value> indices) {
  return llvm::all_of(getIterationIndices(limit), [&](BlockArgument index) {
    return llvm::any_of(limited.positions, [&](unsigned p) { return indices[p] == index; });
  });
}

/// Matches `user`, which reads `sum`, for the element of the compute op with `indices`.
static bool matchTest(LimitedRank &limited, Operation *user, Value sum, ArrayRef<Value> indices) {
  const RankedReduction &ranked = limited.ranked;
  if (user->getNumOperands() != 2 || user->getOperand(0) == user->getOperand(1))
    return false;
  const unsigned operand = user->getOperand(0) == sum ? 0 : 1;
  std::optional<bool> isBelow = holdsBelow(user, operand);
  ScalarEquality equality;
  const bool hasNoNan = ranked.isCount() || isa<IntegerType>(ranked.getType()) ||
                        (ranked.weight && equality.equal(ranked.weight, ranked.test.key));
  if (!isBelow || !(*isBelow || hasNoNan) ||
      !isRowsOwn(limited, user->getOperand(1 - operand), indices))
    return false;
  limited.tests.push_back({user, sum, *isBelow, SmallVector<Value>(indices)});
  return true;
}

/// Matches the comparisons that read the stored sum `stored`.
static bool matchLoads(LimitedRank &limited, ComputeOp compute, Value stored) {
  if (!isComputedPlainly(limited.order.bound, compute))
    return false;
  return llvm::all_of(stored.getUsers(), [&](Operation *user) {
    auto load = dyn_cast<LoadOp>(user);
    // Each row has one element of the indices, which are bare.
    if (!load || load.getTensor() != stored || load.getPad() ||
        !llvm::all_of(load.getIndices(), [](Value index) { return isa<BlockArgument>(index); }))
      return false;
    SmallVector<Value> indices(load.getIndices());
    return llvm::all_of(load->getUsers(), [&](Operation *reader) {
      return matchTest(limited, reader, load.getResult(), indices);
    });
  });
}

/// Reads how many bits the keys have.
static KeyOrder readOrder(ComputeOp compute, const RankedReduction &ranked) {
  KeyOrder order;
  order.key = ranked.test.key;
  order.bound = ranked.test.bound;
  auto wideKey = order.key.getDefiningOp<arith::ExtFOp>();
  auto wideBound = order.bound.getDefiningOp<arith::ExtFOp>();
  if (wideKey && wideBound && wideKey.getIn().getType() == wideBound.getIn().getType()) {
    order.key = wideKey.getIn();
    order.bound = wideBound.getIn();
  }
  Type type = order.key.getType();
  // The lower bits of a narrow float are 0 in f32.
  if (type.isBF16())
    order.shift = 16;
  else if (type.isF16())
    order.shift = 13;
  order.bits = 32 - order.shift;
  order.beforeAll = -(int64_t(1) << (order.bits - 1)) - 1;
  for (unsigned p = 0; p < compute.getNumIndices(); ++p) {
    ScalarEquality equality;
    equality.identify(ranked.term, compute.getIndex(p));
    if (isSameExtent(compute.getExtents()[p], ranked.numTerms) &&
        equality.equal(order.key, order.bound))
      order.boundIndex = p;
  }
  return order;
}

std::optional<LimitedRank> tk::matchLimitedRank(ComputeOp compute, const RankedReduction &ranked) {
  ReduceOp reduce = ranked.reduce;
  if (ranked.test.tie || ranked.getKind() != ReduceKind::Sum || ranked.test.key.getType().isF64() ||
      reduce.getKind(0) != ReduceKind::Sum || (ranked.weight && !isNonNegativeOrNaN(ranked.weight)))
    return std::nullopt;
  LimitedRank limited{ranked, readOrder(compute, ranked), {}, {}};
  llvm::append_range(limited.positions, ranked.batches);
  llvm::append_range(limited.positions, ranked.columns);
  SmallVector<Value> own(compute.getBlock()->getArguments());
  for (OpOperand &use : reduce.getResult(0).getUses()) {
    const bool isStored = use.getOwner() == compute.getYield();
    if (isStored ? !matchLoads(limited, compute, compute->getResult(use.getOperandNumber()))
                 : !matchTest(limited, use.getOwner(), reduce.getResult(0), own))
      return std::nullopt;
  }
  return limited.tests.empty() ? std::nullopt : std::optional(limited);
}
