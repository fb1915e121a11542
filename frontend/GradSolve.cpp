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

/// Is `rest` a loop of `loops` over 0..c, so that `c * l + rest` has one quotient and remainder?
static bool isDigit(const TermPtr &rest, const TermPtr &c, const std::vector<IndexRef> &loops) {
  return rest->kind == TermKind::Index && rest->index->lo->isInt(0) && equal(rest->index->hi, c) &&
         std::find(loops.begin(), loops.end(), rest->index) != loops.end();
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
  if (isDigit(rest, coefficient, out.rest)) {
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
  if (rest->kind == TermKind::Int) { // of 2 * l + 1 the remainder is known, of any x the quotient
    const std::int64_t c = coefficient->intValue, m = (rest->intValue % c + c) % c;
    TermPtr value = sub(binary(BinaryOp::Div, x, coefficient), integer((rest->intValue - m) / c));
    out.conditions.push_back(
        binary(BinaryOp::Eq, binary(BinaryOp::Rem, x, coefficient), integer(m)));
    settle(loop, value, boundsOf(loop, value), out);
    return true;
  }
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
  for (IndexRef loop : out.rest)
    if (mentions(index, loop))
      loops.push_back(loop);
  if (c.from)
    putCheapestFirst(c.from->indices, loops);
  // Of the digits of two loops, short ones of a known length remain.
  auto tryAll = [&](auto &&isFirst) {
    return std::any_of(loops.begin(), loops.end(), [&](IndexRef loop) {
      return isFirst(loop) && solveLinear(index, at, loop, out);
    });
  };
  auto isKnown = [&](IndexRef loop) { return out.isSplit && loop->hi->kind == TermKind::Int; };
  return tryAll([&](IndexRef loop) { return !isKnown(loop); }) || tryAll(isKnown);
}

/// Solves `c * l + m == at` for both loops, where m is in 0..c.
bool GradKernel::solveDigits(const TermPtr &index, IndexRef at, Solution &out) {
  TermPtr coefficient, rest;
  for (IndexRef loop : out.rest)
    if (mentions(index, loop) && decompose(index, loop, coefficient, rest) &&
        freeIndices(coefficient).empty() && isDigit(rest, coefficient, out.rest))
      return solveLinear(index, at, loop, out);
  return false;
}

/// `term / c` if c divides all terms of it, as 16 does 16 * P + 48; null otherwise.
static TermPtr dividedBy(const TermPtr &term, const TermPtr &c) {
  if (equal(term, c))
    return integer(1);
  if (term->kind == TermKind::Int)
    return c->kind == TermKind::Int && c->intValue > 0 && term->intValue % c->intValue == 0
               ? integer(term->intValue / c->intValue)
               : nullptr;
  if (term->is(BinaryOp::Mul))
    for (std::size_t n : {0U, 1U})
      if (TermPtr quotient = dividedBy(term->args[n], c))
        return mul(quotient, term->args[1 - n]);
  if (!term->is(BinaryOp::Add) && !term->is(BinaryOp::Sub))
    return nullptr;
  TermPtr a = dividedBy(term->args[0], c), b = dividedBy(term->args[1], c);
  return a && b ? binary(term->op, a, b) : nullptr;
}

namespace {
/// How often a loop stands in quotients and remainders by one divisor, and anywhere else.
struct Digits {
  IndexRef loop;
  TermPtr divisor;
  unsigned quotients = 0, remainders = 0, others = 0;

  void count(const Term &term) {
    for (const TermPtr &arg : term.args) {
      if (arg->kind != TermKind::Index || arg->index != loop) {
        count(*arg);
        continue;
      }
      const bool isQuotient = term.is(BinaryOp::Div), isRemainder = term.is(BinaryOp::Rem);
      const bool isFirst =
          (isQuotient || isRemainder) && arg == term.args[0] && freeIndices(term.args[1]).empty();
      if (isFirst && !divisor)
        divisor = term.args[1];
      const bool isDigit = isFirst && equal(divisor, term.args[1]);
      quotients += isDigit && isQuotient;
      remainders += isDigit && isRemainder;
      others += !isDigit;
    }
  }
};
} // namespace

/// `term` with the two digits of a loop, which has become `value`, in place of its quotients and
/// remainders.
static TermPtr withDigits(const TermPtr &term, const TermPtr &value, const TermPtr &divisor,
                          const TermPtr &quotient, const TermPtr &remainder) {
  const bool isQuotient = term->is(BinaryOp::Div);
  if ((isQuotient || term->is(BinaryOp::Rem)) && equal(term->args[0], value) &&
      equal(term->args[1], divisor))
    return isQuotient ? quotient : remainder;
  if (term->args.empty())
    return term;
  std::vector<TermPtr> args;
  for (const TermPtr &arg : term->args)
    args.push_back(withDigits(arg, value, divisor, quotient, remainder));
  return withArgs(term, std::move(args));
}

/// A loop l that the open axes have as both `l / c` and `l % c` becomes two loops, over the
/// quotients and over the remainders: of x[l / W + r, l % W + s] either axis has one of them.
bool GradKernel::splitLoops(std::vector<TermPtr> &open, Solution &out) {
  bool isSplit = false;
  for (IndexRef loop : std::vector<IndexRef>(out.rest)) {
    Digits digits{loop, nullptr};
    for (const TermPtr &index : open)
      if (index)
        digits.count(*binary(BinaryOp::Eq, index, integer(0)));
    if (!loop->lo->isInt(0) || digits.quotients == 0 || digits.remainders == 0 || digits.others > 0)
      continue;
    const TermPtr &c = digits.divisor;
    TermPtr turns = dividedBy(loop->hi, c);
    const bool isMultiple = turns != nullptr;
    if (!turns)
      turns = binary(BinaryOp::Div, add(loop->hi, sub(c, integer(1))), c);
    IndexRef high = makeIndex(loop->name, integer(0), turns);
    IndexRef low = makeIndex(loop->name, integer(0), c);
    const TermPtr value = add(mul(indexTerm(high), c), indexTerm(low));
    std::vector<TermPtr> bounds;
    if (!isMultiple)
      bounds.push_back(binary(BinaryOp::Lt, value, loop->hi));
    settle(loop, value, bounds, out);
    out.rest.push_back(high);
    out.rest.push_back(low);
    for (TermPtr &index : open)
      if (index)
        index = withDigits(substitute(index, {{loop, value}}), value, c, indexTerm(high),
                           indexTerm(low));
    isSplit = true;
  }
  return isSplit;
}

/// Solves the axes in turn, those of digits first if loops were split. An axis of `open` that is
/// solved becomes null.
void GradKernel::solveOpen(const Contribution &c, const std::vector<IndexRef> &at,
                           std::vector<TermPtr> &open, Solution &out) {
  auto pass = [&](auto &&solveOne) {
    bool progress = false;
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      if (!open[axis] || !solveOne(substitute(open[axis], out.by), at[axis]))
        continue;
      open[axis] = nullptr;
      progress = true;
    }
    return progress;
  };
  auto digits = [&](const TermPtr &index, IndexRef x) { return solveDigits(index, x, out); };
  auto any = [&](const TermPtr &index, IndexRef x) { return solveAxis(c, index, x, out); };
  while ((out.isSplit && pass(digits)) || pass(any)) {
  }
}

GradKernel::Solution GradKernel::solve(const Contribution &c, const std::vector<IndexRef> &at) {
  auto attempt = [&](bool maySplit, Solution &out) {
    out.rest = c.loops;
    std::vector<bool> isDone(at.size(), false);
    solveBare(c, at, isDone, out);
    std::vector<TermPtr> open;
    for (std::size_t axis = 0; axis < at.size(); ++axis)
      open.push_back(isDone[axis] ? nullptr : substitute(c.at[axis], out.by));
    out.isSplit = maySplit && splitLoops(open, out);
    if (maySplit && !out.isSplit)
      return false;
    solveOpen(c, at, open, out);
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      if (!open[axis])
        continue;
      TermPtr index = substitute(open[axis], out.by), x = indexTerm(at[axis]);
      if (equal(index, x))
        continue;
      out.conditions.push_back(binary(BinaryOp::Eq, index, x));
      out.unsolved.push_back(axis);
    }
    return true;
  };
  Solution plain, split;
  attempt(false, plain);
  if (plain.unsolved.empty() || !attempt(true, split) ||
      split.unsolved.size() >= plain.unsolved.size())
    return plain;
  return split;
}

} // namespace tk::grad
