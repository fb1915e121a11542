// Gradients through indices of several pieces, such as x[abs(i - 3)] and x[clamp(i - 1, 0, N - 1)].
//
// The element x[n] receives what stands at all i with clamp(i - 1, 0, N - 1) == n. No loop can be
// solved for, and a sum over i under that condition would go through all i for each element.
//
// 1. The innermost function with a loop in it is divided at its corners: `i - 1` where
//    0 <= i - 1 < N, else one of the bounds.
// 2. Each piece is a contribution of its own under the condition of its range. Its axis is solved
//    for, or has one index for all values of the loop.
// 3. A loop that remains in a piece goes through the piece's range alone.

#include "frontend/GradKernel.h"

#include <algorithm>

namespace tk::grad {

using ast::BinaryOp;

/// More pieces than two reflected axes have.
static constexpr std::size_t kMostPieces = 16;

namespace {
/// What a function is where a condition holds.
struct Piece {
  TermPtr value;
  std::vector<TermPtr> conditions;
};
} // namespace

static bool mentionsAny(const TermPtr &term, const std::vector<IndexRef> &loops) {
  return std::any_of(loops.begin(), loops.end(), [&](IndexRef i) { return mentions(term, i); });
}

/// The innermost function of several pieces in `term` that depends on a loop; null if none does.
static TermPtr innermost(const TermPtr &term, const std::vector<IndexRef> &loops) {
  if (term->kind == TermKind::Access || !mentionsAny(term, loops))
    return nullptr;
  for (const TermPtr &arg : term->args)
    if (TermPtr found = innermost(arg, loops))
      return found;
  const bool isOne = term->kind == TermKind::Call && (term->name == "abs" || term->name == "min" ||
                                                      term->name == "max" || term->name == "clamp");
  return isOne ? term : nullptr;
}

/// The pieces of a function of integers, one of which holds at each value.
static std::vector<Piece> piecesOfCall(const Term &term) {
  const TermPtr &x = term.args[0];
  auto is = [](BinaryOp op, const TermPtr &a, const TermPtr &b) { return binary(op, a, b); };
  if (term.name == "abs")
    return {{x, {is(BinaryOp::Ge, x, integer(0))}}, {neg(x), {is(BinaryOp::Lt, x, integer(0))}}};
  const TermPtr &y = term.args[1];
  if (term.name == "max")
    return {{x, {is(BinaryOp::Ge, x, y)}}, {y, {is(BinaryOp::Lt, x, y)}}};
  if (term.name == "min")
    return {{x, {is(BinaryOp::Le, x, y)}}, {y, {is(BinaryOp::Gt, x, y)}}};
  const TermPtr &z = term.args[2];
  return {{x, {is(BinaryOp::Ge, x, y), is(BinaryOp::Le, x, z)}},
          {y, {is(BinaryOp::Lt, x, y)}},
          {z, {is(BinaryOp::Gt, x, z)}}};
}

static TermPtr replaced(const TermPtr &term, const TermPtr &what, const TermPtr &by) {
  if (term == what)
    return by;
  if (term->args.empty())
    return term;
  std::vector<TermPtr> args;
  for (const TermPtr &arg : term->args)
    args.push_back(replaced(arg, what, by));
  return withArgs(term, std::move(args));
}

namespace {
/// A sum of names, indices and integers.
struct ShortSum {
  std::vector<std::pair<TermPtr, std::int64_t>> parts;
  std::int64_t constant = 0;
  unsigned constants = 0;
  bool cancels = false, isOfIndices = true;

  void take(const TermPtr &term, std::int64_t sign) {
    if (term->kind == TermKind::Int) {
      constant += sign * term->intValue;
      ++constants;
    } else if (term->kind == TermKind::Neg) {
      cancels |= term->args[0]->kind == TermKind::Int;
      take(term->args[0], -sign);
    } else if (term->is(BinaryOp::Add) || term->is(BinaryOp::Sub)) {
      take(term->args[0], sign);
      take(term->args[1], term->is(BinaryOp::Add) ? sign : -sign);
    } else {
      isOfIndices &= term->kind == TermKind::Index || term->kind == TermKind::Name;
      auto same = std::find_if(parts.begin(), parts.end(),
                               [&](const auto &part) { return equal(part.first, term); });
      cancels |= same != parts.end();
      if (same == parts.end())
        parts.emplace_back(term, sign);
      else
        same->second += sign;
    }
  }

  TermPtr term() const {
    TermPtr sum;
    for (bool isNegative : {false, true})
      for (const auto &[part, count] : parts) {
        if (count == 0 || (count < 0) != isNegative)
          continue;
        const std::int64_t size = count < 0 ? -count : count;
        const TermPtr some = size == 1 ? part : mul(integer(size), part);
        sum = !sum ? (isNegative ? neg(some) : some) : isNegative ? sub(sum, some) : add(sum, some);
      }
    if (!sum)
      return integer(constant);
    return constant < 0 ? sub(sum, integer(-constant)) : add(sum, integer(constant));
  }
};
} // namespace

TermPtr withShortSums(const TermPtr &term) {
  if (term->args.empty())
    return term;
  std::vector<TermPtr> args;
  for (const TermPtr &arg : term->args)
    args.push_back(withShortSums(arg));
  TermPtr made = withArgs(term, std::move(args));
  ShortSum sum;
  if (made->is(BinaryOp::Add) || made->is(BinaryOp::Sub) || made->kind == TermKind::Neg)
    sum.take(made, 1);
  return sum.isOfIndices && (sum.constants > 1 || sum.cancels) ? sum.term() : made;
}

/// Loops that remain get the ranges that conditions of the piece leave them, such as 0..1 of
/// `l - 1 < 0`. False if an axis has one index for a range whose length depends on sizes: for such
/// a range as of `clamp(i - j, 0, 63)`, one loop over all of it for each element is as good.
bool GradKernel::narrow(Contribution &piece, const Solution &solution) {
  bool isShort = solution.unsolved.empty();
  for (TermPtr &condition : piece.conditions) {
    if (condition->kind != TermKind::Binary)
      continue;
    const TermPtr sides = sub(condition->args[0], condition->args[1]);
    for (IndexRef &loop : piece.loops) {
      TermPtr coefficient, rest;
      if (std::find(solution.rest.begin(), solution.rest.end(), loop) == solution.rest.end() ||
          !mentions(sides, loop) || !decompose(sides, loop, coefficient, rest) ||
          !coefficient->isInt(1) || !freeIndices(rest).empty())
        continue;
      // loop + rest < 0, or > 0
      const bool isBelow = condition->is(BinaryOp::Lt), isAbove = condition->is(BinaryOp::Gt);
      if (!isBelow && !isAbove)
        continue;
      const TermPtr end = withShortSums(sub(integer(isBelow ? 0 : 1), rest));
      IndexRef part =
          isBelow ? makeIndex(loop->name, loop->lo, end) : makeIndex(loop->name, end, loop->hi);
      const TermPtr value = indexTerm(part);
      condition =
          isBelow ? binary(BinaryOp::Lt, value, loop->hi) : binary(BinaryOp::Ge, value, loop->lo);
      const Substitution by{{loop, value}};
      for (TermPtr &other : piece.conditions)
        other = substitute(other, by);
      for (TermPtr &index : piece.at)
        index = substitute(index, by);
      piece.value = substitute(piece.value, by);
      if (piece.factor)
        piece.factor = substitute(piece.factor, by);
      isShort |= withShortSums(sub(part->hi, part->lo))->kind == TermKind::Int;
      loop = part;
      break;
    }
  }
  return isShort;
}

/// The contribution of each piece of the axes that are not solved for; `c` alone if that does not
/// solve them. Axes of a known size, as of a table, have few elements: each may go through the
/// loop.
std::vector<GradKernel::Contribution> GradKernel::piecesOf(const Contribution &c,
                                                           const std::vector<IndexRef> &at) {
  std::vector<Contribution> pieces;
  std::vector<Contribution> open{c};
  bool isDivided = false;
  while (!open.empty()) {
    Contribution next = std::move(open.back());
    open.pop_back();
    const Solution solution = solve(next, at);
    TermPtr call;
    std::size_t divided = 0;
    for (std::size_t axis : solution.unsolved) {
      if (!mentionsAny(substitute(next.at[axis], solution.by), solution.rest))
        continue; // one index for all values of the loop
      if (at[axis]->hi->kind == TermKind::Int || at[axis]->hi->kind == TermKind::Float)
        return {c};
      call = innermost(next.at[axis], next.loops);
      if (!call)
        return {c};
      divided = axis;
      break;
    }
    if (!call) {
      if (isDivided && !narrow(next, solution))
        return {c};
      pieces.push_back(std::move(next));
    } else {
      isDivided = true;
      const std::vector<Piece> all = piecesOfCall(*call);
      for (auto piece = all.rbegin(); piece != all.rend(); ++piece) {
        Contribution part = next;
        part.isPiece = true;
        part.at[divided] = replaced(next.at[divided], call, piece->value);
        part.conditions.insert(part.conditions.end(), piece->conditions.begin(),
                               piece->conditions.end());
        open.push_back(std::move(part));
      }
    }
    if (pieces.size() + open.size() > kMostPieces)
      return {c};
  }
  return pieces;
}

} // namespace tk::grad
