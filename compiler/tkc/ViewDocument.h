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

/// Compares two documents. Returns what differs as text; `grown` says whether the predicted time of
/// a launch, or of the kernel, grew by more than `tolerance` percent.
Expected<std::string> compareDocuments(const llvm::json::Value &before,
                                       const llvm::json::Value &after, double tolerance,
                                       bool &grown);

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_VIEWDOCUMENT_H
