//===- tk-opt.cpp - runs passes on textual IR -----------------------------===//
//
// The testing tool: every pass of tk, and upstream's canonicalisers, on a `.mlir` file.
//
//===----------------------------------------------------------------------===//
#include "compiler/Registration.h"
#include "passes/Passes.h"
#include "passes/fusion/FusionPipeline.h"
#ifdef TK_HAS_CPU
#include "passes/lowering/cpu/LowerToCpu.h"
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
  tk::cpu::registerLowerToCpuPass();
#endif
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "tk's pass runner\n", registry));
}
