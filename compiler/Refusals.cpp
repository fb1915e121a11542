//===- Refusals.cpp - why passes leave a kernel as it is ------------------===//
//
// 1. The kernel is lowered once. A test of a pass that fails for a reason says so (Declines.h), and
//    the IR after each step of the pipeline is compared with the IR before it.
// 2. Each reason becomes a remark at its line.
// 3. A step that changes nothing becomes one remark on the kernel, and a step that changes some
//    lines becomes a remark on each statement that it does not change. A line at which the step has
//    said something else gets no such remark.
//
// So each step of the pipeline has changed a statement, or a remark says that it has not.
//
//===----------------------------------------------------------------------===//
#include "compiler/CompiledSource.h"

#include "compiler/Dump.h"
#include "compiler/PassChanges.h"
#include "compiler/PassDiagnostics.h"
#include "passes/analysis/Declines.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace mlir;

namespace tk {
namespace {

using Remark = CompiledSource::Remark;

/// Lines by file and number.
using Line = std::pair<std::string, unsigned>;

/// Does a name stand for this step alone? That of a row stands for all of its patterns.
bool namesOnly(StringRef name, const PipelineStep &step) {
  return selects(name, step) && llvm::none_of(pipelineSteps(), [&](const PipelineStep &other) {
           return other.name != step.name && selects(name, other);
         });
}

class Refusals {
public:
  Refusals(const SourceManager &sources, KernelOp kernel) : sources(sources) {
    kernelLine = remarkAt(kernel.getLoc());
    for (ComputeOp compute : kernel.getBody().getOps<ComputeOp>()) {
      Remark statement = remarkAt(compute.getLoc());
      if (statement.line > 0 && lines.insert({statement.file, statement.line}).second)
        statements.push_back(statement);
    }
  }

  /// What is known of lines from elsewhere, by the passes that said it.
  void know(ArrayRef<Remark> remarks) {
    for (const Remark &remark : remarks)
      said.insert({remark.pass, {remark.file, remark.line}});
  }

  void add(const Decline &decline) {
    Remark made = remarkAt(decline.where);
    made.pass = decline.pass;
    made.text = decline.why;
    said.insert({made.pass, {made.file, made.line}});
    all.push_back(std::move(made));
  }

  /// A step that ran and changed `changed`.
  void add(const PipelineStep &step, const std::set<Line> &changed) {
    const std::string summary = summaryOf(step);
    const std::string what = summary.empty() ? ""
                                             : " (" + std::string(1, llvm::toLower(summary[0])) +
                                                   summary.substr(1) + ")";
    if (changed.empty() && !saysAnything(step)) {
      Remark remark = kernelLine;
      remark.pass = step.name;
      remark.text = "nothing to rewrite" + what;
      all.push_back(std::move(remark));
      return;
    }
    for (Remark remark : statements) {
      const Line line(remark.file, remark.line);
      if (changed.contains(line) || says(step, line))
        continue;
      remark.pass = step.name;
      remark.text = "nothing here to rewrite" + what;
      all.push_back(std::move(remark));
    }
  }

  std::vector<Remark> take() { return std::move(all); }

private:
  Remark remarkAt(Location where) const {
    Remark made;
    made.declined = true;
    if (Span place = spanOf(sources, where); place.valid()) {
      const SourceFile &file = sources.file(place.file);
      made.file = file.name();
      made.line = file.lineColumn(place.begin).line;
      made.lineText = StringRef(file.line(made.line)).trim().str();
    }
    return made;
  }

  bool says(const PipelineStep &step, const Line &line) const {
    return llvm::any_of(said, [&](const auto &entry) {
      return entry.second == line && namesOnly(entry.first, step);
    });
  }
  bool saysAnything(const PipelineStep &step) const {
    return llvm::any_of(said, [&](const auto &entry) { return namesOnly(entry.first, step); });
  }

  const SourceManager &sources;
  Remark kernelLine;
  std::vector<Remark> statements;
  std::set<Line> lines;
  std::set<std::pair<std::string, Line>> said;
  std::vector<Remark> all;
};

} // namespace

Expected<std::vector<Remark>> CompiledSource::refusals(size_t kernel, std::string_view target,
                                                       const Facts &given) {
  std::lock_guard lock(mutex);
  Facts facts = relevant_facts(kernel, target, given);
  Expected<OwningOpRef<ModuleOp>> copy = isolate(kernel, target, facts);
  if (!copy)
    return copy.error();
  Dump dump(kernelNames[kernel], target, facts);
  auto find = [&] { return (*copy)->lookupSymbol<KernelOp>(kernelNames[kernel]); };
  Refusals refusals(sources, find());
  PlaceTable places(sources);
  ChangeRecorder recorder(places);
  recorder.begin(**copy);
  auto &afterPass = driver.pipeline.afterPass;
  auto outer = std::exchange(afterPass, [&](const PassRun &run, ModuleOp module) {
    recorder.see(run, module);
    return success();
  });
  llvm::scope_exit restore([&] { afterPass = std::move(outer); });
  DeclineLog log;
  const Stage last = target == "cpu" ? Stage::Fused : Stage::Gpu;
  if (Status lowered = lower(**copy, last, dump); !lowered)
    return lowered.error();
  refusals.know(remarksOf(find()));
  for (const Decline &decline : log.declines)
    refusals.add(decline);
  const PassChanges changes = recorder.take();
  std::map<std::string, std::set<Line>> changed;
  for (const PassChange &change : changes.passes)
    for (const LineChange &line : change.lines) {
      const SourcePlace &place = places.places()[line.place];
      changed[change.pass].insert({sources.file(place.file).name(), place.line});
    }
  // A pattern that finds nothing to look at does not run, and changes nothing either.
  std::set<std::string> seen;
  for (const PipelineStep &step : pipelineSteps()) {
    const bool isOff = llvm::any_of(driver.pipeline.disabled.keys(),
                                    [&](StringRef name) { return selects(name, step); });
    // A row may stand in the table more than once.
    if (step.stage <= last && !isOff && seen.insert(step.name).second)
      refusals.add(step, changed[step.name]);
  }
  return refusals.take();
}

} // namespace tk
