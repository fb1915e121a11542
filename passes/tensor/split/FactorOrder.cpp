//===- FactorOrder.cpp - the search for a contraction order ---------------===//
//
// The best order of a set of factors is the best pair of complementary subsets, each in its best
// order. A step multiplies the two and sums over the indices that nothing else has. A step that
// sums over none is part of the next step's element.
//
// The time of a step is that of its terms, of its launch, and of its stored result.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/split/FactorOrder.h"

#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"
#include "passes/machine/limits/Splits.h"

#include "llvm/ADT/bit.h"

#include <limits>

using namespace tk;
using namespace limits::order_factors;

BitSet FactoredSum::indicesOf(BitSet set) const {
  BitSet indices = 0;
  for (size_t n = 0; n < factors.size(); ++n)
    if (set >> n & 1)
      indices |= factors[n];
  return indices;
}

BitSet FactoredSum::keptOf(BitSet set) const {
  return indicesOf(set) & (~reduced | indicesOf(all() & ~set));
}

double FactoredSum::count(BitSet indices) const {
  double values = 1;
  for (size_t n = 0; n < sizes.size(); ++n)
    if (indices >> n & 1)
      values *= sizes[n];
  return values;
}

/// The indices of the operand that `set` is: a factor has all of its own.
static BitSet indicesOfOperand(const FactoredSum &sum, BitSet set) {
  return llvm::has_single_bit(set) ? sum.indicesOf(set) : sum.keptOf(set);
}

FactorOrder::FactorOrder(const FactoredSum &sum, const Machine &machine)
    : sum(sum), machine(machine), steps(size_t(sum.all()) + 1) {
  for (BitSet set = 1; set <= sum.all(); ++set) {
    if (llvm::has_single_bit(set))
      continue;
    steps[set].time = std::numeric_limits<double>::infinity();
    for (BitSet left = (set - 1) & set; left != 0; left = (left - 1) & set) {
      const BitSet right = set & ~left;
      if (left < right)
        continue; // the pair was looked at the other way round
      const double time = steps[left].time + steps[right].time + timeOf(left, right);
      if (time < steps[set].time)
        steps[set] = {left, time};
    }
    if (steps[set].left == 0)
      steps[set].left = set & ~(set - 1);
  }
}

BitSet FactorOrder::summedBy(BitSet set) const {
  if (llvm::has_single_bit(set))
    return 0;
  auto [left, right] = partsOf(set);
  return (indicesOfOperand(sum, left) | indicesOfOperand(sum, right)) & ~sum.keptOf(set);
}

bool FactorOrder::storesAny(BitSet set) const {
  if (llvm::has_single_bit(set))
    return false;
  auto [left, right] = partsOf(set);
  return isStored(set) || storesAny(left) || storesAny(right);
}

bool FactorOrder::isNarrow(BitSet left, BitSet right) const {
  auto isFactor = [&](BitSet set) { return llvm::has_single_bit(set) && (set & sum.narrow); };
  auto isRounded = [&](BitSet set) {
    return isFactor(set) || (sum.rounds && !llvm::has_single_bit(set) && isStored(set));
  };
  return (isFactor(left) && isRounded(right)) || (isFactor(right) && isRounded(left));
}

double FactorOrder::timeOf(BitSet left, BitSet right) const {
  const BitSet set = left | right, kept = sum.keptOf(set),
               all = indicesOfOperand(sum, left) | indicesOfOperand(sum, right);
  if (all == kept)
    return 0;
  auto isProduct = [&](BitSet side) { return !llvm::has_single_bit(side) && summedBy(side) == 0; };
  const double pair = isProduct(left) || isProduct(right) ? termOfManyFactors : termOfPair;
  const double time = timeOfSum(indicesOfOperand(sum, left), indicesOfOperand(sum, right), kept,
                                all, isNarrow(left, right), pair);
  if (set == sum.all())
    return time + cost::launch;
  const double bytes = sum.count(kept) * cost::bytesOfWide;
  return bytes > mostBytesOfStep ? std::numeric_limits<double>::infinity()
                                 : time + cost::ofScratch(machine, bytes);
}

/// The time of the terms, over `all` indices, of `results`. The operands have the indices `left`
/// and `right`. `pair`: the time of a term if they are no contraction.
double FactorOrder::timeOfSum(BitSet left, BitSet right, BitSet results, BitSet all, bool narrow,
                              double pair) const {
  const auto processors = static_cast<double>(machine.device.processors);
  const bool isContraction = (left & ~right & results) != 0 && (right & ~left & results) != 0;
  const bool onMatrixUnit = isContraction && narrow;
  const double tile = onMatrixUnit ? cost::outputsOfLargeTile : outputsOfSmallTile;
  const double tiles = std::max(sum.count(results) / tile, 1.0);
  const double term = onMatrixUnit ? termOnMatrixUnit : isContraction ? termOnCores : pair;
  return sum.count(all) * term * std::max(processors / tiles, 1.0);
}

double FactorOrder::timeOfOneLoop() const {
  // The factors are two operands already if indices of the results divide them in two.
  const BitSet everything = sum.indicesOf(sum.all()), results = everything & ~sum.reduced;
  for (BitSet left = 1; left < sum.all(); ++left) {
    const BitSet ofLeft = sum.indicesOf(left) & results,
                 ofRight = sum.indicesOf(sum.all() & ~left) & results;
    if ((ofLeft & ~ofRight) != 0 && (ofRight & ~ofLeft) != 0)
      return cost::launch +
             timeOfSum(ofLeft, ofRight, results, everything, sum.narrow != 0, termOfPair);
  }
  return cost::launch + sum.count(everything) * termOfManyFactors;
}
