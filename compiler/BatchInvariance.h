//===- BatchInvariance.h - code whose bits do not depend on sizes -*- C++ -*-===//
//
// A kernel with `@batch_invariant` is compiled for the sizes of a call like any other one. Its code
// is accepted if it adds in the order of the reference plan: the plan that is made when nothing is
// known of the sizes of dimensions that results are not reduced over. orderOf() describes the
// order.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_BATCHINVARIANCE_H
#define TK_COMPILER_BATCHINVARIANCE_H

#include "dialects/tk/TkDialect.h"
#include "tk/plan.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringSet.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tk {

/// What a plan may rest on, of a dimension of such a kernel.
enum class SizeUse : uint8_t {
  Batch, ///< no result is reduced over it: the order rests on nothing of the size
  Cut,   ///< reductions run over a part of it that differs by element: likewise
  Whole, ///< reductions run over all of it: the order may rest on the size
};

std::vector<SizeUse> findSizeUses(KernelOp kernel);

/// The facts of the reference plan.
Facts referenceFacts(const Facts &facts, llvm::ArrayRef<SizeUse> uses);
/// Facts to plan for, those with most knowledge first. All of them hold at the sizes of `facts`.
std::vector<Facts> invariantFacts(const Facts &facts, llvm::ArrayRef<SizeUse> uses);

/// Leaves out the steps that cut a reduction by the number of results, and those whose arithmetic
/// for one row rests on other rows.
void leaveOutSizedSteps(llvm::StringSet<> &disabled);

/// The order of the reductions of a kernel after the stage `fused`, and of its functions after the
/// stage `gpu`. Equal texts mean that each element of a result has the same bits.
std::string orderOfFused(mlir::ModuleOp fused);
std::string orderOfFunctions(mlir::ModuleOp lowered);

} // namespace tk

#endif // TK_COMPILER_BATCHINVARIANCE_H
