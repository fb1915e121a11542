//===- Refusal.h - errors that are the program's, not ours ------*- C++ -*-===//
//
// A pass that fails has found a bug of the compiler, unless it says that what the program asks for
// cannot be had: then the error carries the kind of refusal, and the driver reports it as it
// reports errors of the frontend, at a place of the source and with exit status 1.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_ANALYSIS_REFUSAL_H
#define TK_PASSES_ANALYSIS_REFUSAL_H

#include "mlir/IR/Diagnostics.h"

#include <optional>

namespace tk {

enum class Refusal : uint32_t {
  ScheduleDoesNotFit, ///< a schedule block wants what the machine cannot give
  NeedsNewerMachine,  ///< the program uses types that the architecture has no instructions for
};

/// Reports an error at a place of the program; notes that are attached to it are advice.
mlir::InFlightDiagnostic refuse(mlir::Location place, Refusal kind);

/// The kind of refusal that a diagnostic carries; none for errors of ours.
std::optional<Refusal> refusalOf(mlir::Diagnostic &diagnostic);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_REFUSAL_H
