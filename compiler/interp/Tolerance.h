//===- Tolerance.h - is a result right? --------------------------*- C++ -*-===//
//
// Two yardsticks, both must hold (docs/reference/numerics.md):
//   1. the largest error against f64 is at most twice that of a naive program in the same types,
//      plus two units in the last place of the output type at the tensor's scale;
//   2. every element is within rtol and atol of f64, and the normalised mean square error is small,
//      by the coarsest type to which the kernel rounds anything that the result depends on.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_INTERP_TOLERANCE_H
#define TK_COMPILER_INTERP_TOLERANCE_H

#include "compiler/interp/Interpreter.h"

#include <functional>
#include <optional>
#include <string>

namespace tk::interp {

/// How far a result is from the reference.
struct Comparison {
  bool ok = true;
  int64_t compared = 0;     ///< elements
  double maxError = 0;      ///< largest |ours - f64|
  double naiveError = 0;    ///< largest |naive in the same types - f64|
  double relativeError = 0; ///< root of the normalised mean square error
  std::string reason;       ///< where it fails: what was expected and got, at which element
};

struct ComparisonOptions {
  /// At most this many elements are compared, spread evenly and pseudo-randomly; 0 means all.
  int64_t maxElements = 1 << 16;
  double factor = 2; ///< of yardstick 1; 3 for gradients
  /// The result is exact but for roundings that the program names: it is what the naive program
  /// says, bit for bit. See isStoredExactly.
  bool isExact = false;
  bool inexactProducts = false; ///< what is compared may depend on them: see multipliesInexactly
  /// Called for each element with how many came before it, and of how many.
  std::function<void(int64_t done, int64_t total)> onProgress;
};

/// Compares a dense result on the CPU with what the two references say about `result`.
Comparison compare(const TensorView &got, unsigned result, Reference &exact, Reference &naive,
                   DType coarsest, int64_t reductionLength, const ComparisonOptions &options = {});

/// Has the references compute the elements that compare() with this limit looks at.
void evaluateAhead(unsigned result, Reference &exact, Reference &naive, int64_t maxElements);

/// Where two results of the same program differ.
struct Difference {
  double largest = 0;           ///< of elements that are both finite
  std::optional<int64_t> first; ///< row-major position of the first beyond the tolerance
  double a = 0, b = 0;          ///< the elements there
};

/// Compares dense results on the CPU of two targets: each may be off by the tolerance.
Difference differ(const TensorView &a, const TensorView &b, DType coarsest, int64_t reductionLength,
                  bool inexactProducts);

/// Does the kernel ask for products in tf32, or for 8-bit floats' that are summed in fewer bits?
bool multipliesInexactly(KernelOp kernel);

/// Is the result exact, but for roundings to types that the program names? One that is rounded
/// twice then differs from the naive program's.
bool isStoredExactly(KernelOp kernel, unsigned result);

/// The coarsest floating-point type that the kernel stores or rounds to, no finer than `output`.
DType coarsestRounding(KernelOp kernel, DType output);

} // namespace tk::interp

#endif // TK_COMPILER_INTERP_TOLERANCE_H
