//===- HostExpr.h - launch-time scalars as expressions -----------*- C++ -*-===//
//
// Extents, grids, scratch sizes, constraints and defaults are SSA values at the kernel's level,
// computed from dimensions and scalar parameters. Here they become expressions that the runtime
// evaluates without a compiler.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_PLAN_HOSTEXPR_H
#define TK_COMPILER_PLAN_HOSTEXPR_H

#include "dialects/tk/TkDialect.h"
#include "tk/expr.h"

#include "llvm/ADT/DenseMap.h"

namespace tk {

class HostExprBuilder {
public:
  /// Variables: the kernel's dimensions, then its scalar parameters, as runtime expressions number
  /// them. A quiet builder reports no diagnostics.
  explicit HostExprBuilder(KernelOp kernel, bool quiet = false);
  /// The same for conditions of `where` and `when`, in which `a % 0` is `a`: so 0 divides 0 alone.
  static HostExprBuilder forConditions(KernelOp kernel);

  /// The expression of a scalar, or nullopt (and a diagnostic at the operation) if it uses
  /// something that a launch cannot evaluate.
  std::optional<Expr> build(mlir::Value value);

private:
  std::optional<Expr> buildOp(mlir::Operation *op);

  llvm::DenseMap<mlir::Value, Expr> known;
  bool quiet;
  bool isOfCondition = false;
};

} // namespace tk

#endif // TK_COMPILER_PLAN_HOSTEXPR_H
