//===- BlockValues.cpp - scopes and elementwise values --------------------===//
#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuProducts.h"
#include "passes/analysis/TileLoops.h"
#include "passes/tiling/BlockProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tk;

OpBuilder &BlockProgram::at(unsigned depth) {
  Scope &scope = scopes[depth];
  if (scope.before)
    builder.setInsertionPoint(scope.before);
  else
    builder.setInsertionPointToEnd(scope.block);
  return builder;
}

//===----------------------------------------------------------------------===//
// Axes of values
//===----------------------------------------------------------------------===//

Type BlockProgram::tileType(ArrayRef<unsigned> tileAxes, Type element) {
  if (tileAxes.empty())
    return element;
  SmallVector<int64_t> shape;
  for (unsigned axis : tileAxes)
    shape.push_back(axes[axis].size);
  return RankedTensorType::get(shape, element);
}

Axes BlockProgram::sorted(const llvm::SetVector<unsigned> &set) {
  Axes result;
  for (unsigned axis : order)
    if (set.contains(axis))
      result.push_back(axis);
  return result;
}

Axes BlockProgram::unite(ArrayRef<unsigned> a, ArrayRef<unsigned> b) {
  llvm::SetVector<unsigned> set(a.begin(), a.end());
  set.insert(b.begin(), b.end());
  return sorted(set);
}

bool BlockProgram::hasAxis(const TileValue &value, unsigned axis) {
  return llvm::is_contained(value.axes, axis);
}

void BlockProgram::collectFree(Operation *op, llvm::SetVector<Value> &values) {
  for (Region &region : op->getRegions())
    getUsedValuesDefinedAbove(region, values);
  values.insert(op->operand_begin(), op->operand_end());
}

/// The reduction, and the number of its accumulator, whose running value `argument` is; nothing if
/// it is an index.
static std::optional<std::pair<tk::ReduceOp, unsigned>> findRunning(BlockArgument argument) {
  auto reduction = dyn_cast<tk::ReduceOp>(argument.getOwner()->getParentOp());
  if (!reduction)
    return std::nullopt;
  unsigned number = argument.getArgNumber();
  if (argument.getOwner() != reduction.getBlock())
    return std::pair(reduction, number % (reduction.getNumAccumulators() - 1));
  if (number < reduction.getNumIndices())
    return std::nullopt;
  return std::pair(reduction, number - reduction.getNumIndices());
}

void BlockProgram::collectAxes(Value value, llvm::SetVector<unsigned> &set,
                               llvm::DenseSet<Value> &visited) {
  if (isa<RankedTensorType>(value.getType()) || !visited.insert(value).second)
    return;
  if (const TileValue *known = lookup(value)) {
    set.insert(known->axes.begin(), known->axes.end());
    return;
  }
  if (auto running = runningAxes.find(value); running != runningAxes.end()) {
    set.insert(running->second.begin(), running->second.end());
    return;
  }
  // A reduction's results are over what their own terms are over, but for its own indices: those
  // have axes, and loads over them tiles, where it has been evaluated before (in another loop of a
  // reduction around it).
  auto collectAccumulator = [&](tk::ReduceOp reduction, unsigned k) {
    llvm::SetVector<unsigned> own;
    collectAxes(reduction.getYield().getValues()[k], own, visited);
    if (k > 0) {
      auto factors = cast<YieldOp>(reduction.getRescale().front().getTerminator());
      collectAxes(factors.getValues()[k - 1], own, visited);
    }
    for (unsigned position = 0; position < reduction.getNumIndices(); ++position)
      if (auto axis = axisOf.find(reduction.getIndex(position)); axis != axisOf.end())
        own.remove(axis->second);
    set.insert_range(own);
    for (Value bound : reduction->getOperands())
      collectAxes(bound, set, visited);
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto axis = axisOf.find(value);
    if (axis != axisOf.end() && !axes[axis->second].isScalar)
      set.insert(axis->second);
    if (auto running = findRunning(argument))
      collectAccumulator(running->first, running->second);
    return;
  }
  Operation *op = value.getDefiningOp();
  if (!compute->isProperAncestor(op))
    return;
  if (auto reduction = dyn_cast<tk::ReduceOp>(op);
      reduction && reduction.getNumAccumulators() == reduction.getNumResults()) {
    collectAccumulator(reduction, cast<OpResult>(value).getResultNumber());
    return;
  }
  if (axisWithOneQuotient(op))
    return;
  llvm::SetVector<Value> free;
  collectFree(op, free);
  for (Value operand : free)
    collectAxes(operand, set, visited);
}

llvm::SetVector<unsigned> BlockProgram::axesOf(Value value) {
  llvm::SetVector<unsigned> set;
  llvm::DenseSet<Value> visited;
  collectAxes(value, set, visited);
  return set;
}

/// The axis whose index `op` divides, rounding down, by a multiple of its tiles' size: all of a
/// tile has one quotient (the group of a scale).
std::optional<unsigned> BlockProgram::axisWithOneQuotient(Operation *op) {
  auto division = dyn_cast<FloorDivOp>(op);
  auto axis = division ? axisOf.find(division.getLhs()) : axisOf.end();
  if (axis == axisOf.end() || isMerged(division.getLhs()) || axes[axis->second].isScalar ||
      !axes[axis->second].isAligned ||
      getSizeFact(kernel, division.getRhs()).divisor % axes[axis->second].size != 0)
    return std::nullopt;
  return axis->second;
}

/// The outermost scope in which all that `op` uses from outside is available.
unsigned BlockProgram::freeDepth(Operation *op) {
  llvm::SetVector<Value> free;
  collectFree(op, free);
  unsigned depth = 0;
  for (Value value : free)
    if (!isa<RankedTensorType>(value.getType()))
      depth = std::max(depth, get(value).depth);
  return depth;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

const TileValue *BlockProgram::lookup(Value value) {
  for (Scope &scope : llvm::reverse(scopes))
    if (auto known = scope.memo.find(value); known != scope.memo.end())
      return &known->second;
  return nullptr;
}

TileValue BlockProgram::get(Value value) {
  if (const TileValue *known = lookup(value))
    return *known;
  if (auto axis = axisOf.find(value); axis != axisOf.end())
    return index(axis->second);
  Operation *op = value.getDefiningOp();
  if (!op || !compute->isProperAncestor(op))
    return {kernelValue(value), {}, 0};
  Location outer = loc;
  loc = op->getLoc();
  TileValue result;
  if (auto reduction = dyn_cast<tk::ReduceOp>(op)) {
    reduce(reduction);
    result = *lookup(value);
  } else {
    if (auto loadOp = dyn_cast<tk::LoadOp>(op))
      result = load(loadOp);
    else if (auto scanOp = dyn_cast<tk::ScanOp>(op))
      result = scan(scanOp);
    else if (auto shared = dyn_cast<InSharesOp>(op))
      result = inShares(shared);
    else
      result = elementwise(op);
    scopes[result.depth].memo[value] = result;
  }
  loc = outer;
  return result;
}

/// What rounds to 16 bits a float of 8, which those hold: its extension, which may go there at
/// once. Any other operation itself.
static Operation *withoutDetour(Operation *op) {
  if (!isa<arith::TruncFOp>(op) || op->getResult(0).getType().getIntOrFloatBitWidth() != 16)
    return op;
  auto extension = op->getOperand(0).getDefiningOp<arith::ExtFOp>();
  return extension && gpu::isByteFloat(extension.getIn().getType()) ? extension : op;
}

/// The index itself; what the function says of its shares is for tk-persist-blocks.
TileValue BlockProgram::inShares(InSharesOp op) {
  unsigned argument = cast<BlockArgument>(kernelValue(op.getFirst())).getArgNumber();
  int64_t shares = static_cast<int64_t>(op.getShares());
  if (hasOneIndex && !elementOf)
    gpu::changePlan(func, [&](gpu::KernelPlan &plan) {
      plan.workUnits = builder.getDenseI64ArrayAttr({argument, shares});
    });
  return get(op.getIndex());
}

TileValue BlockProgram::elementwise(Operation *op) {
  if (auto constantOp = dyn_cast<arith::ConstantOp>(op))
    return {constant(constantOp.getValue()), {}, 0};
  if (std::optional<unsigned> axis = axisWithOneQuotient(op)) {
    if (!axes[*axis].start)
      return {indexConstant(0), {}, 0};
    unsigned depth = axes[*axis].depth;
    TileValue divisor = get(cast<FloorDivOp>(op).getRhs());
    Value quotient = FloorDivOp::create(at(depth), loc, axes[*axis].start, divisor.value);
    return {quotient, {}, depth};
  }
  if (auto conversion = dyn_cast<arith::SIToFPOp>(op))
    if (std::optional<TileValue> converted = convertedIndex(conversion))
      return *converted;
  Type type = op->getResult(0).getType();
  op = withoutDetour(op);
  SmallVector<TileValue> operands;
  unsigned depth = leastDepth;
  Axes all;
  for (Value operand : op->getOperands()) {
    operands.push_back(get(operand));
    depth = std::max(depth, operands.back().depth);
    all = unite(all, operands.back().axes);
  }
  SmallVector<Value> values;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    bool uniform = isa<arith::SelectOp>(op) && i == 0 && operand.axes.empty();
    values.push_back(uniform ? operand.value : broadcast(operand, all, depth).value);
  }
  // The upper half of a wider integer is then a constant, the same for all threads.
  auto cast = dyn_cast<arith::IndexCastOp>(op);
  bool isNatural = cast && cast.getIn().getType().isIndex() && cast.getType().isInteger(64) &&
                   isNonNegative(cast.getIn());
  StringRef unsignedCast = arith::IndexCastUIOp::getOperationName();
  OperationState state(op->getLoc(), isNatural ? unsignedCast : op->getName().getStringRef());
  state.addOperands(values);
  state.addTypes(tileType(all, type));
  state.addAttributes(op->getAttrs());
  Operation *tile = at(depth).create(state);
  Value result = tile->getResult(0);
  // A product of zeros is zero, and so is a converted zero.
  if (isa<arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp, arith::SIToFPOp, arith::ExtUIOp>(op))
    zeroOutside[result] = zeroOutside.lookup(values[0]);
  if (isa<arith::MulFOp, arith::MulIOp, arith::AddFOp, arith::AddIOp>(op)) {
    Axes both;
    for (unsigned axis : zeroOutside.lookup(values[0]))
      if (llvm::is_contained(zeroOutside.lookup(values[1]), axis))
        both.push_back(axis);
    zeroOutside[result] = both;
  }
  return {result, all, depth};
}

Value BlockProgram::constant(TypedAttr attr, unsigned depth) {
  return arith::ConstantOp::create(at(depth), loc, attr);
}

Value BlockProgram::indexConstant(int64_t value, unsigned depth) {
  return constant(builder.getIndexAttr(value), depth);
}

TileValue BlockProgram::broadcast(const TileValue &source, ArrayRef<unsigned> target,
                                  unsigned depth) {
  if (ArrayRef<unsigned>(source.axes) == target)
    return source;
  Axes targetAxes(target);
  depth = std::max(depth, source.depth);
  Type element = getElementTypeOrSelf(source.value.getType());
  auto type = cast<RankedTensorType>(tileType(targetAxes, element));
  Attribute splat;
  if (source.axes.empty() && matchPattern(source.value, m_Constant(&splat)))
    return {constant(DenseElementsAttr::get(type, splat), depth), targetAxes, depth};
  SmallVector<int64_t> dims;
  for (unsigned axis : source.axes)
    dims.push_back(llvm::find(targetAxes, axis) - targetAxes.begin());
  Value result = gpu::BroadcastOp::create(at(depth), loc, type, source.value,
                                          builder.getDenseI64ArrayAttr(dims));
  zeroOutside[result] = zeroOutside.lookup(source.value);
  return {result, targetAxes, depth};
}

/// `source` with its axes in another order, broadcast to those that it lacks.
TileValue BlockProgram::toOrder(const TileValue &source, ArrayRef<unsigned> target,
                                unsigned depth) {
  llvm::SetVector<unsigned> set(target.begin(), target.end());
  TileValue full = broadcast(source, sorted(set), depth);
  if (ArrayRef<unsigned>(full.axes) == target)
    return full;
  SmallVector<int64_t> permutation;
  for (unsigned axis : target)
    permutation.push_back(llvm::find(full.axes, axis) - full.axes.begin());
  Type type = tileType(target, getElementTypeOrSelf(full.value.getType()));
  unsigned where = std::max(depth, full.depth);
  Value result = gpu::TransposeOp::create(at(where), loc, type, full.value,
                                          builder.getDenseI64ArrayAttr(permutation));
  zeroOutside[result] = zeroOutside.lookup(full.value);
  return {result, Axes(target), where};
}

/// `value` where `condition` holds, elsewhere `otherwise`.
TileValue BlockProgram::select(const TileValue &condition, const TileValue &value,
                               TypedAttr otherwise) {
  Axes all = unite(condition.axes, value.axes);
  unsigned depth = std::max(condition.depth, value.depth);
  TileValue full = broadcast(value, all, depth);
  Value test = condition.axes.empty() ? condition.value : broadcast(condition, all, depth).value;
  TileValue other = broadcast({constant(otherwise, depth), {}, depth}, all, depth);
  Value result = arith::SelectOp::create(at(depth), loc, test, full.value, other.value);
  return {result, all, depth};
}

TileValue BlockProgram::andMasks(ArrayRef<TileValue> masks) {
  TileValue result = masks.front();
  for (const TileValue &mask : masks.drop_front()) {
    Axes all = unite(result.axes, mask.axes);
    unsigned depth = std::max(result.depth, mask.depth);
    Value a = broadcast(result, all, depth).value, b = broadcast(mask, all, depth).value;
    result = {arith::AndIOp::create(at(depth), loc, a, b), all, depth};
  }
  return result;
}
