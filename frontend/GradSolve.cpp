// Which values of the loops around an access x[e…] read the element x[X…].

#include "frontend/GradKernel.h"

#include <algorithm>

namespace tk::grad {

using ast::BinaryOp;

/// Replaces a loop by its value, which is in the loop's range where the bounds hold.
void GradKernel::settle(IndexRef loop, TermPtr value, std::vector<TermPtr> bounds, Solution &out) {
  for (auto &[known, term] : out.by)
    term = substitute(term, {{loop, value}});
  for (Solved &solved : out.solved) {
    solved.value = substitute(solved.value, {{loop, value}});
    for (TermPtr &bound : solved.bounds)
      bound = substitute(bound, {{loop, value}});
  }
  for (TermPtr &condition : out.conditions)
    condition = substitute(condition, {{loop, value}});
  out.by[loop] = value;
  std::erase(out.rest, loop);
  out.solved.push_back({loop, std::move(value), std::move(bounds)});
}

static std::vector<TermPtr> boundsOf(IndexRef loop, const TermPtr &value) {
  return {binary(BinaryOp::Ge, value, loop->lo), binary(BinaryOp::Lt, value, loop->hi)};
}

/// Bare indices: they are the ones that the element is asked for at.
void GradKernel::solveBare(const Contribution &c, const std::vector<IndexRef> &at,
                           std::vector<bool> &isDone, Solution &out) {
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    IndexRef loop = c.at[axis]->index;
    if (!loop || std::find(out.rest.begin(), out.rest.end(), loop) == out.rest.end())
      continue;
    TermPtr value = indexTerm(at[axis]);
    std::vector<TermPtr> bounds;
    if (!equal(loop->lo, at[axis]->lo))
      bounds.push_back(binary(BinaryOp::Ge, value, loop->lo));
    if (!equal(loop->hi, at[axis]->hi))
      bounds.push_back(binary(BinaryOp::Lt, value, loop->hi));
    settle(loop, value, bounds, out);
    isDone[axis] = true;
  }
}

bool decompose(const TermPtr &term, IndexRef loop, TermPtr &coefficient, TermPtr &rest) {
  if (term->kind == TermKind::Index && term->index == loop) {
    coefficient = integer(1);
    rest = integer(0);
    return true;
  }
  if (!mentions(term, loop)) {
    coefficient = integer(0);
    rest = term;
    return true;
  }
  TermPtr c1, r1, c2, r2;
  if (term->kind == TermKind::Neg) {
    if (!decompose(term->args[0], loop, c1, r1))
      return false;
    coefficient = c1->kind == TermKind::Int ? integer(-c1->intValue) : neg(c1);
    rest = r1->isInt(0) ? r1 : neg(r1);
    return true;
  }
  if (term->kind != TermKind::Binary || !decompose(term->args[0], loop, c1, r1) ||
      !decompose(term->args[1], loop, c2, r2))
    return false;
  switch (term->op) {
  case BinaryOp::Add:
    coefficient = add(c1, c2);
    rest = add(r1, r2);
    return true;
  case BinaryOp::Sub:
    coefficient = sub(c1, c2);
    rest = sub(r1, r2);
    return true;
  case BinaryOp::Mul: {
    if (!c1->isInt(0))
      std::swap(c1, c2), std::swap(r1, r2);
    if (!c1->isInt(0)) // both sides depend on it
      return false;
    coefficient = r1->isInt(1) ? c2 : c2->isInt(1) ? r1 : mul(r1, c2);
    rest = r2->isInt(0) ? r2 : mul(r1, r2);
    return true;
  }
  default:
    return false;
  }
}

/// `(rest + l) % c == x`, or `(rest - l) % c == x`, for a loop over 0..c and x in 0..c: each x is
/// the remainder of one value of the loop. A circular shift is such an index.
bool GradKernel::solveShifted(const TermPtr &index, IndexRef at, IndexRef loop, Solution &out) {
  if (!index->is(BinaryOp::Rem) || !loop->lo->isInt(0) || !at->lo->isInt(0))
    return false;
  const TermPtr &c = index->args[1];
  TermPtr coefficient, rest;
  if (!equal(at->hi, c) || !equal(loop->hi, c) || !freeIndices(c).empty() ||
      !decompose(index->args[0], loop, coefficient, rest) ||
      !(coefficient->isInt(1) || coefficient->isInt(-1)))
    return false;
  TermPtr x = indexTerm(at);
  settle(loop, binary(BinaryOp::Rem, coefficient->isInt(1) ? sub(x, rest) : sub(rest, x), c), {},
         out);
  return true;
}

/// Solves `index == at` for a loop that stands in it once with a factor, or below `/` or `%`.
bool GradKernel::solveLinear(const TermPtr &index, IndexRef at, IndexRef loop, Solution &out) {
  TermPtr x = indexTerm(at);
  if ((index->is(BinaryOp::Div) || index->is(BinaryOp::Rem)) && loop->lo->isInt(0) &&
      index->args[0]->kind == TermKind::Index && index->args[0]->index == loop &&
      freeIndices(index->args[1]).empty() && at->lo->isInt(0)) {
    const TermPtr &c = index->args[1];
    if (index->is(BinaryOp::Div)) { // h / c == x: h is x * c + r
      IndexRef r = makeIndex(loop->name, integer(0), c);
      TermPtr value = add(mul(x, c), indexTerm(r));
      // x < extent, and extent * c is at most the loop's end where one is the other's quotient.
      const TermPtr &extent = at->hi, &end = loop->hi;
      bool isWithin =
          (c->is(BinaryOp::Div) && equal(c->args[0], end) && equal(c->args[1], extent)) ||
          (extent->is(BinaryOp::Div) && equal(extent->args[0], end) && equal(extent->args[1], c)) ||
          (end->is(BinaryOp::Mul) && ((equal(end->args[0], extent) && equal(end->args[1], c)) ||
                                      (equal(end->args[1], extent) && equal(end->args[0], c)))) ||
          (c->kind == TermKind::Int && extent->kind == TermKind::Int &&
           end->isInt(c->intValue * extent->intValue));
      std::vector<TermPtr> bounds;
      if (!isWithin)
        bounds.push_back(binary(BinaryOp::Lt, value, end));
      settle(loop, value, bounds, out);
      out.rest.push_back(r);
      return true;
    }
    // h % c == x: h is q * c + x
    if (!equal(at->hi, c))
      return false;
    bool isMultiple =
        loop->hi->is(BinaryOp::Mul) && (equal(loop->hi->args[1], c) || equal(loop->hi->args[0], c));
    TermPtr turns = isMultiple ? loop->hi->args[equal(loop->hi->args[1], c) ? 0 : 1]
                               : binary(BinaryOp::Div, add(loop->hi, sub(c, integer(1))), c);
    IndexRef q = makeIndex(loop->name, integer(0), turns);
    TermPtr value = add(mul(indexTerm(q), c), x);
    std::vector<TermPtr> bounds;
    if (!isMultiple)
      bounds.push_back(binary(BinaryOp::Lt, value, loop->hi));
    settle(loop, value, bounds, out);
    out.rest.push_back(q);
    return true;
  }
  if (solveShifted(index, at, loop, out))
    return true;
  TermPtr coefficient, rest;
  if (!decompose(index, loop, coefficient, rest) || !freeIndices(coefficient).empty())
    return false;
  if (coefficient->isInt(1) || coefficient->isInt(-1)) {
    TermPtr value = coefficient->isInt(1) ? sub(x, rest) : sub(rest, x);
    settle(loop, value, boundsOf(loop, value), out);
    return true;
  }
  // c * l + m with m in 0..c: quotient and remainder.
  if (rest->kind == TermKind::Index && rest->index->lo->isInt(0) &&
      equal(rest->index->hi, coefficient) &&
      std::find(out.rest.begin(), out.rest.end(), rest->index) != out.rest.end()) {
    TermPtr quotient = binary(BinaryOp::Div, x, coefficient);
    std::vector<TermPtr> bounds = boundsOf(loop, quotient);
    if (loop->lo->isInt(0) && at->lo->isInt(0))
      bounds.erase(bounds.begin());
    if (at->hi->is(BinaryOp::Mul) &&
        ((equal(at->hi->args[0], loop->hi) && equal(at->hi->args[1], coefficient)) ||
         (equal(at->hi->args[1], loop->hi) && equal(at->hi->args[0], coefficient))))
      bounds.clear();
    settle(rest->index, binary(BinaryOp::Rem, x, coefficient), {}, out);
    settle(loop, quotient, bounds, out);
    return true;
  }
  if (coefficient->kind != TermKind::Int || coefficient->intValue <= 1)
    return false;
  TermPtr difference = sub(x, rest);
  TermPtr value = binary(BinaryOp::Div, difference, coefficient);
  out.conditions.push_back(
      binary(BinaryOp::Eq, binary(BinaryOp::Rem, difference, coefficient), integer(0)));
  settle(loop, value, boundsOf(loop, value), out);
  return true;
}

/// Puts the loop to solve for first: a statement's own, which are rather the longer ones, and of
/// those that are as long as the first one the last. The adjoint's elements along it are neighbours
/// in memory, as the results of neighbours then read.
static void putCheapestFirst(const std::vector<IndexRef> &own, std::vector<IndexRef> &loops) {
  for (std::size_t n = loops.size(); n-- > 1;) {
    const bool isOwn = std::find(own.begin(), own.end(), loops[n]) != own.end();
    if (!isOwn || !equal(loops[n]->lo, loops[0]->lo) || !equal(loops[n]->hi, loops[0]->hi))
      continue;
    std::rotate(loops.begin(), loops.begin() + std::ptrdiff_t(n),
                loops.begin() + std::ptrdiff_t(n) + 1);
    return;
  }
}

/// Solves the equation of one axis for the loop for which that is cheapest.
bool GradKernel::solveAxis(const Contribution &c, const TermPtr &index, IndexRef at,
                           Solution &out) {
  std::vector<IndexRef> loops;
  for (IndexRef loop : c.loops)
    if (std::find(out.rest.begin(), out.rest.end(), loop) != out.rest.end() &&
        mentions(index, loop))
      loops.push_back(loop);
  if (c.from)
    putCheapestFirst(c.from->indices, loops);
  for (IndexRef loop : loops)
    if (solveLinear(index, at, loop, out))
      return true;
  return false;
}

GradKernel::Solution GradKernel::solve(const Contribution &c, const std::vector<IndexRef> &at) {
  Solution out;
  out.rest = c.loops;
  std::vector<bool> isDone(at.size(), false);
  solveBare(c, at, isDone, out);
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t axis = 0; axis < at.size(); ++axis)
      if (!isDone[axis] && solveAxis(c, substitute(c.at[axis], out.by), at[axis], out))
        isDone[axis] = progress = true;
  }
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    if (isDone[axis])
      continue;
    TermPtr index = substitute(c.at[axis], out.by), x = indexTerm(at[axis]);
    if (!equal(index, x))
      out.conditions.push_back(binary(BinaryOp::Eq, index, x));
  }
  return out;
}

} // namespace tk::grad
