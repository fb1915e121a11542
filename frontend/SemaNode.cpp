// Making typed nodes, and converting between types.

#include "frontend/SemaKernel.h"

#include <algorithm>

namespace tk::sema {

Node *KernelSema::make(NodeKind kind, Type type, Span span) {
  Node &n = out.nodes.emplace_back();
  n.kind = kind;
  n.type = type;
  n.span = span;
  return &n;
}

Node *KernelSema::intConst(std::int64_t value, Span span, Type type, bool literal) {
  Node *n = make(NodeKind::IntConst, type, span);
  n->intValue = value;
  n->literal = literal;
  n->kernelLevel = true;
  return n;
}

Node *KernelSema::floatConst(double value, Span span, Type type, bool literal) {
  Node *n = make(NodeKind::FloatConst, type, span);
  n->floatValue = value;
  n->literal = literal;
  n->kernelLevel = true;
  return n;
}

Node *KernelSema::zero(Type type, Span span) {
  Node *n = type == Type::Bool ? make(NodeKind::BoolConst, type, span)
            : isInteger(type)  ? intConst(0, span, type)
                               : floatConst(0, span, type);
  n->kernelLevel = true;
  return n;
}

Node *KernelSema::op(Op op, Type type, std::vector<Node *> args, Span span) {
  Node *n = make(NodeKind::Op, type, span);
  n->op = op;
  n->kernelLevel = n->literal = true;
  for (Node *arg : args) {
    n->kernelLevel &= arg->kernelLevel;
    n->literal &= arg->literal;
    if (isInteger(type) && arg->quotient && op != Op::Rem) {
      n->quotient = true;
      n->quotientSpan = arg->quotientSpan;
    }
  }
  if (op == Op::Rand || !isFloat(type))
    n->literal = false;
  if (op == Op::FloorDiv) {
    n->quotient = true;
    n->quotientSpan = span;
  }
  n->fromLiterals = type == Type::Index || type == Type::I64;
  for (Node *arg : args)
    n->fromLiterals &= arg->fromLiterals || arg->type == Type::Bool;
  n->args = std::move(args);
  return n;
}

Node *KernelSema::indexNode(IndexVar *var, Span span) {
  Node *n = make(NodeKind::Index, Type::Index, span);
  n->indices = {var};
  return n;
}

Node *KernelSema::reduceNode(ast::ReduceKind kind, Type type, std::vector<IndexVar *> vars,
                             Node *body, Span span) {
  Node *n = make(NodeKind::Reduce, type, span);
  n->reduce = kind;
  n->indices = std::move(vars);
  n->args = {body};
  n->fromLiterals = isInteger(type) && body->fromLiterals;
  return n;
}

Node *KernelSema::typeError(Span span, const std::string &what, const std::string &expected,
                            const Node *found, const std::string &help) {
  diags.error(Diag::TypeMismatch, span).expected(expected).found(spelling(found->type)).help(help)
      << what;
  return nullptr;
}

Node *KernelSema::convert(Node *n, Type type, bool explicitly) {
  if (n->type == type && !(n->literal && explicitly))
    return n;
  if (n->literal && n->kind == NodeKind::IntConst) {
    if (isFloat(type))
      return floatConst(static_cast<double>(n->intValue), n->span, type);
    if (n->intValue < minOf(type) || n->intValue > maxOf(type)) {
      diags.error(Diag::NumberTooLarge, n->span)
          << "the number " << n->intValue << " does not fit into " << spelling(type);
      return nullptr;
    }
    return intConst(n->intValue, n->span, type);
  }
  if (n->literal && isFloat(type)) {
    if (n->kind == NodeKind::FloatConst)
      return floatConst(n->floatValue, n->span, type);
    if (auto it = adopted.find({n, type}); it != adopted.end())
      return it->second;
    std::vector<Node *> args;
    for (Node *arg : n->args) // the exponent of a power stays an integer
      args.push_back(n->op == Op::Pow && !args.empty() ? arg : convert(arg, type));
    Node *made = op(n->op, type, std::move(args), n->span);
    made->literal = false;
    adopted[{n, type}] = made;
    return made;
  }
  if (!explicitly && n->quotient && isFloat(type))
    diags.warning(Diag::IntegerQuotient, n->quotientSpan)
            .label("this is a floor division of integers")
            .help("for real division make one side a float, as in `1.0 / C`; for floor division "
                  "write floor(...) or a cast")
        << "an integer quotient is used as a float";
  Node *c = make(NodeKind::Convert, type, n->span);
  c->args = {n};
  c->kernelLevel = n->kernelLevel;
  c->fromLiterals = n->fromLiterals && isInteger(type);
  return c;
}

Node *KernelSema::forRounding(Node *n, ast::DType stored, bool explicitly) {
  if (n->type == Type::F64)
    return n;
  // An f32 holds every integer that a float of 16 bits or fewer holds, except for bf16, whose range
  // is that of f32.
  const bool isWide = isInteger(n->type) && widthOf(n->type) >= 32;
  if (!isWide || n->kind == NodeKind::IntConst || stored != ast::DType::BF16)
    return convert(n, Type::F32, explicitly);
  Node *c = convert(n, Type::F64, explicitly);
  c->roundsToOdd = widthOf(n->type) == 64;
  return c;
}

/// Whether an integer type holds the integer literals among the values.
static bool holdsLiterals(Type type, const std::vector<Node *> &args) {
  return std::all_of(args.begin(), args.end(), [&](const Node *arg) {
    return !arg->literal || arg->kind != NodeKind::IntConst ||
           (arg->intValue >= minOf(type) && arg->intValue <= maxOf(type));
  });
}

bool KernelSema::meet(std::vector<Node *> &args, Span span, std::optional<Type> atLeast,
                      NarrowIntegers narrow) {
  std::optional<Type> type = atLeast;
  bool literalFloat = false;
  for (Node *arg : args) {
    if (arg->literal) {
      literalFloat |= isFloat(arg->type);
      continue;
    }
    type = type ? join(*type, arg->type) : arg->type;
    if (!type) {
      typeError(arg->span, "a bool and a number do not meet", "values of one type", arg);
      return false;
    }
  }
  if (literalFloat)
    type = type ? join(*type, Type::F32) : Type::F32;
  if (!type)
    type = Type::Index; // integer literals only
  if (narrow == NarrowIntegers::Widen ||
      (narrow == NarrowIntegers::HoldLiterals && !holdsLiterals(*type, args)))
    type = arithmeticType(*type);
  if (type == Type::Bool)
    for (Node *arg : args)
      if (arg->literal) {
        typeError(arg->span, "a bool and a number do not meet", "bool", arg);
        return false;
      }
  bool allLiteral = true;
  for (Node *arg : args)
    allLiteral &= arg->literal;
  for (Node *&arg : args) {
    if (allLiteral && isFloat(*type)) {
      // Stay literal: the pair may meet an f64 later.
      if (arg->kind == NodeKind::IntConst)
        arg = floatConst(static_cast<double>(arg->intValue), arg->span, *type, true);
      continue;
    }
    const bool isIntegerLiteral = arg->literal && isInteger(*type);
    arg = convert(arg, *type);
    if (!arg)
      return false;
    arg->fromLiterals |= isIntegerLiteral;
  }
  return true;
}

} // namespace tk::sema
