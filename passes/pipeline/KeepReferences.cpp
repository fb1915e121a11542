//===- KeepReferences.cpp - deferred rescaling ----------------------------===//
//
// An online softmax takes exponentials relative to the running row maximum, so that none is too
// large. The results do not depend on that number, and f32 has a wide range. Any number near the
// greatest score will do, and the maximum of a row's first iterations nearly always is near. In
// loops without masks, this pass keeps that maximum (deferred rescaling), and checks the row sums
// for overflow.
//
// 1. The loop must follow a loop with masks, or a first iteration that stands before it. Its
//    iterations lose the maximum, its exchange between lanes, the rescaling factor, and the
//    multiplication by it. So do iterations with masks after it, which could otherwise rescale sums
//    that have left the range.
// 2. When a tile is complete, a thread sets a flag if the row sum is NaN, or not between 2^-64 and
//    2^64. The range is 2^-11 to 2^23 if the maximum is added to the sum's logarithm.
// 3. Producer and consumers run a block's tiles up to twice. The block synchronises after the first
//    run. If the flag is set, it computes all tiles again with a maximum in every iteration. The
//    loop with masks, or else a copy of the loop as it was, then takes all iterations. That happens
//    if a row's scores grow by more than 44, in units of the exponent, after its first iterations.
//
// The pass takes bf16 numerators, scores that are products without further work, and maxima that
// cancel from the results (passes/numerics/FreeReferences.cpp). It needs exactly one such loop, and
// room for the flag. A tile must be stored completely, and read nothing that is stored. The kernel
// must not replace a parameter, nor give each warpgroup tiles of its own.
//
//   for %t = 0 to %n {                        for %pass = 0 to 2 {
//     for %j = %a to %x { mask; ... }           %end = %pass ? doubted ? %n : 0 : %n
//     %m, %l = for %j = %x to %b {              for %t = 0 to %end {
//       %m' = max %m, reduce max %s               for %j = %a to (%pass ? %b : %x) { mask; ... }
//       %p = exp (%s - %m')                       %l = for %j = (%pass ? %b : %x) to %b {
//       %f = exp (%m - %m')              →          %p = exp (%s - %m)
//       %l' = %l * %f + sum %p                      %l' = %l + sum %p
//       %o' = (%o + ...) * %f                       %o' = %o + ...
//     }                                           }
//     store %o / %l                               doubt %l; store %o / %l
//   }                                         }}
//
// Speed relative to without, H200: 1.02 to 1.08 for windows of 1000 to 4096 keys, 0.98 for 384
// (lab/results/2026-11-27-h200-kept-references.md); 1.0 to 1.14 for full and causal attention
// (2026-11-28-h200-masks-and-references.md there). In windows, three or more warpgroups whose
// rescaling can be deferred run unordered (Rings.cpp).
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/layout/Branches.h"
#include "passes/layout/BulkBox.h"
#include "passes/machine/limits/Loops.h"
#include "passes/pipeline/ReferenceLoop.h"
#include "passes/pipeline/RepeatedTiles.h"
#include "passes/pipeline/Rings.h"

#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_KEEPREFERENCES
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::keep_references;

namespace {

/// The loop over a tile's steps without masks, and those around it.
class KeptReference {
public:
  KeptReference(scf::ForOp loop, WarpRolesOp roles) : plain(loop), roles(roles) {}

  bool analyse();
  void apply(Value isAgain, Value phases);

  scf::ForOp tiles; ///< of the consumers

private:
  bool findMasked();
  bool isBegun();
  void createRepeated();
  bool addBehind(scf::ForOp loop);
  bool findTotal();
  bool haveRange();
  bool isRead();
  Value askBehind(OpBuilder &builder, Value asked);

  ReferenceLoop plain;
  llvm::SmallVector<ReferenceLoop, 0> behind; ///< steps with masks that come last
  scf::ForOp masked;                          ///< those that go before; null: none
  WarpRolesOp roles;
  scf::IfOp branch; ///< around the loops, if there is one: whether the tile has steps
  Value total;      ///< a row's sum, where a tile is complete
};

} // namespace

/// The loop with masks whose results that without them goes on with, in the same order, in steps of
/// the same length.
bool KeptReference::findMasked() {
  scf::ForOp loop = plain.loop;
  masked = loop.getInitArgs().front().getDefiningOp<scf::ForOp>();
  Operation *end = loop.getUpperBound().getDefiningOp();
  return masked && masked->getBlock() == loop->getBlock() &&
         isEqualConstantIntOrValue(masked.getStep(), loop.getStep()) &&
         llvm::equal(masked.getResults(), loop.getInitArgs()) &&
         llvm::any_of(masked.getBody()->getOps<gpu::ReduceOp>(),
                      [](gpu::ReduceOp reduce) {
                        return reduce.getKind() == ReduceKind::Max &&
                               !isPlainScore(reduce.getSource());
                      }) &&
         (!end || end->getBlock() != masked->getBlock() || end->isBeforeInBlock(masked));
}

/// Has a tile's first step been taken before the loop? Its maximum is the reference then.
bool KeptReference::isBegun() {
  Value init = plain.initOfReference()->get();
  return init.getDefiningOp() && !matchPattern(init, m_Constant());
}

/// Makes a loop that goes before, without steps but where a tile is computed again: it has maxima,
/// and masks if there are any.
void KeptReference::createRepeated() {
  scf::ForOp loop = behind.empty() ? plain.loop : behind.front().loop;
  OpBuilder builder(plain.loop);
  masked = cast<scf::ForOp>(builder.clone(*loop));
  masked.setLowerBound(plain.loop.getLowerBound());
  masked.setUpperBound(plain.loop.getLowerBound());
  masked.getInitArgsMutable().assign(plain.loop.getInitArgs());
  plain.loop.getInitArgsMutable().assign(masked.getResults());
}

/// Do weights and sums have the range of f32?
bool KeptReference::haveRange() {
  bool areWeighted = false;
  for (auto dot : plain.loop.getBody()->getOps<WarpgroupDotOp>())
    if (auto weights = dyn_cast<RankedTensorType>(dot.getA().getType())) {
      if (!weights.getElementType().isBF16())
        return false;
      areWeighted = true;
    }
  return areWeighted;
}

/// Adds a loop that goes on with all that the last one has carried. Its steps are those of the loop
/// with masks, which has all of them if a tile is computed again. A maximum that it kept would
/// scale sums down that had left their range.
bool KeptReference::addBehind(scf::ForOp loop) {
  scf::ForOp last = behind.empty() ? plain.loop : behind.back().loop;
  ReferenceLoop next(loop);
  if (!next.analyse(/*isMasked=*/true) || next.sum != plain.sum ||
      !llvm::equal(last.getResults(), loop.getInitArgs()) ||
      !isEqualConstantIntOrValue(loop.getStep(), last.getStep()))
    return false;
  scf::ForOp other = masked || behind.empty() ? masked : behind.front().loop;
  if (other && !OperationEquivalence::isRegionEquivalentTo(&other.getRegion(), &loop.getRegion(),
                                                           OperationEquivalence::IgnoreLocations))
    return false;
  behind.push_back(next);
  return true;
}

/// Follows the sum of weights to where the tile is complete.
bool KeptReference::findTotal() {
  Value value = plain.loop.getResult(plain.sum);
  while (value.getParentBlock() != tiles.getBody()) {
    Value next;
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (user->getBlock() != value.getParentBlock())
        continue;
      if (auto further = dyn_cast<scf::ForOp>(user)) {
        if (!addBehind(further))
          return false;
        next = further.getTiedLoopResult(&use);
      } else if (isa<scf::YieldOp>(user) && user->getParentOp() == branch) {
        next = branch.getResult(use.getOperandNumber());
      } else {
        return false;
      }
      break;
    }
    if (!next)
      return false;
    value = next;
  }
  total = value;
  for (Operation *user : value.getUsers())
    if (auto exchange = dyn_cast<gpu::ReduceOp>(user);
        exchange && exchange.getKind() == ReduceKind::Sum)
      total = exchange.getResult();
  auto type = dyn_cast<RankedTensorType>(total.getType());
  return type && type.getRank() == 1 && type.getElementType().isF32();
}

bool KeptReference::analyse() {
  if (plain.loop.getInitArgs().empty() || !plain.analyse(/*isMasked=*/false) || !haveRange())
    return false;
  if (!findMasked()) {
    masked = {};
    if (!isBegun())
      return false;
  }
  Operation *parent = plain.loop->getParentOp();
  branch = dyn_cast<scf::IfOp>(parent);
  tiles = dyn_cast<scf::ForOp>(branch ? branch->getParentOp() : parent);
  return tiles && tiles->getParentOp() == roles && findTotal();
}

/// Is the reference of use where the tile is complete?
bool KeptReference::isRead() {
  Value reference = (behind.empty() ? plain : behind.back()).referenceBehind();
  return llvm::any_of(reference.getUses(), [&](OpOperand &use) {
    return use.getOwner()->getParentOp() != branch || !isa<scf::YieldOp>(use.getOwner()) ||
           !branch.getResult(use.getOperandNumber()).use_empty();
  });
}

/// Whether the loops have had steps, where the tile is complete: there `builder` goes on. It
/// follows from where the tile is, and is asked for again: carried along it would take a register
/// through the tile's end.
Value KeptReference::askBehind(OpBuilder &builder, Value asked) {
  builder.setInsertionPointAfterValue(total);
  if (!branch)
    return asked;
  Location loc = plain.loop.getLoc();
  SmallVector<Operation *> slice = getSlice(asked, branch.thenBlock());
  bool isScalar = llvm::all_of(slice, [](Operation *op) {
    return op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
           llvm::none_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
  });
  if (isScalar) {
    IRMapping mapping;
    Value here = cloneSlice(builder, asked, branch.thenBlock(), mapping);
    return arith::AndIOp::create(builder, loc, branch.getCondition(), here);
  }
  auto none = OpBuilder::atBlockBegin(branch.elseBlock());
  const bool isBranch = total.getDefiningOp() == branch;
  const unsigned number = isBranch ? cast<OpResult>(total).getResultNumber() : 0;
  asked = addResult(branch, asked, arith::ConstantIntOp::create(none, loc, 0, 1));
  total = isBranch ? branch.getResult(number) : total;
  builder.setInsertionPointAfterValue(total);
  return asked;
}

void KeptReference::apply(Value isAgain, Value phases) {
  Location loc = plain.loop.getLoc();
  if (!masked)
    createRepeated();
  OpBuilder builder(masked);
  Value end = behind.empty() ? plain.loop.getUpperBound() : behind.back().loop.getUpperBound();
  masked.setUpperBound(arith::SelectOp::create(builder, loc, isAgain, end, masked.getUpperBound()));
  auto keepFrom = [&](scf::ForOp loop) -> Value {
    builder.setInsertionPoint(loop);
    Value from = arith::SelectOp::create(builder, loc, isAgain, end, loop.getLowerBound());
    loop.setLowerBound(from);
    return from;
  };
  for (ReferenceLoop &last : behind)
    keepFrom(last.loop);
  Value from = keepFrom(plain.loop);
  // A tile of no such step has the references that it would have had.
  Value asked = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, from, end);
  // Weights of rows that have had no score are relative to 0, and those of later steps go on from
  // there.
  OpOperand *init = plain.initOfReference();
  auto type = cast<RankedTensorType>(init->get().getType());
  auto splat = [&](const APFloat &number) -> Value {
    return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, number));
  };
  const llvm::fltSemantics &f32 = APFloat::IEEEsingle();
  Value isNone = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, init->get(),
                                       splat(APFloat::getInf(f32, /*Negative=*/true)));
  Value some =
      arith::SelectOp::create(builder, loc, isNone, splat(APFloat::getZero(f32)), init->get());
  init->set(arith::SelectOp::create(builder, loc, asked, some, init->get()));
  plain.dropMaximum();
  for (ReferenceLoop &last : behind)
    last.dropMaximum();
  const bool isNarrow = isRead();
  Value askedBehind = askBehind(builder, asked);
  DoubtOp::create(builder, loc, phases, askedBehind, total,
                  builder.getF32FloatAttr(isNarrow ? kLeastOfLog : kLeastSum),
                  builder.getF32FloatAttr(isNarrow ? kMostOfLog : kMostSum));
}

/// The only loop of the copies' program.
static scf::ForOp copiesOf(WarpRolesOp roles) {
  auto loops = llvm::to_vector(roles.getProducer().getOps<scf::ForOp>());
  return loops.size() == 1 && loops.front()->use_empty() ? loops.front() : scf::ForOp();
}

/// Leaves maxima out of the one such loop of a consumer's program, if there is one.
static bool keepReferences(FuncOp function, WarpRolesOp roles) {
  SmallVector<KeptReference, 1> found;
  roles.getConsumer().walk([&](scf::ForOp loop) {
    if (KeptReference kept(loop, roles); kept.analyse())
      found.push_back(kept);
  });
  scf::ForOp copies = copiesOf(roles);
  if (found.size() != 1 || !copies || function.getTeams() > 1 || getPlan(function).inPlace)
    return false;
  KeptReference &kept = found.front();
  if (!canRepeat(kept.tiles) || !canRepeat(copies) || !haveRoomForFlag(function))
    return false;
  OpBuilder builder = beforeBarrier(roles);
  auto phases =
      AllocPhasesOp::create(builder, roles.getLoc(), PhasesType::get(builder.getContext(), 2),
                            function.getTeamWarps(), nullptr, /*notes=*/true);
  repeatTiles(copies, phases);
  kept.apply(repeatTiles(kept.tiles, phases), phases);
  return true;
}

namespace {

struct KeepReferences : tk::impl::KeepReferencesBase<KeepReferences> {
  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>())
      for (auto roles : llvm::to_vector(function.getBlock()->getOps<WarpRolesOp>())) {
        if (!keepReferences(function, roles))
          continue;
        ++numLoops;
        changePlan(function, [](KernelPlan &plan) { plan.rowMaximum = RowMaximum::Deferred; });
        if (auto arguments = LaunchArguments::of(function))
          note(arguments->getLaunch(), "tk-keep-references", Verdict::Derived,
               "iterations behind a tile's first ones keep the row maximum (deferred rescaling); a "
               "block computes its tiles again if a row sum leaves its range");
      }
  }
};

} // namespace
