//===- tk-opt.cpp - runs passes on textual IR -----------------------------===//
//
// The testing tool: every pass of tk, and upstream's canonicalisers, on a `.mlir` file.
//
//===----------------------------------------------------------------------===//
#include "compiler/Registration.h"
#ifdef TK_HAS_PASSES
#include "passes/Passes.h"
#include "passes/fusion/FusionPipeline.h"
#endif

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  tk::registerDialects(registry);
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
#ifdef TK_HAS_PASSES
  tk::registerTkPasses();
  tk::registerFusionPipeline();
#endif
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "tk's pass runner\n", registry));
}
