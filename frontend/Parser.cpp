// Tokens, brackets and recovery; the productions are in ParseItem, ParseStmt and ParseExpr.

#include "frontend/Parser.h"

namespace tk {

const Token &Parser::expect(TokenKind kind, std::string_view where, std::string_view hint) {
  if (is(kind))
    return take();
  diags.error(Diag::ExpectedToken, peek().span).help(std::string(hint))
      << "expected " << describe(kind) << ' ' << where << ", found " << found();
  throw SyntaxError();
}

const Token &Parser::expectName(std::string_view what) {
  if (is(TokenKind::Identifier))
    return take();
  if (isReservedWord(peek().kind))
    diags.error(Diag::ReservedWord, peek().span).help("choose another name")
        << "expected " << what << ", but " << found() << " is a word of the language";
  else
    diags.error(Diag::ExpectedToken, peek().span) << "expected " << what << ", found " << found();
  throw SyntaxError();
}

const Token &Parser::expectWord(std::string_view word, std::string_view where) {
  if (isWord(word))
    return take();
  diags.error(Diag::ExpectedToken, peek().span)
      << "expected '" << word << "' " << where << ", found " << found();
  throw SyntaxError();
}

std::string Parser::found() const {
  const Token &token = peek();
  if (token.kind == TokenKind::Eof)
    return "the end of the file";
  std::string_view spelling = text(token);
  constexpr std::size_t longest = 40;
  if (spelling.size() > longest)
    return "'" + std::string(spelling.substr(0, longest)) + "...'";
  return "'" + std::string(spelling) + "'";
}

Span Parser::afterLast() const {
  std::uint32_t end = position ? tokens[position - 1].span.end : 0;
  return {file.id(), end, end};
}

void Parser::closeBracket(const Token &open, TokenKind close, std::string_view what) {
  if (accept(close))
    return;
  diags.error(Diag::UnclosedBracket, peek().span).label(open.span, "opened here")
      << "expected ',' or " << describe(close) << " in " << what << ", found " << found();
  throw SyntaxError();
}

bool Parser::atStatementEnd() const {
  return is(TokenKind::Semicolon) || is(TokenKind::RBrace) || is(TokenKind::Eof) ||
         peek().newlineBefore;
}

/// end-of-statement := ';' | end of line | before '}'
void Parser::endStatement() {
  if (!atStatementEnd()) {
    diags.error(Diag::ExpectedEndOfStatement, peek().span)
            .help(is(TokenKind::At)
                      ? "a product of matrices is a sum: c[i, j] = sum[k](a[i, k] * b[k, j])"
                      : "a statement ends at the end of its line or with ';'")
        << "expected the end of the statement, found " << found();
    throw SyntaxError();
  }
  while (accept(TokenKind::Semicolon)) {
  }
}

bool Parser::atItemStart() const {
  if (!peek().newlineBefore)
    return false;
  if (is(TokenKind::At))
    return true;
  TokenKind next = peek(1).kind;
  for (std::string_view word : {"kernel", "fn", "const", "schedule", "grad"})
    if (isWord(word))
      return next == TokenKind::Identifier;
  if (atMesh())
    return true;
  return isWord("import") && (next == TokenKind::String || next == TokenKind::Identifier);
}

/// Skips to what can start a statement, at least one token past `from` (where the failed one
/// began).
void Parser::skipToStatement(std::uint32_t from) {
  if (position == from && !is(TokenKind::Eof))
    take();
  while (!atStatementEnd() && !atItemStart())
    take();
  while (accept(TokenKind::Semicolon)) {
  }
}

void Parser::skipToItem() {
  while (!is(TokenKind::Eof) && !atItemStart())
    take();
}

/// Where no production applies: a pile of brackets deserves the message about its depth.
void Parser::checkNesting() {
  for (std::uint32_t depth = 0; depth <= limits.nesting; ++depth) {
    TokenKind kind = peek(depth).kind;
    if (kind != TokenKind::LParen && kind != TokenKind::LBracket && kind != TokenKind::LBrace)
      return;
  }
  diags.error(Diag::NestingTooDeep, peek(limits.nesting).span)
      << "nesting deeper than " << limits.nesting;
  throw LimitError();
}

Parser::Nest::Nest(Parser &parser, Span span) : parser(parser) {
  if (parser.nesting >= parser.limits.nesting) {
    parser.diags.error(Diag::NestingTooDeep, span)
        << "nesting deeper than " << parser.limits.nesting;
    throw LimitError();
  }
  ++parser.nesting;
}

} // namespace tk
