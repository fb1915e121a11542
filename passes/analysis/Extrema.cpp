//===- Extrema.cpp - extrema and their places -----------------------------===//
#include "passes/analysis/Extrema.h"

#include "passes/analysis/ScalarExpr.h"

using namespace mlir;
using namespace tk;

ReduceOp tk::placeOfExtremum(ReduceOp reduce) {
  ReduceKind kind = reduce.getKind(0);
  if (reduce.isOnline() || (kind != ReduceKind::Max && kind != ReduceKind::Min) ||
      reduce.getNumIndices() != 1 || !isa<FloatType>(reduce.getResult(0).getType()))
    return {};
  ReduceKind wanted = kind == ReduceKind::Max ? ReduceKind::ArgMax : ReduceKind::ArgMin;
  for (ReduceOp place : reduce->getBlock()->getOps<ReduceOp>()) {
    if (place.isOnline() || place.getKind(0) != wanted || !haveSameRanges(place, reduce))
      continue;
    ScalarEquality equality;
    equality.identify(reduce.getIndex(0), place.getIndex(0));
    if (equality.equal(reduce.getYield().getValues(), place.getYield().getValues()))
      return place;
  }
  return {};
}
