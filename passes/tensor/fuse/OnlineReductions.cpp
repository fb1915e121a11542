//===- OnlineReductions.cpp - carry dependent reductions in one loop ------===//
//
// A softmax needs the row maximum before the sum of exponentials, and attention needs both before
// the output. As separate reductions they visit the row several times. An online reduction carries
// all of them in one loop, and rescales the later ones when the running row maximum changes.
//
// 1. Pattern `weights`: store the softmax numerators of an output that is too wide for one tile
//    (StoreWeights.cpp). The remaining product is a plain one.
// 2. Pattern `join`: in each body, collect reductions over equal ranges into a group. A reduction
//    may join if its bounds need no result of the group. Its element must either need no such
//    result, or separate into a part without it and an exponential factor (OnlineAlgebra.cpp).
// 3. Build one reduction with an accumulator for each member. Its body has the members' elements in
//    order, and reads running values in place of results. Scalar operations between the members are
//    repeated inside. The rescale region computes each member's factor from the old and the new
//    running values.
// 4. A plain `exp(x - m)` becomes tk.exp_diff, or gets a guard, because the running maximum may
//    still be -inf where the final maximum is finite. If the final maximum is -inf too, every
//    `exp(x - m)` is NaN, and the result is set to NaN.
// 5. If several members sum products with inner sums, put the inner sums on the same side of each
//    product.
// 6. Record the derivation as `tk.derivation` and as a note. If a reduction cannot join, note why.
//
// The pass declines arg-max and arg-min, and contractions of different precision.
//
//   %m = tk.reduce [max] ["j"] {x}                      %m, %z = tk.reduce [max, sum] ["j"] {
//   %z = tk.reduce [sum] ["j"] {exp_diff(x, %m)}   =>     x, exp_diff(x, %m_run)
//                                                       } rescale {exp_diff(%m_old, %m_new)}
//
// Source of the scheme: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018).
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/JointSums.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ValueCopies.h"
#include "passes/tensor/fuse/OnlineBuilder.h"
#include "passes/tensor/fuse/StoreWeights.h"
#include "passes/tensor/normalize/Simplify.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tk {
#define GEN_PASS_DEF_ONLINEREDUCTIONS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-online-reductions";

/// Are both sums of as many products, which are added up before anything else is made of them? One
/// loop adds both to one tile.
static bool areOneTile(ReduceOp a, ReduceOp b) {
  return isMatrixProduct(a) && isMatrixProduct(b) && haveEqualRanges(a, b) &&
         getJointSum(cast<OpResult>(a.getResult(0))) == getJointSum(cast<OpResult>(b.getResult(0)));
}

static bool canCarry(ReduceOp reduce) {
  return !reduce.isOnline() && reduce.getKind(0) != ReduceKind::ArgMax &&
         reduce.getKind(0) != ReduceKind::ArgMin;
}

/// Whether `reduce` may join; says in `reason` why not where that is of interest.
static std::optional<Separation> tryJoin(ReduceOp reduce, ArrayRef<OnlineMember> group,
                                         std::string &reason) {
  SmallVector<ReduceOp> earlier;
  SmallVector<Value> results;
  for (const OnlineMember &member : group) {
    ReduceOp other = member.reduce;
    earlier.push_back(other);
    results.push_back(other.getResult(0));
    if (isContraction(other) && isContraction(reduce) &&
        other.getPrecision() != reduce.getPrecision()) {
      reason = "its products have another precision";
      return std::nullopt;
    }
  }
  Dependence depends(results);
  for (Value bound : reduce->getOperands())
    if (depends.on(bound)) {
      reason = "its bounds depend on an earlier result";
      return std::nullopt;
    }
  // What stands between the reductions is repeated in the loop: scalars only.
  for (Operation *op : getSlice(getInputs(reduce), reduce->getBlock()))
    if (op->getNumRegions() && !llvm::is_contained(earlier, dyn_cast<ReduceOp>(op)) &&
        llvm::any_of(op->getResults(), [&](Value result) { return depends.on(result); })) {
      reason = "it needs an earlier result through another reduction";
      return std::nullopt;
    }
  return separate(reduce, earlier, reason);
}

static std::string describeFactor(const ExponentialFactor &factor) {
  std::string text;
  llvm::raw_string_ostream os(text);
  StringRef name = isa<math::Exp2Op>(factor.op) ? "exp2" : "exp";
  StringRef from = factor.negated ? "new" : "old", to = factor.negated ? "old" : "new";
  os << name << "(";
  if (factor.scale != 1.0)
    os << factor.scale << " * (";
  os << from << " - " << to << (factor.scale != 1.0 ? "))" : ")");
  return text;
}

/// One line for each accumulator: what it is and how it follows the earlier ones.
static SmallVector<std::string> describeDerivation(ArrayRef<OnlineMember> members) {
  SmallVector<std::string> lines;
  for (const OnlineMember &member : members) {
    std::string line = describe(member.reduce) + " is part of one loop";
    for (const ExponentialFactor &factor : member.separation.factors)
      line += ": it is multiplied by " + describeFactor(factor) + " when the running " +
              (factor.negated ? "minimum" : "maximum") + " changes";
    lines.push_back(std::move(line));
  }
  return lines;
}

static bool isComputedFromSums(Value factor, Block *body) {
  return llvm::any_of(getSlice(factor, body), [](Operation *op) { return isa<ReduceOp>(op); });
}

/// Products of what is summed up inside have that factor on the same side: one tile holds the rows
/// of all sums. A product's factors may change places.
static void alignFactors(ReduceOp online) {
  SmallVector<arith::MulFOp> turned;
  bool isAnyInPlace = false;
  for (Value term : online.getYield().getValues()) {
    auto product = term.getDefiningOp<arith::MulFOp>();
    if (!product)
      continue;
    bool isLeft = isComputedFromSums(product.getLhs(), online.getBlock());
    bool isRight = isComputedFromSums(product.getRhs(), online.getBlock());
    if (isRight && !isLeft)
      turned.push_back(product);
    isAnyInPlace |= isLeft && !isRight;
  }
  if (isAnyInPlace)
    for (arith::MulFOp product : turned) {
      Value left = product.getLhs();
      product->setOperand(0, product.getRhs());
      product->setOperand(1, left);
    }
}

namespace {
struct OnlineReductionsPass : tk::impl::OnlineReductionsBase<OnlineReductionsPass> {
  using OnlineReductionsBase::OnlineReductionsBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    patterns.run("weights", [&] {
      SmallVector<ComputeOp> computes;
      getOperation()->walk([&](ComputeOp compute) { computes.push_back(compute); });
      for (ComputeOp compute : computes)
        storeWeights(compute);
    });
    patterns.run("join", [&] {
      getOperation()->walk([&](ComputeOp compute) {
        // The terms of a joined reduction repeat what they share, an attention's scores above all.
        while (joinOnce(compute))
          mergeEqualReductions(compute);
      });
    });
  }

private:
  bool joinOnce(ComputeOp compute) {
    SmallVector<Block *> blocks{compute.getBlock()};
    compute->walk<WalkOrder::PreOrder>([&](ReduceOp op) { blocks.push_back(op.getBlock()); });
    return llvm::any_of(blocks, [&](Block *block) { return joinIn(block); });
  }

  bool joinIn(Block *block) {
    SmallVector<ReduceOp> reduces;
    for (ReduceOp reduce : block->getOps<ReduceOp>())
      if (canCarry(reduce))
        reduces.push_back(reduce);
    for (auto [n, start] : llvm::enumerate(reduces)) {
      SmallVector<OnlineMember> group{{start, {}}};
      for (ReduceOp reduce : ArrayRef<ReduceOp>(reduces).drop_front(n + 1)) {
        if (!haveSameRanges(start, reduce) && !areOneTile(start, reduce))
          continue;
        std::string reason;
        if (std::optional<Separation> separation = tryJoin(reduce, group, reason))
          group.push_back({reduce, std::move(*separation)});
        else
          note(reduce, passName, Verdict::Declined,
               "the " + describe(reduce) + " is a loop of its own: " + reason);
      }
      if (group.size() == 1)
        continue;
      join(group);
      return true;
    }
    return false;
  }

  void join(ArrayRef<OnlineMember> group) {
    SmallVector<std::string> lines = describeDerivation(group);
    for (auto [member, line] : llvm::zip_equal(group, lines))
      note(member.reduce, passName, Verdict::Derived, "the " + line);
    ReduceOp online = OnlineBuilder(group).build();
    alignFactors(online);
    SmallVector<StringRef> refs(lines.begin(), lines.end());
    online->setAttr("tk.derivation", Builder(&getContext()).getStrArrayAttr(refs));
    numJoined += group.size();
  }
};
} // namespace
