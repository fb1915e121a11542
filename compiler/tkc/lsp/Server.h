//===- Server.h - the language server ----------------------------*- C++ -*-===//
#ifndef TK_COMPILER_TKC_LSP_SERVER_H
#define TK_COMPILER_TKC_LSP_SERVER_H

namespace tk::lsp {

/// Serves an editor on standard input and output until it says `exit` or ends its input.
int serve();

} // namespace tk::lsp

#endif // TK_COMPILER_TKC_LSP_SERVER_H
