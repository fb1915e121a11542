//===- Declines.h - why rewrites do not apply -------------------*- C++ -*-===//
//
// Notes.h holds what is worth a sentence to everybody. This header is for the rest: each test that
// keeps a pass from rewriting an operation says why, and `tkc explain --verbose` prints it. Nothing
// is recorded where nobody listens.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_ANALYSIS_DECLINES_H
#define TK_PASSES_ANALYSIS_DECLINES_H

#include "mlir/IR/Operation.h"

#include <string>
#include <vector>

namespace tk {

/// Why a pass does not rewrite an operation.
struct Decline {
  std::string pass; ///< its flag, such as "tk-unroll-loops", or PASS:PATTERN
  std::string why;  ///< a clause that goes on from "because", no full stop
  mlir::LocationAttr where;
};

/// Hears what passes decline in this thread while it lives. Logs nest: the innermost one hears.
class DeclineLog {
public:
  DeclineLog();
  ~DeclineLog();
  DeclineLog(const DeclineLog &) = delete;
  DeclineLog &operator=(const DeclineLog &) = delete;

  std::vector<Decline> declines; ///< each once, in order

private:
  DeclineLog *outer;
};

/// Says why `pass` does not rewrite `at`, where somebody listens. Returns false, so that a test can
/// end by it: `return decline(loop, "tk-unroll-loops", "…")`.
bool decline(mlir::Operation *at, llvm::StringRef pass, const llvm::Twine &why);

/// Does a rewrite save more time than it takes, both in nanoseconds? If not, says so with both
/// times; `what` names the rewrite: "a padded copy".
bool savesTime(mlir::Operation *at, llvm::StringRef pass, const llvm::Twine &what, double saved,
               double taken);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_DECLINES_H
