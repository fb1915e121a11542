//===- SplitContractions.cpp - split-K of products with few tiles ---------===//
//
// A matrix product with few result tiles and a long reduction leaves most multiprocessors idle.
// This pass cuts the reduction into parts that different blocks compute (split-K).
//
// 1. Find a compute op that sums products of two operands over one index from 0, and no others but
//    of few terms. The result must have several rows and several columns. The target must have
//    wgmma.
// 2. Choose the number of parts by the kind of the operands:
//    * 16-bit operands and 8-bit floats for wgmma: the number with the least predicted time of the
//      best tile (WarpgroupTiles.h), plus storing and adding the parts. A part has at least 1024
//      elements, and of more than 16 parts each has at least 8192.
//    * An operand that threads convert, such as 8-bit weights, with at most 64 rows: as many parts
//      as give each multiprocessor two blocks, if the operands are then read faster. A sum over
//      groups, each a product that is scaled, is cut between groups.
//    * Operands that threads compute, or load from rows of no alignment, for mma.sync: as many
//      parts as keep the multiprocessors busy.
//    * f32 and f64 operands for CUDA cores or mma.sync, loaded or computed: as many parts as keep
//      the multiprocessors busy with the best tile (CoreTiles.h).
//    * `split k = n` in a schedule block: n parts, at most 64.
// 3. A new compute op with the part as its first index computes the parts in the type of the sum.
//    All parts have one length, a multiple of a tile's K. Padded loads give zeros past the end.
//    Parts of groups, of f32 and of f64 have loop bounds instead. A scale that a run of elements
//    shares is never cut.
// 4. The old compute op adds the parts in a fixed order, more than 64 of them by a loop. Several
// sums of f32 or f64 in one loop are
//    cut together. Another sum of few terms stays with the old compute op.
//
// The pass declines if one part has the least predicted time, or if the sizes are unknown.
//
//   %c = tk.compute ["i", "j"] {tk.reduce [sum] ["k"] from (0) to (%K) {a[i, k] * b[k, j]}}
//     =>
//   %p = tk.compute ["k.part", "i", "j"] in (4, ...) {tk.reduce [sum] ["k"] from (0) to (%length) {
//          pad(a[i, part * length + k], 0) * pad(b[part * length + k, j], 0)}}
//   %c = tk.compute ["i", "j"] {p[0, i, j] + p[1, i, j] + p[2, i, j] + p[3, i, j]}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/split/SplitContractions.h"
#include "passes/machine/limits/Splits.h"

#include "passes/Passes.h"
#include "passes/analysis/Declines.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/PackedFactors.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CoreTiles.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Machine.h"
#include "passes/machine/WarpgroupTiles.h"
#include "passes/plan/ScheduleBlock.h"
#include "passes/tensor/split/ContractionFactors.h"
#include "passes/tensor/split/DeclinedProducts.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "dialects/tkgpu/TkGpuProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

namespace tk {
#define GEN_PASS_DEF_SPLITCONTRACTIONS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-split-contractions";
using namespace limits::split_contractions;

namespace {

class ContractionSplit {
public:
  /// Of a statement one of whose reductions can be split.
  explicit ContractionSplit(ComputeOp compute)
      : kernel(compute->getParentOfType<KernelOp>()), compute(compute),
        reduce(getSplitContraction(compute)), group(findGroup(compute, reduce)),
        factors(group ? Factors::Unfit : classifyFactors(kernel, reduce)),
        isPacked(factors == Factors::Converted && findPackedFactor(reduce)),
        onWarpgroups(
            hasFeature(compute->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(
                           gpu::targetAttrName),
                       Feature::WarpgroupProducts)),
        loc(reduce.getLoc()) {}

  /// How many parts; 1 if there is no use in cutting.
  int64_t chooseParts(int64_t processors);
  void apply(int64_t parts);

private:
  int64_t choosePartsToRead(int64_t processors);
  int64_t choosePartsOfWarps(int64_t processors);
  int64_t choosePartsOfWide(int64_t processors);
  bool endsWithParts(int64_t parts);
  ComputeOp createParts(Value parts, Value length);
  Value addParts(ComputeOp partial, unsigned n, int64_t count);
  void takePart(ReduceOp part, Value number, Value length);
  void takeRange(ReduceOp part, Value number, Value length);

  KernelOp kernel;
  ComputeOp compute;
  ReduceOp reduce;
  ReduceOp group;  ///< the product that `reduce` sums group by group, if it does
  Factors factors; ///< of `reduce` itself
  bool isPacked;   ///< one factor is computed from packed numbers
  bool onWarpgroups;
  Location loc;
};

struct SplitContractions : tk::impl::SplitContractionsBase<SplitContractions> {
  void runOnOperation() override {
    SmallVector<ComputeOp> computes;
    getOperation()->walk([&](ComputeOp compute) { computes.push_back(compute); });
    for (ComputeOp compute : computes) {
      noteDeclinedProducts(compute);
      int64_t parts = countContractionParts(compute);
      if (parts < 2) {
        decline(compute, passName,
                "it has no single sum to split, or one part takes the least time");
        continue;
      }
      ContractionSplit(compute).apply(parts);
      ++numSplit;
    }
  }
};

} // namespace

int64_t tk::countContractionParts(ComputeOp compute) {
  auto target =
      compute->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  if (!getSplitContraction(compute))
    return 1;
  return ContractionSplit(compute).chooseParts(target.getProcessors());
}

int64_t ContractionSplit::chooseParts(int64_t processors) {
  auto name = cast<StringAttr>(reduce.getIndexNames()[0]);
  if (std::optional<int64_t> asked = splitOf(kernel, name.getValue()))
    return std::min(*asked, mostAskedParts);
  if (group || factors == Factors::Converted)
    return choosePartsToRead(processors);
  if (factors == Factors::Wide)
    return choosePartsOfWide(processors);
  if (factors == Factors::Unaligned || factors == Factors::Computed || !onWarpgroups)
    return choosePartsOfWarps(processors);
  std::optional<int64_t> length = getSizeFact(kernel, reduce.getUpper()[0]).upper;
  std::optional<ResultSize> size = sizeOfResults(kernel, compute);
  if (!length || !size)
    return 1;
  auto timeOf = [&](int64_t parts) {
    double least = std::numeric_limits<double>::max();
    for (const WarpgroupTile &tile : warpgroupTiles) {
      int64_t tiles = parts * size->others * tile.count(size->rows, size->columns);
      least = std::min(least, tile.timeOf(tiles, processors));
    }
    bool areNarrow = factors == Factors::Narrow;
    double bytes = (areNarrow ? 1.0 : 2.0) *
                   static_cast<double>(*length * (size->rows + size->columns) * size->others);
    double terms = (areNarrow ? timeOfNarrowTerm : 1.0) *
                   static_cast<double>(llvm::divideCeil(*length, parts));
    double time = std::max(least * terms, costOfByte * bytes);
    double outputs = static_cast<double>(size->rows * size->columns * size->others);
    return parts == 1 ? time : time + costOfOutput * outputs * parts + costOfLaunch;
  };
  int64_t best = 1;
  const int64_t most = std::clamp(*length / lengthOfManyParts, mostParts, mostReducedParts);
  for (int64_t parts = 2; parts <= std::min(most, *length / shortestPart); ++parts)
    if (timeOf(parts) < (parts > mostAskedParts ? worthOfMoreParts : 1) * timeOf(best))
      best = parts;
  bool isWorth = factors != Factors::Narrow || timeOf(best) < worthOfNarrowParts * timeOf(1);
  return isWorth ? best : 1;
}

/// Few rows of a product with a factor that threads convert, which is bound by memory: as many
/// parts as give each processor its blocks, if the bytes that come faster make up for them.
int64_t ContractionSplit::choosePartsToRead(int64_t processors) {
  std::optional<int64_t> count = getSizeFact(kernel, reduce.getUpper()[0]).upper;
  std::optional<ResultSize> size = sizeOfResults(kernel, compute);
  if (!count || !size || size->rows > rowsOfWarpgroup)
    return 1;
  int64_t tiles = size->others * llvm::divideCeil(size->columns, rowsOfWarpgroup);
  int64_t terms = group ? std::max<int64_t>(*getConstantIndex(group.getUpper()[0]), 1) : 1;
  int64_t length = *count * terms;
  int64_t parts =
      std::min({blocksThatRead * processors / tiles, mostParts, length / shortestPart, *count});
  if (isPacked)
    while (parts > 1 && !endsWithParts(parts))
      --parts;
  if (parts < 2)
    return 1;
  double bytes = static_cast<double>(length * (size->rows + size->columns) * size->others);
  auto timeOf = [&](int64_t count) {
    double missing =
        blocksThatFill * static_cast<double>(processors) / static_cast<double>(count * tiles);
    return costOfByte * bytes * std::cbrt(1 + missing * missing * missing);
  };
  double outputs = static_cast<double>(size->rows * size->columns * size->others);
  double added = costOfOutput * outputs * static_cast<double>(parts) +
                 costOfLaunch * (group ? 1 : costOfScaledTerms);
  return timeOf(parts) + added < timeOf(1) ? parts : 1;
}

/// Factors that warps multiply, since there are no warpgroups, rows of 16 bits are not aligned, or
/// threads compute them: a block waits for each step.
int64_t ContractionSplit::choosePartsOfWarps(int64_t processors) {
  std::optional<int64_t> length = getSizeFact(kernel, reduce.getUpper()[0]).upper;
  std::optional<ResultSize> size = sizeOfResults(kernel, compute);
  if (!length || !size)
    return 1;
  const int64_t tiles = size->others * llvm::divideCeil(size->rows, rowsOfWarpgroup) *
                        llvm::divideCeil(size->columns, rowsOfWarpgroup);
  // Rows of many tiles are stored with padding (tk-materialize-operands:pad), and read in bulk.
  // Warpgroups may multiply what threads compute, which is faster, if blocks do not share the sum.
  const int64_t mostTiles = factors == Factors::Computed ? processors / 4 : processors / 2;
  if (onWarpgroups && tiles >= mostTiles)
    return 1;
  const double outputs = static_cast<double>(size->rows * size->columns * size->others);
  auto timeOf = [&](int64_t parts) {
    const int64_t waves = llvm::divideCeil(parts * tiles, blocksThatRead * processors);
    const int64_t steps = llvm::divideCeil(llvm::divideCeil(*length, parts), partUnit);
    const double time = timeOfStep * static_cast<double>(waves * steps);
    const double stored = partOfByte * cost::byte * 4 * outputs * static_cast<double>(parts);
    return parts == 1 ? time : time + stored + cost::launch;
  };
  int64_t best = 1;
  for (int64_t parts = 2; parts <= std::min(mostReducedParts, *length / shortestPartOfWarps);
       ++parts)
    if (timeOf(parts) < worthOfMoreParts * timeOf(best))
      best = parts;
  return best;
}

/// Of f32 and f64: tk-select-schedule takes the tile that suits the parts best.
int64_t ContractionSplit::choosePartsOfWide(int64_t processors) {
  std::optional<int64_t> length = getSizeFact(kernel, reduce.getUpper()[0]).upper;
  std::optional<ResultSize> size = sizeOfResults(kernel, compute);
  if (!length || !size)
    return 1;
  bool isF64 = reduce.getResult(0).getType().isF64();
  ArrayRef<CoreTile> tiles = isF64 ? ArrayRef(coreTilesOfF64) : ArrayRef(coreTiles);
  double bytes = static_cast<double>(size->rows * size->columns * size->others) * (isF64 ? 8 : 4);
  auto timeOf = [&](int64_t parts) {
    double least = std::numeric_limits<double>::max();
    for (const CoreTile &tile : tiles) {
      int64_t count = parts * size->others * tile.count(size->rows, size->columns);
      least = std::min(least, tile.timeOf(count, llvm::divideCeil(*length, parts), processors));
    }
    double added = partOfByte * cost::byte * bytes * static_cast<double>(parts) + cost::launch;
    return parts == 1 ? least : least + added;
  };
  int64_t best = 1;
  for (int64_t parts = 2; parts <= std::min(mostReducedParts, *length / shortestWidePart); ++parts)
    if (timeOf(parts) < worthOfMoreParts * timeOf(best))
      best = parts;
  return best;
}

/// Do `parts` parts of one length, a multiple of a tile's k, end where the sum does?
bool ContractionSplit::endsWithParts(int64_t parts) {
  return getSizeFact(kernel, reduce.getUpper()[0]).divisor % (parts * convertedUnit) == 0;
}

/// Makes `part` the terms from `number` * `length` on; those beyond the end are zero. There are
/// none of packed numbers.
void ContractionSplit::takePart(ReduceOp part, Value number, Value length) {
  part.getUpperMutable()[0].set(length);
  OpBuilder inner = OpBuilder::atBlockBegin(part.getBlock());
  Value k = part.getIndex(0);
  llvm::SmallPtrSet<Operation *, 4> quotients;
  // Runs of terms are a part's: their number is that of the part's first one and of those before.
  for (Operation *user : llvm::make_early_inc_range(k.getUsers()))
    if (isPacked && isa<FloorModOp>(user) && user->getOperand(0) == k) {
      quotients.insert(user); // words are not cut, so that places in them stay
    } else if (std::optional<int64_t> run =
                   user->getNumResults() ? divisorOf(user->getResult(0), k) : std::nullopt) {
      OpBuilder after(user->getContext());
      after.setInsertionPointAfter(user);
      Value runs = FloorDivOp::create(after, loc, length.getType(), length,
                                      arith::ConstantIndexOp::create(after, loc, *run));
      Value before = arith::MulIOp::create(after, loc, number, runs);
      auto at = arith::AddIOp::create(after, loc, before, user->getResult(0));
      user->getResult(0).replaceAllUsesExcept(at, at);
      quotients.insert(user);
    }
  Value first = arith::MulIOp::create(inner, loc, number, length);
  auto at = arith::AddIOp::create(inner, loc, first, k);
  k.replaceUsesWithIf(at, [&](OpOperand &use) {
    return use.getOwner() != at && !quotients.contains(use.getOwner());
  });
  if (isPacked)
    return;
  part.walk([&](LoadOp load) {
    OpBuilder before(load);
    load.getPadMutable().assign(
        arith::ConstantOp::create(before, loc, before.getZeroAttr(load.getResult().getType())));
  });
}

/// Makes `part` the `length` groups or terms from `number` * `length` on, or what there is of them:
/// blocks go through groups one by one, so that ends need no masks, and through terms by copies of
/// threads, which have masks.
void ContractionSplit::takeRange(ReduceOp part, Value number, Value length) {
  OpBuilder before(part);
  Value first = arith::MulIOp::create(before, loc, number, length);
  Value end = arith::AddIOp::create(before, loc, first, length);
  end = arith::MinSIOp::create(before, loc, end, part.getUpper()[0]);
  part.getLowerMutable()[0].set(first);
  part.getUpperMutable()[0].set(end);
}

/// The statement of the parts: the part, then the compute's indices.
ComputeOp ContractionSplit::createParts(Value parts, Value length) {
  OpBuilder builder(compute);
  std::string partName = (cast<StringAttr>(reduce.getIndexNames()[0]).getValue() + ".part").str();
  SmallVector<StringRef> names = {partName};
  for (Attribute name : compute.getIndexNames())
    names.push_back(cast<StringAttr>(name).getValue());
  SmallVector<Value> extents = {parts};
  llvm::append_range(extents, compute.getExtents());
  std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + ".parts").str();
  SmallVector<std::string> results = {name};
  for (unsigned n = 1; n < reduce.getNumResults(); ++n)
    results.push_back(name + std::to_string(n));
  return ComputeOp::create(
      builder, loc, names, extents, llvm::to_vector(reduce.getResultTypes()),
      SmallVector<StringRef>(results.begin(), results.end()), ArrayRef<SmallVector<unsigned>>{},
      [&](OpBuilder &body, Location, ValueRange indices) {
        IRMapping mapping;
        for (auto [old, index] :
             llvm::zip_equal(compute.getBlock()->getArguments(), indices.drop_front()))
          mapping.map(old, index);
        Value whole = cloneSlice(body, reduce.getResult(0), compute.getBlock(), mapping);
        auto part = whole.getDefiningOp<ReduceOp>();
        if (group || factors == Factors::Wide || factors == Factors::Computed)
          takeRange(part, indices.front(), length);
        else
          takePart(part, indices.front(), length);
        YieldOp::create(body, loc, part.getResults());
      });
}

void ContractionSplit::apply(int64_t count) {
  OpBuilder builder(compute);
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  // The least multiple of a tile's k, or number of groups, with which the parts reach the end.
  int64_t unit = group                                                         ? 1
                 : factors == Factors::Narrow || factors == Factors::Converted ? convertedUnit
                 : factors == Factors::Wide                                    ? wideUnit
                                                                               : partUnit;
  Value step = constant(count * unit);
  Value padded =
      arith::AddIOp::create(builder, loc, reduce.getUpper()[0], constant(count * unit - 1));
  Value steps = FloorDivOp::create(builder, loc, padded.getType(), padded, step);
  Value length = arith::MulIOp::create(builder, loc, steps, constant(unit));
  ComputeOp partial = createParts(constant(count), length);
  note(reduce, passName, Verdict::Derived,
       "the " + describe(reduce) + " is computed in " + Twine(count) + " parts (split-K)");
  for (unsigned n = 0; n < reduce.getNumResults(); ++n)
    reduce.getResult(n).replaceAllUsesWith(addParts(partial, n, count));
  reduce.erase();
}

/// The sum of the parts of result `n`: written out, or a loop where that would be long.
Value ContractionSplit::addParts(ComputeOp partial, unsigned n, int64_t count) {
  OpBuilder body(reduce);
  auto load = [&](OpBuilder &builder, Value part) -> Value {
    SmallVector<Value> at = {part};
    llvm::append_range(at, compute.getBlock()->getArguments());
    return LoadOp::create(builder, loc, partial->getResult(n), at, Value());
  };
  if (count > mostAskedParts)
    return ReduceOp::create(
               body, loc, ReduceKind::Sum,
               ArrayRef<StringRef>{cast<StringAttr>(partial.getIndexNames()[0]).getValue()},
               ValueRange{arith::ConstantIndexOp::create(body, loc, 0)},
               ValueRange{partial.getExtents()[0]},
               getElementTypeOrSelf(partial->getResult(n).getType()),
               [&](OpBuilder &inner, Location, ValueRange index) { return load(inner, index[0]); })
        .getResult(0);
  Value sum;
  for (int64_t part = 0; part < count; ++part) {
    Value term = load(body, arith::ConstantIndexOp::create(body, loc, part));
    sum = sum ? arith::AddFOp::create(body, loc, sum, term).getResult() : term;
  }
  return sum;
}
