// Turns a text into tokens and comments.

#ifndef TK_FRONTEND_LEXER_H
#define TK_FRONTEND_LEXER_H

#include "frontend/Diagnostics.h"
#include "frontend/Token.h"

#include <vector>

namespace tk {

struct LexedFile {
  std::vector<Token> tokens;  ///< the last one is Eof
  std::vector<Span> comments; ///< `//` to the end of the line, without the line end
  bool ok = true;             ///< no error was reported
};

/// Reads all tokens of a file. Text that is not UTF-8 yields no token but Eof: positions in noise
/// are no use to anyone, and one error a line is.
LexedFile lex(const SourceFile &file, Diagnostics &diags);

} // namespace tk

#endif // TK_FRONTEND_LEXER_H
