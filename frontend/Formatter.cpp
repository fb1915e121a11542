// Lays tokens and comments out anew.
//
// 1. Parse; with a syntax error the text stays as it is.
// 2. Walk tokens and comments in order. A piece that was first on its line stays so; several blank
//    lines become one, and none is kept at the ends of a file or of a body.
// 3. A line is indented by two for each open brace. A line that goes on inside a bracket stands
//    under what follows the bracket, or four to the right if nothing does. One that goes on after
//    `=` stands under the `=` if it starts with an operator, else under what follows the `=`.
// 4. Within a line, the space between two tokens depends on these two alone (see spaceBetween).
// 5. The `=` of statements on successive lines are aligned where their columns are close. The
//    columns come from a first walk that aligns nothing, so the result does not depend on the
//    spaces of the input.
//
// Since no token is added or moved to another line, the tree cannot change; only a `;` at the end
// of a line is dropped.

#include "frontend/Formatter.h"

#include "frontend/Lexer.h"
#include "frontend/Program.h"

#include <algorithm>
#include <map>
#include <vector>

namespace tk {
namespace {

constexpr std::size_t continuation = 4;  ///< indentation of a line that goes on
constexpr std::size_t widestGap = 8;     ///< between aligned `=`
constexpr std::size_t widestIndent = 72; ///< bounds the output by the input's lines
constexpr std::size_t none = ~std::size_t{0};

/// The `=` of a statement in a kernel's body.
struct Assignment {
  std::size_t token;
  std::size_t line, column; ///< in the output, from 0
};

/// Spaces to put before the token of that index.
using Padding = std::map<std::size_t, std::size_t>;

class Layout {
public:
  Layout(const SourceFile &file, const LexedFile &lexed, const Padding &padding)
      : text(file.text()), lexed(lexed), padding(padding) {}
  std::string run();
  std::vector<Assignment> assignments;

private:
  /// What an open bracket makes of the lines up to its closing one.
  struct Bracket {
    std::size_t inner;   ///< their column
    std::size_t closing; ///< the closing bracket's column, where it is first on its line
  };

  void comment(Span span);
  void token(std::size_t index);
  void afterToken(std::size_t index);
  void assign(std::size_t index);
  void startLine(std::uint32_t begin, std::size_t spaces, bool keepBlank);
  std::size_t indentation(const Token &token) const;
  bool spaceBetween(std::size_t left, std::size_t right) const;
  bool isContextualWord(std::size_t index) const;
  bool isAssert(std::size_t index) const;
  /// The word `mesh` where it begins an item.
  bool isMesh(std::size_t index) const {
    return braces == 0 && brackets.empty() && lexed.tokens[index].newlineBefore &&
           spelling(lexed.tokens[index].span) == "mesh";
  }
  bool isUnaryMinus(std::size_t index) const;
  bool isDroppedSemicolon(std::size_t index) const;
  bool continues(TokenKind previous, TokenKind next) const;
  bool endsLine(std::size_t index) const { return lexed.tokens[index + 1].newlineBefore; }
  std::size_t column() const { return out.size() - lineStart; }
  std::string_view spelling(Span span) const {
    return text.substr(span.begin, span.end - span.begin);
  }
  /// Line ends between the last piece and `begin`.
  std::size_t lineEnds(std::uint32_t begin) const {
    return static_cast<std::size_t>(std::count(text.begin() + lastEnd, text.begin() + begin, '\n'));
  }

  std::string_view text;
  const LexedFile &lexed;
  const Padding &padding;
  std::string out;
  std::size_t line = 0, lineStart = 0, lineIndent = 0; ///< of the output's last line
  std::uint32_t lastEnd = 0;                           ///< in the text, of the last piece
  std::size_t braces = 0;
  std::vector<Bracket> brackets;
  bool afterOpenBrace = false;
  bool inSchedule = false;
  bool assigned = false;                           ///< the statement's `=` has passed
  std::size_t operatorColumn = 0, valueColumn = 0; ///< for the lines that go on; 0: the default
  std::size_t previous = none;                     ///< the last token that was kept
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

/// The word `assert` where it begins a statement.
bool Layout::isAssert(std::size_t index) const {
  const Token &token = lexed.tokens[index], &next = lexed.tokens[index + 1];
  if (token.kind != TokenKind::Identifier || spelling(token.span) != "assert" || braces != 1 ||
      inSchedule || next.newlineBefore || !beginsCondition(next.kind) || index == 0)
    return false;
  const TokenKind before = lexed.tokens[index - 1].kind;
  if (before == TokenKind::LBrace || before == TokenKind::Semicolon)
    return true;
  return token.newlineBefore && brackets.empty() && !continues(before, token.kind);
}

bool Layout::isUnaryMinus(std::size_t index) const {
  if (lexed.tokens[index].kind != TokenKind::Minus)
    return false;
  return index == 0 || !isOperandEnd(lexed.tokens[index - 1].kind) || isContextualWord(index - 1) ||
         isAssert(index - 1);
}

bool Layout::isDroppedSemicolon(std::size_t index) const {
  std::size_t last = index; // of those that stand side by side
  while (lexed.tokens[last].kind == TokenKind::Semicolon && !endsLine(last) &&
         lexed.tokens[last + 1].kind == TokenKind::Semicolon)
    ++last;
  return lexed.tokens[index].kind == TokenKind::Semicolon && brackets.empty() && endsLine(last) &&
         previous != none && !lexed.tokens[index].newlineBefore;
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
  case TokenKind::At:
    return !brackets.empty(); // `@deterministic`, but `F @ tp`
  case TokenKind::LParen:
  case TokenKind::LBracket:
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
    return isMesh(left) ||
           (!(a == TokenKind::Identifier && !isContextualWord(left) && !isAssert(left)) &&
            a != TokenKind::RBracket);
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
  if (!brackets.empty())
    return closing ? brackets.back().closing : brackets.back().inner;
  std::size_t base = 2 * (token.kind == TokenKind::RBrace && braces ? braces - 1 : braces);
  if (previous == none || !continues(lexed.tokens[previous].kind, token.kind))
    return base;
  bool underOperator = isOperator(token.kind) && token.kind != TokenKind::Arrow;
  std::size_t wanted = underOperator ? operatorColumn : valueColumn;
  return wanted ? wanted : base + continuation;
}

void Layout::startLine(std::uint32_t begin, std::size_t spaces, bool keepBlank) {
  if (!out.empty()) {
    bool blank = keepBlank && !afterOpenBrace && lineEnds(begin) > 1;
    out.append(blank ? 2 : 1, '\n');
    line += blank ? 2 : 1;
  }
  lineStart = out.size();
  lineIndent = spaces;
  out.append(spaces, ' ');
}

void Layout::comment(Span span) {
  bool first = out.empty() || lineEnds(span.begin) > 0;
  if (first)
    startLine(span.begin, brackets.empty() ? 2 * braces : brackets.back().inner, true);
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
  if (token.newlineBefore) {
    bool statement = brackets.empty() &&
                     (previous == none || !continues(lexed.tokens[previous].kind, token.kind));
    startLine(token.span.begin, indentation(token), token.kind != TokenKind::RBrace);
    if (statement) {
      assigned = false;
      operatorColumn = valueColumn = 0;
      if (braces == 0)
        inSchedule = spelling(token.span) == "schedule";
    }
  } else if (previous != none && spaceBetween(previous, index)) {
    out += ' ';
  }
  if (auto spaces = padding.find(index); spaces != padding.end())
    out.append(spaces->second, ' ');
  out += spelling(token.span);
  lastEnd = token.span.end;
  afterToken(index);
  previous = index;
}

/// Keeps track of what later lines are indented by.
void Layout::afterToken(std::size_t index) {
  const Token &token = lexed.tokens[index];
  afterOpenBrace = token.kind == TokenKind::LBrace;
  switch (token.kind) {
  case TokenKind::LBrace:
    ++braces;
    break;
  case TokenKind::RBrace:
    braces -= braces ? 1 : 0;
    break;
  case TokenKind::LParen:
  case TokenKind::LBracket:
    if (endsLine(index) || column() > widestIndent)
      brackets.push_back({std::min(lineIndent + continuation, widestIndent), lineIndent});
    else
      brackets.push_back({column(), column() - 1});
    break;
  case TokenKind::RParen:
  case TokenKind::RBracket:
    if (!brackets.empty())
      brackets.pop_back();
    break;
  case TokenKind::Assign:
    if (brackets.empty() && !assigned && !inSchedule)
      assign(index);
    break;
  case TokenKind::Identifier:
    if (brackets.empty() && braces == 0 && isContextualWord(index) &&
        spelling(token.span) == "where")
      valueColumn = operatorColumn = column() + 1;
    break;
  default:
    break;
  }
}

void Layout::assign(std::size_t index) {
  assigned = true;
  if (!endsLine(index) && column() < widestIndent) {
    operatorColumn = column() - 1;
    valueColumn = column() + 1;
  }
  if (braces == 1)
    assignments.push_back({index, line, column() - 1});
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

/// Aligns each longest run of successive lines whose columns differ by no more than widestGap.
Padding align(const std::vector<Assignment> &assignments) {
  Padding padding;
  for (std::size_t first = 0; first < assignments.size();) {
    std::size_t least = assignments[first].column, most = least, next = first + 1;
    for (; next < assignments.size() && assignments[next].line == assignments[next - 1].line + 1;
         ++next) {
      std::size_t low = std::min(least, assignments[next].column);
      std::size_t high = std::max(most, assignments[next].column);
      if (high - low > widestGap)
        break;
      least = low, most = high;
    }
    for (; first < next; ++first)
      if (assignments[first].column < most)
        padding[assignments[first].token] = most - assignments[first].column;
  }
  return padding;
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
  Padding padding;
  Layout measured(file, lexed, padding);
  measured.run();
  padding = align(measured.assignments);
  return Layout(file, lexed, padding).run();
}

} // namespace tk
