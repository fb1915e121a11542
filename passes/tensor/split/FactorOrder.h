//===- FactorOrder.h - the search for a contraction order -------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_SPLIT_FACTORORDER_H
#define TK_PASSES_TENSOR_SPLIT_FACTORORDER_H

#include "passes/machine/Machine.h"

#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace tk {

/// A set of factors, or of indices: bit `n` stands for the `n`-th one.
using BitSet = uint32_t;

/// The factors of a sum of products, and the sizes of the indices.
struct FactoredSum {
  llvm::SmallVector<BitSet> factors; ///< the indices of each factor
  BitSet narrow = 0;                 ///< the factors that are stored in bf16
  llvm::SmallVector<double> sizes;   ///< of each index
  BitSet reduced = 0;                ///< the indices that are summed over
  bool rounds = false;               ///< a computed operand is rounded to 16 bits

  BitSet all() const { return (BitSet(1) << factors.size()) - 1; }
  BitSet indicesOf(BitSet set) const;
  /// The indices of `set` that results, or factors outside of `set`, have.
  BitSet keptOf(BitSet set) const;
  /// The number of combinations of values.
  double count(BitSet indices) const;
};

/// The best order: how each set of factors is made of two others.
class FactorOrder {
public:
  FactorOrder(const FactoredSum &sum, const Machine &machine);

  /// Nanoseconds of the sum in this order, and of one loop over all indices.
  double time() const { return steps[sum.all()].time; }
  double timeOfOneLoop() const;
  /// The product of `set` is that of the sums of these two sets.
  std::pair<BitSet, BitSet> partsOf(BitSet set) const {
    return {steps[set].left, set & ~steps[set].left};
  }
  /// The indices that the step of `set` sums over. A step without any has no result of its own.
  BitSet summedBy(BitSet set) const;
  bool isStored(BitSet set) const { return set != sum.all() && summedBy(set) != 0; }
  bool storesAny(BitSet set) const;
  /// Are both operands of the step of `set` rounded to 16 bits?
  bool isNarrow(BitSet set) const { return isNarrow(steps[set].left, set & ~steps[set].left); }

private:
  struct Step {
    BitSet left = 0;
    double time = 0;
  };

  bool isNarrow(BitSet left, BitSet right) const;
  double timeOf(BitSet left, BitSet right) const;
  double timeOfSum(BitSet left, BitSet right, BitSet results, BitSet all, bool narrow,
                   double pair) const;

  const FactoredSum &sum;
  const Machine &machine;
  llvm::SmallVector<Step> steps; ///< by set of factors
};

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_FACTORORDER_H
