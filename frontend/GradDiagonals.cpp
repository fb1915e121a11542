// Gradients of tables that are read at a function of a distance, such as t[clamp(i - j, 0, 63)].
//
// The element t[x] receives what stands at all i and j with clamp(i - j, 0, 63) == x. No loop can
// be solved for, and a sum over both for each x would go through all pairs once for each element.
//
// 1. An index of the table that is not solved has two loops, each as part of `i - j` or `i + j`.
// 2. A tensor gets what stands along each diagonal, one element for each distance. Its loops are
//    solved for: of `i - j + J - 1 == d` one is left. If both are as long, it is
//    `j - i + I - 1 == d`, which is solved for j: neighbours of d are neighbours in memory.
// 3. The table's element is the sum of those diagonals whose distance the function takes to it.

#include "frontend/GradKernel.h"

#include <algorithm>

namespace tk::grad {

using ast::BinaryOp;

namespace {
/// What two loops are together in an index: `a + sign * b`, or the negative of that.
struct Distance {
  IndexRef a, b;
  int sign = 0; ///< 0: not known yet

  /// `term` with `value` for `a + sign * b`; null if it has the loops in another way.
  TermPtr replace(const TermPtr &term, const TermPtr &value);
};
} // namespace

TermPtr Distance::replace(const TermPtr &term, const TermPtr &value) {
  if (!mentions(term, a) && !mentions(term, b))
    return term;
  TermPtr ofA, rest, ofB, other;
  if (decompose(term, a, ofA, rest) && decompose(rest, b, ofB, other) &&
      (ofA->isInt(1) || ofA->isInt(-1)) && (ofB->isInt(1) || ofB->isInt(-1))) {
    const int same = equal(ofA, ofB) ? 1 : -1;
    if (sign != 0 && sign != same)
      return nullptr;
    sign = same;
    return ofA->isInt(1) ? add(value, other) : sub(other, value);
  }
  if (term->args.empty() || term->kind == TermKind::Reduce)
    return nullptr;
  std::vector<TermPtr> args;
  for (const TermPtr &arg : term->args) {
    args.push_back(replace(arg, value));
    if (!args.back())
      return nullptr;
  }
  return withArgs(term, std::move(args));
}

TermPtr GradKernel::sumOfDiagonals(const std::string &name, const std::vector<IndexRef> &at,
                                   const Contribution &c) {
  const Solution solution = solve(c, at);
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    const TermPtr index = substitute(c.at[axis], solution.by);
    std::vector<IndexRef> loops;
    for (IndexRef loop : solution.rest)
      if (mentions(index, loop))
        loops.push_back(loop);
    if (loops.size() != 2 || !loops[0]->lo->isInt(0) || !loops[1]->lo->isInt(0))
      continue;
    const TermPtr &endA = loops[0]->hi, &endB = loops[1]->hi;
    const TermPtr last = sub(endB, integer(1));
    IndexRef diagonal = makeIndex("d", integer(0), add(endA, last));
    Distance distance{loops[0], loops[1]};
    if (!distance.replace(index, indexTerm(diagonal)))
      continue;
    const bool isSum = distance.sign > 0;
    // Equally long loops are solved for the later one: its distance grows with the diagonal.
    const bool isLater = !isSum && equal(endA, endB);
    const TermPtr number = indexTerm(diagonal);
    const TermPtr place = isSum ? number : isLater ? sub(last, number) : sub(number, last);
    const TermPtr key = distance.replace(index, place);

    std::vector<IndexRef> over = copies(at);
    over[axis] = makeIndex("d", diagonal->lo, diagonal->hi);
    Contribution along = c;
    const TermPtr a = indexTerm(loops[0]), b = indexTerm(loops[1]);
    along.at[axis] = isSum ? add(a, b) : add(isLater ? sub(b, a) : sub(a, b), last);
    const std::string sums = fresh(name + "_diagonals");
    emit(sums, over, build(along, solve(along, over), /*withFactor=*/true));

    std::vector<TermPtr> read;
    for (IndexRef own : at)
      read.push_back(indexTerm(own));
    read[axis] = indexTerm(diagonal);
    const TermPtr isHere = binary(BinaryOp::Eq, key, indexTerm(at[axis]));
    return reduction(ast::ReduceKind::Sum, {diagonal}, where({isHere}, access(sums, read)));
  }
  return nullptr;
}

} // namespace tk::grad
