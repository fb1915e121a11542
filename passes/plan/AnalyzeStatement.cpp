//===- AnalyzeStatement.cpp - contractions and accesses of a compute op ---===//
//
// Finds which indices each value of a compute op depends on, which indices the innermost axis of
// each access runs along, and which sums of products are contractions, each with the indices that
// its rows, columns and terms are tiled along.
//
//===----------------------------------------------------------------------===//
#include "passes/machine/limits/Elements.h"
#include "passes/machine/limits/Packed.h"
#include "passes/plan/StatementShape.h"

#include "passes/analysis/OffsetRanges.h"
#include "passes/analysis/PackedFactors.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/StrideAxes.h"
#include "passes/machine/Machine.h"
#include "passes/plan/MergeIndices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tk;

namespace {

using IndexSet = llvm::SetVector<Value>;
using namespace limits::analyze_statement;
using namespace limits::analyze_packed;

struct Analysis {
  explicit Analysis(StatementShape &shape) : shape(shape) {}

  StatementShape &shape;
  llvm::DenseMap<Value, IndexSet> memo;

  bool isIndex(BlockArgument arg) {
    Operation *parent = arg.getOwner()->getParentOp();
    if (auto reduction = dyn_cast<ReduceOp>(parent))
      return arg.getOwner() == reduction.getBlock() &&
             arg.getArgNumber() < reduction.getNumIndices();
    return isa<ComputeOp, ScanOp>(parent);
  }

  /// The indices that a scalar depends on, other than those bound inside it.
  IndexSet dependences(Value value) {
    if (auto known = memo.find(value); known != memo.end())
      return known->second;
    IndexSet set;
    if (auto arg = dyn_cast<BlockArgument>(value)) {
      if (isIndex(arg)) {
        set.insert(arg);
      } else if (auto reduction = dyn_cast<ReduceOp>(arg.getOwner()->getParentOp())) {
        // A running value is over what its own term and those before it are.
        unsigned position = arg.getArgNumber() - reduction.getNumIndices();
        for (Value term : reduction.getYield().getValues().take_front(position + 1))
          set.insert_range(dependences(term));
        for (Value index : reduction.getBlock()->getArguments())
          set.remove(index);
      }
    } else if (Operation *op = value.getDefiningOp(); shape.compute->isProperAncestor(op)) {
      IndexSet free(op->operand_begin(), op->operand_end());
      for (Region &region : op->getRegions())
        getUsedValuesDefinedAbove(region, free);
      for (Value operand : free)
        if (!isa<RankedTensorType>(operand.getType()))
          set.insert_range(dependences(operand));
      // Regions yield constants and their own indices as well; only what is free counts.
    }
    return memo[value] = set;
  }

  /// The indices along which `address` runs: those that it depends on, but of a group's number and
  /// the place in it the place alone, where the statement has an index over the places.
  IndexSet runsOver(Value address) {
    auto sum = address.getDefiningOp<arith::AddIOp>();
    auto start = sum ? sum.getLhs().getDefiningOp<arith::MulIOp>() : arith::MulIOp();
    std::optional<int64_t> size = start ? getConstantIndex(start.getRhs()) : std::nullopt;
    auto place = sum ? dyn_cast<BlockArgument>(sum.getRhs()) : BlockArgument();
    bool isPlace = size && place && isIndex(place) && getConstantIndex(shape.endOf(place)) == size;
    isPlace &= llvm::any_of(shape.compute.getExtents(),
                            [&](Value extent) { return getConstantIndex(extent) == size; });
    return isPlace ? dependences(place) : dependences(address);
  }

  bool mayTile(Value index) {
    std::optional<int64_t> upper = shape.upperOf(index);
    return !upper || *upper > 1;
  }

  /// The index to tile among those in `in` and not in `notIn`: the innermost. Indices of one value
  /// have no tiles, but for a side of a chain's product that has no other (`mayBeUnit`): the row of
  /// a single query; or the row of a product whose other operand is unpacked.
  Value pick(const IndexSet &in, const IndexSet &notIn, bool mayBeUnit) {
    Value found = pickAmong(in, notIn, false);
    return found || !mayBeUnit ? found : pickAmong(in, notIn, true);
  }

  Value pickAmong(const IndexSet &in, const IndexSet &notIn, bool areUnits) {
    Value best;
    auto rank = [&](Value index) {
      auto arg = cast<BlockArgument>(index);
      bool parallel = isa<ComputeOp>(arg.getOwner()->getParentOp());
      return std::tuple(shape.contiguous.lookup(index) > 0, !parallel, arg.getArgNumber());
    };
    for (Value index : in)
      if (!notIn.contains(index) && (areUnits || mayTile(index)) &&
          (!best || rank(index) >= rank(best)))
        best = index;
    return best;
  }

  /// Does `op` sum products, one factor of each of which is over an index of `over`?
  static bool multipliesOver(ReduceOp op, ReduceOp over) {
    Dependence onStep(over.getBlock()->getArguments().take_front(over.getNumIndices()));
    return llvm::any_of(llvm::seq<unsigned>(op.getNumAccumulators()), [&](unsigned k) {
      auto product = op.getYield().getValues()[k].getDefiningOp<arith::MulFOp>();
      return product && op.getKind(k) == ReduceKind::Sum &&
             (op == over || onStep.on(product.getLhs()) != onStep.on(product.getRhs()));
    });
  }

  /// Is `op` one of two products of a chain: in the terms of a sum of products, or such a sum with
  /// others in its terms? The inner products of groups of terms, both of whose factors are over the
  /// group, are none.
  static bool isInChain(ReduceOp op) {
    auto outer = op->getParentOfType<ReduceOp>();
    ReduceOp chain = outer ? outer : op;
    return multipliesOver(chain, chain) &&
           llvm::any_of(chain.getBlock()->getOps<ReduceOp>(),
                        [&](ReduceOp inner) { return multipliesOver(inner, chain); });
  }

  /// Of the indices of a sum of products around `op` one is tiled. Where a factor is over that one,
  /// it has one value of each other at a time.
  void dropLooped(ReduceOp op, IndexSet &ofFactor) {
    for (Contraction &outer : shape.contractions) {
      if (!outer.op->isProperAncestor(op) || !ofFactor.contains(outer.k))
        continue;
      for (unsigned i = 0; i < outer.op.getNumIndices(); ++i)
        if (outer.op.getIndex(i) != outer.k)
          ofFactor.remove(outer.op.getIndex(i));
    }
  }

  /// Does an axis of what `op` multiplies run along `index` one by one?
  static bool isRunAlong(ReduceOp op, Value index) {
    return op
        .walk([&](LoadOp load) {
          return llvm::any_of(load.getIndices(),
                              [&](Value axis) { return runsOneByOne(axis, index); })
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Do warpgroups unpack an operand of `op`, with tiles along `columns`? They do it faster than
  /// threads of a reduction, even for one row.
  bool isUnpackedByWarpgroups(ReduceOp op, Value columns) {
    auto target =
        op->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
    return columns && hasFeature(target, Feature::WarpgroupProducts) && findPackedFactor(op) &&
           getSizeFact(shape.kernel, shape.endOf(columns)).divisor % columnsOfWords == 0;
  }

  /// The indices that both factors of a product in the terms of `op` are over: it has no such rows.
  IndexSet sharedInside(ReduceOp op) {
    IndexSet shared;
    for (ReduceOp inner : op.getBlock()->getOps<ReduceOp>())
      if (auto product = inner.getYield().getValues()[0].getDefiningOp<arith::MulFOp>()) {
        IndexSet ofRight = dependences(product.getRhs());
        for (Value index : dependences(product.getLhs()))
          if (ofRight.contains(index))
            shared.insert(index);
      }
    return shared;
  }

  /// The index to tile of the factor over `own` but not `other`: one that no inner product shares.
  Value pickLink(ReduceOp op, const IndexSet &own, const IndexSet &other) {
    auto outer = op->getParentOfType<ReduceOp>();
    IndexSet apart = sharedInside(outer ? outer : op);
    apart.insert_range(other);
    Value found = pickAmong(own, apart, false);
    return found ? found : pick(own, other, /*mayBeUnit=*/true);
  }

  void addContraction(ReduceOp op, unsigned position) {
    if (op.getKind(position) != ReduceKind::Sum)
      return;
    Operation *product = op.getYield().getValues()[position].getDefiningOp();
    if (!product || !isa<arith::MulFOp, arith::MulIOp>(product))
      return;
    Value a = product->getOperand(0), b = product->getOperand(1);
    IndexSet ofA = dependences(a), ofB = dependences(b);
    // Of several indices the longest is tiled; known short ones (a window) are looped over, and so
    // are those that no axis runs along, but what is made of them.
    // Of a sum of parts an index in steps of whole slices of another one is looped over, too.
    Value k;
    bool runs = false, isFine = false;
    for (unsigned i = 0; i < op.getNumIndices(); ++i) {
      Value index = op.getIndex(i);
      auto length = [&](Value v) {
        return shape.upperOf(v).value_or(std::numeric_limits<int64_t>::max());
      };
      if (!ofA.contains(index) || !ofB.contains(index))
        continue;
      const bool runsHere = isRunAlong(op, index);
      const bool isFineHere = op.getPrecision() != Precision::Blocked || isFineIndex(op, index);
      if (!k ||
          std::tuple(runsHere, isFineHere, length(index)) > std::tuple(runs, isFine, length(k))) {
        k = index;
        runs = runsHere;
        isFine = isFineHere;
      }
    }
    if (!k)
      return;
    for (Value index : op.getBlock()->getArguments().take_front(op.getNumIndices())) {
      ofA.remove(index);
      ofB.remove(index);
    }
    const bool isLink = isInChain(op);
    IndexSet tiledOfA = ofA, tiledOfB = ofB;
    dropLooped(op, tiledOfA);
    dropLooped(op, tiledOfB);
    Value m = isLink ? pickLink(op, tiledOfA, ofB) : pick(tiledOfA, ofB, false);
    Value n = isLink ? pickLink(op, tiledOfB, ofA) : pick(tiledOfB, ofA, false);
    if (!m != !n && isUnpackedByWarpgroups(op, m ? m : n))
      (m ? n : m) = m ? pick(tiledOfB, ofA, true) : pick(tiledOfA, ofB, true);
    if (!m || !n)
      return;
    // No two rows, or columns, of a tile would have a term in common.
    if (dividesTermsOrAround(op, m, n) || dividesTermsOrAround(op, n, m))
      return;
    // What is multiplied in f64 is f64 in shared memory and registers, too.
    Type operand = a.getType().isF64() ? a.getType() : withoutExtension(a).getType();
    Contraction contraction{op, m, n, k, operand};
    contraction.isInner = op->getParentOfType<ReduceOp>() != nullptr;
    for (Contraction &outer : shape.contractions)
      outer.isOuter |= outer.op->isProperAncestor(op);
    shape.contractions.push_back(contraction);
  }

  /// By how many places neighbours along `index` are apart at `place`, at most: that of a window
  /// that begins at a quotient, `index * size / number`. Nothing if that is not known.
  std::optional<int64_t> stepOfQuotients(Value place, Value index) {
    Operation *op = place.getDefiningOp();
    if (isa_and_nonnull<arith::AddIOp>(op)) {
      const bool isLeft = dependences(op->getOperand(0)).contains(index);
      if (isLeft && dependences(op->getOperand(1)).contains(index))
        return std::nullopt;
      return stepOfQuotients(op->getOperand(isLeft ? 0 : 1), index);
    }
    auto quotient = dyn_cast_or_null<FloorDivOp>(op);
    auto product = quotient ? quotient.getLhs().getDefiningOp<arith::MulIOp>() : arith::MulIOp();
    std::optional<int64_t> divisor = product ? getConstantIndex(quotient.getRhs()) : std::nullopt;
    if (!divisor || *divisor <= 0 || product.getLhs() != index)
      return std::nullopt;
    std::optional<int64_t> size = getSizeFact(shape.kernel, product.getRhs()).upper;
    return size ? std::optional(llvm::divideCeil(*size, *divisor)) : std::nullopt;
  }

  /// Are neighbours along `index` neighbours along an axis of a tensor that `op` reads?
  static bool isFineIndex(ReduceOp op, Value index) {
    return op
        .walk([&](LoadOp load) {
          return llvm::any_of(load.getIndices(),
                              [&](Value place) { return mayRunAlong(place, index); })
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// The indices whose neighbours are neighbours at `place` of the innermost axis, if there are
  /// enough to occupy a warp; else all that may be, or that it depends on.
  IndexSet indicesAlong(Value place) {
    IndexSet all = runsOver(place), along;
    bool isLong = false;
    for (Value index : all)
      if (runsOneByOne(place, index)) {
        along.insert(index);
        isLong |= shape.upperOf(index).value_or(lanesOfWarp) >= lanesOfWarp;
      }
    if (isLong)
      return along;
    IndexSet near;
    for (Value index : all)
      if (mayRunAlong(place, index))
        near.insert(index);
    // Windows side by side are read as a whole.
    int64_t longest = 0;
    for (Value index : near)
      if (isa<ReduceOp>(cast<BlockArgument>(index).getOwner()->getParentOp()))
        longest = std::max(longest, shape.upperOf(index).value_or(0));
    for (Value index : all)
      if (stepOfQuotients(place, index).value_or(longest + 1) <= longest)
        near.insert(index);
    return near.empty() ? all : near;
  }

  /// What the innermost axis of memory is read at: that of the last axis that is not known to have
  /// one value alone. A matrix of one column lies along its rows' index.
  Value innermostPlace(LoadOp load) {
    SmallVector<Value> extents = getExtents(shape.kernel, load.getTensor());
    const bool areDense = !getStrideAxes(shape.kernel, load.getTensor());
    size_t axis = load.getIndices().size() - 1;
    while (axis > 0 && areDense && axis < extents.size() &&
           getSizeFact(shape.kernel, extents[axis]).upper == 1)
      --axis;
    return load.getIndices()[axis];
  }

  /// Beside loads that differ along more of a reduction's indices, others do not count: they are
  /// the same for all terms, or for many.
  IndexSet runsAlong(Operation *reduction) {
    IndexSet along;
    size_t most = 0;
    reduction->walk([&](LoadOp load) {
      if (load.getIndices().empty())
        return;
      IndexSet own;
      for (Value index : load.getIndices())
        for (Value needed : dependences(index))
          if (reduction->isAncestor(cast<BlockArgument>(needed).getOwner()->getParentOp()))
            own.insert(needed);
      if (own.size() > most)
        along.clear();
      most = std::max(most, own.size());
      if (own.size() == most)
        along.insert_range(indicesAlong(innermostPlace(load)));
    });
    return along;
  }

  /// Of an access over `all` indices the innermost axis depends on `indices`. What is read once for
  /// all terms of a sum, such as a length of each sequence, says nothing about its operands.
  void addAccess(const IndexSet &indices, const IndexSet &all, Type element, bool isOfTerms) {
    for (Value index : indices)
      if (isOfTerms)
        ++shape.contiguous[index];
    if (unsigned count = shape.compute.getNumIndices())
      if (all.contains(shape.compute.getIndex(count - 1)))
        shape.innermost.push_back(indices);
    if (element.isIntOrFloat())
      shape.narrowestBits =
          std::min(shape.narrowestBits, std::max(8u, element.getIntOrFloatBitWidth()));
  }

  void run() {
    shape.compute.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<ReduceOp, ScanOp>(op)) {
        shape.reductions.push_back(op);
        shape.dependsOn[op] = dependences(op->getResult(0));
        shape.runsAlong[op] = runsAlong(op);
      }
      if (auto load = dyn_cast<LoadOp>(op)) {
        IndexSet all;
        for (Value index : load.getIndices())
          all.insert_range(dependences(index));
        const bool isOfTerms = llvm::any_of(all, [](Value index) {
          return isa<ReduceOp>(cast<BlockArgument>(index).getOwner()->getParentOp());
        });
        addAccess(load.getIndices().empty() ? IndexSet() : runsOver(innermostPlace(load)), all,
                  cast<RankedTensorType>(load.getTensor().getType()).getElementType(), isOfTerms);
      }
    });
    for (unsigned r = 0; r < shape.compute.getNumResults(); ++r) {
      IndexSet last, all;
      for (unsigned position : shape.compute.getIndicesOf(r)) {
        Value index = shape.compute.getIndex(position);
        if (last.empty() || mayTile(index)) {
          last.clear();
          last.insert(index);
        }
        all.insert(index);
      }
      addAccess(last, all,
                cast<RankedTensorType>(shape.compute.getResult(r).getType()).getElementType(),
                /*isOfTerms=*/true);
    }
    for (Operation *op : shape.reductions)
      if (auto reduction = dyn_cast<ReduceOp>(op))
        for (unsigned k = 0; k < reduction.getNumAccumulators(); ++k)
          addContraction(reduction, k);
  }
};

} // namespace

StatementShape tk::analyzeStatement(KernelOp kernel, ComputeOp compute) {
  StatementShape shape;
  shape.kernel = kernel;
  shape.compute = compute;
  Analysis(shape).run();
  return shape;
}
