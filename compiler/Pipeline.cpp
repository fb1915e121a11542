//===- Pipeline.cpp - runs the passes of tk -------------------------------===//
#include "compiler/Pipeline.h"

#ifdef TK_HAS_CPU
#include "compiler/codegen/cpu/CpuPipeline.h"
#endif
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/analysis/FusionChoices.h"
#include "passes/pipeline/GuardPasses.h"
#include "passes/plan/ChangePasses.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

using namespace mlir;

namespace tk {

namespace {

/// Lists the steps of the table.
class StepList {
public:
  explicit StepList(const PhaseRow &phase, std::vector<PipelineStep> &steps)
      : phase(phase), steps(steps) {}

  void addRow(const PassRow &row) {
    PipelineStep step;
    step.row = &row;
    step.stage = phase.stage;
    step.name = row.name.str();
    step.pass = row.name;
    step.group = row.group;
    step.whenOff = row.whenOff;
    step.why = row.why;
    if (row.patterns.empty())
      return addPass(step);
    for (const PatternRow &pattern : row.patterns) {
      step.name = step.pattern = (row.name + ":" + pattern.name).str();
      step.pass = pattern.pass;
      step.group = pattern.group.empty() ? row.group : pattern.group;
      step.whenOff = pattern.whenOff;
      step.why = pattern.why;
      addPass(step);
    }
  }

private:
  /// A pass, or the rewrites inside it.
  void addPass(const PipelineStep &whole) {
    const ArrayRef<PatternInfo> inside = patternsOf(whole.pass);
    first = static_cast<unsigned>(steps.size()) + 1;
    if (inside.empty())
      return add(whole);
    for (const PatternInfo &pattern : inside) {
      PipelineStep step = whole;
      step.name = (whole.row->name + ":" + pattern.name).str();
      step.inner = pattern.name;
      step.former = pattern.former;
      step.needed = pattern.needed;
      step.why = pattern.summary;
      if (!pattern.group.empty())
        step.group = pattern.group;
      add(step);
    }
  }

  void add(PipelineStep step) {
    if (!step.inner.empty() && step.pass != step.row->name)
      step.ofPass = (step.pass + ":" + step.inner).str();
    step.number = static_cast<unsigned>(steps.size()) + 1;
    step.first = first;
    steps.push_back(std::move(step));
  }

  const PhaseRow &phase;
  std::vector<PipelineStep> &steps;
  unsigned first = 0;
};

} // namespace

std::vector<std::string> PipelineOptions::fusionFlags() const {
  std::vector<std::string> flags;
  for (const auto &[flag, names] :
       {std::pair("--inline ", &inlined), std::pair("--store ", &stored),
        std::pair("--merge ", &merged), std::pair("--apart ", &apart)})
    for (const std::string &name : *names)
      flags.push_back(flag + name);
  return flags;
}

ArrayRef<PipelineStep> pipelineSteps() {
  static const std::vector<PipelineStep> steps = [] {
    std::vector<PipelineStep> list;
    for (const PhaseRow &phase : phaseTable())
      for (const PassRow &row : phase.rows)
        StepList(phase, list).addRow(row);
    return list;
  }();
  return steps;
}

unsigned lastTensorPass() {
  return static_cast<unsigned>(llvm::count_if(
      pipelineSteps(), [](const PipelineStep &step) { return step.stage <= Stage::Fused; }));
}

/// The names that select a step.
static SmallVector<StringRef> namesOf(const PipelineStep &step) {
  SmallVector<StringRef> names = {step.name, step.row->name, step.pattern, step.group,
                                  step.pass, step.ofPass,    step.former};
  llvm::erase_if(names, [](StringRef name) { return name.empty(); });
  return names;
}

bool selects(StringRef selector, const PipelineStep &step) {
  return llvm::is_contained(namesOf(step), selector);
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
    for (StringRef known : namesOf(step))
      names.push_back(known.str());
  const std::string nearest = nearestOf(name, names);
  return "unknown pass '" + name.str() + "'" +
         (nearest.empty() ? "" : "; did you mean '" + nearest + "'?");
}

static void registerOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    registerTkPasses();
    registerTkGuardPasses();
    registerTkChangePasses();
    registerCanonicalizerPass();
    registerCSEPass();
  });
}

std::string summaryOf(const PipelineStep &step) {
  if (!step.inner.empty())
    return step.why.rtrim('.').str();
  registerOnce();
  const PassInfo *info = PassInfo::lookup(step.pass);
  return info ? info->getPassDescription().str() : step.name;
}

std::string tkOptFlag(StringRef name) {
  for (const PipelineStep &step : pipelineSteps())
    if (step.name == name && !step.inner.empty())
      return ("--" + step.pass + "=only=" + step.inner).str();
  auto [row, pattern] = name.split(':');
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

namespace {

/// One run of the pipeline.
class Run {
public:
  Run(ModuleOp module, const PipelineOptions &options) : module(module), options(options) {}

  /// Runs the steps from `begin` on that are one pass: one step, or all rewrites inside a pass.
  LogicalResult run(ArrayRef<PipelineStep> steps) {
    return steps.front().inner.empty() ? runPass(steps.front()) : runRewrites(steps);
  }

  /// Prints the IR behind what has several steps: a row, and a row's pattern.
  void end(const PipelineStep &last, const PipelineStep *next) {
    const bool endsRow = !next || next->row != last.row;
    if (endsRow && last.name != last.row->name && options.printAfter.contains(last.row->name))
      print(last.row->name, module);
    if (last.inner.empty() || last.pattern.empty())
      return;
    for (StringRef name : {StringRef(last.pattern), last.pass})
      if (options.printAfter.contains(name))
        return print(name, module);
  }

private:
  bool isOff(const PipelineStep &step) const {
    return step.number > options.last || anySelects(options.disabled, step);
  }

  LogicalResult after(const PipelineStep &step) {
    const auto names = [&](StringRef name) {
      const bool isWhole = name == step.row->name || name == step.pattern || name == step.pass;
      return selects(name, step) && (!isWhole || (step.inner.empty() && name != step.row->name));
    };
    if (options.printAfter.contains("all") || options.printAfter.contains(step.name) ||
        llvm::any_of(options.printAfter.keys(), names))
      print(step.name, module);
    if (!options.afterPass || step.number > options.last)
      return success();
    return options.afterPass({step.name, step.number, step.first}, module);
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
    const PipelineStep &first = steps.front();
    if (!first.whenOff.empty() &&
        llvm::all_of(steps, [&](const PipelineStep &step) { return isOff(step); }))
      return runPipelineText(first.whenOff);
    std::string disabled;
    bool anyOn = false;
    for (const PipelineStep &step : steps)
      if (isOff(step) && !step.needed)
        disabled += (disabled.empty() ? "" : ",") + step.inner.str();
      else
        anyOn = true;
    if (!anyOn)
      return success();
    const std::string pipeline =
        first.pass.str() + (disabled.empty() ? "" : "{disable=" + disabled + "}");
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
            if (step.pass == pattern->pass && step.inner == pattern->pattern)
              stopped |= failed(after(step));
        });
    llvm::scope_exit done([&] { module.getContext()->registerActionHandler(nullptr); });
    return success(succeeded(runPipelineText(pipeline)) && !stopped);
  }

  ModuleOp module;
  const PipelineOptions &options;
};

} // namespace

/// Hands tk-fuse-producers and tk-merge-computes the results for which their rules are not asked.
static void setFusionChoices(ModuleOp module, const PipelineOptions &options) {
  Builder builder(module.getContext());
  auto set = [&](StringRef attribute, ArrayRef<std::string> names) {
    SmallVector<StringRef> list(names.begin(), names.end());
    if (!list.empty())
      module->setAttr(attribute, builder.getStrArrayAttr(list));
  };
  set(inlinedAttrName, options.inlined);
  set(storedAttrName, options.stored);
  set(mergedAttrName, options.merged);
  set(apartAttrName, options.apart);
}

LogicalResult runPipeline(ModuleOp module, Stage from, Stage to, const PipelineOptions &options) {
  registerOnce();
  if (from < Stage::Fused)
    setFusionChoices(module, options);
  Run run(module, options);
  ArrayRef<PipelineStep> steps = pipelineSteps();
  while (!steps.empty()) {
    size_t count = 1;
    while (!steps[0].inner.empty() && count < steps.size() && steps[count].row == steps[0].row &&
           steps[count].pass == steps[0].pass)
      ++count;
    const ArrayRef<PipelineStep> now = steps.take_front(count);
    steps = steps.drop_front(count);
    if (now[0].stage <= from || now[0].stage > to)
      continue;
    if (failed(run.run(now)))
      return failure();
    run.end(now.back(), steps.empty() ? nullptr : &steps.front());
  }
  return success();
}

} // namespace tk
