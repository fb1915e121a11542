//===- PartLocations.h - the line of one of several results -----*- C++ -*-===//
#ifndef TK_PASSES_TILING_PARTLOCATIONS_H
#define TK_PASSES_TILING_PARTLOCATIONS_H

#include "mlir/IR/Location.h"
#include "mlir/IR/Value.h"

namespace tk {

/// A fused operation has a location for each statement that it computes. The one of its part
/// `number` of `count`, which is computed from `value`; `whole` if that is not known.
mlir::Location locationOfPart(mlir::Location whole, mlir::Value value, unsigned number,
                              unsigned count);

/// A location that also says what its value is called in emitted text. That of a loop is "for "
/// and what its induction variable is called.
mlir::Location named(const llvm::Twine &name, mlir::Location where);

/// Gives a value of the block program a name in emitted text, if it has none.
void nameValue(mlir::Value value, const llvm::Twine &name);

} // namespace tk

#endif // TK_PASSES_TILING_PARTLOCATIONS_H
