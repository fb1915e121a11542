//===- Branches.h - results of branches -------------------------*- C++ -*-===//
#ifndef TK_PASSES_LAYOUT_BRANCHES_H
#define TK_PASSES_LAYOUT_BRANCHES_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tk {

/// Has `branch` yield one more value, and returns it. Its operation is another one then.
mlir::Value addResult(mlir::scf::IfOp &branch, mlir::Value ofThen, mlir::Value ofElse);

} // namespace tk

#endif // TK_PASSES_LAYOUT_BRANCHES_H
