//===- EmitControl.cpp - loops and branches -------------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tk::cuda {

void KernelEmitter::declareAs(Value value, llvm::StringRef name, Value initial) {
  const std::string type = elementTypeName(value.getType());
  if (isTile(value)) {
    line(type + " " + name + "[" + llvm::Twine(registersOf(value)) + "];");
    if (initial && !initial.getDefiningOp<gpu::UndefinedOp>())
      assign(name, initial);
  } else {
    line(type + " " + name + (initial ? " = " + scalar(initial) : "") + ";");
  }
}

LogicalResult KernelEmitter::assignAll(ValueRange from, llvm::ArrayRef<std::string> to) {
  // All at once: what another assignment would overwrite is saved first.
  llvm::SmallVector<std::string> saved(from.size());
  llvm::SmallVector<bool> same(from.size(), false);
  for (auto [i, value] : llvm::enumerate(from)) {
    auto name = names.find(value);
    same[i] = name != names.end() && name->second == to[i];
    Value root = value;
    while (Operation *op = root.getDefiningOp()) {
      if (!isInline(op) || op->getNumOperands() != 1)
        break;
      root = op->getOperand(0);
    }
    auto rootName = names.find(root);
    if (same[i] || rootName == names.end() || !llvm::is_contained(to, rootName->second))
      continue;
    if (isTile(value)) {
      saved[i] = copyOf(value);
    } else {
      saved[i] = freshName("old_" + rootName->second);
      line("const " + elementTypeName(value.getType()) + " " + saved[i] + " = " + scalar(value) +
           ";");
    }
  }
  for (auto [i, value] : llvm::enumerate(from)) {
    if (same[i])
      continue;
    if (saved[i].empty())
      assign(to[i], value);
    else if (isTile(value))
      line(loopHeader(registersOf(value)) + " " + to[i] + "[r] = " + saved[i] + "[r];");
    else
      line(to[i] + " = " + saved[i] + ";");
  }
  return success();
}

/// Is `value`, which is read once, written by a product in flight, here or in a loop before?
static bool isInFlight(Value value) {
  if (!value.hasOneUse())
    return false;
  if (auto loop = value.getDefiningOp<scf::ForOp>())
    return value.getParentBlock() == value.user_begin()->getBlock() &&
           isInFlight(loop.getInitArgs()[cast<OpResult>(value).getResultNumber()]);
  return value.getDefiningOp<gpu::WarpgroupDotOp>() != nullptr;
}

/// Do threads add up products of warpgroups in `op` that are not of 8-bit floats?
static bool addsUpProducts(Operation *op) {
  return op
      ->walk([](gpu::WarpgroupDotOp dot) {
        return dot.getPrecision() == Precision::Blocked ? WalkResult::interrupt()
                                                        : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Does NVRTC write out `loop`, which has few steps? Beside threads that add up products, copies
/// that are written out leave the sums in memory.
static bool isShort(scf::ForOp loop) {
  constexpr int64_t fewSteps = 16;
  std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound()),
                         upper = getConstantIntValue(loop.getUpperBound()),
                         step = getConstantIntValue(loop.getStep());
  return lower && upper && step && llvm::divideCeil(*upper - *lower, *step) <= fewSteps;
}

/// Are these the sums that the loop around `loop` carries, of no use to it but here? A copy of all
/// of them would be taken for one in memory.
static bool isCarriedThrough(Value initial, scf::ForOp loop) {
  auto carried = dyn_cast<BlockArgument>(initial);
  return carried && carried.hasOneUse() && carried.getOwner() == loop->getBlock() &&
         isa<scf::ForOp>(loop->getParentOp()) && isa<RankedTensorType>(initial.getType()) &&
         addsUpProducts(loop);
}

LogicalResult KernelEmitter::emitFor(scf::ForOp loop) {
  if (func.isSpread() && loop->getParentOp() == func)
    awaitCluster();
  const llvm::SmallVector<std::string> declared = declareCaps(loop);
  declareFactors(loop);
  llvm::SmallVector<std::string> carried;
  for (auto [argument, result, initial] :
       llvm::zip(loop.getRegionIterArgs(), loop.getResults(), loop.getInitArgs())) {
    // What a product in flight writes stays where it is.
    const bool staysInPlace = isInFlight(initial) || isCarriedThrough(initial, loop);
    const std::string name = staysInPlace ? names[initial] : nameFor(argument);
    if (!staysInPlace)
      declareAs(argument, name, initial);
    names[argument] = name;
    names[result] = name;
    carried.push_back(name);
  }
  const ScopedNames::Scope scope(used);
  Value induction = loop.getInductionVar();
  const std::string i = nameFor(induction);
  names[induction] = i;
  const bool isKept = (isShort(loop) && addsUpProducts(func) && !addsUpProducts(loop)) ||
                      loop->getParentOfType<gpu::RepairOp>();
  line((isKept ? "TK_KEEP_LOOP for (" : "for (") + typeName(induction.getType()) + " " + i + " = " +
       scalar(loop.getLowerBound()) + "; " + i + " < " + scalar(loop.getUpperBound()) + "; " + i +
       " += " + scalar(loop.getStep()) + ") {");
  ++indent;
  std::vector<std::function<void()>> outer = std::exchange(receives, {});
  if (mlir::failed(emitBlock(*loop.getBody())))
    return failure();
  locate(loop.getBody()->getTerminator()->getLoc());
  for (const std::function<void()> &receive : std::exchange(receives, std::move(outer)))
    receive();
  if (mlir::failed(assignAll(loop.getBody()->getTerminator()->getOperands(), carried)))
    return failure();
  emitEnd(loop, carried);
  --indent;
  line("}");
  for (const std::string &factors : declared)
    caps.erase(factors);
  return success();
}

LogicalResult KernelEmitter::emitIf(scf::IfOp branch) {
  llvm::SmallVector<std::string> results;
  for (Value result : branch.getResults()) {
    const std::string name = nameFor(result);
    declareAs(result, name, Value());
    results.push_back(name);
  }
  line("if (" + scalar(branch.getCondition()) + ") {");
  ++indent;
  {
    const ScopedNames::Scope scope(used);
    if (mlir::failed(emitBlock(*branch.thenBlock())))
      return failure();
    if (!results.empty() && mlir::failed(assignAll(branch.thenYield().getOperands(), results)))
      return failure();
  }
  --indent;
  if (branch.elseBlock() &&
      (!results.empty() || !branch.elseBlock()->without_terminator().empty())) {
    line("} else {");
    ++indent;
    const ScopedNames::Scope scope(used);
    if (mlir::failed(emitBlock(*branch.elseBlock())))
      return failure();
    if (!results.empty() && mlir::failed(assignAll(branch.elseYield().getOperands(), results)))
      return failure();
    --indent;
  }
  line("}");
  for (auto [result, name] : llvm::zip(branch.getResults(), results))
    names[result] = name;
  return success();
}

LogicalResult KernelEmitter::emitWhile(scf::WhileOp loop) {
  if (func.isSpread() && loop->getParentOp() == func)
    awaitCluster();
  llvm::SmallVector<std::string> before, after;
  // What the condition hands on as it came needs no other name.
  const bool same = llvm::equal(loop.getConditionOp().getArgs(), loop.getBeforeArguments());
  for (auto [argument, initial] : llvm::zip(loop.getBeforeArguments(), loop.getInits())) {
    before.push_back(nameFor(argument));
    declareAs(argument, before.back(), initial);
    names[argument] = before.back();
  }
  for (auto [i, argument, result] : llvm::enumerate(loop.getAfterArguments(), loop.getResults())) {
    after.push_back(same ? before[i] : nameFor(argument));
    if (!same)
      declareAs(argument, after.back(), Value());
    names[argument] = after.back();
    names[result] = after.back();
  }
  line("for (;;) {");
  ++indent;
  const ScopedNames::Scope scope(used);
  if (mlir::failed(emitBlock(*loop.getBeforeBody())))
    return failure();
  auto condition = loop.getConditionOp();
  if (mlir::failed(assignAll(condition.getArgs(), after)))
    return failure();
  line("if (!" + scalar(condition.getCondition()) + ") break;");
  if (mlir::failed(emitBlock(*loop.getAfterBody())) ||
      mlir::failed(assignAll(loop.getYieldOp().getOperands(), before)))
    return failure();
  --indent;
  line("}");
  return success();
}

} // namespace tk::cuda
