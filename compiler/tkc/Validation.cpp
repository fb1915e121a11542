//===- Validation.cpp - every pass of a run against the reference ---------===//
#include "compiler/tkc/Validation.h"

#include "llvm/ADT/ScopeExit.h"

namespace tk::tkc {

std::function<llvm::LogicalResult(const PassRun &, mlir::ModuleOp)> Validation::hook() {
  return [this](const PassRun &pass, mlir::ModuleOp module) {
    if (lowering.isExecuting())
      return llvm::success();
    lowering.record(pass, module);
    return tensors.after(pass.name, module);
  };
}

Status Validation::arm(CompiledSource &source, size_t kernel, RunArguments &inputs) {
  const Signature &signature = source.signatures()[kernel];
  unsigned parameters = signature.num_tensors() - signature.results.size();
  std::vector<TensorView> views;
  for (unsigned t = 0; t < parameters; ++t)
    views.push_back(inputs.tensors[t].view());
  return tensors.arm(source.kernelOp(kernel), inputs.dims, views, inputs.scalars);
}

Expected<Validated> Validation::execute(const std::shared_ptr<CompiledSource> &source,
                                        size_t kernel, const std::string &target,
                                        RunArguments &inputs, int64_t elements) {
  using Outcome = LoweringValidator::Outcome;
  llvm::scope_exit restore([&] { source->setLastPass(PipelineOptions::allPasses); });
  auto executeUpTo = [&](unsigned last) -> LoweringValidator::Execution {
    source->setLastPass(last);
    Expected<std::unique_ptr<Session>> session = Session::create(source, kernel, target, inputs);
    if (!session)
      return {Outcome::NotCompiled, session.error().message()};
    Expected<CheckedRun> run = runChecked(**session, *source, kernel, inputs, elements);
    if (!run)
      return {Outcome::Wrong, run.error().message()};
    if (const CheckedResult *wrong = run->firstWrong())
      return {Outcome::Wrong, wrong->name + ": " + wrong->comparison.reason};
    return {};
  };
  if (std::optional<std::string> wrong =
          lowering.findWrongPass(source->signatures()[kernel].name, tensors.sizes(), executeUpTo))
    return Error(ErrorCode::internal, *wrong);
  return Validated{tensors.passesChecked(), lowering.numExecuted(), lowering.passesNotCompiled()};
}

} // namespace tk::tkc
