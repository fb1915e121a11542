// Weights of rows that are normalised: exp(x - logsumexp(x)), computed again from the norm.
//
// Where x is a masked value, `if c then y else -inf`, the weight is `if c then exp(y - norm) else
// 0`: what later sums read of it says by itself which terms it has, whatever the norm is.

#include "frontend/GradKernel.h"

#include <algorithm>

namespace tk::grad {

using ast::BinaryOp;
using ast::ReduceKind;

/// For each axis of the element that a reduction reads, whether it runs along it.
static std::vector<bool> reducedAxes(const Term &reduce) {
  std::vector<bool> list;
  for (const TermPtr &arg : reduce.args[0]->args)
    list.push_back(std::find(reduce.binders.begin(), reduce.binders.end(), arg->index) !=
                   reduce.binders.end());
  return list;
}

/// Whether two reductions are over the same axes of the same tensor, in full.
static bool isSameRow(const Term &a, const Term &b) {
  if (a.args[0]->kind != TermKind::Access || b.args[0]->kind != TermKind::Access ||
      a.args[0]->name != b.args[0]->name || reducedAxes(a) != reducedAxes(b))
    return false;
  for (std::size_t i = 0; i < a.args[0]->args.size(); ++i) {
    IndexRef p = a.args[0]->args[i]->index, q = b.args[0]->args[i]->index;
    if (!p || !q || !equal(p->lo, q->lo) || !equal(p->hi, q->hi))
      return false;
  }
  return true;
}

/// The element of a statement that computes the same reduction and whose values are there.
TermPtr GradKernel::stored(const Term &reduce, ReduceKind kind, bool anyType) {
  for (const Statement &s : statements) {
    // `all[i]` is read as the reduction, also where a result has that name.
    if (ast::parseReduceKind(s.name) || s.value->kind != TermKind::Reduce ||
        s.value->reduce != kind || !s.conditions.empty() || !isSameRow(*s.value, reduce))
      continue;
    bool isExact = !s.dtype || *s.dtype == ast::DType::F32 || *s.dtype == ast::DType::F64;
    if (!isExact && !(anyType && s.isResult))
      continue;
    Substitution by;
    for (std::size_t i = 0; i < reduce.args[0]->args.size(); ++i)
      by[s.value->args[0]->args[i]->index] = reduce.args[0]->args[i];
    TermPtr element = elementAt(s.name, s.indices);
    bool isWhole = std::all_of(s.indices.begin(), s.indices.end(),
                               [&](IndexRef index) { return by.count(index) != 0; });
    if (isWhole)
      return substitute(element, by);
  }
  return nullptr;
}

const GradKernel::Statement *GradKernel::definitionOf(const std::string &name) const {
  auto it = std::find_if(statements.begin(), statements.end(),
                         [&](const Statement &s) { return s.name == name; });
  return it == statements.end() ? nullptr : &*it;
}

static bool isMinusInfinity(const TermPtr &term) {
  return term->kind == TermKind::Neg && term->args[0]->kind == TermKind::Name &&
         term->args[0]->name == "inf";
}

/// What a local that is neither rounded nor cut off holds at `read`; null otherwise.
TermPtr GradKernel::valueAt(const Term &read) const {
  const Statement *s = definitionOf(read.name);
  if (!s || s->isResult || s->dtype || !s->conditions.empty() ||
      s->indices.size() != read.args.size())
    return nullptr;
  Substitution by;
  for (std::size_t i = 0; i < read.args.size(); ++i)
    by[s->indices[i]] = read.args[i];
  return substitute(s->value, by);
}

/// Takes masks off an element, through the locals that hold masked values.
GradKernel::Masked GradKernel::maskedBy(TermPtr x) const {
  Masked masked{{}, std::move(x)};
  for (;;) {
    TermPtr below = masked.value;
    if (below->kind == TermKind::Access)
      below = valueAt(*below);
    if (!below || below->kind != TermKind::If)
      return masked;
    bool isElse = isMinusInfinity(below->args[2]);
    if (!isElse && !isMinusInfinity(below->args[1]))
      return masked;
    bool hasReduction = false;
    walk(below, [&](const Term &t) {
      hasReduction |= t.kind == TermKind::Reduce;
      return !hasReduction;
    });
    if (hasReduction)
      return masked;
    masked.conditions.push_back(isElse ? below->args[0] : negation(below->args[0]));
    masked.value = below->args[isElse ? 1 : 2];
  }
}

/// Whether a value that is computed from finite numbers cannot be meant to be -inf: it is made of
/// sums of products. What is read and added, as a bias is, may be a mask.
bool GradKernel::isNeverInfinite(const TermPtr &term) const {
  auto all = [&](const std::vector<TermPtr> &list) {
    return std::all_of(list.begin(), list.end(),
                       [&](const TermPtr &arg) { return isNeverInfinite(arg); });
  };
  switch (term->kind) {
  case TermKind::Int:
  case TermKind::Float:
  case TermKind::Index:
    return true;
  case TermKind::Name:
    return term->name != "inf";
  case TermKind::Neg:
    return all(term->args);
  case TermKind::Binary:
    return (term->op == BinaryOp::Add || term->op == BinaryOp::Sub || term->op == BinaryOp::Mul) &&
           all(term->args);
  case TermKind::Call:
    return (term->name == "tanh" || ast::parseDType(term->name)) && all(term->args);
  case TermKind::Access: {
    if (term->args.empty())
      return true; // a scalar
    TermPtr value = valueAt(*term);
    return value && isNeverInfinite(value);
  }
  case TermKind::Reduce:
    return term->reduce == ReduceKind::Sum && term->args[0]->is(BinaryOp::Mul);
  default:
    return false;
  }
}

TermPtr GradKernel::weights(const Term &reduce, bool maySoftmax) {
  const TermPtr &x = reduce.args[0];
  if (TermPtr softmax = maySoftmax ? stored(reduce, ReduceKind::Softmax, true) : nullptr)
    return softmax;
  // A row that is -inf throughout has weights of zero, as softmax has: its norm counts as +inf,
  // where a score that no mask leaves out may be -inf at all.
  std::string key = x->name;
  std::vector<IndexRef> rows, over;
  Substitution by;
  for (const TermPtr &arg : x->args) {
    IndexRef index = arg->index;
    bool isRow =
        std::find(reduce.binders.begin(), reduce.binders.end(), index) == reduce.binders.end();
    IndexRef copy = makeIndex(index->name, index->lo, index->hi);
    by[index] = indexTerm(copy);
    (isRow ? rows : over).push_back(copy);
    key += isRow ? " row" : " over";
    key += " " + printTerm(index->lo) + ".." + printTerm(index->hi);
  }
  Masked masked = maskedBy(x);
  const bool guards = !isNeverInfinite(masked.value);
  std::string &name = norms[key];
  if (name.empty()) {
    const Statement *definition = definitionOf(x->name);
    Term mine = reduce;
    mine.args = {substitute(x, by)};
    mine.binders = over;
    TermPtr norm = stored(mine, ReduceKind::LogSumExp, false);
    std::vector<Statement> &list = definition ? after[definition] : first;
    if (norm) {
      // Behind the statement that computes it, if that is a local of the kernel's.
      for (const Statement &s : statements)
        if (s.name == norm->name && !s.isResult)
          definition = &s;
    } else {
      Statement sum;
      sum.name = fresh(x->name + "_logsumexp");
      sum.indices = rows;
      sum.value = reduction(ReduceKind::LogSumExp, over, mine.args[0]);
      declareAxes(sum.name, rows);
      norm = elementAt(sum.name, rows);
      list.push_back(sum);
    }
    if (!guards && equal(norm, elementAt(norm->name, rows))) {
      name = norm->name;
    } else {
      Statement s;
      s.name = name = fresh(x->name + "_norm");
      s.indices = rows;
      TermPtr inf = named("inf");
      s.value = guards ? choose(binary(BinaryOp::Eq, norm, neg(inf)), inf, norm) : norm;
      declareAxes(s.name, rows);
      (definition ? after[definition] : first).push_back(s);
    }
  }
  std::vector<TermPtr> at;
  for (const TermPtr &arg : x->args)
    if (std::find(reduce.binders.begin(), reduce.binders.end(), arg->index) == reduce.binders.end())
      at.push_back(arg);
  return where(masked.conditions, call("exp", {sub(masked.value, access(name, at))}));
}

} // namespace tk::grad
