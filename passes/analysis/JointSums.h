//===- JointSums.h - products that are added up together --------*- C++ -*-===//
//
// What a statement adds up of several sums of products, before anything else is made of them, may
// be one sum: one loop carries it, and one tile has it.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_ANALYSIS_JOINTSUMS_H
#define TK_PASSES_ANALYSIS_JOINTSUMS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Do both run from 0 to ends that are known to be equal?
bool haveEqualRanges(ReduceOp a, ReduceOp b);

/// What the sum of products `sum` is added up in with others over as many terms, or subtracted
/// where CUDA cores or warps compute it, before anything else is made of it; `sum` itself if there
/// are none. Where one loop carries them, they are one tile.
mlir::Value getJointSum(mlir::OpResult sum);

/// How many tiles of sums `reduce` has, all of which are sums of products; nothing if one is not.
std::optional<unsigned> countJointSums(ReduceOp reduce);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_JOINTSUMS_H
