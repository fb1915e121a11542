#include "frontend/Bounds.h"

#include <algorithm>

namespace tk::bounds {

void Poly::add(const Monomial &m, std::int64_t coefficient) {
  if (coefficient == 0)
    return;
  auto [it, isNew] = map.try_emplace(m, 0);
  if (__builtin_add_overflow(it->second, coefficient, &it->second))
    overflow = true;
  if (it->second == 0)
    map.erase(it);
}

bool Poly::isConstant() const {
  return !overflow && (map.empty() || (map.size() == 1 && map.begin()->first.empty()));
}

std::int64_t Poly::constant() const {
  auto it = map.find({});
  return it == map.end() ? 0 : it->second;
}

Poly Poly::operator+(const Poly &o) const {
  Poly r = *this;
  r.overflow |= o.overflow;
  for (auto &[m, c] : o.map)
    r.add(m, c);
  return r;
}

Poly Poly::operator-(const Poly &o) const { return *this + o * Poly(-1); }

Poly Poly::operator*(const Poly &o) const {
  Poly r;
  // A product of long sums proves nothing that is worth its time.
  constexpr std::size_t kMaxTerms = 4096;
  r.overflow = overflow || o.overflow || map.size() * o.map.size() > kMaxTerms;
  if (r.overflow)
    return r;
  for (auto &[m, c] : map)
    for (auto &[n, d] : o.map) {
      Monomial product;
      std::merge(m.begin(), m.end(), n.begin(), n.end(), std::back_inserter(product));
      std::int64_t coefficient;
      if (__builtin_mul_overflow(c, d, &coefficient))
        r.overflow = true;
      else
        r.add(product, coefficient);
    }
  return r;
}

static std::int64_t floorDiv(std::int64_t a, std::int64_t b) {
  std::int64_t q = a / b;
  return (a % b != 0 && (a % b < 0) != (b < 0)) ? q - 1 : q;
}

Poly Symbols::quotient(const Poly &num, const Poly &den) {
  if (den == Poly(1) || num.overflowed())
    return num;
  if (den.overflowed())
    return den;
  Poly whole, rest = num;
  if (den.isConstant() && den.constant() > 0) {
    std::int64_t d = den.constant();
    for (auto &[m, c] : num.terms()) {
      std::int64_t part = m.empty() ? floorDiv(c, d) : (c % d == 0 ? c / d : 0);
      whole.add(m, part);
      rest.add(m, -part * d);
    }
    if (rest.isConstant() && rest.constant() >= 0 && rest.constant() < d)
      return whole;
  }
  auto [it, isNew] = quotients.try_emplace({rest, den}, 0);
  if (isNew)
    it->second = make({AtomKind::Quotient, {}, {}, {}, rest, den});
  return whole + Poly::atom(it->second);
}

void Symbols::collect(const Poly &p, std::set<Atom> &into) const {
  for (auto &[m, c] : p.terms())
    for (Atom a : m)
      if (into.insert(a).second) {
        const AtomInfo &info = atoms[a];
        collect(info.lo, into);
        collect(info.hi, into);
        collect(info.num, into);
        collect(info.den, into);
      }
}

bool Symbols::dependsOnIndex(const Poly &p) const {
  for (auto &[m, c] : p.terms())
    for (Atom a : m)
      if (atoms[a].kind == AtomKind::Index ||
          (atoms[a].kind == AtomKind::Quotient &&
           (dependsOnIndex(atoms[a].num) || dependsOnIndex(atoms[a].den))))
        return true;
  return false;
}

std::string Symbols::text(const Poly &p) const {
  std::string out;
  auto term = [&](const Monomial &m, std::int64_t c) {
    bool negative = c < 0;
    out += out.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    std::uint64_t size = negative ? 0 - static_cast<std::uint64_t>(c) : c;
    if (size != 1 || m.empty())
      out += std::to_string(size) + (m.empty() ? "" : " * ");
    for (std::size_t i = 0; i < m.size(); ++i) {
      const AtomInfo &info = atoms[m[i]];
      auto operand = [&](const Poly &q) {
        std::string s = text(q);
        return s.find(' ') == std::string::npos ? s : "(" + s + ")";
      };
      out += i ? " * " : "";
      std::string s = info.kind == AtomKind::Quotient
                          ? operand(info.num) + " / " + operand(info.den)
                          : info.name;
      out += info.kind == AtomKind::Quotient && (m.size() > 1 || size != 1) ? "(" + s + ")" : s;
    }
  };
  for (auto &[m, c] : p.terms())
    if (!m.empty())
      term(m, c);
  if (p.constant() != 0 || out.empty())
    term({}, p.constant());
  return out == "" ? "0" : out;
}

} // namespace tk::bounds
