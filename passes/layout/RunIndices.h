//===- RunIndices.h - indices that count along a tile -----------*- C++ -*-===//
#ifndef TK_PASSES_LAYOUT_RUNINDICES_H
#define TK_PASSES_LAYOUT_RUNINDICES_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace tk {

/// Whether `index` is 0, 1, ... plus scalars, which are appended to `starts`. `fromConstants`: a
/// tile of one constant counts, for which a scalar is made.
bool isRun(mlir::Value index, llvm::SmallVectorImpl<mlir::Value> &starts,
           bool fromConstants = false);

/// An index that counts the groups of `size` that a run 0, 1, ... falls into, or the places in
/// them.
struct PartOfRun {
  mlir::Value run;
  int64_t size;
  bool isPlace;
};

/// Reads `index` as such, plus scalars, which are appended to `starts`.
std::optional<PartOfRun> partOfRun(mlir::Value index, llvm::SmallVectorImpl<mlir::Value> &starts);

/// Whether both run from the same value.
bool sameRun(mlir::Value a, mlir::Value b);

} // namespace tk

#endif // TK_PASSES_LAYOUT_RUNINDICES_H
