//===- ScalarExpand.h - scalar operations in terms of arith ----*- C++ -*-===//
//
// Scalars in kernel bodies, rewritten into operations that LLVM's loop vectoriser understands: no
// calls for exp and tanh in f32, integer code for bf16 and f8.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_LOWERING_CPU_SCALAREXPAND_H
#define TK_PASSES_LOWERING_CPU_SCALAREXPAND_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

namespace tk::cpu {

/// Emits what the scalar operation `op` computes, on `operands`; null where it is simple enough.
mlir::Value expandScalar(mlir::OpBuilder &builder, mlir::Operation *op, mlir::ValueRange operands);

/// exp(x) within 1 ulp for f32, branch-free; the library's for f64.
mlir::Value emitExp(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);
/// exp(a - b), 0 where a is -inf.
mlir::Value emitExpDiff(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a, mlir::Value b);
mlir::Value emitExp2(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);
mlir::Value emitExpM1(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);
mlir::Value emitTanh(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);

// Functions of f32 (ScalarFunctions.cpp).
mlir::Value emitLog(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);
mlir::Value emitLog2(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);
mlir::Value emitLog1p(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);
mlir::Value emitErf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);
mlir::Value emitSin(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);
mlir::Value emitCos(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x);
mlir::Value emitPow(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, mlir::Value y);

/// Philox 4x32-10, the first word as a uniform number in [0, 1).
mlir::Value emitRand(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value seed, mlir::Value n,
                     mlir::Type type);

/// f32 to bf16 or f8 bits (`to` the float type), and back. Rounds to nearest even; f8e4m3
/// saturates as the language's stores do.
mlir::Value emitNarrow(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, mlir::Type to);
mlir::Value emitWiden(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, mlir::Type to);
/// bf16 or one of the f8 types.
bool isEmulated(mlir::Type type);

/// Small typed constants and arithmetic, so that formulas read as such.
class ScalarBuilder {
public:
  ScalarBuilder(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}
  mlir::Value real(double value, mlir::Type type);
  mlir::Value integer(int64_t value, mlir::Type type);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c);
  mlir::Value bitcast(mlir::Value a, mlir::Type type);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  mlir::Value less(mlir::Value a, mlir::Value b); ///< signed, or ordered
  mlir::Value equal(mlir::Value a, mlir::Value b);
  mlir::Value isNan(mlir::Value a);
  mlir::Value shl(mlir::Value a, int64_t bits);
  mlir::Value shr(mlir::Value a, int64_t bits); ///< logical
  mlir::Value bitAnd(mlir::Value a, mlir::Value b);
  mlir::Value bitOr(mlir::Value a, mlir::Value b);

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace tk::cpu

#endif // TK_PASSES_LOWERING_CPU_SCALAREXPAND_H
