//===- RunCommand.cpp - tkc run: launch, check, time ----------------------===//
#include "compiler/tkc/Commands.h"

#include "compiler/plan/WorkCount.h"
#include "compiler/tkc/Check.h"
#include "compiler/tkc/Inputs.h"
#include "compiler/tkc/MeshRun.h"
#include "compiler/tkc/Progress.h"
#include "compiler/tkc/Session.h"
#include "compiler/tkc/ShownValues.h"
#include "compiler/tkc/TargetDiff.h"
#include "compiler/tkc/Validation.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

namespace tk::tkc {
namespace {

struct RunOptions {
  SourceOptions source;
  ArgumentTexts texts;
  std::vector<std::string> outputs;
  bool check = false;
  bool time = false;
  bool explain = false;
  bool validatePasses = false;
  std::vector<std::string> show, targets;
  MeshChoice mesh;
  int64_t checkElements = 1 << 14;
  std::optional<unsigned> launches;
};

/// What the run found, for both forms of the report.
struct RunReport {
  std::string kernel, target, device;
  bool checked = false, ok = true;
  std::vector<CheckedResult> results;
  std::optional<Validated> validated;
  double milliseconds = 0;
  WorkCount work;
  std::vector<ShownTensor> shown;
};

Status writeOutputs(const RunOptions &options, const Signature &signature,
                    const std::vector<HostTensor> &outputs) {
  for (const std::string &text : options.outputs) {
    size_t equals = text.find('=');
    std::string name = text.substr(0, equals);
    std::optional<unsigned> tensor = signature.find_tensor(name);
    if (!tensor || equals == std::string::npos)
      return Error(ErrorCode::invalid_argument,
                   "expected --out RESULT=PATH.npy with a result of '" + signature.name +
                       "', got '" + text + "'");
    if (Status written = write_npy(text.substr(equals + 1), outputs[*tensor]); !written)
      return written;
  }
  return {};
}

void printText(const RunReport &report, const Session &session) {
  std::printf("%s on %s (%s), %zu launch%s\n", report.kernel.c_str(), report.target.c_str(),
              report.device.c_str(), session.numLaunches(), session.numLaunches() == 1 ? "" : "es");
  printResults(report.results);
  if (report.validated) {
    std::printf("  passes: %u right by the reference, %u by running the code after them",
                report.validated->evaluated, report.validated->executed);
    for (const std::string &pass : report.validated->notCompiled)
      std::printf(", no code to run after %s", pass.c_str());
    std::puts("");
  }
  printShown(report.shown, report.target);
  if (report.milliseconds > 0) {
    double seconds = report.milliseconds * 1e-3;
    std::printf("  time: %.4g ms, %.4g TFLOP/s, %.4g GB/s%s\n", report.milliseconds,
                report.work.flops / seconds * 1e-12, report.work.bytes / seconds * 1e-9,
                session.ceilings(report.work.bytes / seconds).c_str());
  }
}

void printJson(const RunReport &report, const Session &session) {
  std::printf("{\"kernel\":\"%s\",\"target\":\"%s\",\"launches\":%zu", report.kernel.c_str(),
              report.target.c_str(), session.numLaunches());
  if (report.checked) {
    std::printf(",\"ok\":%s,\"results\":[", report.ok ? "true" : "false");
    for (size_t r = 0; r < report.results.size(); ++r) {
      const CheckedResult &result = report.results[r];
      std::printf("%s{\"name\":\"%s\",\"ok\":%s,\"max_error\":%.9g,\"naive_error\":%.9g,"
                  "\"relative_error\":%.9g}",
                  r ? "," : "", result.name.c_str(), result.comparison.ok ? "true" : "false",
                  result.comparison.maxError, result.comparison.naiveError,
                  result.comparison.relativeError);
    }
    std::printf("]");
  }
  if (report.validated)
    std::printf(",\"passes_evaluated\":%u,\"passes_executed\":%u,\"passes_not_executed\":%zu",
                report.validated->evaluated, report.validated->executed,
                report.validated->notCompiled.size());
  if (!report.shown.empty())
    std::printf(",\"shown\":%s", shownJson(report.shown).c_str());
  if (report.milliseconds > 0)
    std::printf(",\"ms\":%.6g,\"flops\":%.9g,\"bytes\":%.9g", report.milliseconds,
                report.work.flops, report.work.bytes);
  std::puts("}");
}

/// What --show selects; the lets that it names become results.
Expected<std::vector<Selection>> selectionsOf(const RunOptions &options, CompiledSource &source,
                                              size_t kernel) {
  std::vector<Selection> selections;
  std::vector<std::string> names;
  for (const std::string &text : options.show) {
    Expected<Selection> selection = parseSelection(text);
    if (!selection)
      return selection.error();
    names.push_back(selection->name);
    selections.push_back(std::move(*selection));
  }
  if (Status stored = source.storeLocals(kernel, names); !stored)
    return stored.error();
  return selections;
}

/// --diff: the targets beside one another, and nothing else.
int runDiff(const RunOptions &options, const ChosenKernel &chosen, RunArguments &inputs) {
  const bool json = options.source.json;
  if (options.targets.size() < 2)
    return report(
        Error(ErrorCode::invalid_argument, "--diff compares two targets or more: --diff cpu,emu"),
        json);
  auto compared = diffTargets(chosen.source, chosen.kernel, options.targets, inputs, json);
  if (!compared)
    return report(compared.error(), json);
  const std::string &name = chosen.source->signatures()[chosen.kernel].name;
  json ? void(std::puts(diffJson(name, *compared).c_str())) : printDiff(name, *compared);
  const bool agree = llvm::all_of(*compared, [](const ComparedResult &r) { return r.agree; });
  return agree ? Done : InternalError;
}

/// --mesh: on all ranks at once.
int runRanks(const RunOptions &options, const ChosenKernel &chosen, const RunArguments &inputs) {
  const bool json = options.source.json;
  const Signature &signature = chosen.source->signatures()[chosen.kernel];
  if (options.time || options.validatePasses || !options.show.empty() || !options.targets.empty())
    return report(Error(ErrorCode::invalid_argument,
                        "--mesh goes with --check, --launches, --explain, --in and --out alone"),
                  json);
  Expected<MeshChoice::Chosen> chosenMesh = options.mesh.read();
  if (!chosenMesh)
    return report(chosenMesh.error(), json);
  MeshRunOptions mesh{
      options.source.target, chosenMesh->axes,
      chosenMesh->network,   options.check,
      options.checkElements, std::max(options.check ? 2u : 1u, options.launches.value_or(1))};
  Expected<MeshRun> ran = runOnMesh(chosen.source, chosen.kernel, inputs, mesh);
  if (!ran)
    return report(ran.error(), json);
  if (options.explain)
    std::fputs(ran->plan.str(signature).c_str(), stderr);
  if (Status written = writeOutputs(options, signature, ran->run.outputs); !written)
    return report(written.error(), json);
  printMeshRun(*ran, signature, mesh, json);
  return ran->run.firstWrong() ? InternalError : Done;
}

/// What passes say of the kernel, to stderr.
Status printNotes(CompiledSource &source, size_t kernel, Session &session) {
  Expected<std::string> notes = source.explain(kernel, session.target(), session.facts());
  if (!notes)
    return std::move(notes.error());
  std::fputs(notes->c_str(), stderr);
  return {};
}

int run(RunOptions &options) {
  bool json = options.source.json;
  Validation validation;
  if (options.validatePasses)
    options.source.afterPass = validation.hook();
  Expected<ChosenKernel> chosen = [&] {
    Progress progress("reading " + options.source.file, json);
    return options.source.compileKernel();
  }();
  if (!chosen)
    return report(chosen.error(), json);
  auto &[source, kernel] = *chosen;
  Expected<std::vector<Selection>> selections = selectionsOf(options, *source, kernel);
  if (!selections)
    return report(selections.error(), json);
  const Signature &signature = source->signatures()[kernel];
  options.texts.dims = options.source.dimValues().value();
  Expected<RunArguments> inputs = gatherArguments(signature, options.texts);
  if (!inputs)
    return report(inputs.error(), json);
  if (options.mesh.isGiven())
    return runRanks(options, *chosen, *inputs);
  if (!options.targets.empty())
    return runDiff(options, *chosen, *inputs);
  // The reference evaluates what a pass leaves on tensors whose axes lie as declared.
  for (RowLayout &layout : inputs->layouts)
    if (options.validatePasses)
      layout = {layout.gap, {}, 1};
  if (options.validatePasses)
    if (Status armed = validation.arm(*source, kernel, *inputs); !armed)
      return report(armed.error(), json);
  Expected<std::unique_ptr<Session>> session = [&, &source = source, &kernel = kernel] {
    Progress progress("compiling " + signature.name, json);
    return Session::create(source, kernel, options.source.target, *inputs);
  }();
  if (!session)
    return report(session.error(), json);
  if (options.explain)
    if (Status printed = printNotes(*source, kernel, **session); !printed)
      return report(printed.error(), json);
  RunReport result;
  if (options.validatePasses) {
    Expected<Validated> validated =
        validation.execute(source, kernel, options.source.target, *inputs, options.checkElements);
    if (!validated)
      return report(validated.error(), json);
    result.validated = *validated;
  }
  result.kernel = signature.name;
  result.target = (*session)->target();
  result.device = (*session)->deviceName();
  const bool check = options.check || !selections->empty();
  Expected<CheckedRun> ran =
      check ? runChecked(**session, *source, kernel, *inputs, options.checkElements,
                         std::max(2u, options.launches.value_or(2)), json)
            : runUnchecked(**session, *inputs, options.launches.value_or(1), json);
  if (!ran)
    return report(ran.error(), json);
  if (!selections->empty()) {
    auto shown = readSelections(*source, kernel, *inputs, *selections, ran->outputs);
    if (!shown)
      return report(shown.error(), json);
    result.shown = std::move(*shown);
  }
  result.checked = check;
  result.ok = !ran->firstWrong();
  result.results = std::move(ran->results);
  if (options.time) {
    Expected<double> milliseconds = (*session)->time();
    if (!milliseconds)
      return report(milliseconds.error(), json);
    result.milliseconds = *milliseconds;
    result.work = countWork(source->kernelOp(kernel), signature, inputs->variables);
  }
  if (Status written = writeOutputs(options, signature, ran->outputs); !written)
    return report(written.error(), json);
  json ? printJson(result, **session) : printText(result, **session);
  // A wrong result is a bug of ours, not of the program.
  return result.ok ? Done : InternalError;
}

} // namespace

void addRun(CLI::App &app, int &status) {
  CLI::App *command = app.add_subcommand("run", "Compiles and launches a kernel.");
  auto options = std::make_shared<RunOptions>();
  options->source.addTo(*command);
  command
      ->add_option(
          "--in", options->texts.inputs,
          "An input tensor: PATH.npy, random[:SEED[:LOW:HIGH]], special:SEED (with NaN among "
          "normal numbers), zeros or iota; default: standard normal numbers")
      ->type_name("NAME=SOURCE")
      ->allow_extra_args(false);
  command->add_option("--arg", options->texts.scalars, "A scalar argument")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--gap", options->texts.gaps,
                   "Put so many padding elements between the rows of a strided tensor")
      ->type_name("NAME=COUNT")
      ->allow_extra_args(false);
  command
      ->add_option("--axes", options->texts.axes,
                   "The axes of a strided tensor from the outermost to the innermost in memory, "
                   "and the innermost one's stride")
      ->type_name("NAME=AXIS,…[:STRIDE]")
      ->allow_extra_args(false);
  auto *out = command->add_option("--out", options->outputs, "Where to write a result")
                  ->type_name("NAME=PATH.npy")
                  ->allow_extra_args(false);
  auto *check =
      command->add_flag("--check", options->check, "Compare with the reference interpreter in f64");
  command->add_option("--check-elements", options->checkElements,
                      "How many elements of each result to check; 0: all");
  auto *launches =
      command
          ->add_option(
              "--launches", options->launches,
              "How many times to launch; with --check two or more, all of which have to agree")
          ->check(CLI::Range(1u, 1000000u));
  auto *show =
      command
          ->add_option(
              "--show", options->show,
              "Check, and print elements of a let or a result as the reference and the target "
              "compute them, such as y[3, 0..2]; a let is stored for that")
          ->type_name("NAME[…]")
          ->allow_extra_args(false);
  auto *diff = command
                   ->add_option("--diff", options->targets,
                                "Run on each target, and compare the results with the first one's")
                   ->type_name("TARGET,…")
                   ->delimiter(',')
                   ->allow_extra_args(false);
  command
      ->add_option("--plan-dim", options->source.planDims,
                   "Plan the code for this size, and run it at the sizes of the arguments")
      ->type_name("NAME=INT")
      ->allow_extra_args(false);
  options->mesh.addTo(*command, "Run on a mesh, whose ranks are threads (targets cpu and emu)");
  auto *validate =
      command->add_flag("--validate-passes", options->validatePasses,
                        "Compute the kernel after every pass, by the reference interpreter or by "
                        "executing what the pass left, and name the first that changes a value");
  auto *explain = command->add_flag("--explain", options->explain,
                                    "Print what the passes derived and declined to standard error");
  auto *time = command->add_flag("--time", options->time, "Print the median time of repeated runs");
  // --diff reports on targets beside one another, and does nothing of these.
  for (CLI::Option *other : {out, check, launches, show, validate, explain, time})
    diff->excludes(other);
  command->footer("Examples:\n"
                  "  tkc run norm.tk --target emu --dim R=64 --dim C=512 --check\n"
                  "  tkc run norm.tk --target cpu --dim R=2 --dim C=8 --in x=iota --out y=y.npy");
  command->callback([options, &status] { status = run(*options); });
}

} // namespace tk::tkc
