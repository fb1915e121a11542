#include "frontend/Lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

namespace tk {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isNameChar(char c) { return isNameStart(c) || isDigit(c); }

std::string hexByte(char c) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  auto value = static_cast<unsigned char>(c);
  return {'0', 'x', digits[value >> 4], digits[value & 15]};
}

class LexerState {
public:
  LexerState(const SourceFile &file, Diagnostics &diags)
      : file(file), text(file.text()), diags(diags) {}

  LexedFile run();

private:
  bool validate();
  void name();
  void number();
  void string();
  void punctuation();
  void comment();
  void unexpected();

  char at(std::uint32_t offset) const {
    return pos + offset < text.size() ? text[pos + offset] : '\0';
  }
  Span spanFrom(std::uint32_t begin) const { return {file.id(), begin, pos}; }
  Token &push(TokenKind kind, std::uint32_t begin) {
    Token &token = out.tokens.emplace_back();
    token.kind = kind;
    token.span = spanFrom(begin);
    token.newlineBefore = std::exchange(newline, false);
    return token;
  }
  DiagBuilder error(Diag id, Span span) {
    out.ok = false;
    return diags.error(id, span);
  }

  const SourceFile &file;
  std::string_view text;
  Diagnostics &diags;
  LexedFile out;
  std::uint32_t pos = 0;
  bool newline = true;
};

/// Reports the first bad byte of each line.
bool LexerState::validate() {
  bool ok = true, reportedOnLine = false;
  for (std::uint32_t i = 0; i < text.size();) {
    std::uint32_t length = text[i] == '\0' ? 0 : utf8Length(text, i);
    if (length == 0 && !reportedOnLine) {
      LineColumn where = file.lineColumn(i);
      error(Diag::InvalidByte, {file.id(), i, i + 1})
          << "invalid byte " << hexByte(text[i]) << " at " << where.line << ':' << where.column;
      ok = false;
      reportedOnLine = true;
    }
    if (text[i] == '\n')
      reportedOnLine = false;
    i += length ? length : 1;
  }
  return ok;
}

LexedFile LexerState::run() {
  if (validate()) {
    if (text.starts_with("\xEF\xBB\xBF"))
      pos = 3;
    while (pos < text.size()) {
      char c = text[pos];
      if (c == '\n' || (c == '\r' && at(1) == '\n')) {
        newline = true;
        ++pos;
      } else if (c == ' ' || c == '\t') {
        ++pos;
      } else if (c == '/' && at(1) == '/') {
        comment();
      } else if (isNameStart(c)) {
        name();
      } else if (isDigit(c) || (c == '.' && isDigit(at(1)))) {
        number();
      } else if (c == '"') {
        string();
      } else {
        punctuation();
      }
    }
  }
  pos = static_cast<std::uint32_t>(text.size());
  newline = true;
  push(TokenKind::Eof, pos);
  return std::move(out);
}

void LexerState::comment() {
  std::uint32_t begin = pos;
  while (pos < text.size() && text[pos] != '\n')
    ++pos;
  std::uint32_t end = pos;
  while (end > begin && (text[end - 1] == '\r' || text[end - 1] == ' ' || text[end - 1] == '\t'))
    --end;
  out.comments.push_back({file.id(), begin, end});
}

void LexerState::name() {
  static constexpr std::pair<std::string_view, TokenKind> words[] = {
      {"let", TokenKind::Let},   {"if", TokenKind::If},     {"then", TokenKind::Then},
      {"else", TokenKind::Else}, {"and", TokenKind::And},   {"or", TokenKind::Or},
      {"not", TokenKind::Not},   {"true", TokenKind::True}, {"false", TokenKind::False}};
  std::uint32_t begin = pos;
  while (isNameChar(at(0)))
    ++pos;
  std::string_view word = text.substr(begin, pos - begin);
  TokenKind kind = TokenKind::Identifier;
  for (auto [spelling, wordKind] : words)
    if (word == spelling)
      kind = wordKind;
  push(kind, begin);
}

// number := digits ['.' digits] [('e'|'E') ['+'|'-'] digits]
void LexerState::number() {
  std::uint32_t begin = pos;
  auto digits = [&] {
    std::uint32_t from = pos;
    while (isDigit(at(0)))
      ++pos;
    return pos != from;
  };
  bool wellFormed = digits(), isReal = false;
  if (at(0) == '.' && at(1) != '.') { // `0..n` is a range
    isReal = true;
    ++pos;
    wellFormed &= digits();
  }
  if (at(0) == 'e' || at(0) == 'E') {
    isReal = true;
    ++pos;
    if (at(0) == '+' || at(0) == '-')
      ++pos;
    wellFormed &= digits();
  }
  while (isNameChar(at(0))) { // 10x, 1.0f, 0x1F
    wellFormed = false;
    ++pos;
  }
  std::string_view spelling = text.substr(begin, pos - begin);
  Token &token = push(isReal ? TokenKind::Float : TokenKind::Integer, begin);
  const char *first = spelling.data(), *last = first + spelling.size();
  if (!wellFormed) {
    error(Diag::MalformedNumber, token.span)
            .help("integers look like 42, floats have digits on both sides of the point: 0.5, 1.0, "
                  "1e-5")
        << "malformed number '" << spelling << "'";
  } else if (isReal) {
    double value = 0;
    auto [end, status] = std::from_chars(first, last, value);
    token.real = status == std::errc() ? value : 0;
    if (status != std::errc() || !std::isfinite(value))
      error(Diag::NumberTooLarge, token.span) << "'" << spelling << "' is beyond the range of f64";
  } else {
    std::int64_t value = 0;
    auto [end, status] = std::from_chars(first, last, value);
    token.integer = status == std::errc() ? value : 0;
    if (status != std::errc())
      error(Diag::NumberTooLarge, token.span)
          << "'" << spelling
          << "' is beyond the range of i64, whose largest is 9223372036854775807";
  }
}

void LexerState::string() {
  std::uint32_t begin = pos++;
  while (pos < text.size() && text[pos] != '"' && text[pos] != '\n' && text[pos] != '\r')
    ++pos;
  bool closed = at(0) == '"';
  if (closed)
    ++pos;
  push(TokenKind::String, begin);
  if (!closed)
    error(Diag::UnterminatedString, spanFrom(begin)) << "expected '\"' before the end of the line";
}

void LexerState::punctuation() {
  using enum TokenKind;
  static constexpr std::pair<std::string_view, TokenKind> marks[] = {
      {"->", Arrow},     {"..", DotDot}, {"==", EqEq},  {"!=", NotEq},    {"<=", LessEq},
      {">=", GreaterEq}, {"(", LParen},  {")", RParen}, {"[", LBracket},  {"]", RBracket},
      {"{", LBrace},     {"}", RBrace},  {",", Comma},  {";", Semicolon}, {":", Colon},
      {"@", At},         {"=", Assign},  {"+", Plus},   {"-", Minus},     {"*", Star},
      {"/", Slash},      {"%", Percent}, {"^", Caret},  {"<", Less},      {">", Greater}};
  for (auto [spelling, kind] : marks) {
    if (!text.substr(pos).starts_with(spelling))
      continue;
    std::uint32_t begin = pos;
    pos += static_cast<std::uint32_t>(spelling.size());
    push(kind, begin);
    return;
  }
  unexpected();
}

void LexerState::unexpected() {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> meant = {
      {{"&&", "and"},
       {"||", "or"},
       {"!", "not"},
       {"&", "bitand(a, b)"},
       {"|", "bitor(a, b)"},
       {"#", "// for a comment"},
       {"?", "if c then a else b"}}};
  std::uint32_t begin = pos;
  std::string_view hint;
  pos += std::max(1u, utf8Length(text, pos));
  for (auto [wrong, right] : meant) {
    if (!text.substr(begin).starts_with(wrong))
      continue;
    pos = begin + static_cast<std::uint32_t>(wrong.size());
    hint = right;
    break;
  }
  std::string_view spelling = text.substr(begin, pos - begin);
  auto builder = error(Diag::UnexpectedCharacter, spanFrom(begin));
  if (static_cast<unsigned char>(spelling[0]) < 0x20 || spelling[0] == 0x7F)
    builder << "unexpected control character " << hexByte(spelling[0]);
  else
    builder << "unexpected character '" << spelling << "'";
  if (!hint.empty())
    builder.help("write " + std::string(hint));
}

} // namespace

std::string_view describe(TokenKind kind) {
  static constexpr std::array<std::string_view, 39> names = {"the end of the file",
                                                             "a name",
                                                             "an integer",
                                                             "a number",
                                                             "a string",
                                                             "'let'",
                                                             "'if'",
                                                             "'then'",
                                                             "'else'",
                                                             "'and'",
                                                             "'or'",
                                                             "'not'",
                                                             "'true'",
                                                             "'false'",
                                                             "'('",
                                                             "')'",
                                                             "'['",
                                                             "']'",
                                                             "'{'",
                                                             "'}'",
                                                             "','",
                                                             "';'",
                                                             "':'",
                                                             "'@'",
                                                             "'->'",
                                                             "'..'",
                                                             "'='",
                                                             "'+'",
                                                             "'-'",
                                                             "'*'",
                                                             "'/'",
                                                             "'%'",
                                                             "'^'",
                                                             "'=='",
                                                             "'!='",
                                                             "'<'",
                                                             "'<='",
                                                             "'>'",
                                                             "'>='"};
  return names[static_cast<std::size_t>(kind)];
}

LexedFile lex(const SourceFile &file, Diagnostics &diags) { return LexerState(file, diags).run(); }

} // namespace tk
