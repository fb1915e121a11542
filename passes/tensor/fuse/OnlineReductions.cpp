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
#include "passes/tensor/fuse/OnlineAlgebra.h"
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

namespace {
struct Member {
  ReduceOp reduce;
  Separation separation;
};

/// Builds the one reduction that replaces a group.
class OnlineBuilder {
public:
  explicit OnlineBuilder(ArrayRef<Member> members)
      : members(members), first(members.front().reduce), onMembers(getResults(members)) {}

  ReduceOp build();

private:
  static SmallVector<Value> getResults(ArrayRef<Member> members) {
    SmallVector<Value> results;
    for (const Member &member : members)
      llvm::append_range(results, member.reduce->getResults());
    return results;
  }
  ReduceOp createEmpty(OpBuilder &builder);
  void buildBody(ReduceOp online);
  void buildRescale(ReduceOp online);
  Value materialize(OpBuilder &builder, Value value, IRMapping &mapping);
  void guard(const ExponentialFactor &factor, IRMapping &mapping);
  Value createFactor(OpBuilder &builder, const ExponentialFactor &factor, IRMapping &olds,
                     IRMapping &news);
  Value restoreNaN(OpBuilder &builder, ReduceOp online, const Member &member, Value result);

  ArrayRef<Member> members;
  ReduceOp first;
  Dependence onMembers;
};
} // namespace

static Precision joinPrecision(ArrayRef<Member> members) {
  Precision precision = Precision::Default;
  for (const Member &member : members)
    if (ReduceOp reduce = member.reduce; isContraction(reduce))
      precision = reduce.getPrecision();
  return precision;
}

ReduceOp OnlineBuilder::createEmpty(OpBuilder &builder) {
  SmallVector<Type> types;
  SmallVector<Attribute> kinds;
  SmallVector<Location> locs;
  SmallVector<ReduceOp> reductions;
  for (const Member &member : members) {
    ReduceOp reduce = member.reduce;
    reductions.push_back(reduce);
    types.push_back(reduce.getResult(0).getType());
    kinds.push_back(reduce.getKinds()[0]);
    locs.push_back(reduce.getLoc());
  }
  Location loc = builder.getFusedLoc(locs);
  auto online = ReduceOp::create(builder, loc, types, builder.getArrayAttr(kinds),
                                 first.getIndexNames(), first.getLower(), first.getUpper(),
                                 PrecisionAttr::get(builder.getContext(), joinPrecision(members)));
  if (Attribute numbers = joinComputations(reductions))
    online->setAttr(computationsAttrName, numbers);
  Block *body = builder.createBlock(&online.getBody());
  for (BlockArgument index : first.getBlock()->getArguments())
    body->addArgument(index.getType(), index.getLoc());
  for (Type type : ArrayRef<Type>(types).drop_back())
    body->addArgument(type, loc);
  Block *rescale = builder.createBlock(&online.getRescale());
  for (unsigned copy = 0; copy < 2; ++copy)
    for (Type type : ArrayRef<Type>(types).drop_back())
      rescale->addArgument(type, loc);
  return online;
}

/// The counterpart of `value`: what needs the members' results is cloned, and what stands in their
/// bodies, which are erased; the rest stays.
Value OnlineBuilder::materialize(OpBuilder &builder, Value value, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  bool isInMember = op && llvm::any_of(members, [&](const Member &member) {
                      return ReduceOp(member.reduce)->isProperAncestor(op);
                    });
  if (!isInMember && !onMembers.on(value))
    return value;
  for (Value input : getInputs(op))
    materialize(builder, input, mapping);
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

static Value negateIf(OpBuilder &builder, Location loc, bool negated, Value value) {
  return negated ? arith::NegFOp::create(builder, loc, value).getResult() : value;
}

static Value isMinusInfinity(OpBuilder &builder, Location loc, Value value) {
  Value infinity = createIdentity(builder, loc, ReduceKind::Max, value.getType());
  return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, value, infinity);
}

static Value createZero(OpBuilder &builder, Location loc, Type type) {
  return createIdentity(builder, loc, ReduceKind::Sum, type);
}

/// Makes an exponential's counterpart 0 where its term is -inf, whatever the running bound is.
void OnlineBuilder::guard(const ExponentialFactor &factor, IRMapping &mapping) {
  if (isa<ExpDiffOp>(factor.op))
    return;
  Value exp = mapping.lookup(factor.op->getResult(0));
  OpBuilder builder(exp.getContext());
  builder.setInsertionPointAfterValue(exp);
  Location loc = exp.getLoc();
  Value term = negateIf(builder, loc, factor.negated, mapping.lookupOrDefault(factor.term));
  Value guarded;
  if (factor.isPlain) {
    Value bound = negateIf(builder, loc, factor.negated, mapping.lookupOrDefault(factor.bound));
    guarded = ExpDiffOp::create(builder, loc, term, bound);
  } else {
    guarded = arith::SelectOp::create(builder, loc, isMinusInfinity(builder, loc, term),
                                      createZero(builder, loc, exp.getType()), exp);
  }
  exp.replaceAllUsesExcept(guarded, guarded.getDefiningOp());
  mapping.map(factor.op->getResult(0), guarded);
}

void OnlineBuilder::buildBody(ReduceOp online) {
  OpBuilder builder = OpBuilder::atBlockEnd(online.getBlock());
  IRMapping mapping;
  SmallVector<Value> terms;
  for (auto [k, member] : llvm::enumerate(members)) {
    ReduceOp reduce = member.reduce;
    for (unsigned n = 0; n < reduce.getNumIndices(); ++n)
      mapping.map(reduce.getIndex(n), online.getIndex(n));
    for (Value input : getInputs(reduce))
      materialize(builder, input, mapping);
    for (Operation &op : reduce.getBlock()->without_terminator())
      builder.clone(op, mapping);
    for (const ExponentialFactor &factor : member.separation.factors)
      guard(factor, mapping);
    terms.push_back(mapping.lookupOrDefault(reduce.getYield().getValues()[0]));
    if (k + 1 < members.size())
      mapping.map(reduce.getResult(0), online.getRunning(k));
  }
  YieldOp::create(builder, online.getLoc(), terms);
}

Value OnlineBuilder::createFactor(OpBuilder &builder, const ExponentialFactor &factor,
                                  IRMapping &olds, IRMapping &news) {
  Location loc = factor.op->getLoc();
  Value before = negateIf(builder, loc, factor.negated, materialize(builder, factor.bound, olds));
  Value after = negateIf(builder, loc, factor.negated, materialize(builder, factor.bound, news));
  bool isExp2 = isa<math::Exp2Op>(factor.op);
  if (factor.scale == 1.0 && !isExp2)
    return ExpDiffOp::create(builder, loc, before, after);
  Type type = before.getType();
  Value scale = arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, factor.scale));
  Value fall = arith::SubFOp::create(builder, loc, before, after);
  Value exponent = arith::MulFOp::create(builder, loc, fall, scale);
  Value exp = isExp2 ? math::Exp2Op::create(builder, loc, exponent).getResult()
                     : math::ExpOp::create(builder, loc, exponent).getResult();
  return arith::SelectOp::create(builder, loc, isMinusInfinity(builder, loc, before),
                                 createZero(builder, loc, type), exp);
}

void OnlineBuilder::buildRescale(ReduceOp online) {
  Block *block = &online.getRescale().front();
  OpBuilder builder = OpBuilder::atBlockEnd(block);
  IRMapping olds, news;
  unsigned running = members.size() - 1;
  for (unsigned k = 0; k < running; ++k) {
    Value result = members[k].reduce->getResult(0);
    olds.map(result, block->getArgument(k));
    news.map(result, block->getArgument(running + k));
  }
  SmallVector<Value> factors;
  for (const Member &member : members.drop_front()) {
    Value product;
    for (const ExponentialFactor &factor : member.separation.factors) {
      Value next = createFactor(builder, factor, olds, news);
      product =
          product ? arith::MulFOp::create(builder, next.getLoc(), product, next).getResult() : next;
    }
    ReduceOp reduce = member.reduce;
    factors.push_back(product ? product
                              : createIdentity(builder, online.getLoc(), ReduceKind::Prod,
                                               reduce.getResult(0).getType()));
  }
  YieldOp::create(builder, online.getLoc(), factors);
}

/// Plain exponentials of -inf - -inf are NaN: so is their sum, unless there is no term.
Value OnlineBuilder::restoreNaN(OpBuilder &builder, ReduceOp online, const Member &member,
                                Value result) {
  Location loc = result.getLoc();
  IRMapping finals;
  for (auto [k, other] : llvm::enumerate(members))
    finals.map(other.reduce->getResult(0), online.getResult(k));
  for (const ExponentialFactor &factor : member.separation.factors) {
    if (isa<ExpDiffOp>(factor.op))
      continue;
    Value bound = materialize(builder, factor.bound, finals);
    Value spoilt = isMinusInfinity(builder, loc, negateIf(builder, loc, factor.negated, bound));
    for (auto [lower, upper] : llvm::zip_equal(online.getLower(), online.getUpper())) {
      Value some = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, lower, upper);
      spoilt = arith::AndIOp::create(builder, loc, spoilt, some);
    }
    auto type = cast<FloatType>(result.getType());
    Value nan = arith::ConstantOp::create(
        builder, loc, builder.getFloatAttr(type, llvm::APFloat::getNaN(type.getFloatSemantics())));
    result = arith::SelectOp::create(builder, loc, spoilt, nan, result);
  }
  return result;
}

ReduceOp OnlineBuilder::build() {
  OpBuilder builder(members.back().reduce);
  ReduceOp online = createEmpty(builder);
  buildBody(online);
  buildRescale(online);
  builder.setInsertionPointAfter(online);
  SmallVector<Value> results;
  for (auto [k, member] : llvm::enumerate(members))
    results.push_back(restoreNaN(builder, online, member, online.getResult(k)));
  for (auto [member, result] : llvm::zip_equal(members, results))
    ReduceOp(member.reduce).getResult(0).replaceAllUsesWith(result);
  for (const Member &member : members)
    ReduceOp(member.reduce).erase();
  sortByDependence(online->getBlock());
  return online;
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

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
static std::optional<Separation> tryJoin(ReduceOp reduce, ArrayRef<Member> group,
                                         std::string &reason) {
  SmallVector<ReduceOp> earlier;
  SmallVector<Value> results;
  for (const Member &member : group) {
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
static SmallVector<std::string> describeDerivation(ArrayRef<Member> members) {
  SmallVector<std::string> lines;
  for (const Member &member : members) {
    std::string line = describe(member.reduce);
    if (member.separation.factors.empty())
      line += ": carried as it is";
    for (const ExponentialFactor &factor : member.separation.factors)
      line += ": its terms separate, so that it is multiplied by " + describeFactor(factor) +
              " when the running " + (factor.negated ? "minimum" : "maximum") + " changes";
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
      SmallVector<Member> group{{start, {}}};
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

  void join(ArrayRef<Member> group) {
    SmallVector<std::string> lines = describeDerivation(group);
    for (auto [member, line] : llvm::zip_equal(group, lines))
      note(member.reduce, passName, Verdict::Derived, "in one loop: " + line);
    ReduceOp online = OnlineBuilder(group).build();
    alignFactors(online);
    SmallVector<StringRef> refs(lines.begin(), lines.end());
    online->setAttr("tk.derivation", Builder(&getContext()).getStrArrayAttr(refs));
    numJoined += group.size();
  }
};
} // namespace
