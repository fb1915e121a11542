//===- Pipeline.cpp - runs the passes of tk -------------------------------===//
#include "compiler/Pipeline.h"

#ifdef TK_HAS_CPU
#include "compiler/target/cpu/CpuPipeline.h"
#endif
#include "passes/Passes.h"
#include "passes/Patterns.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

using namespace mlir;

namespace tk {

/// The steps of one row.
static void addSteps(const PhaseRow &phase, const PassRow &row, std::vector<PipelineStep> &steps) {
  auto add = [&](StringRef pattern) -> PipelineStep & {
    PipelineStep &step = steps.emplace_back();
    step.row = &row;
    step.stage = phase.stage;
    step.number = static_cast<unsigned>(steps.size());
    step.name = row.name.str() + (pattern.empty() ? "" : ":" + pattern.str());
    step.pattern = pattern;
    step.group = row.group;
    step.why = row.why;
    step.needed = false;
    return step;
  };
  for (const PatternRow &pattern : row.patterns) {
    PipelineStep &step = add(pattern.name);
    step.pass = step.former = pattern.pass;
    step.whenOff = pattern.whenOff;
    step.why = pattern.why;
    if (!pattern.group.empty())
      step.group = pattern.group;
  }
  const ArrayRef<PatternInfo> inside = patternsOf(row.name);
  for (const PatternInfo &pattern : inside) {
    PipelineStep &step = add(pattern.name);
    step.former = pattern.former;
    step.needed = pattern.needed;
    step.why = pattern.summary;
    if (!pattern.group.empty())
      step.group = pattern.group;
  }
  if (!row.patterns.empty() || !inside.empty())
    return;
  PipelineStep &step = add("");
  step.pass = row.name;
  step.whenOff = row.whenOff;
}

ArrayRef<PipelineStep> pipelineSteps() {
  static const std::vector<PipelineStep> steps = [] {
    std::vector<PipelineStep> list;
    for (const PhaseRow &phase : phaseTable())
      for (const PassRow &row : phase.rows)
        addSteps(phase, row, list);
    return list;
  }();
  return steps;
}

unsigned lastTensorPass() {
  return static_cast<unsigned>(llvm::count_if(
      pipelineSteps(), [](const PipelineStep &step) { return step.stage <= Stage::Fused; }));
}

bool selects(StringRef selector, const PipelineStep &step) {
  return !selector.empty() && (selector == step.name || selector == step.row->name ||
                               selector == step.group || selector == step.former);
}

bool selects(StringRef selector, const PassRun &run) {
  return selector == run.name || llvm::any_of(pipelineSteps(), [&](const PipelineStep &step) {
           return step.name == run.name && selects(selector, step);
         });
}

static bool anySelects(const llvm::StringSet<> &selectors, const PipelineStep &step) {
  return llvm::any_of(selectors.keys(), [&](StringRef name) { return selects(name, step); });
}

bool isKnownPass(StringRef name) {
  return llvm::any_of(pipelineSteps(),
                      [&](const PipelineStep &step) { return selects(name, step); });
}

bool isPrintablePass(StringRef name) {
#ifdef TK_HAS_CPU
  if (cpu::isCpuPass(name))
    return true;
#endif
  return name == "all" || isKnownPass(name);
}

std::string unknownPass(StringRef name) {
  std::vector<std::string> names;
  for (const PipelineStep &step : pipelineSteps())
    for (StringRef known : {StringRef(step.name), step.row->name, step.group, step.former})
      if (!known.empty())
        names.push_back(known.str());
  const std::string nearest = nearestOf(name, names);
  return "unknown pass '" + name.str() + "'" +
         (nearest.empty() ? "" : "; did you mean '" + nearest + "'?");
}

std::string tkOptFlag(StringRef step) {
  auto [row, pattern] = step.split(':');
  return ("--" + row + (pattern.empty() ? "" : "=only=") + pattern).str();
}

static void print(StringRef name, Operation *op) {
  llvm::errs() << "// ---- after " << name << "\n";
  op->print(llvm::errs());
  llvm::errs() << "\n";
}

void printAfter(StringRef pass, Operation *op, const PipelineOptions &options) {
  if (options.printAfter.contains(pass) || options.printAfter.contains("all"))
    print(pass, op);
}

static void registerOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    registerTkPasses();
    registerCanonicalizerPass();
    registerCSEPass();
  });
}

namespace {

/// One run of the pipeline.
class Run {
public:
  Run(ModuleOp module, const PipelineOptions &options) : module(module), options(options) {}

  /// Runs the steps from `begin` on that are one pass: one step, or all rewrites inside a pass.
  LogicalResult run(ArrayRef<PipelineStep> steps) {
    return steps.front().pass.empty() ? runRewrites(steps) : runPass(steps.front());
  }

  /// Prints the IR behind a row of several patterns.
  void endRow(const PipelineStep &last) {
    if (!last.pattern.empty() && options.printAfter.contains(last.row->name))
      print(last.row->name, module);
  }

private:
  bool isOff(const PipelineStep &step) const {
    return step.number > options.last || anySelects(options.disabled, step);
  }

  LogicalResult after(const PipelineStep &step) {
    const auto names = [&](StringRef name) {
      return name == step.name || name == step.former || name == step.group;
    };
    if (options.printAfter.contains("all") || llvm::any_of(options.printAfter.keys(), names))
      print(step.name, module);
    if (!options.afterPass || step.number > options.last)
      return success();
    return options.afterPass({step.name, step.number}, module);
  }

  LogicalResult runPipelineText(StringRef pipeline) {
    PassManager manager(module.getContext(), ModuleOp::getOperationName());
    manager.enableVerifier(options.verify);
    if (failed(parsePassPipeline(pipeline, manager, llvm::errs())))
      return module.emitError("internal: no pass '") << pipeline << "'";
    return manager.run(module);
  }

  LogicalResult runPass(const PipelineStep &step) {
    const StringRef pipeline = isOff(step) ? step.whenOff : step.pass;
    if (pipeline.empty())
      return success();
    if (failed(runPipelineText(pipeline)))
      return failure();
    return after(step);
  }

  /// Runs a pass of several rewrites without those that are off.
  LogicalResult runRewrites(ArrayRef<PipelineStep> steps) {
    const PassRow &row = *steps.front().row;
    if (!row.whenOff.empty() &&
        llvm::all_of(steps, [&](const PipelineStep &step) { return isOff(step); }))
      return runPipelineText(row.whenOff);
    std::string disabled;
    bool anyOn = false;
    for (const PipelineStep &step : steps)
      if (isOff(step) && !step.needed)
        disabled += (disabled.empty() ? "" : ",") + step.pattern.str();
      else
        anyOn = true;
    if (!anyOn)
      return success();
    const std::string pipeline =
        row.name.str() + (disabled.empty() ? "" : "{disable=" + disabled + "}");
    if (!options.afterPass && options.printAfter.empty())
      return runPipelineText(pipeline);
    return runObserved(pipeline, steps);
  }

  /// Runs a pass and looks at the IR after each of its rewrites.
  LogicalResult runObserved(StringRef pipeline, ArrayRef<PipelineStep> steps) {
    bool stopped = false;
    module.getContext()->registerActionHandler(
        [&](llvm::function_ref<void()> transform, const tracing::Action &action) {
          const auto *pattern = llvm::dyn_cast<PatternAction>(&action);
          // A pass may try other passes on a copy of the module.
          if (!pattern || cast<Operation *>(action.getContextIRUnits()[0]) != module)
            return transform();
          if (stopped)
            return;
          transform();
          for (const PipelineStep &step : steps)
            if (step.row->name == pattern->pass && step.pattern == pattern->pattern)
              stopped |= failed(after(step));
        });
    llvm::scope_exit done([&] { module.getContext()->registerActionHandler(nullptr); });
    return success(succeeded(runPipelineText(pipeline)) && !stopped);
  }

  ModuleOp module;
  const PipelineOptions &options;
};

} // namespace

LogicalResult runPipeline(ModuleOp module, Stage from, Stage to, const PipelineOptions &options) {
  registerOnce();
  Run run(module, options);
  ArrayRef<PipelineStep> steps = pipelineSteps();
  while (!steps.empty()) {
    size_t count = 1;
    while (steps[0].pass.empty() && count < steps.size() && steps[count].row == steps[0].row)
      ++count;
    const ArrayRef<PipelineStep> now = steps.take_front(count);
    steps = steps.drop_front(count);
    if (now[0].stage <= from || now[0].stage > to)
      continue;
    if (failed(run.run(now)))
      return failure();
    if (steps.empty() || steps[0].row != now[0].row)
      run.endRow(now[0]);
  }
  return success();
}

} // namespace tk
