//===- GatherFactors.h - operands whose rows are gathered -------*- C++ -*-===//
#ifndef TK_PASSES_FUSION_GATHERFACTORS_H
#define TK_PASSES_FUSION_GATHERFACTORS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Stores factors of products whose rows a table gathers once more, where there is use in it; how
/// many.
unsigned gatherFactors(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_FUSION_GATHERFACTORS_H
