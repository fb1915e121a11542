// Expressions, from the loosest operator to the tightest.

#include "frontend/Parser.h"

#include <algorithm>
#include <array>

namespace tk {

using namespace ast;

template <typename T, typename... Args> std::unique_ptr<T> Parser::make(Args &&...args) {
  auto node = std::make_unique<T>(std::forward<Args>(args)...);
  node->id = exprCount++;
  bool isOperation = !as<IntLit>(node.get()) && !as<FloatLit>(node.get()) &&
                     !as<BoolLit>(node.get()) && !as<NameRef>(node.get());
  if (isOperation && ++operations > limits.operations) {
    diags.error(Diag::TooManyOperations, node->span).help("split it into several kernels")
        << "more than " << limits.operations << " operations in one item";
    throw LimitError();
  }
  return node;
}

void Parser::checkDepth(Expr &expr, std::uint32_t childDepth) {
  expr.depth = childDepth + 1;
  if (expr.depth > limits.depth) {
    Span last{expr.span.file, expr.span.end > 0 ? expr.span.end - 1 : 0, expr.span.end};
    diags.error(Diag::ExpressionTooDeep, last).help("name parts of it with 'let'")
        << "expression of more than " << limits.depth << " chained operators";
    throw LimitError();
  }
}

void Parser::setDepth(Expr &expr, std::initializer_list<const Expr *> children) {
  std::uint32_t deepest = 0;
  for (const Expr *child : children)
    deepest = std::max(deepest, child->depth);
  checkDepth(expr, deepest);
}

ExprPtr Parser::binary(BinaryOp op, Span opSpan, ExprPtr lhs, ExprPtr rhs) {
  // Parentheses lie outside their expression's span; they belong to the operands' extent here.
  Span span{file.id(), lhs->span.begin, tokens[position - 1].span.end};
  auto node = make<Binary>(span, op, opSpan, std::move(lhs), std::move(rhs));
  setDepth(*node, {node->lhs.get(), node->rhs.get()});
  return node;
}

// expr := or
ExprPtr Parser::parseExpr() { return parseOr(); }

// or := and {'or' and}
ExprPtr Parser::parseOr() {
  ExprPtr lhs = parseAnd();
  while (is(TokenKind::Or)) {
    Span op = take().span;
    ExprPtr rhs = parseAnd();
    lhs = binary(BinaryOp::Or, op, std::move(lhs), std::move(rhs));
  }
  return lhs;
}

// and := not {'and' not}
ExprPtr Parser::parseAnd() {
  ExprPtr lhs = parseNot();
  while (is(TokenKind::And)) {
    Span op = take().span;
    ExprPtr rhs = parseNot();
    lhs = binary(BinaryOp::And, op, std::move(lhs), std::move(rhs));
  }
  return lhs;
}

// not := 'not' not | comparison
ExprPtr Parser::parseNot() {
  if (!is(TokenKind::Not))
    return parseComparison();
  Span op = take().span;
  Nest nest(*this, op);
  ExprPtr operand = parseNot();
  auto node = make<Unary>(spanFrom(op.begin), UnaryOp::Not, op, std::move(operand));
  setDepth(*node, {node->operand.get()});
  return node;
}

static std::optional<BinaryOp> comparisonOp(TokenKind kind) {
  switch (kind) {
  case TokenKind::EqEq:
    return BinaryOp::Eq;
  case TokenKind::NotEq:
    return BinaryOp::Ne;
  case TokenKind::Less:
    return BinaryOp::Lt;
  case TokenKind::LessEq:
    return BinaryOp::Le;
  case TokenKind::Greater:
    return BinaryOp::Gt;
  case TokenKind::GreaterEq:
    return BinaryOp::Ge;
  default:
    return std::nullopt;
  }
}

// comparison := sum [('==' | '!=' | '<' | '<=' | '>' | '>=') sum]
ExprPtr Parser::parseComparison() {
  ExprPtr lhs = parseSum();
  Span first;
  while (auto op = comparisonOp(peek().kind)) {
    Span opSpan = take().span;
    if (first.valid())
      diags.error(Diag::ChainedComparison, opSpan)
          .label(first)
          .help("join two comparisons with 'and': a < b and b < c");
    first = opSpan;
    ExprPtr rhs = parseSum();
    lhs = binary(*op, opSpan, std::move(lhs), std::move(rhs));
  }
  return lhs;
}

// sum := product {('+' | '-') product}
ExprPtr Parser::parseSum() {
  ExprPtr lhs = parseProduct();
  while (is(TokenKind::Plus) || is(TokenKind::Minus)) {
    BinaryOp op = is(TokenKind::Plus) ? BinaryOp::Add : BinaryOp::Sub;
    Span opSpan = take().span;
    ExprPtr rhs = parseProduct();
    lhs = binary(op, opSpan, std::move(lhs), std::move(rhs));
  }
  return lhs;
}

// product := unary {('*' | '/' | '%') unary}
ExprPtr Parser::parseProduct() {
  ExprPtr lhs = parseUnary();
  while (is(TokenKind::Star) || is(TokenKind::Slash) || is(TokenKind::Percent)) {
    BinaryOp op = is(TokenKind::Star)    ? BinaryOp::Mul
                  : is(TokenKind::Slash) ? BinaryOp::Div
                                         : BinaryOp::Rem;
    Span opSpan = take().span;
    ExprPtr rhs = parseUnary();
    lhs = binary(op, opSpan, std::move(lhs), std::move(rhs));
  }
  return lhs;
}

// unary := '-' unary | power
ExprPtr Parser::parseUnary() {
  if (!is(TokenKind::Minus))
    return parsePower();
  Span op = take().span;
  Nest nest(*this, op);
  ExprPtr operand = parseUnary();
  auto node = make<Unary>(spanFrom(op.begin), UnaryOp::Neg, op, std::move(operand));
  setDepth(*node, {node->operand.get()});
  return node;
}

// power := primary ['^' unary]          so -x^2 is -(x^2), and 2^-3 and a^b^c = a^(b^c) work
ExprPtr Parser::parsePower() {
  ExprPtr base = parsePrimary();
  if (!is(TokenKind::Caret))
    return base;
  Span op = take().span;
  Nest nest(*this, op);
  ExprPtr exponent = parseUnary();
  return binary(BinaryOp::Pow, op, std::move(base), std::move(exponent));
}

// primary := INT | FLOAT | 'true' | 'false' | '(' expr ')' | if | named
ExprPtr Parser::parsePrimary() {
  const Token &token = peek();
  switch (token.kind) {
  case TokenKind::Integer:
    take();
    return make<IntLit>(token.span, token.integer);
  case TokenKind::Float:
    take();
    return make<FloatLit>(token.span, token.real);
  case TokenKind::True:
    take();
    return make<BoolLit>(token.span, true);
  case TokenKind::False:
    take();
    return make<BoolLit>(token.span, false);
  case TokenKind::If:
    return parseIf();
  case TokenKind::Identifier:
    return parseNamed();
  case TokenKind::LParen: {
    take();
    Nest nest(*this, token.span);
    ExprPtr inner;
    {
      Brackets brackets(*this);
      inner = parseExpr();
    }
    if (!accept(TokenKind::RParen)) {
      diags.error(Diag::UnclosedBracket, peek().span).label(token.span, "opened here")
          << "expected ')', found " << found();
      throw SyntaxError();
    }
    inner->parenthesised = true;
    inner->span = spanFrom(token.span.begin);
    return inner;
  }
  default:
    break;
  }
  std::string_view hint;
  if (token.kind == TokenKind::Star && position > 0 && tokens[position - 1].kind == TokenKind::Star)
    hint = "a power is written x^2";
  else if (token.kind == TokenKind::Colon)
    hint = "name an index for the axis, as in sum[j](x[i, j])";
  diags.error(Diag::ExpectedExpression, token.span).help(std::string(hint))
      << "expected an expression, found " << found();
  throw SyntaxError();
}

// if := 'if' expr 'then' expr 'else' expr
ExprPtr Parser::parseIf() {
  Span begin = take().span;
  Nest nest(*this, begin);
  ExprPtr condition = parseExpr();
  if (is(TokenKind::Assign)) {
    diags.error(Diag::ExpectedToken, peek().span).help("two values are compared by ==")
        << "expected 'then' after the condition of 'if', found '='";
    throw SyntaxError();
  }
  expect(TokenKind::Then, "after the condition of 'if'");
  ExprPtr thenExpr = parseExpr();
  expect(TokenKind::Else, "for the 'if', which needs both branches");
  ExprPtr elseExpr = parseExpr();
  auto node = make<If>(spanFrom(begin.begin), std::move(condition), std::move(thenExpr),
                       std::move(elseExpr));
  setDepth(*node, {node->condition.get(), node->thenExpr.get(), node->elseExpr.get()});
  return node;
}

/// Reports `eps=1e-6` among arguments.
void Parser::rejectNamedArgument(const Expr &argument) {
  const auto *name = as<NameRef>(&argument);
  if (!name)
    return;
  diags.error(Diag::ExpectedToken, peek().span)
          .help("arguments go by their position: write the value without '" + name->name + " ='")
      << "expected ',' or ')' after '" << name->name << "', found '='";
  throw SyntaxError();
}

// named := NAME | NAME '(' list(expr) ')' | NAME '[' list(expr) ']' | reduce
ExprPtr Parser::parseNamed() {
  const Token &name = take();
  std::string spelling = this->name(name);
  bool call = opensHere(TokenKind::LParen);
  if (!call && !opensHere(TokenKind::LBracket))
    return make<NameRef>(name.span, std::move(spelling));
  if (!call)
    if (auto kind = ast::parseReduceKind(spelling))
      return parseReduce(name, *kind);

  const Token &open = take();
  std::vector<ExprPtr> args;
  std::uint32_t deepest = 0;
  list(open, call ? TokenKind::RParen : TokenKind::RBracket,
       (call ? "the arguments of '" : "the indices of '") + spelling + "'", [&] {
         args.push_back(parseExpr());
         if (is(TokenKind::Assign))
           rejectNamedArgument(*args.back());
         deepest = std::max(deepest, args.back()->depth);
       });
  Span span = spanFrom(name.span.begin);
  ExprPtr node;
  if (call)
    node = make<Call>(span, spelling, name.span, std::move(args));
  else
    node = make<Access>(span, spelling, name.span, std::move(args));
  checkDepth(*node, deepest);
  if (!call && opensHere(TokenKind::LParen)) {
    std::array<std::string_view, 15> names;
    std::string all, hint;
    for (std::size_t i = 0; i < names.size(); ++i) {
      names[i] = ast::spelling(static_cast<ReduceKind>(i));
      all += (i ? " " : "") + std::string(names[i]);
    }
    if (hint = didYouMean(spelling, names); hint.empty())
      hint = "the reductions are " + all;
    diags.error(Diag::NotAReduction, name.span).help(hint)
        << "'" << spelling << "' is not a reduction, so it cannot take both [...] and (...)";
    throw SyntaxError();
  }
  return node;
}

// reduce := KIND '[' index {',' index} [';' modifier {',' modifier}] ']' '(' expr ')'
ExprPtr Parser::parseReduce(const Token &name, ReduceKind kind) {
  const Token &open = take();
  auto node = make<Reduce>(name.span, kind, name.span, std::vector<IndexPtr>(), nullptr);
  std::uint32_t deepest = 0;
  Nest nest(*this, open.span);
  {
    Brackets brackets(*this);
    do {
      IndexPtr index = parseIndex();
      if (index->hasRange())
        deepest = std::max({deepest, index->lo->depth, index->hi->depth});
      if (index->hasRange() && keepsIndex(kind))
        diags.error(Diag::RangeOnKeptIndex, index->span)
                .help("'" + std::string(spelling(kind)) +
                      "' keeps its index: write the range where the index is introduced")
            << "index '" << index->name << "' cannot have a range here";
      node->binders.push_back(std::move(index));
    } while (accept(TokenKind::Comma));
    if (accept(TokenKind::Semicolon))
      do
        parseModifier(*node);
      while (accept(TokenKind::Comma));
  }
  closeBracket(open, TokenKind::RBracket, "the indices of '" + this->name(name) + "'");
  const Token &paren =
      expect(TokenKind::LParen, "after '" + this->name(name) + "[...]'",
             "write what is reduced in parentheses: " + this->name(name) +
                 "[...](...); a value needs another name than '" + this->name(name) + "'");
  {
    Brackets brackets(*this);
    node->body = parseExpr();
  }
  closeBracket(paren, TokenKind::RParen, "the body of '" + this->name(name) + "'");
  node->span = spanFrom(name.span.begin);
  checkDepth(*node, std::max(deepest, node->body->depth));
  return node;
}

// modifier := 'exact' | 'tf32' | 'fast' | 'wire' '=' dtype
void Parser::parseModifier(Reduce &reduce) {
  if (isWord("wire") && peek(1).kind == TokenKind::Assign) {
    reduce.wireSpan = take().span;
    take();
    Span type;
    reduce.wire = parseDType(type);
    reduce.wireSpan = join(reduce.wireSpan, type);
    return;
  }
  const Token &token = expectName("a modifier: exact, tf32, fast or wire = TYPE");
  reduce.modifierSpan = token.span;
  for (auto modifier : {ReduceModifier::Exact, ReduceModifier::Tf32, ReduceModifier::Fast})
    if (text(token) == spelling(modifier))
      reduce.modifier = modifier;
  static constexpr std::string_view names[] = {"exact", "tf32", "fast"};
  if (text(token) != spelling(reduce.modifier))
    diags.error(Diag::UnknownModifier, token.span)
            .expected("exact, tf32, fast or wire = TYPE")
            .help(didYouMean(text(token), names))
        << "'" << text(token) << "' is not a modifier of a reduction";
}

} // namespace tk
