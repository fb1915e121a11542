//===- ScalarExpr.cpp - the expression DAGs inside statements -------------===//
#include "passes/analysis/ScalarExpr.h"

#include "passes/analysis/ValueCopies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tk {

//===----------------------------------------------------------------------===//
// Equality
//===----------------------------------------------------------------------===//

bool ScalarEquality::equal(Value a, Value b) {
  if (a == b || equalPairs.contains({a, b}))
    return true;
  if (a.getType() != b.getType() || unequalPairs.contains({a, b}))
    return false;
  bool same = compute(a, b);
  (same ? equalPairs : unequalPairs).insert({a, b});
  return same;
}

bool ScalarEquality::equal(ValueRange a, ValueRange b) {
  return a.size() == b.size() && llvm::all_of(llvm::zip_equal(a, b), [&](auto pair) {
           return equal(std::get<0>(pair), std::get<1>(pair));
         });
}

bool ScalarEquality::compute(Value a, Value b) {
  auto x = dyn_cast<OpResult>(a), y = dyn_cast<OpResult>(b);
  return x && y && x.getResultNumber() == y.getResultNumber() && equal(x.getOwner(), y.getOwner());
}

/// The attributes of `op` less the names of its indices and the numbers of its computations, which
/// mean nothing.
static DictionaryAttr getMeaning(Operation *op) {
  NamedAttrList attrs(op->getAttrDictionary());
  attrs.erase(computationsAttrName);
  if (isa<ReduceOp>(op))
    attrs.erase("index_names");
  if (isa<ScanOp>(op))
    attrs.erase("index_name");
  return attrs.getDictionary(op->getContext());
}

bool ScalarEquality::equal(Operation *a, Operation *b) {
  if (a == b)
    return true;
  if (a->getName() != b->getName() || a->getNumOperands() != b->getNumOperands() ||
      a->getNumRegions() != b->getNumRegions() || a->getNumResults() != b->getNumResults() ||
      isa<ComputeOp>(a) || a->getResultTypes() != b->getResultTypes() ||
      getMeaning(a) != getMeaning(b))
    return false;
  bool sameOperands = equal(a->getOperands(), b->getOperands());
  if (!sameOperands && a->hasTrait<OpTrait::IsCommutative>() && a->getNumOperands() == 2)
    sameOperands =
        equal(a->getOperand(0), b->getOperand(1)) && equal(a->getOperand(1), b->getOperand(0));
  if (!sameOperands)
    return false;
  for (auto [ra, rb] : llvm::zip_equal(a->getRegions(), b->getRegions())) {
    if (ra.empty() != rb.empty())
      return false;
    if (ra.empty())
      continue;
    if (!ra.hasOneBlock() || !rb.hasOneBlock() ||
        ra.front().getArgumentTypes() != rb.front().getArgumentTypes())
      return false;
    // Each body has arguments of its own, so that identifying them cannot clash with other pairs;
    // pairs that were unequal before may be equal under it.
    for (auto [x, y] : llvm::zip_equal(ra.front().getArguments(), rb.front().getArguments()))
      identify(x, y);
    if (!equal(ra.front().getTerminator()->getOperands(),
               rb.front().getTerminator()->getOperands()))
      return false;
  }
  return true;
}

bool haveSameRanges(ReduceOp a, ReduceOp b) {
  ScalarEquality equality;
  return equality.equal(a.getLower(), b.getLower()) && equality.equal(a.getUpper(), b.getUpper());
}

//===----------------------------------------------------------------------===//
// Dependence and slices
//===----------------------------------------------------------------------===//

bool readsTensor(Value value) {
  SmallVector<Value> rest = {value};
  while (!rest.empty()) {
    Operation *op = rest.pop_back_val().getDefiningOp();
    if (isa_and_nonnull<LoadOp>(op))
      return true;
    if (op)
      rest.append(op->operand_begin(), op->operand_end());
  }
  return false;
}

SmallVector<Value> getInputs(Operation *op) {
  // Most operations have few operands: a search through them is faster than a set.
  constexpr unsigned fewOperands = 8;
  if (op->getNumRegions() == 0 && op->getNumOperands() <= fewOperands) {
    SmallVector<Value> inputs;
    for (Value operand : op->getOperands())
      if (!llvm::is_contained(inputs, operand))
        inputs.push_back(operand);
    return inputs;
  }
  llvm::SetVector<Value> inputs(op->operand_begin(), op->operand_end());
  if (op->getNumRegions())
    getUsedValuesDefinedAbove(op->getRegions(), inputs);
  return inputs.takeVector();
}

bool Dependence::on(Value value) {
  if (roots.contains(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto it = known.find(value); it != known.end())
    return it->second;
  bool depends = llvm::any_of(getInputs(op), [&](Value input) { return on(input); });
  known[value] = depends;
  return depends;
}

Value cloneSlice(OpBuilder &builder, Value value, Block *home, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != home)
    return value;
  for (Value input : getInputs(op))
    cloneSlice(builder, input, home, mapping);
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

Value cloneFrom(OpBuilder &builder, Value value, Operation *around, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || !around->isProperAncestor(op))
    return value;
  for (Value input : getInputs(op))
    cloneFrom(builder, input, around, mapping);
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

static void addToSlice(Value value, Block *home, llvm::SetVector<Operation *> &slice) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != home || slice.contains(op))
    return;
  for (Value input : getInputs(op))
    addToSlice(input, home, slice);
  slice.insert(op);
}

SmallVector<Operation *> getSlice(ValueRange values, Block *home) {
  llvm::SetVector<Operation *> slice;
  for (Value value : values)
    addToSlice(value, home, slice);
  return slice.takeVector();
}

static void addIndices(Value value, llvm::SetVector<BlockArgument> &indices,
                       llvm::DenseSet<Value> &seen) {
  if (!seen.insert(value).second)
    return;
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    if (isa<ComputeOp, ReduceOp, ScanOp>(arg.getOwner()->getParentOp()) && arg.getType().isIndex())
      indices.insert(arg);
    return;
  }
  for (Value input : getInputs(value.getDefiningOp()))
    addIndices(input, indices, seen);
}

SmallVector<BlockArgument> getIterationIndices(Value value) {
  llvm::SetVector<BlockArgument> indices;
  llvm::DenseSet<Value> seen;
  addIndices(value, indices, seen);
  return indices.takeVector();
}

void sortByDependence(Block *block) {
  llvm::SetVector<Operation *> order;
  for (Operation &op : block->without_terminator()) {
    for (Value input : getInputs(&op))
      addToSlice(input, block, order);
    order.insert(&op);
  }
  for (Operation *op : order)
    op->moveBefore(block->getTerminator());
}

//===----------------------------------------------------------------------===//
// What values are
//===----------------------------------------------------------------------===//

/// Looks through widening, narrowing and rounding.
static Value stripCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp, arith::ExtUIOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

bool isContraction(ReduceOp reduce) {
  return !reduce.isOnline() && reduce.getKind(0) == ReduceKind::Sum &&
         isContractionTerm(reduce, reduce.getYield().getValues()[0]);
}

bool isContractionTerm(ReduceOp reduce, Value term) {
  Operation *product = term.getDefiningOp();
  if (!product || !isa<arith::MulFOp, arith::MulIOp>(product))
    return false;
  Dependence varies(reduce.getBlock()->getArguments());
  auto isFactor = [&](Value factor) {
    bool rounded = factor.getDefiningOp<arith::ExtFOp>() != nullptr;
    return varies.on(factor) && (rounded || stripCasts(factor).getDefiningOp<LoadOp>());
  };
  Value a = product->getOperand(0), b = product->getOperand(1);
  return a != b && isFactor(a) && isFactor(b);
}

static llvm::APFloat infinityOf(Type type, bool negative) {
  return llvm::APFloat::getInf(cast<FloatType>(type).getFloatSemantics(), negative);
}

Value stripClamps(Value value, Type narrow) {
  llvm::APFloat largest = llvm::APFloat::getLargest(cast<FloatType>(narrow).getFloatSemantics());
  while (Operation *op = value.getDefiningOp()) {
    llvm::APFloat limit(0.0f);
    bool isLimit = isa<arith::MinimumFOp, arith::MaximumFOp>(op) &&
                   matchPattern(op->getOperand(1), m_ConstantFloat(&limit)) &&
                   std::abs(limit.convertToDouble()) == largest.convertToDouble() &&
                   limit.isNegative() == isa<arith::MaximumFOp>(op);
    if (!isLimit)
      break;
    value = op->getOperand(0);
  }
  return value;
}

std::optional<llvm::APFloat> exactFactor(Operation *op) {
  llvm::APFloat factor(0.0f);
  if (!isa<arith::MulFOp>(op) || !matchPattern(op->getOperand(1), m_ConstantFloat(&factor)) ||
      factor.getExactLog2Abs() == INT_MIN)
    return std::nullopt;
  return factor;
}

int largestPowerOf(Type type) {
  return ilogb(llvm::APFloat::getLargest(cast<FloatType>(type).getFloatSemantics()));
}

Value createIdentity(OpBuilder &builder, Location loc, ReduceKind kind, Type type) {
  auto constant = [&](TypedAttr attr) -> Value {
    return arith::ConstantOp::create(builder, loc, type, attr);
  };
  bool isMax = kind == ReduceKind::Max || kind == ReduceKind::ArgMax;
  if (kind == ReduceKind::Max || kind == ReduceKind::Min) {
    if (isa<FloatType>(type))
      return constant(builder.getFloatAttr(type, infinityOf(type, isMax)));
    unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    return constant(builder.getIntegerAttr(type, isMax ? APInt::getSignedMinValue(width)
                                                       : APInt::getSignedMaxValue(width)));
  }
  bool one = kind == ReduceKind::Prod || kind == ReduceKind::All;
  if (isa<FloatType>(type))
    return constant(builder.getFloatAttr(type, one ? 1.0 : 0.0));
  return constant(builder.getIntegerAttr(type, one ? 1 : 0));
}

Value createCombination(OpBuilder &builder, Location loc, ReduceKind kind, Value a, Value b) {
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(a.getType()));
  switch (kind) {
  case ReduceKind::Sum:
    return isFloat ? Value(arith::AddFOp::create(builder, loc, a, b))
                   : Value(arith::AddIOp::create(builder, loc, a, b));
  case ReduceKind::Prod:
    return isFloat ? Value(arith::MulFOp::create(builder, loc, a, b))
                   : Value(arith::MulIOp::create(builder, loc, a, b));
  case ReduceKind::Max:
    return isFloat ? Value(arith::MaximumFOp::create(builder, loc, a, b))
                   : Value(arith::MaxSIOp::create(builder, loc, a, b));
  case ReduceKind::Min:
    return isFloat ? Value(arith::MinimumFOp::create(builder, loc, a, b))
                   : Value(arith::MinSIOp::create(builder, loc, a, b));
  case ReduceKind::Any:
    return arith::OrIOp::create(builder, loc, a, b);
  case ReduceKind::All:
    return arith::AndIOp::create(builder, loc, a, b);
  case ReduceKind::ArgMax:
  case ReduceKind::ArgMin:
    break;
  }
  llvm_unreachable("arg kinds combine pairs");
}

bool isZero(Value value) {
  return matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero());
}

bool isNegativeInfinity(Value value) { return matchPattern(value, m_NegInfFloat()); }

bool isIdentity(Value value, ReduceKind kind) {
  switch (kind) {
  case ReduceKind::Sum:
  case ReduceKind::Any:
    return isZero(value);
  case ReduceKind::Prod:
  case ReduceKind::All:
    return matchPattern(value, m_OneFloat()) || matchPattern(value, m_One());
  case ReduceKind::Max:
    return isNegativeInfinity(value);
  case ReduceKind::Min:
    return matchPattern(value, m_PosInfFloat());
  default:
    return false;
  }
}

} // namespace tk
