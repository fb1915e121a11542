//===- SortedRow.cpp - rows in ascending order ----------------------------===//
#include "passes/analysis/SortedRow.h"

#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

Value tk::createSortedRow(OpBuilder &at, Location loc, int64_t numKeys, Value rank,
                          llvm::function_ref<Value(OpBuilder &, Value)> keyOf) {
  Value zero = arith::ConstantIndexOp::create(at, loc, 0),
        extent = arith::ConstantIndexOp::create(at, loc, numKeys);
  Value number = arith::IndexCastOp::create(at, loc, at.getI32Type(), rank);
  auto least = ReduceOp::create(
      at, loc, ReduceKind::Min, ArrayRef<StringRef>{"j"}, ValueRange{zero}, ValueRange{extent},
      at.getI64Type(), [&](OpBuilder &in, Location, ValueRange j) -> Value {
        Value key = keyOf(in, j[0]);
        auto count = ReduceOp::create(
            in, loc, ReduceKind::Sum, ArrayRef<StringRef>{"i"}, ValueRange{zero},
            ValueRange{extent}, in.getI32Type(), [&](OpBuilder &inner, Location, ValueRange i) {
              Value isBelow = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::sle,
                                                    keyOf(inner, i[0]), key);
              return arith::ExtUIOp::create(inner, loc, inner.getI32Type(), isBelow).getResult();
            });
        Value isBehind =
            arith::CmpIOp::create(in, loc, arith::CmpIPredicate::sgt, count.getResult(0), number);
        Value none = createIdentity(in, loc, ReduceKind::Min, in.getI64Type());
        return arith::SelectOp::create(in, loc, isBehind, key, none);
      });
  return least.getResult(0);
}

/// The extent of the only index of `reduce` if its range is known and begins at 0.
static std::optional<int64_t> getExtentOfRow(ReduceOp reduce) {
  if (reduce.isOnline() || reduce.getNumIndices() != 1 ||
      getConstantIntValue(reduce.getLower()[0]) != 0)
    return std::nullopt;
  return getConstantIntValue(reduce.getUpper()[0]);
}

std::optional<SortedRow> tk::matchSortedRow(ComputeOp compute, ReduceOp reduce) {
  std::optional<int64_t> extent = getExtentOfRow(reduce);
  if (!extent || reduce.getKind(0) != ReduceKind::Min || compute.getNumIndices() == 0 ||
      getConstantIntValue(compute.getExtents().back()) != extent)
    return std::nullopt;
  auto select = reduce.getYield().getValues()[0].getDefiningOp<arith::SelectOp>();
  llvm::APInt none;
  if (!select || !select.getType().isInteger(64) ||
      !matchPattern(select.getFalseValue(), m_ConstantInt(&none)) || !none.isMaxSignedValue())
    return std::nullopt;
  auto isBehind = select.getCondition().getDefiningOp<arith::CmpIOp>();
  if (!isBehind)
    return std::nullopt;
  Value counted = isBehind.getLhs(), rank = isBehind.getRhs();
  arith::CmpIPredicate predicate = isBehind.getPredicate();
  if (predicate == arith::CmpIPredicate::slt) {
    std::swap(counted, rank);
    predicate = arith::CmpIPredicate::sgt;
  }
  auto cast = rank.getDefiningOp<arith::IndexCastOp>();
  auto count = counted.getDefiningOp<ReduceOp>();
  if (predicate != arith::CmpIPredicate::sgt || !cast || !count ||
      cast.getIn() != compute.getIndex(compute.getNumIndices() - 1) ||
      getExtentOfRow(count) != extent || count.getKind(0) != ReduceKind::Sum)
    return std::nullopt;
  auto one = count.getYield().getValues()[0].getDefiningOp<arith::ExtUIOp>();
  auto isBelow = one ? one.getIn().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  if (!isBelow || isBelow.getPredicate() != arith::CmpIPredicate::sle)
    return std::nullopt;
  ScalarEquality equality;
  equality.identify(count.getIndex(0), reduce.getIndex(0));
  if (isBelow.getRhs() != select.getTrueValue() ||
      !equality.equal(isBelow.getLhs(), select.getTrueValue()))
    return std::nullopt;
  return SortedRow{select.getTrueValue(), count, *extent};
}
