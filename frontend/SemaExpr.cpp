// Scalar expressions: names, operators, conditions.

#include "frontend/SemaKernel.h"

#include <cmath>
#include <limits>

namespace tk::sema {

static constexpr unsigned kMaxExprDepth = 2048;

Node *KernelSema::expr(const ast::Expr &e) {
  if (out.nodes.size() > kMaxNodes) {
    diags.error(Diag::TooManyOperations, out.source->nameSpan)
        << "kernel '" << out.source->name << "' comes to more than " << kMaxNodes
        << " operations after inlining";
    return nullptr;
  }
  if (exprDepth >= kMaxExprDepth) {
    diags.error(Diag::ExpressionTooDeep, out.source->nameSpan)
        << "an expression of kernel '" << out.source->name << "' is deeper than " << kMaxExprDepth
        << " after inlining";
    return nullptr;
  }
  ++exprDepth;
  Node *n = exprOf(e);
  --exprDepth;
  return n;
}

Node *KernelSema::exprOf(const ast::Expr &e) {
  switch (e.kind) {
  case ast::ExprKind::IntLit:
    return intConst(static_cast<const ast::IntLit &>(e).value, e.span, Type::Index, true);
  case ast::ExprKind::FloatLit:
    return floatConst(static_cast<const ast::FloatLit &>(e).value, e.span, Type::F32, true);
  case ast::ExprKind::BoolLit: {
    Node *n = make(NodeKind::BoolConst, Type::Bool, e.span);
    n->intValue = static_cast<const ast::BoolLit &>(e).value;
    n->kernelLevel = true;
    return n;
  }
  case ast::ExprKind::NameRef:
    return nameRef(static_cast<const ast::NameRef &>(e));
  case ast::ExprKind::Unary:
    return unary(static_cast<const ast::Unary &>(e));
  case ast::ExprKind::Binary:
    return binary(static_cast<const ast::Binary &>(e));
  case ast::ExprKind::If:
    return conditional(static_cast<const ast::If &>(e));
  case ast::ExprKind::Call:
    return call(static_cast<const ast::Call &>(e));
  case ast::ExprKind::Access:
    return access(static_cast<const ast::Access &>(e), nullptr);
  case ast::ExprKind::Reduce:
    return reduce(static_cast<const ast::Reduce &>(e));
  case ast::ExprKind::Error:
    return nullptr;
  }
  return nullptr;
}

Node *KernelSema::indexExpr(const ast::Expr &e) {
  bool outer = indexMode;
  indexMode = true;
  Node *n = expr(e);
  indexMode = outer;
  if (!n)
    return nullptr;
  if (!isInteger(n->type))
    return typeError(e.span, "an index must be an integer", "an integer", n,
                     isFloat(n->type) ? "write a cast: i32(…)" : "");
  return convert(n, Type::Index);
}

Node *KernelSema::symbolValue(const Symbol &symbol, Span span, const std::string &name) {
  if (symbol.index)
    return indexNode(symbol.index, span);
  if (symbol.tensor) {
    if (symbol.rank() == 0)
      return loadOf(symbol.tensor, symbol.leading, span);
    diags.error(Diag::NotAScalar, span)
            .help("read one element, as in " + name + "[" +
                  std::string(symbol.tensor->extents.size() == 1 ? "i" : "i, ...") + "]")
        << "'" << name << "' is a tensor " << shapeOf(*symbol.tensor) << ", not a scalar";
    return nullptr;
  }
  if (indexMode && symbol.asIndex)
    return symbol.asIndex;
  Node *n = symbol.node;
  if (indexMode && isInteger(n->type) && n->type != Type::Index)
    return convert(n, Type::Index);
  return n;
}

Node *KernelSema::nameRef(const ast::NameRef &e) {
  if (auto it = scope.find(e.name); it != scope.end()) {
    if (auto named = namedExtents.find(e.name);
        named != namedExtents.end() && named->second.node == it->second.node)
      named->second.isUsed = true;
    return symbolValue(it->second, e.span, e.name);
  }
  if (e.name == "inf")
    return floatConst(std::numeric_limits<double>::infinity(), e.span, Type::F32, true);
  if (e.name == "nan")
    return floatConst(std::numeric_limits<double>::quiet_NaN(), e.span, Type::F32, true);
  if (e.name == "pi")
    return floatConst(3.14159265358979323846, e.span, Type::F32, true);
  if (auto it = globals.consts.find(e.name); it != globals.consts.end() && !inLibrary) {
    if (kernelDepth > 64) {
      diags.error(Diag::Recursion, it->second->nameSpan)
          << "constant '" << e.name << "' is defined by itself";
      return nullptr;
    }
    Scope saved;
    std::swap(scope, saved);
    ++kernelDepth;
    Node *n = expr(*it->second->value);
    --kernelDepth;
    std::swap(scope, saved);
    return n;
  }
  return unknownName(e.name, e.span);
}

Node *KernelSema::unary(const ast::Unary &e) {
  Node *n = expr(*e.operand);
  if (!n)
    return nullptr;
  if (e.op == ast::UnaryOp::Not) {
    if (n->type != Type::Bool)
      return typeError(e.operand->span, "`not` takes a bool", "bool", n);
    return op(Op::Not, Type::Bool, {n}, e.span);
  }
  if (n->type == Type::Bool)
    return typeError(e.operand->span, "a bool has no negative", "a number", n);
  if (n->literal && n->kind == NodeKind::IntConst)
    return intConst(-n->intValue, e.span, Type::Index, true);
  if (n->literal && n->kind == NodeKind::FloatConst)
    return floatConst(-n->floatValue, e.span, n->type, true);
  const Type type = arithmeticType(n->type);
  return op(Op::Neg, type, {convert(n, type)}, e.span);
}

static Op opOf(ast::BinaryOp o) {
  switch (o) {
  case ast::BinaryOp::Add:
    return Op::Add;
  case ast::BinaryOp::Sub:
    return Op::Sub;
  case ast::BinaryOp::Mul:
    return Op::Mul;
  case ast::BinaryOp::Div:
    return Op::Div;
  case ast::BinaryOp::Rem:
    return Op::Rem;
  case ast::BinaryOp::Pow:
    return Op::Pow;
  case ast::BinaryOp::Eq:
    return Op::Eq;
  case ast::BinaryOp::Ne:
    return Op::Ne;
  case ast::BinaryOp::Lt:
    return Op::Lt;
  case ast::BinaryOp::Le:
    return Op::Le;
  case ast::BinaryOp::Gt:
    return Op::Gt;
  case ast::BinaryOp::Ge:
    return Op::Ge;
  case ast::BinaryOp::And:
    return Op::And;
  case ast::BinaryOp::Or:
    return Op::Or;
  }
  return Op::Add;
}

Node *KernelSema::binary(const ast::Binary &e) {
  Node *l = expr(*e.lhs), *r = expr(*e.rhs);
  if (!l || !r)
    return nullptr;
  Op o = opOf(e.op);
  if (ast::isLogical(e.op)) {
    for (Node *n : {l, r})
      if (n->type != Type::Bool)
        return typeError(n->span, "`and` and `or` take bools", "bool", n);
    return op(o, Type::Bool, {l, r}, e.span);
  }
  if (ast::isComparison(e.op))
    return compare(o, l, r, e.span);
  if (e.op == ast::BinaryOp::Pow)
    return power(l, r, e.span);
  return arithmetic(o, l, r, e.span, e.opSpan);
}

Node *KernelSema::compare(Op o, Node *l, Node *r, Span span) {
  std::vector<Node *> args{l, r};
  if (!meet(args, span, {}, NarrowIntegers::HoldLiterals))
    return nullptr;
  if (args[0]->type == Type::Bool && o != Op::Eq && o != Op::Ne)
    return typeError(span, "bools have no order", "numbers", l);
  return op(o, Type::Bool, std::move(args), span);
}

Node *KernelSema::foldInts(Op o, Node *l, Node *r, Span span, Span opSpan) {
  std::int64_t a = l->intValue, b = r->intValue, c = 0;
  bool overflow = false;
  if ((o == Op::Div || o == Op::Rem) && b <= 0) {
    diags.error(Diag::BadDivisor, opSpan).label(r->span, "this is " + std::to_string(b))
        << "the divisor of an integer division is not positive";
    return nullptr;
  }
  std::int64_t q = 0;
  if (o == Op::Div || o == Op::Rem)
    q = a / b - (a % b < 0);
  switch (o) {
  case Op::Add:
    overflow = __builtin_add_overflow(a, b, &c);
    break;
  case Op::Sub:
    overflow = __builtin_sub_overflow(a, b, &c);
    break;
  case Op::Mul:
    overflow = __builtin_mul_overflow(a, b, &c);
    break;
  case Op::Div:
    c = q;
    break;
  default:
    c = a - q * b;
    break;
  }
  if (overflow) {
    diags.error(Diag::NumberTooLarge, span) << "this number does not fit into 64 bits";
    return nullptr;
  }
  Node *n = intConst(c, span, Type::Index, true);
  // 1 / 2 flowing into a float is the mistake that the warning is for.
  n->quotient = o == Op::Div || l->quotient || r->quotient;
  n->quotientSpan = o == Op::Div ? span : l->quotient ? l->quotientSpan : r->quotientSpan;
  if (n->quotient)
    n->literal = false;
  return n;
}

static constexpr const char *chooseOrCast =
    "write if b then x else 0, or a cast, which makes 1 of true and 0 of false: f32(…)";

Node *KernelSema::arithmetic(Op o, Node *l, Node *r, Span span, Span opSpan) {
  if (l->kind == NodeKind::IntConst && r->kind == NodeKind::IntConst && l->type == Type::Index &&
      r->type == Type::Index)
    return foldInts(o, l, r, span, opSpan);
  for (Node *n : {l, r})
    if (n->type == Type::Bool)
      return typeError(n->span, "arithmetic takes numbers", "a number", n, chooseOrCast);
  std::vector<Node *> args{l, r};
  if (!meet(args, span, {}, NarrowIntegers::Widen))
    return nullptr;
  Type type = args[0]->type;
  if (o == Op::Div && isInteger(type))
    o = Op::FloorDiv;
  return op(o, type, std::move(args), span);
}

Node *KernelSema::power(Node *base, Node *exponent, Span span) {
  for (Node *n : {base, exponent})
    if (n->type == Type::Bool)
      return typeError(n->span, "arithmetic takes numbers", "a number", n, chooseOrCast);
  if (exponent->kind == NodeKind::IntConst && exponent->literal) {
    if (std::abs(exponent->intValue) > 64 || (isInteger(base->type) && exponent->intValue < 0)) {
      diags.error(Diag::IllegalExponent, exponent->span)
              .expected(isInteger(base->type) ? "0 to 64" : "-64 to 64")
              .found(std::to_string(exponent->intValue))
              .help("write pow(x, y) for other exponents")
          << "an integer exponent is repeated multiplication";
      return nullptr;
    }
    if (base->literal && base->kind == NodeKind::IntConst) {
      Node *result = intConst(1, span, Type::Index, true);
      for (std::int64_t i = 0; i < exponent->intValue && result; ++i)
        result = foldInts(Op::Mul, result, base, span, span);
      return result;
    }
    const Type type = arithmeticType(base->type);
    return op(Op::Pow, type, {convert(base, type), exponent}, span);
  }
  if (isInteger(exponent->type) && isInteger(base->type)) {
    diags.error(Diag::IllegalExponent, exponent->span)
            .expected("an integer literal, or a float on one side")
        << "an integer power needs a literal exponent";
    return nullptr;
  }
  std::vector<Node *> args{base, exponent};
  if (!meet(args, span, Type::F32))
    return nullptr;
  const Type type = args[0]->type;
  return op(Op::PowFn, type, std::move(args), span);
}

Node *KernelSema::conditional(const ast::If &e) {
  Node *c = expr(*e.condition);
  auto branch = [&](const ast::Expr &e, bool holds) {
    bool guarded = c && c->type == Type::Bool;
    if (guarded)
      guards.emplace_back(c, holds);
    Node *n = expr(e);
    if (guarded)
      guards.pop_back();
    return n;
  };
  Node *t = branch(*e.thenExpr, true), *f = branch(*e.elseExpr, false);
  if (!c || !t || !f)
    return nullptr;
  if (c->type != Type::Bool)
    return typeError(e.condition->span, "a condition must be a bool", "bool", c,
                     "compare the value, as in " +
                         std::string(diags.sources().text(e.condition->span)) + " != 0");
  std::vector<Node *> args{t, f};
  if (!meet(args, e.span))
    return nullptr;
  Node *n = op(Op::Select, args[0]->type, {c, args[0], args[1]}, e.span);
  n->literal = false;
  return n;
}

} // namespace tk::sema
