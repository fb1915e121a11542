// Integer reasoning over sizes: polynomials over dimensions, indices and floor divisions, and a
// prover of inequalities between them.

#ifndef TK_FRONTEND_BOUNDS_H
#define TK_FRONTEND_BOUNDS_H

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tk::bounds {

/// The number of a symbol; symbols live in a Symbols table.
using Atom = unsigned;
/// A product of symbols, sorted; empty is 1.
using Monomial = std::vector<Atom>;

/// A polynomial with integer coefficients, in canonical form: equal polynomials compare equal.
class Poly {
public:
  Poly() = default;
  Poly(std::int64_t constant) { add({}, constant); }
  static Poly atom(Atom a) {
    Poly p;
    p.add({a}, 1);
    return p;
  }

  /// Set when a coefficient left 64 bits; such a polynomial proves nothing.
  bool overflowed() const { return overflow; }
  bool isConstant() const;
  std::int64_t constant() const; ///< the constant term
  const std::map<Monomial, std::int64_t> &terms() const { return map; }
  void add(const Monomial &m, std::int64_t coefficient);

  Poly operator+(const Poly &o) const;
  Poly operator-(const Poly &o) const;
  Poly operator*(const Poly &o) const;
  bool operator==(const Poly &o) const { return map == o.map && overflow == o.overflow; }
  bool operator<(const Poly &o) const { return map < o.map; }

private:
  std::map<Monomial, std::int64_t> map;
  bool overflow = false;
};

enum class AtomKind : std::uint8_t { Dim, Scalar, Index, Quotient };

struct AtomInfo {
  AtomKind kind;
  std::string name;
  Poly lo, hi;   ///< of an Index: half open
  Poly num, den; ///< of a Quotient: floor(num / den)
};

class Symbols {
public:
  Atom dim(std::string name) { return make({AtomKind::Dim, std::move(name), {}, {}, {}, {}}); }
  Atom scalar(std::string name) {
    return make({AtomKind::Scalar, std::move(name), {}, {}, {}, {}});
  }
  Atom index(std::string name, Poly lo, Poly hi) {
    return make({AtomKind::Index, std::move(name), std::move(lo), std::move(hi), {}, {}});
  }
  /// floor(num / den) in canonical form: constant divisors divide what they can.
  Poly quotient(const Poly &num, const Poly &den);
  Poly remainder(const Poly &num, const Poly &den) { return num - den * quotient(num, den); }

  const AtomInfo &operator[](Atom a) const { return atoms[a]; }
  /// All symbols that a polynomial rests on, through quotients and index ranges.
  void collect(const Poly &p, std::set<Atom> &into) const;
  bool dependsOnIndex(const Poly &p) const;
  std::string text(const Poly &p) const;

private:
  Atom make(AtomInfo info) {
    atoms.push_back(std::move(info));
    return static_cast<Atom>(atoms.size() - 1);
  }
  std::vector<AtomInfo> atoms;
  std::map<std::pair<Poly, Poly>, Atom> quotients;
};

/// Proves p >= 0 for all sizes that satisfy the facts.
class Prover {
public:
  explicit Prover(Symbols &symbols) : symbols(symbols) {}

  void assume(Poly nonNegative) { facts.push_back(std::move(nonNegative)); }
  /// `active` indices are known to have a non-empty range.
  bool nonNegative(const Poly &p, const std::vector<Atom> &active = {}) const;
  bool equal(const Poly &a, const Poly &b) const;

  /// The minimum of p over all values of its indices, if each index moves p in one direction, or is
  /// divided with a remainder and occurs nowhere else, so that the minimum is attained: the
  /// greatest of these polynomials of sizes alone.
  std::optional<std::vector<Poly>> minimum(const Poly &p,
                                           const std::vector<Atom> &active = {}) const;

private:
  /// A minimum is the greatest of the values, a maximum the least.
  struct Extreme {
    std::vector<Poly> values;
    bool exact;
  };
  /// p is factor * (num mod den) + rest, and the remainder is at most num and at most `top`, and
  /// takes the lesser of the two.
  struct Remainder {
    std::int64_t factor, top;
    Poly num, rest;
    bool isConsecutive; ///< all values up to that are taken
  };
  std::set<Atom> indicesOf(const Poly &p) const;
  bool isConsecutive(const Poly &p) const;
  std::optional<Remainder> multiplesModulo(const Poly &num, std::int64_t den,
                                           const std::vector<Atom> &active) const;
  std::optional<Remainder> takeRemainder(const Poly &p, const std::vector<Atom> &active) const;
  /// Whether p never falls (true) or never rises (false) with an index.
  std::optional<bool> direction(const Poly &p, Atom index) const;
  Poly substitute(const Poly &p, Atom index, const Poly &value) const;
  std::optional<Extreme> remainderExtreme(const Remainder &remainder, bool lowest,
                                          const std::vector<Atom> &active, unsigned depth) const;
  std::optional<Extreme> extreme(const Poly &p, bool lowest, const std::vector<Atom> &active,
                                 unsigned depth) const;
  /// With the extremes of the indices on which a value still rests.
  std::optional<Extreme> withoutIndices(Extreme extremes, bool lowest,
                                        const std::vector<Atom> &active, unsigned depth) const;
  void systemFacts(const Poly &p, const std::vector<Atom> &active, std::vector<Poly> &out) const;

  Symbols &symbols;
  std::vector<Poly> facts;
};

} // namespace tk::bounds

#endif // TK_FRONTEND_BOUNDS_H
