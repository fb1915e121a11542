//===- UnpackFactors.h - operands with several numbers in a byte -*- C++ -*-===//
#ifndef TK_PASSES_FUSION_UNPACKFACTORS_H
#define TK_PASSES_FUSION_UNPACKFACTORS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Has sums of products whose factor reads several terms of one byte take in the bytes one by one,
/// where that can be done; how many.
unsigned unpackFactors(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_FUSION_UNPACKFACTORS_H
