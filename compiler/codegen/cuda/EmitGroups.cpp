//===- EmitGroups.cpp - elementwise operations in one loop ----------------===//
//
// Consecutive elementwise operations on tiles of one layout form a group, which is emitted as one
// loop over a thread's registers. Results that only the group uses are scalars of the loop; others
// become register arrays.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/layout/SettledMasks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace tk::cuda {

/// What is done to a tile as a whole: conversions, which take two values at once, and
/// functions that choose their way by all values.
static bool isForWholeTile(Operation *op, bool besideProducts) {
  if (isa<math::TanhOp>(op) && gpu::hasMode(op, gpu::MathMode::Approx))
    return true;
  if (isa<RandOp>(op))
    return bool(gpu::getRandom(op));
  if (!isa<arith::TruncFOp, arith::SIToFPOp, arith::ExtFOp>(op))
    return false;
  Type from = getElementTypeOrSelf(op->getOperand(0)), to = getElementTypeOrSelf(op->getResult(0));
  const unsigned bits = to.getIntOrFloatBitWidth();
  if (isa<arith::ExtFOp>(op))
    return from.getIntOrFloatBitWidth() == 8 && (bits == 16 || (to.isF32() && besideProducts));
  return (from.isF32() && bits <= 16) || (from.isInteger(8) && (bits == 16 || to.isF32()));
}

bool KernelEmitter::joinGroup(Operation *op) {
  if (op->getNumResults() != 1 || !isTile(op->getResult(0)) || op->getNumRegions() != 0 ||
      !isMemoryEffectFree(op))
    return false;
  Value result = op->getResult(0);
  if ((isForWholeTile(op, holdsProducts) && registersOf(result) > 1) || cappedTile(op))
    return false;
  if (servesPlaceTests(op) || emitPlaceTest(op) || emitKeptPairs(op))
    return true;
  llvm::SmallVector<std::string> probe(op->getNumOperands(), "x");
  if (!expression(op, probe))
    return false;
  auto layout = layoutOf(result);
  for (Value operand : op->getOperands())
    if (isTile(operand) && layoutOf(operand) != layout) {
      unsupported(op, "expected operands with the result's layout, got ") << operand.getType();
      return true;
    }
  if (!group.empty() && layoutOf(group.front()->getResult(0)) != layout)
    flushGroup();
  // An operand that reaches into the group through a renaming of registers needs it finished.
  for (Value operand : op->getOperands()) {
    Operation *def = operand.getDefiningOp();
    bool renamed = false;
    while (def && isInline(def) && def->getNumOperands() == 1) {
      renamed = true;
      def = def->getOperand(0).getDefiningOp();
    }
    if (def && renamed && inGroup.contains(def)) {
      flushGroup();
      break;
    }
  }
  group.push_back(op);
  inGroup.insert(op);
  return true;
}

bool KernelEmitter::escapesGroup(Value value) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) { return !inGroup.contains(user); });
}

void KernelEmitter::emitGroupStatement(Operation *op, const RegisterIndex &reg) {
  llvm::SmallVector<std::string> operands;
  for (Value operand : op->getOperands())
    operands.push_back(element(operand, reg));
  std::string text = *expression(op, operands);
  if (auto settled = op->getAttrOfType<IntegerAttr>(settledAttrName))
    text = "((0x" + llvm::utohexstr(static_cast<uint64_t>(settled.getInt()), true) + "ull >> " +
           reg.str() + " & 1) != 0 || " + text + ")";
  Value result = op->getResult(0);
  const std::string type = elementTypeName(result.getType());
  locate(op->getLoc());
  auto array = names.find(result);
  if (array != names.end()) {
    line(array->second + "[" + reg.str() + "] = " + text + ";");
    return;
  }
  const std::string name = nameFor(result);
  line("const " + type + " " + name + " = " + text + ";");
  groupLocals[result] = name;
}

void KernelEmitter::flushGroup() {
  if (group.empty())
    return;
  const Location saved = location;
  llvm::SmallVector<Operation *> members;
  std::swap(members, group);
  for (Operation *op : members) {
    locate(op->getLoc());
    if (escapesGroup(op->getResult(0)))
      declare(op->getResult(0));
  }
  Value first = members.front()->getResult(0);
  const unsigned count = registersOf(first);
  const RegisterIndex reg = count == 1 ? RegisterIndex(0) : RegisterIndex("r", registerBits(first));
  locate(members.front()->getLoc());
  std::optional<ScopedNames::Scope> scope;
  if (count > 1) {
    line(loopHeader(count) + " {");
    ++indent;
    scope.emplace(used);
  }
  for (Operation *op : members)
    emitGroupStatement(op, reg);
  if (count > 1) {
    --indent;
    line("}");
  }
  groupLocals.clear();
  inGroup.clear();
  locate(saved);
}

} // namespace tk::cuda
