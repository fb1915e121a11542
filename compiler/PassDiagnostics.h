//===- PassDiagnostics.h - what passes report --------------------*- C++ -*-===//
#ifndef TK_COMPILER_PASSDIAGNOSTICS_H
#define TK_COMPILER_PASSDIAGNOSTICS_H

#include "frontend/Diagnostics.h"
#include "passes/analysis/Refusal.h"
#include "tk/error.h"

#include <string>
#include <vector>

namespace tk {

/// Collects the errors that passes report while it lives.
class PassDiagnostics {
public:
  explicit PassDiagnostics(mlir::MLIRContext *context);

  /// What failed, as text for the message of an internal error.
  const std::string &text() const { return failures; }
  bool refused() const { return !refusals.empty(); }
  /// Reports what was refused as the frontend reports its errors, at the places in `diags`'
  /// sources.
  void reportRefusals(Diagnostics &diags) const;

private:
  struct Refused {
    Refusal kind;
    mlir::Location place;
    std::string message;
    std::vector<std::string> advice;
  };

  void collect(mlir::Diagnostic &diagnostic);

  std::string failures;
  std::vector<Refused> refusals;
  mlir::ScopedDiagnosticHandler handler;
};

/// All diagnostics as one error, with the places of those that are errors.
Error compileError(const Diagnostics &diags, RenderOptions render);

/// The span of the word at a place of a source, invalid where the place is in none of them.
Span spanOf(const SourceManager &sources, mlir::Location place);

} // namespace tk

#endif // TK_COMPILER_PASSDIAGNOSTICS_H
