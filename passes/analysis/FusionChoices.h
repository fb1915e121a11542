//===- FusionChoices.h - results that are stored, or computed again -*- C++ -*-===//
//
// tk-fuse-producers decides by a cost rule which results are stored and which are computed where
// they are read. Options name results for which the rule is not asked: `tkc --inline` and
// `--store`, and `tkc view`, which compares both. They reach the pass as attributes of the module.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_ANALYSIS_FUSIONCHOICES_H
#define TK_PASSES_ANALYSIS_FUSIONCHOICES_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Names of results that are computed where they are read, and of those that are stored: arrays of
/// strings on the module, before tk-fuse-producers runs.
inline constexpr llvm::StringLiteral inlinedAttrName = "tk.inline";
inline constexpr llvm::StringLiteral storedAttrName = "tk.store";

/// Records at a load that the results of `compute` are computed there. Note::stored names them.
void noteInlined(LoadOp load, ComputeOp compute, mlir::StringRef pass, const mlir::Twine &text);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_FUSIONCHOICES_H
