//===- FoldMasks.cpp - fold identity values into masked loads -------------===//
//
// A load yields zeros outside of its bounds. A reduction with another identity value, or one of
// computed elements, selects its identity value with the load's own mask. That costs one or two
// instructions an element, although the load can yield a value that leads to the identity value by
// itself.
//
// 1. Pattern `unite-loads`: a selection between a load and a constant may have the mask of another
//    load of the same elements. It then selects from that other load (UniteLoads.cpp).
// 2. Pattern `identities` takes each load with one mask and a constant for masked elements. For 0,
//    -inf and +inf it follows, through elementwise operations, what becomes of a masked element.
// 3. A replacement is safe if every reduction sees its identity value in masked elements, and every
//    other operation sees the same value as before. Stores under the same mask see nothing.
// 4. The pass takes the safe replacement that makes the most selections equal to their operand, and
//    drops these selections.
//
// Before: %x = load ... masks(%in) other(0)      %m = reduce <max> (select %in, %x, -inf)
//         %s = reduce <sum> (select %in, (exp_diff %x, %m), 0)
// After:  %x = load ... masks(%in) other(-inf)   %m = reduce <max> %x
//         %s = reduce <sum> (exp_diff %x, %m)
//
//===----------------------------------------------------------------------===//
#include "passes/tiling/BlockProgram.h"

#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/tiling/UniteLoads.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_FOLDMASKS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

namespace {

/// What tiles that follow from one masked load hold where the mask is false.
class MaskedElements {
public:
  MaskedElements(gpu::LoadOp load, APFloat other) : load(load), other(std::move(other)) {}

  /// The one number that all masked elements of `value` are; nothing if that is not known.
  std::optional<APFloat> of(Value value);
  bool isOfMask(Value condition);

private:
  std::optional<APFloat> compute(Operation *op);

  gpu::LoadOp load;
  APFloat other;
  DenseMap<Value, std::optional<APFloat>> known;
};

} // namespace

/// Is `condition` true exactly where the load's mask is?
bool MaskedElements::isOfMask(Value condition) {
  Value mask = load.getMasks().front();
  if (condition == mask)
    return true;
  auto broadcast = condition.getDefiningOp<gpu::BroadcastOp>();
  return broadcast && broadcast.getSource() == mask &&
         broadcast.getDims() == cast<DenseI64ArrayAttr>(load.getMaskDims()[0]).asArrayRef();
}

std::optional<APFloat> MaskedElements::of(Value value) {
  if (value == load.getResult())
    return other;
  auto [place, isNew] = known.try_emplace(value, std::nullopt);
  if (!isNew)
    return place->second;
  Operation *op = value.getDefiningOp();
  std::optional<APFloat> result = op ? compute(op) : std::nullopt;
  return known[value] = result;
}

std::optional<APFloat> MaskedElements::compute(Operation *op) {
  DenseFPElementsAttr elements;
  if (matchPattern(op->getResult(0), m_Constant(&elements)) && elements.isSplat())
    return elements.getSplatValue<APFloat>();
  if (isa<arith::ExtFOp, arith::TruncFOp>(op)) {
    std::optional<APFloat> source = of(op->getOperand(0));
    bool isInexact;
    if (source)
      source->convert(
          cast<FloatType>(getElementTypeOrSelf(op->getResult(0).getType())).getFloatSemantics(),
          APFloat::rmNearestTiesToEven, &isInexact);
    return source;
  }
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return isOfMask(select.getCondition()) ? of(select.getFalseValue()) : std::nullopt;
  if (auto diff = dyn_cast<ExpDiffOp>(op)) {
    std::optional<APFloat> a = of(diff.getA());
    if (a && a->isInfinity() && a->isNegative())
      return APFloat::getZero(a->getSemantics());
  }
  return std::nullopt;
}

static bool isSame(const std::optional<APFloat> &a, const std::optional<APFloat> &b) {
  return a && b && &a->getSemantics() == &b->getSemantics() && a->bitwiseIsEqual(*b);
}

/// How many selections are their operand if masked elements are `other`; nothing if some operation
/// would see another number than before, or a reduction one that is not its identity.
static std::optional<unsigned> countGains(gpu::LoadOp load, const APFloat &before,
                                          const APFloat &other,
                                          SmallVectorImpl<arith::SelectOp> &gains) {
  MaskedElements old(load, before), now(load, other);
  SmallVector<Value> work = {load.getResult()};
  DenseSet<Value> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second || isSame(old.of(value), now.of(value)))
      continue;
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (auto reduce = dyn_cast<gpu::ReduceOp>(user)) {
        auto identity = dyn_cast<FloatAttr>(
            identityOf(reduce.getKind(), getElementTypeOrSelf(value.getType())));
        if (!identity || !isSame(now.of(value), identity.getValue()))
          return std::nullopt;
      } else if (auto store = dyn_cast<gpu::StoreOp>(user)) {
        bool isMasked = false;
        for (auto [mask, dims] : llvm::zip_equal(store.getMasks(), store.getMaskDims()))
          isMasked |= mask == load.getMasks().front() && dims == load.getMaskDims()[0];
        if (!isMasked || use.getOperandNumber() != 0)
          return std::nullopt;
      } else if (user->hasTrait<OpTrait::Elementwise>() && user->getNumResults() == 1) {
        work.push_back(user->getResult(0));
      } else {
        return std::nullopt;
      }
    }
  }
  for (Value value : seen)
    for (Operation *user : value.getUsers())
      if (auto select = dyn_cast<arith::SelectOp>(user);
          select && select.getTrueValue() == value && now.isOfMask(select.getCondition()) &&
          isSame(now.of(value), now.of(select.getFalseValue())))
        gains.push_back(select);
  return gains.size();
}

/// Tries the replacements of one load's masked elements; returns how many selections are left out.
static unsigned foldMasks(gpu::LoadOp load) {
  auto type = dyn_cast<RankedTensorType>(load.getType());
  auto element = type ? dyn_cast<FloatType>(type.getElementType()) : FloatType();
  FloatAttr before;
  if (!element || load.getMasks().size() != 1 || !load.getOther() ||
      !matchPattern(load.getOther(), m_Constant(&before)) ||
      !APFloat::semanticsHasInf(element.getFloatSemantics()))
    return 0;
  const llvm::fltSemantics &semantics = element.getFloatSemantics();
  SmallVector<arith::SelectOp> best;
  APFloat chosen = before.getValue();
  for (const APFloat &other : {before.getValue(), APFloat::getInf(semantics, /*Negative=*/true),
                               APFloat::getInf(semantics)}) {
    SmallVector<arith::SelectOp> gains;
    if (countGains(load, before.getValue(), other, gains) && gains.size() > best.size()) {
      best = gains;
      chosen = other;
    }
  }
  if (best.empty())
    return 0;
  OpBuilder builder(load);
  load.getOtherMutable().assign(
      arith::ConstantOp::create(builder, load.getLoc(), builder.getFloatAttr(element, chosen)));
  for (arith::SelectOp select : best) {
    select.getResult().replaceAllUsesWith(select.getTrueValue());
    select.erase();
  }
  return best.size();
}

namespace {

struct FoldMasks : tk::impl::FoldMasksBase<FoldMasks> {
  using FoldMasksBase::FoldMasksBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    patterns.run("unite-loads", [&] {
      for (gpu::FuncOp function : getOperation().getOps<gpu::FuncOp>())
        numFolded += uniteLoads(function);
    });
    patterns.run("identities", [&] {
      // Folding erases what may stand right behind a load, where a walk would go on.
      SmallVector<gpu::LoadOp> loads;
      getOperation().walk([&](gpu::LoadOp load) { loads.push_back(load); });
      for (gpu::LoadOp load : loads)
        numFolded += foldMasks(load);
    });
  }
};

} // namespace
