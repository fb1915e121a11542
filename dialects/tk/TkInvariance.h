//===- TkInvariance.h - kernels whose bits do not depend on sizes -*- C++ -*-===//
//
// On a kernel with `@batch_invariant`, and on the module that is compiled for it. An element of a
// result then has the same bits whatever the sizes of the dimensions are that it is not reduced
// over. compiler/BatchInvariance.h says how that is kept.
//
//===----------------------------------------------------------------------===//
#ifndef TK_DIALECTS_TK_TKINVARIANCE_H
#define TK_DIALECTS_TK_TKINVARIANCE_H

#include "mlir/IR/BuiltinOps.h"

namespace tk {

inline constexpr llvm::StringLiteral batchInvariantAttrName = "tk.batch_invariant";

/// Is the module around `op` compiled for a batch-invariant kernel?
inline bool isBatchInvariant(mlir::Operation *op) {
  auto module = op->getParentOfType<mlir::ModuleOp>();
  return module && module->hasAttr(batchInvariantAttrName);
}

} // namespace tk

#endif // TK_DIALECTS_TK_TKINVARIANCE_H
