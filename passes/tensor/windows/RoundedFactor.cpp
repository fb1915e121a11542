//===- RoundedFactor.cpp - factors that are rounded where they are read ---===//
#include "passes/tensor/windows/RoundedFactor.h"

#include "passes/analysis/SizeFacts.h"
#include "passes/tensor/normalize/PadConditions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

/// The tensor that `load` reads, rounded as `round` does, before `compute`.
static ComputeOp createRounded(ComputeOp compute, LoadOp load, arith::TruncFOp round) {
  OpBuilder builder(compute);
  Value tensor = load.getTensor();
  SmallVector<Value> extents = getExtents(compute->getParentOfType<KernelOp>(), tensor);
  SmallVector<std::string> names;
  for (unsigned axis = 0; axis < extents.size(); ++axis)
    names.push_back("at" + std::to_string(axis));
  const std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + ".rounded").str();
  return ComputeOp::create(
      builder, load.getLoc(), SmallVector<StringRef>(names.begin(), names.end()), extents,
      ArrayRef<Type>{round.getType()}, ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{},
      [&](OpBuilder &body, Location loc, ValueRange indices) {
        Value element = LoadOp::create(body, loc, tensor, indices, Value());
        Value rounded = arith::TruncFOp::create(body, loc, round.getType(), element);
        YieldOp::create(body, loc, ValueRange{rounded});
      });
}

/// The tensor in 16 bits that `load` reads an extended copy of, element by element, if `round`
/// gives the same elements again; null if there is none.
static Value tensorOfCopy(LoadOp load, arith::TruncFOp round) {
  auto producer = load.getTensor().getDefiningOp<ComputeOp>();
  if (!producer || producer.getNumResults() != 1 || producer.getResultIndices())
    return Value();
  auto extension = producer.getYield().getValues()[0].getDefiningOp<arith::ExtFOp>();
  auto element = extension ? extension.getIn().getDefiningOp<LoadOp>() : LoadOp();
  const bool isCopy = element && !element.getPad() && element.getType() == round.getType() &&
                      llvm::equal(element.getIndices(), producer.getBlock()->getArguments());
  return isCopy ? element.getTensor() : Value();
}

std::optional<RoundedFactor> RoundedFactor::of(ComputeOp compute, ReduceOp reduce) {
  Operation *product = reduce.getYield().getValues()[0].getDefiningOp();
  if (!isa_and_nonnull<arith::MulFOp>(product))
    return std::nullopt;
  for (Value factor : product->getOperands()) {
    auto extension = factor.getDefiningOp<arith::ExtFOp>();
    auto round = extension ? extension.getIn().getDefiningOp<arith::TruncFOp>() : arith::TruncFOp();
    auto load = round ? round.getIn().getDefiningOp<LoadOp>() : LoadOp();
    if (!load || load->getBlock() != reduce.getBlock() || !load.getType().isF32() ||
        round.getType().getIntOrFloatBitWidth() != 16)
      continue;
    RoundedFactor rounded;
    Value tensor = tensorOfCopy(load, round);
    if (!tensor) {
      rounded.copy = createRounded(compute, load, round);
      tensor = rounded.copy.getResult(0);
    }
    rounded.extension = extension;
    rounded.before = round;
    OpBuilder inside(round);
    Value pad;
    if (load.getPad())
      pad = arith::TruncFOp::create(inside, load.getLoc(), round.getType(), load.getPad());
    Value whole = LoadOp::create(inside, load.getLoc(), tensor, load.getIndices(), pad);
    extension->setOperand(0, whole);
    return rounded;
  }
  return std::nullopt;
}

void RoundedFactor::keep() {
  if (copy && llvm::any_of(copy->getUsers(), [](Operation *user) {
        return isa<LoadOp>(user) && isa<ReduceOp>(user->getParentOp());
      }))
    copy->setAttr(storedApartAttrName, UnitAttr::get(copy.getContext()));
}

void RoundedFactor::undo() {
  auto whole = extension->getOperand(0).getDefiningOp<LoadOp>();
  Operation *pad = whole.getPad() ? whole.getPad().getDefiningOp() : nullptr;
  extension->setOperand(0, before);
  whole.erase();
  if (pad && pad->use_empty())
    pad->erase();
  if (copy)
    copy.erase();
}
