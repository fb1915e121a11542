//===- EqualComputes.cpp - compute ops that compute the same --------------===//
#include "passes/analysis/EqualComputes.h"

#include "passes/analysis/ScalarExpr.h"

using namespace mlir;
using namespace tk;

ComputeOp tk::findEqual(ArrayRef<ComputeOp> statements, ComputeOp compute) {
  for (ComputeOp other : statements) {
    ScalarEquality equality;
    if (other->getBlock() != compute->getBlock() ||
        !equality.equal(other.getExtents(), compute.getExtents()))
      continue;
    for (auto [a, b] :
         llvm::zip_equal(other.getBlock()->getArguments(), compute.getBlock()->getArguments()))
      equality.identify(a, b);
    if (equality.equal(other.getYield().getValues(), compute.getYield().getValues()))
      return other;
  }
  return {};
}
