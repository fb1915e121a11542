//===- MaskRanges.h - masks of which ranges are known -----------*- C++ -*-===//
//
// A mask that reads tensors, `document[i] == document[j]`, bounds no index. What is found out about
// it elsewhere, for several rows together, goes along with it as comparisons that change nothing:
//
//   all_begin <= j and j < all_end  or  begin <= j and j < end and holds
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_ANALYSIS_MASKRANGES_H
#define TK_PASSES_ANALYSIS_MASKRANGES_H

#include "mlir/IR/Builders.h"

#include <optional>

namespace tk {

/// `holds`, a condition on `index`, is false outside `begin .. end` and true in
/// `allBegin .. allEnd`. All ranges are of indices, the last one excluded, and may be empty.
struct MaskRanges {
  mlir::Value index, holds, begin, end, allBegin, allEnd;
};

/// `ranges.holds` along with what is known of it.
mlir::Value createMask(mlir::OpBuilder &builder, mlir::Location loc, const MaskRanges &ranges);

/// What `createMask` has put together; nothing if `condition` is anything else.
std::optional<MaskRanges> matchMask(mlir::Value condition);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_MASKRANGES_H
