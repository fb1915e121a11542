//===- Accumulate.h - accumulators of the reference -------------*- C++ -*-===//
//
// How a reduction takes one more term, and how a matrix unit sums a group of products.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_INTERP_ACCUMULATE_H
#define TK_COMPILER_INTERP_ACCUMULATE_H

#include "compiler/interp/Evaluation.h"

#include <vector>

namespace tk::interp::detail {

/// Products that a matrix unit adds to its accumulator in one step.
inline constexpr int64_t termsOfMatrixStep = 16;

/// Products of 8-bit factors that a matrix unit adds in one step (DeepSeek-AI, DeepSeek-V3
/// technical report, 2024, section 3.3.2).
inline constexpr size_t byteTermsOfStep = 32;

/// The accumulator of a reduction without terms.
Cell identity(ReduceKind kind, bool isFloat, Width width);

/// The nearest f32 towards zero.
double truncateToF32(double value);

/// `accumulator` and what a matrix unit sums the group's products of 8-bit floats to; with
/// `cutsAccumulator` it adds them to the accumulator itself, so that that is cut off, too.
double addByteGroup(double accumulator, std::vector<double> &group, bool cutsAccumulator);

/// Without a rounding, results are left as they are.
Cell combine(ReduceKind kind, bool isFloat, Width width, Rounding *rounding, Cell a, Cell b);

/// Whether a new term takes over as the extremum: strictly better, or the first NaN.
bool takesOver(ReduceKind kind, bool isFloat, Cell best, Cell term);

} // namespace tk::interp::detail

#endif // TK_COMPILER_INTERP_ACCUMULATE_H
