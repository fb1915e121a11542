//===- ComputedRows.h - operands that threads compute -----------*- C++ -*-===//
#ifndef TK_PASSES_PLAN_COMPUTEDROWS_H
#define TK_PASSES_PLAN_COMPUTEDROWS_H

#include "passes/plan/StatementShape.h"

namespace tk {

/// The widest elements, in bits, along `rows` and the sum of what threads compute the operand over
/// `rows` from, which is multiplied in 16 bits; 0 if it is multiplied as it is stored.
///
/// An iteration of such a product waits for copies, computes the operand and waits for the matrix
/// unit. With few sums a thread, waits are most of it: 2048 products of 64 x 128 results and 256
/// terms with a factor for each term took 66 us on an H200 with one block a multiprocessor, and
/// 2048 triangles of 256 x 256 f32 times 256 x 64 118 us in slices of 64 terms, 109 of 128.
int64_t bitsOfComputedOperand(ComputeOp compute, Contraction &product, mlir::Value rows);

} // namespace tk

#endif // TK_PASSES_PLAN_COMPUTEDROWS_H
