//===- ScalarExpr.h - the expression DAGs inside statements -----*- C++ -*-===//
//
// Statement bodies are pure: a value is its expression DAG. These are the questions that the fusion
// passes ask of such DAGs, reductions inside them included.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_ANALYSIS_SCALAREXPR_H
#define TK_PASSES_ANALYSIS_SCALAREXPR_H

#include "dialects/tk/TkDialect.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"

namespace tk {

/// Decides whether two values are the same expression, up to the names of bound indices, the order
/// of commutative operands, and pairs declared equal by `identify`.
class ScalarEquality {
public:
  void identify(mlir::Value a, mlir::Value b) { equalPairs.insert({a, b}); }
  bool equal(mlir::Value a, mlir::Value b);
  bool equal(mlir::ValueRange a, mlir::ValueRange b);
  /// Same kinds, ranges, terms and factors; index names may differ.
  bool equal(mlir::Operation *a, mlir::Operation *b);

private:
  using Pair = std::pair<mlir::Value, mlir::Value>;
  bool compute(mlir::Value a, mlir::Value b);
  llvm::DenseSet<Pair> equalPairs, unequalPairs;
};

/// True if both reduce over the same ranges, index by index.
bool haveSameRanges(ReduceOp a, ReduceOp b);

/// Decides whether values depend on any of a set of roots (through operands and captured values).
class Dependence {
public:
  explicit Dependence(mlir::ValueRange roots) : roots(roots.begin(), roots.end()) {}
  bool on(mlir::Value value);

private:
  llvm::DenseSet<mlir::Value> roots;
  llvm::DenseMap<mlir::Value, bool> known;
};

/// Does `value` depend on an element of a tensor?
bool readsTensor(mlir::Value value);

/// Operands of `op` and values that its regions capture from above.
llvm::SmallVector<mlir::Value> getInputs(mlir::Operation *op);

/// Clones, at `builder`, the ops of `home` (and what their regions hold) that `value` needs and
/// that `mapping` does not know yet; returns the value's counterpart. Values from outside `home`
/// stay.
mlir::Value cloneSlice(mlir::OpBuilder &builder, mlir::Value value, mlir::Block *home,
                       mlir::IRMapping &mapping);

/// The same for all blocks in `around`.
mlir::Value cloneFrom(mlir::OpBuilder &builder, mlir::Value value, mlir::Operation *around,
                      mlir::IRMapping &mapping);

/// The ops of `home` that `values` need, in block order.
llvm::SmallVector<mlir::Operation *> getSlice(mlir::ValueRange values, mlir::Block *home);

/// The iteration indices (arguments of statement, reduction and scan bodies) that `value` depends
/// on.
llvm::SmallVector<mlir::BlockArgument> getIterationIndices(mlir::Value value);

/// A sum whose terms are products of two loaded or rounded factors: what a matrix unit can run.
bool isContraction(ReduceOp reduce);

/// Would the sum of `term` over the indices of `reduce` be one?
bool isContractionTerm(ReduceOp reduce, mlir::Value term);

/// The neutral element of `kind` at `builder`.
mlir::Value createIdentity(mlir::OpBuilder &builder, mlir::Location loc, ReduceKind kind,
                           mlir::Type type);

/// a (+) b of `kind`, which has no indices, for two scalars or tiles of one type.
mlir::Value createCombination(mlir::OpBuilder &builder, mlir::Location loc, ReduceKind kind,
                              mlir::Value a, mlir::Value b);

bool isZero(mlir::Value value);
/// `value` without the limits to the finite numbers of `narrow` that saturation puts around it.
mlir::Value stripClamps(mlir::Value value, mlir::Type narrow);
/// The constant that `op` multiplies by if that is 2^n or -2^n, which rounds no normal result.
std::optional<llvm::APFloat> exactFactor(mlir::Operation *op);
/// The exponent of the largest power of two that `type` holds.
int largestPowerOf(mlir::Type type);
bool isNegativeInfinity(mlir::Value value);
/// True if `value` is the neutral element of `kind`.
bool isIdentity(mlir::Value value, ReduceKind kind);

/// Moves every op of `block` behind the ops that it needs, keeping the order where it is legal.
void sortByDependence(mlir::Block *block);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_SCALAREXPR_H
