// From what statements contribute to a tensor's adjoint to the adjoint.

#include "frontend/GradKernel.h"

#include <algorithm>

namespace tk::grad {

using ast::BinaryOp;

std::vector<IndexRef> GradKernel::copies(const std::vector<IndexRef> &list) {
  std::vector<IndexRef> made;
  for (IndexRef index : list)
    made.push_back(makeIndex(index->name, index->lo, index->hi));
  return made;
}

void GradKernel::emit(const std::string &name, const std::vector<IndexRef> &list, TermPtr value) {
  Statement s;
  s.name = name;
  s.indices = list;
  s.value = std::move(value);
  declareAxes(name, list);
  adjoints.push_back(std::move(s));
}

TermPtr GradKernel::define(const std::string &base, const std::vector<IndexRef> &list,
                           TermPtr value) {
  std::string name = fresh(base);
  emit(name, list, std::move(value));
  return elementAt(name, list);
}

static bool rests(const TermPtr &term, const std::vector<IndexRef> &on) {
  std::set<IndexRef> used = freeIndices(term);
  return std::any_of(on.begin(), on.end(), [&](IndexRef index) { return used.count(index) != 0; });
}

/// The adjoint reads 0 outside its tensor, so that it needs no condition for loops that end there.
/// Replaces the element by a padded one; false if nothing shows that it is 0.
static bool padded(TermPtr &element, IndexRef loop,
                   const std::map<std::string, std::vector<Axis>> &axes) {
  if (element->kind != TermKind::Access)
    return false;
  auto shape = axes.find(element->name);
  for (std::size_t i = 0; i < element->args.size(); ++i)
    if (element->args[i]->kind == TermKind::Index && element->args[i]->index == loop)
      return shape != axes.end() && equal(shape->second[i].lo, loop->lo) &&
             equal(shape->second[i].hi, loop->hi);
  return false;
}

/// Whether any of the factors depends on another index than those of `loops`.
static bool hasOwnIndex(const std::vector<TermPtr> &factors, const std::vector<IndexRef> &loops) {
  return std::any_of(factors.begin(), factors.end(), [&](const TermPtr &factor) {
    std::set<IndexRef> used = freeIndices(factor);
    return std::any_of(used.begin(), used.end(), [&](IndexRef index) {
      return std::find(loops.begin(), loops.end(), index) == loops.end();
    });
  });
}

/// Is `condition` one on a remainder by a constant, which holds for every so many-th term?
static bool isOnRemainder(const TermPtr &condition) {
  if (!condition->is(BinaryOp::Eq) || !condition->args[1]->isInt(0))
    return false;
  const TermPtr &rest = condition->args[0];
  return rest->is(BinaryOp::Rem) && rest->args[1]->kind == TermKind::Int;
}

/// Whether a condition reads an element at a place that follows from `value`'s indices.
static bool readsAt(const TermPtr &condition, const TermPtr &value) {
  std::set<IndexRef> indices = freeIndices(value);
  bool found = false;
  walk(condition, [&](const Term &t) {
    if (t.kind == TermKind::Access)
      for (const TermPtr &arg : t.args)
        for (IndexRef index : freeIndices(arg))
          found |= indices.count(index) != 0;
    return !found;
  });
  return found;
}

/// Is `term` the difference of a value from its own mean over `loops`? Such differences add up to
/// 0. So the gradient of a variance does not depend on the mean that it is taken about.
bool GradKernel::isDeviation(const TermPtr &term, std::vector<IndexRef> loops) const {
  if (!term->is(BinaryOp::Sub) || term->args[1]->kind != TermKind::Access ||
      rests(term->args[1], loops))
    return false;
  const TermPtr mean = valueAt(*term->args[1]);
  if (!mean || mean->kind != TermKind::Reduce || mean->reduce != ast::ReduceKind::Mean ||
      mean->binders.size() != loops.size())
    return false;
  auto byOrder = [](IndexRef a, IndexRef b) { return a->order < b->order; };
  std::sort(loops.begin(), loops.end(), byOrder);
  do {
    Substitution by;
    bool isSame = true;
    for (std::size_t i = 0; i < loops.size() && isSame; ++i) {
      by[mean->binders[i]] = indexTerm(loops[i]);
      isSame =
          equal(mean->binders[i]->lo, loops[i]->lo) && equal(mean->binders[i]->hi, loops[i]->hi);
    }
    if (isSame && equal(substitute(mean->args[0], by), term->args[0]))
      return true;
  } while (std::next_permutation(loops.begin(), loops.end(), byOrder));
  return false;
}

/// Is `divisor` 0 where one of the loops has no iteration? That of a mean is the product of their
/// lengths.
static bool hasLengthOf(const TermPtr &divisor, const std::vector<IndexRef> &loops) {
  if (divisor->is(BinaryOp::Mul) || (divisor->kind == TermKind::Call && divisor->name == "f32"))
    return std::any_of(divisor->args.begin(), divisor->args.end(),
                       [&](const TermPtr &factor) { return hasLengthOf(factor, loops); });
  return divisor->kind != TermKind::Int &&
         std::any_of(loops.begin(), loops.end(),
                     [&](IndexRef loop) { return equal(divisor, sub(loop->hi, loop->lo)); });
}

/// The divisor, or 1 where it is 0.
static TermPtr atLeastOne(const TermPtr &divisor) {
  return divisor->kind == TermKind::Call ? call(divisor->name, {atLeastOne(divisor->args[0])})
                                         : call("max", {divisor, integer(1)});
}

/// The sum over the loops that remain, with what does not depend on them outside, and a product of
/// two factors kept one.
TermPtr GradKernel::build(const Contribution &c, const Solution &solution, bool withFactor,
                          bool mayPad) {
  TermPtr whole = withFactor && c.factor ? mul(c.factor, c.value) : c.value;
  Product product;
  product.take(whole);

  // 1. Bounds of loops that were solved for become paddings of one factor where that says the same:
  //    where nothing else depends on the loop.
  std::vector<TermPtr> conditions = c.conditions;
  bool pads = false;
  std::size_t paddedFactor = 0;
  std::vector<TermPtr> bounds;
  for (const Solved &solved : solution.solved) {
    if (solved.bounds.empty())
      continue;
    std::size_t uses = 0, at = 0;
    for (std::size_t i = 0; i < product.above.size(); ++i)
      if (mentions(product.above[i], solved.loop)) {
        ++uses;
        at = i;
      }
    for (const TermPtr &other : product.below)
      uses += 2 * mentions(other, solved.loop);
    for (const TermPtr &other : c.conditions)
      uses += 2 * mentions(other, solved.loop);
    for (const TermPtr &other : solution.conditions)
      uses += 2 * readsAt(other, solved.value);
    if (mayPad && uses == 1 && (!pads || at == paddedFactor) &&
        padded(product.above[at], solved.loop, axes)) {
      pads = true;
      paddedFactor = at;
      continue;
    }
    bounds.insert(bounds.end(), solved.bounds.begin(), solved.bounds.end());
  }

  // 2. In terms of the element that is asked for.
  auto solvedFor = [&](std::vector<TermPtr> &terms) {
    for (TermPtr &term : terms)
      term = substitute(term, solution.by);
  };
  solvedFor(product.above);
  solvedFor(product.below);
  solvedFor(conditions);
  if (pads)
    product.above[paddedFactor] = call("pad", {product.above[paddedFactor], real(0)});
  conditions.insert(conditions.end(), bounds.begin(), bounds.end());
  conditions.insert(conditions.end(), solution.conditions.begin(), solution.conditions.end());
  if (c.isPiece)
    for (std::vector<TermPtr> *terms : {&product.above, &product.below, &conditions})
      std::transform(terms->begin(), terms->end(), terms->begin(), withShortSums);

  // 3. What does not depend on the loops that remain leaves the sum.
  std::vector<TermPtr> above, below, outerAbove, outerBelow, inner, outer;
  for (const TermPtr &factor : product.above)
    (rests(factor, solution.rest) ? above : outerAbove).push_back(factor);
  for (const TermPtr &factor : product.below) {
    if (rests(factor, solution.rest))
      below.push_back(factor);
    else // the sum over nothing is 0, and 0 / 0 is not
      outerBelow.push_back(hasLengthOf(factor, solution.rest) ? atLeastOne(factor) : factor);
  }
  for (const TermPtr &condition : conditions)
    (rests(condition, solution.rest) ? inner : outer).push_back(condition);
  if (above.size() == 1 && below.empty() && inner.empty() && isDeviation(above[0], solution.rest))
    return real(0);
  TermPtr value = productOf(outerAbove, outerBelow);
  if (!solution.rest.empty()) {
    TermPtr body;
    // Of a matrix product the condition stays with one operand. What is no such product is 0 where
    // the condition does not hold, whatever its factors are. If the condition takes every so
    // many-th term, the sum over these is a matrix product, too (tk-split-residues).
    bool isFactor = !inner.empty() && above.size() > 1 && below.empty() &&
                    !std::all_of(inner.begin(), inner.end(), isOnRemainder) &&
                    std::all_of(above.begin() + 1, above.end(), readsBare) &&
                    hasOwnIndex({above.begin() + 1, above.end()}, solution.rest);
    if (isFactor) {
      above[0] = where(inner, above[0]);
      body = productOf(above, below);
    } else {
      body = where(inner, productOf(above, below));
    }
    TermPtr sum = reduction(ast::ReduceKind::Sum, solution.rest, body, c.modifier);
    outerAbove.insert(outerAbove.begin(), sum);
    value = productOf(outerAbove, outerBelow);
  }
  value = product.isNegative ? neg(value) : value;
  return where(outer, value);
}

/// The sum of all contributions. Those with one factor are added up before it is multiplied by, and
/// of these, those that do not depend on all indices first among themselves.
TermPtr GradKernel::combine(const std::string &name, const std::vector<IndexRef> &at,
                            const std::vector<Contribution> &list) {
  struct Group {
    TermPtr factor;
    std::vector<TermPtr> conditions;
    std::vector<TermPtr> terms;
  };
  std::vector<Group> groups;
  std::vector<Contribution> pieces;
  for (const Contribution &c : list) {
    if (TermPtr sum = sumOfDiagonals(name, at, c)) {
      groups.push_back({nullptr, {}, {sum}});
      continue;
    }
    for (Contribution &piece : piecesOf(c, at))
      pieces.push_back(std::move(piece));
  }
  for (const Contribution &c : pieces) {
    Solution solution = solve(c, at);
    TermPtr factor = c.factor ? substitute(c.factor, solution.by) : nullptr;
    bool isInside = factor && rests(factor, solution.rest);
    Contribution rest = c;
    Group group;
    if (factor && !isInside) {
      // Conditions, too, stand around the whole group, as do the bounds within which the factor may
      // be read.
      group.factor = factor;
      group.conditions = c.conditions;
      for (TermPtr &condition : group.conditions)
        condition = substitute(condition, solution.by);
      for (const Solved &solved : solution.solved)
        group.conditions.insert(group.conditions.end(), solved.bounds.begin(), solved.bounds.end());
      if (std::any_of(group.conditions.begin(), group.conditions.end(),
                      [&](const TermPtr &t) { return rests(t, solution.rest); }))
        isInside = true;
      else
        rest.conditions.clear();
    }
    if (isInside)
      group = {};
    TermPtr term = build(rest, solution, isInside);
    auto same = std::find_if(groups.begin(), groups.end(), [&](const Group &known) {
      if (!group.factor || !known.factor || !equal(known.factor, group.factor) ||
          known.conditions.size() != group.conditions.size())
        return false;
      for (std::size_t i = 0; i < known.conditions.size(); ++i)
        if (!equal(known.conditions[i], group.conditions[i]))
          return false;
      return true;
    });
    if (same == groups.end())
      same = groups.insert(groups.end(), group);
    same->terms.push_back(term);
  }
  TermPtr total = real(0);
  for (Group &group : groups) {
    TermPtr sum = real(0), row = real(0);
    std::vector<TermPtr> rows;
    for (const TermPtr &term : group.terms) {
      bool isRow = group.factor && freeIndices(term).size() < at.size();
      if (isRow)
        rows.push_back(term);
      else
        sum = add(sum, term);
    }
    for (const TermPtr &term : rows)
      row = add(row, term);
    if (rows.size() > 1) {
      std::set<IndexRef> used = freeIndices(row);
      std::vector<IndexRef> over;
      for (IndexRef index : at)
        if (used.count(index))
          over.push_back(index);
      row = define(name + "_row", over, row);
    }
    sum = add(sum, row);
    total = add(total, where(group.conditions, group.factor ? mul(group.factor, sum) : sum));
  }
  return total;
}

/// The type to which the adjoint of a contraction is rounded: that of its operand which is an input
/// of 16 bits, if the other one is computed. Both that one and the adjoint are rounded to this type
/// where they are multiplied by the input. The gradient by the input multiplies one by the other,
/// which would be a product in f32. Nothing if the adjoint is no more than an element.
std::optional<ast::DType> GradKernel::roundingOf(const Statement &s, const TermPtr &adjoint) const {
  if (adjoint->kind == TermKind::Access || s.value->kind != TermKind::Reduce ||
      s.value->reduce != ast::ReduceKind::Sum || s.value->modifier != ast::ReduceModifier::None ||
      !s.value->args[0]->is(BinaryOp::Mul))
    return std::nullopt;
  for (unsigned i : {0U, 1U}) {
    const TermPtr &input = s.value->args[0]->args[i], &other = s.value->args[0]->args[1 - i];
    if (input->kind != TermKind::Access || other->kind != TermKind::Access)
      return std::nullopt;
    auto stored = tensors.find(input->name), computed = tensors.find(other->name);
    if (stored == tensors.end() || computed == tensors.end() || !stored->second.isInput ||
        computed->second.isInput || computed->second.isResult || computed->second.dtype)
      continue;
    const std::optional<ast::DType> type = stored->second.dtype;
    if (stored->second.isActive && (type == ast::DType::F16 || type == ast::DType::BF16))
      return type;
  }
  return std::nullopt;
}

void GradKernel::reverse() {
  for (auto s = statements.rbegin(); s != statements.rend(); ++s) {
    if (!s->isActive)
      continue;
    received = contributions[s->name];
    std::string cotangent = "d_" + s->name;
    if (s->isResult && received.empty()) {
      adjointNames[s->name] = cotangent;
      differentiate(*s, elementAt(cotangent, s->indices));
      continue;
    }
    std::vector<IndexRef> at = copies(s->indices);
    if (s->isResult) {
      Contribution own;
      own.loops = at;
      own.value = elementAt(cotangent, at);
      for (IndexRef index : at)
        own.at.push_back(indexTerm(index));
      received.push_back(own);
    }
    if (received.empty())
      continue; // no result depends on it
    // The name is taken before those of its parts, which say that they are its.
    std::string name = fresh(s->isResult ? cotangent + "_total" : cotangent);
    emit(name, at, combine(name, at, received));
    adjoints.back().dtype = roundingOf(*s, adjoints.back().value);
    adjointNames[s->name] = name;
    differentiate(*s, elementAt(name, s->indices));
  }
}

} // namespace tk::grad
