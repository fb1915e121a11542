//===- SplitReductions.cpp - a second level for long reductions -----------===//
//
// 1. Take statements with few outputs: no index at all, or extents known to multiply to at most 64.
//    Sums of columns count as well, on a GPU, where the columns alone are too few blocks: threads
//    run along the columns, and what a block steps through is what there is to divide.
// 2. In them take reductions whose first index may run over more than `chunk` values, whose bounds
//    hold for the whole statement, and whose terms need no other reduction, or are squares of
//    distances from what it gives (SquaredDistances.cpp). All of a statement's reductions must be
//    such.
// 3. Compute partial results in a statement of their own with one more index, the chunk: of `chunk`
//    values of a single index (of columns: as many as leave each multiprocessor several blocks; of
//    products with a row: as many parts of one length), of one value of the outermost of several.
//    Where the kernel's schedule block asks for n parts (`split k = n`), reductions of that index
//    have so many whatever 1 and 2 say of sizes, but for products that tk-split-contractions cuts.
// 4. The reduction then combines the partial results. The order is fixed, so that results repeat
//    bit by bit.
//
//   %s = tk.compute [] {tk.reduce [sum] ["i"] from (0) to (%N) {x[i]}}
//     =>
//   %p = tk.compute ["i.chunk"] in (ceil(%N / 4096)) {tk.reduce [sum] ["i"] from (c * 4096) ..}
//   %s = tk.compute [] {tk.reduce [sum] ["i.chunk"] {p[i.chunk]}}
//
//===----------------------------------------------------------------------===//
#include "passes/fusion/SplitReductions.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/Passes.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/fusion/SplitContractions.h"
#include "passes/parallel/ScheduleBlock.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

namespace tk {
#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-split-reductions";
static constexpr int64_t fewOutputs = 64;
/// Parts that a schedule block asks for begin at multiples of so many terms, so that their accesses
/// are as aligned as those of the whole.
static constexpr int64_t partAlignment = 64;
/// Sums of columns: how many a block has side by side, rows that are worth a partial result, and
/// columns that are enough by themselves.
static constexpr int64_t columnsOfBlock = 64, leastRows = 128, mostColumns = 1 << 20;
/// Blocks that a multiprocessor should get: of plain sums, of products with a row, of whose factor
/// a block reads the row's part beside, and beside squared distances, where blocks wait for a
/// sample before they read on. Products of 1 x 14336 x 4096 and 1 x 4096 x 14336 on an H200: 35.1
/// and 34.6 us with 4, 31.6 and 31.6 with 7 and 8, 35.1 with 27.
static constexpr int64_t blocksOfSums = 4, blocksOfProducts = 8, blocksOfDistances = 8;

static bool hasFewOutputs(ComputeOp compute) {
  int64_t outputs = 1;
  for (Value extent : compute.getExtents()) {
    int64_t upper = getUpperBound(extent);
    if (upper < 0 || upper > fewOutputs)
      return false;
    outputs *= std::max<int64_t>(upper, 1);
    if (outputs > fewOutputs)
      return false;
  }
  return true;
}

/// Do all loads of a reduction over one index run along an index of the statement, but for those
/// that are the same for all its values?
static bool runsAcross(ReduceOp reduce, ComputeOp compute) {
  bool any = false, all = true;
  reduce.walk([&](LoadOp load) {
    if (load.getIndices().empty())
      return;
    auto isOwn = [&](Value index) {
      return llvm::any_of(getIterationIndices(index), [&](BlockArgument argument) {
        if (argument.getOwner() != compute.getBlock())
          return false;
        int64_t upper = getUpperBound(compute.getExtents()[argument.getArgNumber()]);
        return upper < 0 || upper > 1;
      });
    };
    auto last = dyn_cast<BlockArgument>(load.getIndices().back());
    bool runsAlong = last && last.getOwner() == compute.getBlock();
    any |= runsAlong;
    all &= runsAlong || llvm::none_of(load.getIndices(), isOwn);
  });
  return any && all && reduce.getNumIndices() == 1;
}

/// Does `reduce` sum products of what lies along `column` and of a row that all columns share?
static bool isProductWithRow(ReduceOp reduce, Value column) {
  if (!isContraction(reduce))
    return false;
  Operation *product = reduce.getYield().getValues()[0].getDefiningOp();
  return llvm::count_if(product->getOperands(), [&](Value factor) {
           return llvm::is_contained(getIterationIndices(factor), column);
         }) == 1;
}

/// For sums of columns: what a block should take of them, if it should not take all.
static std::optional<Split> splitAcross(ComputeOp compute, ArrayRef<ReduceOp> reduces) {
  auto target =
      compute->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  if (!target || compute.getNumIndices() == 0)
    return std::nullopt;
  int64_t blocks = 1, rows = 0;
  for (auto [i, extent] : llvm::enumerate(compute.getExtents())) {
    int64_t upper = getUpperBound(extent);
    if (upper < 0 || upper > mostColumns)
      return std::nullopt;
    bool isLast = i + 1 == compute.getNumIndices();
    blocks *= isLast ? llvm::divideCeil(upper, columnsOfBlock) : upper;
    if (blocks > mostColumns)
      return std::nullopt;
  }
  for (ReduceOp reduce : reduces) {
    int64_t upper = getUpperBound(reduce.getUpper()[0]);
    if (!runsAcross(reduce, compute) || upper < 0)
      return std::nullopt;
    rows = std::max(rows, upper);
  }
  // Statements of one kernel may share their parts.
  bool hasDistances =
      compute->getParentOp()
          ->walk([](ReduceOp reduce) {
            return matchSquaredDistance(reduce) ? WalkResult::interrupt() : WalkResult::advance();
          })
          .wasInterrupted();
  // Of sizes that are known by their bounds alone, parts of one length are the more even ones.
  Value column = compute.getIndex(compute.getNumIndices() - 1);
  if (llvm::all_of(reduces, [&](ReduceOp reduce) { return isProductWithRow(reduce, column); })) {
    int64_t most = blocksOfProducts * target.getProcessors() / std::max<int64_t>(blocks, 1);
    int64_t parts = std::min(most, rows / leastRows);
    if (parts < 2)
      return std::nullopt;
    int64_t length = llvm::divideCeil(rows, parts);
    return Split{length, true, parts};
  }
  int64_t wanted = (hasDistances ? blocksOfDistances : blocksOfSums) * target.getProcessors();
  int64_t parts = llvm::divideCeil(wanted, std::max<int64_t>(blocks, 1));
  int64_t length = std::max<int64_t>(llvm::PowerOf2Ceil(llvm::divideCeil(rows, parts)), leastRows);
  if (parts < 2 || length * 2 > rows)
    return std::nullopt;
  return Split{length, true};
}

/// In how many parts the kernel's schedule block wants a reduction, if it says so.
static std::optional<int64_t> askedParts(ReduceOp reduce, ComputeOp compute) {
  auto kernel = compute->getParentOfType<KernelOp>();
  auto name = cast<StringAttr>(reduce.getIndexNames()[0]);
  return kernel ? splitOf(kernel, name.getValue()) : std::nullopt;
}

/// How many parts of one length a reduction gets, where that is what is known of them.
static std::optional<int64_t> numParts(ReduceOp reduce, ComputeOp compute, const Split &how) {
  std::optional<int64_t> asked = askedParts(reduce, compute);
  return asked || !how.parts ? asked : how.parts;
}

/// Why a reduction stays whole, or nothing.
static std::optional<StringRef> whyNotSplit(ReduceOp reduce, ComputeOp compute, int64_t chunk) {
  if (reduce.isOnline() || reduce.getKind(0) == ReduceKind::ArgMax ||
      reduce.getKind(0) == ReduceKind::ArgMin)
    return StringRef("its partial results would not be numbers of the same kind");
  int64_t upper = getUpperBound(reduce.getUpper()[0]);
  // Of several indices the outermost is divided, value by value.
  int64_t enough = reduce.getNumIndices() == 1 ? chunk : 1;
  bool isShort = upper >= 0 && upper <= enough;
  if (isShort && !askedParts(reduce, compute))
    return StringRef("it is short");
  for (Value bound : reduce->getOperands())
    if (!isKernelLevel(bound, compute))
      return StringRef("its bounds vary");
  std::optional<SquaredDistance> distance = matchSquaredDistance(reduce);
  for (Value input : getInputs(reduce)) {
    if (distance && input == distance->point)
      continue;
    for (Operation *op : getSlice(input, compute.getBlock()))
      if (op->getNumRegions())
        return StringRef("its terms need another reduction");
  }
  return std::nullopt;
}

namespace {
struct SplitReductionsPass : tk::impl::SplitReductionsBase<SplitReductionsPass> {
  using SplitReductionsBase::SplitReductionsBase;

  void runOnOperation() override {
    SmallVector<ComputeOp> computes;
    partials.clear();
    distances.clear();
    getOperation()->walk([&](ComputeOp compute) { computes.push_back(compute); });
    for (ComputeOp compute : computes) {
      SmallVector<ReduceOp> reduces(compute.getBlock()->getOps<ReduceOp>());
      bool asked = llvm::any_of(
          reduces, [&](ReduceOp reduce) { return askedParts(reduce, compute).has_value(); });
      std::optional<Split> across;
      if (asked && reduces.size() == 1 && canSplitContraction(compute, reduces.front()))
        continue;
      if (!asked && !hasFewOutputs(compute)) {
        across = splitAcross(compute, reduces);
        if (!across)
          continue;
      }
      // One loop that stays whole takes as long as all of them.
      bool allSplit = true;
      for (ReduceOp reduce : reduces)
        if (auto why = whyNotSplit(reduce, compute, across ? across->length : chunk)) {
          note(reduce, passName, Verdict::Declined,
               "the " + describe(reduce) + " stays whole: " + *why);
          allSplit = false;
        }
      if (!allSplit)
        continue;
      for (ReduceOp reduce : reduces) {
        bool isSingle = reduce.getNumIndices() == 1;
        split(reduce, compute, across.value_or(Split{isSingle ? chunk : 1}));
        ++numSplit;
      }
    }
    for (ComputeOp partial : partials)
      llvm::any_of(distances, [&](ComputeOp other) { return replaceBySums(partial, other); });
  }

private:
  void split(ReduceOp reduce, ComputeOp compute, Split how);
  Value chunkLength(OpBuilder &builder, ReduceOp reduce, ComputeOp compute, Value trip, Split how);

  SmallVector<ComputeOp> partials;  ///< statements of plain partial results
  SmallVector<ComputeOp> distances; ///< ... of squared distances
};
} // namespace

std::pair<Value, Value> Parts::boundsOf(Value number, OpBuilder &builder, Location loc) const {
  Value offset = arith::MulIOp::create(builder, loc, number, length);
  Value first = arith::AddIOp::create(builder, loc, lower, offset);
  Value end = arith::AddIOp::create(builder, loc, first, length);
  return {first, arith::MinSIOp::create(builder, loc, end, upper)};
}

std::string tk::chunkNameOf(ReduceOp reduce) {
  return (cast<StringAttr>(reduce.getIndexNames()[0]).getValue() + ".chunk").str();
}

Operation *tk::createPartial(
    ReduceOp reduce, ComputeOp compute, const Parts &parts, ArrayRef<StringRef> suffixes,
    llvm::function_ref<SmallVector<Value>(OpBuilder &, Value number, IRMapping &mapping)> body) {
  OpBuilder builder(compute);
  SmallVector<StringRef> names;
  for (Attribute name : compute.getIndexNames())
    names.push_back(cast<StringAttr>(name).getValue());
  std::string chunkName = chunkNameOf(reduce);
  names = withChunk(names, StringRef(chunkName), parts.how);
  SmallVector<Value> extents =
      withChunk(SmallVector<Value>(compute.getExtents()), parts.count, parts.how);
  SmallVector<std::string> results;
  for (StringRef suffix : suffixes)
    results.push_back((cast<StringAttr>(compute.getNames()[0]).getValue() + suffix).str());
  SmallVector<Type> types(suffixes.size(), reduce.getResult(0).getType());
  return ComputeOp::create(builder, reduce.getLoc(), names, extents, types,
                           SmallVector<StringRef>(results.begin(), results.end()),
                           ArrayRef<SmallVector<unsigned>>{},
                           [&](OpBuilder &inner, Location loc, ValueRange indices) {
                             bool isAcross = parts.how.isAcross;
                             IRMapping mapping;
                             mapping.map(compute.getBlock()->getArguments(),
                                         isAcross ? indices.drop_front() : indices.drop_back());
                             Value number = isAcross ? indices.front() : indices.back();
                             YieldOp::create(inner, loc, body(inner, number, mapping));
                           });
}

/// Of `statements`, one that computes what `partial` does, if any.
static ComputeOp findEqual(ArrayRef<ComputeOp> statements, ComputeOp partial) {
  for (ComputeOp other : statements) {
    ScalarEquality equality;
    if (other->getBlock() != partial->getBlock() ||
        !equality.equal(other.getExtents(), partial.getExtents()))
      continue;
    for (auto [a, b] :
         llvm::zip_equal(other.getBlock()->getArguments(), partial.getBlock()->getArguments()))
      equality.identify(a, b);
    if (equality.equal(other.getYield().getValues(), partial.getYield().getValues()))
      return other;
  }
  return {};
}

/// A reduction of partial results, in the place of `reduce`; those of `earlier` statements are used
/// again.
static Value splitPlain(ReduceOp reduce, ComputeOp compute, const Parts &parts,
                        SmallVectorImpl<ComputeOp> &earlier) {
  Location loc = reduce.getLoc();
  auto partial = cast<ComputeOp>(createPartial(
      reduce, compute, parts, {".partial"},
      [&](OpBuilder &body, Value number, IRMapping &mapping) -> SmallVector<Value> {
        auto [first, end] = parts.boundsOf(number, body, loc);
        Value whole = cloneSlice(body, reduce.getResult(0), compute.getBlock(), mapping);
        auto part = whole.getDefiningOp<ReduceOp>();
        part.getLowerMutable()[0].set(first);
        part.getUpperMutable()[0].set(end);
        return {whole};
      }));
  if (ComputeOp equal = findEqual(earlier, partial)) {
    partial.erase();
    partial = equal;
  } else {
    earlier.push_back(partial);
  }
  OpBuilder builder(reduce);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  std::string chunkName = chunkNameOf(reduce);
  auto combined =
      ReduceOp::create(builder, loc, reduce.getKind(0), ArrayRef<StringRef>{chunkName},
                       ValueRange{zero}, ValueRange{parts.count}, reduce.getResult(0).getType(),
                       [&](OpBuilder &inner, Location, ValueRange indices) -> Value {
                         SmallVector<Value> own(compute.getBlock()->getArguments());
                         SmallVector<Value> at = withChunk(own, Value(indices.front()), parts.how);
                         return LoadOp::create(inner, loc, partial->getResult(0), at, Value());
                       });
  return combined.getResult(0);
}

/// How many values of the first index one part takes in.
Value SplitReductionsPass::chunkLength(OpBuilder &builder, ReduceOp reduce, ComputeOp compute,
                                       Value trip, Split how) {
  Location loc = reduce.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  std::optional<int64_t> parts = numParts(reduce, compute, how);
  if (!parts)
    return constant(how.length);
  int64_t unit = reduce.getNumIndices() == 1 ? partAlignment : 1;
  Value padded = arith::AddIOp::create(builder, loc, trip, constant(*parts * unit - 1));
  Value units = FloorDivOp::create(builder, loc, padded, constant(*parts * unit));
  // At least one: where there are no terms, their number is still divided by it.
  units = arith::MaxSIOp::create(builder, loc, units, constant(1));
  return arith::MulIOp::create(builder, loc, units, constant(unit));
}

void SplitReductionsPass::split(ReduceOp reduce, ComputeOp compute, Split how) {
  OpBuilder builder(compute);
  Location loc = reduce.getLoc();
  IRMapping hoisted;
  Value lower = cloneSlice(builder, reduce.getLower()[0], compute.getBlock(), hoisted);
  Value upper = cloneSlice(builder, reduce.getUpper()[0], compute.getBlock(), hoisted);
  Value trip = builder.createOrFold<arith::SubIOp>(loc, upper, lower);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  trip = arith::MaxSIOp::create(builder, loc, trip, zero);
  Value length = chunkLength(builder, reduce, compute, trip, how);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value round = builder.createOrFold<arith::SubIOp>(loc, length, one);
  Value padded = arith::AddIOp::create(builder, loc, trip, round);
  Value numChunks = FloorDivOp::create(builder, loc, padded, length);
  if (std::optional<int64_t> parts = numParts(reduce, compute, how)) {
    Value most = arith::ConstantIndexOp::create(builder, loc, *parts);
    numChunks = arith::MinSIOp::create(builder, loc, numChunks, most);
  }
  note(reduce, passName, Verdict::Derived,
       "the " + describe(reduce) + " is computed from partial results");
  const Parts parts{lower, upper, length, numChunks, how};
  Value combined;
  if (matchSquaredDistance(reduce)) {
    SplitDistance distance = splitSquaredDistance(reduce, compute, parts);
    distances.push_back(distance.partial);
    combined = distance.combined;
  } else {
    combined = splitPlain(reduce, compute, parts, partials);
  }
  reduce.getResult(0).replaceAllUsesWith(combined);
  reduce.erase();
}
