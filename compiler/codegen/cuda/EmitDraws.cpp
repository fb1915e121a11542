//===- EmitDraws.cpp - numbers that clusters draw -------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"
#include "dialects/tkgpu/TkGpuExchange.h"

using namespace mlir;

namespace tk::cuda {

std::string KernelEmitter::toldNumbers() {
  if (!told.empty())
    return told;
  awaitCluster();
  told = used.fresh("told", /*ofFunction=*/true);
  rounds = used.fresh("round", /*ofFunction=*/true);
  prologue += "  auto *const " + told + " = reinterpret_cast<tk::Told *>(" +
              ownScratch(gpu::kToldBytes) + ");\n  int " + rounds + " = 0;\n";
  preparations += "    tk::prepare_told(" + told + ");\n";
  return told;
}

LogicalResult KernelEmitter::emitDraw(gpu::DrawOp draw) {
  declare(draw, "tk::draw_number<" + std::to_string(func.getBlockWarps()) + ">(" +
                    names[draw.getCounter()] + ", (int)" + scalar(draw.getCount()) + ")");
  return success();
}

LogicalResult KernelEmitter::emitTell(gpu::TellOp tell) {
  const std::string numbers = toldNumbers();
  untold = "tk::tell_number<" + std::to_string(func.getBlockWarps()) + ", " +
           std::to_string(func.getCluster()) + ">(" + numbers + ", (int)" +
           scalar(tell.getNumber()) + ", " + rounds + ");";
  return success();
}

void KernelEmitter::tellBeforeJoin() {
  if (!untold.empty())
    line(untold);
  untold.clear();
}

LogicalResult KernelEmitter::emitTold(gpu::ToldOp o) {
  if (!untold.empty())
    return unsupported(o, "expected the cluster to join something before it");
  const std::string numbers = toldNumbers();
  declare(o, "tk::told_number(" + numbers + ", " + rounds + ")");
  return success();
}

} // namespace tk::cuda
