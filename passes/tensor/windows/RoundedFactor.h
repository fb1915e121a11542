//===- RoundedFactor.h - factors that are rounded where they are read -*- C++ -*-===//
//
// A gradient multiplies a local in f32, rounded to 16 bits, by a tensor in 16 bits:
//
//   d_w[o, c, r] = sum[n, i](round(d_s[n, o, i]) * x[n, c, i + r])
//
// A flat product has factors that are loaded as they are. The rounded factor is then stored.
// A copy of a tensor in 16 bits needs no rounding: the product loads that tensor.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_WINDOWS_ROUNDEDFACTOR_H
#define TK_PASSES_TENSOR_WINDOWS_ROUNDEDFACTOR_H

#include "dialects/tk/TkDialect.h"

#include <optional>

namespace tk {

class RoundedFactor {
public:
  /// Stores the factor of `reduce` that is loaded in f32 and rounded to 16 bits, if there is one.
  static std::optional<RoundedFactor> of(ComputeOp compute, ReduceOp reduce);

  /// Keeps the stored factor where a product reads it: the product's plan takes it to be stored.
  /// An operand that is stored in another order may round what it reads.
  void keep();

  /// Rounds the factor where it is read, as it was.
  void undo();

private:
  ComputeOp copy; ///< null if the tensor that is rounded is a copy of one in 16 bits
  mlir::Operation *extension = nullptr; ///< of the rounded factor, to f32
  mlir::Value before;
};

} // namespace tk

#endif // TK_PASSES_TENSOR_WINDOWS_ROUNDEDFACTOR_H
