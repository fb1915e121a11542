//===- SeparatePlaces.cpp - products over the places of an operand --------===//
//
// Part of tk-separate-reductions. A sum of products may read an operand at a place that is computed
// from an index of the other operand and another index: q[i, d] * r[i - j, d], relative positions.
// Each row then has an operand of its own, which no tile holds. The product with all places of the
// operand is a plain one, q[i, d] * r[t, d], of which the reader takes the element at t = i - j.
//
// 1. Find sums of products where an index stands in the place of one operand's axis and nowhere
//    else. The other operand must have an index that this operand has only in the place.
// 2. Replace that index by one over the axis, in a compute op of its own. Read that at the place,
//    and 0 where the operand is padded with 0.
// 3. Decline if many rows take the operand at the same places, as tiles hold what is gathered for
//    them. Decline if there are too many places, or if the store takes longer than the products on
//    CUDA cores.
//
//   %y = tk.compute ["i","j"] {tk.reduce [sum] ["d"] {q[i, d] * r[i - j, d]}}
//     =>
//   %p = tk.compute ["i","t"] {tk.reduce [sum] ["d"] {q[i, d] * r[t, d]}}
//   %y = tk.compute ["i","j"] {%p[i, i - j]}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/fuse/SeparatePlaces.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"
#include "passes/machine/limits/Operands.h"
#include "passes/tensor/fuse/Separation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tk {

static constexpr StringLiteral passName = "tk-separate-reductions";

namespace {
/// One sum of products, and the place of an operand in it.
class PlacedProduct {
public:
  PlacedProduct(ReduceOp reduce, ComputeOp compute)
      : reduce(reduce), compute(compute), kernel(compute->getParentOfType<KernelOp>()),
        indices(indicesOf(reduce)) {}

  bool match();
  bool isWorthwhile();
  void separate();

private:
  bool findPlace(BlockArgument index);
  bool takeAxes(BlockArgument index);
  bool hasRows();
  bool isInBounds(Dependence &onOthers);
  void roundOperand();
  llvm::SetVector<Value> collect(Value value) const;
  bool needs(Value value, Value wanted) const { return collect(value).contains(wanted); }

  ReduceOp reduce;
  ComputeOp compute;
  KernelOp kernel;
  Indices indices, kept;
  Indices shared; ///< of the other operand: rows that take the operand at the same places
  BlockArgument replaced;
  Value place, extent;
  bool isPadded = false;
};
} // namespace

/// What `value` is computed from in the compute op, itself included, other than through the place.
llvm::SetVector<Value> PlacedProduct::collect(Value value) const {
  llvm::SetVector<Value> all;
  SmallVector<Value> work = {value};
  while (!work.empty()) {
    Value one = work.pop_back_val();
    if (one == place || !all.insert(one))
      continue;
    Operation *op = one.getDefiningOp();
    if (!op || !compute->isProperAncestor(op))
      continue;
    llvm::append_range(work, op->getOperands());
    for (Region &region : op->getRegions())
      if (!region.empty())
        llvm::append_range(work, region.front().getTerminator()->getOperands());
  }
  return all;
}

/// Is the place that of one size wherever it stands, beside which nothing needs `index`?
bool PlacedProduct::takeAxes(BlockArgument index) {
  extent = {};
  isPadded = false;
  const llvm::SetVector<Value> others = collect(reduce.getResult(0));
  if (others.contains(index))
    return false;
  for (Value value : others) {
    auto load = value.getDefiningOp<LoadOp>();
    if (!load || !reduce->isAncestor(load))
      continue;
    for (auto [axis, at] : llvm::enumerate(load.getIndices())) {
      if (at != place)
        continue;
      Value size = getExtents(kernel, load.getTensor())[axis];
      if ((extent && !isSameExtent(extent, size)) ||
          (load.getPad() && !matchPattern(load.getPad(), m_AnyZeroFloat())))
        return false;
      extent = size;
      isPadded |= load.getPad() != nullptr;
    }
  }
  return extent && isKernelLevel(extent, compute);
}

/// Does `index` stand in one place alone, which needs no index of the sum?
bool PlacedProduct::findPlace(BlockArgument index) {
  llvm::SetVector<Value> candidates;
  Dependence onIndex(ValueRange{index});
  reduce->walk([&](LoadOp load) {
    for (Value at : load.getIndices())
      if (!isa<BlockArgument>(at) && onIndex.on(at) &&
          llvm::none_of(getIterationIndices(at), [&](BlockArgument inner) {
            return reduce->isAncestor(inner.getOwner()->getParentOp());
          }))
        candidates.insert(at);
  });
  return llvm::any_of(candidates, [&](Value candidate) {
    place = candidate;
    return takeAxes(index);
  });
}

/// Has one factor the place, and the other an index that the first has in the place alone?
bool PlacedProduct::hasRows() {
  auto term = reduce.getYield().getValues()[0].getDefiningOp<arith::MulFOp>();
  if (!term)
    return false;
  for (unsigned side : {0U, 1U}) {
    Value placed = term->getOperand(side), other = term->getOperand(1 - side);
    Dependence onPlace(ValueRange{place});
    if (!onPlace.on(placed) || onPlace.on(other))
      continue;
    const SmallVector<BlockArgument> ofPlace = getIterationIndices(place);
    shared.clear();
    for (BlockArgument index : kept)
      if (needs(other, index) && !needs(placed, index) && !llvm::is_contained(ofPlace, index))
        shared.insert(index);
    return llvm::any_of(ofPlace, [&](BlockArgument index) {
      return kept.contains(index) && !needs(placed, index) && needs(other, index);
    });
  }
  return false;
}

/// Are all accesses seen to be in bounds wherever their own indices and the place are, also where
/// an index of which `onOthers` has the end has no values?
bool PlacedProduct::isInBounds(Dependence &onOthers) {
  return !reduce
              ->walk([&](LoadOp load) {
                const bool isSafe =
                    load.getPad() || llvm::all_of(load.getIndices(), [&](Value at) {
                      return at == place || (!onOthers.on(at) && !getIterationIndices(at).empty());
                    });
                return isSafe ? WalkResult::advance() : WalkResult::interrupt();
              })
              .wasInterrupted();
}

bool PlacedProduct::match() {
  if (reduce.isOnline() || reduce.getNumAccumulators() != 1 ||
      reduce.getKind(0) != ReduceKind::Sum || !reduce.getResult(0).getType().isF32() ||
      llvm::any_of(*reduce.getBlock(), [](Operation &op) { return op.getNumRegions() != 0; }))
    return false;
  // The arguments of a scan are not indices alone.
  if (!llvm::all_of(indices, [](BlockArgument index) {
        return isa<ComputeOp, ReduceOp>(index.getOwner()->getParentOp());
      }))
    return false;
  for (BlockArgument index : indices) {
    if (!findPlace(index))
      continue;
    kept.clear();
    SmallVector<Value> others;
    llvm::DenseSet<StringAttr> names = {nameOf(index, compute)};
    bool areKnown = true;
    for (BlockArgument other : indices) {
      Value size = extentOf(other, compute);
      areKnown &= size != nullptr;
      if (!needs(reduce.getResult(0), other)) {
        others.push_back(size);
        continue;
      }
      kept.insert(other);
      areKnown &= names.insert(nameOf(other, compute)).second;
    }
    Dependence onOthers(others);
    replaced = index;
    if (areKnown && hasRows() && isInBounds(onOthers))
      return true;
  }
  return false;
}

bool PlacedProduct::isWorthwhile() {
  double before = 1, after = guessSize(kernel, extent), terms = 1, rows = 1;
  for (BlockArgument index : shared)
    rows *= guessSize(kernel, extentOf(index, compute));
  if (rows >= limits::store_products::leastRowsOfTile)
    return false;
  for (BlockArgument index : indices)
    before *= guessSize(kernel, extentOf(index, compute));
  for (BlockArgument index : kept)
    after *= guessSize(kernel, extentOf(index, compute));
  for (Value upper : reduce.getUpper())
    terms *= isKernelLevel(upper, compute) ? guessSize(kernel, upper) : 1;
  return after <= cost::mostPlacesOfProduct * before &&
         cost::termOfPlacedOperand * before * terms >
             cost::launch + 2 * cost::byte * sizeof(float) * after;
}

/// Rounds a computed operand beside a stored one of 16 bits, as in any product of both
/// (docs/reference/numerics.md).
void PlacedProduct::roundOperand() {
  auto term = reduce.getYield().getValues()[0].getDefiningOp<arith::MulFOp>();
  for (unsigned side : {0U, 1U}) {
    Value stored = withoutExtension(term->getOperand(side)), computed = term->getOperand(1 - side);
    if (reduce.getPrecision() != Precision::Default || !stored.getDefiningOp<LoadOp>() ||
        !(stored.getType().isBF16() || stored.getType().isF16()) ||
        withoutExtension(computed).getType() != computed.getType() ||
        computed.getDefiningOp<LoadOp>())
      continue;
    OpBuilder builder(term);
    Location loc = computed.getLoc();
    auto rounded = arith::TruncFOp::create(builder, loc, stored.getType(), computed);
    rounded->setAttr(roundedFactorAttr, builder.getUnitAttr());
    term->setOperand(
        1 - side,
        arith::ExtFOp::create(builder, loc, computed.getType(), rounded.getResult()).getResult());
    return;
  }
}

void PlacedProduct::separate() {
  roundOperand();
  // The place is none of the sum's, and stays with the reader.
  for (Operation *op : getSlice(place, reduce.getBlock()))
    op->moveBefore(reduce);
  OpBuilder builder(compute);
  Location loc = reduce.getLoc();
  SmallVector<Value> extents, at(kept.begin(), kept.end());
  SmallVector<StringRef> names;
  for (BlockArgument index : kept) {
    IRMapping hoisted;
    extents.push_back(cloneFrom(builder, extentOf(index, compute), compute, hoisted));
    names.push_back(nameOf(index, compute).getValue());
  }
  extents.push_back(extent);
  names.push_back(nameOf(replaced, compute).getValue());
  const std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + ".places").str();
  auto statement = ComputeOp::create(
      builder, loc, names, extents, SmallVector<Type>{reduce.getResult(0).getType()},
      SmallVector<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{},
      [&](OpBuilder &inner, Location, ValueRange own) {
        IRMapping mapping;
        for (auto [index, mine] : llvm::zip(kept, own))
          mapping.map(index, mine);
        mapping.map(place, own.back());
        YieldOp::create(inner, loc, cloneFrom(inner, reduce.getResult(0), compute, mapping));
      });
  Value pad;
  if (isPadded)
    pad = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0));
  builder.setInsertionPoint(reduce);
  at.push_back(place);
  auto load = LoadOp::create(builder, loc, statement->getResult(0), at, pad);
  note(reduce, passName, Verdict::Derived,
       "the " + describe(reduce) + " is computed for each place of an operand that is read at '" +
           nameOf(replaced, compute).getValue() + "' and an index of the other operand");
  reduce.getResult(0).replaceAllUsesWith(load.getResult());
  reduce.erase();
}

bool separatePlaces(ReduceOp reduce, ComputeOp compute) {
  PlacedProduct product(reduce, compute);
  if (!product.match() || !product.isWorthwhile())
    return false;
  product.separate();
  return true;
}

} // namespace tk
