// Semantic analysis, and the whole way from a text to the tk dialect.

#ifndef TK_FRONTEND_SEMA_H
#define TK_FRONTEND_SEMA_H

#include "frontend/AST.h"
#include "frontend/Diagnostics.h"
#include "frontend/SemaTree.h"

#include <memory>

namespace tk::frontend {

/// Checks a program that parsed without errors, and resolves it. Errors go to `diags`; the result
/// is null if there were any. The tree of `program` must outlive the result. Without schedules,
/// blocks for kernels that are still to be derived are no errors.
std::unique_ptr<sema::Module> analyze(const ast::Program &program, Diagnostics &diags,
                                      bool withSchedules = true);

} // namespace tk::frontend

#endif // TK_FRONTEND_SEMA_H
