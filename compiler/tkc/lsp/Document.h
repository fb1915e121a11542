//===- Document.h - an open file of an editor, analysed ----------*- C++ -*-===//
#ifndef TK_COMPILER_TKC_LSP_DOCUMENT_H
#define TK_COMPILER_TKC_LSP_DOCUMENT_H

#include "compiler/tkc/lsp/Cost.h"
#include "frontend/AST.h"
#include "frontend/Diagnostics.h"
#include "frontend/Lexer.h"
#include "frontend/SemaTree.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tk::lsp {

/// Buffers that are open in the editor, by canonical path.
using OpenTexts = std::map<std::string, std::string>;

/// A path as OpenTexts has it.
std::string canonicalPath(const std::string &path);

/// A place as the protocol counts it: lines from 0, columns in units of UTF-16.
struct Utf16Place {
  std::int64_t line = 0, column = 0;
};
Utf16Place placeOf(const SourceFile &file, std::uint32_t offset);
/// The nearest offset to a place; one outside of the text is moved into it.
std::uint32_t offsetOf(const SourceFile &file, Utf16Place place);

/// What a name stands for, and all its occurrences.
struct NamedThing {
  std::string name;
  std::string kind; ///< "parameter", "index", …
  Span declaration;
  std::vector<Span> occurrences; ///< the declaration is one of them
  const ast::Kernel *kernel = nullptr;
  bool isRenamable = true; ///< it is declared in a file, not in the library
};

/// What is stored of kernels, by their texts with what these use. Outlives the versions of a file.
using StorageCache = std::map<std::string, std::optional<std::set<std::string>>>;

/// One version of a text with what the frontend says of it. Not for several threads.
class Document {
public:
  Document(const std::string &path, const std::string &text, const OpenTexts &open);

  const SourceFile &main() const { return sources.file(mainFile); }
  const SourceManager &files() const { return sources; }
  const Diagnostics &diagnostics() const { return diags; }
  const ast::File &tree() const { return program->main(); }
  const LexedFile &tokens() const { return lexed; }

  /// The name at an offset of the main file, or before it.
  std::optional<Token> nameAt(std::uint32_t offset) const;
  std::optional<NamedThing> thingAt(std::uint32_t offset) const;
  /// Type, range and size, as Markdown; empty if nothing is known.
  std::string describe(const NamedThing &thing) const;
  /// The launches that a kernel or a tensor is in, with their predicted times, as Markdown; empty
  /// where the comments give no sizes. Compiled once for each version of the text.
  std::string describeCost(const NamedThing &thing);
  /// Indices of the main file with the text of their ranges.
  std::vector<std::pair<Span, std::string>> indexRanges() const;
  /// The `let`s of kernels that overlap a span of the main file, and whether each is stored. A
  /// kernel that `cache` lacks is compiled, as long as the time for an answer lasts.
  std::vector<std::pair<const ast::LetTensor *, bool>> storage(Span within,
                                                               StorageCache &cache) const;
  /// What the item at an offset declares, with its kind: for completion.
  std::map<std::string, std::string> namesAt(std::uint32_t offset) const;
  /// The function whose arguments an offset is in, and which of them; null if none.
  const ast::Fn *callAt(std::uint32_t offset, unsigned &argument) const;
  /// The program's function of a name, or null.
  const ast::Fn *functionNamed(const std::string &name) const;

private:
  const ast::Item *itemAt(std::uint32_t offset) const;
  std::string textFor(const ast::Kernel &kernel) const;
  Span statementAt(const ast::Kernel &kernel, std::uint32_t offset) const;
  std::map<std::string, std::pair<std::string, Span>> declaredBy(const ast::Kernel &kernel) const;
  std::map<std::string, std::pair<std::string, Span>> itemNames() const;
  void collect(NamedThing &thing, Span within) const;
  const sema::Kernel *analysed(const ast::Kernel &kernel) const;
  std::string sizeOf(const sema::Kernel &kernel, const sema::Tensor &tensor) const;

  SourceManager sources;
  FileId mainFile;
  Diagnostics diags;
  std::unique_ptr<ast::Program> program;
  LexedFile lexed;
  std::unique_ptr<sema::Module> module;      ///< null where there are errors
  std::map<std::string, std::int64_t> sizes; ///< of comments: // tk: N=1024
  std::map<std::string, ShownCost> costs;    ///< of kernels that were asked for
};

} // namespace tk::lsp

#endif // TK_COMPILER_TKC_LSP_DOCUMENT_H
