//===- Notes.h - what a pass derived or declined, and why -------*- C++ -*-===//
//
// Passes explain themselves: every rewrite that is worth a sentence and every one that was declined
// leaves a note on its kernel, with the source location it is about. `tkc build --explain` prints
// them; nothing reads them to decide anything.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_ANALYSIS_NOTES_H
#define TK_PASSES_ANALYSIS_NOTES_H

#include "dialects/tk/TkDialect.h"

namespace tk {

enum class Verdict { Derived, Declined };

struct Note {
  mlir::StringRef pass; // the pass's flag, e.g. "tk-online-reductions"
  Verdict verdict;
  mlir::StringRef text; // one sentence, no full stop
  mlir::LocationAttr where;
  // The result of which the text says that it is stored or inlined; "a+b" if it says that the
  // compute ops of two results become one, or stay apart; or empty.
  mlir::StringRef stored;
};

/// Records a note on the kernel around `at`, once however often it is said.
void note(mlir::Operation *at, mlir::StringRef pass, Verdict verdict, const mlir::Twine &text);

/// The same about a place that is not the operation's own, such as a schedule block.
void noteAt(mlir::LocationAttr where, mlir::Operation *at, mlir::StringRef pass, Verdict verdict,
            const mlir::Twine &text);

/// Records that the results of `compute` are computed once, ahead of what reads them. A later
/// rewrite may leave only a reduction of them to be stored: `Note::stored` names them.
void noteStored(ComputeOp compute, mlir::StringRef pass, const mlir::Twine &why);

/// The notes of a kernel in the order in which they were recorded.
mlir::SmallVector<Note> getNotes(KernelOp kernel);

/// Drops the notes, e.g. before the kernel's text becomes part of a key.
void dropNotes(KernelOp kernel);

/// "max over j in 'p'", or "loop over j (max and two sums) in 'o'": how a note names a reduction.
std::string describe(ReduceOp reduce);
/// "'o'" or "'o' and 'lse'": how a note names a statement.
std::string describe(ComputeOp compute);
/// Whether a statement has several names, so that its verb is "are".
bool isPlural(ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_NOTES_H
