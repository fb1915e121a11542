//===- RowExpressions.cpp - values that are computed from rows ------------===//
//
//   1. The analysis numbers the elements of tensors with several rows at one position along the
//      row, and the values that are computed from them and from values that do not change along the
//      row. Reductions contain copies of other computations; values with the same operation and
//      operands have one number.
//   2. The first reduction reads rows as they are loaded. A value is needed after it if another
//      reduction uses it, if it is combined with the result of a reduction, or if it is stored.
//
//===----------------------------------------------------------------------===//
#include "passes/plan/RowExpressions.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tk;

RowExpressions::RowExpressions(StatementShape &shape, Value along) : shape(shape), along(along) {
  SmallVector<Operation *> others; // each uses what is needed, if not for the first reduction
  shape.compute.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    auto load = dyn_cast<LoadOp>(op);
    if (load ? !addLoad(load) : !addElement(op))
      others.push_back(op);
  });
  for (Operation *op : others)
    if (!shape.reductions.front()->isAncestor(op))
      for (Value operand : op->getOperands())
        if (auto it = numbers.find(operand); it != numbers.end())
          cut.addNeed(it->second);
}

/// Is an index the place along the row?
bool RowExpressions::runsAlong(Value index) {
  auto arg = dyn_cast<BlockArgument>(index);
  return arg && isa<ComputeOp, ReduceOp>(arg.getOwner()->getParentOp()) &&
         arg.getType().isIndex() && shape.endOf(arg) == shape.endOf(along);
}

/// The number of `value`, which `key` says how to compute.
unsigned RowExpressions::number(Value value, const Key &key, bool &isNew) {
  auto [it, inserted] = known.try_emplace(key, bits.size());
  isNew = inserted;
  if (isNew) {
    bits.push_back(value.getType().isIntOrFloat() ? value.getType().getIntOrFloatBitWidth() : 64);
    cut.add(bits.back());
  }
  return numbers[value] = it->second;
}

/// Adds to `key` an operand that is numbered, or is what it is all along the row.
bool RowExpressions::addOperand(Value operand, Key &key) {
  Attribute constant;
  if (auto it = numbers.find(operand); it != numbers.end())
    key.emplace_back(nullptr, it->second);
  else if (matchPattern(operand, m_Constant(&constant)))
    key.emplace_back(constant.getAsOpaquePointer(), 0);
  else if (!shape.compute->isProperAncestor(operand.getParentBlock()->getParentOp()) &&
           operand.getParentBlock() != shape.compute.getBlock())
    key.emplace_back(operand.getAsOpaquePointer(), 0);
  else
    return false;
  return true;
}

/// Numbers what is loaded at the place along the row, of a tensor that has several.
bool RowExpressions::addLoad(LoadOp load) {
  OperandRange indices = load.getIndices();
  if (indices.size() < 2 || !runsAlong(indices.back()))
    return false;
  Key key{{load.getTensor().getAsOpaquePointer(), 0}};
  for (Value index : indices.drop_back()) {
    if (index.getParentBlock() != shape.compute.getBlock() || runsAlong(index))
      return false;
    key.emplace_back(index.getAsOpaquePointer(), 0);
  }
  bool isNew = false;
  unsigned loaded = number(load, key, isNew);
  if (isNew) {
    cut.addSource(loaded);
    bitsLoaded += bits[loaded];
  }
  return true;
}

/// Numbers what is computed from numbered values.
bool RowExpressions::addElement(Operation *op) {
  if (!op->hasTrait<OpTrait::Elementwise>() || !isMemoryEffectFree(op) ||
      op->getNumRegions() != 0 || op->getNumResults() != 1 ||
      llvm::none_of(op->getOperands(), [&](Value v) { return numbers.contains(v); }))
    return false;
  Value result = op->getResult(0);
  Key key{{op->getName().getAsOpaquePointer(), 0},
          {op->getAttrDictionary().getAsOpaquePointer(), 0},
          {result.getType().getAsOpaquePointer(), 0}};
  for (Value operand : op->getOperands())
    if (!addOperand(operand, key))
      return false;
  bool isNew = false;
  unsigned computed = number(result, key, isNew);
  for (Value operand : op->getOperands())
    if (auto it = numbers.find(operand); isNew && it != numbers.end())
      cut.addUse(it->second, computed);
  return true;
}

int64_t RowExpressions::bitsBehindFirst() {
  int64_t fewest = 0;
  for (unsigned kept : cut.find())
    fewest += bits[kept];
  return fewest == 0 ? bitsLoaded : fewest;
}
