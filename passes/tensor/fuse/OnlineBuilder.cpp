//===- OnlineBuilder.cpp - one reduction for a group ----------------------===//
//
// The body computes the terms of all members from the running values of the earlier ones. The
// rescale region gives each member the factor by which it changes with these. Exponentials of -inf
// are 0 in the body; behind the reduction, a member is NaN where plain exponentials would make it
// NaN.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/fuse/OnlineBuilder.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/JointSums.h"
#include "passes/analysis/ValueCopies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tk;

static Precision joinPrecision(ArrayRef<OnlineMember> members) {
  Precision precision = Precision::Default;
  for (const OnlineMember &member : members)
    if (ReduceOp reduce = member.reduce; isContraction(reduce))
      precision = reduce.getPrecision();
  return precision;
}

ReduceOp OnlineBuilder::createEmpty(OpBuilder &builder) {
  SmallVector<Type> types;
  SmallVector<Attribute> kinds;
  SmallVector<Location> locs;
  SmallVector<ReduceOp> reductions;
  for (const OnlineMember &member : members) {
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
  bool isInMember = op && llvm::any_of(members, [&](const OnlineMember &member) {
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
  for (const OnlineMember &member : members.drop_front()) {
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
Value OnlineBuilder::restoreNaN(OpBuilder &builder, ReduceOp online, const OnlineMember &member,
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
  for (const OnlineMember &member : members)
    ReduceOp(member.reduce).erase();
  sortByDependence(online->getBlock());
  return online;
}
