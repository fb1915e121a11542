//===- tk-opt.cpp - runs passes on textual IR -----------------------------===//
//
// The testing tool: every pass of tk, and upstream's canonicalisers, on a `.mlir` file.
//
// `tk-opt --pipeline-page` writes docs/reference/pipeline.md to standard output.
//
//===----------------------------------------------------------------------===//
#include "compiler/Pipeline.h"
#include "compiler/Registration.h"
#include "passes/Passes.h"
#include "passes/mesh/MeshPasses.h"
#include "passes/pipeline/GuardPasses.h"
#include "passes/plan/ChangePasses.h"
#ifdef TK_HAS_CPU
#include "compiler/codegen/cpu/CpuPipeline.h"
#include "passes/lowering/cpu/CpuPasses.h"
#endif

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

#include <tuple>

#ifdef TK_HAS_CPU
static void addPipeline(llvm::StringRef name, llvm::StringRef description,
                        const std::function<void(mlir::OpPassManager &)> &add) {
  mlir::registerPassPipeline(
      name, description,
      [add](mlir::OpPassManager &manager, llvm::StringRef,
            llvm::function_ref<llvm::LogicalResult(const llvm::Twine &)>) {
        add(manager);
        return mlir::success();
      },
      [](llvm::function_ref<void(const mlir::detail::PassOptions &)>) {});
}
#endif

int main(int argc, char **argv) {
  if (argc == 2 && llvm::StringRef(argv[1]) == "--pipeline-page") {
    llvm::outs() << tk::pipelinePage();
    return 0;
  }
  mlir::DialectRegistry registry;
  tk::registerDialects(registry);
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  tk::registerTkPasses();
  tk::registerTkGuardPasses();
  tk::registerTkChangePasses();
  tk::registerTkMeshPasses();
  tk::registerFamilies();
#ifdef TK_HAS_CPU
  tk::registerTkCpuPasses();
  tk::cpu::registerCpuDialects(registry);
  // Upstream's by their names, as the CPU's pipeline has them.
  for (const tk::cpu::CpuPass &row : tk::cpu::cpuPassTable())
    if (!mlir::PassInfo::lookup(row.name) && !mlir::PassPipelineInfo::lookup(row.name))
      addPipeline(row.name, "A pass of the CPU's pipeline",
                  [&row](mlir::OpPassManager &manager) { row.add(manager, {}); });
  using tk::cpu::CpuStage;
  for (auto [stage, name, description] :
       {std::tuple(CpuStage::Linalg, "tk-cpu-linalg", "tk kernels to linalg on tensors"),
        std::tuple(CpuStage::Loops, "tk-cpu-loops", "linalg on tensors to loops on buffers"),
        std::tuple(CpuStage::Llvm, "tk-cpu-llvm", "loops on buffers to the LLVM dialect")})
    addPipeline(name, description,
                [stage](mlir::OpPassManager &manager) { tk::cpu::addStage(manager, stage, {}); });
#endif
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "tk's pass runner\n", registry));
}
