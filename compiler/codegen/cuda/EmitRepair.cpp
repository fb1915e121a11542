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
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tk::cuda {

LogicalResult KernelEmitter::emitRepair(gpu::RepairOp repair) {
  Value source = repair.getSource();
  const gpu::LayoutAttr layout = layoutOf(source);
  const std::string name = copyOf(source), n = freshName("n");
  names[repair.getResult()] = name;
  const std::string references = repair.getReference() ? copyOf(repair.getReference()) : "";
  const RegisterIndex reg(n, registerBits(source));
  const std::string isAsked =
      repair.getDoubted() ? "!" + scalar(repair.getDoubted()) + " && " : std::string();
  line("if (" + isAsked + "!tk::all_finite(" + name + ")) TK_KEEP_LOOP for (int " + n + " = 0; " +
       n + " < " + std::to_string(registersOf(source)) + "; ++" + n + ") {");
  ++indent;
  line("if (tk::is_finite(tk::pick(" + name + ", " + n + "))) continue;");
  Block &body = repair.getBody().front();
  for (BlockArgument place : body.getArguments()) {
    const std::string at = nameFor(place);
    if (place.getType().isF32()) {
      line("const float " + at + " = tk::pick(" + references + ", " + n + ");");
      names[place] = at;
      continue;
    }
    line("const " + typeName(place.getType()) + " " + at + " = " +
         coordinate(layout, place.getArgNumber(), reg) + ";");
    names[place] = at;
  }
  if (mlir::failed(emitBlock(body)))
    return failure();
  line("tk::put_at(" + name + ", " + n + ", " +
       scalar(cast<gpu::ElementEndOp>(body.getTerminator()).getValue()) + ");");
  --indent;
  line("}");
  return success();
}

/// Is the value that `loop` carries as `number` NaN in the end if it once is, and is the element
/// NaN then?
static bool decides(scf::ForOp loop, unsigned number) {
  Value result = loop.getResult(number);
  if (!result.getType().isF32() || !result.hasOneUse())
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
