//===- LeastMasks.h - how often a program's values are needed ---*- C++ -*-===//
#ifndef TK_COMPILER_LEASTMASKS_H
#define TK_COMPILER_LEASTMASKS_H

#include "compiler/plan/HostExpr.h"
#include "dialects/tk/TkDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

namespace tk {

using Indices = llvm::SetVector<mlir::BlockArgument>;

/// An index of a statement, a reduction or a scan.
bool isIteration(mlir::Value value);

/// A choice between a value and a constant.
struct Mask {
  mlir::Value condition, kept;
  bool keepsWhereTrue;
};

/// The mask that an operation is; none for another operation, and for null.
std::optional<Mask> maskOf(mlir::Operation *op);

/// The indices that values depend on, and for which share of their combinations a value is needed.
class IterationSpace {
public:
  IterationSpace(KernelOp kernel, std::span<const Scalar> variables)
      : exprs(kernel, /*quiet=*/true), variables(variables) {}

  const Indices &indicesOf(mlir::Value value);
  /// The mean of an integer over all iterations; 0 where it is not known.
  double mean(mlir::Value value) { return integer(value, nullptr); }
  double combinations(const Indices &indices);
  /// How many elements of a value a program must compute at the least.
  double count(mlir::Value value);
  /// The share of a reduction's iterations of which it must add a term.
  double shareOfTerm(ReduceOp reduce, mlir::Value term);

private:
  using Point = llvm::SmallDenseMap<mlir::Value, double>;

  void addOperands(mlir::Operation *op, Indices &result);
  double integer(mlir::Value value, const Point *point);
  std::pair<double, double> boundsOf(mlir::BlockArgument index);
  /// Whether a condition holds at a point; nothing where its operands are no integers of indices.
  std::optional<bool> holds(mlir::Value condition, const Point &point);
  bool isOfIndices(mlir::Value value);
  /// The share of the iterations that a mask keeps: 1 where its condition depends on data.
  double shareKept(const Mask &mask);
  /// The share of a value's elements that depend on all of its indices.
  double shareVaried(mlir::Value value);
  double shareOfOperands(mlir::Operation *op);
  /// The share of a value's elements that anything is computed from.
  double shareUsed(mlir::Value value);
  double shareUsedBy(mlir::OpOperand &use);

  HostExprBuilder exprs;
  std::span<const Scalar> variables;
  llvm::DenseMap<mlir::Value, Indices> indices;
  llvm::DenseMap<mlir::Value, double> varied, used;
};

} // namespace tk

#endif // TK_COMPILER_LEASTMASKS_H
