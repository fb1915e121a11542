//===- LeastCost.h - the least time of a program ----------------*- C++ -*-===//
//
// The roofline of a program as it is written, whatever its plan is: each element that the program
// reads comes from memory once, each result goes there once, and each value that a statement, a
// reduction or a scan computes is computed once for each combination of the indices that it
// depends on. The longest of the times that memory and the units take for that, and one launch, are
// the program's least time.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_LEASTCOST_H
#define TK_COMPILER_LEASTCOST_H

#include "dialects/tk/TkDialect.h"
#include "passes/machine/CostModel.h"
#include "tk/plan.h"

namespace tk {

struct LeastCost {
  double bytes = 0;                                 ///< read and written once
  std::array<double, numMatrixTypes> products = {}; ///< multiply-adds of the matrix unit
  double instructions = 0, doubles = 0, special = 0;

  double nanoseconds = 0;
  Bound bound = Bound::Memory;
};

/// The least cost of a kernel that no pass has changed, for given dimensions and scalars (the
/// variables of a signature's expressions).
LeastCost leastCost(KernelOp kernel, const Signature &signature, std::span<const Scalar> variables,
                    const Machine &machine);

} // namespace tk

#endif // TK_COMPILER_LEASTCOST_H
