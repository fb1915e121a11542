//===- ChainParts.h - the lengths of the parts of a split-KV ----*- C++ -*-===//
#ifndef TK_PASSES_FUSION_CHAINPARTS_H
#define TK_PASSES_FUSION_CHAINPARTS_H

#include "dialects/tk/TkDialect.h"

#include <utility>

namespace tk {

/// What the parts of a range follow from whose length is known at the launch alone.
struct PartWish {
  llvm::SmallVector<mlir::Value> batch; ///< extents: so many chains there are
  int64_t wanted;                       ///< parts of all chains together
  int64_t unit, leastUnits;             ///< terms that a part is a multiple of, and the fewest
};

/// The length of the parts of `range` terms, and how many there are, as values of the kernel.
std::pair<mlir::Value, mlir::Value> createParts(mlir::OpBuilder &builder, mlir::Location loc,
                                                mlir::Value range, const PartWish &wish);

} // namespace tk

#endif // TK_PASSES_FUSION_CHAINPARTS_H
