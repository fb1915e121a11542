// `grad` items become kernels.

#ifndef TK_FRONTEND_GRADIENT_H
#define TK_FRONTEND_GRADIENT_H

#include "frontend/AST.h"
#include "frontend/Diagnostics.h"

namespace tk::frontend {

/// Derives the kernel of each `grad` item and puts it behind the item, parsed from a text of its
/// own, which `sources` then holds and the item keeps (Grad::derived). To be called once, before
/// analyze(). A program with errors is left as it is: analyze() reports them.
void deriveGradients(SourceManager &sources, ast::Program &program, Diagnostics &diags);

} // namespace tk::frontend

#endif // TK_FRONTEND_GRADIENT_H
