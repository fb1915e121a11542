//===- WindowSteps.cpp - the steps of a window's tiles --------------------===//
#include "passes/pipeline/WindowSteps.h"

#include "passes/machine/TileFacts.h"
#include "passes/pipeline/StepMasks.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

namespace {

class WindowMatch : public WindowSteps {
public:
  bool analyse();

private:
  bool findParts();
  bool findCopies();
  bool matchStep();
  bool findWeights();
  void findResults();
};

} // namespace

/// The stage that `shared` is, with how it is entered and left in its block.
static std::optional<RingPlace> findPlace(Value shared) {
  RingPlace place;
  place.stage = shared.getDefiningOp<StageOp>();
  if (!place.stage || place.stage.getFrom())
    return std::nullopt;
  Value slot = place.stage.getStage();
  Block *block = place.stage->getBlock();
  arith::AddIOp after;
  for (Operation *user : slot.getUsers()) {
    if (user->getBlock() != block)
      continue;
    if (auto wait = dyn_cast<PhaseWaitOp>(user))
      place.enter = wait;
    if (auto arrive = dyn_cast<PhaseArriveOp>(user))
      place.leave = arrive;
    if (auto add = dyn_cast<arith::AddIOp>(user); add && add.getLhs() == slot)
      after = add;
  }
  if (!place.enter || !place.leave || !after)
    return std::nullopt;
  for (Operation *user : after->getUsers()) {
    auto compare = dyn_cast<arith::CmpIOp>(user);
    if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq)
      continue;
    for (Operation *choice : compare->getUsers()) {
      auto select = dyn_cast<arith::SelectOp>(choice);
      if (!select || select.getCondition() != compare.getResult())
        continue;
      (select.getFalseValue() == after.getResult() ? place.nextSlot : place.nextParity) = select;
    }
  }
  if (!place.nextSlot || !place.nextParity)
    return std::nullopt;
  return place;
}

/// The first step whose product is `dot`.
static std::optional<OpeningStep> matchOpening(WarpgroupDotOp dot) {
  OpeningStep opening;
  opening.dot = dot;
  auto users = dot->getUsers();
  if (!dot->hasOneUse() || !matchPattern(dot.getAcc(), m_AnyZeroFloat()) ||
      !isa<SharedType>(dot.getA().getType()))
    return std::nullopt;
  opening.wait = dyn_cast<WarpgroupWaitOp>(*users.begin());
  std::optional<RingPlace> keys = findPlace(dot.getB());
  if (!opening.wait || opening.wait.getNumResults() != 1 || !keys)
    return std::nullopt;
  opening.keys = *keys;
  Value scores = opening.wait.getResult(0);
  for (Operation *user : scores.getUsers())
    if (auto mask = user->getParentOfType<scf::IfOp>(); mask && mask->getBlock() == dot->getBlock())
      if (std::optional<RowMask> found = matchMask(mask, scores)) {
        opening.mask = *found;
        return opening;
      }
  return std::nullopt;
}

/// The loop over steps, the branch around it and the one behind it.
bool WindowMatch::findParts() {
  for (scf::IfOp candidate : tiles.getBody()->getOps<scf::IfOp>()) {
    if (candidate.getElseRegion().empty())
      continue;
    for (scf::ForOp loop : candidate.thenBlock()->getOps<scf::ForOp>()) {
      if (steps)
        return false;
      branch = candidate, steps = loop;
    }
  }
  if (!steps)
    return false;
  for (scf::IfOp inner : branch.thenBlock()->getOps<scf::IfOp>()) {
    if (inner.getElseRegion().empty())
      continue;
    bool isBefore = inner->isBeforeInBlock(steps);
    if (isBefore ? static_cast<bool>(begun) : static_cast<bool>(closing))
      return false;
    (isBefore ? begun : closing) = inner;
  }
  if (!begun || !closing)
    return false;
  SmallVector<WarpgroupDotOp> opens(begun.elseBlock()->getOps<WarpgroupDotOp>()),
      closes(closing.thenBlock()->getOps<WarpgroupDotOp>());
  if (opens.size() != 1 || closes.size() != 2 ||
      !begun.thenBlock()->getOps<WarpgroupDotOp>().empty())
    return false;
  std::optional<OpeningStep> alone = matchOpening(opens.front()),
                             under = matchOpening(closes.front());
  if (!alone || !under)
    return false;
  own = *alone, next = *under;
  return true;
}

/// Which result of `branch` is `value`, if it is one.
static std::optional<unsigned> resultOf(scf::IfOp branch, Value value) {
  auto result = dyn_cast<OpResult>(value);
  return result && result.getOwner() == branch ? std::optional(result.getResultNumber())
                                               : std::nullopt;
}

/// The way that weights of a first step take from one tile to the next.
bool WindowMatch::findWeights() {
  std::optional<unsigned> ofBegun =
      resultOf(begun, steps.getTiedLoopInit(cast<BlockArgument>(sums.getA()))->get());
  if (!ofBegun)
    return false;
  auto argument = dyn_cast<BlockArgument>(begun.thenYield().getOperand(*ofBegun));
  if (!argument || argument.getOwner() != tiles.getBody() || argument == tiles.getInductionVar())
    return false;
  std::optional<unsigned> ofBranch =
      resultOf(branch, tiles.getTiedLoopYieldedValue(argument)->get());
  if (!ofBranch)
    return false;
  std::optional<unsigned> ofClosing = resultOf(closing, branch.thenYield().getOperand(*ofBranch));
  if (!ofClosing)
    return false;
  weightsOfBegun = *ofBegun, weightsOfClosing = *ofClosing;
  return begun.elseYield().getOperand(weightsOfBegun).getDefiningOp<arith::TruncFOp>() &&
         closing.thenYield().getOperand(weightsOfClosing).getDefiningOp<arith::TruncFOp>();
}

/// Are sums zero before the first step? It may have been scaled.
static bool areZero(Value sums) {
  if (auto product = sums.getDefiningOp<arith::MulFOp>())
    return matchPattern(product.getLhs(), m_AnyZeroFloat()) ||
           matchPattern(product.getRhs(), m_AnyZeroFloat());
  return matchPattern(sums, m_AnyZeroFloat());
}

/// What a step of the loop consists of.
bool WindowMatch::matchStep() {
  SmallVector<WarpgroupDotOp> dots(steps.getOps<WarpgroupDotOp>());
  if (dots.size() != 2)
    return false;
  scores = dots[0], sums = dots[1];
  if (!scores->hasOneUse() || !sums->hasOneUse())
    return false;
  scoresWait = dyn_cast<WarpgroupWaitOp>(*scores->user_begin());
  sumsWait = dyn_cast<WarpgroupWaitOp>(*sums->user_begin());
  std::optional<RingPlace> first = findPlace(scores.getB()), second = findPlace(sums.getB());
  if (!scoresWait || !sumsWait || scoresWait.getPending() != 1 || sumsWait.getPending() != 0 ||
      !first || !second)
    return false;
  keys = *first, values = *second;
  // Weights come from the step before, for sums of 16-bit numbers.
  auto weights = dyn_cast<BlockArgument>(sums.getA());
  auto tile = dyn_cast<RankedTensorType>(sums.getA().getType());
  if (!weights || weights.getOwner() != steps.getBody() || !tile ||
      tile.getElementType().getIntOrFloatBitWidth() != 16)
    return false;
  auto carried = dyn_cast<BlockArgument>(sums.getAcc());
  if (!carried || carried.getOwner() != steps.getBody() ||
      !areZero(steps.getTiedLoopInit(carried)->get()))
    return false;
  StepBounds bounds;
  scf::IfOp found = findMask(steps, bounds);
  std::optional<RowMask> ofStep = found ? matchMask(found, scoresWait.getResult(0)) : std::nullopt;
  if (!ofStep)
    return false;
  mask = *ofStep;
  // Where the step is tells masks and nothing else.
  auto isOfMask = [&](Operation *user) {
    return user == mask.beforeLower || mask.branch->isProperAncestor(user);
  };
  for (Operation *user : steps.getInductionVar().getUsers()) {
    bool isEnd = llvm::all_of(user->getUsers(),
                              [&](Operation *reader) { return reader == mask.behindUpper; });
    bool isPlace = llvm::all_of(user->getUsers(), [&](Operation *reader) {
      return llvm::all_of(reader->getUsers(), isOfMask);
    });
    if (!isOfMask(user) && !isEnd && !isPlace)
      return false;
  }
  rows = tile.getDimSize(0);
  APInt step;
  SharedType stage = keys.stage.getType(), ofValues = values.stage.getType();
  return tile.getDimSize(1) == rows && matchPattern(steps.getStep(), m_ConstantInt(&step)) &&
         step.getSExtValue() == rows && stage.getPanel() > 0 && ofValues.getPanel() > 0 &&
         stage.getPitch() == 0 && stage.getAxisOrder()[1] == 1 && ofValues.getAxisOrder()[1] == 0 &&
         stage.getInterleave() == 1 && ofValues.getInterleave() == 1 &&
         stage.getShape() == ofValues.getShape() && stage.getPhases() == ofValues.getPhases() &&
         stage.getPanel() == ofValues.getPanel();
}

/// What copies `place`'s tiles: it waits for the stage, announces the bytes and copies them.
SmallVector<Operation *> tk::findCopyOf(scf::ForOp copies, RingPlace place) {
  SmallVector<Operation *> program;
  for (Operation &op : *copies.getBody()) {
    auto copy = dyn_cast<BulkCopyOp>(op);
    auto stage = copy ? copy.getTarget().getDefiningOp<StageOp>() : StageOp();
    if (!stage || stage.getSource() != place.stage.getSource())
      continue;
    for (Operation *user : stage.getStage().getUsers())
      if (isa<PhaseWaitOp, PhaseExpectOp, BulkCopyOp>(user) && user->getBlock() == copies.getBody())
        program.push_back(user);
    break;
  }
  llvm::sort(program, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  auto enter = program.size() == 3 ? dyn_cast<PhaseWaitOp>(program[0]) : PhaseWaitOp();
  bool isPlain = enter && isa<PhaseExpectOp>(program[1]) && isa<BulkCopyOp>(program[2]) &&
                 enter.getParity().getDefiningOp<arith::SubIOp>() &&
                 isa<BlockArgument>(enter.getParity().getDefiningOp<arith::SubIOp>().getRhs());
  return isPlain ? program : SmallVector<Operation *>();
}

/// The copies' loop over the same steps, which goes by where a step is in what it copies alone.
bool WindowMatch::findCopies() {
  for (scf::ForOp outer : roles.getProducer().getOps<scf::ForOp>())
    for (scf::ForOp inner : outer.getOps<scf::ForOp>()) {
      if (copies)
        return false;
      copies = inner;
    }
  return copies && !findCopyOf(copies, keys).empty() && !findCopyOf(copies, values).empty() &&
         llvm::all_of(copies.getInductionVar().getUsers(), [&](Operation *user) {
           return isa<BulkCopyOp>(user) && user->getBlock() == copies.getBody();
         });
}

/// Can `value`, a scalar of a consumer's tile, be computed in the copies' program as well?
static bool followsFromTile(Value value, scf::ForOp tiles, WarpRolesOp roles) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument == tiles.getInductionVar() ||
           !roles.getConsumer().isAncestor(argument.getOwner()->getParent());
  Operation *op = value.getDefiningOp();
  if (!roles.getConsumer().isAncestor(op->getParentRegion()))
    return true;
  return op->getNumRegions() == 0 && isMemoryEffectFree(op) && !isa<OfWarpgroupOp>(op) &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return followsFromTile(operand, tiles, roles); });
}

/// Are results as large as the rows of their tile, of which the next tile's are there meanwhile?
void WindowMatch::findResults() {
  auto stage = own.dot.getA().getDefiningOp<StageOp>();
  auto rowsOf = stage ? stage.getSource().getDefiningOp<AllocSharedOp>() : AllocSharedOp();
  auto slot = stage ? dyn_cast<BlockArgument>(stage.getStage()) : BlockArgument();
  if (!rowsOf || !slot || slot.getOwner() != tiles.getBody() || rowsOf.getType().getShape()[0] != 2)
    return;
  ofRows.stage = stage;
  for (Operation *user : slot.getUsers()) {
    if (auto arrive = dyn_cast<PhaseArriveOp>(user))
      ofRows.leave = arrive;
    if (auto wait = dyn_cast<PhaseWaitOp>(user))
      ofRows.enter = wait;
  }
  if (!ofRows.leave || !ofRows.enter)
    return;
  SharedType held = stage.getType();
  for (auto alloc : tiles->getParentOfType<FuncOp>().getBlock()->getOps<AllocSharedOp>()) {
    SharedType type = alloc.getType();
    bool areStored = llvm::any_of(alloc->getUsers(), [](Operation *piece) {
      return llvm::any_of(piece->getUsers(), [](Operation *user) {
        auto store = dyn_cast<BulkStoreOp>(user);
        return store && store.getWarpgroupAxis();
      });
    });
    // Panels of rows lie as the pieces of results do.
    if (areStored && type.getShape().size() == 3 &&
        type.getSizeInBytes() == held.getSizeInBytes() &&
        type.getShape()[1] == held.getShape()[0] && type.getShape()[2] == held.getPanel() &&
        type.getPhases() == held.getPhases())
      results = alloc;
  }
}

bool WindowMatch::analyse() {
  auto function = tiles->getParentOfType<FuncOp>();
  if (function.getNumWarps() != warpsOfTwoWarpgroups || !findParts() || !matchStep() ||
      !findWeights() || !findCopies())
    return false;
  for (Value value : {own.mask.beforeLower.getRhs(), own.mask.behindUpper.getRhs(),
                      steps.getUpperBound(), own.mask.beforeLower.getLhs()})
    if (!followsFromTile(value, tiles, roles))
      return false;
  findResults();
  return true;
}

std::optional<WindowSteps> tk::matchWindowSteps(scf::ForOp tiles, WarpRolesOp roles) {
  WindowMatch match;
  match.tiles = tiles, match.roles = roles;
  return match.analyse() ? std::optional<WindowSteps>(match) : std::nullopt;
}
