//===- Rings.cpp - bulk copies that share stages --------------------------===//
#include "passes/pipeline/Rings.h"

#include "passes/layout/BulkBox.h"
#include "passes/pipeline/ProductWaits.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

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

bool tk::isOneChain(Block *block) {
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
