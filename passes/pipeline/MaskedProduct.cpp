//===- MaskedProduct.cpp - a product of masked weights with values --------===//
//
// The analysis of tk-guard-masked-values.
//
// 1. A mask is a choice of -inf for a tile of scores, by a condition that differs between rows.
// 2. The products take weights that follow from a mask. All of them read stages of one circular
//    buffer, which one TMA load a step fills.
// 3. The last product's sums are followed to where the tile is complete.
//
//===----------------------------------------------------------------------===//
#include "passes/pipeline/MaskedProduct.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

RoleTiles RoleTiles::of(Region &role) {
  RoleTiles found;
  for (auto loop : role.getOps<scf::ForOp>()) {
    if (found.tiles)
      return {};
    found.tiles = loop;
  }
  if (!found.tiles)
    return {};
  for (auto end : found.tiles.getOps<scf::IfOp>())
    if (!end.thenBlock()->getOps<DoubtedOp>().empty()) {
      found.passes = found.tiles;
      auto inside = llvm::to_vector(found.passes.getOps<scf::ForOp>());
      found.tiles = inside.size() == 1 ? inside.front() : scf::ForOp();
    }
  return found;
}

llvm::SetVector<Value> tk::sourcesOf(Value first) {
  llvm::SetVector<Value> sources;
  SmallVector<Value> work = {first};
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!sources.insert(value))
      continue;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (loop && argument != loop.getInductionVar())
        llvm::append_values(work, loop.getTiedLoopInit(argument)->get(),
                            loop.getTiedLoopYieldedValue(argument)->get());
      continue;
    }
    Operation *op = value.getDefiningOp();
    const unsigned number = cast<OpResult>(value).getResultNumber();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      llvm::append_values(work, loop.getYieldedValues()[number], loop.getInitArgs()[number]);
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      llvm::append_values(work, branch.thenYield().getOperand(number),
                          branch.elseYield().getOperand(number));
    else if (isa<WarpgroupWaitOp>(op))
      work.push_back(op->getOperand(number));
    else
      llvm::append_range(work, op->getOperands());
  }
  return sources;
}

bool tk::differsByRow(Value condition) {
  return llvm::any_of(sourcesOf(condition), [](Value value) {
    if (auto load = value.getDefiningOp<gpu::LoadOp>()) {
      auto tile = dyn_cast<RankedTensorType>(load.getType());
      return tile && tile.getRank() == 2;
    }
    auto spread = value.getDefiningOp<BroadcastOp>();
    return spread && spread.getDims() == ArrayRef<int64_t>(0) &&
           !matchPattern(spread.getSource(), m_Constant());
  });
}

bool tk::isMask(arith::SelectOp select) {
  auto type = dyn_cast<RankedTensorType>(select.getType());
  DenseFPElementsAttr other;
  return type && type.getRank() == 2 && type.getElementType().isF32() &&
         isa<RankedTensorType>(select.getCondition().getType()) &&
         matchPattern(select.getFalseValue(), m_Constant(&other)) && other.isSplat() &&
         other.getSplatValue<APFloat>().isInfinity() && other.getSplatValue<APFloat>().isNegative();
}

bool MaskedProduct::findMask() {
  consumer.tiles.walk([&](arith::SelectOp select) {
    auto loop = select->getParentOfType<scf::ForOp>();
    if (masked || loop == consumer.tiles || !isMask(select))
      return;
    masked = loop;
    // Scores may go through several choices.
    for (arith::SelectOp one = select; one && isMask(one);
         one = one.getTrueValue().getDefiningOp<arith::SelectOp>())
      conditions.push_back(one.getCondition());
  });
  return masked && llvm::any_of(conditions, differsByRow);
}

/// Is it a product of weights that follow from a mask?
static bool takesMasked(WarpgroupDotOp dot) {
  if (!isa<RankedTensorType>(dot.getA().getType()))
    return false;
  return llvm::any_of(sourcesOf(dot.getA()), [](Value value) {
    auto select = value.getDefiningOp<arith::SelectOp>();
    return select && isMask(select);
  });
}

bool MaskedProduct::findValues(StringRef &reason) {
  Value buffer;
  bool isOne = true;
  consumer.tiles.walk([&](WarpgroupDotOp dot) {
    if (!takesMasked(dot))
      return;
    auto stage = dot.getB().getDefiningOp<StageOp>();
    isOne &= stage && (!buffer || buffer == stage.getSource());
    if (stage)
      buffer = stage.getSource();
  });
  if (!buffer)
    return false;
  reason = "its values are not one TMA load a step";
  producer.tiles.walk([&](BulkCopyOp copy) {
    auto stage = copy.getTarget().getDefiningOp<StageOp>();
    if (!stage || stage.getSource() != buffer)
      return;
    isOne &= !load;
    load = copy;
  });
  if (!isOne || !load || load.getMulticast() || !load.getDistances().empty() || load.getFirstRow())
    return false;
  Operation *op = load->getPrevNode();
  while (op && op->getNumRegions() == 0 && isMemoryEffectFree(op))
    op = op->getPrevNode();
  expect = dyn_cast_or_null<PhaseExpectOp>(op);
  steps = dyn_cast<scf::ForOp>(load->getParentOp());
  return expect && expect.getPhases() == load.getPhases() && expect.getSlot() == load.getSlot() &&
         steps && steps->getParentOp() == producer.tiles &&
         isEqualConstantIntOrValue(steps.getStep(), masked.getStep());
}

/// Follows the last product to where its tile is complete.
bool MaskedProduct::findSums() {
  WarpgroupDotOp last;
  consumer.tiles.walk([&](WarpgroupDotOp dot) {
    if (takesMasked(dot))
      last = dot;
  });
  // Behind the loops, or the result of one.
  Value value = last.getResult();
  while (true) {
    if (value.getParentBlock() == consumer.tiles.getBody() &&
        !isa<WarpgroupDotOp>(value.getDefiningOp()))
      break;
    Value next;
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (auto wait = dyn_cast<WarpgroupWaitOp>(user)) {
        next = wait.getResultFor(use);
      } else if (auto yield = dyn_cast<scf::YieldOp>(user)) {
        if (isa<scf::IfOp, scf::ForOp>(yield->getParentOp()) && !next)
          next = yield->getParentOp()->getResult(use.getOperandNumber());
      }
    }
    if (!next)
      return false;
    value = next;
  }
  sums = value;
  return getElementTypeOrSelf(sums.getType()).isF32();
}

bool MaskedProduct::find(StringRef &reason) {
  producer = RoleTiles::of(roles.getProducer());
  consumer = RoleTiles::of(roles.getConsumer());
  if (!producer.tiles || !consumer.tiles || bool(producer.passes) != bool(consumer.passes) ||
      !findMask())
    return false;
  if (!findValues(reason))
    return false;
  reason = "its sums are not found where a tile is complete";
  return findSums();
}

Value tk::computeAt(OpBuilder *builder, Operation *point, Value value, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner()->getParentOp()->isProperAncestor(point) ? value : Value();
  Operation *op = value.getDefiningOp();
  Operation *here = op->getBlock()->findAncestorOpInBlock(*point);
  if (here && op->isBeforeInBlock(here))
    return value;
  if (op->getNumRegions() > 0 || !isMemoryEffectFree(op))
    return {};
  for (Value operand : op->getOperands())
    if (!computeAt(builder, point, operand, mapping))
      return {};
  if (!builder) {
    mapping.map(value, value);
    return value;
  }
  builder->clone(*op, mapping);
  return mapping.lookup(value);
}
