//===- CallOverlap.h - calls that begin before others end -------*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_CALLOVERLAP_H
#define TK_PASSES_ANALYSIS_CALLOVERLAP_H

#include "llvm/ADT/StringRef.h"

namespace tk {

/// On a kernel: its launches may begin before the call in front of it has ended, and those of the
/// next call before it has.
inline constexpr llvm::StringLiteral overlapsCallsAttrName = "tk.overlaps_calls";

} // namespace tk

#endif // TK_PASSES_ANALYSIS_CALLOVERLAP_H
