//===- EmitRepair.cpp - elements that are computed again -------------------===//
//
// A loop over a thread's registers holds the body of a tkgpu.repair once. It takes an element from
// the array by choices, so that the array stays in registers:
//
//   if (!tk::all_finite(o)) TK_KEEP_LOOP for (int n = 0; n < 64; ++n) {
//     if (tk::is_finite(tk::pick(o, n))) continue;
//     ... the body, for the place of register n
//     tk::put_at(o, n, x);
//   }
//
// Threads that repair a tile together vote first, and meet again behind the loop:
//
//   if (!tk::block_all(tk::all_finite(o), 128)) {
//     TK_KEEP_LOOP for (int n = 0; n < 64; ++n) { ... }
//     tk::barrier();
//   }
//
// What is stored already is stored again. The array is not needed by then, but for a bit of each of
// its elements:
//
//   tk::u32 others[2];
//   if (!tk::block_all(tk::find_others(o, others), 128)) TK_KEEP_LOOP for (int n = 0; ...) {
//     if (!(tk::pick(others, n / 32) >> n % 32 & 1)) continue;
//     ... the body, which puts x into memory
//   }
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tk::cuda {

LogicalResult KernelEmitter::emitRepair(gpu::RepairOp repair) {
  Value source = repair.getSource();
  const gpu::LayoutAttr layout = layoutOf(source);
  const bool isStored = repair.getStored();
  const std::string name = isStored ? materialize(source) : copyOf(source), n = freshName("n");
  names[repair.getResult()] = name;
  const std::string references = repair.getReference() ? copyOf(repair.getReference()) : "";
  const RegisterIndex reg(n, registerBits(source));
  const unsigned count = registersOf(source);
  const std::string doubted = repair.getDoubted() ? scalar(repair.getDoubted()) : "";
  const std::string loop = "TK_KEEP_LOOP for (int " + n + " = 0; " + n + " < " +
                           std::to_string(count) + "; ++" + n + ") {";
  std::string isLeft = "tk::is_finite(tk::pick(" + name + ", " + n + "))";
  if (isStored) {
    const std::string others = freshName("others");
    line("tk::u32 " + others + "[" + std::to_string(llvm::divideCeil(count, 32)) + "];");
    line("if (!" + vote(repair, "tk::find_others(" + name + ", " + others + ")") + ") " + loop);
    isLeft = "!(tk::pick(" + others + ", " + n + " / 32) >> " + n + " % 32 & 1)";
  } else if (repair.getTogether()) {
    line("if (!" +
         vote(repair, (doubted.empty() ? "" : doubted + " || ") + "tk::all_finite(" + name + ")") +
         ") {");
    ++indent;
    line(loop);
  } else {
    line("if (" + (doubted.empty() ? "" : "!" + doubted + " && ") + "!tk::all_finite(" + name +
         ")) " + loop);
  }
  ++indent;
  line("if (" + isLeft + ") continue;");
  Block &body = repair.getBody().front();
  for (BlockArgument place : body.getArguments()) {
    names[place] = nameFor(place);
    line("const " + typeName(place.getType()) + " " + names[place] + " = " +
         (isa<FloatType>(place.getType()) ? "tk::pick(" + references + ", " + n + ")"
                                          : coordinate(layout, place.getArgNumber(), reg)) +
         ";");
  }
  if (mlir::failed(emitBlock(body)))
    return failure();
  if (!isStored)
    line("tk::put_at(" + name + ", " + n + ", " +
         scalar(cast<gpu::ElementEndOp>(body.getTerminator()).getValue()) + ");");
  --indent;
  line("}");
  if (repair.getTogether()) {
    meet(repair);
    --indent;
    line("}");
  }
  return success();
}

/// Is the value that `loop` carries as `number` NaN in the end if it once is, and is the element
/// NaN then?
static bool decides(scf::ForOp loop, unsigned number) {
  Value result = loop.getResult(number);
  if (!isa<FloatType>(result.getType()) || !result.hasOneUse())
    return false;
  // Other results are read by the same quotient, or not at all.
  Operation *reader = *result.user_begin();
  for (Value other : loop.getResults())
    if (llvm::any_of(other.getUsers(), [&](Operation *user) { return user != reader; }))
      return false;
  Operation *last = loop.getYieldedValues()[number].getDefiningOp();
  return isa_and_nonnull<arith::AddFOp>(last);
}

/// In an element that is computed again, leaves `loop` once its sum is NaN.
void KernelEmitter::emitEnd(scf::ForOp loop, llvm::ArrayRef<std::string> carried) {
  if (!loop->getParentOfType<gpu::RepairOp>())
    return;
  for (auto [number, name] : llvm::enumerate(carried))
    if (decides(loop, number))
      line("if (" + name + " != " + name + ") break;");
}

} // namespace tk::cuda
