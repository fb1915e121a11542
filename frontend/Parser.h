// The parser: recursive descent over the tokens of one file.
//
// Each parse method has its production above it. In the grammar, `[x]` is optional, `{x}` repeats,
// quoted words are tokens, NAME INT FLOAT STRING are token kinds. `list(x)` is
// `[x {',' x} [',']]`, and inside `( )` and `[ ]` the ends of lines mean nothing.
//
// Errors: a method that cannot go on reports and throws SyntaxError, which the enclosing statement,
// header or item catches; it then skips to where the next one starts. LimitError gives up the whole
// item. Neither leaves the parser.

#ifndef TK_FRONTEND_PARSER_H
#define TK_FRONTEND_PARSER_H

#include "frontend/AST.h"
#include "frontend/Diagnostics.h"
#include "frontend/Lexer.h"
#include "frontend/Program.h"

#include <string>
#include <string_view>

namespace tk {

class Parser {
public:
  /// Expressions are numbered from `exprCount` on, which is advanced.
  Parser(const SourceFile &file, const LexedFile &lexed, Diagnostics &diags, const Limits &limits,
         std::uint32_t &exprCount)
      : file(file), tokens(lexed.tokens), diags(diags), limits(limits), exprCount(exprCount) {}

  std::unique_ptr<ast::File> parseFile();

private:
  struct SyntaxError {};
  struct LimitError {};

  // Items (ParseItem.cpp)
  void parseItem(ast::File &out);
  ast::ItemPtr parseKernel();
  void parseKernelHeader(ast::Kernel &kernel);
  void parseParams(std::vector<ast::ParamPtr> &out, ast::DeclKind kind);
  ast::ParamPtr parseParam(ast::DeclKind kind);
  void parseQualifiers(ast::Param &param);
  void parseDefault(ast::Param &param);
  void parseBody(ast::Kernel &kernel);
  ast::ItemPtr parseFn();
  ast::ItemPtr parseConst();
  ast::ItemPtr parseImport();
  ast::ItemPtr parseGrad();
  /// `mesh` is a word only where a name or a bracket follows.
  bool atMesh() const {
    return isWord("mesh") &&
           (peek(1).kind == TokenKind::LParen || peek(1).kind == TokenKind::Identifier);
  }
  ast::ItemPtr parseMesh();
  void rejectSecondMesh(const ast::File &out, const ast::Item &mesh);
  void parseExtent(ast::Param &param);
  ast::ItemPtr parseSchedule();
  void parseScheduleEntry(ast::Schedule &schedule);

  // Statements (ParseStmt.cpp)
  ast::StmtPtr parseStatement();
  ast::StmtPtr parseLet();
  void rejectForeignStatement();
  void skipBraces();
  ast::StmtPtr parseDefine();
  std::vector<ast::IndexPtr> parseIndices();
  bool atAssert() const;
  ast::StmtPtr parseAssert();
  ast::IndexPtr parseIndex();
  ast::DType parseDType(Span &span);

  // Expressions (ParseExpr.cpp)
  ast::ExprPtr parseExpr();
  ast::ExprPtr parseOr();
  ast::ExprPtr parseAnd();
  ast::ExprPtr parseNot();
  ast::ExprPtr parseComparison();
  ast::ExprPtr parseSum();
  ast::ExprPtr parseProduct();
  ast::ExprPtr parseUnary();
  ast::ExprPtr parsePower();
  ast::ExprPtr parsePrimary();
  ast::ExprPtr parseIf();
  ast::ExprPtr parseNamed();
  void rejectNamedArgument(const ast::Expr &argument);
  ast::ExprPtr parseReduce(const Token &name, ast::ReduceKind kind);
  void parseModifier(ast::Reduce &reduce);
  ast::ExprPtr binary(ast::BinaryOp op, Span opSpan, ast::ExprPtr lhs, ast::ExprPtr rhs);
  template <typename T, typename... Args> std::unique_ptr<T> make(Args &&...args);
  void setDepth(ast::Expr &expr, std::initializer_list<const ast::Expr *> children);
  void checkDepth(ast::Expr &expr, std::uint32_t childDepth);

  // Tokens (Parser.cpp)
  const Token &peek(std::uint32_t ahead = 0) const {
    return tokens[std::min<std::size_t>(position + ahead, tokens.size() - 1)];
  }
  bool is(TokenKind kind) const { return peek().kind == kind; }
  bool isWord(std::string_view word, std::uint32_t ahead = 0) const {
    return peek(ahead).kind == TokenKind::Identifier && text(peek(ahead)) == word;
  }
  /// A `(` or `[` applies to the name before it only on the same line, or inside brackets.
  bool opensHere(TokenKind kind) const {
    return is(kind) && (bracketDepth > 0 || !peek().newlineBefore);
  }
  const Token &take() { return tokens[position + 1 < tokens.size() ? position++ : position]; }
  bool accept(TokenKind kind) { return is(kind) && (take(), true); }
  const Token &expect(TokenKind kind, std::string_view where, std::string_view hint = {});
  const Token &expectName(std::string_view what);
  const Token &expectWord(std::string_view word, std::string_view where);
  std::string_view text(const Token &token) const {
    return file.text().substr(token.span.begin, token.span.end - token.span.begin);
  }
  std::string name(const Token &token) const { return std::string(text(token)); }
  /// "'foo'", "the end of the file"
  std::string found() const;
  Span spanFrom(std::uint32_t begin) const {
    return {file.id(), begin, std::max(begin, position ? tokens[position - 1].span.end : begin)};
  }
  /// Where something missing after the last token would stand.
  Span afterLast() const;

  /// Parses a comma-separated list up to `close`, whose opening token has just been taken.
  template <typename Element>
  void list(const Token &open, TokenKind close, std::string_view what, Element element);
  void closeBracket(const Token &open, TokenKind close, std::string_view what);
  bool atStatementEnd() const;
  void endStatement();
  bool atItemStart() const;
  void skipToStatement(std::uint32_t from);
  void skipToItem();
  void checkNesting();

  /// Counts a level of nesting for as long as it lives.
  class Nest {
  public:
    Nest(Parser &parser, Span span);
    ~Nest() { --parser.nesting; }
    Nest(const Nest &) = delete;
    Nest &operator=(const Nest &) = delete;

  private:
    Parser &parser;
  };
  /// Inside brackets the ends of lines mean nothing; inside braces they do again.
  class Brackets {
  public:
    explicit Brackets(Parser &parser) : parser(parser) { ++parser.bracketDepth; }
    ~Brackets() { --parser.bracketDepth; }
    Brackets(const Brackets &) = delete;
    Brackets &operator=(const Brackets &) = delete;

  private:
    Parser &parser;
  };

  const SourceFile &file;
  const std::vector<Token> &tokens;
  Diagnostics &diags;
  const Limits &limits;
  std::uint32_t &exprCount;
  std::size_t position = 0;
  std::uint32_t nesting = 0;
  std::uint32_t bracketDepth = 0;
  std::uint32_t operations = 0; ///< in the current item
};

template <typename Element>
void Parser::list(const Token &open, TokenKind close, std::string_view what, Element element) {
  Nest nest(*this, open.span);
  {
    Brackets brackets(*this);
    while (!is(close)) {
      element();
      if (!accept(TokenKind::Comma))
        break;
    }
  }
  closeBracket(open, close, what);
}

} // namespace tk

#endif // TK_FRONTEND_PARSER_H
