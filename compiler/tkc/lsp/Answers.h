//===- Answers.h - answers about one document --------------------*- C++ -*-===//
//
// What the language server says of one version of a text, as JSON of the Language Server Protocol
// 3.17. No function here knows of other open texts, or of the transport.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_TKC_LSP_ANSWERS_H
#define TK_COMPILER_TKC_LSP_ANSWERS_H

#include "compiler/tkc/lsp/Document.h"

#include "llvm/Support/JSON.h"

#include <cstdint>

namespace tk::lsp {

/// A span as `Range`.
llvm::json::Object rangeJson(const SourceFile &file, Span span);

/// The names, words, types and functions that may stand at an offset: an array of `CompletionItem`.
llvm::json::Array completionsAt(const Document &document, std::uint32_t offset);

/// The function whose arguments an offset is in, as `SignatureHelp`; null if there is none.
llvm::json::Value signatureAt(const Document &document, std::uint32_t offset);

/// One `TextEdit` that formats the whole text; none if it is formatted.
llvm::json::Array formattingEdits(const Document &document);

/// Kernels, functions, constants and schedules: an array of `DocumentSymbol`.
llvm::json::Array symbolsOf(const Document &document);

/// Ranges of indices, and whether each `let` within a span is stored: an array of `InlayHint`.
/// `stored` keeps what was compiled for the latter.
llvm::json::Array hintsIn(const Document &document, Span within, StorageCache &stored);

} // namespace tk::lsp

#endif // TK_COMPILER_TKC_LSP_ANSWERS_H
