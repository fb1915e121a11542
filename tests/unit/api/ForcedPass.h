// Runs examples on the emulator with a pass that takes large programs alone made to take them, too.
#ifndef TK_TESTS_UNIT_API_FORCEDPASS_H
#define TK_TESTS_UNIT_API_FORCEDPASS_H

#include "compiler/tkc/Check.h"
#include "compiler/tkc/Inputs.h"
#include "compiler/tkc/Session.h"
#include "passes/Passes.h"
#include "tests/unit/api/TemporaryCache.h"
#include "tests/unit/catch.h"
#include "tk/tk.h"

#include "mlir/Pass/PassManager.h"

#include <functional>
#include <random>

namespace tk {

/// The value of element `n` of a tensor, from a standard normal number.
using Fill = std::function<double(size_t n, double normal)>;

struct Example {
  const char *source;
  std::map<std::string, int64_t> dims;
  std::vector<Fill> fills; ///< of the parameters, one each
};

/// Are parts of f32 numbers multiplied?
inline bool sums_parts(mlir::ModuleOp module) {
  return module
      .walk([](ReduceOp reduce) {
        return reduce.getPrecision() == Precision::Blocked ? mlir::WalkResult::interrupt()
                                                           : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

/// Runs the example on the emulator with what `makePass` makes behind the pass `name`, after which
/// the module `is_rewritten`, and compares all results with the reference; the outputs.
inline std::vector<HostTensor>
run_forced(const Example &example, const std::string &name,
           const std::function<std::unique_ptr<mlir::Pass>()> &makePass,
           const char *disabled = nullptr,
           const std::function<bool(mlir::ModuleOp)> &is_rewritten = sums_parts) {
  TemporaryCache cache;
  DriverOptions driver;
  if (disabled)
    driver.pipeline.disabled.insert(disabled);
  bool is_done = false;
  driver.pipeline.afterPass = [&](const PassRun &pass, mlir::ModuleOp module) {
    if (!selects(name, pass))
      return mlir::success();
    mlir::PassManager manager(module->getContext(), mlir::ModuleOp::getOperationName());
    manager.addPass(makePass());
    mlir::LogicalResult result = manager.run(module);
    is_done |= is_rewritten(module);
    return result;
  };
  auto source = CompiledSource::create(example.source, {}, driver).value();
  tkc::ArgumentTexts texts;
  texts.dims = example.dims;
  tkc::RunArguments inputs = tkc::gatherArguments(source->signatures()[0], texts).value();
  std::mt19937_64 random;
  std::normal_distribution<double> normal;
  for (size_t t = 0; t < example.fills.size(); ++t) {
    HostTensor wide{DType::f64, inputs.tensors[t].shape, {}};
    size_t count = 1;
    for (int64_t extent : wide.shape)
      count *= static_cast<size_t>(extent);
    std::vector<double> values(count);
    for (size_t n = 0; n < values.size(); ++n)
      values[n] = example.fills[t](n, normal(random));
    const auto *bytes = reinterpret_cast<const std::byte *>(values.data());
    wide.bytes.assign(bytes, bytes + values.size() * sizeof(double));
    inputs.tensors[t] = wide.converted(inputs.tensors[t].dtype);
  }
  auto session = tkc::Session::create(source, 0, "emu", inputs).value();
  CHECK(is_done);
  tkc::CheckedRun run = tkc::runChecked(*session, *source, 0, inputs, 1 << 20).value();
  for (const tkc::CheckedResult &result : run.results) {
    INFO(result.name << ": " << result.comparison.reason);
    CHECK(result.comparison.ok);
  }
  return std::move(run.outputs);
}

} // namespace tk

#endif // TK_TESTS_UNIT_API_FORCEDPASS_H
