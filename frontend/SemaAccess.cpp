// Accesses: every one is in bounds by proof, or by a condition on sizes that is checked at launch.

#include "frontend/SemaKernel.h"

#include <algorithm>
#include <utility>

namespace tk::sema {

using bounds::Poly;

std::optional<Poly> KernelSema::polyOf(const Node *n) {
  if (auto it = polys.find(n); it != polys.end())
    return it->second;
  // Nodes are shared, so that a walk without this table may be exponential.
  return polys[n] = computePoly(n);
}

std::optional<Poly> KernelSema::computePoly(const Node *n) {
  switch (n->kind) {
  case NodeKind::IntConst:
    return Poly(n->intValue);
  case NodeKind::Index:
    return Poly::atom(n->indices[0]->atom);
  case NodeKind::Convert:
    if (n->type == Type::Index && isInteger(n->args[0]->type))
      return polyOf(n->args[0]);
    return std::nullopt;
  case NodeKind::Op: {
    if (n->type != Type::Index || n->args.empty())
      return std::nullopt;
    std::optional<Poly> a = polyOf(n->args[0]), b;
    if (n->args.size() > 1)
      b = polyOf(n->args[1]);
    if (!a || (n->args.size() > 1 && !b))
      return std::nullopt;
    switch (n->op) {
    case Op::Neg:
      return Poly(0) - *a;
    case Op::Add:
      return *a + *b;
    case Op::Sub:
      return *a - *b;
    case Op::Mul:
      return *a * *b;
    case Op::FloorDiv:
      return symbols.quotient(*a, *b);
    case Op::Rem:
      return symbols.remainder(*a, *b);
    case Op::Pow: {
      Poly r(1);
      for (std::int64_t i = 0; i < n->args[1]->intValue; ++i)
        r = r * *a;
      return r;
    }
    default:
      return std::nullopt;
    }
  }
  default:
    return std::nullopt;
  }
}

Node *KernelSema::nodeOf(const Poly &p, Span span) {
  Node *sum = nullptr;
  for (auto &[m, c] : p.terms()) {
    Node *term = nullptr;
    for (bounds::Atom a : m) {
      Node *&node = atomNodes[a];
      if (!node && symbols[a].kind == bounds::AtomKind::Quotient) {
        Poly num = symbols[a].num, den = symbols[a].den;
        Node *quotient =
            op(Op::FloorDiv, Type::Index, {nodeOf(num, span), nodeOf(den, span)}, span);
        atomNodes[a] = quotient;
      }
      Node *factor = atomNodes[a];
      term = term ? op(Op::Mul, Type::Index, {term, factor}, span) : factor;
    }
    std::int64_t size = c;
    bool subtract = sum && c < 0 && c != INT64_MIN;
    if (subtract)
      size = -c;
    if (!term)
      term = intConst(size, span);
    else if (size != 1)
      term = op(Op::Mul, Type::Index, {term, intConst(size, span)}, span);
    sum = !sum ? term : op(subtract ? Op::Sub : Op::Add, Type::Index, {sum, term}, span);
  }
  return sum ? sum : intConst(0, span);
}

Node *KernelSema::canonical(Node *n) {
  if (!n || !n->kernelLevel || n->type != Type::Index)
    return n;
  std::optional<Poly> p = polyOf(n);
  if (!p || p->overflowed())
    return n;
  auto [it, isNew] = canonicalNodes.try_emplace(*p, n);
  if (isNew && p->isConstant())
    it->second = intConst(p->constant(), n->span);
  return it->second;
}

std::vector<bounds::Atom> KernelSema::activeAtoms() const {
  std::vector<bounds::Atom> atoms;
  for (const IndexVar *var : activeIndices)
    atoms.push_back(var->atom);
  return atoms;
}

std::string KernelSema::textOf(const Node *n) {
  std::optional<Poly> p = polyOf(n);
  return p ? symbols.text(*p) : std::string(diags.sources().text(n->span));
}

std::string KernelSema::shapeOf(const Tensor &t) {
  std::string s(ast::spelling(t.dtype));
  s += "[";
  for (std::size_t i = 0; i < t.extents.size(); ++i)
    s += (i ? ", " : "") + rangeOf(t.lows.empty() ? nullptr : t.lows[i], t.extents[i]);
  return s + "]";
}

std::string KernelSema::indicesFor(const Tensor &t) {
  std::size_t count = t.extents.size();
  return std::to_string(count) + (count == 1 ? " index for " : " indices for ") + shapeOf(t);
}

Node *KernelSema::loadOf(Tensor *tensor, std::vector<Node *> indices, Span span) {
  Node *n = make(NodeKind::Load, computeType(tensor->dtype), span);
  n->tensor = tensor;
  n->args = std::move(indices);
  n->fromLiterals = tensor->fromLiterals;
  return n;
}

/// Whether an index rests on an element of a tensor, so that it is known at run time only.
static bool isGathered(const Node *n, std::set<const Node *> &seen) {
  if (!seen.insert(n).second)
    return false;
  if (n->kind == NodeKind::Load || n->kind == NodeKind::Reduce || n->kind == NodeKind::Scan)
    return true;
  for (const Node *arg : n->args)
    if (isGathered(arg, seen))
      return true;
  return false;
}

Node *KernelSema::access(const ast::Access &e, Node *pad) {
  auto it = scope.find(e.name);
  if (it == scope.end())
    return unknownName(e.name, e.nameSpan);
  Tensor *tensor = it->second.tensor;
  if (!tensor) {
    diags.error(Diag::NotATensor, e.nameSpan).label(it->second.span, "declared here")
        << "'" << e.name << "' is a scalar, not a tensor";
    return nullptr;
  }
  if (e.indices.size() != it->second.rank()) {
    const std::size_t leading = it->second.leading.size();
    diags.error(Diag::RankMismatch, e.span)
            .label(tensor->span, "declared here")
            .expected(indicesFor(*tensor) +
                      (leading ? ", " + std::to_string(leading) + " of them by the call" : ""))
            .found(std::to_string(leading + e.indices.size()))
        << "wrong number of indices for '" << e.name << "'";
    return nullptr;
  }
  std::vector<Node *> indices = it->second.leading;
  bool gather = false, ok = true;
  std::set<const Node *> seen;
  for (const Node *index : indices)
    gather |= isGathered(index, seen);
  for (const ast::ExprPtr &index : e.indices) {
    const bool outer = std::exchange(subscript, true);
    Node *n = indexExpr(*index);
    subscript = outer;
    ok &= n != nullptr;
    if (!n)
      continue;
    gather |= isGathered(n, seen);
    indices.push_back(n);
  }
  if (!ok)
    return nullptr;
  Node *n = loadOf(tensor, indices, e.span);
  if (gather && !pad && !tensor->broken)
    addGathers(e, *tensor, indices);
  if (!pad && gather) {
    pad = zero(n->type, e.span);
  } else if (pad) {
    if (pad->type == Type::Bool ? n->type != Type::Bool : !holdsValues(tensor->dtype, pad->type))
      if (!pad->literal || isFloat(pad->type))
        return typeError(pad->span, "the padding of '" + e.name + "' has another type",
                         spelling(n->type), pad);
    pad = isNarrowFloat(tensor->dtype) ? forRounding(pad, tensor->dtype) : convert(pad, n->type);
    if (!pad)
      return nullptr;
  }
  for (Node *index : indices)
    if (!gather && !checkDivisors(index, e.span))
      return nullptr;
  if (!pad && !tensor->broken && prove(e, *tensor, indices))
    pad = zero(n->type, e.span);
  n->pad = pad;
  return n;
}

void KernelSema::assumeDivisor(const Poly &num, const Poly &den, Span span, bool guarded,
                               const std::vector<bounds::Atom> &active) {
  Poly positive = den - 1;
  if (prover.nonNegative(positive, guarded ? active : std::vector<bounds::Atom>{}))
    return;
  if (!checkedDivisors.insert({guarded ? Poly(0) : num, den}).second)
    return;
  Node *condition = op(Op::Gt, Type::Bool, {nodeOf(den, span), intConst(0, span)}, span);
  if (!guarded) {
    if (!(num.isConstant())) // an empty dimension divided by an empty one is empty
      condition = op(
          Op::Or, Type::Bool,
          {condition, op(Op::Eq, Type::Bool, {nodeOf(num, span), intConst(0, span)}, span)}, span);
    prover.assume(positive);
  } else {
    for (bounds::Atom a : active)
      if (!symbols.dependsOnIndex(symbols[a].lo) && !symbols.dependsOnIndex(symbols[a].hi))
        condition =
            op(Op::Or, Type::Bool,
               {condition, op(Op::Le, Type::Bool,
                              {nodeOf(symbols[a].hi, span), nodeOf(symbols[a].lo, span)}, span)},
               span);
  }
  out.assumptions.push_back({condition, symbols.text(den) + " > 0", true, span});
}

bool KernelSema::checkDivisors(const Node *n, Span span) {
  if (!checkedNodes.insert(n).second)
    return true;
  for (const Node *arg : n->args)
    if (!checkDivisors(arg, span))
      return false;
  if (n->kind != NodeKind::Op || (n->op != Op::FloorDiv && n->op != Op::Rem) ||
      n->type != Type::Index)
    return true;
  std::optional<Poly> num = polyOf(n->args[0]), den = polyOf(n->args[1]);
  if (!den || symbols.dependsOnIndex(*den) || (den->isConstant() && den->constant() <= 0)) {
    diags.error(Diag::BadDivisor, n->args[1]->span).expected("a positive expression of dimensions")
        << "the divisor inside an index must be positive and made of dimensions";
    return false;
  }
  bool guarded = !n->kernelLevel;
  assumeDivisor(num ? *num : Poly(1), *den, n->span, guarded, activeAtoms());
  return true;
}

} // namespace tk::sema
