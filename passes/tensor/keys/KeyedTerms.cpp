//===- KeyedTerms.cpp - reductions of the elements with a key -------------===//
//
// The element of such a reduction is a choice against the identity of the reduction, a conversion
// or a negation of such an element, or, in a sum, a product with one:
//
//   s[i] == g ? x[i, c] : 0        x[i, c] * (s[i] == g ? 1 : 0)        s[i] == g and y[i] > 0 ? 1
//   : 0
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/keys/KeyedTerms.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tk;

//===----------------------------------------------------------------------===//
// Elements without their key
//===----------------------------------------------------------------------===//

namespace {
/// Decides whether elements are the identity of a reduction if tests of a key are false.
class AbsentElement {
public:
  AbsentElement(ReduceKind kind, ArrayRef<Value> tests) : kind(kind), tests(tests) {}

  bool isIdentity(Value value);
  SmallVector<Value> others; ///< values that are multiplied by 0

private:
  bool isFalse(Value condition);
  bool isZeroValue(Value value) {
    return matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero());
  }
  bool isZeroProduct(Operation *op);

  ReduceKind kind;
  ArrayRef<Value> tests;
};
} // namespace

bool AbsentElement::isFalse(Value condition) {
  if (llvm::is_contained(tests, condition))
    return true;
  auto both = condition.getDefiningOp<arith::AndIOp>();
  return both && (isFalse(both.getLhs()) || isFalse(both.getRhs()));
}

/// Is a value that is multiplied by 0 finite?
static bool isFinite(Value value) {
  if (!isa<FloatType>(value.getType()))
    return true;
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::SIToFPOp, arith::UIToFPOp>(op))
    return true;
  llvm::APFloat constant(0.0f);
  return matchPattern(value, m_ConstantFloat(&constant)) && constant.isFinite();
}

bool AbsentElement::isZeroProduct(Operation *op) {
  SmallVector<Value> before = others;
  bool isLeft = isIdentity(op->getOperand(0));
  SmallVector<Value> ofLeft = others;
  others = before;
  bool isRight = isIdentity(op->getOperand(1));
  if (!isLeft && !isRight)
    return false;
  if (isLeft && isRight)
    return true; // 0 * 0
  if (isLeft)
    others = ofLeft;
  Value other = op->getOperand(isLeft ? 1 : 0);
  if (!isFinite(other))
    others.push_back(other);
  return true;
}

bool AbsentElement::isIdentity(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return isIdentity(select.getFalseValue()) &&
           (isFalse(select.getCondition()) || isIdentity(select.getTrueValue()));
  if (kind == ReduceKind::Any && isFalse(value))
    return true;
  if (kind != ReduceKind::Sum)
    return tk::isIdentity(value, kind);
  // exp(-inf - m) is 0, as in the sum of a logsumexp.
  if (auto exponential = dyn_cast<ExpDiffOp>(op)) {
    AbsentElement argument(ReduceKind::Max, tests);
    return argument.isIdentity(exponential.getA());
  }
  if (isa<arith::ExtFOp, arith::TruncFOp, arith::NegFOp, arith::SIToFPOp, arith::ExtSIOp,
          arith::IndexCastOp>(op))
    return isIdentity(op->getOperand(0));
  if (isa<arith::ExtUIOp, arith::UIToFPOp>(op))
    return op->getOperand(0).getType().isInteger(1) ? isFalse(op->getOperand(0))
                                                    : isIdentity(op->getOperand(0));
  if (isa<arith::MulFOp, arith::MulIOp>(op))
    return isZeroProduct(op);
  return isZeroValue(value);
}

//===----------------------------------------------------------------------===//
// The match
//===----------------------------------------------------------------------===//

/// The index of `compute` that `value` is, as an integer of some width.
static BlockArgument indexOf(Value value, ComputeOp compute) {
  if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    value = cast.getIn();
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getOwner() == compute.getBlock() ? argument : BlockArgument();
}

/// Does `value` depend on `index` besides through `tests`?
static bool dependsBeside(Value value, Value index, ArrayRef<Value> tests) {
  SmallVector<Value> work = {value};
  llvm::SmallDenseSet<Value> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (next == index)
      return true;
    Operation *op = next.getDefiningOp();
    if (op && seen.insert(next).second && !llvm::is_contained(tests, next))
      llvm::append_range(work, getInputs(op));
  }
  return false;
}

/// Matches `key`, which a test compares with the index `group` of the compute op.
static std::optional<KeyedReduction> matchKey(ComputeOp compute, ReduceOp reduce, Value key,
                                              BlockArgument group) {
  if (!readsTable(key, compute))
    return std::nullopt;
  KeyedReduction keyed;
  keyed.reduce = reduce;
  keyed.group = group.getArgNumber();
  keyed.key.compute = compute;
  keyed.key.key = key;
  keyed.key.numKeys = compute.getExtents()[keyed.group];
  llvm::SetVector<Value> indices = getIndicesBeside({}, key);
  for (bool ofReduce : {false, true}) {
    Block *block = ofReduce ? reduce.getBlock() : compute.getBlock();
    for (Value argument : block->getArguments())
      if (indices.contains(argument))
        keyed.key.indices.push_back(argument);
    if (!ofReduce)
      keyed.key.numBatches = keyed.key.indices.size();
  }
  if (keyed.key.indices.size() != indices.size() ||
      keyed.key.numBatches == keyed.key.indices.size() || indices.contains(group))
    return std::nullopt;
  for (Value index : keyed.key.indices)
    keyed.key.extents.push_back(getExtent(index, compute));
  for (unsigned n = 0; n < reduce.getNumIndices(); ++n)
    if (!indices.contains(reduce.getIndex(n)))
      keyed.rest.push_back(n);
  if (!llvm::all_of(keyed.key.extents, [](Value extent) { return extent != nullptr; }))
    return std::nullopt;
  return keyed;
}

SmallVector<unsigned> tk::getColumnsOf(const KeyedReduction &keyed, Value value) {
  SmallVector<unsigned> columns;
  for (unsigned p : keyed.columns)
    if (dependsBeside(value, ComputeOp(keyed.key.compute).getIndex(p), keyed.tests))
      columns.push_back(p);
  return columns;
}

std::optional<KeyedReduction> tk::matchKeyedReduction(ComputeOp compute, ReduceOp reduce,
                                                      std::optional<unsigned> wanted) {
  ReduceKind kind = reduce.getKind(0);
  if (reduce.isOnline() || (kind != ReduceKind::Sum && kind != ReduceKind::Max &&
                            kind != ReduceKind::Min && kind != ReduceKind::Any))
    return std::nullopt;
  // A reduction inside the element would be computed for each place.
  for (Operation &op : *reduce.getBlock())
    if (op.getNumRegions() > 0)
      return std::nullopt;
  for (Value index : reduce.getBlock()->getArguments())
    if (!getExtent(index, compute))
      return std::nullopt;
  Value element = reduce.getYield().getValues()[0];
  for (auto test : reduce.getBlock()->getOps<arith::CmpIOp>()) {
    if (test.getPredicate() != arith::CmpIPredicate::eq)
      continue;
    for (auto [key, other] :
         {std::pair(test.getLhs(), test.getRhs()), std::pair(test.getRhs(), test.getLhs())}) {
      BlockArgument group = indexOf(other, compute);
      if (group && wanted && group.getArgNumber() != *wanted)
        continue;
      std::optional<KeyedReduction> keyed =
          group ? matchKey(compute, reduce, key, group) : std::nullopt;
      if (!keyed)
        continue;
      ScalarEquality equality;
      for (auto same : reduce.getBlock()->getOps<arith::CmpIOp>())
        if (equality.equal(same.getResult(), test.getResult()))
          keyed->tests.push_back(same);
      AbsentElement absent(kind, keyed->tests);
      if (!absent.isIdentity(element))
        continue;
      keyed->others = absent.others;
      keyed->readsGroup = dependsBeside(element, group, keyed->tests);
      // Elements of another key are counted once, not for each group.
      if (llvm::any_of(keyed->others,
                       [&](Value other) { return dependsBeside(other, group, keyed->tests); }))
        continue;
      for (unsigned p = 0; p < compute.getNumIndices(); ++p)
        if (p != keyed->group && !llvm::is_contained(keyed->key.indices, compute.getIndex(p)) &&
            dependsBeside(element, compute.getIndex(p), keyed->tests))
          keyed->columns.push_back(p);
      return keyed;
    }
  }
  return std::nullopt;
}

std::optional<std::pair<Value, Value>> tk::getKeyedFactors(const KeyedReduction &keyed) {
  auto multiply = ReduceOp(keyed.reduce).getYield().getValues()[0].getDefiningOp();
  if (!isa_and_nonnull<arith::MulFOp, arith::MulIOp>(multiply) || !keyed.rest.empty())
    return std::nullopt;
  SmallVector<unsigned> left = getColumnsOf(keyed, multiply->getOperand(0)),
                        right = getColumnsOf(keyed, multiply->getOperand(1));
  bool areApart = llvm::none_of(left, [&](unsigned p) { return llvm::is_contained(right, p); });
  if (left.empty() || right.empty() || !areApart)
    return std::nullopt;
  return std::pair(multiply->getOperand(0), multiply->getOperand(1));
}

Value tk::getCountedCondition(Value element) {
  Operation *op = element.getDefiningOp();
  if (auto cast = dyn_cast_or_null<arith::IndexCastOp>(op))
    op = cast.getIn().getDefiningOp();
  if (isa_and_nonnull<arith::ExtUIOp, arith::UIToFPOp>(op))
    return op->getOperand(0).getType().isInteger(1) ? op->getOperand(0) : Value();
  auto select = dyn_cast_or_null<arith::SelectOp>(op);
  bool isOne = select && (matchPattern(select.getTrueValue(), m_One()) ||
                          matchPattern(select.getTrueValue(), m_OneFloat()));
  return isOne ? select.getCondition() : Value();
}
