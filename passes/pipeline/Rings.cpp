//===- Rings.cpp - bulk copies that share stages --------------------------===//
#include "passes/pipeline/Rings.h"
#include "passes/machine/limits/Loops.h"

#include "dialects/tkgpu/TkGpuLayout.h"
#include "passes/layout/BulkBox.h"
#include "passes/pipeline/ProductWaits.h"
#include "passes/pipeline/WeightSums.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::rings;

SmallVector<Value> Ring::getTiles() const {
  llvm::SetVector<Value> tiles;
  for (BulkCopyOp copy : copies)
    tiles.insert(copy.getTarget());
  return tiles.takeVector();
}

int64_t Ring::getStageBytes() const {
  int64_t bytes = 0;
  for (Value tile : getTiles())
    bytes += cast<SharedType>(tile.getType()).getSizeInBytes();
  return bytes;
}

int64_t Ring::getCopiedBytes() const {
  int64_t bytes = 0;
  for (Value tile : getTiles())
    bytes += cast<SharedType>(tile.getType()).withOnes(0).getSizeInBytes();
  return bytes;
}

bool Ring::isMulticast() const {
  return llvm::any_of(copies, [](BulkCopyOp copy) { return copy.getMulticast().has_value(); });
}

/// The product that goes on with the sums of `dot` before these are waited for; null if none does.
static WarpgroupDotOp continuationOf(WarpgroupDotOp dot) {
  auto next = dot->hasOneUse() ? dyn_cast<WarpgroupDotOp>(*dot->user_begin()) : WarpgroupDotOp();
  return next && next.getAcc() == dot.getResult() ? next : WarpgroupDotOp();
}

/// The operations that end the uses of a tile by `user`.
static LogicalResult addEnds(Operation *user, SmallVectorImpl<Operation *> &ends) {
  if (!isa<WarpgroupDotOp>(user)) {
    ends.push_back(user);
    return success(isa<LocalLoadOp>(user));
  }
  while (WarpgroupDotOp next = continuationOf(cast<WarpgroupDotOp>(user)))
    user = next;
  for (Operation *wait : user->getUsers()) {
    if (!isa<WarpgroupWaitOp>(wait) || cast<WarpgroupWaitOp>(wait).getPending() != 0)
      return failure();
    ends.push_back(wait);
  }
  return success(!user->use_empty());
}

/// Extends the range of a ring by the uses of one copy's tile.
static LogicalResult extendUses(Ring &ring, BulkCopyOp copy) {
  Block *block = copy->getBlock();
  auto extend = [&](Operation *first, Operation *last) -> LogicalResult {
    first = block->findAncestorOpInBlock(*first);
    last = block->findAncestorOpInBlock(*last);
    if (!first || !last || !copy->isBeforeInBlock(first))
      return failure();
    if (!ring.firstUse || first->isBeforeInBlock(ring.firstUse))
      ring.firstUse = first;
    if (!ring.lastUse || ring.lastUse->isBeforeInBlock(last))
      ring.lastUse = last;
    return success();
  };
  for (Operation *user : copy.getTarget().getUsers()) {
    if (isa<BulkCopyOp>(user))
      continue;
    SmallVector<Operation *> ends;
    if (failed(addEnds(user, ends)))
      return failure();
    for (Operation *end : ends)
      if (failed(extend(user, end)))
        return failure();
  }
  return success(ring.firstUse != nullptr);
}

/// Is `op` under loops alone?
static bool isInLoopsOnly(Operation *op) {
  for (op = op->getParentOp(); !isa<FuncOp>(op); op = op->getParentOp())
    if (!isa<scf::ForOp>(op))
      return false;
  return true;
}

/// Is one tile read right after the other one, each by one operation, into registers? They are
/// waited for and left together then.
static bool areReadTogether(BulkCopyOp one, BulkCopyOp other) {
  auto readOf = [](BulkCopyOp copy) {
    LocalLoadOp read;
    for (Operation *user : copy.getTarget().getUsers())
      if (!isa<BulkCopyOp>(user)) {
        auto load = dyn_cast<LocalLoadOp>(user);
        if (!load || read)
          return LocalLoadOp();
        read = load;
      }
    return read;
  };
  LocalLoadOp a = readOf(one), b = readOf(other);
  return a && b && (a->getNextNode() == b || b->getNextNode() == a) &&
         one.getMulticast() == other.getMulticast();
}

/// Are the block's products scores, of one product or several that are added up, and a sum of
/// weights that are computed from them? The last one then moves into the next iteration
/// (tk-overlap-chains), and what it reads stays for as long.
static bool isOneChain(Block *block) {
  SmallVector<WarpgroupDotOp> dots(block->getOps<WarpgroupDotOp>());
  if (dots.size() < 2)
    return false;
  for (size_t i = 0; i + 2 < dots.size(); ++i) {
    WarpgroupWaitOp wait = findPlainWait(dots[i]);
    if (!wait || dots[i + 1].getAcc() != wait.getResult(0))
      return false;
  }
  return true;
}

/// What the launch passes for the map of `copy`.
static Value mapOf(BulkCopyOp copy, LaunchOp launch) {
  auto argument = dyn_cast<BlockArgument>(copy.getMap());
  return argument && argument.getArgNumber() < launch.getArgs().size()
             ? launch.getArgs()[argument.getArgNumber()]
             : Value();
}

/// The type of the same bytes with the axes of a tile in the other order.
static SharedType transposed(SharedType type) {
  SmallVector<int64_t> shape(llvm::reverse(type.getShape())), order;
  for (int64_t axis : type.getAxisOrder())
    order.push_back(1 - axis);
  return SharedType::get(type.getContext(), shape, type.getElementType(), order, type.getPadding(),
                         type.getChunk(), type.getPerPhase(), type.getPhases(), type.getPanel(),
                         type.getInterleave(), type.getOnes(), type.getPitch());
}

/// Do the maps differ in nothing but how many columns there are, if at all?
static bool areAlikeButInColumns(Value a, Value b) {
  if (a == b)
    return true;
  auto one = a.getDefiningOp<TensorMapOp>(), other = b.getDefiningOp<TensorMapOp>();
  return one && other && one.getTensor() && one.getTensor() == other.getTensor() &&
         llvm::equal(one.getExtents().drop_back(), other.getExtents().drop_back()) &&
         one.getStrides() == other.getStrides() && one.getBox() == other.getBox() &&
         one->getAttrDictionary() == other->getAttrDictionary();
}

/// Do products of weights alone read the tile of `copy`, and is nothing reduced of their results
/// along its columns? Columns beyond the last one may then have any values.
static bool areColumnsApart(BulkCopyOp copy) {
  for (Operation *user : copy.getTarget().getUsers())
    if (auto dot = dyn_cast<WarpgroupDotOp>(user); dot && isa<SharedType>(dot.getA().getType()))
      return false;
  const int64_t columns = cast<SharedType>(copy.getTarget().getType()).getShape().back();
  return !copy->getParentOfType<FuncOp>()
              .walk([&](Operation *op) {
                auto reduce = dyn_cast<gpu::ReduceOp>(op);
                auto source = reduce ? cast<RankedTensorType>(reduce.getSource().getType())
                                     : RankedTensorType();
                return source && source.getRank() == 2 && reduce.getAxis() == 1 &&
                               source.getDimSize(1) == columns
                           ? WalkResult::interrupt()
                           : WalkResult::advance();
              })
              .wasInterrupted();
}

/// Does `other` bring what `one` does, to be read by products as the transpose of its tile?
static bool bringTransposed(BulkCopyOp one, BulkCopyOp other, LaunchOp launch, bool inChains) {
  auto type = cast<SharedType>(one.getTarget().getType());
  auto isMultiplied = [](BulkCopyOp copy) {
    return llvm::all_of(copy.getTarget().getUsers(), llvm::IsaPred<BulkCopyOp, WarpgroupDotOp>);
  };
  Value map = mapOf(one, launch), otherMap = mapOf(other, launch);
  const bool areAlike =
      map == otherMap || (inChains && map && otherMap && areAlikeButInColumns(map, otherMap) &&
                          areColumnsApart(other));
  return one->getBlock() == other->getBlock() && map && areAlike &&
         one.getCoordinates() == other.getCoordinates() &&
         one.getDistances() == other.getDistances() && !one.getMulticast() &&
         !other.getMulticast() && !one.getFirstRow() && !other.getFirstRow() &&
         type.getInterleave() == 1 && type.getShape().size() == 2 &&
         cast<SharedType>(other.getTarget().getType()) == transposed(type) && isMultiplied(one) &&
         isMultiplied(other) && (inChains || !isOneChain(one->getBlock()));
}

/// By copy: the one before it whose tile its readers can have.
static llvm::MapVector<BulkCopyOp, BulkCopyOp>
findSpared(FuncOp function, ArrayRef<BulkCopyOp> copies, bool inChains) {
  llvm::MapVector<BulkCopyOp, BulkCopyOp> spared;
  std::optional<LaunchArguments> arguments = LaunchArguments::of(function);
  for (unsigned i = 0; arguments && i < copies.size(); ++i)
    for (unsigned j = 0; j < i; ++j)
      if (!spared.contains(copies[j]) &&
          bringTransposed(copies[j], copies[i], arguments->getLaunch(), inChains)) {
        spared.insert({copies[i], copies[j]});
        break;
      }
  return spared;
}

/// Do products of one sum, which is waited for once, take both tiles?
static bool areSummedTogether(BulkCopyOp one, BulkCopyOp other) {
  auto endOf = [](BulkCopyOp copy) {
    WarpgroupDotOp end;
    for (Operation *user : copy.getTarget().getUsers())
      if (auto dot = dyn_cast<WarpgroupDotOp>(user)) {
        bool isContinued = continuationOf(dot) != nullptr;
        while (WarpgroupDotOp next = continuationOf(dot))
          dot = next;
        isContinued |= dot.getAcc().getDefiningOp<WarpgroupDotOp>() != nullptr;
        end = isContinued ? dot : end;
      }
    return end;
  };
  WarpgroupDotOp end = endOf(one);
  return end && end == endOf(other);
}

FailureOr<SmallVector<Ring, 0>> tk::findRings(FuncOp function, bool together, bool inChains) {
  SmallVector<BulkCopyOp> copies;
  function.walk([&](BulkCopyOp copy) { copies.push_back(copy); });
  llvm::MapVector<BulkCopyOp, BulkCopyOp> spared = findSpared(function, copies, inChains);
  llvm::erase_if(copies, [&](BulkCopyOp copy) { return spared.contains(copy); });
  llvm::IntEqClasses classes(copies.size());
  for (unsigned i = 0; i < copies.size(); ++i) {
    if (!copies[i].getTarget().getDefiningOp<AllocSharedOp>() || !isInLoopsOnly(copies[i]))
      return failure();
    for (unsigned j = 0; j < i; ++j) {
      if (copies[i].getTarget() == copies[j].getTarget()) {
        if (!copies[i].getFirstRow() || copies[i]->getBlock() != copies[j]->getBlock())
          return failure();
        classes.join(i, j);
        continue;
      }
      bool meet = llvm::any_of(copies[i].getTarget().getUsers(), [&](Operation *user) {
        return llvm::is_contained(user->getOperands(), copies[j].getTarget());
      });
      meet |= areReadTogether(copies[i], copies[j]) || areSummedTogether(copies[i], copies[j]);
      if (together && meet && copies[i]->getBlock() == copies[j]->getBlock())
        classes.join(i, j);
    }
  }
  classes.compress();
  SmallVector<Ring, 0> rings(classes.getNumClasses());
  for (auto [i, copy] : llvm::enumerate(copies)) {
    rings[classes[i]].copies.push_back(copy);
    if (failed(extendUses(rings[classes[i]], copy)))
      return failure();
  }
  for (auto [copy, like] : spared)
    for (Ring &ring : rings)
      if (llvm::is_contained(ring.copies, like)) {
        ring.spared.push_back({copy, like});
        if (failed(extendUses(ring, copy)))
          return failure();
      }
  return rings;
}

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
