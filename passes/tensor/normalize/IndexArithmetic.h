//===- IndexArithmetic.h - index arithmetic that folds ----------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_NORMALIZE_INDEXARITHMETIC_H
#define TK_PASSES_TENSOR_NORMALIZE_INDEXARITHMETIC_H

#include "dialects/tk/TkDialect.h"
#include "passes/analysis/SizeFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tk {

/// Index arithmetic that folds constants.
struct Arithmetic {
  mlir::OpBuilder &builder;
  mlir::Location loc;

  mlir::Value number(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(builder, loc, value);
  }
  bool is(mlir::Value value, int64_t number) { return getConstantIndex(value) == number; }
  mlir::Value add(mlir::Value a, mlir::Value b) {
    if (is(a, 0) || is(b, 0))
      return is(a, 0) ? b : a;
    return builder.createOrFold<mlir::arith::AddIOp>(loc, a, b);
  }
  mlir::Value sub(mlir::Value a, mlir::Value b) {
    return builder.createOrFold<mlir::arith::SubIOp>(loc, a, b);
  }
  mlir::Value mul(mlir::Value a, mlir::Value b) {
    if (is(a, 1) || is(b, 1))
      return is(a, 1) ? b : a;
    return builder.createOrFold<mlir::arith::MulIOp>(loc, a, b);
  }
  mlir::Value div(mlir::Value a, mlir::Value b) {
    if (is(b, 1))
      return a;
    return FloorDivOp::create(builder, loc, a.getType(), a, b);
  }
  /// The quotient, rounded up.
  mlir::Value ceilDiv(mlir::Value a, int64_t b) { return div(add(a, number(b - 1)), number(b)); }
  mlir::Value mod(mlir::Value a, mlir::Value b) {
    if (is(b, 1))
      return number(0);
    return FloorModOp::create(builder, loc, a.getType(), a, b);
  }
  mlir::Value min(mlir::Value a, mlir::Value b) {
    return mlir::arith::MinSIOp::create(builder, loc, a, b);
  }
  mlir::Value max(mlir::Value a, mlir::Value b) {
    return mlir::arith::MaxSIOp::create(builder, loc, a, b);
  }
  mlir::Value product(mlir::ValueRange values) {
    mlir::Value result = number(1);
    for (mlir::Value value : values)
      result = mul(result, value);
    return result;
  }
  /// Digits of `count` with the radices `extents`, the last one fastest. The first one may be
  /// greater than its radix.
  llvm::SmallVector<mlir::Value> digits(mlir::Value count, llvm::ArrayRef<mlir::Value> extents) {
    llvm::SmallVector<mlir::Value> result(extents.size());
    for (size_t n = extents.size(); n-- > 0;) {
      result[n] = n == 0 ? count : mod(count, extents[n]);
      if (n > 0)
        count = div(count, extents[n]);
    }
    return result;
  }
  mlir::Value countOf(llvm::ArrayRef<mlir::Value> digits, llvm::ArrayRef<mlir::Value> extents) {
    mlir::Value result = number(0);
    for (auto [digit, extent] : llvm::zip_equal(digits, extents))
      result = add(mul(result, extent), digit);
    return result;
  }
};

} // namespace tk

#endif // TK_PASSES_TENSOR_NORMALIZE_INDEXARITHMETIC_H
