//===- Answers.cpp - answers about one document ---------------------------===//
#include "compiler/tkc/lsp/Answers.h"

#include "frontend/Formatter.h"

#include "llvm/ADT/StringRef.h"

namespace tk::lsp {

using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

namespace {

Object placeJson(const SourceFile &file, std::uint32_t offset) {
  Utf16Place place = placeOf(file, offset);
  return Object{{"line", place.line}, {"character", place.column}};
}

} // namespace

Object rangeJson(const SourceFile &file, Span span) {
  return Object{{"start", placeJson(file, span.begin)}, {"end", placeJson(file, span.end)}};
}

Array completionsAt(const Document &document, std::uint32_t offset) {
  auto names = document.namesAt(offset);
  for (const char *word : {"kernel",        "fn",
                           "const",         "import",
                           "schedule",      "grad",
                           "mesh",          "where",
                           "let",           "if",
                           "then",          "else",
                           "and",           "or",
                           "not",           "true",
                           "false",         "strided",
                           "inout",         "in",
                           "deterministic", "batch_invariant"})
    names.try_emplace(word, "word");
  for (const char *type :
       {"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u8", "bool"})
    names.try_emplace(type, "type");
  for (int kind = 0; kind <= static_cast<int>(ast::ReduceKind::CumMax); ++kind)
    names.try_emplace(std::string(ast::spelling(static_cast<ast::ReduceKind>(kind))), "reduction");
#define TK_BUILTIN(NAME, SPELLING, ARITY, CLASS) names.try_emplace(SPELLING, "built-in function");
#include "frontend/Builtins.def"
  Array items;
  for (const auto &[name, kind] : names)
    items.push_back(Object{{"label", name},
                           {"detail", kind},
                           {"kind", kind == "word"                                ? 14
                                    : llvm::StringRef(kind).ends_with("function") ? 3
                                    : kind == "reduction"                         ? 3
                                                                                  : 6}});
  return items;
}

Value signatureAt(const Document &document, std::uint32_t offset) {
  unsigned argument = 0;
  const ast::Fn *fn = document.callAt(offset, argument);
  if (!fn)
    return nullptr;
  std::string label = fn->name + "(";
  Array parameters;
  for (const auto &param : fn->params) {
    label += (parameters.empty() ? "" : ", ") + param->name;
    parameters.push_back(Object{{"label", param->name}});
  }
  return Object{
      {"signatures", Array{Object{{"label", label + ")"}, {"parameters", std::move(parameters)}}}},
      {"activeSignature", 0},
      {"activeParameter", argument}};
}

Array formattingEdits(const Document &document) {
  SourceManager sources;
  Diagnostics diags(sources);
  FileId file = sources.add(document.main().name(), std::string(document.main().text()));
  std::string text = formatSource(sources, file, diags);
  Array edits;
  if (text != document.main().text())
    edits.push_back(
        Object{{"range", rangeJson(document.main(), document.main().all())}, {"newText", text}});
  return edits;
}

Array symbolsOf(const Document &document) {
  const SourceFile &file = document.main();
  Array list;
  auto add = [&](const ast::Item &item, const ast::Decl &decl, int kind) {
    if (item.span.file == file.id() && !decl.name.empty())
      list.push_back(Object{{"name", decl.name},
                            {"kind", kind},
                            {"range", rangeJson(file, item.span)},
                            {"selectionRange", rangeJson(file, decl.nameSpan)}});
  };
  for (const ast::ItemPtr &item : document.tree().items) {
    if (const auto *kernel = ast::as<ast::Kernel>(item.get()))
      add(*item, *kernel, 12);
    if (const auto *fn = ast::as<ast::Fn>(item.get()))
      add(*item, *fn, 12);
    if (const auto *constant = ast::as<ast::Const>(item.get()))
      add(*item, *constant, 14);
    if (const auto *schedule = ast::as<ast::Schedule>(item.get()))
      add(*item, *schedule, 20);
  }
  return list;
}

Array hintsIn(const Document &document, Span within, StorageCache &stored) {
  Array list;
  const SourceFile &file = document.main();
  for (const auto &[let, isStored] : document.storage(within, stored))
    list.push_back(Object{{"position", placeJson(file, let->span.end)},
                          {"label", isStored ? "stored" : "fused"},
                          {"paddingLeft", true},
                          {"tooltip", isStored ? "The GPU stores it in device memory."
                                               : "It is computed where it is read."}});
  for (const auto &[span, range] : document.indexRanges())
    list.push_back(Object{{"position", placeJson(document.main(), span.end)},
                          {"label", " in " + range},
                          {"kind", 1}});
  return list;
}

} // namespace tk::lsp
