// Statements, and the lists of indices on their left sides.

#include "frontend/Parser.h"

#include <array>

namespace tk {

using namespace ast;

// statement := let | define | assert
StmtPtr Parser::parseStatement() {
  std::uint32_t begin = peek().span.begin;
  StmtPtr stmt;
  if (is(TokenKind::Let)) {
    stmt = parseLet();
  } else if (atAssert()) {
    stmt = parseAssert();
  } else if (is(TokenKind::Identifier)) {
    rejectForeignStatement();
    stmt = parseDefine();
  } else {
    diags.error(Diag::ExpectedToken, peek().span)
        << "expected a statement ('let t[i] = ...' or 'result[i] = ...'), found " << found();
    throw SyntaxError();
  }
  stmt->span = spanFrom(begin);
  endStatement();
  return stmt;
}

/// `assert` is a name where no condition begins behind it.
bool Parser::atAssert() const {
  const Token &next = peek(1);
  return isWord("assert") && !next.newlineBefore && beginsCondition(next.kind);
}

// assert := 'assert' expr
StmtPtr Parser::parseAssert() {
  take();
  auto stmt = std::make_unique<Assert>();
  stmt->value = parseExpr();
  return stmt;
}

/// `for`, `while` and `return` of other languages, which are names here.
void Parser::rejectForeignStatement() {
  const bool isLoop = isWord("for") || isWord("while"), isReturn = isWord("return");
  const Token &next = peek(1);
  const bool isName = next.kind == TokenKind::Assign || next.kind == TokenKind::LBracket ||
                      next.kind == TokenKind::Colon;
  if ((!isLoop && !isReturn) || isName)
    return;
  diags.error(Diag::ExpectedToken, peek().span)
          .help(isLoop ? "a statement runs for all values of the indices on its left side: "
                         "y[i] = x[i, 0]; a sum over an index is sum[k](...)"
                       : "a result is defined by its name: y[i] = ...")
      << "expected a statement, found " << found() << ": the language has no "
      << (isLoop ? "loops" : "return");
  take();
  if (isLoop)
    skipBraces();
  throw SyntaxError();
}

/// Skips a block that begins on this line.
void Parser::skipBraces() {
  while (!atStatementEnd() && !is(TokenKind::LBrace))
    take();
  unsigned depth = 0;
  while (!is(TokenKind::Eof) && (is(TokenKind::LBrace) || depth > 0)) {
    depth += is(TokenKind::LBrace) ? 1 : 0;
    depth -= is(TokenKind::RBrace) ? 1 : 0;
    take();
    if (depth == 0)
      return;
  }
}

// let := 'let' NAME ['[' list(index) ']'] [':' dtype] '=' expr
StmtPtr Parser::parseLet() {
  take();
  const Token &name = expectName("a name after 'let'");
  std::vector<IndexPtr> indices;
  bool isTensor = opensHere(TokenKind::LBracket);
  if (isTensor)
    indices = parseIndices();
  Span lhs = spanFrom(name.span.begin);
  std::optional<DType> dtype;
  Span dtypeSpan;
  if (accept(TokenKind::Colon))
    dtype = parseDType(dtypeSpan);
  expect(TokenKind::Assign, "in the definition of '" + this->name(name) + "'");
  ExprPtr value = parseExpr();

  auto fill = [&](auto stmt) {
    stmt->name = this->name(name);
    stmt->nameSpan = name.span;
    stmt->dtype = dtype;
    stmt->dtypeSpan = dtypeSpan;
    stmt->value = std::move(value);
    return stmt;
  };
  if (!isTensor)
    return fill(std::make_unique<LetScalar>());
  auto stmt = fill(std::make_unique<LetTensor>());
  stmt->indices = std::move(indices);
  stmt->lhsSpan = lhs;
  return stmt;
}

// define := NAME ['[' list(index) ']'] '=' expr
StmtPtr Parser::parseDefine() {
  const Token &name = take();
  auto stmt = std::make_unique<Define>();
  stmt->name = this->name(name);
  stmt->nameSpan = name.span;
  if (opensHere(TokenKind::LBracket)) {
    stmt->bracketed = true;
    stmt->indices = parseIndices();
  }
  stmt->lhsSpan = spanFrom(name.span.begin);
  if (is(TokenKind::Colon)) {
    diags.error(Diag::ExpectedToken, peek().span)
            .help("a result has the type of its declaration; 'let " + stmt->name +
                  "[...]: type = ...' declares a local tensor")
        << "expected '=' in the definition of '" << stmt->name << "', found ':'";
    throw SyntaxError();
  }
  if (peek(1).kind == TokenKind::Assign && peek(1).span.begin == peek().span.end) {
    diags.error(Diag::ExpectedToken, peek().span)
            .help("each element is defined once; to add up over an index, write sum[k](...)")
        << "expected '=' in the definition of '" << stmt->name << "', found '" << text(peek())
        << "='";
    throw SyntaxError();
  }
  expect(TokenKind::Assign, "in the definition of '" + stmt->name + "'");
  stmt->value = parseExpr();
  return stmt;
}

std::vector<IndexPtr> Parser::parseIndices() {
  const Token &open = take();
  std::vector<IndexPtr> indices;
  list(open, TokenKind::RBracket, "the indices", [&] { indices.push_back(parseIndex()); });
  return indices;
}

// index := NAME ['in' expr '..' expr]
IndexPtr Parser::parseIndex() {
  const Token &token = peek();
  if (token.kind != TokenKind::Identifier && !isReservedWord(token.kind)) {
    diags.error(Diag::ExpectedToken, token.span)
            .help("an index is a name; with a range it is written 'i in lo..hi'")
        << "expected an index name, found " << found();
    throw SyntaxError();
  }
  expectName("an index name");
  if (is(TokenKind::LBracket)) {
    diags.error(Diag::ExpectedToken, peek().span)
            .help("each element is defined from what it reads: y[n] = sum[i](if id[i] == n then "
                  "x[i] else 0) gathers what y[id[i]] += x[i] would scatter")
        << "expected ',' or ']' in the indices, found '[': the left side takes index names only";
    throw SyntaxError();
  }
  auto index = std::make_unique<Index>(name(token), token.span);
  if (isWord("in")) {
    take();
    index->lo = parseExpr();
    expect(TokenKind::DotDot, "in the range of '" + index->name + "'");
    index->hi = parseExpr();
    index->span = spanFrom(token.span.begin);
  }
  return index;
}

// dtype := 'f64' | 'f32' | 'f16' | 'bf16' | 'f8e4m3' | 'f8e5m2' | 'i64' | 'i32' | 'i16' | 'i8'
//        | 'u8' | 'bool'
DType Parser::parseDType(Span &span) {
  const Token &token = expectName("an element type");
  span = token.span;
  if (auto type = ast::parseDType(text(token)))
    return *type;
  std::array<std::string_view, 12> names;
  std::string all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i] = spelling(static_cast<DType>(i));
    all += (i ? " " : "") + std::string(names[i]);
  }
  std::string hint = didYouMean(text(token), names);
  if (auto type = ast::parseForeignDType(text(token)))
    hint = "did you mean '" + std::string(spelling(*type)) + "'?";
  diags.error(Diag::UnknownType, span).expected("one of " + all).help(hint)
      << "'" << text(token) << "' is not an element type";
  return DType::F32; // parsing goes on
}

} // namespace tk
