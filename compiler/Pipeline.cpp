//===- Pipeline.cpp - runs the passes of tk -------------------------------===//
#include "compiler/Pipeline.h"

#ifdef TK_HAS_CPU
#include "compiler/target/cpu/CpuPipeline.h"
#endif
#include "passes/Passes.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

using namespace mlir;

namespace tk {

unsigned lastTensorPass() {
  return static_cast<unsigned>(
      llvm::count_if(passTable(), [](const PassRow &row) { return row.stage <= Stage::Fused; }));
}

bool isKnownPass(StringRef name) {
  return llvm::any_of(passTable(),
                      [&](const PassRow &row) { return row.name == name || row.group == name; });
}

bool isPrintablePass(StringRef name) {
#ifdef TK_HAS_CPU
  if (cpu::isCpuPass(name))
    return true;
#endif
  return name == "all" || isKnownPass(name);
}

void printAfter(StringRef pass, Operation *op, const PipelineOptions &options) {
  if (!options.printAfter.contains(pass) && !options.printAfter.contains("all"))
    return;
  llvm::errs() << "// ---- after " << pass << "\n";
  op->print(llvm::errs());
  llvm::errs() << "\n";
}

static void registerOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    registerTkPasses();
    registerCanonicalizerPass();
    registerCSEPass();
  });
}

static LogicalResult runOne(ModuleOp module, StringRef pipeline, const PipelineOptions &options) {
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  manager.enableVerifier(options.verify);
  if (failed(parsePassPipeline(pipeline, manager, llvm::errs())))
    return module.emitError("internal: no pass '") << pipeline << "'";
  return manager.run(module);
}

LogicalResult runPipeline(ModuleOp module, Stage from, Stage to, const PipelineOptions &options) {
  registerOnce();
  unsigned number = 0;
  for (const PassRow &row : passTable()) {
    ++number;
    if (row.stage <= from || row.stage > to)
      continue;
    bool off = number > options.last || options.disabled.contains(row.name) ||
               (!row.group.empty() && options.disabled.contains(row.group));
    StringRef pipeline = off ? row.whenOff : row.name;
    if (pipeline.empty())
      continue;
    if (failed(runOne(module, pipeline, options)))
      return failure();
    printAfter(row.name, module, options);
    if (options.afterPass && number <= options.last &&
        failed(options.afterPass({row.name, number}, module)))
      return failure();
  }
  return success();
}

} // namespace tk
