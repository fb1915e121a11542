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
// 4. Another parameter may receive the same times functions of the distance, as the slope s[h] of
//    `t[clamp(i - j, 0, 63)] - s[h] * abs(i - j)` does. It is a sum over the diagonals, too, in
//    place of one over all pairs.

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

/// The factors of a product that are functions of a distance, and all others.
struct Factors {
  std::vector<TermPtr> ofDistance, others;
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

static Product wholeOf(const TermPtr &factor, const TermPtr &value) {
  Product product;
  product.take(factor ? mul(factor, value) : value);
  return product;
}

static bool mentionsAny(const TermPtr &term, const std::vector<IndexRef> &loops) {
  return std::any_of(loops.begin(), loops.end(), [&](IndexRef i) { return mentions(term, i); });
}

/// Are the terms of one list those of the other?
static bool areEqual(const std::vector<TermPtr> &a, const std::vector<TermPtr> &b) {
  return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin(), equal);
}

/// Are two contributions one but for the tensors that receive them?
template <typename Contribution> static bool isSame(const Contribution &a, const Contribution &b) {
  const Product ofA = wholeOf(a.factor, a.value), ofB = wholeOf(b.factor, b.value);
  return a.loops == b.loops && a.modifier == b.modifier && areEqual(a.conditions, b.conditions) &&
         ofA.isNegative == ofB.isNegative && areEqual(ofA.above, ofB.above) &&
         areEqual(ofA.below, ofB.below);
}

/// The distance of diagonal `number`, between loops that it is solved for.
TermPtr GradKernel::Diagonals::place(const TermPtr &number) const {
  return isSum ? number : isLater ? sub(last, number) : sub(number, last);
}

std::optional<GradKernel::Diagonals> GradKernel::diagonalsOf(const std::vector<IndexRef> &at,
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
    Diagonals found;
    found.axis = axis;
    found.a = loops[0], found.b = loops[1];
    found.rest = solution.rest;
    const TermPtr &endA = found.a->hi, &endB = found.b->hi;
    found.last = sub(endB, integer(1));
    found.extent = add(endA, found.last);
    Distance distance{found.a, found.b};
    if (!distance.replace(index, integer(0)))
      continue;
    found.isSum = distance.sign > 0;
    // Equally long loops are solved for the later one: its distance grows with the diagonal.
    found.isLater = !found.isSum && equal(endA, endB);
    found.key = index;
    return found;
  }
  return std::nullopt;
}

/// The name of the tensor of the sums along the diagonals of what `c` adds to a tensor.
std::string GradKernel::storeDiagonals(const std::string &name, const std::vector<IndexRef> &at,
                                       const Contribution &c, const Diagonals &diagonals) {
  for (const StoredDiagonals &stored : storedDiagonals)
    if (isSame(stored.of, c) &&
        std::equal(stored.of.at.begin(), stored.of.at.end(), c.at.begin(), c.at.end(), equal))
      return stored.name;
  std::vector<IndexRef> over = copies(at);
  over[diagonals.axis] = makeIndex("d", integer(0), diagonals.extent);
  Contribution along = c;
  const TermPtr a = indexTerm(diagonals.a), b = indexTerm(diagonals.b);
  along.at[diagonals.axis] =
      diagonals.isSum ? add(a, b) : add(diagonals.isLater ? sub(b, a) : sub(a, b), diagonals.last);
  const std::string sums = fresh(name + "_diagonals");
  // Conditions bound the loop that is left: half of all pairs of a diagonal and a row exist.
  emit(sums, over,
       diagonalsOf(over, along)
           ? sumOfDiagonals(sums, over, along)
           : build(along, solve(along, over), /*withFactor=*/true, /*mayPad=*/false));
  storedDiagonals.push_back({c, sums});
  return sums;
}

/// The contribution as a sum over the diagonals of what a table receives at the same pairs; null if
/// there is no such table.
TermPtr GradKernel::sumOverDistances(const std::vector<IndexRef> &at, const Contribution &c) {
  const Solution solution = solve(c, at);
  if (!solution.conditions.empty() ||
      std::any_of(solution.solved.begin(), solution.solved.end(),
                  [](const Solved &solved) { return !solved.bounds.empty(); }))
    return nullptr;
  for (const ast::GradArgument &arg : grad.wrt)
    for (const Contribution &table : contributions[arg.name]) {
      if (table.loops != c.loops || table.modifier != c.modifier ||
          !areEqual(table.conditions, c.conditions))
        continue;
      const std::vector<IndexRef> places = indicesOf(arg.name);
      std::optional<Diagonals> diagonals = diagonalsOf(places, table);
      if (!diagonals)
        continue;
      const Product whole = wholeOf(c.factor, c.value), known = wholeOf(table.factor, table.value);
      Distance distance{diagonals->a, diagonals->b, diagonals->isSum ? 1 : -1};
      std::vector<IndexRef> otherLoops, more;
      for (IndexRef loop : diagonals->rest)
        if (loop != diagonals->a && loop != diagonals->b)
          otherLoops.push_back(loop);
      const IndexRef diagonal = makeIndex("d", integer(0), diagonals->extent);
      const TermPtr place = diagonals->place(indexTerm(diagonal));
      Factors factors;
      for (const TermPtr &factor : whole.above) {
        const bool varies = mentions(factor, diagonals->a) || mentions(factor, diagonals->b);
        TermPtr ofDistance =
            varies && !mentionsAny(factor, otherLoops) ? distance.replace(factor, place) : nullptr;
        (ofDistance ? factors.ofDistance : factors.others)
            .push_back(ofDistance ? ofDistance : factor);
      }
      if (factors.ofDistance.empty() || !areEqual(factors.others, known.above) ||
          !areEqual(whole.below, known.below))
        continue;
      const auto &rest = solution.rest;
      if (!std::all_of(diagonals->rest.begin(), diagonals->rest.end(), [&](IndexRef loop) {
            return std::find(rest.begin(), rest.end(), loop) != rest.end();
          }))
        continue;
      for (IndexRef loop : rest)
        if (std::find(diagonals->rest.begin(), diagonals->rest.end(), loop) ==
            diagonals->rest.end())
          more.push_back(loop);
      std::vector<TermPtr> read;
      for (const TermPtr &index : table.at)
        read.push_back(substitute(index, solution.by));
      read[diagonals->axis] = indexTerm(diagonal);
      if (std::any_of(read.begin(), read.end(),
                      [&](const TermPtr &index) { return mentionsAny(index, diagonals->rest); }))
        continue;
      const std::string sums = storeDiagonals("d_" + arg.name, places, table, *diagonals);
      for (TermPtr &factor : factors.ofDistance)
        factor = substitute(factor, solution.by);
      factors.ofDistance.insert(factors.ofDistance.begin(), access(sums, read));
      more.push_back(diagonal);
      const TermPtr sum = reduction(ast::ReduceKind::Sum, more, productOf(factors.ofDistance, {}));
      return whole.isNegative != known.isNegative ? neg(sum) : sum;
    }
  return nullptr;
}

TermPtr GradKernel::sumOfDiagonals(const std::string &name, const std::vector<IndexRef> &at,
                                   const Contribution &c) {
  std::optional<Diagonals> diagonals = diagonalsOf(at, c);
  if (!diagonals)
    return sumOverDistances(at, c);
  const std::string sums = storeDiagonals(name, at, c, *diagonals);
  const IndexRef diagonal = makeIndex("d", integer(0), diagonals->extent);
  Distance distance{diagonals->a, diagonals->b};
  const TermPtr key = distance.replace(diagonals->key, diagonals->place(indexTerm(diagonal)));
  std::vector<TermPtr> read;
  for (IndexRef own : at)
    read.push_back(indexTerm(own));
  read[diagonals->axis] = indexTerm(diagonal);
  Contribution whole;
  whole.loops = {diagonal};
  for (IndexRef own : at)
    whole.at.push_back(indexTerm(own));
  whole.at[diagonals->axis] = key;
  whole.value = access(sums, read);
  TermPtr total = real(0);
  for (const Contribution &piece : piecesOf(whole, at))
    total = add(total, build(piece, solve(piece, at), /*withFactor=*/true));
  return total;
}

} // namespace tk::grad
