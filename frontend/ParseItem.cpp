// Items of a file.

#include "frontend/Parser.h"

#include <algorithm>

namespace tk {

using namespace ast;

// file := {item}
std::unique_ptr<File> Parser::parseFile() {
  auto out = std::make_unique<File>();
  out->id = file.id();
  while (accept(TokenKind::Semicolon)) {
  }
  while (!is(TokenKind::Eof)) {
    std::size_t before = position;
    operations = 0;
    try {
      parseItem(*out);
    } catch (const SyntaxError &) {
      skipToItem();
    } catch (const LimitError &) {
      skipToItem();
    }
    if (position == before)
      take();
    while (accept(TokenKind::Semicolon)) {
    }
  }
  return out;
}

// item := {'@' NAME} kernel | fn | const | import | schedule | grad | mesh
void Parser::parseItem(File &out) {
  std::uint32_t begin = peek().span.begin;
  bool deterministic = false, batchInvariant = false;
  Span attribute;
  while (accept(TokenKind::At)) {
    const Token &name = expectName("an attribute after '@'");
    attribute = name.span;
    static constexpr std::string_view known[] = {"deterministic", "batch_invariant"};
    if (text(name) == known[0])
      deterministic = true;
    else if (text(name) == known[1])
      batchInvariant = true;
    else
      diags.error(Diag::UnknownAttribute, name.span)
              .expected("@deterministic or @batch_invariant")
              .help(didYouMean(text(name), known))
          << "'@" << text(name) << "' is not an attribute of a kernel";
  }
  ItemPtr item;
  if (isWord("kernel")) {
    item = parseKernel();
    auto &kernel = static_cast<Kernel &>(*item);
    kernel.deterministic = deterministic || batchInvariant;
    kernel.batchInvariant = batchInvariant;
  } else if (attribute.valid()) {
    diags.error(Diag::ExpectedToken, peek().span)
        << "expected 'kernel' after an attribute, found " << found();
    throw SyntaxError();
  } else if (isWord("fn")) {
    item = parseFn();
  } else if (isWord("const")) {
    item = parseConst();
  } else if (isWord("import")) {
    item = parseImport();
  } else if (isWord("schedule")) {
    item = parseSchedule();
  } else if (isWord("grad")) {
    item = parseGrad();
  } else if (atMesh()) {
    item = parseMesh();
    rejectSecondMesh(out, *item);
  } else {
    checkNesting();
    static constexpr std::string_view words[] = {"kernel",   "fn",   "const", "import",
                                                 "schedule", "grad", "mesh"};
    std::string hint = is(TokenKind::Identifier) ? didYouMean(text(peek()), words) : "";
    for (std::string_view word : {"def", "func", "function", "void", "proc"})
      if (isWord(word))
        hint = "a kernel begins with 'kernel', a scalar function with 'fn'";
    diags.error(Diag::ExpectedItem, peek().span).help(hint)
        << "expected kernel, fn, const, import, schedule, grad or mesh, found " << found();
    throw SyntaxError();
  }
  item->span = spanFrom(begin);
  out.items.push_back(std::move(item));
}

// kernel := 'kernel' NAME params ['->' results] ['where' expr {',' expr}] body
ItemPtr Parser::parseKernel() {
  auto kernel = std::make_unique<Kernel>();
  std::uint32_t begin = take().span.begin;
  try {
    parseKernelHeader(*kernel);
    kernel->signatureSpan = spanFrom(begin);
    if (isWord("where")) {
      take();
      do {
        kernel->constraints.push_back(parseExpr());
      } while (accept(TokenKind::Comma) && !is(TokenKind::LBrace));
    }
    if (!is(TokenKind::LBrace))
      expect(TokenKind::LBrace, "before the statements of '" + kernel->name + "'");
  } catch (const SyntaxError &) {
    // The body may still be worth reading.
    while (!is(TokenKind::LBrace) && !is(TokenKind::Eof) && !atItemStart())
      take();
    if (!is(TokenKind::LBrace))
      return kernel;
  }
  parseBody(*kernel);
  return kernel;
}

void Parser::parseKernelHeader(Kernel &kernel) {
  const Token &name = expectName("a name after 'kernel'");
  kernel.name = this->name(name);
  kernel.nameSpan = name.span;
  parseParams(kernel.params, DeclKind::Param);
  // Parameters that statements overwrite are results enough.
  if (!is(TokenKind::Arrow) &&
      std::ranges::any_of(kernel.params, [](const ParamPtr &param) { return param->inout; }))
    return;
  expect(TokenKind::Arrow, "and the results after the parameters",
         "results have a name and a type: -> (y: f32[N]); a kernel without any has an 'inout' "
         "parameter");
  parseParams(kernel.results, DeclKind::Result);
}

// params := '(' list(param) ')'         results := params
void Parser::parseParams(std::vector<ParamPtr> &out, DeclKind kind) {
  bool isParam = kind == DeclKind::Param;
  const Token &open =
      expect(TokenKind::LParen, isParam ? "before the parameters" : "before the results",
             isParam ? "" : "results stand in parentheses: -> (y: f32[N])");
  list(open, TokenKind::RParen, isParam ? "the parameters" : "the results",
       [&] { out.push_back(parseParam(kind)); });
}

// param := {'strided' | 'inout'} NAME ':' dtype ['[' list(extent) ']'] ['=' expr]
ParamPtr Parser::parseParam(DeclKind kind) {
  auto param = std::make_unique<Param>(kind);
  std::uint32_t begin = peek().span.begin;
  parseQualifiers(*param);
  Span qualifiers = spanFrom(begin);
  const Token &name = expectName(kind == DeclKind::Param ? "a parameter" : "a result");
  param->name = this->name(name);
  param->nameSpan = name.span;
  std::string withType;
  if (is(TokenKind::Assign))
    withType = "a default value stands behind the type: " + param->name + ": f32 = ...";
  expect(TokenKind::Colon, "after '" + param->name + "', and its type", withType);
  param->dtype = parseDType(param->dtypeSpan);
  if (opensHere(TokenKind::LBracket)) {
    const Token &open = take();
    param->isTensor = true;
    list(open, TokenKind::RBracket, "the dimensions of '" + param->name + "'",
         [&] { parseExtent(*param); });
  }
  if (is(TokenKind::Assign))
    parseDefault(*param);
  param->span = spanFrom(begin);

  if (param->inout && kind == DeclKind::Result)
    diags.error(Diag::MisplacedQualifier, qualifiers)
        << "'inout' applies to tensor parameters, and '" << param->name << "' is a result";
  else if ((param->strided || param->inout) && !param->isTensor)
    diags.error(Diag::MisplacedQualifier, qualifiers)
        << "'" << (param->strided ? "strided" : "inout") << "' applies to tensors, and '"
        << param->name << "' is a scalar";
  if (kind == DeclKind::Result && !param->isTensor)
    diags.error(Diag::ExpectedToken, {file.id(), param->dtypeSpan.end, param->dtypeSpan.end})
            .help("results are tensors; a single number is '" + param->name + ": " +
                  std::string(spelling(param->dtype)) + "[]'")
            .fix({file.id(), param->dtypeSpan.end, param->dtypeSpan.end}, "[]")
        << "expected '[' after the type of result '" << param->name << "'";
  return param;
}

// extent := expr ['@' NAME]
void Parser::parseExtent(Param &param) {
  param.dims.push_back(parseExpr());
  MeshAxis &axis = param.shards.emplace_back();
  if (!is(TokenKind::At))
    return;
  if (peek().newlineBefore)
    diags.error(Diag::ExpectedToken, peek().span).help("write the axis behind the extent: N @ tp")
        << "'@' does not continue a line";
  take();
  const Token &name = expectName("an axis of the mesh after '@'");
  axis = {this->name(name), name.span};
}

void Parser::parseQualifiers(Param &param) {
  // `strided` before a colon is a parameter of that name.
  while ((isWord("strided") || isWord("inout")) && peek(1).kind != TokenKind::Colon)
    (text(take()) == "strided" ? param.strided : param.inout) = true;
}

void Parser::parseDefault(Param &param) {
  Span assign = take().span;
  param.defaultValue = parseExpr();
  if (param.declKind == DeclKind::Result || param.isTensor)
    diags.error(Diag::MisplacedQualifier, join(assign, param.defaultValue->span))
        << "only a scalar parameter can have a default, and '" << param.name << "' is a "
        << (param.declKind == DeclKind::Result ? "result" : "tensor");
}

// body := '{' {statement} '}'
void Parser::parseBody(Kernel &kernel) {
  const Token &open = take();
  while (accept(TokenKind::Semicolon)) {
  }
  while (!is(TokenKind::RBrace)) {
    if (is(TokenKind::Eof) || atItemStart()) {
      diags.error(Diag::UnclosedBracket, afterLast()).label(open.span, "opened here")
          << "expected '}' at the end of kernel '" << kernel.name << "', found " << found();
      return;
    }
    auto before = static_cast<std::uint32_t>(position);
    try {
      kernel.statements.push_back(parseStatement());
    } catch (const SyntaxError &) {
      skipToStatement(before);
    }
  }
  take();
}

// fn := 'fn' NAME '(' list(NAME) ')' '=' expr
ItemPtr Parser::parseFn() {
  take();
  auto fn = std::make_unique<Fn>();
  const Token &name = expectName("a name after 'fn'");
  fn->name = this->name(name);
  fn->nameSpan = name.span;
  const Token &open = expect(TokenKind::LParen, "before the parameters of '" + fn->name + "'");
  list(open, TokenKind::RParen, "the parameters of '" + fn->name + "'", [&] {
    const Token &param = expectName("a parameter");
    fn->params.push_back(std::make_unique<FnParam>(this->name(param), param.span));
  });
  expect(TokenKind::Assign, "after the parameters of '" + fn->name + "'");
  fn->body = parseExpr();
  endStatement();
  return fn;
}

// const := 'const' NAME '=' expr
ItemPtr Parser::parseConst() {
  take();
  auto constant = std::make_unique<Const>();
  const Token &name = expectName("a name after 'const'");
  constant->name = this->name(name);
  constant->nameSpan = name.span;
  expect(TokenKind::Assign, "after 'const " + constant->name + "'");
  constant->value = parseExpr();
  endStatement();
  return constant;
}

// import := 'import' (STRING | NAME)
ItemPtr Parser::parseImport() {
  take();
  auto import = std::make_unique<Import>();
  if (is(TokenKind::Identifier)) {
    const Token &library = take();
    import->ofLibrary = true;
    import->pathSpan = library.span;
    import->path = name(library);
    endStatement();
    return import;
  }
  const Token &path = expect(TokenKind::String, "after 'import': the file, in quotes, or std");
  if (path.span.size() < 2 || !text(path).ends_with('"'))
    throw SyntaxError(); // the lexer has reported it
  import->pathSpan = path.span;
  import->path = name(path);
  std::erase(import->path, '"');
  endStatement();
  return import;
}

// grad := 'grad' NAME '=' NAME 'wrt' '(' list(NAME) ')'
ItemPtr Parser::parseGrad() {
  take();
  auto grad = std::make_unique<Grad>();
  const Token &name = expectName("a name after 'grad'");
  grad->name = this->name(name);
  grad->nameSpan = name.span;
  expect(TokenKind::Assign, "after 'grad " + grad->name + "'");
  const Token &primal = expectName("the name of a kernel");
  grad->primal = this->name(primal);
  grad->primalSpan = primal.span;
  expectWord("wrt", "and the parameters to differentiate by");
  const Token &open = expect(TokenKind::LParen, "after 'wrt'");
  list(open, TokenKind::RParen, "the parameters to differentiate by", [&] {
    const Token &argument = expectName("a parameter of '" + grad->primal + "'");
    grad->wrt.push_back({this->name(argument), argument.span});
  });
  endStatement();
  return grad;
}

// mesh := 'mesh' '(' list(NAME) ')'
ItemPtr Parser::parseMesh() {
  Span word = take().span;
  auto mesh = std::make_unique<Mesh>();
  const Token &open = expect(TokenKind::LParen, "after 'mesh'", "the axes: mesh (dp, tp)");
  list(open, TokenKind::RParen, "the axes of the mesh", [&] {
    const Token &axis = expectName("the name of an axis");
    mesh->axes.push_back({name(axis), axis.span});
  });
  if (mesh->axes.empty())
    diags.error(Diag::ExpectedToken, word) << "a mesh has one or more axes: mesh (tp)";
  endStatement();
  return mesh;
}

void Parser::rejectSecondMesh(const File &out, const Item &mesh) {
  for (const ItemPtr &item : out.items)
    if (const auto *first = as<Mesh>(item.get()))
      diags.error(Diag::SecondMesh, static_cast<const Mesh &>(mesh).axes.empty()
                                        ? spanFrom(0)
                                        : static_cast<const Mesh &>(mesh).axes.front().span)
              .label(first->span, "the mesh of the file")
              .help("write all axes in one list: mesh (dp, tp)")
          << "a file has one mesh";
}

// schedule := 'schedule' NAME ['for' NAME] ['when' expr] '{' {entry} '}'
ItemPtr Parser::parseSchedule() {
  take();
  auto schedule = std::make_unique<Schedule>();
  const Token &name = expectName("the name of a kernel after 'schedule'");
  schedule->name = this->name(name);
  schedule->nameSpan = name.span;
  if (isWord("for")) {
    take();
    const Token &arch = expectName("an architecture such as sm_90a after 'for'");
    schedule->arch = this->name(arch);
    schedule->archSpan = arch.span;
  }
  if (isWord("when")) {
    take();
    schedule->when = parseExpr();
  }
  const Token &open = expect(TokenKind::LBrace, "before the entries of the schedule");
  while (accept(TokenKind::Semicolon)) {
  }
  while (!accept(TokenKind::RBrace)) {
    if (is(TokenKind::Eof) || atItemStart()) {
      diags.error(Diag::UnclosedBracket, afterLast()).label(open.span, "opened here")
          << "expected '}' at the end of the schedule, found " << found();
      break;
    }
    auto before = static_cast<std::uint32_t>(position);
    try {
      parseScheduleEntry(*schedule);
    } catch (const SyntaxError &) {
      skipToStatement(before);
    }
  }
  return schedule;
}

// entry := NAME ['=' expr] | NAME NAME '=' expr {',' NAME '=' expr}
void Parser::parseScheduleEntry(Schedule &schedule) {
  const Token &key = expectName("a key such as tile or stages");
  ScheduleEntry entry;
  entry.key = name(key);
  entry.keySpan = key.span;
  bool named = is(TokenKind::Identifier) && !peek().newlineBefore;
  if (!named && !is(TokenKind::Assign)) {
    entry.values.push_back({{}, {}, nullptr, key.span}); // a bare key: `persistent`
  } else {
    do {
      ScheduleValue value;
      std::uint32_t begin = peek().span.begin;
      if (named) {
        const Token &axis = expectName("an index of the kernel");
        value.axis = name(axis);
        value.axisSpan = axis.span;
      }
      expect(TokenKind::Assign, "in the entry '" + entry.key + "'");
      value.value = parseExpr();
      value.span = spanFrom(begin);
      entry.values.push_back(std::move(value));
    } while (named && accept(TokenKind::Comma));
  }
  entry.span = spanFrom(key.span.begin);
  endStatement();
  schedule.entries.push_back(std::move(entry));
}

} // namespace tk
