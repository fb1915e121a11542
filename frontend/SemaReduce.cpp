// Reductions, normalisers and scans.

#include "frontend/SemaKernel.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tk::sema {

Node *KernelSema::reduce(const ast::Reduce &e) {
  if (ast::keepsIndex(e.reduceKind))
    return keeping(e);
  bool outer = indexMode;
  indexMode = false;
  std::vector<IndexVar *> vars;
  bool ok = true;
  const ast::Reduce *outerBinding = std::exchange(binding, &e);
  const Span outerDeclaring = std::exchange(declaring, e.span);
  for (const ast::IndexPtr &binder : e.binders) {
    IndexVar *var = declareIndex(*binder, {e.body.get()}, nullptr, nullptr);
    ok &= var != nullptr;
    if (var)
      vars.push_back(var);
  }
  binding = outerBinding;
  declaring = outerDeclaring;
  Node *condition = nullptr;
  for (IndexVar *var : vars)
    if (auto it = boundConditions.find(var); it != boundConditions.end())
      condition = condition ? op(Op::And, Type::Bool, {condition, it->second}, e.span) : it->second;
  if (condition)
    guards.emplace_back(condition, true);
  const ast::Reduce *outerReducing = std::exchange(reducing, &e);
  Node *body = ok ? expr(*e.body) : nullptr;
  reducing = outerReducing;
  if (condition)
    guards.pop_back();
  undeclare(e.binders);
  Node *result = body ? reduceOver(e, std::move(vars), body, condition) : nullptr;
  indexMode = outer;
  return result;
}

/// Whether a reduction compares its terms. Bytes are held in signed ones, whose order is another,
/// so that they are compared as wider integers.
static bool isOrdering(ast::ReduceKind kind) {
  using K = ast::ReduceKind;
  return kind == K::Max || kind == K::Min || kind == K::ArgMax || kind == K::ArgMin ||
         kind == K::CumMax;
}

/// Whether a reduction's result lies outside the range of its terms: integers of fewer than 32 bits
/// are then accumulated in i32.
static bool accumulates(ast::ReduceKind kind) {
  using K = ast::ReduceKind;
  return kind == K::Sum || kind == K::Prod || kind == K::CumSum || kind == K::CumProd;
}

/// Literals alone as what a reduction takes: integers may still be stored into any integer type.
Node *KernelSema::literalTerm(Node *body) {
  if (isFloat(body->type))
    return convert(body, Type::F32, true);
  Node *term = convert(body, Type::I64, true);
  if (term)
    term->fromLiterals = true;
  return term;
}

/// `wire` is of sums, and a float of 16 or 32 bits.
bool KernelSema::checkWire(const ast::Reduce &e) {
  if (!e.wire)
    return true;
  const bool isFloat =
      *e.wire == ast::DType::F32 || *e.wire == ast::DType::F16 || *e.wire == ast::DType::BF16;
  if (e.reduceKind == ast::ReduceKind::Sum && isFloat)
    return true;
  auto error = diags.error(Diag::MisplacedModifier, e.wireSpan);
  if (e.reduceKind != ast::ReduceKind::Sum)
    error << "'wire' is for sums, not for '" << ast::spelling(e.reduceKind) << "'";
  else
    error.expected("f32, bf16 or f16").found(std::string(ast::spelling(*e.wire)))
        << "partial sums travel as floats of 16 or 32 bits";
  return false;
}

Node *KernelSema::reduceOver(const ast::Reduce &e, std::vector<IndexVar *> vars, Node *body,
                             Node *condition) {
  using K = ast::ReduceKind;
  if (e.modifier != ast::ReduceModifier::None && e.reduceKind != K::Sum) {
    diags.error(Diag::MisplacedModifier, e.modifierSpan)
        << "'" << ast::spelling(e.modifier) << "' is for sums, not for '"
        << ast::spelling(e.reduceKind) << "'";
    return nullptr;
  }
  if (!checkWire(e))
    return nullptr;
  if (e.reduceKind == K::Any || e.reduceKind == K::All) {
    if (body->type != Type::Bool)
      return typeError(e.body->span, "any and all reduce bools", "bool", body);
    body = whereBounded(condition, e.reduceKind, body);
    return reduceNode(e.reduceKind, Type::Bool, std::move(vars), body, e.span);
  }
  if (body->type == Type::Bool)
    return typeError(e.body->span,
                     "'" + std::string(ast::spelling(e.reduceKind)) + "' takes numbers", "a number",
                     body,
                     e.reduceKind == K::Sum ? "to count, write sum[…](if … then 1 else 0)" : "");
  if (body->literal)
    body = literalTerm(body);
  if (body->type == Type::Index)
    body = convert(body, Type::I64);
  bool isOrderOfBytes = body->type == Type::U8 && isOrdering(e.reduceKind);
  if (isOrderOfBytes)
    body = convert(body, Type::I32);
  if (accumulates(e.reduceKind))
    body = convert(body, arithmeticType(body->type));
  switch (e.reduceKind) {
  case K::Sum:
    return contraction(e, vars, body, condition);
  case K::Mean:
    return mean(vars, convert(body, body->type == Type::F64 ? Type::F64 : Type::F32), e.span,
                condition);
  case K::LogSumExp:
    body = convert(body, body->type == Type::F64 ? Type::F64 : Type::F32);
    return logSumExp(vars, whereBounded(condition, K::Max, body), e.span);
  case K::ArgMax:
  case K::ArgMin:
    if (condition) {
      diags.error(Diag::NotSupported, e.span)
              .help("choose the values by a condition: if lo <= k and k < hi then … else -inf")
          << ast::spelling(e.reduceKind) << " over a range whose bounds are loaded or indices";
      return nullptr;
    }
    for (const IndexVar *var : vars)
      requireNonEmpty(e, var);
    if (&e == widePlace)
      return place(e.reduceKind, vars, body, e.span, Type::I64);
    requireNarrowPlaces(e, vars);
    return place(e.reduceKind, vars, body, e.span, Type::I32);
  default:
    body = whereBounded(condition, e.reduceKind, body);
    Node *n = reduceNode(e.reduceKind, body->type, std::move(vars), body, e.span);
    return isOrderOfBytes ? convert(n, Type::U8, true) : n;
  }
}

/// Where the largest (smallest) value is: the index, or of several the position in row-major order.
Node *KernelSema::place(ast::ReduceKind kind, const std::vector<IndexVar *> &vars, Node *body,
                        Span span, Type type) {
  using K = ast::ReduceKind;
  if (vars.size() == 1)
    return reduceNode(kind, type, vars, body, span);
  // The best of each row, then the row with the best of all: the first such, and in it the first.
  IndexVar *row = vars.front();
  std::vector<IndexVar *> inner(vars.begin() + 1, vars.end()), rows;
  for (IndexVar *var : freeIndices({body}))
    if (std::find(inner.begin(), inner.end(), var) == inner.end())
      rows.push_back(var);
  if (std::find(rows.begin(), rows.end(), row) == rows.end())
    rows.push_back(row);
  K best = kind == K::ArgMax ? K::Max : K::Min;
  Node *value = hidden("best", rows, reduceNode(best, body->type, inner, body, span), span);
  Node *column = hidden("place", rows, place(kind, inner, body, span, type), span);
  Node *found = convert(reduceNode(kind, type, {row}, value, span), Type::Index);
  std::vector<Node *> indices;
  for (IndexVar *var : rows)
    indices.push_back(var == row ? found : indexNode(var, span));
  Node *inRow = loadOf(column->tensor, std::move(indices), span);
  inRow->pad = intConst(0, span, inRow->type);
  Node *width = nullptr;
  for (const IndexVar *var : inner)
    width =
        width ? op(Op::Mul, Type::Index, {width, lengthOf(var, span)}, span) : lengthOf(var, span);
  Node *above = op(Op::Sub, Type::Index, {found, row->lo}, span);
  if (inner.size() == 1) // an index rather than a position
    inRow = op(Op::Sub, Type::Index, {convert(inRow, Type::Index), inner[0]->lo}, span);
  else
    inRow = convert(inRow, Type::Index);
  Node *position =
      op(Op::Add, Type::Index, {op(Op::Mul, Type::Index, {above, width}, span), inRow}, span);
  return convert(position, type, true);
}

/// An i32 must hold every position: those of one index, or of all of them in row-major order.
void KernelSema::requireNarrowPlaces(const ast::Reduce &e, const std::vector<IndexVar *> &vars) {
  const bounds::Poly limit(maxOf(Type::I32) + 1);
  std::optional<bounds::Poly> count = vars.size() == 1 ? polyOf(vars[0]->hi) : bounds::Poly(1);
  if (vars.size() > 1)
    for (const IndexVar *var : vars) {
      std::optional<bounds::Poly> lo = polyOf(var->lo), hi = polyOf(var->hi);
      count = count && lo && hi ? std::optional(*count * (*hi - *lo)) : std::nullopt;
    }
  if (!count || count->overflowed()) // loaded bounds: the positions are those of a tensor's axis
    return;
  std::string names;
  for (const IndexVar *var : vars)
    names += (names.empty() ? "" : ", ") + var->name;
  const std::string text =
      "the positions of " + std::string(ast::spelling(e.reduceKind)) + "[" + names +
      "](…) fit i32; it is i64 as the whole right side of an i64 result or local";
  if (proveClause({limit - *count}, e.span, text) == Proof::Never)
    checkAtLaunch(e.span, {limit - *count}, text);
}

/// Nothing is the largest of none: a range must not be empty, unless the result is.
void KernelSema::requireNonEmpty(const ast::Reduce &e, const IndexVar *var) {
  std::optional<bounds::Poly> lo = polyOf(var->lo), hi = polyOf(var->hi);
  if (!lo || !hi || prover.nonNegative(*hi - *lo - 1, activeAtoms()))
    return;
  checkAtLaunch(e.span, {*hi - *lo - 1},
                rangeOf(var->lo, var->hi) + " is not empty for " +
                    std::string(ast::spelling(e.reduceKind)) + "[" + var->name + "]");
}

/// The number of values of an index.
Node *KernelSema::lengthOf(const IndexVar *var, Span span) {
  if (var->startsAtZero())
    return var->hi;
  Node *length = op(Op::Sub, Type::Index, {var->hi, var->lo}, span);
  return op(Op::Max, Type::Index, {length, intConst(0, span)}, span);
}

/// A sum; where its body is a product of two factors, with the rounding that lets tensor cores
/// run it.
Node *KernelSema::contraction(const ast::Reduce &e, const std::vector<IndexVar *> &vars, Node *body,
                              Node *condition) {
  if (e.modifier != ast::ReduceModifier::Exact) {
    Node *grouped = groupFactors(vars, body);
    body = grouped != body ? grouped : withRoundings(body);
  }
  body = whereBounded(condition, ast::ReduceKind::Sum, withFactorsOfOneType(body));
  Node *n = reduceNode(ast::ReduceKind::Sum, body->type, vars, body, e.span);
  n->modifier = e.modifier;
  n->wire = e.wire;
  return n;
}

Node *KernelSema::mean(const std::vector<IndexVar *> &vars, Node *body, Span span,
                       Node *condition) {
  if (condition) {
    body = whereBounded(condition, ast::ReduceKind::Sum, body);
    Node *sum = reduceNode(ast::ReduceKind::Sum, body->type, vars, body, span);
    Node *number = countOf(vars, condition, span);
    return op(Op::Div, body->type, {sum, convert(number, body->type, true)}, span);
  }
  Node *count = nullptr;
  for (IndexVar *var : vars) {
    Node *length = lengthOf(var, span);
    count = count ? op(Op::Mul, Type::Index, {count, length}, span) : length;
  }
  Node *sum = reduceNode(ast::ReduceKind::Sum, body->type, vars, body, span);
  return op(Op::Div, body->type, {sum, convert(canonical(count), body->type, true)}, span);
}

Node *KernelSema::logSumExp(const std::vector<IndexVar *> &vars, Node *body, Span span) {
  Type type = body->type;
  Node *m = reduceNode(ast::ReduceKind::Max, type, vars, body, span);
  Node *term = op(Op::ExpDiff, type, {body, m}, span);
  Node *z = reduceNode(ast::ReduceKind::Sum, type, vars, term, span);
  Node *value = op(Op::Add, type, {m, op(Op::Log, type, {z}, span)}, span);
  Node *inf = floatConst(std::numeric_limits<double>::infinity(), span, type);
  return op(Op::Select, type, {op(Op::Eq, Type::Bool, {m, inf}, span), inf, value}, span);
}

Node *KernelSema::keeping(const ast::Reduce &e) {
  std::vector<IndexVar *> vars;
  for (const ast::IndexPtr &use : e.binders) {
    auto it = scope.find(use->name);
    if (it == scope.end() || !it->second.index) {
      diags.error(Diag::IndexNotKept, use->nameSpan)
              .help("write " + use->name + " on the left side, or bind it around this")
          << ast::spelling(e.reduceKind) << " keeps its index, but nothing ranges over '"
          << use->name << "' here";
      return nullptr;
    }
    vars.push_back(it->second.index);
  }
  bool outer = indexMode;
  indexMode = false;
  Node *body = expr(*e.body);
  indexMode = outer;
  if (!body)
    return nullptr;
  if (body->type == Type::Bool)
    return typeError(e.body->span, "this takes numbers", "a number", body);
  if (e.modifier != ast::ReduceModifier::None) {
    diags.error(Diag::MisplacedModifier, e.modifierSpan)
        << "'" << ast::spelling(e.modifier) << "' is for sums";
    return nullptr;
  }
  if (!checkWire(e))
    return nullptr;
  bool isScan = e.reduceKind >= ast::ReduceKind::CumSum;
  if (body->literal)
    body = isScan ? literalTerm(body) : convert(body, Type::F32, true);
  if (!isScan)
    return normalise(e, vars, convert(body, body->type == Type::F64 ? Type::F64 : Type::F32));
  if (body->type == Type::Index)
    body = convert(body, Type::I64);
  bool isOrderOfBytes = body->type == Type::U8 && isOrdering(e.reduceKind);
  if (isOrderOfBytes)
    body = convert(body, Type::I32);
  if (accumulates(e.reduceKind))
    body = convert(body, arithmeticType(body->type));
  // Over several indices: of all terms at which none of them is larger.
  for (auto var = vars.rbegin(); var != vars.rend(); ++var)
    body = scan(e, *var, body);
  return isOrderOfBytes ? convert(body, Type::U8, true) : body;
}

Node *KernelSema::scan(const ast::Reduce &e, IndexVar *var, Node *body) {
  Node *scan = make(NodeKind::Scan, body->type, e.span);
  scan->reduce = e.reduceKind;
  scan->indices = {var};
  scan->args = {body};
  scan->fromLiterals = isInteger(body->type) && body->fromLiterals;
  return hidden("scan", freeIndices({scan}), scan, e.span);
}

Node *KernelSema::normalise(const ast::Reduce &e, const std::vector<IndexVar *> &vars, Node *body) {
  Span span = e.span;
  Type type = body->type;
  bool plain = body->kind == NodeKind::Load && !body->pad;
  std::vector<IndexVar *> over = freeIndices({body});
  if (!plain && !body->kernelLevel)
    body = hidden("score", over, body, span);
  std::vector<IndexVar *> rest;
  for (IndexVar *v : over)
    if (std::find(vars.begin(), vars.end(), v) == vars.end())
      rest.push_back(v);
  Node *m = reduceNode(ast::ReduceKind::Max, type, vars, body, span);
  m = hidden("max", rest, m, span);
  Node *term = op(Op::ExpDiff, type, {body, m}, span);
  Node *z = hidden("sum", rest, reduceNode(ast::ReduceKind::Sum, type, vars, term, span), span);
  if (e.reduceKind == ast::ReduceKind::Softmax)
    return op(Op::DivOrZero, type, {term, z}, span);
  Node *shifted = op(Op::Sub, type, {body, m}, span);
  return op(Op::Sub, type, {shifted, op(Op::Log, type, {z}, span)}, span);
}

} // namespace tk::sema
