//===- Conditions.h - conditions made of several ----------------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_CONDITIONS_H
#define TK_PASSES_ANALYSIS_CONDITIONS_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

namespace tk {

/// Adds what `Op`, arith.andi or arith.ori, joins to `condition`: itself, if it is no `Op`.
template <typename Op>
void addParts(mlir::Value condition, llvm::SmallVectorImpl<mlir::Value> &parts) {
  if (auto joined = condition.getDefiningOp<Op>()) {
    addParts<Op>(joined.getLhs(), parts);
    addParts<Op>(joined.getRhs(), parts);
  } else {
    parts.push_back(condition);
  }
}

} // namespace tk

#endif // TK_PASSES_ANALYSIS_CONDITIONS_H
