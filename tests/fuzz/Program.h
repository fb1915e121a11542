//===- Program.h - a generated program -------------------------*- C++ -*-===//
//
// A well-typed program as a tree that can be printed as .tk, evaluated (Evaluate.h) and cut down
// (Shrink.h). Indices, tensors and dimensions are named by their position.
//
//===----------------------------------------------------------------------===//
#ifndef TK_TESTS_FUZZ_PROGRAM_H
#define TK_TESTS_FUZZ_PROGRAM_H

#include "tk/dtype.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tk::fuzz {

/// (mul * symbol + add) / div, or the literal `add` where there is no symbol.
struct Extent {
  int symbol = -1;
  int mul = 1, add = 0, div = 1;
  bool operator==(const Extent &) const = default;
};

/// The kind of value that an expression has; types proper are those of the tensors.
enum class Sort : uint8_t { Float, Int, Bool, Index };

enum class Kind : uint8_t {
  Number, ///< `number`; printed with a point where the sort is Float
  Truth,  ///< true or false
  Index,  ///< the index `ref` as a value
  Dim,    ///< the dimension `ref` as a value
  Scalar, ///< the scalar parameter `ref`
  Load,   ///< tensor `ref` at the kids; with `padded`, the last kid is the padding
  Call,   ///< `name`(kids), casts included
  Unary,  ///< `name` kid
  Binary, ///< kid `name` kid
  If,
  Reduce, ///< `name`[binders](kid)
  Keep,   ///< `name`[binder](kid): softmax and scans
};

struct Node;
using NodePtr = std::unique_ptr<Node>;

struct Node {
  Kind kind;
  Sort sort;
  std::string name;
  double number = 0;
  int ref = 0;
  bool padded = false;
  std::vector<int> binders;
  std::string modifier; ///< of a Reduce: exact, tf32, fast, or none
  std::vector<NodePtr> kids;

  Node(Kind kind, Sort sort) : kind(kind), sort(sort) {}
  NodePtr clone() const;
};

/// An index: from `lo` to before `hi`. Its range is written out where `spelled` says so or where no
/// access implies it.
struct IndexVar {
  int64_t lo = 0;
  Extent hi;
  bool spelled = false;
};

enum class Role : uint8_t {
  Input,
  Local,
  Result,
  Updated, ///< what an inout parameter holds after the statement that overwrites it
};

struct Tensor {
  std::string name;
  DType dtype = DType::f32;
  bool declared = true; ///< a local whose type is written
  std::vector<Extent> shape;
  Role role = Role::Input;
  int64_t low = 0, high = 0; ///< of integer-valued inputs; normal numbers where both are 0
  bool strided = false;      ///< an input declared so
  int gap = 0;               ///< elements between the rows of such an input
  int updates = -1;          ///< of what is Updated: the input, which has the same name
  bool hasNaN = false;       ///< an input of floats some of which are NaN
  bool isVariable = false;   ///< an input that the program's gradient is by
  Sort sort() const;
};

struct Statement {
  int tensor; ///< what it defines
  std::vector<int> indices;
  NodePtr value;
};

/// What a result holds exactly, on finite inputs.
enum class Promised : uint8_t {
  Zero,      ///< 0 everywhere
  One,       ///< 1 everywhere
  AtMostOne, ///< from 0 to 1
  AtLeast,   ///< `count` or more
  SomeInRow, ///< 0 or 1, and `count` times 1 at least along the last axis
};

struct Promise {
  int tensor; ///< a result
  Promised kind = Promised::Zero;
  int count = 0;
};

struct Symbol {
  std::string name;
  int64_t size = 1;
};

struct Program {
  std::string name = "fuzz"; ///< of its kernel
  std::vector<Symbol> symbols;
  std::vector<IndexVar> indices;
  std::vector<Tensor> tensors;
  std::vector<double> scalars; ///< f32 parameters a0, a1, … and their values
  std::vector<Statement> statements;
  uint64_t seed = 0;                            ///< of the inputs
  std::string disabledPasses;                   ///< what the run leaves out
  std::vector<std::string> schedule;            ///< entries of a schedule block
  std::vector<std::pair<int, int>> constraints; ///< symbols of which the first is not less
  std::vector<Promise> promises;                ///< of results, which nothing else is asked of
  std::vector<int> variableScalars;             ///< that its gradient is by, as Tensor::isVariable

  Program clone() const;
  int64_t extentOf(const Extent &extent) const;
  int64_t countOf(const Tensor &tensor) const;
  /// What an input holds after its statement, if one overwrites it.
  std::optional<int> updateOf(int input) const;
  /// Scalar operations that a naive evaluation takes.
  double cost() const;

  /// What the gradient is by, as far as it is used; empty where there is no gradient to derive.
  std::vector<std::string> variables() const;
  bool hasGradient() const { return !variables().empty(); }

  std::string text() const;
  /// Without the `grad` item.
  std::string kernelText() const;
  std::string extentText(const Extent &extent) const;
  /// The options of `tkc run` that fix sizes and inputs.
  std::vector<std::string> dimOptions() const, inputOptions() const, scalarOptions() const,
      gapOptions() const, axesOptions() const;
  /// A shell command that runs it again.
  std::string command(const std::string &file, const std::string &target) const;
};

/// Which of a kind of thing the program still uses.
struct Uses {
  std::vector<bool> tensors, scalars, symbols;
};
Uses usesOf(const Program &program);

} // namespace tk::fuzz

#endif // TK_TESTS_FUZZ_PROGRAM_H
