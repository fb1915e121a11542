//===- ComparedSums.cpp - sums that are compared for equality -------------===//
//
// Where several terms are the least, or the greatest, a gradient shares them out: it compares each
// term with the extremum. If terms are sums, both have to be the same sums: computed where the
// extremum is and once more where it is compared, in another order of their terms, they differ in
// the last bits, and no term is the extremum.
//
//   %s = tk.compute ["i", "j"] {tk.reduce [sum] ...}
//   %m = tk.compute ["i"] {tk.reduce [min] ["j"] {s[i, j]}}
//   %d = tk.compute ["i", "j"] {s[i, j] == m[i] ? ...}           %s is stored
//
// What follows from a producer is followed through elementwise operations, extrema, and statements
// that store it.
//
//===----------------------------------------------------------------------===//
#include "passes/fusion/FuseProducers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tk;

/// Do floats that `producer` is computed from add up or multiply many?
static bool isRoundedInOrder(OpResult producer) {
  auto compute = cast<ComputeOp>(producer.getOwner());
  return compute
      .walk([](ReduceOp reduce) {
        for (unsigned n = 0; n < reduce.getNumAccumulators(); ++n)
          if (isa<FloatType>(reduce.getResult(n).getType()) &&
              (reduce.getKind(n) == ReduceKind::Sum || reduce.getKind(n) == ReduceKind::Prod))
            return WalkResult::interrupt();
        return WalkResult::advance();
      })
      .wasInterrupted();
}

static bool isEquality(arith::CmpFOp comparison) {
  using Predicate = arith::CmpFPredicate;
  return llvm::is_contained({Predicate::OEQ, Predicate::UEQ, Predicate::ONE, Predicate::UNE},
                            comparison.getPredicate());
}

/// Adds the elements that are loaded of `tensor`.
static void followTensor(Value tensor, llvm::SetVector<Value> &values) {
  for (Operation *user : tensor.getUsers())
    if (auto load = dyn_cast<LoadOp>(user); load && load.getTensor() == tensor)
      values.insert(load.getResult());
}

/// Adds what follows from `use` of a value.
static void followUse(OpOperand &use, llvm::SetVector<Value> &values) {
  Operation *user = use.getOwner(), *around = user->getParentOp();
  if (isa<YieldOp>(user)) {
    if (auto compute = dyn_cast<ComputeOp>(around))
      followTensor(compute->getResult(use.getOperandNumber()), values);
    auto reduce = dyn_cast<ReduceOp>(around);
    if (reduce && user == reduce.getYield().getOperation() &&
        llvm::is_contained({ReduceKind::Max, ReduceKind::Min},
                           reduce.getKind(use.getOperandNumber())))
      values.insert(reduce.getResult(use.getOperandNumber()));
  } else if (user->hasTrait<OpTrait::Elementwise>()) {
    values.insert_range(user->getResults());
  }
}

bool tk::isComparedWithItself(OpResult producer) {
  if (!isRoundedInOrder(producer))
    return false;
  llvm::SetVector<Value> values;
  followTensor(producer, values);
  // More are added as these are gone through.
  for (size_t n = 0; n < values.size(); ++n)
    for (OpOperand &use : values[n].getUses())
      followUse(use, values);
  return llvm::any_of(values, [&](Value value) {
    auto comparison = value.getDefiningOp<arith::CmpFOp>();
    return comparison && isEquality(comparison) && values.contains(comparison.getLhs()) &&
           values.contains(comparison.getRhs());
  });
}
