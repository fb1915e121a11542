// How an inequality over sizes is proved.
//
// 1. Collect what is known of the symbols involved: dimensions are >= 0, an index lies in its
// range,
//    a quotient q = floor(n / d) satisfies 0 <= n - d * q <= d - 1, and the `where` constraints.
// 2. Add the negation of the goal.
// 3. Take each monomial for a variable of its own. Where that leaves a contradiction in the
//    rationals, the goal holds.
// 4. Otherwise multiply the constraints by non-negative symbols and try again: this is what
//    relates `h / (H / G)` to G given H % G == 0. Of a product of three symbols, `(c * R + r) * R`,
//    multiply them by two.

#include "frontend/Bounds.h"

#include "mlir/Analysis/Presburger/Simplex.h"

#include <algorithm>

namespace tk::bounds {

namespace {
constexpr std::size_t kMaxConstraints = 400;
constexpr std::size_t kMaxColumns = 200;

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
  auto isNeverNegative = [&](Atom a) {
    const AtomInfo &info = symbols[a];
    if (info.kind == AtomKind::Dim ||
        (info.kind == AtomKind::Index && info.lo.isConstant() && info.lo.constant() >= 0))
      return true;
    if (info.kind == AtomKind::Index)
      return false;
    std::vector<Poly> negative{Poly(-1) - Poly::atom(a)};
    systemFacts(Poly::atom(a), {}, negative);
    auto isOfDims = [&](const auto &term) {
      return term.second > 0 && std::all_of(term.first.begin(), term.first.end(), [&](Atom b) {
               return symbols[b].kind == AtomKind::Dim;
             });
    };
    return contradictory(negative) ||
           (info.kind == AtomKind::Quotient &&
            std::all_of(info.num.terms().begin(), info.num.terms().end(), isOfDims));
  };
  const std::vector<Poly> base = system;
  std::vector<Poly> sure;
  for (Atom a : multipliers)
    if (isNeverNegative(a))
      sure.push_back(Poly::atom(a));
  auto multiply = [&](const Poly &factor, std::size_t most) {
    for (const Poly &c : base)
      if (degree(c) <= most && system.size() < kMaxConstraints)
        system.push_back(c * factor);
  };
  for (const Poly &x : sure) {
    system.push_back(x);
    multiply(x, 2);
  }
  if (contradictory(system))
    return true;
  if (degree(p) < 3)
    return false;
  for (const Poly &x : sure)
    for (const Poly &y : sure)
      if (!(y < x))
        multiply(x * y, 1);
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

} // namespace tk::bounds
