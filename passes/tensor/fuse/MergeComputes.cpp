//===- MergeComputes.cpp - merge compute ops that share work --------------===//
//
// Two compute ops may read the same elements or compute the same reduction. One merged compute op
// does the shared work once.
//
// 1. Look at each pair of compute ops that do not need each other. Map the indices of the smaller
//    one to indices of the larger one with equal extents.
// 2. Merge the pair if both have an equal reduction, or load the same element. Two chains of
//    products, such as gradients of attention, must share a reduction or a factor of a product: a
//    number for each row, which both load, is no reason to repeat their loops in one kernel. Pairs
//    that share a reduction come before pairs that share loads alone. If the smaller op
//    has fewer indices, each of its reductions must also run over the range of a reduction of the
//    larger op. The merged op then has no further loop. Compute ops without indices are always
//    merged, because their cost is the launch.
//    An op that reduces the rows which the larger one reads element by element is merged, too, if
//    a block holds a row. An example is a state that is updated, and summed with weights.
// 3. Decline if more than two different matrix products would be live at once: their accumulators
//    need too many registers. Decline also if only loads are shared and one op has a matrix product
//    while the other has a plain reduction. The threads that feed the matrix unit are not available
//    for the other reduction. Decline if the ops scan along an index in opposite directions.
// 4. Merge an elementwise reader into the compute op of a matrix product. The reader must read each
//    element at its own index. All other readers must be reductions, which begin in the product's
//    tiles (tk-attach-reductions). The product is then not stored. A product that is stored anyway
//    is not merged, because two results of a tile need too many registers.
// 5. Pattern `equal-sizes`: two equal sizes, such as the widths of keys and of values, become one
//    size in compute ops that share a matrix product. The ops can then be merged.
// 6. The merged op has the larger op's indices. Each result keeps its own indices. tk-simplify then
//    merges equal expressions.
//
//   %o   = tk.compute ["i","e"] {.. sum over j ..} : tensor<?x?xf32>
//   %lse = tk.compute ["i"] {.. sum over j ..} : tensor<?xf32>
//     =>
//   %o, %lse = tk.compute ["i","e"] {..} over [array<i64: 0, 1>, array<i64: 0>]
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/analysis/FusionChoices.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScanPosition.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/analysis/StoredReductions.h"
#include "passes/tensor/fuse/SharedWork.h"
#include "passes/tensor/normalize/PadConditions.h"

#include "dialects/tkgpu/TkGpuPlan.h"

#include "llvm/ADT/SmallSet.h"

namespace tk {
#define GEN_PASS_DEF_MERGECOMPUTES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-merge-computes";

/// Does `small` scan along an index in the other direction than `large`? A block goes in one.
static bool scanOtherwise(ComputeOp small, ComputeOp large, ArrayRef<unsigned> embedding) {
  auto places = [](ComputeOp compute) {
    SmallVector<IndexOrMirror> found;
    compute.walk([&](ScanOp scan) {
      if (std::optional<IndexOrMirror> place = getScanPosition(scan, compute))
        found.push_back(*place);
    });
    return found;
  };
  return llvm::any_of(places(small), [&](const IndexOrMirror &own) {
    return llvm::any_of(places(large), [&](const IndexOrMirror &other) {
      return embedding[own.index.getArgNumber()] == other.index.getArgNumber() &&
             own.isMirrored != other.isMirrored;
    });
  });
}

/// Why the statements should stay apart, or nothing.
static std::optional<StringRef> whyNotJoin(ComputeOp small, ComputeOp large,
                                           ArrayRef<unsigned> embedding) {
  if (large.getNumIndices() == 0)
    return std::nullopt; // single numbers: a launch each is dearer than anything else about them
  if (reducesRowsOf(small, large, embedding))
    return std::nullopt;
  if (scanOtherwise(small, large, embedding))
    return StringRef("they scan in opposite directions");
  Sharing sharing = getSharing(small, large, embedding);
  if (sharing.equalReductions == 0 && small->hasAttr(storedApartAttrName) &&
      large->hasAttr(storedApartAttrName))
    return StringRef("they share no reduction, and each is stored by itself");
  if (sharing.equalReductions == 0 && sharing.equalLoads == 0)
    return StringRef("they share neither a reduction nor a load");
  if (sharing.equalReductions == 0 && sharing.equalFactors == 0 && areChains(small, large))
    return StringRef("they share neither a product nor a factor of their products");
  if (sharing.equalReductions == 0 && !llvm::is_sorted(embedding))
    return StringRef("they have their indices in different orders");
  if (sharing.equalReductions == 0 && isProductBesideReduction(small, large))
    return StringRef("a matrix product would have another reduction beside it");
  if (sharing.ownProducts && countProducts(large) + sharing.ownProducts > 2)
    return StringRef("too many matrix products would be live at once");
  if (small.getNumIndices() == large.getNumIndices())
    return std::nullopt;
  if (small.getNumIndices() == 0)
    return StringRef("a single number is no part of a larger loop nest");
  if (sharing.ownProducts)
    return StringRef("a matrix product would be repeated over the other's indices");
  if (sharing.reductions == 0 || !sharing.everyLoopShared)
    return StringRef("the smaller one's work would be repeated over the other's indices");
  return std::nullopt;
}

/// Does an attribute of the module name a result of each compute op as a pair?
static bool isNamedPair(ComputeOp a, ComputeOp b, StringRef attribute) {
  auto pairs = a->getParentOfType<ModuleOp>()->getAttrOfType<ArrayAttr>(attribute);
  return pairs && llvm::any_of(pairs, [&](Attribute pair) {
           auto [x, y] = cast<StringAttr>(pair).getValue().split('+');
           auto hasName = [&](ComputeOp compute, StringRef name) {
             return llvm::is_contained(compute.getNames(),
                                       StringAttr::get(compute.getContext(), name));
           };
           return (hasName(a, x) && hasName(b, y)) || (hasName(a, y) && hasName(b, x));
         });
}

/// True if `b` needs a result of `a`, directly or through other statements.
static bool needs(ComputeOp b, ComputeOp a) {
  Dependence depends(a->getResults());
  return llvm::any_of(getInputs(b), [&](Value input) { return depends.on(input); });
}

static void appendPositions(OpBuilder &builder, ComputeOp compute, ArrayRef<unsigned> embedding,
                            SmallVectorImpl<Attribute> &lists) {
  for (unsigned r = 0; r < compute.getNumResults(); ++r) {
    SmallVector<int64_t> positions;
    for (unsigned index : compute.getIndicesOf(r))
      positions.push_back(embedding.empty() ? index : embedding[index]);
    lists.push_back(builder.getDenseI64ArrayAttr(positions));
  }
}

/// Replaces both by one statement at the place of the later one. Results keep program order. Where
/// `small` reads elements of `large`, it reads those of its own place, and takes their values.
static void join(ComputeOp small, ComputeOp large, ArrayRef<unsigned> embedding) {
  bool smallFirst = small->isBeforeInBlock(large);
  ComputeOp later = smallFirst ? large : small;
  OpBuilder builder(later);
  SmallVector<Type> types;
  SmallVector<Attribute> names, lists;
  auto append = [&](ComputeOp compute, ArrayRef<unsigned> positions) {
    llvm::append_range(types, compute.getResultTypes());
    llvm::append_range(names, compute.getNames());
    appendPositions(builder, compute, positions, lists);
  };
  if (smallFirst)
    append(small, embedding);
  append(large, {});
  if (!smallFirst)
    append(small, embedding);
  auto joined = ComputeOp::create(builder, builder.getFusedLoc({large.getLoc(), small.getLoc()}),
                                  types, large.getIndexNames(), large.getExtents(),
                                  builder.getArrayAttr(lists), builder.getArrayAttr(names));
  if (const gpu::PlanFamily family = gpu::getPlan(large).family; family != gpu::PlanFamily::None)
    gpu::changePlan(joined, [&](gpu::KernelPlan &plan) { plan.family = family; });
  joined.getBody().takeBody(large.getBody());
  IRMapping mapping;
  for (auto [n, position] : llvm::enumerate(embedding))
    mapping.map(small.getIndex(n), joined.getIndex(position));
  YieldOp yield = joined.getYield();
  OpBuilder body(yield);
  SmallVector<Value> smallValues, largeValues(yield.getValues());
  for (Operation &op : small.getBlock()->without_terminator()) {
    auto load = dyn_cast<LoadOp>(op);
    auto stored = load ? dyn_cast<OpResult>(load.getTensor()) : OpResult();
    if (stored && stored.getOwner() == large)
      mapping.map(load.getResult(), largeValues[stored.getResultNumber()]);
    else
      body.clone(op, mapping);
  }
  for (Value value : small.getYield().getValues())
    smallValues.push_back(mapping.lookupOrDefault(value));
  SmallVector<Value> values = smallFirst ? smallValues : largeValues;
  llvm::append_range(values, smallFirst ? largeValues : smallValues);
  yield.getValuesMutable().assign(values);
  ComputeOp first = smallFirst ? small : large, second = smallFirst ? large : small;
  first->replaceAllUsesWith(joined->getResults().take_front(first->getNumResults()));
  second->replaceAllUsesWith(joined->getResults().drop_front(first->getNumResults()));
  Block *block = joined->getBlock();
  first->erase();
  second->erase();
  sortByDependence(block);
}

/// How the indices of `reader` stand for those of `producer`, whose results it reads each at its
/// own place, if all that it does is elementwise and nothing else that it reads needs `producer`.
static std::optional<SmallVector<unsigned>> matchElementwise(ComputeOp reader, ComputeOp producer) {
  const unsigned count = reader.getNumIndices();
  if (count != producer.getNumIndices() ||
      llvm::any_of(*reader.getBlock(), [](Operation &op) { return op.getNumRegions() != 0; }))
    return std::nullopt;
  constexpr unsigned none = ~0u;
  SmallVector<unsigned> embedding(count, none);
  for (LoadOp load : reader.getBlock()->getOps<LoadOp>()) {
    auto stored = dyn_cast<OpResult>(load.getTensor());
    if (!stored || stored.getOwner() != producer)
      continue;
    if (load.getPad())
      return std::nullopt;
    for (auto [index, position] :
         llvm::zip_equal(load.getIndices(), producer.getIndicesOf(stored.getResultNumber()))) {
      auto own = dyn_cast<BlockArgument>(index);
      if (!own || own.getOwner() != reader.getBlock() ||
          (embedding[own.getArgNumber()] != none && embedding[own.getArgNumber()] != position) ||
          !isSameExtent(reader.getExtents()[own.getArgNumber()], producer.getExtents()[position]))
        return std::nullopt;
      embedding[own.getArgNumber()] = position;
    }
  }
  llvm::SmallSet<unsigned, 8> positions(embedding.begin(), embedding.end());
  if (positions.size() != count || positions.contains(none))
    return std::nullopt;
  Dependence depends(producer->getResults());
  for (Value input : getInputs(reader))
    if (input.getDefiningOp() != producer && depends.on(input))
      return std::nullopt;
  return embedding;
}

/// Will nobody read `stored` once `reader` has its elements by other means?
static bool isReadForReductionsBeside(OpResult stored, ComputeOp reader) {
  return llvm::all_of(stored.getUsers(), [&](Operation *user) {
    auto other = user->getParentOfType<ComputeOp>();
    return other && (other == reader || readsForReductionsOnly(other, stored));
  });
}

/// Makes of two sizes that are equal one, in statements that differ in them alone and share work.
static void uniteEqualSizes(KernelOp kernel, ComputeOp a, ComputeOp b) {
  if (a.getNumIndices() != b.getNumIndices())
    return;
  Value kept, other;
  for (auto [x, y] : llvm::zip_equal(a.getExtents(), b.getExtents())) {
    if (isSameExtent(x, y) || (x == kept && y == other))
      continue;
    std::optional<int64_t> size = getSizeFact(kernel, x).exact;
    if (kept || !size || size != getSizeFact(kernel, y).exact || !isa<BlockArgument>(x) ||
        !isa<BlockArgument>(y))
      return;
    kept = x;
    other = y;
  }
  if (!kept || !shareInnerProduct(a, b))
    return;
  for (ComputeOp compute : {a, b})
    other.replaceUsesWithIf(kept,
                            [&](OpOperand &use) { return compute->isAncestor(use.getOwner()); });
}

namespace {
struct MergeComputesPass : tk::impl::MergeComputesBase<MergeComputesPass> {
  using MergeComputesBase::MergeComputesBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    patterns.run("equal-sizes", [&] {
      getOperation()->walk([&](KernelOp kernel) {
        SmallVector<ComputeOp> computes(kernel.getBody().front().getOps<ComputeOp>());
        for (auto [n, b] : llvm::enumerate(computes))
          for (ComputeOp a : ArrayRef<ComputeOp>(computes).take_front(n))
            uniteEqualSizes(kernel, a, b);
      });
    });
    patterns.run("merge", [&] {
      getOperation()->walk([&](KernelOp kernel) {
        while (mergeOnce(kernel))
          ++numMerged;
      });
    });
  }

private:
  bool mergeOnce(KernelOp kernel) {
    SmallVector<ComputeOp> computes(kernel.getBody().front().getOps<ComputeOp>());
    for (auto [n, b] : llvm::enumerate(computes))
      for (ComputeOp a : ArrayRef<ComputeOp>(computes).take_front(n))
        if (needs(b, a) ? tryAbsorb(b, a) : tryJoin(a, b))
          return true;
    return false;
  }

  bool tryAbsorb(ComputeOp reader, ComputeOp producer) {
    auto isNeededNoMore = [&](OpResult stored) {
      return isReadForReductionsBeside(stored, reader);
    };
    if (!computesPlainProducts(producer) || !llvm::all_of(producer->getResults(), isNeededNoMore))
      return false;
    std::optional<SmallVector<unsigned>> embedding = matchElementwise(reader, producer);
    if (!embedding)
      return false;
    note(reader, passName, Verdict::Derived,
         describe(reader) + " is computed where the elements of " + describe(producer) + " are");
    join(reader, producer, *embedding);
    return true;
  }

  bool tryJoin(ComputeOp a, ComputeOp b) {
    // A family that was chosen already is that of all sums of a statement. Rows that are sorted
    // have a block each.
    const gpu::PlanFamily family = gpu::getPlan(a).family;
    if (family != gpu::getPlan(b).family || family == gpu::PlanFamily::RowReduction ||
        (family != gpu::PlanFamily::None && a.getNumIndices() != b.getNumIndices()))
      return false;
    ComputeOp small = a, large = b;
    if (small.getNumIndices() > large.getNumIndices())
      std::swap(small, large);
    const bool isAsked = isNamedPair(a, b, mergedAttrName),
               isRefused = isNamedPair(a, b, apartAttrName);
    std::optional<StringRef> why;
    bool isChoice = false;
    for (const SmallVector<unsigned> &embedding : getEmbeddings(small, large)) {
      const bool isSameNest = small.getNumIndices() == large.getNumIndices();
      Sharing sharing = getSharing(small, large, embedding);
      const bool shares = sharing.equalReductions != 0 || sharing.equalLoads != 0;
      isChoice |= isSameNest && shares;
      std::optional<StringRef> against = whyNotJoin(small, large, embedding);
      if (isRefused)
        against = StringRef("an option asks for it");
      // The reason of the view under which they share work says most.
      if (against && (!why || shares))
        why = against;
      if (against && !(isAsked && isSameNest))
        continue;
      noteMerge(a, b, passName, Verdict::Derived,
                describe(a) + " and " + describe(b) +
                    (against ? " become one statement: an option asks for it"
                             : " share work and become one statement"));
      join(small, large, embedding);
      return true;
    }
    if (!why)
      return false;
    const std::string text = describe(a) + " and " + describe(b) + " stay apart: " + why->str();
    // Merging what shares nothing, or has other indices, is no choice that a time could be given
    // for.
    if (isChoice)
      noteMerge(a, b, passName, Verdict::Declined, text);
    else
      note(b, passName, Verdict::Declined, text);
    return false;
  }
};
} // namespace
