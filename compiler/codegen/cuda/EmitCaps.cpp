//===- EmitCaps.cpp - tiles with a soft cap -------------------------------===//
//
// factor * tanh(x * scale), to which something may be added, is one function of a tile. Its
// polynomial has both factors in the coefficients: they are computed before the outermost loop that
// the factors are known at. Weights of such a tile under a reference are the same function to the
// base 2, with log2(e) in the coefficients. Of references that rows share, what is the same in all
// steps of a loop is computed before it.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/numerics/BoundScores.h"
#include "passes/pipeline/Rings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tk::cuda {

static constexpr llvm::StringLiteral kTimesLog2e = " * 1.4426950408889634f";
/// Of a fragment's scores so many are computed at a time where a warpgroup's own instructions are
/// what a step takes. With three warpgroups of 160 registers 32 are 2 to 4 % faster than 16, if
/// there are registers beside them, which numbers to add by columns take, and 16 are 2.7 % faster
/// than 8. With four of 112 they are spilled, and where two take turns they are 0.6 % slower.
static constexpr int64_t kScoresOfPart = 32, kScoresBesideColumns = 16;

/// The number that all of a tile is: a scalar, or a constant tile; null if it is none.
static Value uniformNumber(Value tile) {
  if (Value scalar = gpu::splatSource(tile))
    return scalar;
  DenseElementsAttr constant;
  return matchPattern(tile, m_Constant(&constant)) && constant.isSplat() ? tile : Value();
}

/// Which of an operation's first two operands is the same number for all of a tile; -1 if neither.
static int uniformFactor(Operation *product) {
  for (int side : {0, 1})
    if (uniformNumber(product->getOperand(side)))
      return side;
  return -1;
}

/// The hyperbolic tangent of few bits that `op` is, or that it multiplies by a number: then which
/// operand the number is, else -1.
static std::pair<math::TanhOp, int> factoredTanh(Operation *op) {
  int factor = isa<arith::MulFOp, math::FmaOp>(op) ? uniformFactor(op) : -1;
  auto tanh = dyn_cast<math::TanhOp>(op);
  if (factor >= 0) {
    tanh = op->getOperand(1 - factor).getDefiningOp<math::TanhOp>();
    if (tanh && (!tanh->hasOneUse() || tanh->getBlock() != op->getBlock()))
      tanh = {};
  }
  return {tanh && gpu::hasMode(tanh, gpu::MathMode::Approx) ? tanh : math::TanhOp(), factor};
}

/// The operation that a cap with `tanh` ends with: the product that it is a factor of, or itself.
static Operation *endOfCap(math::TanhOp tanh) {
  Operation *user = tanh->use_empty() ? nullptr : *tanh->user_begin();
  return user && factoredTanh(user).first == tanh ? user : tanh;
}

/// The approximate exponential that is all that reads a tile, if it takes it less what rows have in
/// common, or all of the tile.
static ExpDiffOp weightsOf(Operation *scores) {
  auto weights = scores->hasOneUse() ? dyn_cast<ExpDiffOp>(*scores->user_begin()) : ExpDiffOp();
  bool isUnder = weights && gpu::hasMode(weights, gpu::MathMode::Approx) &&
                 weights->getBlock() == scores->getBlock() &&
                 weights.getA() == scores->getResult(0) &&
                 weights.getB().getDefiningOp<gpu::BroadcastOp>();
  return isUnder ? weights : ExpDiffOp();
}

std::pair<Value, gpu::IotaOp> KernelEmitter::risingBy(Value added) {
  auto spread = added.getDefiningOp<gpu::BroadcastOp>();
  auto product = spread ? spread.getSource().getDefiningOp<arith::MulFOp>() : arith::MulFOp();
  if (!product || !isTile(product) || mlir::failed(registersInSource(spread)))
    return {};
  for (unsigned side : {0u, 1u}) {
    Value slope = gpu::splatSource(product->getOperand(side));
    auto places = product->getOperand(1 - side).getDefiningOp<gpu::IotaOp>();
    if (slope && places)
      return {slope, places};
  }
  return {};
}

/// Rows' references, and a number that is taken from all of them, or null.
static std::pair<Value, Value> splitReference(Value reference) {
  Value rows = reference.getDefiningOp<gpu::BroadcastOp>().getSource();
  if (auto rest = rows.getDefiningOp<arith::SubFOp>())
    if (Value step = gpu::splatSource(rest.getRhs()))
      return {rest.getLhs(), step};
  return {rows, Value()};
}

std::optional<CappedTile> KernelEmitter::cappedTile(Operation *op) {
  auto weights = dyn_cast<ExpDiffOp>(op);
  Operation *scores = weights ? weights.getA().getDefiningOp() : op;
  if (!scores || weightsOf(scores) != weights)
    return std::nullopt;
  std::optional<CappedTile> capped = cappedScores(scores);
  if (capped && weights) {
    capped->reference = weights.getB();
    capped->hasSharedRows = gpu::hasMode(weights, gpu::MathMode::SharedRows);
  }
  return capped;
}

std::optional<CappedTile> KernelEmitter::cappedScores(Operation *op) {
  if (op->getNumResults() != 1 || !isTile(op->getResult(0)) || registersOf(op->getResult(0)) <= 1)
    return std::nullopt;
  auto [tanh, factor] = factoredTanh(op);
  auto inner = tanh && endOfCap(tanh) == op ? tanh.getOperand().getDefiningOp<arith::MulFOp>()
                                            : arith::MulFOp();
  // The product is within this cap alone: it does not end another one.
  if (!inner || !inner->hasOneUse() || inner->getBlock() != op->getBlock() ||
      factoredTanh(inner).first)
    return std::nullopt;
  const int scale = uniformFactor(inner);
  if (scale < 0)
    return std::nullopt;
  CappedTile capped{
      inner->getOperand(1 - scale), uniformNumber(inner->getOperand(scale)), {}, {}, {}, false};
  if (factor >= 0)
    capped.factor = uniformNumber(op->getOperand(factor));
  if (isa<math::FmaOp>(op))
    capped.added = op->getOperand(2);
  return capped;
}

bool KernelEmitter::isWithinCappedTile(Operation *op) {
  auto tanh = dyn_cast<math::TanhOp>(op);
  if (isa<arith::MulFOp>(op) && op->hasOneUse())
    tanh = dyn_cast<math::TanhOp>(*op->user_begin());
  Operation *end = tanh ? endOfCap(tanh) : op;
  if (ExpDiffOp weights = weightsOf(end))
    end = weights;
  return (end != op && cappedTile(end)) || isWithinReferences(op);
}

StepOfReferences KernelEmitter::stepOf(const CappedTile &capped) {
  Value step = splitReference(capped.reference).second;
  Value slope = risingBy(capped.added).first;
  if (auto product = step ? step.getDefiningOp<arith::MulFOp>() : arith::MulFOp())
    for (unsigned side : {0u, 1u})
      if (product->getOperand(side) == slope)
        return {slope, product->getOperand(1 - side)};
  return {Value(), step};
}

bool KernelEmitter::isWithinReferences(Operation *op) {
  Operation *end = op;
  while (end->hasOneUse() && isa<arith::MulFOp, arith::SubFOp, gpu::BroadcastOp>(end))
    end = *end->user_begin();
  std::optional<CappedTile> capped = isa<ExpDiffOp>(end) ? cappedTile(end) : std::nullopt;
  if (!capped || rowOfShared(*capped, end->getResult(0)).empty())
    return false;
  auto [rows, taken] = splitReference(capped->reference);
  auto spread = capped->reference.getDefiningOp<gpu::BroadcastOp>();
  return taken && (op == spread.getSource().getDefiningOp() ||
                   (op == taken.getDefiningOp() && stepOf(*capped).factor));
}

std::string KernelEmitter::factorsOf(const CappedTile &capped) {
  std::string factor = capped.factor ? scalar(capped.factor) : "1.0f";
  if (capped.reference)
    factor += kTimesLog2e;
  return scalar(capped.scale) + ", " + factor;
}

std::string KernelEmitter::declareCap(const std::string &factors) {
  const std::string name = freshName("polynomial");
  line("const tk::ScaledTanh " + name + "(" + factors + ");");
  return name;
}

llvm::SmallVector<std::string> KernelEmitter::declareCaps(scf::ForOp loop) {
  llvm::SmallVector<std::string> declared;
  loop.walk([&](Operation *op) {
    std::optional<CappedTile> capped = cappedTile(op);
    if (!capped || !loop.isDefinedOutsideOfLoop(capped->scale) ||
        (capped->factor && !loop.isDefinedOutsideOfLoop(capped->factor)))
      return;
    const std::string factors = factorsOf(*capped);
    if (caps.contains(factors))
      return;
    caps[factors] = declareCap(factors);
    declared.push_back(factors);
  });
  loop.walk([&](Operation *op) {
    std::optional<CappedTile> capped = cappedTile(op);
    if (!capped || rowReferences.contains(op->getResult(0)) ||
        rowOfShared(*capped, op->getResult(0)).empty())
      return;
    Value slope = risingBy(capped->added).first;
    if (loop.isDefinedOutsideOfLoop(slope) &&
        loop.isDefinedOutsideOfLoop(splitReference(capped->reference).first))
      rowReferences[op->getResult(0)] = declareReferences(*capped, op->getResult(0));
  });
  return declared;
}

AddedToCap KernelEmitter::addedToCap(const CappedTile &capped, Value result) {
  const Value added = capped.added;
  const std::string base = capped.reference ? kTimesLog2e.str() : "";
  const RegisterIndex reg("r", registerBits(result));
  if (auto [slope, places] = risingBy(added); slope) {
    auto map = registersInSource(added.getDefiningOp<gpu::BroadcastOp>());
    // Made anew in each step, from numbers that the compiler does not know: it would keep all of
    // them over the loop, for which there are no registers. Nor, where that pays for a register,
    // does it know that all threads have the same slope: from a uniform register it is copied for
    // each product with a constant.
    const gpu::LayoutAttr layout = layoutOf(places);
    const bool isHeld = comesApart(result.getDefiningOp());
    const std::string first = freshName("first"),
                      factor = base.empty() ? scalar(slope) : "(" + scalar(slope) + base + ")";
    line("float " + first + (isHeld ? "[2] = {" : "[1] = {") + factor + " * (float)(" +
         threadCoordinate(layout, 0) + ")" + (isHeld ? ", " + factor : "") + "};");
    line("tk::hold(" + first + ");");
    const RegisterIndex column = reg.mapped(map->first).combined(RegisterIndex(map->second));
    return {first + "[0]", isHeld ? first + "[1]" : factor,
            "(float)(" + registerCoordinate(layout, 0, column) + ")", ""};
  }
  return {"", "", "", base.empty() ? element(added, reg) : "(" + element(added, reg) + ")" + base};
}

std::string KernelEmitter::rowOfShared(const CappedTile &capped, Value result) {
  if (!capped.hasSharedRows || !capped.added || !risingBy(capped.added).first)
    return {};
  auto spread = capped.reference.getDefiningOp<gpu::BroadcastOp>();
  auto map = registersInSource(spread);
  gpu::LayoutAttr layout = layoutOf(spread.getSource());
  // Each two registers are such rows.
  if (mlir::failed(map) || layout.getRank() != 1 || layout.getRegisterAt({kSharedApart}) != 1u)
    return {};
  return RegisterIndex("r", registerBits(result))
      .mapped(map->first)
      .combined(RegisterIndex(map->second))
      .str();
}

RowReferences KernelEmitter::declareReferences(const CappedTile &capped, Value result) {
  RowReferences declared{freshName("under"), addedToCap(capped, result)};
  Value fixed = splitReference(capped.reference).first;
  line("const tk::RowReferences<" + llvm::Twine(registersOf(fixed)) + "> " + declared.name + "(" +
       materialize(fixed) + ", " + declared.added.first + ");");
  return declared;
}

void KernelEmitter::emitCap(const CappedTile &capped, Value result) {
  const std::string x = materialize(capped.x), y = declare(result), factors = factorsOf(capped);
  auto known = caps.find(factors);
  std::string arguments =
      y + ", " + x + ", " + (known != caps.end() ? known->second : declareCap(factors));
  auto of = [&](int64_t scores) {
    return comesApart(result.getDefiningOp()) ? "<" + std::to_string(scores) + ">("
                                              : std::string("(");
  };
  if (const std::string row = rowOfShared(capped, result); !row.empty()) {
    auto declared = rowReferences.find(result);
    const RowReferences under =
        declared != rowReferences.end() ? declared->second : declareReferences(capped, result);
    const StepOfReferences step = stepOf(capped);
    line("tk::exp2_scaled_tanh" + of(kScoresBesideColumns) + arguments + ", " + under.name + ", " +
         (step.factor ? under.added.factor : "1.4426950408889634f") + ", " +
         (step.number ? scalar(step.number) : "0.0f") + ", [&](int r) { return " + row +
         "; }, [&](int r, float base) { return tk::at_column(" + under.added.factor + ", " +
         under.added.column + ", base); });");
    return;
  }
  AddedToCap added = capped.added ? addedToCap(capped, result) : AddedToCap();
  std::string sum = added.first.empty() ? added.sum
                                        : "tk::fma(" + added.factor + ", " + added.column + ", " +
                                              added.first + ")";
  if (capped.reference) {
    const std::string offset = "tk::exp_offset(" +
                               element(capped.reference, RegisterIndex("r", registerBits(result))) +
                               ")";
    sum = sum.empty() ? offset : offset + " + " + sum;
  }
  if (!sum.empty())
    arguments += ", [&](int r) { return " + sum + "; }";
  line((capped.reference ? "tk::exp2_scaled_tanh" : "tk::scaled_tanh") +
       of(added.first.empty() ? kScoresOfPart : kScoresBesideColumns) + arguments + ");");
}

} // namespace tk::cuda
