//===- Cost.h - what an editor shows of a kernel's time ----------*- C++ -*-===//
#ifndef TK_COMPILER_TKC_LSP_COST_H
#define TK_COMPILER_TKC_LSP_COST_H

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace tk::lsp {

/// What a kernel is predicted to take on a GPU, as Markdown.
struct ShownCost {
  std::string kernel;                        ///< of all launches; empty if nothing is known
  std::map<std::string, std::string> stored; ///< by tensor that is written: the launch that does
};

/// Compiles a kernel of a text for sm_90a, without code, at sizes of its dimensions. Empty where
/// the text has errors, or a size is missing.
ShownCost costOfKernel(const std::string &path, const std::string &text, const std::string &kernel,
                       const std::map<std::string, std::int64_t> &sizes);

/// The tensors of a kernel that a GPU stores. Sizes that are not given are not known. Nothing where
/// the text does not compile.
std::optional<std::set<std::string>>
storedTensors(const std::string &path, const std::string &text, const std::string &kernel,
              const std::map<std::string, std::int64_t> &sizes);

} // namespace tk::lsp

#endif // TK_COMPILER_TKC_LSP_COST_H
