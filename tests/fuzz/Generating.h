//===- Generating.h - a program in the making ------------------*- C++ -*-===//
#ifndef TK_TESTS_FUZZ_GENERATING_H
#define TK_TESTS_FUZZ_GENERATING_H

#include "tests/fuzz/Generator.h"

#include <functional>
#include <optional>
#include <span>

namespace tk::fuzz {

/// SplitMix64 (Steele, Lea and Flood, 2014): the standard's distributions differ between libraries.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t x = state += 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }
  int below(int bound) { return bound > 0 ? static_cast<int>(next() % bound) : 0; }
  bool percent(int chance) { return below(100) < chance; }
  template <typename T, size_t n> const T &of(const T (&list)[n]) { return list[below(n)]; }
  template <typename T> const T &of(const std::vector<T> &list) {
    return list[below(static_cast<int>(list.size()))];
  }

private:
  uint64_t state;
};

/// The indices that an expression may use.
using Scope = std::vector<int>;

NodePtr make(Kind kind, Sort sort, std::string name = "");
NodePtr number(Sort sort, double value);
NodePtr call(Sort sort, std::string name, NodePtr a, NodePtr b = nullptr, NodePtr c = nullptr);
NodePtr binary(Sort sort, std::string name, NodePtr a, NodePtr b);
NodePtr indexNode(int index);

class Generating {
public:
  Generating(uint64_t seed, const GeneratorOptions &options) : random(seed), options(options) {}
  Program run();

private:
  // Statements (Generator.cpp).
  void makeSymbols();
  void makeStatement(bool isResult);
  /// A statement that overwrites one of the inputs (GenerateUpdate.cpp).
  void makeUpdate();
  /// A statement over these indices; the number of what it defines.
  int define(bool isResult, DType type, const Scope &scope, NodePtr value);
  Scope makeScope();
  NodePtr root(Sort sort, const Scope &scope);
  void limitCost();
  void makeSchedule();
  void makeConstraints();
  /// Chooses what the program's gradient is by.
  void makeVariables();

  // Products for tensor cores (GenerateProducts.cpp).
  void makeProducts();
  void makeProductSymbols(bool isChain);
  void makeProduct(DType type, DType result, bool isGated);
  void makeChain(DType type, DType result);
  NodePtr factor(DType type, Scope indices);
  NodePtr sumOfProducts(NodePtr a, NodePtr b, int over);
  NodePtr read(int tensor, const Scope &indices);
  NodePtr weights(NodePtr score, int row, int key);
  NodePtr epilogue(NodePtr value, const Scope &scope);

  // Forms that kernels of models have (GenerateForms.cpp, GenerateRows.cpp).
  void makeForms();
  void makeGatheredProduct();
  void makeWindowProduct();
  void makeScaledProduct();
  void makeGroups();
  void makeRowsAndColumns();
  void makeScans();
  void makePagedChain();
  void makeReducedProduct();
  // Names that are compared with themselves (GenerateNamed.cpp).
  void makeNamed();
  int makeNamedElements(const Extent &rows, const Extent &columns);
  int makeNamedExtremum(const char *name, int of, bool ofRows);
  void makePromise(int of);
  void makeRowPromise(int of);
  void promise(Promised kind, int count, DType type, int of,
               const std::function<NodePtr(NodePtr element, int row, int column)> &value);
  /// A size that vectors fill, or an odd one.
  int64_t formSize(int64_t most);
  DType formType();
  int newSymbol(const char *name, int64_t size);
  int formInput(DType type, std::vector<Extent> shape);
  /// An input that names places along an axis of the extent `of`, some of them perhaps outside.
  int tableOf(const Extent &of, std::vector<Extent> shape);
  NodePtr access(int tensor, std::vector<NodePtr> places);

  // Expressions of each sort (GenerateExpr.cpp).
  NodePtr expr(Sort sort, const Scope &scope, int depth);
  NodePtr floatExpr(const Scope &scope, int depth);
  NodePtr floatFunction(const Scope &scope, int depth);
  /// A float in which no rounding happened, so that a comparison has one answer.
  NodePtr exactFloat(const Scope &scope, int depth);
  NodePtr intExpr(const Scope &scope, int depth);
  NodePtr boolExpr(const Scope &scope, int depth);
  NodePtr reduction(Sort sort, const Scope &scope, int depth);
  NodePtr contraction(const Scope &scope, int depth);
  /// A sum of products of integers, narrow ones for the most part.
  NodePtr integerContraction(const Scope &scope);
  /// Scopes of the two factors of a contraction over a new index.
  std::pair<Scope, Scope> factorScopes(const Scope &scope, Node &reduction);
  NodePtr keeping(const Scope &scope, int depth);

  // Accesses (GenerateAccess.cpp).
  NodePtr load(Sort sort, const Scope &scope, bool inputsOnly = false);
  NodePtr loadOf(int tensor, const Scope &scope);
  int newInput(Sort sort, const Scope &scope);
  NodePtr indexFor(const Extent &extent, const Scope &scope, bool &inside);
  NodePtr indexValue(const Scope &scope, int depth);
  /// Pads the accesses that are outside since sizes were made smaller.
  void padOutside(Node &node);
  Extent anyExtent();
  int newIndex(const Extent &hi, int64_t lo = 0);
  /// Reads narrow integers without a cast, and stores some results narrow (GenerateIntegers.cpp).
  void narrowIntegers();
  // Other ways to write it (Rewrite.cpp).
  void rewrite(NodePtr &node);
  NodePtr splitRange(const Node &node);

  /// The smallest and largest value of an index expression at the chosen sizes.
  std::optional<std::pair<int64_t, int64_t>> rangeOf(const Node &node) const;

  Random random;
  GeneratorOptions options;
  Program program;
  int reductionsLeft = 0; ///< of the statement being made
};

} // namespace tk::fuzz

#endif // TK_TESTS_FUZZ_GENERATING_H
