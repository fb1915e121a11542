//===- ViewDocument.h - a kernel's view as JSON and as a page ----*- C++ -*-===//
#ifndef TK_COMPILER_TKC_VIEWDOCUMENT_H
#define TK_COMPILER_TKC_VIEWDOCUMENT_H

#include "compiler/KernelView.h"

#include "llvm/Support/JSON.h"

#include <map>
#include <string>

namespace tk::tkc {

/// What a view is of.
struct ViewSubject {
  const Signature &signature;
  const Facts &facts;
  std::string target;
  std::map<std::string, int64_t> dims; ///< those that are given
};

/// The document; docs/reference/view.md describes it.
llvm::json::Value documentOf(const KernelView &view, const ViewSubject &subject);

/// The document as a page that needs no other file.
std::string pageOf(const llvm::json::Value &document);

/// What differs between two documents.
struct ComparedDocuments {
  std::string text;
  llvm::json::Array changes;
  bool grown = false; ///< a predicted or measured time grew by more than the tolerance
};

/// Compares two documents, with a tolerance in percent.
Expected<ComparedDocuments> compareDocuments(const llvm::json::Value &before,
                                             const llvm::json::Value &after, double tolerance);

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_VIEWDOCUMENT_H
