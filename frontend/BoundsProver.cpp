// How an inequality over sizes is proved.
//
// 1. Collect what is known of the symbols involved: dimensions are >= 0, an index lies in its
// range,
//    a quotient q = floor(n / d) satisfies 0 <= n - d * q <= d - 1, and the `where` constraints.
// 2. Add the negation of the goal.
// 3. Take each monomial for a variable of its own. Where that leaves a contradiction in the
//    rationals, the goal holds.
// 4. Otherwise multiply the constraints by non-negative symbols and try again: this is what
//    relates `h / (H / G)` to G given H % G == 0.

#include "frontend/Bounds.h"

#include "mlir/Analysis/Presburger/Simplex.h"

#include <algorithm>

namespace tk::bounds {

namespace {
constexpr std::size_t kMaxConstraints = 400;
constexpr std::size_t kMaxColumns = 200;
constexpr std::size_t kMaxExtremes = 8;

/// Whether no rational point satisfies `constraints` (each >= 0), monomials taken as variables.
bool contradictory(const std::vector<Poly> &constraints) {
  std::map<Monomial, unsigned> columns;
  for (const Poly &c : constraints)
    for (auto &[m, k] : c.terms())
      if (!m.empty())
        columns.try_emplace(m, static_cast<unsigned>(columns.size()));
  if (columns.size() > kMaxColumns)
    return false;
  mlir::presburger::Simplex simplex(columns.size());
  for (const Poly &c : constraints) {
    if (c.overflowed())
      continue;
    std::vector<llvm::DynamicAPInt> row(columns.size() + 1, llvm::DynamicAPInt(0));
    for (auto &[m, k] : c.terms())
      row[m.empty() ? columns.size() : columns[m]] = llvm::DynamicAPInt(k);
    simplex.addInequality(row);
    if (simplex.isEmpty())
      return true;
  }
  return false;
}

/// Adds `factor` times one of `addends` to each of `sums`, in all combinations.
bool addEach(std::vector<Poly> &sums, const Poly &factor, const std::vector<Poly> &addends) {
  if (sums.size() * addends.size() > kMaxExtremes)
    return false;
  std::vector<Poly> combined;
  for (const Poly &sum : sums)
    for (const Poly &addend : addends)
      combined.push_back(sum + factor * addend);
  sums = std::move(combined);
  return true;
}

std::size_t degree(const Poly &p) {
  std::size_t d = 0;
  for (auto &[m, k] : p.terms())
    d = std::max(d, m.size());
  return d;
}
} // namespace

void Prover::systemFacts(const Poly &p, const std::vector<Atom> &active,
                         std::vector<Poly> &out) const {
  std::set<Atom> atoms;
  symbols.collect(p, atoms);
  for (Atom a : active)
    symbols.collect(Poly::atom(a), atoms);
  for (const Poly &f : facts) {
    symbols.collect(f, atoms);
    out.push_back(f);
  }
  for (Atom a : atoms) {
    Poly x = Poly::atom(a);
    const AtomInfo &info = symbols[a];
    switch (info.kind) {
    case AtomKind::Dim:
      out.push_back(x);
      break;
    case AtomKind::Scalar:
      break;
    case AtomKind::Index:
      out.push_back(x - info.lo);
      out.push_back(info.hi - 1 - x);
      break;
    case AtomKind::Quotient:
      out.push_back(info.num - info.den * x);
      out.push_back(info.den * x + info.den - 1 - info.num);
      break;
    }
  }
}

bool Prover::nonNegative(const Poly &p, const std::vector<Atom> &active) const {
  if (p.overflowed())
    return false;
  if (p.isConstant() && p.constant() >= 0)
    return true;
  std::vector<Poly> system;
  Poly negated = Poly(-1) - p;
  system.push_back(negated);
  systemFacts(p, active, system);
  if (contradictory(system))
    return true;

  std::set<Atom> multipliers;
  for (const Poly &c : system)
    for (auto &[m, k] : c.terms())
      if (m.size() >= 2)
        multipliers.insert(m.begin(), m.end());
  if (multipliers.empty())
    return false;
  std::vector<Poly> base = system;
  for (Atom a : multipliers) {
    const AtomInfo &info = symbols[a];
    Poly x = Poly::atom(a);
    bool sure = info.kind == AtomKind::Dim ||
                (info.kind == AtomKind::Index && info.lo.isConstant() && info.lo.constant() >= 0);
    if (info.kind == AtomKind::Quotient) {
      std::vector<Poly> negative{Poly(-1) - x};
      systemFacts(x, {}, negative);
      sure = contradictory(negative) ||
             std::all_of(info.num.terms().begin(), info.num.terms().end(), [&](auto &t) {
               return t.second > 0 && std::all_of(t.first.begin(), t.first.end(), [&](Atom b) {
                        return symbols[b].kind == AtomKind::Dim;
                      });
             });
    }
    if (!sure)
      continue;
    system.push_back(x);
    for (const Poly &c : base)
      if (degree(c) <= 2 && system.size() < kMaxConstraints)
        system.push_back(c * x);
  }
  return contradictory(system);
}

bool Prover::equal(const Poly &a, const Poly &b) const {
  if (a == b)
    return true;
  Poly difference = a - b;
  if (difference.isConstant())
    return false;
  return nonNegative(difference) && nonNegative(Poly(0) - difference);
}

std::optional<Prover::Extreme>
Prover::extreme(const Poly &p, bool lowest, const std::vector<Atom> &active, unsigned depth) const {
  if (!symbols.dependsOnIndex(p))
    return Extreme{{p}, true};
  if (depth > 8)
    return std::nullopt;
  if (std::optional<Remainder> remainder = takeRemainder(p))
    return remainderExtreme(*remainder, lowest, active, depth);
  // Group the terms by the one symbol of each that depends on an index.
  std::map<Atom, Poly> coefficients;
  Poly rest;
  for (auto &[m, c] : p.terms()) {
    std::optional<Atom> moving;
    Monomial others;
    for (Atom a : m) {
      bool moves = symbols.dependsOnIndex(Poly::atom(a));
      if (moves && moving)
        return std::nullopt;
      if (moves)
        moving = a;
      else
        others.push_back(a);
    }
    (moving ? coefficients[*moving] : rest).add(others, c);
  }
  Extreme result{{rest}, true};
  std::set<Atom> seen;
  for (auto &[a, coefficient] : coefficients) {
    for (Atom index : indicesOf(Poly::atom(a)))
      if (!seen.insert(index).second)
        result.exact = false;
    bool up = nonNegative(coefficient, active);
    if (!up && !nonNegative(Poly(0) - coefficient, active))
      return std::nullopt;
    bool low = up == lowest;
    const AtomInfo &info = symbols[a];
    std::vector<Poly> values;
    if (info.kind == AtomKind::Index) {
      values.push_back(low ? info.lo : info.hi - 1);
    } else {
      if (symbols.dependsOnIndex(info.den))
        return std::nullopt;
      Poly num = info.num, den = info.den;
      std::optional<Extreme> inner = extreme(num, low, active, depth + 1);
      if (!inner)
        return std::nullopt;
      result.exact &= inner->exact;
      for (const Poly &value : inner->values)
        values.push_back(symbols.quotient(value, den));
    }
    if (!addEach(result.values, coefficient, values))
      return std::nullopt;
  }
  return withoutIndices(std::move(result), lowest, active, depth);
}

std::optional<Prover::Extreme> Prover::withoutIndices(Extreme extremes, bool lowest,
                                                      const std::vector<Atom> &active,
                                                      unsigned depth) const {
  if (std::none_of(extremes.values.begin(), extremes.values.end(),
                   [&](const Poly &value) { return symbols.dependsOnIndex(value); }))
    return extremes;
  // The least of the greatest is not the greatest of the least.
  if (extremes.values.size() > 1)
    return std::nullopt;
  return extreme(extremes.values.front(), lowest, active, depth + 1);
}

std::set<Atom> Prover::indicesOf(const Poly &p) const {
  std::set<Atom> atoms;
  symbols.collect(p, atoms);
  std::erase_if(atoms, [&](Atom a) { return symbols[a].kind != AtomKind::Index; });
  return atoms;
}

/// Whether p takes all values from its constant, which is not negative, to its maximum: a sum of
/// different indices from 0 and of their quotients, or what remains of such a sum.
bool Prover::isConsecutive(const Poly &p) const {
  if (std::optional<Remainder> remainder = takeRemainder(p))
    return remainder->factor == 1 && remainder->num.constant() == 0 && remainder->rest == Poly(0);
  std::set<Atom> seen;
  return p.constant() >= 0 && std::all_of(p.terms().begin(), p.terms().end(), [&](auto &term) {
           if (term.first.empty())
             return true;
           if (term.first.size() != 1 || term.second != 1)
             return false;
           const AtomInfo &info = symbols[term.first.front()];
           for (Atom index : indicesOf(Poly::atom(term.first.front())))
             if (!seen.insert(index).second)
               return false;
           if (info.kind == AtomKind::Index)
             return info.lo == Poly(0) && !symbols.dependsOnIndex(info.hi);
           return info.kind == AtomKind::Quotient && info.den.isConstant() &&
                  isConsecutive(info.num);
         });
}

std::optional<Prover::Remainder> Prover::takeRemainder(const Poly &p) const {
  for (auto &[m, c] : p.terms()) {
    if (m.size() != 1 || symbols[m.front()].kind != AtomKind::Quotient)
      continue;
    const AtomInfo &info = symbols[m.front()];
    if (!info.den.isConstant() || c % info.den.constant() != 0 || !isConsecutive(info.num) ||
        !symbols.dependsOnIndex(info.num))
      continue;
    const std::int64_t den = info.den.constant(), factor = -(c / den);
    const Poly rest = p - Poly(factor) * info.num - Poly::atom(m.front()) * Poly(c);
    // What else moves with the same indices is not independent of the remainder.
    const std::set<Atom> divided = indicesOf(info.num), others = indicesOf(rest);
    if (!rest.overflowed() && std::none_of(divided.begin(), divided.end(),
                                           [&](Atom index) { return others.contains(index); }))
      return Remainder{factor, den, info.num, rest};
  }
  return std::nullopt;
}

std::optional<Prover::Extreme> Prover::remainderExtreme(const Remainder &remainder, bool lowest,
                                                        const std::vector<Atom> &active,
                                                        unsigned depth) const {
  std::optional<Extreme> result = extreme(remainder.rest, lowest, active, depth + 1);
  if (!result)
    return std::nullopt;
  std::vector<Poly> values;
  if ((remainder.factor > 0) == lowest) {
    values.push_back(0);
    result->exact &= remainder.num.constant() == 0;
  } else {
    // Consecutive values reach den - 1, or end before.
    std::optional<Extreme> greatest = extreme(remainder.num, false, active, depth + 1);
    if (!greatest)
      return std::nullopt;
    result->exact &= greatest->exact;
    values = std::move(greatest->values);
    values.push_back(remainder.den - 1);
  }
  if (!addEach(result->values, remainder.factor, values))
    return std::nullopt;
  return withoutIndices(std::move(*result), lowest, active, depth);
}

std::optional<std::vector<Poly>> Prover::minimum(const Poly &p,
                                                 const std::vector<Atom> &active) const {
  std::optional<Extreme> e = extreme(p, true, active, 0);
  if (!e || !e->exact ||
      std::any_of(e->values.begin(), e->values.end(), [](const Poly &v) { return v.overflowed(); }))
    return std::nullopt;
  return std::move(e->values);
}

} // namespace tk::bounds
