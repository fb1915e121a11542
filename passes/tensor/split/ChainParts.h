//===- ChainParts.h - the lengths of the parts of a split-KV ----*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_SPLIT_CHAINPARTS_H
#define TK_PASSES_TENSOR_SPLIT_CHAINPARTS_H

#include "dialects/tk/TkDialect.h"

#include <utility>

namespace tk {

/// The inputs from which the parts of a range follow if its length is known only at the launch.
struct PartWish {
  llvm::SmallVector<mlir::Value> batch; ///< extents; their product is the number of attention loops
  int64_t wanted;                       ///< parts of all loops together
  int64_t unit, leastUnits;             ///< elements of a unit, and the fewest units of a part
};

/// The length of the parts of `range` elements and the number of parts, as values of the kernel.
std::pair<mlir::Value, mlir::Value> createParts(mlir::OpBuilder &builder, mlir::Location loc,
                                                mlir::Value range, const PartWish &wish);

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_CHAINPARTS_H
