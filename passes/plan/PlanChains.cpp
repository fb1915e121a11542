//===- PlanChains.cpp - tiles of back-to-back contractions for wgmma ------===//
//
// The second contraction sums values that are computed from the first one's results, as in
// attention. Warpgroups of 64 rows share the operands that both contractions read for each element
// of the outer sum. Two things determine the number of warpgroups: the registers of a row's scores,
// softmax numerators and outputs, and the number of rows by which tiles exceed the last row.
//
//===----------------------------------------------------------------------===//
#include "dialects/tk/TkInvariance.h"
#include "passes/analysis/JointSums.h"
#include "passes/analysis/LongFunctions.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/Machine.h"
#include "passes/machine/TileFacts.h"
#include "passes/machine/WarpgroupTiles.h"
#include "passes/machine/limits/Products.h"
#include "passes/numerics/BoundScores.h"
#include "passes/numerics/FreeReferences.h"
#include "passes/plan/InvariantTiles.h"
#include "passes/plan/Planner.h"

using namespace mlir;
using namespace tk;

namespace {

using namespace limits::plan_chains;

} // namespace

/// Values of the indices that are not tiled, what is not bounded counting as many.
int64_t Planner::countOthers(Value m, Value n) {
  constexpr int64_t many = int64_t(1) << 20;
  int64_t others = 1;
  for (Value index : shape.compute.getBlock()->getArguments())
    if (index != m && index != n)
      others = std::min(others * std::max<int64_t>(shape.upperOf(index).value_or(many), 1), many);
  return others;
}

/// May a tile's last rows be the next one's too? What other blocks read must not be replaced.
static bool mayOverlap(ComputeOp compute) { return !gpu::getPlan(compute).inPlace; }

/// Are scores arguments of a function whose polynomial takes registers of each?
static bool haveLongFunctions(ComputeOp compute) {
  return compute
      .walk([](Operation *op) {
        return isLongFunction(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Does a range begin, and end, where `row` says, as a window's does?
static bool movesWithRow(ReduceOp reduction, BlockArgument row) {
  Dependence onRow{ValueRange(row)};
  return row && reduction.getNumIndices() == 1 && onRow.on(reduction.getLower().front()) &&
         onRow.on(reduction.getUpper().front());
}

/// Is a random number drawn for each score? The generator's rounds take registers of each.
static bool drawNumbers(ComputeOp compute) {
  return compute.walk([](RandOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Is a tensor read for each score, a bias for example? A step's elements of it are in registers
/// beside the scores.
static bool haveOperandOfScores(ComputeOp compute, Contraction &outer) {
  auto isOver = [](LoadOp load, Value index) {
    return llvm::any_of(load.getIndices(), [&](Value along) {
      return llvm::is_contained(getIterationIndices(along), index);
    });
  };
  return compute
      .walk([&](LoadOp load) {
        return isOver(load, outer.m) && isOver(load, outer.k) ? WalkResult::interrupt()
                                                              : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Of how many values of the other indices tiles of equal length are walked together, each value's
/// by several blocks at a time; 0: of all. Walked one value after the other, tiles of different
/// lengths are shared out unevenly if a round of all blocks ends within a value. In groups of which
/// whole numbers of lengths are a round they are not, but more is read at a time, which costs more
/// than that where factors are wide.
int64_t Planner::walkedTogether(Contraction &outer) {
  bool isNarrow = *shape.upperOf(outer.n) <= narrowOutputs;
  int64_t share = isNarrow ? blocksThatShare / 2 : blocksThatShare;
  if (countOthers(outer.m, outer.n) * share <= target.getProcessors())
    return 0;
  return isNarrow ? std::max<int64_t>(target.getProcessors() / blocksThatShare, 1) : 1;
}

/// Does the range of a chain move with its rows, and does nothing tie a step to the one before but
/// what it adds to, since scores are bounded or all but the first steps have the first ones'
/// reference (tk-keep-references)? Three warpgroups then come apart by themselves, each with a
/// first and a last step of its own, if these have few terms. Windows of plain scores have the rate
/// of two warpgroups 1.03 to 1.09 times (H200, d 128, 128 to 4096 keys; H100 0.985 to 1.065:
/// lab/results/2026-11-27-h200-windows-apart.md).
static bool comesApart(StatementShape &shape, Contraction &outer) {
  auto row = dyn_cast<BlockArgument>(outer.m);
  return row && row.getOwner() == shape.compute.getBlock() && movesWithRow(outer.op, row) &&
         (mayReferenceStay(outer.op) ||
          (haveLongFunctions(shape.compute) && areScoresBounded(shape.kernel, outer.op)));
}

/// How many warpgroups of 64 rows share the second factors of a chain. Narrow outputs leave room
/// for the registers of four on half as many scores at a time, if there are tiles for all
/// processors. On all scores there is room for three, which take fewer instructions a score, if
/// rows beyond the last one are few and nothing else needs many registers; but under a mask below
/// the diagonal of a short range short steps leave out more: a warpgroup ends where its rows do. So
/// do three where instructions, not products, are what a step takes, on outputs of any width that
/// half as many scores leave room for.
int64_t Planner::consumersOfChain(Contraction &outer) {
  constexpr int64_t many = 4, three = 3, few = 2;
  std::optional<int64_t> columns = shape.upperOf(outer.n), terms = shape.upperOf(outer.k),
                         rows = shape.upperOf(outer.m);
  if ((rows && *rows <= rowsOfWarpgroup) || *columns > mostColumnsOfWarpgroup)
    return 1;
  auto row = dyn_cast<BlockArgument>(outer.m);
  bool isBound = row && row.getOwner() == shape.compute.getBlock() &&
                 boundsReduction(shape.compute, row.getArgNumber());
  bool isShort = isBound && terms && *terms <= shortMaskedRange;
  int64_t tiles = countOthers(outer.m, outer.n) *
                  (rows ? llvm::divideCeil(*rows, rowsOfWarpgroup * many) : target.getProcessors());
  int64_t beyond = rows ? llvm::alignTo(*rows, rowsOfWarpgroup * three) - *rows : 0;
  bool isWide = outer.operand.getIntOrFloatBitWidth() == 16;
  bool areFewBeyond = !rows || beyond * partOfRowsBeyond <= *rows;
  if (*columns > narrowOutputs && *columns <= 2 * narrowOutputs && isWide && areFewBeyond &&
      tiles >= target.getProcessors() && mayOverlap(shape.compute) &&
      !haveOperandOfScores(shape.compute, outer) && !drawNumbers(shape.compute) &&
      comesApart(shape, outer))
    return three;
  if (*columns > narrowOutputs || tiles < target.getProcessors() || drawNumbers(shape.compute))
    return few;
  if (isShort && haveRegisters(outer, *columns, many, 64))
    return many;
  bool haveRoom = !haveLongFunctions(shape.compute) && !haveOperandOfScores(shape.compute, outer);
  return isWide && areFewBeyond && mayOverlap(shape.compute) && haveRoom ? three : many;
}

/// Does how long a range is follow from what is loaded? Blocks that stay would go through as many
/// tiles each, however short these are; of those that leave the next one takes the place.
static bool haveLoadedLengths(ReduceOp reduction) {
  SmallVector<Value> work(reduction.getUpper());
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (isa_and_nonnull<LoadOp>(op))
      return true;
    if (op && op->getNumRegions() == 0)
      llvm::append_range(work, op->getOperands());
  }
  return false;
}

/// Are a statement's results read by others alone? So are states of parts, whose rows are few:
/// what they take is time of memory, however long steps are.
static bool holdsParts(ComputeOp compute) {
  return llvm::all_of(compute->getUsers(), [](Operation *user) { return isa<LoadOp>(user); });
}

/// How many chains, each with scores of its own, one loop carries: as many as there are maxima.
static int64_t countChains(const Contraction &outer) {
  tk::ReduceOp loop = outer.op;
  int64_t maxima = llvm::count_if(llvm::seq<unsigned>(loop.getNumAccumulators()),
                                  [&](unsigned n) { return loop.getKind(n) == ReduceKind::Max; });
  return std::max<int64_t>(maxima, 1);
}

/// The registers that a thread of a block's `consumers` warpgroups has, of the block's `registers`.
static int64_t registersOfConsumer(int64_t registers, int64_t consumers) {
  return (registers - threadsOfWarpgroup * registersOfCopies) / (threadsOfWarpgroup * consumers);
}

/// Do the tiles of all scores that a step computes weights from, over `terms` of them, fit a
/// thread's registers beside all sums of weights that the loop carries, as the gradients of
/// attention have two of either? Weights take the registers of scores.
bool Planner::haveRegisters(Contraction &outer, int64_t columns, int64_t consumers, int64_t terms) {
  llvm::SmallPtrSet<Value, 4> scores;
  int64_t sums = 0;
  for (Contraction &other : shape.contractions) {
    sums += other.op == outer.op;
    if (outer.op->isProperAncestor(other.op))
      for (Value sum : other.op->getResults())
        scores.insert(getJointSum(cast<OpResult>(sum)));
  }
  int64_t ofThread = registersOfConsumer(registersOfProcessor, consumers);
  int64_t ofRow = sums * columns + int64_t(scores.size()) * terms;
  return sums + scores.size() <= 2 ||
         ofRow * rowsOfWarpgroup / threadsOfWarpgroup <= ofThread - registersBeside;
}

/// A warpgroup whose chain has a single step, as in windows of an image, does one thing after the
/// other: it waits for factors, for both products and for the store. Other blocks work meanwhile,
/// as many as have registers and two stages each.
void Planner::planShortChain(Contraction &outer) {
  const int64_t bytes = outer.operand.getIntOrFloatBitWidth() / 8 * tileOf(outer.n);
  const int64_t ofStage = (rowsOfWarpgroup + 2 * tileOf(outer.k)) * bytes;
  const int64_t ofResult = rowsOfWarpgroup * bytes;
  const int64_t ofThread = registersBeside + (2 * tileOf(outer.k) + tileOf(outer.n)) *
                                                 rowsOfWarpgroup / threadsOfWarpgroup;
  for (int64_t blocks = mostBlocksOfShortChain; blocks > 1; --blocks) {
    const int64_t room = (target.getShared() + sharedOfSystem) / blocks - sharedOfSystem;
    const int64_t fitting = (room - ofResult - sharedOfSystem) / ofStage;
    if (fitting < leastStagesOfShortChain ||
        ofThread > registersOfConsumer(registersOfProcessor / blocks, 1))
      continue;
    persistent = blocks;
    stages = std::min(stages, fitting);
    return;
  }
}

/// Scores, their 16-bit weights and the outputs of a row share a warpgroup's registers; those of
/// several chains, or under random numbers, have room on half as many terms.
void Planner::planWarpgroupChain(Contraction &outer) {
  int64_t consumers = std::max<int64_t>(block.consumers.value_or(consumersOfChain(outer)), 1);
  // Products beside the chain are on the same rows, whose tiles have 128 at most.
  bool isAlone = llvm::all_of(shape.contractions, [&](Contraction &other) {
    return other.op == outer.op || outer.op->isProperAncestor(other.op);
  });
  if (!isAlone)
    consumers = std::min<int64_t>(consumers, 2);
  if (block.tiles.contains(outer.m) || !mayOverlap(shape.compute))
    consumers = llvm::bit_floor<uint64_t>(consumers);
  if (countChains(outer) > 1)
    consumers = std::min<int64_t>(consumers, 2);
  // Layouts have powers of two: of four warpgroups that three stand for the last does not run.
  int64_t groups = llvm::bit_ceil<uint64_t>(consumers);
  set(outer.m, rowsOfWarpgroup * groups);
  const int64_t columns =
      block.tiles.contains(outer.n) ? tileOf(outer.n) : fit(outer.n, mostColumnsOfChain, 16);
  const std::optional<int64_t> rows = shape.upperOf(outer.m);
  set(outer.n, isBatchInvariant(shape.kernel) && rows && isAlone
                   ? invariantColumns(columns, columns,
                                      countOthers(outer.m, outer.n) *
                                          llvm::divideCeil(*rows, tileOf(outer.m)),
                                      target.getProcessors(), 32)
                   : columns);
  // Warpgroups that divide columns share the rows.
  const int64_t parts = llvm::divideCeil(tileOf(outer.n), mostColumnsOfWarpgroup);
  bool haveRoom = consumers <= 2 || (consumers == 3 && columns <= narrowOutputs);
  haveRoom &= countChains(outer) == 1 && !drawNumbers(shape.compute);
  haveRoom &= haveRegisters(outer, columns, consumers, 128);
  // Ranges of lengths of their own, of which blocks have one after the other, end in a step of half
  // as many terms, and begin with one. 16 queries of heads of 128 in groups of 4, H100, 8, 16, 64
  // sequences: 256.3 -> 251.5, 271.0 -> 264.1, 519.5 -> 513.5 us; with room for two blocks a
  // processor 264, 276, 526, with two stages 252.4, 263.9, 514.8, but through pages 4 % more.
  const bool areLoaded = haveLoadedLengths(outer.op);
  const bool haveLengths = consumers == 1 && areLoaded && holdsParts(shape.compute) &&
                           columns > narrowOutputs && columns <= 128;
  haveRoom &= !haveLengths;
  // A range that a step of half as many terms holds has no other step.
  const std::optional<int64_t> terms = shape.upperOf(outer.k);
  set(outer.k, columns <= 128 && haveRoom && !(terms && *terms <= rowsOfWarpgroup) ? 128 : 64);
  if (consumers < groups)
    steps[outer.m] = rowsOfWarpgroup * consumers;
  for (Contraction &inner : shape.contractions) {
    if (!outer.op->isProperAncestor(inner.op))
      continue;
    inChain.insert(inner.op);
    set(inner.m, fit(inner.m, 128, 16));
    set(inner.n, fit(inner.n, 128, 16));
    set(inner.k, fit(inner.k, mostColumnsOfChain, 16));
  }
  warps = 4 * parts * std::clamp<int64_t>(tileOf(outer.m) / rowsOfWarpgroup, 1, groups);
  perThread = std::max<int64_t>(tileOf(outer.m) * tileOf(outer.n) / (warps * 32), 1);
  stages = haveLengths ? 3 : 4; // as far as shared memory reaches
  persistent = block.persistent.value_or(!areLoaded);
  if (persistent && !block.persistent && haveRoom && consumers == 1 && isAlone && terms &&
      *terms <= tileOf(outer.k))
    planShortChain(outer);
  group = walkedTogether(outer);
}

/// Has the machine room for the least that a chain of warpgroups has in shared memory? That is 64
/// rows of factors and results, and as many terms of the other factors, whose other axes one tile
/// holds.
bool Planner::fitsOneWarpgroup(Contraction &outer) {
  int64_t elements = 2 * rowsOfWarpgroup * fit(outer.n, mostColumnsOfChain, 16);
  for (Contraction &other : shape.contractions)
    if (!other.isOuter)
      elements += 2 * rowsOfWarpgroup * fit(other.k, mostColumnsOfChain, 16);
  return elements * outer.operand.getIntOrFloatBitWidth() / 8 <=
         getWholeTarget(shape.kernel).getShared();
}

/// A chain on the matrix unit has its rows' factors and those of a step in shared memory, for
/// warpgroups also the result, beside what other products of its rows read: steps of fewer terms,
/// fewer rows, or fewer terms of loops before it, where there is no room.
void Planner::fitMatrixChains() {
  for (Contraction &outer : shape.contractions) {
    if (!outer.isOuter || !usesMatrixUnits(outer) || block.tiles.contains(outer.k))
      continue;
    bool isForWarpgroup = isChainForWarpgroups(outer);
    int64_t leastTerms = isForWarpgroup ? rowsOfWarpgroup : 16;
    int64_t leastRows = isForWarpgroup ? rowsOfWarpgroup : 32;
    auto doNotFit = [&] {
      int64_t elements = tileOf(outer.k) * tileOf(outer.n);
      if (isForWarpgroup)
        elements += tileOf(outer.m) * tileOf(outer.n);
      for (Contraction &other : shape.contractions)
        if (!other.isOuter)
          elements += (tileOf(other.m) + tileOf(other.n)) * tileOf(other.k);
      return elements * outer.operand.getIntOrFloatBitWidth() / 8 > target.getShared();
    };
    while (doNotFit() && tileOf(outer.k) > leastTerms)
      tiles[outer.k] /= 2;
    while (doNotFit() && tileOf(outer.m) > leastRows && !block.tiles.contains(outer.m)) {
      tiles[outer.m] /= 2;
      warps = std::max<int64_t>(warps / 2, 1);
      steps.clear();
    }
    // A range that one tile holds takes no loop; two loops, of full tiles and the rest, have more
    // buffers.
    auto isWhole = [&](Contraction &other) {
      std::optional<int64_t> upper = shape.upperOf(other.n);
      return upper && *upper <= tileOf(other.n);
    };
    for (Contraction &other : shape.contractions)
      while (doNotFit() && !other.isOuter && !outer.op->isProperAncestor(other.op) &&
             tileOf(other.n) > leastTerms && !block.tiles.contains(other.n) && !isWhole(other))
        tiles[other.n] /= 2;
  }
}
