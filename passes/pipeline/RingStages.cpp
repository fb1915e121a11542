//===- RingStages.cpp - how many stages rings have, and what lies in them -===//
//
// The innermost rings get as many stages as shared memory holds. A stage may later hold the results
// of the tile that it was read for, and columns of ones behind its tile.
//
//===----------------------------------------------------------------------===//
#include "passes/machine/limits/Loops.h"
#include "passes/pipeline/Rings.h"
#include "passes/pipeline/WeightSums.h"

#include "dialects/tkgpu/TkGpuLayout.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::rings;

/// Is `alloc` where each warpgroup puts its rows of a tile before they are stored, behind `before`?
static bool areResults(AllocSharedOp alloc, Operation *before) {
  auto isPiece = [&](Operation *op) {
    auto stage = dyn_cast<StageOp>(op);
    return stage && op->getBlock() == before->getBlock() && before->isBeforeInBlock(op) &&
           llvm::all_of(op->getUsers(), [](Operation *user) {
             auto store = dyn_cast<BulkStoreOp>(user);
             return isa<LocalStoreOp>(user) || (store && store.getWarpgroupAxis());
           });
  };
  return !alloc->use_empty() && llvm::all_of(alloc->getUsers(), isPiece);
}

/// Does each warpgroup read its own rows of a ring's only tile, and nothing else?
static bool areRowsOfWarpgroups(const Ring &ring) {
  SmallVector<Value> tiles = ring.getTiles();
  return tiles.size() == 1 && !ring.isMulticast() &&
         llvm::all_of(tiles.front().getUsers(), [&](Operation *user) {
           auto dot = dyn_cast<WarpgroupDotOp>(user);
           return isa<BulkCopyOp>(user) ||
                  (dot && dot.getA() == tiles.front() && dot.getB() != tiles.front() &&
                   areRowsByWarpgroup(getLayout(dot.getType()), 0, dot.getType().getDimSize(0)));
         });
}

/// Do threads make something of what they carry before a product adds to it?
static bool isScaled(Value sum) { return sum.getDefiningOp<arith::MulFOp>() != nullptr; }

/// Is `sum` one that the loop carries, or that times a factor of references that may stay
/// (tk-keep-references)?
static bool isCarried(Value sum, scf::ForOp loop) {
  auto scaling = sum.getDefiningOp<arith::MulFOp>();
  if (!scaling)
    return llvm::is_contained(loop.getRegionIterArgs(), sum);
  SmallVector<gpu::ReduceOp> maxima;
  for (auto reduce : loop.getOps<gpu::ReduceOp>())
    if (reduce.getKind() == ReduceKind::Max)
      maxima.push_back(reduce);
  return maxima.size() == 1 && maxima.front().getFreeReference() &&
         llvm::is_contained(loop.getRegionIterArgs(), scaling.getLhs());
}

/// Does a loop add products to a sum that it carries, and to nothing that it makes of that, in
/// steps that are each warpgroup's own at both ends? Where sums are scaled, or all begin together,
/// turns are faster (H200: causal with a soft cap 0.84 to 0.96), but for three warpgroups whose
/// references may stay.
static bool letsComeApart(scf::ForOp loop) {
  auto dots = llvm::to_vector(loop.getOps<WarpgroupDotOp>());
  auto end = loop.getUpperBound().getDefiningOp<RowsBoundOp>();
  if (!end || !loop.getLowerBound().getDefiningOp<RowsBoundOp>() || dots.size() != 2 ||
      !isa<RankedTensorType>(dots.back().getA().getType()))
    return false;
  Value sum = dots.back().getAcc();
  return isCarried(sum, loop) && (!isScaled(sum) || end.getParts().size() >= 3);
}

void tk::placeResults(FuncOp function, MutableArrayRef<Ring> rings) {
  for (Ring &ring : rings) {
    auto steps = dyn_cast<scf::ForOp>(ring.lastUse);
    if (!steps || ring.firstUse != ring.lastUse || !letsComeApart(steps) ||
        !isa<scf::ForOp>(ring.copies.front()->getParentOp()) || !areRowsOfWarpgroups(ring))
      continue;
    function.walk([&](AllocSharedOp alloc) {
      if (areResults(alloc, ring.lastUse) &&
          alloc.getType().getSizeInBytes() == ring.getStageBytes())
        ring.results = alloc;
    });
  }
}

/// Do references of what a ring's tile is multiplied by stay, for notes of which there has to be
/// room?
static bool mayKeepReferences(const Ring &ring) {
  auto dots = llvm::to_vector(cast<scf::ForOp>(ring.lastUse).getOps<WarpgroupDotOp>());
  return isScaled(dots.back().getAcc());
}

int64_t tk::chooseStages(FuncOp function, MutableArrayRef<Ring> rings, int64_t wanted,
                         int64_t limit) {
  auto isInnermost = [&](Ring &ring) {
    return llvm::none_of(rings, [&](Ring &other) {
      Operation *loop = ring.copies.front()->getParentOp();
      return other.copies.front()->getBlock() != ring.copies.front()->getBlock() &&
             loop->isProperAncestor(other.copies.front());
    });
  };
  // A ring around the others, of tiles that blocks go through: the next tile's operands come while
  // this one's are in use.
  auto isRepeated = [&](Ring &ring) {
    return !isInnermost(ring) && isa<scf::ForOp>(ring.copies.front()->getParentOp());
  };
  int64_t fixed = kPhaseRoom, perStage = 0, perTile = 0;
  function.walk([&](AllocSharedOp alloc) {
    fixed += llvm::alignTo(alloc.getType().getSizeInBytes(), swizzleAlignment);
  });
  bool areInStages = false;
  for (Ring &ring : rings) {
    int64_t bytes = llvm::alignTo(ring.getStageBytes(), swizzleAlignment);
    fixed -= ring.results ? bytes : 0;
    fixed += ring.results && mayKeepReferences(ring) ? kNoteRoom : 0;
    for (auto [copy, like] : ring.spared)
      fixed -= llvm::alignTo(cast<SharedType>(copy.getTarget().getType()).getSizeInBytes(),
                             swizzleAlignment);
    areInStages |= ring.results != nullptr;
    perStage += isInnermost(ring) ? bytes : 0;
    perTile += isRepeated(ring) ? bytes : 0;
  }
  // One stage of each is among `fixed` already.
  int64_t rest = std::max<int64_t>(limit - fixed, 0);
  bool areTilesAhead = wanted > 1 && perTile > 0 && rest >= perStage + perTile;
  rest -= areTilesAhead ? perTile : 0;
  int64_t more = perStage ? rest / perStage : 0;
  for (Ring &ring : rings) {
    if (isInnermost(ring))
      ring.stages = std::clamp<int64_t>(1 + more, 1, wanted);
    else
      ring.stages = areTilesAhead && isRepeated(ring) ? 2 : 1;
  }
  // What both products of a chain read stays for the second one: its next tile comes meanwhile.
  for (Ring &ring : rings) {
    const int64_t bytes = llvm::alignTo(ring.getStageBytes(), swizzleAlignment);
    if (ring.spared.empty() || !isOneChain(ring.copies.front()->getBlock()) || more > 0 ||
        wanted == 1 || bytes > rest)
      continue;
    ++ring.stages;
    rest -= bytes;
  }
  if (areInStages) {
    // Results are stored while the next tile's rows are read from another stage. What room they
    // leave is for one more stage of what a step reads first.
    rest -= more * perStage;
    for (Ring &ring : rings) {
      if (ring.results && ring.stages != 2) {
        ring.results = {};
        return chooseStages(function, rings, wanted, limit);
      }
      int64_t bytes = llvm::alignTo(ring.getStageBytes(), swizzleAlignment);
      if (!isInnermost(ring) || ring.stages >= wanted || bytes > rest)
        continue;
      ++ring.stages;
      rest -= bytes;
    }
  }
  return fixed + (wanted - 1) * perStage;
}

void tk::placeOnes(FuncOp function, MutableArrayRef<Ring> rings, int64_t wanted, int64_t limit,
                   bool asked) {
  AllocSharedOp tile;
  for (Ring &ring : rings)
    if (auto steps = dyn_cast<scf::ForOp>(ring.lastUse); ring.results && steps)
      tile = findBesideOnes(steps);
  if (!tile)
    return;
  const SmallVector<Ring, 0> before(rings.begin(), rings.end());
  const int64_t least = asked ? wanted : kStagesOfUse;
  tile.getResult().setType(tile.getType().withOnes(kColumnsOfOnes));
  chooseStages(function, rings, wanted, limit);
  const bool isEnough = llvm::all_of(llvm::zip(rings, before), [&](auto pair) {
    auto &[now, then] = pair;
    return now.stages >= std::min(then.stages, least) &&
           (now.results != nullptr) == (then.results != nullptr);
  });
  if (isEnough)
    return;
  tile.getResult().setType(tile.getType().withOnes(0));
  llvm::copy(before, rings.begin());
}
