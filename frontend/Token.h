// Tokens of the language.

#ifndef TK_FRONTEND_TOKEN_H
#define TK_FRONTEND_TOKEN_H

#include "frontend/Source.h"

#include <cstdint>
#include <string_view>

namespace tk {

enum class TokenKind : std::uint8_t {
  Eof,
  Identifier,
  Integer,
  Float,
  String,
  // Reserved words. `kernel`, `where`, `in`, `strided` and the like are names elsewhere, so that a
  // tensor can be called `grad` or `in`.
  Let,
  If,
  Then,
  Else,
  And,
  Or,
  Not,
  True,
  False,
  LParen,
  RParen,
  LBracket,
  RBracket,
  LBrace,
  RBrace,
  Comma,
  Semicolon,
  Colon,
  At,
  Arrow,
  DotDot,
  Assign,
  Plus,
  Minus,
  Star,
  Slash,
  Percent,
  Caret,
  EqEq,
  NotEq,
  Less,
  LessEq,
  Greater,
  GreaterEq,
};

struct Token {
  TokenKind kind = TokenKind::Eof;
  bool newlineBefore = false; ///< first of its line
  Span span;
  union {
    std::int64_t integer = 0; ///< of an Integer
    double real;              ///< of a Float
  };
};

/// How a message names a kind: "')'", "a name".
std::string_view describe(TokenKind kind);
inline bool isReservedWord(TokenKind kind) {
  return kind >= TokenKind::Let && kind <= TokenKind::False;
}
/// Whether the token behind the word `assert` makes that a statement: a name, a literal, a
/// parenthesis, `-`, `not` or `if`.
inline bool beginsCondition(TokenKind kind) {
  return kind == TokenKind::Identifier || kind == TokenKind::Integer || kind == TokenKind::Float ||
         kind == TokenKind::True || kind == TokenKind::False || kind == TokenKind::LParen ||
         kind == TokenKind::Minus || kind == TokenKind::Not || kind == TokenKind::If;
}

} // namespace tk

#endif // TK_FRONTEND_TOKEN_H
