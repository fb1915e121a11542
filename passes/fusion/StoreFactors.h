//===- StoreFactors.h - storing computed operands ---------------*- C++ -*-===//
#ifndef TK_PASSES_FUSION_STOREFACTORS_H
#define TK_PASSES_FUSION_STOREFACTORS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Stores computed factors of chains of products once, as warpgroups multiply them, where there is
/// use in it; how many.
unsigned storeFactors(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_FUSION_STOREFACTORS_H
