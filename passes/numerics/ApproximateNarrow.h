//===- ApproximateNarrow.h - functions whose results are rounded -*- C++ -*-===//
#ifndef TK_PASSES_NUMERICS_APPROXIMATENARROW_H
#define TK_PASSES_NUMERICS_APPROXIMATENARROW_H

#include "dialects/tk/TkDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace tk {

/// Marks (`approx`) the f32 quotients in `compute` that may have an error of 2 ulp, and the error
/// functions that may have an absolute one of 2^-22, as their uses are rounded to 16 bits. Products
/// that are rounded to 8 bits get shares of the normal distribution for error functions. Products
/// of integers of 8 bits that are factors in bf16 may have an error of 2^-14.
void markNarrowFunctions(ComputeOp compute);

/// See ApproximateLogistic.cpp. To be called once quotients are marked.
void approximateLogistics(ComputeOp compute);

/// Is `value` used, and each use a rounding to 16 bits or fewer, or arithmetic or a choice that is
/// narrow?
bool isNarrow(mlir::Value value);

/// Is `value` rounded to at most so many significant bits wherever it is used, through products
/// only?
bool isRoundedThroughProducts(mlir::Value value, unsigned mostBits);

/// A value as a product with a constant, which is 1 where there is none.
std::pair<mlir::Value, double> splitConstant(mlir::Value value);

/// `value` times a constant: itself where that is as near 1 as roundings of f32 leave it.
mlir::Value multiplyBy(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                       double factor);

/// The function of kind `Op` that `value` is 1 more than, if nothing else is done with either.
template <class Op> Op matchOnePlus(mlir::Value value) {
  auto sum = value.getDefiningOp<mlir::arith::AddFOp>();
  if (!sum || !value.hasOneUse())
    return {};
  for (unsigned side : {0u, 1u})
    if (auto function = sum->getOperand(side).getDefiningOp<Op>())
      return function->hasOneUse() && matchPattern(sum->getOperand(1 - side), mlir::m_OneFloat())
                 ? function
                 : Op();
  return {};
}

/// Of a product with 1 + f(x), f being of kind `Op`, that function and the other factor.
template <class Op> std::pair<Op, mlir::Value> matchFactorOnePlus(mlir::arith::MulFOp product) {
  if (auto function = matchOnePlus<Op>(product.getRhs()))
    return {function, product.getLhs()};
  return {matchOnePlus<Op>(product.getLhs()), product.getRhs()};
}

} // namespace tk

#endif // TK_PASSES_NUMERICS_APPROXIMATENARROW_H
