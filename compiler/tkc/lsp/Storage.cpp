//===- Storage.cpp - which lets of a kernel are stored --------------------===//
//
// A kernel is compiled up to the stage `fused`, which takes some milliseconds, with the items of
// its file that it may use: not with other kernels. The result is kept by that text, so that a key
// in one kernel compiles that kernel alone.
//
//===----------------------------------------------------------------------===//
#include "compiler/tkc/lsp/Document.h"

#include <chrono>

namespace tk::lsp {

/// How long an answer may compile. What is left follows with the next one.
static constexpr std::chrono::milliseconds budget{40};
/// Kernels of earlier versions that are kept.
static constexpr std::size_t mostKept = 512;

/// The kernel with the other items of its file that it may use.
std::string Document::textFor(const ast::Kernel &kernel) const {
  std::string text;
  for (const ast::ItemPtr &item : tree().items) {
    const bool isUsed = item->kind == ast::ItemKind::Fn || item->kind == ast::ItemKind::Const ||
                        item->kind == ast::ItemKind::Import || item->kind == ast::ItemKind::Mesh;
    if (item.get() == &kernel || (isUsed && item->span.file == mainFile))
      text += std::string(sources.text(item->span)) + "\n";
  }
  return text;
}

std::vector<std::pair<const ast::LetTensor *, bool>> Document::storage(Span within,
                                                                       StorageCache &cache) const {
  std::vector<std::pair<const ast::LetTensor *, bool>> lets;
  if (!module)
    return lets;
  const auto end = std::chrono::steady_clock::now() + budget;
  for (const ast::ItemPtr &item : tree().items) {
    const auto *kernel = ast::as<ast::Kernel>(item.get());
    if (!kernel || kernel->derived || item->span.file != mainFile ||
        item->span.end < within.begin || item->span.begin > within.end)
      continue;
    const std::string text = textFor(*kernel);
    std::string key = text;
    for (const auto &[name, size] : sizes)
      key += name + "=" + std::to_string(size) + " ";
    // The texts of imports are part of what it is compiled with.
    for (const std::unique_ptr<ast::File> &file : program->files)
      if (file->id != mainFile && sources.file(file->id).name().ends_with(".tk"))
        key += std::string(sources.file(file->id).text());
    auto known = cache.find(key);
    if (known == cache.end()) {
      if (std::chrono::steady_clock::now() > end)
        continue;
      if (cache.size() >= mostKept)
        cache.clear();
      known = cache.emplace(key, storedTensors(main().name(), text, kernel->name, sizes)).first;
    }
    if (known->second)
      for (const ast::StmtPtr &stmt : kernel->statements)
        if (const auto *let = ast::as<ast::LetTensor>(stmt.get()))
          lets.emplace_back(let, known->second->contains(let->name));
  }
  return lets;
}

} // namespace tk::lsp
