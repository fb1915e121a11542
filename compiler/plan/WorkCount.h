//===- WorkCount.h - operations and bytes of a kernel ------------*- C++ -*-===//
#ifndef TK_COMPILER_PLAN_WORKCOUNT_H
#define TK_COMPILER_PLAN_WORKCOUNT_H

#include "dialects/tk/TkDialect.h"
#include "tk/plan.h"

namespace tk {

/// What a kernel must do at the least, from the program as written.
struct WorkCount {
  double flops = 0; ///< two for each term of a contraction; one for each other float operation
  double bytes = 0; ///< every parameter read once, every result written once
};

/// Counts for given dimensions and scalars (the variables of a signature's expressions).
WorkCount countWork(KernelOp kernel, const Signature &signature, std::span<const Scalar> variables);

} // namespace tk

#endif // TK_COMPILER_PLAN_WORKCOUNT_H
