//===- Refusal.cpp - errors that are the program's, not ours --------------===//
#include "passes/analysis/Refusal.h"

using namespace mlir;

namespace tk {

InFlightDiagnostic refuse(Location place, Refusal kind) {
  InFlightDiagnostic diagnostic = emitError(place);
  diagnostic.getUnderlyingDiagnostic()->getMetadata().push_back(
      DiagnosticArgument(static_cast<uint32_t>(kind)));
  return diagnostic;
}

std::optional<Refusal> refusalOf(Diagnostic &diagnostic) {
  for (const DiagnosticArgument &argument : diagnostic.getMetadata())
    if (argument.getKind() == DiagnosticArgument::DiagnosticArgumentKind::Unsigned)
      return static_cast<Refusal>(argument.getAsUnsigned());
  return std::nullopt;
}

} // namespace tk
