//===- LoweringValidator.cpp - the first pass behind which code is wrong --===//
#include "compiler/validate/LoweringValidator.h"

#include "compiler/validate/Reproducer.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tk {

void LoweringValidator::record(const PassRun &pass, ModuleOp module) {
  if (executing)
    return;
  const bool isSamePass = pass.first != 0 && pass.first == lastFirst;
  if (pass.number <= lastNumber && !isSamePass) // another compilation
    steps.clear();
  lastNumber = pass.number;
  lastFirst = pass.first;
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out);
  if (pass.number > lastTensorPass() && text != latest)
    steps.push_back({pass.name.str(), pass.number, latest});
  latest = std::move(text);
}

LoweringValidator::Execution LoweringValidator::run(StringRef pass, unsigned last,
                                                    const Execute &execute) {
  executing = true;
  llvm::scope_exit done([&] { executing = false; });
  Execution execution = execute(last);
  if (execution.outcome == Outcome::NotCompiled)
    notCompiled.push_back(pass.str());
  else
    ++executed;
  return execution;
}

std::optional<std::string> LoweringValidator::findWrongPass(StringRef kernel, StringRef sizes,
                                                            const Execute &execute) {
  executed = 0;
  notCompiled.clear();
  if (Execution first = run("", lastTensorPass(), execute); first.outcome == Outcome::Wrong)
    return ("kernel '" + kernel +
            "' is wrong with only those passes below the tensor level without which there is no "
            "code: " +
            first.message)
        .str();
  for (const Step &step : steps) {
    Execution now = run(step.pass, step.number, execute);
    if (now.outcome != Outcome::Wrong)
      continue;
    const std::string command = writePassReproducer(
        directory, kernel, step.pass, now.message + (sizes.empty() ? "" : "\nwhere " + sizes.str()),
        step.before);
    return ("behind pass '" + step.pass + "' kernel '" + kernel + "' is wrong: " + now.message +
            (command.empty() ? "" : "; " + command))
        .str();
  }
  return std::nullopt;
}

} // namespace tk
