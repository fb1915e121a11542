// The extremes of a polynomial over the values of its indices.
//
// 1. An index with which the polynomial never falls, or never rises, takes one end of its range:
//    what it adds from one value to the next follows from its factors, in sums and in quotients.
// 2. What remains of a division by a constant takes all values from 0 to the divisor less 1, or to
//    the greatest dividend, where the dividends are consecutive; of multiples, see multiplesModulo.
// 3. All else is a sum of terms that move with one index each: it is extreme where they are. Where
//    an index occurs in several of them that is a bound which may not be attained.

#include "frontend/Bounds.h"

#include <algorithm>
#include <numeric>

namespace tk::bounds {

namespace {
constexpr std::size_t kMaxExtremes = 8;

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

} // namespace

std::optional<Prover::Extreme>
Prover::extreme(const Poly &p, bool lowest, const std::vector<Atom> &active, unsigned depth) const {
  if (!symbols.dependsOnIndex(p))
    return Extreme{{p}, true};
  if (depth > 8)
    return std::nullopt;
  for (Atom index : indicesOf(p))
    if (std::optional<bool> rises = direction(p, index)) {
      const AtomInfo &info = symbols[index];
      const Poly end = *rises == lowest ? info.lo : info.hi - 1;
      return extreme(substitute(p, index, end), lowest, active, depth + 1);
    }
  if (std::optional<Remainder> remainder = takeRemainder(p, active))
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

/// What is floor(value / den) rounded up instead.
static std::int64_t ceilDiv(std::int64_t value, std::int64_t den) {
  return value / den + (value % den > 0 ? 1 : 0);
}
static std::int64_t floorDiv(std::int64_t value, std::int64_t den) { return -ceilDiv(-value, den); }

/// From one value of the index to the next a quotient floor((a * i + …) / d) grows by a / d,
/// rounded down or up; nothing where the index occurs in another way, or only once.
std::optional<bool> Prover::direction(const Poly &p, Atom index) const {
  // Far from the ends of 64 bits, so that no sum of these leaves them.
  constexpr std::int64_t limit = std::int64_t{1} << 30;
  auto isSmall = [](std::int64_t value) { return -limit < value && value < limit; };
  std::int64_t least = 0, greatest = 0;
  unsigned occurrences = 0;
  for (auto &[m, c] : p.terms()) {
    Poly product;
    product.add(m, 1);
    if (!indicesOf(product).contains(index))
      continue;
    if (m.size() != 1 || !isSmall(c) || ++occurrences > 8)
      return std::nullopt;
    std::int64_t down = 1, up = 1;
    if (m.front() != index) {
      const AtomInfo &info = symbols[m.front()];
      if (info.kind != AtomKind::Quotient || !info.den.isConstant() || info.den.constant() <= 0)
        return std::nullopt;
      std::optional<std::int64_t> factor;
      for (auto &[n, a] : info.num.terms())
        if (n == Monomial{index})
          factor = a;
      if (!factor || !isSmall(*factor) ||
          indicesOf(info.num - Poly(*factor) * Poly::atom(index)).contains(index))
        return std::nullopt;
      down = floorDiv(*factor, info.den.constant());
      up = ceilDiv(*factor, info.den.constant());
    }
    least += std::min(c * down, c * up);
    greatest += std::max(c * down, c * up);
  }
  if (occurrences < 2 || (least < 0 && greatest > 0))
    return std::nullopt;
  return least >= 0;
}

Poly Prover::substitute(const Poly &p, Atom index, const Poly &value) const {
  Poly result;
  for (auto &[m, c] : p.terms()) {
    Poly term(c);
    for (Atom a : m) {
      const AtomInfo info = symbols[a]; // a copy: new quotients may move the table
      if (a == index)
        term = term * value;
      else if (info.kind == AtomKind::Quotient && indicesOf(Poly::atom(a)).contains(index))
        term = term * symbols.quotient(substitute(info.num, index, value),
                                       substitute(info.den, index, value));
      else
        term = term * Poly::atom(a);
    }
    result = result + term;
  }
  return result;
}

/// Whether p takes all values from its constant, which is not negative, to its maximum: a sum of
/// different indices from 0 and of their quotients, or what remains of such a sum.
bool Prover::isConsecutive(const Poly &p) const {
  if (std::optional<Remainder> remainder = takeRemainder(p, {}))
    return remainder->isConsecutive && remainder->factor == 1 && remainder->num.constant() == 0 &&
           remainder->rest == Poly(0);
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

/// The remainders of 0, a, 2a, … modulo d are multiples of g = gcd(a, d), hence at most d - g. They
/// rise to the last multiple of a below d before the first falls; where that is d - g the greatest
/// is that or the last multiple there is. So it is where all residues are known to be taken.
std::optional<Prover::Remainder> Prover::multiplesModulo(const Poly &num, std::int64_t den,
                                                         const std::vector<Atom> &active) const {
  if (num.terms().size() != 1 || num.terms().begin()->first.size() != 1)
    return std::nullopt;
  const auto &[monomial, written] = *num.terms().begin();
  const AtomInfo &info = symbols[monomial.front()];
  const std::int64_t factor = (written % den + den) % den;
  if (info.kind != AtomKind::Index || info.lo != Poly(0) || symbols.dependsOnIndex(info.hi) ||
      factor == 0)
    return std::nullopt;
  const std::int64_t common = std::gcd(factor, den), top = den - common;
  if ((den - 1) / factor * factor != top && !nonNegative(info.hi - den / common, active))
    return std::nullopt;
  return Remainder{1, top, Poly(factor) * Poly::atom(monomial.front()), {}, false};
}

std::optional<Prover::Remainder> Prover::takeRemainder(const Poly &p,
                                                       const std::vector<Atom> &active) const {
  for (auto &[m, c] : p.terms()) {
    if (m.size() != 1 || symbols[m.front()].kind != AtomKind::Quotient)
      continue;
    const AtomInfo &info = symbols[m.front()];
    if (!info.den.isConstant() || c % info.den.constant() != 0 || !symbols.dependsOnIndex(info.num))
      continue;
    const std::int64_t den = info.den.constant(), factor = -(c / den);
    const Poly rest = p - Poly(factor) * info.num - Poly::atom(m.front()) * Poly(c);
    // What else moves with the same indices is not independent of the remainder.
    const std::set<Atom> divided = indicesOf(info.num), others = indicesOf(rest);
    if (rest.overflowed() || std::any_of(divided.begin(), divided.end(),
                                         [&](Atom index) { return others.contains(index); }))
      continue;
    if (isConsecutive(info.num))
      return Remainder{factor, den - 1, info.num, rest, true};
    if (std::optional<Remainder> multiples = multiplesModulo(info.num, den, active))
      return Remainder{factor, multiples->top, multiples->num, rest, false};
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
    std::optional<Extreme> greatest = extreme(remainder.num, false, active, depth + 1);
    if (!greatest)
      return std::nullopt;
    result->exact &= greatest->exact;
    values = std::move(greatest->values);
    values.push_back(remainder.top);
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
