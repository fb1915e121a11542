//===- FusionChoices.h - choices of fusion that options make ------*- C++ -*-===//
//
// tk-fuse-producers decides by a cost rule which results are stored and which are computed where
// they are read, and tk-merge-computes which compute ops are one. Options name results for which
// the rules are not asked: `tkc --inline`, `--store`, `--merge` and `--apart`, and `tkc view`,
// which compares both choices. They reach the passes as attributes of the module.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_ANALYSIS_FUSIONCHOICES_H
#define TK_PASSES_ANALYSIS_FUSIONCHOICES_H

#include "passes/analysis/Notes.h"

namespace tk {

/// Names of results that are computed where they are read, and of those that are stored: arrays of
/// strings on the module, before tk-fuse-producers runs.
inline constexpr llvm::StringLiteral inlinedAttrName = "tk.inline";
inline constexpr llvm::StringLiteral storedAttrName = "tk.store";

/// Names of results that are stored because the kernel is predicted to take less time so, and of
/// products that are computed where they are read for the same reason.
inline constexpr llvm::StringLiteral storedByTimeAttrName = "tk.store_by_time";
inline constexpr llvm::StringLiteral inlinedByTimeAttrName = "tk.inline_by_time";

/// Pairs of results, "a+b", whose compute ops tk-merge-computes makes one, and of those that it
/// leaves apart: arrays of strings on the module.
inline constexpr llvm::StringLiteral mergedAttrName = "tk.merge";
inline constexpr llvm::StringLiteral apartAttrName = "tk.apart";

/// Records that two compute ops become one, or stay apart. Note::stored names both: "a+b".
void noteMerge(ComputeOp a, ComputeOp b, mlir::StringRef pass, Verdict verdict,
               const mlir::Twine &text);

/// Records at a load that the results of `compute` are computed there. Note::stored names them.
void noteInlined(LoadOp load, ComputeOp compute, mlir::StringRef pass, const mlir::Twine &text);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_FUSIONCHOICES_H
