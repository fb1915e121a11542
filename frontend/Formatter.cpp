// Lays tokens and comments out anew.
//
// 1. Parse; with a syntax error the text stays as it is.
// 2. Walk tokens and comments in order. A piece that was first on its line stays so; several blank
//    lines become one, and none is kept at the ends of a file or of a body.
// 3. A line is indented by two for each open brace, and by four more if it continues a statement.
// 4. Within a line, the space between two tokens depends on these two alone (see spaceBetween).
//
// Since no token is added or moved to another line, the tree cannot change; only a `;` at the end
// of a line is dropped.

#include "frontend/Formatter.h"

#include "frontend/Lexer.h"
#include "frontend/Program.h"

#include <algorithm>

namespace tk {
namespace {

class Layout {
public:
  Layout(const SourceFile &file, const LexedFile &lexed) : text(file.text()), lexed(lexed) {}
  std::string run();

private:
  void comment(Span span);
  void token(std::size_t index);
  void startLine(std::uint32_t begin, std::size_t spaces, bool keepBlank);
  std::size_t indentation(const Token &token) const;
  bool spaceBetween(std::size_t left, std::size_t right) const;
  bool isContextualWord(std::size_t index) const;
  bool isUnaryMinus(std::size_t index) const;
  bool isDroppedSemicolon(std::size_t index) const;
  bool continues(TokenKind previous, TokenKind next) const;
  std::string_view spelling(Span span) const {
    return text.substr(span.begin, span.end - span.begin);
  }
  /// Line ends between the last piece and `begin`.
  std::size_t lineEnds(std::uint32_t begin) const {
    return static_cast<std::size_t>(std::count(text.begin() + lastEnd, text.begin() + begin, '\n'));
  }

  std::string_view text;
  const LexedFile &lexed;
  std::string out;
  std::uint32_t lastEnd = 0; ///< in the text, of the last piece
  std::size_t braces = 0, brackets = 0;
  bool afterOpenBrace = false;
  std::size_t previous = ~std::size_t{0}; ///< the last token that was kept
};

bool isOperator(TokenKind kind) {
  return kind >= TokenKind::Arrow || kind == TokenKind::And || kind == TokenKind::Or;
}

bool isOperandEnd(TokenKind kind) {
  switch (kind) {
  case TokenKind::Identifier:
  case TokenKind::Integer:
  case TokenKind::Float:
  case TokenKind::String:
  case TokenKind::True:
  case TokenKind::False:
  case TokenKind::RParen:
  case TokenKind::RBracket:
    return true;
  default:
    return false;
  }
}

/// `in`, `where`, `when`, `wrt` and `for` where they are no names: right after an operand.
bool Layout::isContextualWord(std::size_t index) const {
  const Token &token = lexed.tokens[index];
  if (token.kind != TokenKind::Identifier || index == 0)
    return false;
  std::string_view word = spelling(token.span);
  if (word != "in" && word != "where" && word != "when" && word != "wrt" && word != "for")
    return false;
  TokenKind before = lexed.tokens[index - 1].kind;
  return before == TokenKind::Identifier || before == TokenKind::RParen;
}

bool Layout::isUnaryMinus(std::size_t index) const {
  if (lexed.tokens[index].kind != TokenKind::Minus)
    return false;
  return index == 0 || !isOperandEnd(lexed.tokens[index - 1].kind) || isContextualWord(index - 1);
}

bool Layout::isDroppedSemicolon(std::size_t index) const {
  return lexed.tokens[index].kind == TokenKind::Semicolon && brackets == 0 &&
         lexed.tokens[index + 1].newlineBefore && previous != ~std::size_t{0} &&
         !lexed.tokens[index].newlineBefore;
}

bool Layout::spaceBetween(std::size_t left, std::size_t right) const {
  TokenKind a = lexed.tokens[left].kind, b = lexed.tokens[right].kind;
  switch (b) {
  case TokenKind::RParen:
  case TokenKind::RBracket:
  case TokenKind::Comma:
  case TokenKind::Semicolon:
  case TokenKind::Colon:
  case TokenKind::DotDot:
  case TokenKind::Caret:
    return false;
  default:
    break;
  }
  switch (a) {
  case TokenKind::LParen:
  case TokenKind::LBracket:
  case TokenKind::At:
  case TokenKind::DotDot:
  case TokenKind::Caret:
    return false;
  case TokenKind::Minus:
    if (isUnaryMinus(left))
      return false;
    break;
  default:
    break;
  }
  if (b == TokenKind::LBracket)
    return a != TokenKind::Identifier;
  if (b == TokenKind::LParen)
    return !(a == TokenKind::Identifier && !isContextualWord(left)) && a != TokenKind::RBracket;
  return true;
}

/// Does a line that starts with `next` go on with the statement of `previous`?
bool Layout::continues(TokenKind before, TokenKind next) const {
  return isOperator(before) || before == TokenKind::Not || before == TokenKind::Comma ||
         before == TokenKind::If || before == TokenKind::Then || before == TokenKind::Else ||
         isOperator(next) || next == TokenKind::Then || next == TokenKind::Else;
}

std::size_t Layout::indentation(const Token &token) const {
  bool closing = token.kind == TokenKind::RParen || token.kind == TokenKind::RBracket;
  std::size_t base = 2 * (token.kind == TokenKind::RBrace && braces ? braces - 1 : braces);
  if (brackets > (closing ? 1u : 0u))
    return base + 4;
  if (closing || previous == ~std::size_t{0})
    return base;
  return base + (continues(lexed.tokens[previous].kind, token.kind) ? 4 : 0);
}

void Layout::startLine(std::uint32_t begin, std::size_t spaces, bool keepBlank) {
  if (!out.empty()) {
    out += '\n';
    if (keepBlank && !afterOpenBrace && lineEnds(begin) > 1)
      out += '\n';
  }
  out.append(spaces, ' ');
}

void Layout::comment(Span span) {
  bool first = out.empty() || lineEnds(span.begin) > 0;
  if (first)
    startLine(span.begin, 2 * braces + (brackets ? 4 : 0), true);
  else
    out += "  ";
  std::string_view body = spelling(span).substr(2);
  out += "//";
  if (!body.empty() && body[0] != ' ' && body[0] != '\t' && body[0] != '/')
    out += ' ';
  out += body;
  lastEnd = span.end;
  if (first)
    afterOpenBrace = false;
}

void Layout::token(std::size_t index) {
  const Token &token = lexed.tokens[index];
  if (isDroppedSemicolon(index)) {
    lastEnd = token.span.end;
    return;
  }
  if (token.newlineBefore)
    startLine(token.span.begin, indentation(token), token.kind != TokenKind::RBrace);
  else if (previous != ~std::size_t{0} && spaceBetween(previous, index))
    out += ' ';
  out += spelling(token.span);
  lastEnd = token.span.end;
  afterOpenBrace = token.kind == TokenKind::LBrace;
  previous = index;
  switch (token.kind) {
  case TokenKind::LBrace:
    ++braces;
    break;
  case TokenKind::RBrace:
    braces -= braces ? 1 : 0;
    break;
  case TokenKind::LParen:
  case TokenKind::LBracket:
    ++brackets;
    break;
  case TokenKind::RParen:
  case TokenKind::RBracket:
    brackets -= brackets ? 1 : 0;
    break;
  default:
    break;
  }
}

std::string Layout::run() {
  std::size_t nextComment = 0;
  for (std::size_t i = 0; i < lexed.tokens.size(); ++i) {
    const Token &next = lexed.tokens[i];
    for (;
         nextComment < lexed.comments.size() && lexed.comments[nextComment].begin < next.span.begin;
         ++nextComment)
      comment(lexed.comments[nextComment]);
    if (next.kind != TokenKind::Eof)
      token(i);
  }
  if (!out.empty())
    out += '\n';
  return std::move(out);
}

} // namespace

std::string formatSource(SourceManager &sources, FileId id, Diagnostics &diags) {
  const SourceFile &file = sources.file(id);
  unsigned before = diags.errorCount();
  ParseOptions options;
  options.requireKernel = false;
  options.followImports = false;
  parseProgram(sources, id, diags, options);
  if (diags.errorCount() != before)
    return std::string(file.text());
  LexedFile lexed = lex(file, diags);
  return Layout(file, lexed).run();
}

} // namespace tk
