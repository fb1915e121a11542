//===- Document.cpp - an open file of an editor, analysed -----------------===//
//
// Names are found by their tokens. Nothing is shadowed in the language, so a name has one meaning
// in a kernel, but for an index, which has one in its statement:
//
// 1. The item around the token is looked up.
// 2. A name that the kernel declares (parameter, result, local, dimension) is that in all of the
//    kernel; any other name that is an index of the statement is that in the statement.
// 3. Every other name is an item of the program, in all of its files.
//
//===----------------------------------------------------------------------===//
#include "compiler/tkc/lsp/Document.h"

#include "frontend/Gradient.h"
#include "frontend/Program.h"
#include "frontend/Sema.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace tk::lsp {

std::string canonicalPath(const std::string &path) {
  std::error_code failed;
  std::filesystem::path canonical = std::filesystem::weakly_canonical(path, failed);
  return failed ? path : canonical.string();
}

/// Units of UTF-16 that a UTF-8 sequence of `length` bytes takes.
static std::int64_t unitsOf(std::uint32_t length) { return length == 4 ? 2 : 1; }

Utf16Place placeOf(const SourceFile &file, std::uint32_t offset) {
  offset = std::min(offset, file.size());
  const std::uint32_t line = file.lineColumn(offset).line;
  Utf16Place place{line - 1, 0};
  for (std::uint32_t i = file.lineStart(line); i < offset;) {
    const std::uint32_t length = std::max(1u, utf8Length(file.text(), i));
    place.column += unitsOf(length);
    i += length;
  }
  return place;
}

std::uint32_t offsetOf(const SourceFile &file, Utf16Place place) {
  if (place.line < 0)
    return 0;
  if (place.line >= file.lineCount())
    return file.size();
  const auto line = static_cast<std::uint32_t>(place.line) + 1;
  std::uint32_t i = file.lineStart(line);
  const auto end = i + static_cast<std::uint32_t>(file.line(line).size());
  for (std::int64_t column = 0; i < end && column < place.column;) {
    const std::uint32_t length = std::max(1u, utf8Length(file.text(), i));
    column += unitsOf(length);
    i += length;
  }
  return std::min(i, end);
}

/// Reads NAME=INT words behind "tk:".
static void readSizes(std::string_view comment, std::map<std::string, std::int64_t> &sizes) {
  std::size_t at = comment.find("tk:");
  if (at == std::string_view::npos || comment.find_first_not_of("/ \t") != at)
    return;
  for (at += 3; at < comment.size();) {
    const std::size_t end = std::min(comment.find_first_of(" ,\t", at), comment.size());
    const std::string_view word = comment.substr(at, end - at);
    std::int64_t value = 0;
    if (const std::size_t equals = word.find('='); equals != std::string_view::npos) {
      const char *last = word.data() + word.size();
      auto [read, status] = std::from_chars(word.data() + equals + 1, last, value);
      if (status == std::errc() && read == last && value >= 0)
        sizes[std::string(word.substr(0, equals))] = value;
    }
    at = end + 1;
  }
}

Document::Document(const std::string &path, const std::string &text, const OpenTexts &open)
    : mainFile(sources.add(path, text)), diags(sources) {
  ParseOptions options;
  options.open = &open;
  program = parseProgram(sources, mainFile, diags, options);
  frontend::deriveGradients(sources, *program, diags);
  module = frontend::analyze(*program, diags);
  Diagnostics reported(sources);
  lexed = lex(sources.file(mainFile), reported);
  for (Span comment : lexed.comments)
    readSizes(sources.text(comment), sizes);
}

std::optional<Token> Document::nameAt(std::uint32_t offset) const {
  for (const Token &token : lexed.tokens)
    if (token.kind == TokenKind::Identifier && token.span.begin <= offset &&
        offset <= token.span.end)
      return token;
  return std::nullopt;
}

const ast::Item *Document::itemAt(std::uint32_t offset) const {
  for (const ast::ItemPtr &item : tree().items)
    if (item->span.file == mainFile && item->span.begin <= offset && offset <= item->span.end)
      return item.get();
  return nullptr;
}

Span Document::statementAt(const ast::Kernel &kernel, std::uint32_t offset) const {
  for (const ast::StmtPtr &stmt : kernel.statements)
    if (stmt->span.begin <= offset && offset <= stmt->span.end)
      return stmt->span;
  return {};
}

/// Calls `visit` with each index that an expression binds.
template <typename Visit> static void eachBinder(const ast::Expr *e, Visit visit) {
  if (!e)
    return;
  if (const auto *unary = ast::as<ast::Unary>(e))
    eachBinder(unary->operand.get(), visit);
  if (const auto *binary = ast::as<ast::Binary>(e))
    for (const ast::ExprPtr *side : {&binary->lhs, &binary->rhs})
      eachBinder(side->get(), visit);
  if (const auto *choice = ast::as<ast::If>(e))
    for (const ast::ExprPtr *part : {&choice->condition, &choice->thenExpr, &choice->elseExpr})
      eachBinder(part->get(), visit);
  if (const auto *call = ast::as<ast::Call>(e))
    for (const ast::ExprPtr &arg : call->args)
      eachBinder(arg.get(), visit);
  if (const auto *access = ast::as<ast::Access>(e))
    for (const ast::ExprPtr &index : access->indices)
      eachBinder(index.get(), visit);
  if (const auto *reduce = ast::as<ast::Reduce>(e)) {
    if (!ast::keepsIndex(reduce->reduceKind))
      for (const ast::IndexPtr &binder : reduce->binders)
        visit(*binder);
    eachBinder(reduce->body.get(), visit);
  }
}

/// Calls `visit` with each index of a statement.
template <typename Visit> static void eachIndex(const ast::Stmt &stmt, Visit visit) {
  if (const auto *let = ast::as<ast::LetTensor>(&stmt))
    for (const ast::IndexPtr &index : let->indices)
      visit(*index);
  if (const auto *define = ast::as<ast::Define>(&stmt))
    for (const ast::IndexPtr &index : define->indices)
      visit(*index);
  eachBinder(stmt.value.get(), visit);
}

std::map<std::string, std::pair<std::string, Span>>
Document::declaredBy(const ast::Kernel &kernel) const {
  std::map<std::string, std::pair<std::string, Span>> names;
  for (const ast::ParamPtr &param : kernel.params)
    names.try_emplace(param->name, "parameter", param->nameSpan);
  for (const ast::ParamPtr &result : kernel.results)
    names.try_emplace(result->name, "result", result->nameSpan);
  for (const ast::StmtPtr &stmt : kernel.statements) {
    const auto *scalar = ast::as<ast::LetScalar>(stmt.get());
    const auto *tensor = ast::as<ast::LetTensor>(stmt.get());
    if (scalar || tensor) {
      const ast::Decl &decl = scalar ? static_cast<const ast::Decl &>(*scalar) : *tensor;
      names.try_emplace(decl.name, "local", decl.nameSpan);
    }
  }
  for (const ast::ParamPtr &param : kernel.params)
    for (const ast::ExprPtr &dim : param->dims)
      if (const auto *ref = ast::as<ast::NameRef>(dim.get()))
        names.try_emplace(ref->name, "dimension", ref->span);
  for (const ast::ExprPtr &constraint : kernel.constraints)
    if (const auto *equal = ast::as<ast::Binary>(constraint.get());
        equal && equal->op == ast::BinaryOp::Eq)
      if (const auto *ref = ast::as<ast::NameRef>(equal->lhs.get()))
        names.try_emplace(ref->name, "dimension", ref->span);
  return names;
}

std::map<std::string, std::pair<std::string, Span>> Document::itemNames() const {
  std::map<std::string, std::pair<std::string, Span>> names;
  for (const std::unique_ptr<ast::File> &file : program->files)
    for (const ast::ItemPtr &item : file->items) {
      auto add = [&](const ast::Decl &decl, const char *kind) {
        names.try_emplace(decl.name, kind, decl.nameSpan);
      };
      if (const auto *kernel = ast::as<ast::Kernel>(item.get()); kernel && !kernel->derived)
        add(*kernel, "kernel");
      if (const auto *fn = ast::as<ast::Fn>(item.get()))
        add(*fn, "function");
      if (const auto *constant = ast::as<ast::Const>(item.get()))
        add(*constant, "constant");
      if (item->kind == ast::ItemKind::Grad)
        add(static_cast<const ast::Grad &>(*item), "gradient");
    }
  return names;
}

/// Adds each token of the thing's name in a span.
void Document::collect(NamedThing &thing, Span within) const {
  Diagnostics ignored(sources);
  const LexedFile other =
      within.file == mainFile ? LexedFile() : lex(sources.file(within.file), ignored);
  for (const Token &token : (within.file == mainFile ? lexed : other).tokens)
    if (token.kind == TokenKind::Identifier && token.span.begin >= within.begin &&
        token.span.end <= within.end && sources.text(token.span) == thing.name)
      thing.occurrences.push_back(token.span);
}

std::optional<NamedThing> Document::thingAt(std::uint32_t offset) const {
  std::optional<Token> token = nameAt(offset);
  const ast::Item *item = itemAt(offset);
  if (!token || !item)
    return std::nullopt;
  NamedThing thing;
  thing.name = sources.text(token->span);
  auto local = [&](const char *kind, Span declaration, Span scope) {
    thing.kind = kind;
    thing.declaration = declaration;
    collect(thing, scope);
    return thing;
  };
  if (const auto *kernel = ast::as<ast::Kernel>(item)) {
    thing.kernel = kernel;
    const auto declared = declaredBy(*kernel);
    if (auto found = declared.find(thing.name); found != declared.end())
      return local(found->second.first.c_str(), found->second.second, item->span);
    for (const ast::StmtPtr &stmt : kernel->statements) {
      if (offset < stmt->span.begin || offset > stmt->span.end)
        continue;
      Span declaration;
      eachIndex(*stmt, [&](const ast::Index &index) {
        if (index.name == thing.name && !declaration.valid())
          declaration = index.nameSpan;
      });
      if (declaration.valid())
        return local("index", declaration, stmt->span);
    }
  }
  if (const auto *fn = ast::as<ast::Fn>(item)) {
    for (const auto &param : fn->params)
      if (param->name == thing.name)
        return local("parameter", param->nameSpan, item->span);
    Span declaration;
    eachBinder(fn->body.get(), [&](const ast::Index &index) {
      if (index.name == thing.name && !declaration.valid())
        declaration = index.nameSpan;
    });
    if (declaration.valid())
      return local("index", declaration, item->span);
  }
  const auto items = itemNames();
  auto found = items.find(thing.name);
  if (found == items.end())
    return std::nullopt;
  thing.kind = found->second.first;
  thing.declaration = found->second.second;
  for (const std::unique_ptr<ast::File> &file : program->files)
    if (sources.file(file->id).name().ends_with(".tk"))
      collect(thing, sources.file(file->id).all());
  const ast::Fn *fn = functionNamed(thing.name);
  thing.isRenamable = !fn || !fn->ofLibrary;
  return thing;
}

const ast::Fn *Document::functionNamed(const std::string &name) const {
  for (auto file = program->files.rbegin(); file != program->files.rend(); ++file)
    for (const ast::ItemPtr &item : (*file)->items)
      if (const auto *fn = ast::as<ast::Fn>(item.get()); fn && fn->name == name)
        return fn;
  return nullptr;
}

const sema::Kernel *Document::analysed(const ast::Kernel &kernel) const {
  if (module)
    for (const auto &made : module->kernels)
      if (made->source == &kernel)
        return made.get();
  return nullptr;
}

std::map<std::string, std::string> Document::namesAt(std::uint32_t offset) const {
  std::map<std::string, std::string> names;
  for (const auto &[name, what] : itemNames())
    names[name] = what.first;
  const ast::Item *item = itemAt(offset);
  if (const auto *kernel = ast::as<ast::Kernel>(item)) {
    for (const auto &[name, what] : declaredBy(*kernel))
      names[name] = what.first;
    for (const ast::StmtPtr &stmt : kernel->statements)
      if (stmt->span.begin <= offset && offset <= stmt->span.end + 1)
        eachIndex(*stmt, [&](const ast::Index &index) { names[index.name] = "index"; });
  }
  if (const auto *fn = ast::as<ast::Fn>(item))
    for (const auto &param : fn->params)
      names[param->name] = "parameter";
  return names;
}

const ast::Fn *Document::callAt(std::uint32_t offset, unsigned &argument) const {
  argument = 0;
  int depth = 0;
  auto at = std::lower_bound(lexed.tokens.begin(), lexed.tokens.end(), offset,
                             [](const Token &t, std::uint32_t o) { return t.span.end <= o; });
  while (at != lexed.tokens.begin()) {
    --at;
    const bool opens = at->kind == TokenKind::LParen || at->kind == TokenKind::LBracket;
    if (at->kind == TokenKind::RParen || at->kind == TokenKind::RBracket)
      ++depth;
    else if (opens && depth > 0)
      --depth;
    else if (at->kind == TokenKind::Comma && depth == 0)
      ++argument;
    else if (opens || at->kind == TokenKind::LBrace) {
      if (at->kind != TokenKind::LParen || at == lexed.tokens.begin())
        return nullptr;
      return functionNamed(std::string(sources.text(std::prev(at)->span)));
    }
  }
  return nullptr;
}

} // namespace tk::lsp
