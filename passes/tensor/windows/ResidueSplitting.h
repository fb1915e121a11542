//===- ResidueSplitting.h - sums by the remainders of an index --*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_WINDOWS_RESIDUESPLITTING_H
#define TK_PASSES_TENSOR_WINDOWS_RESIDUESPLITTING_H

#include "dialects/tk/TkDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tk {

/// A condition `difference % step == 0`, where the difference grows by 1 with `index`, an index of
/// the statement, and gets less by 1 with `term`, one of the sum. There is no term if the axis has
/// one tap, or if no condition but the remainder itself is asked for.
struct Residue {
  mlir::Value difference;
  mlir::BlockArgument index, term;
  int64_t step;
  bool isAsked = false; ///< the remainder is a value of the sum

  bool hasPhase() const { return term || isAsked; }
};

/// Is `value` a remainder that the sum asks for?
bool isRemainder(mlir::Value value, const Residue &residue);

class ResidueSplitting {
public:
  ResidueSplitting(ComputeOp compute, ReduceOp reduce)
      : compute(compute), reduce(reduce), loc(reduce.getLoc()) {}
  bool read();
  void rewrite();

private:
  bool readCondition(mlir::Value condition);
  bool readRemainders();
  bool arePhasesRows(mlir::arith::MulFOp product);
  bool areOperands();
  bool standsElsewhere(mlir::Value index, mlir::Value value);
  bool isQuotient(mlir::Value value);
  mlir::Value offsetOf(const Residue &residue);
  void padEnds(mlir::OpBuilder &inner, mlir::ValueRange own);
  mlir::Value createSum(mlir::OpBuilder &body, mlir::ValueRange indices);

  ComputeOp compute;
  ReduceOp reduce;
  mlir::Location loc;
  mlir::Value term;                    ///< where all conditions hold
  llvm::SmallVector<Residue> residues; ///< those with a term first: each of these has a phase
  size_t countPhases = 0;
  llvm::SmallVector<mlir::BlockArgument> others; ///< indices of the statement that the sum is over
  llvm::SmallVector<mlir::Value> offsets, bases, places;
};

} // namespace tk

#endif // TK_PASSES_TENSOR_WINDOWS_RESIDUESPLITTING_H
