//===- Evaluate.h - what a generated program means -------------*- C++ -*-===//
//
// Evaluates the generator's own tree in f64. It knows nothing of the frontend or of MLIR, so that
// it can tell whether the text was understood.
//
//===----------------------------------------------------------------------===//
#ifndef TK_TESTS_FUZZ_EVALUATE_H
#define TK_TESTS_FUZZ_EVALUATE_H

#include "tests/fuzz/Program.h"
#include "tk/tensor.h"

#include <map>
#include <unordered_map>

namespace tk::fuzz {

class Evaluator {
public:
  explicit Evaluator(const Program &program);
  /// A dense tensor; read at once.
  void setInput(const std::string &name, const TensorView &view);
  int64_t count(const std::string &name) const;
  /// The element at a row-major position of a result, or of an inout parameter at the end.
  double element(const std::string &name, int64_t position);

private:
  /// Whether a value is made of literals alone. Arithmetic on such is done in f32 by whoever does
  /// it, so that it is rounded here as well.
  bool isConstant(const Node &node);
  double elementOf(int tensor, int64_t position);
  double valueOf(const Node &node);
  double unrounded(const Node &node);
  const Statement *definitionOf(int tensor) const;
  double loadValue(const Node &node);
  double callValue(const Node &node);
  double binaryValue(const Node &node);
  double reduceValue(const Node &node);
  /// What a value is asked for: whether a score is the -inf branch of an `if`, or a weight one of
  /// such a score.
  enum class As { Score, Weight };
  bool isPresent(const Node &node, As as);
  bool isPresentElement(const Node &load, As as);
  bool isExponential(const Node &node);
  double keepValue(const Node &node);
  /// The input of that name, or what a statement defines under it.
  int find(const std::string &name, bool isInput) const;

  const Program &program;
  std::vector<std::vector<double>> inputs;
  std::vector<std::unordered_map<int64_t, double>> memo;
  std::unordered_map<const Node *, bool> constants; ///< what isConstant has said
  std::vector<int64_t> frame;                       ///< the values of the indices
};

} // namespace tk::fuzz

#endif // TK_TESTS_FUZZ_EVALUATE_H
