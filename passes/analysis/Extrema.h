//===- Extrema.h - extrema and their places ---------------------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_EXTREMA_H
#define TK_PASSES_ANALYSIS_EXTREMA_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// The reduction that says where the least (greatest) of the same terms as those of `reduce`, a
/// plain minimum (maximum), stands, if its block has one: it finds that number, too.
ReduceOp placeOfExtremum(ReduceOp reduce);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_EXTREMA_H
