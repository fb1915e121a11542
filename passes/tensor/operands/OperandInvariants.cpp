//===- OperandInvariants.cpp - values that an operand's rows share --------===//
//
// The part of tk-store-invariants (StoreInvariants.cpp) that is about operands of matrix products.
//
// An operand of a matrix product may be computed from a value that lacks the operand's own row
// index, such as the decay of a key. Each thread that holds elements of the operand's tile computes
// that value for its columns again.
//
// Values over the sum's index and fewer indices than the operand are matched in compute ops whose
// reductions are plain matrix products. The instructions of such a value count, also those of short
// functions.
//
//   %s = tk.compute ["h", "p", "n"] {tk.reduce [sum] ["j"] {x[j, h, p] * (exp(a[h, j]) * b[j, n])}}
//     =>
//   %c = tk.compute ["h", "j"] {exp(a[h, j])}
//   %s = tk.compute ["h", "p", "n"] {tk.reduce [sum] ["j"] {x[j, h, p] * (c[h, j] * b[j, n])}}
//
//===----------------------------------------------------------------------===//
#include "passes/machine/limits/Operands.h"
#include "passes/tensor/operands/InvariantStores.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"

#include "dialects/tkgpu/TkGpuDialect.h"

using namespace mlir;
using namespace tk;

using namespace limits::operand_invariants;

/// Finds values in the operands of `product` that lack an index of the operand: something over more
/// indices is computed from them inside the operand.
void InvariantStores::collectOperands(ReduceOp product) {
  for (Value operand : product.getYield().getValues()[0].getDefiningOp()->getOperands()) {
    std::optional<SmallVector<Operation *>> slice = getElementwise(compute, operand);
    if (!slice)
      continue;
    const size_t numIndices = getIterationIndices(operand).size();
    double elements = guessSize(kernel, wholeExtent(product, 0, compute));
    for (BlockArgument index : getIterationIndices(operand))
      if (index.getOwner() == compute.getBlock())
        elements *= guessSize(kernel, compute.getExtents()[index.getArgNumber()]);
    auto isOverFewer = [&](Operation *op) {
      return op->getNumResults() == 1 && getIterationIndices(op->getResult(0)).size() < numIndices;
    };
    for (Operation &op : *product.getBlock()) {
      if (!llvm::is_contained(*slice, &op) || !isOverFewer(&op))
        continue;
      std::optional<Invariant> invariant = read(op.getResult(0), ofReduction(product));
      if (!invariant)
        continue;
      invariant->users = elements;
      // A value that is stored already is a part of others then.
      if (Value tensor =
              invariant->instructions >= leastInstructions ? findStored(*invariant) : Value()) {
        replace(*invariant, tensor);
        continue;
      }
      auto isInside = [&](Operation *user) {
        return llvm::is_contained(*slice, user) && !isOverFewer(user);
      };
      if (invariant->instructions >= leastInstructions && isShared(*invariant) &&
          llvm::any_of(op.getUsers(), isInside))
        add(std::move(*invariant));
    }
  }
}

/// As pays(), where threads compute each value for some elements of an operand's tile.
bool InvariantStores::paysInOperands(ArrayRef<Invariant *> together) {
  double saved = 0, bytes = 0, shared = sizeOf(together.front()->extents), users = 0;
  for (Invariant *invariant : together) {
    saved += cost::instruction * invariant->instructions *
             (invariant->users / elementsOfThread - shared);
    bytes += invariant->value.getType().getIntOrFloatBitWidth() / 8.0;
    users = std::max(users, invariant->users);
  }
  return saved > 2 * cost::byte * bytes * shared +
                     cost::sharedByte * bytes * users / rowsOfTileAtLeast + cost::launch;
}
