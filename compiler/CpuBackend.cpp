//===- CpuBackend.cpp - from tk to launchable CPU code --------------------===//
#include "compiler/CpuBackend.h"

#include "compiler/codegen/cpu/CpuExecutable.h"

#include <algorithm>

namespace tk {

/// A CPU kernel is one launch: its code goes through all statements itself.
static Launch launchFor(const Signature &signature) {
  Launch launch;
  launch.symbol = signature.name;
  launch.span = signature.span;
  for (unsigned t = 0; t < signature.num_tensors(); ++t) {
    Arg arg;
    arg.kind = ArgKind::tensor;
    arg.index = t;
    launch.args.push_back(arg);
  }
  for (unsigned d = 0; d < signature.dims.size(); ++d) {
    Arg arg;
    arg.kind = ArgKind::integer;
    arg.value = DimExpr::variable(d);
    launch.args.push_back(arg);
  }
  for (unsigned t = 0; t < signature.num_tensors(); ++t)
    for (unsigned axis = 0; signature.tensor(t).strided && axis < signature.tensor(t).shape.size();
         ++axis) {
      Arg arg;
      arg.kind = ArgKind::stride;
      arg.index = t;
      arg.axis = axis;
      launch.args.push_back(arg);
    }
  for (unsigned s = 0; s < signature.num_scalars(); ++s) {
    Arg arg;
    arg.kind = ArgKind::scalar;
    arg.index = s;
    arg.dtype = signature.scalar(s).dtype;
    launch.args.push_back(arg);
  }
  return launch;
}

LaunchPlan cpuPlan(const Signature &signature) {
  LaunchPlan plan;
  plan.launches.push_back(launchFor(signature));
  return plan;
}

Expected<std::string> compileCpuObject(mlir::ModuleOp module, llvm::StringRef kernel,
                                       const PipelineOptions &pipeline, llvm::StringRef level) {
  cpu::CpuOptions options;
  options.verify = pipeline.verify;
  options.level = level.str();
  llvm::Expected<std::string> object = cpu::compileObject(module, kernel, options);
  if (!object)
    return Error(ErrorCode::internal, llvm::toString(object.takeError()));
  return std::move(*object);
}

static detail::Executable executableOf(std::unique_ptr<cpu::CpuExecutable> compiled,
                                       const Signature &signature) {
  detail::Executable executable;
  executable.kind = detail::Executable::Kind::cpu;
  executable.target = "cpu";
  executable.plan = cpuPlan(signature);
  executable.entries.push_back(compiled->entry());
  executable.code = std::shared_ptr<cpu::CpuExecutable>(std::move(compiled));
  return executable;
}

Expected<detail::Executable> compileCpuExecutable(mlir::ModuleOp module, llvm::StringRef kernel,
                                                  const Signature &signature,
                                                  const PipelineOptions &pipeline,
                                                  std::string *object) {
  const unsigned before = lastTensorPass();
  cpu::CpuOptions options;
  options.verify = pipeline.verify;
  options.object = object;
  options.afterPass = [&](llvm::StringRef pass, mlir::Operation *op) {
    printAfter(pass, op, pipeline);
  };
  if (pipeline.last != PipelineOptions::allPasses)
    options.last = std::max(pipeline.last, before) - before;
  if (pipeline.afterPass)
    options.afterRow = [&](llvm::StringRef pass, unsigned number, mlir::ModuleOp lowered) {
      return pipeline.afterPass({pass, before + number}, lowered);
    };
  llvm::Expected<std::unique_ptr<cpu::CpuExecutable>> compiled =
      cpu::compileForCpu(module, kernel, options);
  if (!compiled)
    return Error(ErrorCode::internal, llvm::toString(compiled.takeError()));
  return executableOf(std::move(*compiled), signature);
}

std::optional<detail::Executable> loadCpuExecutable(llvm::StringRef object, llvm::StringRef kernel,
                                                    const Signature &signature) {
  llvm::Expected<std::unique_ptr<cpu::CpuExecutable>> loaded = cpu::loadCpuObject(object, kernel);
  if (!loaded) {
    llvm::consumeError(loaded.takeError());
    return std::nullopt;
  }
  return executableOf(std::move(*loaded), signature);
}

bool lowerToLinalg(mlir::ModuleOp module) { return succeeded(cpu::lowerToLinalg(module)); }

std::string cpuDescription() { return cpu::hostDescription(); }

} // namespace tk
