//===- tk-opt.cpp - runs passes on textual IR -----------------------------===//
//
// The testing tool: every pass of tk, and upstream's canonicalisers, on a `.mlir` file.
//
//===----------------------------------------------------------------------===//
#include "compiler/Registration.h"
#include "passes/Passes.h"
#include "passes/fusion/FusionPipeline.h"
#ifdef TK_HAS_CPU
#include "compiler/target/cpu/CpuPipeline.h"
#include "passes/lowering/cpu/CpuPasses.h"
#endif

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  tk::registerDialects(registry);
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  tk::registerTkPasses();
  tk::registerFusionPipeline();
#ifdef TK_HAS_CPU
  tk::registerTkCpuPasses();
  tk::cpu::registerCpuDialects(registry);
  mlir::PassPipelineRegistration<>(
      "tk-cpu-linalg", "tk kernels to linalg on tensors",
      [](mlir::OpPassManager &manager) { tk::cpu::addLinalgStage(manager, {}); });
  mlir::PassPipelineRegistration<>("tk-cpu-loops", "linalg on tensors to loops on buffers",
                                   tk::cpu::addLoopStage);
  mlir::PassPipelineRegistration<>("tk-cpu-llvm", "loops on buffers to the LLVM dialect",
                                   tk::cpu::addLlvmStage);
#endif
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "tk's pass runner\n", registry));
}
