//===- SelectElements.cpp - one element that differs ----------------------===//
//
// The gradient of a cross-entropy loss is a row of softmax numerators, less 1 at the label. A
// comparison and a choice for every element cost three instructions each, for the sake of one
// element.
//
// 1. The pass finds choices between tiles by whether an element's index along the only axis is a
//    given scalar.
// 2. The choice may be between two constants, the second of which leaves another operation's
//    operand as it is: x - 0, x + -0 or x * 1. It becomes a choice between that operation's
//    results.
// 3. A choice between tiles becomes a `tkgpu.select_at`: only the threads that hold the element
//    look into it. Choices whose other tile is a cheap one stay.
//
// Before: %is = cmpi eq, iota, %n; %t = select %is, 1, 0; %y = %x - %t
// After:  %a = %x - 1; %y = select_at %a at %n else %x
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/layout/TileComponents.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_SELECTELEMENTS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// The scalar that `condition` compares the numbers of a tile's elements with; null if it does not.
static Value comparedIndex(Value condition) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq)
    return {};
  Value a = compare.getLhs(), b = compare.getRhs();
  if (!a.getDefiningOp<IotaOp>())
    std::swap(a, b);
  auto iota = a.getDefiningOp<IotaOp>();
  auto spread = b.getDefiningOp<BroadcastOp>();
  bool matches =
      iota && getLayout(iota.getType()) && spread && spread.getSource().getType().isIndex();
  return matches ? spread.getSource() : Value();
}

/// Is the result of `op` its first operand, to the bit, where the second is `value`?
static bool leavesOperand(Operation *op, Value value) {
  if (isa<arith::SubFOp>(op))
    return matchPattern(value, m_PosZeroFloat());
  if (isa<arith::AddFOp>(op))
    return matchPattern(value, m_NegZeroFloat());
  return isa<arith::MulFOp>(op) && matchPattern(value, m_OneFloat());
}

/// Moves the choice behind the operation that it is the second operand of.
static arith::SelectOp sink(arith::SelectOp select) {
  if (!select->hasOneUse() || !matchPattern(select.getTrueValue(), m_Constant()))
    return select;
  Operation *user = *select->user_begin();
  if (user->getNumOperands() != 2 || user->getOperand(1) != select.getResult() ||
      !leavesOperand(user, select.getFalseValue()))
    return select;
  OpBuilder builder(user);
  Operation *chosen = builder.clone(*user);
  chosen->setOperand(1, select.getTrueValue());
  auto sunk = arith::SelectOp::create(builder, user->getLoc(), select.getCondition(),
                                      chosen->getResult(0), user->getOperand(0));
  user->getResult(0).replaceAllUsesWith(sunk);
  user->erase();
  select.erase();
  return sunk;
}

namespace {

struct SelectElements : tk::impl::SelectElementsBase<SelectElements> {
  void runOnOperation() override {
    SmallVector<std::pair<arith::SelectOp, Value>> choices;
    getOperation().walk([&](arith::SelectOp select) {
      if (isTile(select.getResult()))
        if (Value index = comparedIndex(select.getCondition()))
          choices.push_back({select, index});
    });
    for (auto [choice, index] : choices) {
      arith::SelectOp select = sink(choice);
      if (isCheapTile(select.getFalseValue()))
        continue;
      OpBuilder builder(select);
      Value at = SelectAtOp::create(builder, select.getLoc(), index, select.getTrueValue(),
                                    select.getFalseValue());
      select.getResult().replaceAllUsesWith(at);
      Operation *compare = select.getCondition().getDefiningOp();
      select.erase();
      if (compare->use_empty())
        compare->erase();
      ++numSelected;
    }
  }
};

} // namespace
