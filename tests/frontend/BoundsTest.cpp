// What the prover says of random index expressions, against all values of their indices.
#include "frontend/Bounds.h"
#include "tests/unit/catch.h"

#include <algorithm>
#include <limits>
#include <random>

using namespace tk::bounds;

namespace {

int64_t floorOf(int64_t num, int64_t den) { return num / den - (num % den < 0 ? 1 : 0); }

/// Sizes and index values by atom.
using Values = std::map<Atom, int64_t>;

int64_t valueOf(const Symbols &symbols, const Poly &p, const Values &values) {
  int64_t sum = 0;
  for (auto &[monomial, factor] : p.terms()) {
    int64_t product = factor;
    for (Atom a : monomial) {
      const AtomInfo &info = symbols[a];
      product *= info.kind == AtomKind::Quotient ? floorOf(valueOf(symbols, info.num, values),
                                                           valueOf(symbols, info.den, values))
                                                 : values.at(a);
    }
    sum += product;
  }
  return sum;
}

/// Expressions of indices as in programs: sums of their multiples, quotients and remainders.
class Expressions {
public:
  Expressions(Symbols &symbols, std::vector<Poly> leaves, unsigned seed)
      : symbols(symbols), leaves(std::move(leaves)), engine(seed) {}

  int64_t below(int64_t bound) {
    return static_cast<int64_t>(engine() % static_cast<unsigned>(bound));
  }
  Poly make(int depth) {
    if (depth == 0 || below(4) == 0)
      return leaves[static_cast<size_t>(below(static_cast<int64_t>(leaves.size())))];
    switch (below(6)) {
    case 0:
      return make(depth - 1) + make(depth - 1);
    case 1:
      return make(depth - 1) - make(depth - 1);
    case 2:
      return make(depth - 1) * Poly(1 + below(5));
    case 3:
      return symbols.quotient(make(depth - 1), 2 + below(5));
    case 4:
      return symbols.remainder(make(depth - 1), 2 + below(7));
    default:
      return make(depth - 1) + Poly(below(5) - 2);
    }
  }

private:
  Symbols &symbols;
  std::vector<Poly> leaves;
  std::mt19937 engine;
};

} // namespace

TEST_CASE("a minimum is that of all values of the indices", "[bounds]") {
  unsigned found = 0;
  for (unsigned seed = 1; seed <= 4000; ++seed) {
    Symbols symbols;
    Prover prover(symbols);
    const Atom m = symbols.dim("M"), n = symbols.dim("N");
    const Atom i = symbols.index("i", 0, Poly::atom(m));
    const Atom j = symbols.index("j", 0, seed % 3 ? Poly::atom(n) : Poly(7));
    const Atom k = symbols.index("k", 2, Poly::atom(m) + 3);
    Expressions expressions(symbols, {Poly::atom(i), Poly::atom(j), Poly::atom(k), Poly::atom(i)},
                            seed);
    const Poly p = expressions.make(4);
    const std::optional<std::vector<Poly>> minimum = prover.minimum(p, {i, j, k});
    const bool isProved = prover.nonNegative(p, {i, j, k});
    if (minimum && symbols.dependsOnIndex(p))
      ++found;
    INFO("seed " << seed << ": " << symbols.text(p));
    for (auto [sizeM, sizeN] : {std::pair<int64_t, int64_t>{1, 1}, {2, 9}, {5, 4}, {13, 17}}) {
      Values values = {{m, sizeM}, {n, sizeN}};
      int64_t least = std::numeric_limits<int64_t>::max();
      const int64_t endOfJ = seed % 3 ? sizeN : 7;
      for (values[i] = 0; values[i] < sizeM; ++values[i])
        for (values[j] = 0; values[j] < endOfJ; ++values[j])
          for (values[k] = 2; values[k] < sizeM + 3; ++values[k])
            least = std::min(least, valueOf(symbols, p, values));
      if (isProved)
        CHECK(least >= 0);
      if (!minimum)
        continue;
      int64_t claimed = std::numeric_limits<int64_t>::min();
      for (const Poly &value : *minimum)
        claimed = std::max(claimed, valueOf(symbols, value, values));
      INFO("M = " << sizeM << ", N = " << sizeN);
      CHECK(claimed == least);
    }
  }
  CHECK(found > 1000); // else nothing was tested
}

TEST_CASE("constraints are multiplied by scalars that are known to be positive", "[bounds]") {
  Symbols symbols;
  const Poly r = Poly::atom(symbols.scalar("R")), channels = Poly::atom(symbols.dim("C"));
  const Poly c = Poly::atom(symbols.index("c", 0, channels));
  const Poly i = Poly::atom(symbols.index("i", 0, Poly::atom(symbols.dim("H"))));
  const Poly two = c * r + symbols.remainder(i, r);
  const Poly three = two * r + symbols.remainder(symbols.quotient(i, r), r);
  Prover unknown(symbols);
  CHECK_FALSE(unknown.nonNegative(channels * r - 1 - two));
  Prover prover(symbols);
  prover.assume(r - 1);
  CHECK(prover.nonNegative(two));
  CHECK(prover.nonNegative(channels * r - 1 - two));
  CHECK_FALSE(prover.nonNegative(channels * r - 2 - two));
  CHECK(prover.nonNegative(three));
  CHECK(prover.nonNegative(channels * r * r - 1 - three));
  CHECK_FALSE(prover.nonNegative(channels * r * r - 2 - three));
}
