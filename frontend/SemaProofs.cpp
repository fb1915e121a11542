// Proofs that accesses are in bounds: for all sizes, under the conditions around them, or as a
// condition on sizes that is checked at launch.

#include "frontend/SemaKernel.h"

#include <algorithm>

namespace tk::sema {

using bounds::Poly;

/// Adds what is not negative, or not zero, where a condition around an access holds, or where it
/// does not.
void KernelSema::addGuardFacts(const Node *condition, bool holds, Guarded &into) {
  if (condition->kind != NodeKind::Op)
    return;
  const std::vector<Node *> &args = condition->args;
  const Op op = condition->op;
  if (op == Op::Not)
    return addGuardFacts(args[0], !holds, into);
  if (op == (holds ? Op::And : Op::Or)) {
    for (const Node *arg : args)
      addGuardFacts(arg, holds, into);
    return;
  }
  auto polyOfInteger = [&](const Node *n) {
    while (n->kind == NodeKind::Convert && n->type == Type::I64 && isInteger(n->args[0]->type))
      n = n->args[0];
    return polyOf(n);
  };
  if (args.size() != 2)
    return;
  std::optional<Poly> a = polyOfInteger(args[0]), b = polyOfInteger(args[1]);
  if (!a || !b)
    return;
  if (op == (holds ? Op::Lt : Op::Ge) || op == (holds ? Op::Le : Op::Gt))
    into.facts.push_back(*b - *a - (op == Op::Lt || op == Op::Ge ? 1 : 0));
  else if (op == (holds ? Op::Gt : Op::Le) || op == (holds ? Op::Ge : Op::Lt))
    into.facts.push_back(*a - *b - (op == Op::Gt || op == Op::Le ? 1 : 0));
  else if (op == (holds ? Op::Eq : Op::Ne))
    for (const Poly &difference : {*a - *b, *b - *a})
      into.facts.push_back(difference);
  else if (op == (holds ? Op::Ne : Op::Eq))
    into.nonZero.push_back(*a - *b);
}

/// What is not zero and not negative is at least 1: `j != 0` of an index that begins at 0.
void KernelSema::sharpen(Guarded &around) {
  const std::vector<bounds::Atom> active = activeAtoms();
  auto becomesFact = [&](const Poly &nonZero) {
    for (const Poly &value : {nonZero, Poly(0) - nonZero})
      if (around.prover.nonNegative(value, active)) {
        around.facts.push_back(value - 1);
        around.prover.assume(value - 1);
        return true;
      }
    return false;
  };
  while (std::erase_if(around.nonZero, becomesFact) != 0) {
  }
}

static bool holds(const std::vector<Poly> &clause, const bounds::Prover &by,
                  const std::vector<bounds::Atom> &active) {
  return std::any_of(clause.begin(), clause.end(),
                     [&](const Poly &goal) { return by.nonNegative(goal, active); });
}

/// Whether one of the values is never negative under the conditions around: by cases where it
/// depends on the sign of what is not zero.
bool KernelSema::holdsUnder(const std::vector<Poly> &clause, const Guarded &around,
                            std::size_t firstCase) const {
  constexpr std::size_t mostCases = 3; // each doubles the work
  if (holds(clause, around.prover, activeAtoms()))
    return true;
  if (firstCase >= std::min(around.nonZero.size(), mostCases))
    return false;
  for (const Poly &value : {around.nonZero[firstCase], Poly(0) - around.nonZero[firstCase]}) {
    Guarded inCase = around;
    inCase.prover.assume(value - 1);
    if (!holdsUnder(clause, inCase, firstCase + 1))
      return false;
  }
  return true;
}

bool KernelSema::prove(const ast::Access &e, const Tensor &tensor,
                       const std::vector<Node *> &indices) {
  Guarded around{prover, {}, {}, false};
  for (auto &[condition, isTrue] : guards)
    addGuardFacts(condition, isTrue, around);
  for (const Poly &fact : around.facts)
    around.prover.assume(fact);
  sharpen(around);
  for (unsigned axis = 0; axis < indices.size(); ++axis)
    if (!proveComponent(e, axis, indices[axis], tensor, around))
      break;
  return around.isNeeded;
}

/// Of each pair of clauses one clause: either of the two.
static std::vector<std::vector<Poly>> eitherOf(const std::vector<std::vector<Poly>> &a,
                                               const std::vector<std::vector<Poly>> &b) {
  constexpr std::size_t most = 64; // nested clamps multiply; beyond that nothing is proved
  if (a.size() * b.size() > most)
    return {{}};
  std::vector<std::vector<Poly>> both;
  for (const std::vector<Poly> &x : a)
    for (const std::vector<Poly> &y : b) {
      both.push_back(x);
      both.back().insert(both.back().end(), y.begin(), y.end());
    }
  return both;
}

/// What a remainder by a constant is at most.
std::optional<Poly> KernelSema::greatestRemainder(const Node *n) {
  std::optional<Poly> by = n->kind == NodeKind::Op && n->op == Op::Rem && n->args.size() == 2
                               ? polyOf(n->args[1])
                               : std::nullopt;
  return by && by->isConstant() && by->constant() > 0 ? std::optional(Poly(by->constant() - 1))
                                                      : std::nullopt;
}

KernelSema::Clauses KernelSema::clausesOf(const Node *n, bool isLower, const Poly &bound) {
  if (std::optional<Poly> p = polyOf(n)) {
    Poly goal = isLower ? *p - bound : bound - *p;
    // What a launch checks of an access under a condition may be more than it takes, as it is for
    // all values of the indices.
    if (std::optional<Poly> greatest = greatestRemainder(n);
        greatest && !guards.empty() && !prover.minimum(goal, activeAtoms()))
      return {{goal, isLower ? Poly(0) - bound : bound - *greatest}};
    return {{goal}};
  }
  if (n->kind == NodeKind::Convert && n->type == Type::Index && isInteger(n->args[0]->type))
    return clausesOf(n->args[0], isLower, bound);
  if (n->kind != NodeKind::Op)
    return {{}};
  auto clausesOfExtremum = [&](bool isMin, Clauses a, const Clauses &b) -> Clauses {
    if (isMin != isLower)
      return eitherOf(a, b);
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  auto ofArg = [&](unsigned k) { return clausesOf(n->args[k], isLower, bound); };
  switch (n->op) {
  case Op::Min:
  case Op::Max:
    return clausesOfExtremum(n->op == Op::Min, ofArg(0), ofArg(1));
  case Op::Clamp: // min(max(x, lo), hi)
    return clausesOfExtremum(true, clausesOfExtremum(false, ofArg(0), ofArg(1)), ofArg(2));
  case Op::Add:
    for (unsigned k : {0, 1})
      if (std::optional<Poly> known = polyOf(n->args[k]))
        return clausesOf(n->args[1 - k], isLower, bound - *known);
    return {{}};
  case Op::Sub:
    if (std::optional<Poly> known = polyOf(n->args[1]))
      return clausesOf(n->args[0], isLower, bound + *known);
    if (std::optional<Poly> known = polyOf(n->args[0]))
      return clausesOf(n->args[1], !isLower, *known - bound);
    return {{}};
  case Op::Abs:
    if (!isLower) // x and -x
      return clausesOfExtremum(false, ofArg(0), clausesOf(n->args[0], true, Poly(0) - bound));
    return eitherOf(eitherOf(ofArg(0), clausesOf(n->args[0], false, Poly(0) - bound)),
                    {{Poly(0) - bound}});
  case Op::Rem:
    if (std::optional<Poly> greatest = greatestRemainder(n))
      return {{isLower ? Poly(0) - bound : bound - *greatest}};
    return {{}};
  case Op::FloorDiv: {
    std::optional<Poly> by = polyOf(n->args[1]);
    if (!by || !by->isConstant() || by->constant() <= 0)
      return {{}};
    return clausesOf(n->args[0], isLower, isLower ? bound * *by : bound * *by + *by - 1);
  }
  default:
    return {{}};
  }
}

/// What is not negative where the conditions around hold and one of the values, each less what a
/// condition says is not negative, is not.
static std::vector<Poly> lessFacts(const std::vector<Poly> &clause,
                                   const std::vector<Poly> &facts) {
  std::vector<Poly> rest;
  for (const Poly &goal : clause)
    for (const Poly &fact : facts)
      rest.push_back(goal - fact);
  return rest;
}

bool KernelSema::proveComponent(const ast::Access &e, unsigned axis, Node *index,
                                const Tensor &tensor, Guarded &around) {
  std::optional<Poly> at = polyOf(index), extent = polyOf(tensor.extents[axis]);
  Node *lowNode = tensor.lows.empty() ? nullptr : tensor.lows[axis];
  std::optional<Poly> low = lowNode ? polyOf(lowNode) : Poly(0);
  // The leading indices of a function's tensor are written where it is called.
  const std::size_t leading = tensor.extents.size() - e.indices.size();
  const Span place = axis < leading ? index->span : e.indices[axis - leading]->span;
  std::string written(diags.sources().text(place));
  std::string whole(diags.sources().text(e.span));
  auto fail = [&](Diag code, const std::string &what) {
    const bool isNever = code == Diag::AccessOutOfBounds;
    auto d = diags.error(code, place);
    if (isNever)
      d << whole << " is out of bounds for every size: " << what << " does not always hold";
    else
      d << "cannot prove " << what << " for " << whole;
    d.label(tensor.span, "axis " + std::to_string(axis) +
                             (lowNode ? " ranges over " : " has the extent ") +
                             rangeOf(lowNode, tensor.extents[axis]));
    std::set<bounds::Atom> atoms;
    if (at)
      symbols.collect(*at, atoms);
    for (bounds::Atom a : atoms)
      if (symbols[a].kind == bounds::AtomKind::Index)
        d.note(symbols[a].name + " in " + symbols.text(symbols[a].lo) + ".." +
               symbols.text(symbols[a].hi));
    d.help("to read 0 outside the bounds, write pad(" + whole + ", 0)" +
           (isNever ? "" : "; or state in `where` what holds of the sizes"));
    return false;
  };
  std::string least = lowNode ? textOf(lowNode) : "0";
  if (!extent || !low || (at && at->overflowed()))
    return fail(Diag::UnprovableAccess,
                least + " <= " + written + " < " + textOf(tensor.extents[axis]));
  if (index->kind == NodeKind::Index && symbols[index->indices[0]->atom].hi == *extent &&
      symbols[index->indices[0]->atom].lo == *low)
    return true;
  for (bool isLower : {true, false}) {
    std::string what =
        isLower ? written + " >= " + least : written + " < " + textOf(tensor.extents[axis]);
    for (const std::vector<Poly> &clause :
         clausesOf(index, isLower, isLower ? *low : *extent - 1)) {
      std::vector<bounds::Atom> active = activeAtoms();
      if (!guards.empty() && !holds(clause, prover, active) && !isCheckedAtLaunch(clause) &&
          holdsUnder(clause, around)) {
        around.isNeeded = true;
        continue;
      }
      const Proof proof = proveClause(clause, e.span, what + " for " + whole);
      // Of conditions and sizes together.
      if (proof != Proof::Holds && proveClause(lessFacts(clause, around.facts), e.span,
                                               what + " for " + whole) == Proof::Holds) {
        around.isNeeded = true;
        continue;
      }
      switch (proof) {
      case Proof::Holds:
        break;
      case Proof::Never:
        // Under a condition, the values that break the bound may not occur.
        if (!guards.empty())
          return fail(Diag::UnprovableAccess, what);
        return fail(Diag::AccessOutOfBounds, what);
      case Proof::Unknown:
        return fail(Diag::UnprovableAccess, what);
      }
    }
  }
  return true;
}

/// The greatest of these is the least that one of the values of `clause` can be; `isExact` if that
/// least value occurs.
std::vector<Poly> KernelSema::minimumOf(const std::vector<Poly> &clause, bool &isExact) const {
  std::vector<Poly> minimum;
  isExact = true;
  for (const Poly &goal : clause) {
    std::optional<std::vector<Poly>> values = prover.minimum(goal, activeAtoms());
    isExact &= values.has_value();
    if (values)
      minimum.insert(minimum.end(), values->begin(), values->end());
  }
  return minimum;
}

/// Whether the launch checks the clause already, for an access that no condition guards: an access
/// under a condition then needs no guard either.
bool KernelSema::isCheckedAtLaunch(const std::vector<Poly> &clause) const {
  bool isExact = true;
  const std::vector<Poly> minimum = minimumOf(clause, isExact);
  return !minimum.empty() && isCheckedAlready(minimum);
}

/// Does the launch check the clause wherever no active range is empty? A check that other ranges
/// excuse does not count.
bool KernelSema::isCheckedAlready(const std::vector<Poly> &minimum) const {
  const std::vector<bounds::Atom> active = activeAtoms();
  auto isActive = [&](const std::pair<Poly, Poly> &range) {
    return std::any_of(active.begin(), active.end(), [&](bounds::Atom a) {
      return symbols[a].lo == range.first && symbols[a].hi == range.second;
    });
  };
  return std::any_of(checkedBounds.begin(), checkedBounds.end(), [&](const CheckedClause &clause) {
    return clause.minimum == minimum &&
           std::all_of(clause.ranges.begin(), clause.ranges.end(), isActive);
  });
}

/// Whether one of the values is never negative, or is not at launch, which then checks it.
KernelSema::Proof KernelSema::proveClause(const std::vector<Poly> &clause, Span span,
                                          const std::string &text) {
  std::vector<bounds::Atom> active = activeAtoms();
  if (holds(clause, prover, active))
    return Proof::Holds;
  bool isExact = true;
  const std::vector<Poly> minimum = minimumOf(clause, isExact);
  if (minimum.empty())
    return Proof::Unknown;
  if (std::any_of(minimum.begin(), minimum.end(),
                  [&](const Poly &value) { return prover.nonNegative(value, active); }))
    return Proof::Holds;
  // False for every size with non-empty ranges?
  if (std::all_of(minimum.begin(), minimum.end(),
                  [&](const Poly &value) { return prover.nonNegative(Poly(-1) - value, active); }))
    return isExact && clause.size() == 1 ? Proof::Never : Proof::Unknown;
  checkAtLaunch(span, minimum, text);
  return Proof::Holds;
}

/// Has the launch check that the greatest of the values, which rest on sizes alone, is not
/// negative.
void KernelSema::checkAtLaunch(Span span, const std::vector<Poly> &minimum,
                               const std::string &text) {
  if (isCheckedAlready(minimum))
    return;
  CheckedClause &checked = checkedBounds.emplace_back();
  checked.minimum = minimum;
  Node *condition = nullptr;
  std::string inequality;
  for (const Poly &value : minimum) {
    Node *holds = op(Op::Ge, Type::Bool, {nodeOf(value, span), intConst(0, span)}, span);
    condition = condition ? op(Op::Or, Type::Bool, {condition, holds}, span) : holds;
    inequality += (inequality.empty() ? "" : " or ") + symbols.text(value) + " >= 0";
  }
  // Nothing is read where a range is empty.
  for (bounds::Atom a : activeAtoms()) {
    const Poly lo = symbols[a].lo, hi = symbols[a].hi;
    checked.ranges.emplace_back(lo, hi);
    condition =
        op(Op::Or, Type::Bool,
           {condition, op(Op::Le, Type::Bool, {nodeOf(hi, span), nodeOf(lo, span)}, span)}, span);
  }
  out.assumptions.push_back({condition, text + " (" + inequality + ")", true, span});
}

} // namespace tk::sema
