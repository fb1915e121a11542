//===- SortTerms.cpp - reductions of the elements with a key --------------===//
//
// A segment sum adds up the elements whose key is the index of the result. As it is written, each
// result goes through the elements of all keys. Elements that are sorted by their key are read
// once.
//
// 1. The pattern matches sums, maxima and minima whose element is the identity of the reduction
//    unless a key equals an index of the compute op (KeyedTerms.cpp). A count is such a sum, too.
//    The key may depend on indices of a batch. Comparisons of other forms are solved for the index
//    before (KeyTests.cpp).
// 2. The elements are sorted by their key into blocks of 128 (RowOrder.cpp).
// 3. A compute op reduces each block, in the order of the elements. The reduction goes over the
//    blocks of its index (KeyedBlocks.cpp).
//    Most keys may have no element. Elements then are blocks of their own, and a compute op reduces
//    the elements of each key at the first of them.
// 4. Sums of products of two factors with columns of their own are matrix products, such as the
//    gradient of experts. Their factors are stored in the order of the keys, and the sum goes over
//    the places of its index (KeyedProducts.cpp).
// 5. An element of another key that is 0 times a value makes the sum NaN if the value is infinite
//    or NaN. Such elements are counted.
//
// The order of the elements is the same in every run. The pattern declines if the reduction of all
// elements takes less time. Sizes that are not known are guessed. Unless the number of keys is
// known, elements are sorted by two digits, whose counts take about as much memory as the elements'
// numbers.
//
//   %y = tk.compute ["g", "c"] {tk.reduce [sum] ["i"] {s[i] == g ? x[i, c] : 0}}
//     =>
//   %first, %row = the order of the elements (RowOrder.cpp)
//   %p = tk.compute ["b", "c"] {tk.reduce [sum] ["t"] {row[b, t] >= 0 ? x[row[b, t], c] : 0}}
//   %y = tk.compute ["g", "c"] {tk.reduce [sum] ["b"] from first[g] to first[g + 1] {p[b, c]}}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/keys/SortTerms.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProducerKind.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/SortCost.h"
#include "passes/tensor/keys/KeyTests.h"
#include "passes/tensor/keys/TermSorting.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/SetVector.h"

#include <cmath>
#include <vector>

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-split-reductions:segments";
static std::vector<KeyedReduction> findReductions(KernelOp kernel, ComputeOp compute) {
  std::vector<KeyedReduction> found;
  if (!replacesParameter(kernel, compute))
    for (auto reduce : compute.getBlock()->getOps<ReduceOp>())
      if (std::optional<KeyedReduction> keyed = matchKeyedReduction(compute, reduce))
        found.push_back(*keyed);
  return found;
}

/// The elements of a block: one if blocks would be filled to a quarter at most.
int64_t TermSorting::blockSizeOf(ArrayRef<KeyedReduction> all) {
  const RowKey &key = all.front().key;
  auto isProduct = [](const KeyedReduction &keyed) { return getKeyedFactors(keyed).has_value(); };
  auto isKnown = [&](Value size) { return getSizeFact(kernel, size).upper.has_value(); };
  if (!llvm::all_of(key.extents, isKnown) || !isKnown(key.numKeys))
    return llvm::any_of(all, isProduct) ? termsOfBlock : termsOfUnknown;
  double elements = 1, groups = guessSize(kernel, key.numKeys) + 1;
  for (auto [n, extent] : llvm::enumerate(key.extents)) {
    elements *= guessSize(kernel, extent);
    groups *= n < key.numBatches ? guessSize(kernel, extent) : 1;
  }
  constexpr double mostEmpty = 3;
  bool isOne = groups * termsOfBlock > mostEmpty * elements &&
               llvm::all_of(all, [&](const KeyedReduction &keyed) {
                 return keyed.others.empty() && !isProduct(keyed);
               });
  return isOne ? 1 : termsOfBlock;
}

/// The times of a matrix product: of `products` products, and of sorted factors.
std::pair<double, double> TermSorting::timesOfProduct(const KeyedReduction &keyed, double products,
                                                      double places, double columns) {
  auto [left, right] = *getKeyedFactors(keyed);
  unsigned bits = 0;
  for (Value factor : {left, right})
    bits = std::max(bits, withoutExtension(factor).getType().getIntOrFloatBitWidth());
  double stored = 0;
  for (Value factor : {left, right}) {
    double ofFactor = 1;
    for (unsigned p : getColumnsOf(keyed, factor))
      ofFactor *= guessSize(kernel, compute.getExtents()[p]);
    stored += 2 * cost::byte * bits / 8 * places * ofFactor;
  }
  constexpr double launches = 3;
  const bool isNarrow = bits <= 16;
  return {(isNarrow ? cost::keyedHalfTerm : cost::sortedTerm) * products,
          launches * cost::launch + stored +
              (isNarrow ? cost::sortedHalfTerm : cost::sortedTerm) * places * columns};
}

/// Whether the reductions of sorted elements take less time. All of `all` have one key.
bool TermSorting::pays(ArrayRef<KeyedReduction> all) {
  // Sizes that are not known are guessed. What the order needs then fits in 32 bits: a launch whose
  // tensors do not takes other code.
  auto isKnown = [&](Value extent) {
    return getSizeFact(kernel, extent).upper || hasSmallTensors(kernel);
  };
  const RowKey &key = all.front().key;
  if (!llvm::all_of(compute.getExtents(), isKnown) || !llvm::all_of(key.extents, isKnown))
    return false;
  if (!getSizeFact(kernel, key.numKeys).upper && key.numBatches > 0)
    return false;
  double ofBatch = 1, batches = 1;
  for (auto [n, extent] : llvm::enumerate(key.extents))
    (n < key.numBatches ? batches : ofBatch) *= guessSize(kernel, extent);
  const double terms = batches * ofBatch, keys = guessSize(kernel, key.numKeys);
  const int64_t ofBlock = blockSizeOf(all);
  const double places =
      ofBlock == 1 ? terms
                   : (std::floor(terms / static_cast<double>(ofBlock)) + batches * (keys + 1)) *
                         static_cast<double>(ofBlock);
  constexpr double most = std::numeric_limits<int32_t>::max();
  if (places > most || (keys + 2) * rowsOfChunk > most)
    return false;
  double plain = 0, sorted = 0;
  if (!orders.contains(key, ofBlock))
    sorted += RowOrders::timeOf(batches, ofBatch, keys + 1, ofBlock);
  for (const KeyedReduction &keyed : all) {
    double columns = 1, rest = 1;
    for (unsigned p : keyed.columns)
      columns *= guessSize(kernel, compute.getExtents()[p]);
    for (unsigned n : keyed.rest)
      rest *= guessSize(kernel, ReduceOp(keyed.reduce).getUpper()[n]);
    const double bits = ReduceOp(keyed.reduce).getResult(0).getType().getIntOrFloatBitWidth();
    if (getKeyedFactors(keyed)) {
      const auto [all, some] = timesOfProduct(keyed, terms * keys * columns, places, columns);
      plain += all;
      sorted += some;
      continue;
    }
    constexpr double fewColumns = 4, columnsAcross = 8;
    const bool isAcross = llvm::hasSingleElement(compute.getBlock()->getOps<ReduceOp>()) &&
                          keyed.rest.empty() && !keyed.readsGroup && columns >= columnsAcross;
    const bool isCount =
        keyed.columns.empty() &&
        getCountedCondition(ReduceOp(keyed.reduce).getYield().getValues()[0]) != nullptr;
    const double ofTerm = isCount                       ? cost::countedTerm
                          : columns * rest < fewColumns ? cost::guardedFewTerm
                          : isAcross                    ? cost::guardedColumnTerm
                                                        : cost::guardedTerm;
    plain += ofTerm * terms * keys * columns * rest;
    sorted += 2 * cost::launch + cost::byte * bits / 8 * terms * columns * rest;
    if (!keyed.others.empty())
      sorted += 2 * cost::launch;
  }
  return sorted < plain;
}

void TermSorting::rewrite(ArrayRef<KeyedReduction> all, unsigned number) {
  const int64_t ofBlock = blockSizeOf(all);
  order = orders.get(all.front().key, ofBlock, /*withPlaces=*/false);
  for (const KeyedReduction &keyed : all) {
    note(keyed.reduce, passName, Verdict::Derived,
         "elements of the " + describe(keyed.reduce) + " are sorted by their key, " +
             (ofBlock == 1 ? Twine("of which most have none")
                           : Twine("into blocks of ") + Twine(ofBlock)));
    const std::string suffix = "." + (number == 0 ? std::string() : std::to_string(number));
    ReduceOp reduce = keyed.reduce;
    reduce.getResult(0).replaceAllUsesWith(ofBlock == 1             ? reduceRuns(keyed, suffix)
                                           : getKeyedFactors(keyed) ? multiply(keyed, suffix)
                                                                    : reduceAll(keyed, suffix));
    ++number;
  }
}

unsigned tk::sortTerms(KernelOp kernel, RowOrders &orders) {
  unsigned numSorted = 0;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>())) {
    std::vector<KeyTests> tests;
    if (!replacesParameter(kernel, compute))
      for (auto reduce : compute.getBlock()->getOps<ReduceOp>())
        tests.emplace_back(compute, reduce);
    std::vector<KeyedReduction> all = findReductions(kernel, compute);
    TermSorting sorting(kernel, compute, orders);
    unsigned number = 0;
    while (!all.empty()) {
      // Reductions by one key share an order.
      ScalarEquality equality;
      std::vector<KeyedReduction> some = {all.front()}, others;
      for (const KeyedReduction &keyed : llvm::drop_begin(all)) {
        bool isSame =
            keyed.group == some[0].group && keyed.key.indices.size() == some[0].key.indices.size();
        for (unsigned n = 0; isSame && n < keyed.key.indices.size(); ++n) {
          equality.identify(keyed.key.indices[n], some[0].key.indices[n]);
          isSame = isSameExtent(keyed.key.extents[n], some[0].key.extents[n]);
        }
        (isSame && equality.equal(keyed.key.key, some[0].key.key) ? some : others).push_back(keyed);
      }
      if (sorting.pays(some)) {
        sorting.rewrite(some, number);
        number += some.size();
      }
      all = others;
    }
    numSorted += number;
    if (number > 0)
      eraseDead(compute);
    else
      for (KeyTests &own : tests)
        own.restore();
  }
  return numSorted;
}
