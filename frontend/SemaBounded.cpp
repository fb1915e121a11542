// Reductions over ranges whose bounds are loaded, or are other indices: `sum[t in off[g]..off[g +
// 1]]`, `sum[k in i..N]`.
//
// The index ranges over all that it may take: the dimension at which it stands bare, else from the
// least to the greatest value of its bounds. The terms outside of the bounds are absent: a
// condition chooses the reduction's identity value in their place.

#include "frontend/SemaKernel.h"

#include <algorithm>
#include <limits>

namespace tk::sema {

using bounds::Poly;

/// The least or the greatest value of an integer over all indices, if that is one expression of
/// sizes.
std::optional<Poly> KernelSema::extremeOf(const Node *n, bool isLower) {
  std::optional<Poly> value = polyOf(n);
  if (!value || value->overflowed())
    return std::nullopt;
  std::optional<std::vector<Poly>> extremes =
      prover.minimum(isLower ? *value : Poly(0) - *value, activeAtoms());
  if (!extremes || extremes->size() != 1)
    return std::nullopt;
  return isLower ? extremes->front() : Poly(0) - extremes->front();
}

bool KernelSema::staticRange(const ast::Index &index, const Uses &uses, Node *&lo, Node *&hi) {
  if (const Use *use = rangeGiving(uses)) {
    lo = use->low ? use->low : intConst(0, index.span);
    hi = use->extent;
    return true;
  }
  std::optional<Poly> least = extremeOf(lo, true), most = extremeOf(hi, false);
  if (least && most) {
    lo = nodeOf(*least, index.span);
    hi = nodeOf(*most, index.span);
    return true;
  }
  if (!uses.broken)
    diags.error(Diag::NoRange, index.nameSpan)
            .help("read a tensor at '" + index.name + "' alone, as in x[" + index.name + "]")
        << "the bounds of '" << index.name << "' are known at run time only, and no subscript is '"
        << index.name << "' alone";
  return false;
}

/// With `--checked`, the first and the last position of a range that is not empty must lie in the
/// dimension.
void KernelSema::checkBound(const ast::Expr &bound, const IndexVar &var, Node *position,
                            Node *isNotEmpty) {
  std::optional<Poly> at = polyOf(position), from = polyOf(var.lo), to = polyOf(var.hi);
  if (at && from && to && prover.nonNegative(*at - *from, activeAtoms()) &&
      prover.nonNegative(*to - 1 - *at, activeAtoms()))
    return;
  std::vector<std::pair<Node *, bool>> around = guards;
  around.emplace_back(isNotEmpty, true);
  std::string text(diags.sources().text(bound.span));
  out.gathers.push_back({position, var.lo, var.hi, std::move(around),
                         "bound '" + text + "' of index '" + var.name + "'", bound.span});
}

IndexVar *KernelSema::declareBounded(const ast::Index &index, const Uses &uses, Node *lo,
                                     Node *hi) {
  Node *least = lo, *most = hi;
  if (!staticRange(index, uses, least, most))
    return nullptr;
  const Span span = index.span;
  Node *isNotEmpty = op(Op::Lt, Type::Bool, {lo, hi}, span);
  IndexVar *var = enterIndex(index, least, most);
  if (!var)
    return nullptr;
  checkBound(*index.lo, *var, lo, isNotEmpty);
  checkBound(*index.hi, *var, op(Op::Sub, Type::Index, {hi, intConst(1, span)}, span), isNotEmpty);
  auto isSame = [&](Node *a, Node *b) {
    std::optional<Poly> p = polyOf(a), q = polyOf(b);
    return p && q && prover.equal(*p, *q);
  };
  Node *at = indexNode(var, span), *condition = nullptr;
  if (!isSame(lo, var->lo))
    condition = op(Op::Le, Type::Bool, {lo, at}, span);
  if (!isSame(hi, var->hi)) {
    Node *below = op(Op::Lt, Type::Bool, {at, hi}, span);
    condition = condition ? op(Op::And, Type::Bool, {condition, below}, span) : below;
  }
  if (condition)
    boundConditions[var] = condition;
  var->boundLo = lo;
  var->boundHi = hi;
  return var;
}

/// `body` where the condition holds, elsewhere what changes nothing of such a reduction.
Node *KernelSema::whereBounded(Node *condition, ast::ReduceKind kind, Node *body) {
  using K = ast::ReduceKind;
  if (!condition)
    return body;
  const Type type = body->type;
  const Span span = body->span;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Node *none = nullptr;
  switch (kind) {
  case K::Prod:
    none = isFloat(type) ? floatConst(1, span, type) : intConst(1, span, type);
    break;
  case K::Max:
    none = isFloat(type) ? floatConst(-infinity, span, type) : intConst(minOf(type), span, type);
    break;
  case K::Min:
    none = isFloat(type) ? floatConst(infinity, span, type) : intConst(maxOf(type), span, type);
    break;
  case K::All:
    none = make(NodeKind::BoolConst, Type::Bool, span);
    none->intValue = 1;
    none->kernelLevel = true;
    break;
  default:
    none = zero(type, span);
    break;
  }
  none->fromLiterals = isInteger(type);
  Node *chosen = op(Op::Select, type, {condition, body, none}, span);
  chosen->literal = false;
  return chosen;
}

/// How many values the indices take under the condition.
Node *KernelSema::countOf(const std::vector<IndexVar *> &vars, Node *condition, Span span) {
  if (vars.size() == 1) {
    const IndexVar *var = vars[0];
    Node *first = op(Op::Max, Type::Index, {var->boundLo, var->lo}, span);
    Node *end = op(Op::Min, Type::Index, {var->boundHi, var->hi}, span);
    Node *length = op(Op::Sub, Type::Index, {end, first}, span);
    return convert(op(Op::Max, Type::Index, {length, intConst(0, span)}, span), Type::I64);
  }
  Node *one = intConst(1, span, Type::I64), *none = intConst(0, span, Type::I64);
  Node *counted = op(Op::Select, Type::I64, {condition, one, none}, span);
  return reduceNode(ast::ReduceKind::Sum, Type::I64, vars, counted, span);
}

} // namespace tk::sema
