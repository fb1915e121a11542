// The canonical layout of a source text: what `tkc fmt` writes.

#ifndef TK_FRONTEND_FORMATTER_H
#define TK_FRONTEND_FORMATTER_H

#include "frontend/Diagnostics.h"

#include <string>

namespace tk {

/// Lays a text out anew: spaces and indentation are the formatter's; line breaks, comments and
/// single blank lines are the writer's. Idempotent, and the tree stays the same. A text with a
/// syntax error is returned as it is, with the errors in `diags`.
std::string formatSource(SourceManager &sources, FileId file, Diagnostics &diags);

} // namespace tk

#endif // TK_FRONTEND_FORMATTER_H
