// The rules of reductions, normalisers and scans.

#include "frontend/GradKernel.h"

#include <algorithm>

namespace tk::grad {

using ast::BinaryOp;
using ast::ReduceKind;

TermPtr GradKernel::lengthOf(const std::vector<IndexRef> &list) const {
  TermPtr count = integer(1);
  bool isQuotient = false;
  for (IndexRef index : list) {
    TermPtr length = sub(index->hi, index->lo);
    walk(length, [&](const Term &t) {
      isQuotient |= t.is(BinaryOp::Div);
      return true;
    });
    count = mul(count, length);
  }
  // What divides sizes and flows into a float is warned of, unless a cast says that it is meant.
  return isQuotient ? call("f32", {count}) : count;
}

void GradKernel::visitReduce(const Term &e, const TermPtr &adjoint, Place place) {
  if (!isActive(e.args[0]))
    return;
  switch (e.reduce) {
  case ReduceKind::Sum:
  case ReduceKind::Mean:
    place.loops.insert(place.loops.end(), e.binders.begin(), e.binders.end());
    if (e.modifier == ast::ReduceModifier::Exact || e.modifier == ast::ReduceModifier::Tf32)
      place.modifier = e.modifier; // f8's reduced sums are of f8 factors, which adjoints are not
    return visit(e.args[0],
                 e.reduce == ReduceKind::Mean ? div(adjoint, lengthOf(e.binders)) : adjoint, place);
  case ReduceKind::LogSumExp:
    place.loops.insert(place.loops.end(), e.binders.begin(), e.binders.end());
    place.factor = weights(e);
    return visit(e.args[0], adjoint, place);
  case ReduceKind::Softmax:
  case ReduceKind::LogSoftmax:
    return visitSoftmax(e, adjoint, place);
  case ReduceKind::Max:
  case ReduceKind::Min:
    return visitExtreme(e, adjoint, place);
  case ReduceKind::Prod:
    return visitProduct(e, adjoint, place);
  case ReduceKind::CumSum:
  case ReduceKind::CumProd:
  case ReduceKind::CumMax:
    return visitScan(e, adjoint, place);
  default:
    refuse(place.statement->span, std::string(ast::spelling(e.reduce)) + " has no derivative");
  }
}

static void flatten(const TermPtr &term, std::vector<TermPtr> &factors) {
  if (!term->is(BinaryOp::Mul)) {
    factors.push_back(term);
    return;
  }
  flatten(term->args[0], factors);
  flatten(term->args[1], factors);
}

/// The sum over a row of softmax's weights p times what a statement t = sum(p * …) over the row
/// contributed to their adjoint. By linearity it is the sum of t's adjoint times t, whose values
/// are there if t is a result. If t is a local that contracts the weights, it is computed again
/// beside their norm. The weights' adjoint would be, too, in a second loop behind the norm. Null
/// where none of that holds.
TermPtr GradKernel::dotOfRows(const Contribution &c, const Statement &p) const {
  if (!c.from || ast::parseReduceKind(c.from->name) || c.factor || !c.conditions.empty())
    return nullptr;
  const Statement &t = *c.from;
  if (!t.isResult && (!t.conditions.empty() || !contracts(t, p, *p.value)))
    return nullptr;
  if (t.value->kind != TermKind::Reduce || t.value->reduce != ReduceKind::Sum)
    return nullptr;
  std::vector<TermPtr> factors;
  flatten(t.value->args[0], factors);
  unsigned uses = 0;
  for (const TermPtr &factor : factors) {
    walk(factor, [&](const Term &term) {
      uses += term.kind == TermKind::Access && term.name == p.name;
      return true;
    });
  }
  bool isFactor = std::any_of(factors.begin(), factors.end(), [&](const TermPtr &factor) {
    return factor->kind == TermKind::Access && factor->name == p.name;
  });
  if (uses != 1 || !isFactor)
    return nullptr;
  Substitution by;
  std::vector<IndexRef> rest = t.indices;
  std::set<IndexRef> seen;
  for (std::size_t i = 0; i < c.at.size(); ++i) {
    IndexRef theirs = c.at[i]->index, mine = p.indices[i];
    if (!theirs || !seen.insert(theirs).second || !equal(theirs->lo, mine->lo) ||
        !equal(theirs->hi, mine->hi))
      return nullptr;
    bool isOver =
        std::find(p.value->binders.begin(), p.value->binders.end(), mine) != p.value->binders.end();
    const std::vector<IndexRef> &from = isOver ? t.value->binders : t.indices;
    if (std::find(from.begin(), from.end(), theirs) == from.end())
      return nullptr;
    if (isOver)
      continue;
    std::erase(rest, theirs);
    by[theirs] = indexTerm(mine);
  }
  TermPtr product =
      mul(elementAt(adjointNames.at(t.name), t.indices), elementAt(t.name, t.indices));
  product = substitute(product, by);
  return rest.empty() ? product : reduction(ReduceKind::Sum, rest, product);
}

void GradKernel::visitSoftmax(const Term &e, const TermPtr &adjoint, Place place) {
  const Statement &s = *place.statement;
  std::vector<IndexRef> rows;
  for (IndexRef index : s.indices)
    if (std::find(e.binders.begin(), e.binders.end(), index) == e.binders.end())
      rows.push_back(index);
  place.factor = weights(e);
  if (e.reduce == ReduceKind::LogSoftmax) {
    TermPtr total =
        define("d_" + s.name + "_total", rows, reduction(ReduceKind::Sum, e.binders, adjoint));
    Place plain = place;
    plain.factor = nullptr;
    visit(e.args[0], adjoint, plain);
    return visit(e.args[0], neg(total), place);
  }
  // d x = p (d p - sum(p d p))
  TermPtr dot;
  std::vector<Contribution> others;
  for (const Contribution &c : received) {
    if (TermPtr known = dotOfRows(c, s))
      dot = dot ? add(dot, known) : known;
    else
      others.push_back(c);
  }
  if (!dot || !others.empty()) { // a result that nothing else reads has its cotangent alone
    TermPtr rest = adjoint;
    if (dot) {
      std::vector<IndexRef> at = copies(s.indices);
      std::string name = fresh("d_" + s.name + "_rest");
      emit(name, at, combine(name, at, others));
      rest = elementAt(name, s.indices);
    }
    TermPtr sum = reduction(ReduceKind::Sum, e.binders, mul(place.factor, rest));
    dot = dot ? add(dot, sum) : sum;
  }
  TermPtr row = define("d_" + s.name + "_dot", rows, dot);
  visit(e.args[0], adjoint, place);
  visit(e.args[0], neg(row), place);
}

void GradKernel::visitExtreme(const Term &e, const TermPtr &adjoint, Place place) {
  const Statement &s = *place.statement;
  const TermPtr &x = e.args[0];
  TermPtr extreme = elementAt(s.name, s.indices);
  if (s.dtype || !s.conditions.empty()) { // it may have been rounded
    std::vector<IndexRef> over = copies(e.binders);
    Substitution by;
    for (std::size_t i = 0; i < over.size(); ++i)
      by[e.binders[i]] = indexTerm(over[i]);
    extreme = define(s.name + "_exact", s.indices,
                     where(s.conditions, reduction(e.reduce, over, substitute(x, by))));
  }
  TermPtr isOne = binary(BinaryOp::Eq, x, extreme);
  TermPtr count = reduction(ReduceKind::Sum, e.binders, choose(isOne, real(1), real(0)));
  TermPtr share =
      define("d_" + s.name + "_share", s.indices, where(s.conditions, div(adjoint, count)));
  place.loops.insert(place.loops.end(), e.binders.begin(), e.binders.end());
  place.conditions.push_back(isOne);
  visit(x, share, place);
}

/// The product of the others: with zeros set apart, that of all that are none.
void GradKernel::visitProduct(const Term &e, const TermPtr &adjoint, Place place) {
  const Statement &s = *place.statement;
  const TermPtr &x = e.args[0];
  TermPtr isZero = binary(BinaryOp::Eq, x, real(0));
  TermPtr zeros = define(
      s.name + "_zeros", s.indices,
      where(s.conditions, reduction(ReduceKind::Sum, e.binders, choose(isZero, real(1), real(0)))));
  TermPtr others = define(
      s.name + "_others", s.indices,
      where(s.conditions, reduction(ReduceKind::Prod, e.binders, choose(isZero, real(1), x))));
  place.loops.insert(place.loops.end(), e.binders.begin(), e.binders.end());
  Place zero = place, none = place;
  zero.conditions.push_back(isZero);
  zero.conditions.push_back(binary(BinaryOp::Eq, zeros, real(1)));
  visit(x, mul(adjoint, others), zero);
  none.conditions.push_back(negation(isZero));
  none.conditions.push_back(binary(BinaryOp::Eq, zeros, real(0)));
  visit(x, div(mul(adjoint, others), x), none);
}

/// The sum of `body` over all places from one's own on: a scan of what is turned around.
TermPtr GradKernel::runningSumBack(const std::string &base, IndexRef along, const TermPtr &body,
                                   const Place &place) {
  const std::vector<IndexRef> &list = place.statement->indices;
  TermPtr turned = sub(add(along->lo, sub(along->hi, integer(1))), indexTerm(along));
  TermPtr sum = define(base, list,
                       reduction(ReduceKind::CumSum, {along}, substitute(body, {{along, turned}})));
  return substitute(sum, {{along, turned}});
}

void GradKernel::visitScan(const Term &e, const TermPtr &adjoint, const Place &place) {
  const Statement &s = *place.statement;
  IndexRef along = e.binders[0];
  if (e.reduce == ReduceKind::CumSum)
    return visit(e.args[0], runningSumBack("d_" + s.name + "_scan", along, adjoint, place), place);
  if (e.reduce == ReduceKind::CumProd)
    return visitRunningProduct(e, adjoint, place);
  // cummax: at each place those share that are as large as the largest so far.
  const TermPtr &x = e.args[0];
  TermPtr largest = define(s.name + "_exact", s.indices, where(s.conditions, s.value));
  IndexRef other = makeIndex(along->name, along->lo, along->hi);
  Substitution toOther{{along, indexTerm(other)}};
  TermPtr isEarlier = binary(BinaryOp::Le, indexTerm(other), indexTerm(along));
  TermPtr isLargest = binary(BinaryOp::Eq, substitute(x, toOther), largest);
  TermPtr ties = reduction(ReduceKind::Sum, {other}, where({isEarlier, isLargest}, real(1)));
  TermPtr share =
      define("d_" + s.name + "_share", s.indices, where(s.conditions, div(adjoint, ties)));
  TermPtr isLater = binary(BinaryOp::Ge, indexTerm(other), indexTerm(along));
  TermPtr isOne = binary(BinaryOp::Eq, substitute(largest, toOther), x);
  TermPtr shares =
      reduction(ReduceKind::Sum, {other}, where({isLater, isOne}, substitute(share, toOther)));
  TermPtr sum = define("d_" + s.name + "_scan", s.indices, where(s.conditions, shares));
  visit(x, sum, place);
}

/// cumprod y: before the first zero sum(d y) / x over what follows; at it, the same of products
/// without it; after it nothing.
void GradKernel::visitRunningProduct(const Term &e, const TermPtr &adjoint, const Place &place) {
  const Statement &s = *place.statement;
  IndexRef along = e.binders[0];
  const TermPtr &x = e.args[0];
  TermPtr isZero = binary(BinaryOp::Eq, x, real(0));
  auto scan = [&](const char *name, ReduceKind kind, TermPtr body) {
    return define(s.name + name, s.indices,
                  where(s.conditions, reduction(kind, {along}, std::move(body))));
  };
  TermPtr zeros = scan("_zeros", ReduceKind::CumSum, choose(isZero, real(1), real(0)));
  TermPtr product = define(s.name + "_exact", s.indices, where(s.conditions, s.value));
  TermPtr isFirst = binary(BinaryOp::And, isZero, binary(BinaryOp::Eq, zeros, real(1)));
  TermPtr without = scan("_without", ReduceKind::CumProd, choose(isFirst, real(1), x));
  TermPtr all = runningSumBack("d_" + s.name + "_scan", along, mul(adjoint, product), place);
  TermPtr others = runningSumBack("d_" + s.name + "_others", along, mul(adjoint, without), place);
  Place atZero = place, elsewhere = place;
  atZero.conditions.push_back(isFirst);
  visit(x, others, atZero);
  elsewhere.conditions.push_back(negation(isZero));
  visit(x, div(all, x), elsewhere);
}

} // namespace tk::grad
