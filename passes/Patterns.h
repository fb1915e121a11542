//===- Patterns.h - rewrites of a pass that have names ----------*- C++ -*-===//
//
// A pass that consists of several rewrites runs each as a named pattern. A pattern can be left out,
// run alone, printed after and validated by itself:
//
//   tk-opt --tk-simplify=disable=hoist-factors    without one pattern
//   tk-opt --tk-simplify=only=hoist-factors       one pattern alone
//   tkc … --disable-pass tk-simplify:hoist-factors --print-after tk-simplify:hoist-factors
//
// To add a pattern: name it in Patterns.cpp, and run it by NamedPatterns::run in the pass.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_PATTERNS_H
#define TK_PASSES_PATTERNS_H

#include "mlir/IR/Action.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <string>

namespace tk {

/// A named pattern of a pass.
struct PatternInfo {
  llvm::StringRef name;
  llvm::StringRef summary;
  bool needed = false;         ///< without it there is no right code
  llvm::StringRef former = {}; ///< a pass that it was part of; options still take that name
  llvm::StringRef group = {};  ///< a group of its own, or empty: its pass's
};

/// The patterns of a pass in the order in which they run first; empty for a pass that is one
/// rewrite.
llvm::ArrayRef<PatternInfo> patternsOf(llvm::StringRef pass);

/// Of `words` the one that is most like `word`; empty if none is.
std::string nearestOf(llvm::StringRef word, llvm::ArrayRef<std::string> words);

/// One run of a pattern, as MLIR's handlers of actions see it. The first IR unit is the root.
class PatternAction : public mlir::tracing::ActionImpl<PatternAction> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PatternAction)
  static constexpr llvm::StringLiteral tag = "tk-pattern";
  static constexpr llvm::StringLiteral desc = "runs a named pattern of a pass";

  PatternAction(llvm::ArrayRef<mlir::IRUnit> units, llvm::StringRef pass, llvm::StringRef pattern)
      : ActionImpl(units), pass(pass), pattern(pattern) {}

  llvm::StringRef pass, pattern;
};

/// Runs a pass's patterns but those that its options leave out.
class NamedPatterns {
public:
  /// `disable` and `only` are the pass's options of these names; with `only` none else runs.
  NamedPatterns(mlir::Operation *root, llvm::StringRef pass, llvm::ArrayRef<std::string> disable,
                llvm::ArrayRef<std::string> only)
      : root(root), pass(pass), disable(disable), only(only) {}

  /// Fails, with an error, if an option names a pattern that the pass does not have.
  llvm::LogicalResult verify();
  bool isOn(llvm::StringRef pattern) const;
  void run(llvm::StringRef pattern, llvm::function_ref<void()> rewrite);

private:
  mlir::Operation *root;
  llvm::StringRef pass;
  llvm::ArrayRef<std::string> disable, only;
};

} // namespace tk

#endif // TK_PASSES_PATTERNS_H
