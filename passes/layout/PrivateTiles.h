//===- PrivateTiles.h - tiles in threads' own shared memory -----*- C++ -*-===//
#ifndef TK_PASSES_LAYOUT_PRIVATETILES_H
#define TK_PASSES_LAYOUT_PRIVATETILES_H

#include "mlir/IR/Value.h"

namespace tk {

/// Can threads have their parts of `tile` in shared memory, in vectors of 16 bytes?
bool isStorable(mlir::Value tile);

/// Puts `tile`, as soon as it is computed, into threads' own shared memory, from which it is read
/// for all its uses: at `use`, or at once.
void keepInMemory(mlir::Value tile, mlir::Operation *use = nullptr);

} // namespace tk

#endif // TK_PASSES_LAYOUT_PRIVATETILES_H
