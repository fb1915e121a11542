//===- ChainLength.cpp - how long the parts of a split-KV are -------------===//
#include "passes/tensor/split/ChainLength.h"
#include "passes/machine/limits/Splits.h"

#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/Machine.h"
#include "passes/machine/StreamCost.h"
#include "passes/machine/TileFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk;

using namespace limits::chain_length;

/// Does a table say where the terms of `reduce` are?
static bool readsByTable(ReduceOp reduce) {
  return reduce
      .walk([](LoadOp load) {
        bool isNamed = llvm::any_of(load.getIndices(), [](Value index) {
          return llvm::any_of(getSlice(index, index.getParentBlock()), llvm::IsaPred<LoadOp>);
        });
        return isNamed ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// How many blocks have the `rows` rows that share a range: warpgroups that divide the columns of
/// the outputs have one tile of 64 rows.
int64_t ChainLength::countTilesOfRows(gpu::TargetAttr target, int64_t rows) {
  int64_t columns = 1;
  for (unsigned p = 0; p < compute.getNumIndices(); ++p)
    if (!llvm::is_contained(chain.rows, p) && !llvm::is_contained(chain.batch, p) &&
        chain.grouped != p && columns <= mostColumnsOfChain)
      columns *=
          getSizeFact(kernel, compute.getExtents()[p]).upper.value_or(mostColumnsOfChain + 1);
  const bool areDivided = hasFeature(target, Feature::WarpgroupProducts) &&
                          columns > mostColumnsOfWarpgroup && columns <= mostColumnsOfChain;
  return areDivided ? std::max<int64_t>(llvm::divideCeil(rows, rowsOfWarpgroup), 1) : 1;
}

/// Does more than conversions stand between a loaded number and the product that takes it, such as
/// a scale and a zero point?
static bool isComputedFurther(LoadOp load) {
  Operation *op = load;
  while (op->hasOneUse() && isa<arith::SIToFPOp, arith::UIToFPOp, arith::ExtSIOp, arith::ExtUIOp,
                                arith::ExtFOp, arith::TruncFOp>(*op->user_begin()))
    op = *op->user_begin();
  return llvm::any_of(op->getUsers(), [](Operation *user) {
    return !isa<YieldOp>(user) &&
           !(isa<arith::MulFOp>(user) && user->hasOneUse() && isa<YieldOp>(*user->user_begin()));
  });
}

/// How many bytes a block reads for each term, and has of it in shared memory: two stages, or one
/// as it is read beside a converted one that operands share. Nothing if extents are not known, or
/// if an operand does not go to the matrix unit.
std::optional<ChainLength::Streamed> ChainLength::countStreamed() {
  constexpr int64_t most = int64_t(1) << 20;
  Streamed streamed;
  bool isKnown = true;
  reduce.walk([&](LoadOp load) {
    int64_t elements = 1;
    bool isStreamed = false;
    llvm::SmallPtrSet<Value, 4> indices;
    for (Value place : load.getIndices())
      for (BlockArgument index : getIterationIndices(place))
        if (indices.insert(index).second) {
          isStreamed |= index == reduce.getIndex(0);
          auto inner = dyn_cast<ReduceOp>(index.getOwner()->getParentOp());
          Value extent;
          if (inner && inner != reduce)
            extent = inner.getUpper()[index.getArgNumber()];
          else if (index.getOwner() == compute.getBlock() &&
                   !llvm::is_contained(chain.batch, index.getArgNumber()) &&
                   chain.grouped != index.getArgNumber())
            extent = compute.getExtents()[index.getArgNumber()];
          if (extent)
            elements = std::min(most, elements * getSizeFact(kernel, extent).upper.value_or(most));
        }
    const int64_t bits = load.getType().getIntOrFloatBitWidth();
    if (!isStreamed)
      return;
    isKnown &= elements < most && (bits <= 16 || elements == 1);
    streamed.isComputed |= bits <= 8 && isComputedFurther(load);
    streamed.read += elements * bits / 8;
    const int64_t ofHalves = elements * 2;
    streamed.staged += bits <= 8 ? elements : 2 * elements * bits / 8;
    streamed.converted = std::max(streamed.converted, bits <= 8 ? ofHalves : 0);
  });
  return isKnown ? std::optional(streamed) : std::nullopt;
}

/// The length of parts that takes the least time, if that is much less than with `length`.
int64_t ChainLength::avoidShortRound(gpu::TargetAttr target, int64_t rows, int64_t batch,
                                     int64_t length) {
  std::optional<Streamed> streamed = countStreamed();
  const int64_t end = *getSizeFact(kernel, upper).upper;
  if (!streamed || streamed->read == 0 || streamed->isComputed || end <= length)
    return length;
  const int64_t numerators = rowsOfWarpTile * termsOfStep * 2;
  const int64_t shared =
      termsOfStep * (streamed->staged + streamed->converted) + numerators + sharedOfSystem;
  const int64_t atOnce = std::min((target.getShared() + sharedOfSystem) / shared,
                                  registersOfProcessor / (registersOfThread * lanesOfWarp));
  auto timeOf = [&](int64_t terms) {
    cost::StreamWork work;
    work.blocks = batch * llvm::divideCeil(end, terms);
    work.places = std::max<int64_t>(atOnce, 1) * target.getProcessors();
    work.terms = terms;
    work.allTerms = static_cast<double>(batch) * static_cast<double>(end);
    work.bytesOfTerm = static_cast<double>(streamed->read);
    work.bytesOfState = termsOfState * static_cast<double>(streamed->read * rows);
    return cost::timeOfStream(work);
  };
  int64_t best = length;
  const auto least = static_cast<int64_t>(llvm::alignTo(length / 2, termsOfPartUnit));
  for (int64_t other = std::max(leastTermsOfPart, least);
       other <= std::min(length + length / 2, end); other += termsOfPartUnit)
    if (timeOf(other) < timeOf(best))
      best = other;
  return timeOf(best) < mostTimeOfOtherLength * timeOf(length) ? best : length;
}

/// Does a warpgroup of each block take pages that TMA brings? A table names them.
bool ChainLength::streamsPages(gpu::TargetAttr target, int64_t rows) {
  if (!hasFeature(target, Feature::WarpgroupProducts) || rows < 2 || !readsByTable(reduce) ||
      chain.lacksRows(kernel, compute))
    return false;
  std::optional<Streamed> streamed = countStreamed();
  return streamed && streamed->read > 0 && streamed->converted == 0;
}

std::optional<int64_t> ChainLength::choose(gpu::TargetAttr target) {
  std::optional<int64_t> rows = chain.countRows(kernel, compute),
                         batch = chain.countBatch(kernel, compute),
                         end = getSizeFact(kernel, upper).upper;
  if (!target || !rows || !batch || !end || *rows > mostSharingRows)
    return std::nullopt;
  // Each of a range's tiles of rows has a block.
  const int64_t tiles = countTilesOfRows(target, *rows);
  *batch *= tiles;
  const int64_t parts = chain.lacksRows(kernel, compute) ? partsOfWarpWanted : partsWanted;
  int64_t wanted = llvm::divideCeil(parts * target.getProcessors(), *batch);
  // Idle processors cost more than states do.
  const bool isOfPages = streamsPages(target, *rows);
  const int64_t least =
      std::max(*rows * leastTermsOfRow, isOfPages ? leastTermsOfPages : leastTermsOfPart);
  int64_t shared = std::min(least, *end * *batch / target.getProcessors());
  int64_t length = std::max({*end / wanted, leastTermsOfPart, shared});
  // Rows that a table names are boxes only in parts, whose rows are gathered in groups.
  if (tiles > 1 && readsByTable(reduce))
    length = std::min(length, std::max<int64_t>(llvm::divideCeil(*end, 2), leastTermsOfPart));
  length = static_cast<int64_t>(llvm::alignTo(length, termsOfPartUnit));
  if (*rows > 1 && *rows <= rowsOfWarpTile && !isOfPages && !chain.lacksRows(kernel, compute))
    length = avoidShortRound(target, *rows, *batch, length);
  return length;
}
