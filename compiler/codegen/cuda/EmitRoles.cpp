//===- EmitRoles.cpp - what warps and warpgroups do apart -----------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"
#include "dialects/tkgpu/TkGpuFiniteOps.h"

using namespace mlir;

namespace tk::cuda {

LogicalResult KernelEmitter::emitTurn(gpu::TurnOp turn) {
  const int warpgroups = static_cast<int>(func.getBlockWarps() / 4);
  // After the warpgroups' own: the barriers at which each waits and the one before it arrives.
  const std::string first = std::to_string(kWarpgroupBarrier + warpgroups);
  const std::string following = std::to_string(kWarpgroupBarrier + 2 * warpgroups);
  const std::string both = ", 256);";
  switch (turn.getStep()) {
  case gpu::TurnStep::Begin:
    line("if (" + useWarp() + " / 4 == " + llvm::Twine(warpgroups - 1) +
         ") tk::named_barrier_arrive(" + first + both);
    break;
  case gpu::TurnStep::Take:
    line("tk::named_barrier_sync(" + first + " + " + useWarp() + " / 4" + both);
    break;
  case gpu::TurnStep::Pass:
    line("tk::named_barrier_arrive(" + first + " + (" + useWarp() + " / 4 + 1) % " +
         llvm::Twine(warpgroups) + both);
    break;
  // Behind those, the barriers of each but the first.
  case gpu::TurnStep::Lead:
    line("if (" + useWarp() + " / 4 != " + llvm::Twine(warpgroups - 1) +
         ") tk::named_barrier_arrive(" + following + " + " + useWarp() + " / 4" + both);
    break;
  case gpu::TurnStep::Follow:
    line("if (" + useWarp() + " / 4 != 0) tk::named_barrier_sync(" + following + " + " + useWarp() +
         " / 4 - 1" + both);
    break;
  }
  return success();
}

LogicalResult KernelEmitter::emitOfWarpgroup(gpu::OfWarpgroupOp choice) {
  // The warp's number, read again: kept from tile to tile it would take a register where they are
  // short, and it is to be known that all threads of a warp go the same way.
  const std::string group = freshName("group");
  line("const int " + group + " = tk::warp_uniform(tk::thread_index() / 128);");
  // Numbers that rise evenly are a product.
  SmallVector<int64_t> numbers;
  for (Value value : choice.getValues())
    if (std::optional<int64_t> number = getConstantIntValue(value))
      numbers.push_back(*number);
  if (numbers.size() == choice.getValues().size() && numbers.size() > 2 && numbers[0] == 0) {
    bool areEven = true;
    for (auto [w, number] : llvm::enumerate(numbers))
      areEven &= number == static_cast<int64_t>(w) * numbers[1];
    if (areEven) {
      declare(choice, group + " * " + std::to_string(numbers[1]));
      return success();
    }
  }
  std::string text = scalar(choice.getValues().back());
  for (unsigned w = choice.getValues().size() - 1; w-- > 0;)
    text =
        group + " == " + std::to_string(w) + " ? " + scalar(choice.getValues()[w]) + " : " + text;
  declare(choice, text);
  return success();
}

LogicalResult KernelEmitter::emitWarpRoles(gpu::WarpRolesOp roles) {
  const std::string first = std::to_string(func.getBlockWarps());
  line("if (" + useWarp() + " >= " + first + ") {");
  ++indent;
  if (auto registers = roles.getProducerRegisters())
    line("tk::set_registers_less<" + llvm::Twine(*registers) + ">();");
  line("if (" + useWarp() + " == " + first + " && tk::elect_one()) {");
  ++indent;
  if (roles.getProducer()
          .walk([](gpu::KeepFiniteOp) { return WalkResult::interrupt(); })
          .wasInterrupted())
    line("int finite_parity = 0;"); // of the next wait of a tkgpu.keep_finite
  {
    const ScopedNames::Scope scope(used);
    if (mlir::failed(emitBlock(roles.getProducer().front())))
      return failure();
  }
  --indent;
  line("}");
  --indent;
  line("} else {");
  ++indent;
  if (auto registers = roles.getConsumerRegisters())
    line("tk::set_registers_more<" + llvm::Twine(*registers) + ">();");
  const ScopedNames::Scope scope(used);
  if (mlir::failed(emitBlock(roles.getConsumer().front())))
    return failure();
  --indent;
  line("}");
  return success();
}

} // namespace tk::cuda
