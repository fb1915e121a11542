//===- KernelView.cpp - all that the compiler knows of a kernel -----------===//
//
// 1. The kernel is lowered once. Each stage is printed as the passes leave it.
// 2. The CUDA text and the launch plan follow from the last stage. Where NVRTC is found, it makes
//    PTX and machine code; where a disassembler is found, the machine code becomes text.
// 3. What the functions use decides how many blocks a multiprocessor holds, and that the costs.
// 4. Instructions are counted by their kinds and by the lines that they come from.
//
//===----------------------------------------------------------------------===//
#include "compiler/KernelView.h"

#include "compiler/MatrixPlaces.h"
#include "compiler/ScheduleTiles.h"

#include "compiler/CudaBackend.h"
#include "compiler/Dump.h"
#include "compiler/PassDiagnostics.h"
#include "compiler/RelevantFacts.h"
#include "compiler/Stages.h"
#include "compiler/arch/Architecture.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/machine/Machine.h"
#include "passes/plan/PlanRules.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"

#include <set>

using namespace mlir;

namespace tk {

/// Replaces a stage of the same name, or adds one.
static void keepStage(std::vector<StageText> &stages, StageText stage) {
  auto same = llvm::find_if(stages, [&](const StageText &s) { return s.name == stage.name; });
  if (same == stages.end())
    stages.push_back(std::move(stage));
  else
    *same = std::move(stage);
}

static StageText missingStage(StringRef name, const std::string &why) {
  return {name.str(), "", why, {}};
}

/// PTX and machine code as stages of the view, or why there are none.
static void addMachineCode(KernelView &view, const std::string &target, PlaceTable &places) {
  if (detail::is_emulated(target)) {
    const std::string why = "the emulator runs the CUDA text; name an architecture such as sm_90a";
    view.stages.push_back(missingStage("ptx", why));
    view.stages.push_back(missingStage("sass", why));
    return;
  }
  Expected<detail::Executable> compiled = compileWithNvrtc(view.executable, target);
  if (!compiled) {
    view.stages.push_back(missingStage("ptx", compiled.error().message()));
    view.stages.push_back(missingStage("sass", compiled.error().message()));
    return;
  }
  view.executable = std::move(*compiled);
  view.stages.push_back(stageOfPtx(withHeads(view.executable.ptx, view.executable.cuda), places));
  Expected<std::string> sass = disassemble(view.executable.cubin, /*places=*/true);
  if (!sass) {
    view.stages.push_back(missingStage("sass", sass.error().message()));
    return;
  }
  StageText text = stageOfSass(*sass, places);
  placeMatrixInstructions(text, view.stages.back());
  view.stages.push_back(std::move(text));
}

/// How a block asks for the order in which blocks walk the tiles.
static std::string rasterOf(int64_t group) {
  return group == 0 ? "columns" : group == 1 ? "rows" : "grouped(" + std::to_string(group) + ")";
}

/// `names` are those of the only statement. The planner finds the pipeline stages that fit; a block
/// is refused that asks for more.
static std::string scheduleOf(StringRef kernel, ArrayRef<std::string> names, gpu::FuncOp function) {
  const gpu::KernelPlan plan = gpu::getPlan(function);
  const gpu::ScheduleAttr tiles = plan.tiles;
  std::string entries;
  for (const auto &[name, size] : namedTiles(tiles, names)) {
    if (name.find('.') != std::string::npos) // an index that a pass has made
      return "";
    entries += (entries.empty() ? "" : ", ") + name + " = " + std::to_string(size);
  }
  if (entries.empty())
    return "";
  auto add = [&](StringRef key, const std::string &value) {
    entries += "\n  " + key.str() + " = " + value;
  };
  if (plan.roles == gpu::WarpRoles::ProducerConsumer) {
    add("consumers", std::to_string(tiles.getWarps() / warpsOfWarpgroup));
    if (tiles.getTeams() > 1)
      add("teams", std::to_string(tiles.getTeams()));
    if (tiles.getCluster() > 1 && !names.empty())
      add("cluster " + names.front(), std::to_string(tiles.getCluster()));
    add("persistent", tiles.getPersistent() ? "true" : "false");
  }
  if (plan.unit != gpu::PlanUnit::None)
    add("raster", rasterOf(tiles.getGroup()));
  return "schedule " + kernel.str() + " {\n  tile " + entries + "\n}\n";
}

/// The lines on which the program defines its tensors.
static std::map<std::string, unsigned> definitionsOf(KernelOp kernel) {
  std::map<std::string, unsigned> lines;
  for (ComputeOp compute : kernel.getBody().getOps<ComputeOp>())
    if (auto place = compute.getLoc()->findInstanceOf<FileLineColLoc>())
      for (Attribute name : compute.getNames())
        lines.try_emplace(cast<StringAttr>(name).getValue().str(), place.getLine());
  return lines;
}

/// The planners' rules, each with the functions that it is of if they have several.
static std::map<std::string, std::string> rulesOf(ModuleOp module) {
  std::map<std::string, std::string> rules;
  for (StringRef key : ruledKeys()) {
    std::vector<std::pair<StringRef, std::string>> found; // a rule, and its functions
    for (auto function : module.getOps<gpu::FuncOp>()) {
      const StringRef rule = planRule(gpu::getPlan(function), key);
      auto same = llvm::find_if(found, [&](const auto &entry) { return entry.first == rule; });
      if (same == found.end())
        found.emplace_back(rule, function.getSymName().str());
      else
        same->second += ", " + function.getSymName().str();
    }
    std::string &text = rules[key.str()];
    for (const auto &[rule, functions] : found)
      text += found.size() == 1 ? rule.str()
                                : (text.empty() ? "" : "; ") + functions + ": " + rule.str();
  }
  return rules;
}

/// What each function computes beside its products, where each statement has one function.
static void addFusedOperations(KernelView &view, ModuleOp module, ModuleOp fused) {
  llvm::SmallVector<gpu::FuncOp> functions(module.getOps<gpu::FuncOp>());
  llvm::SmallVector<ComputeOp> computes;
  fused.walk([&](ComputeOp compute) { computes.push_back(compute); });
  if (functions.size() != computes.size())
    return;
  for (auto [function, compute] : llvm::zip(functions, computes))
    view.fused[function.getSymName().str()] = fusedOperations(compute);
}

/// Arguments and plan of each function; `names` are those of each statement's tiles.
static void addPlans(KernelView &view, ModuleOp module, StringRef kernel,
                     ArrayRef<std::vector<std::string>> names) {
  auto functions = module.getOps<gpu::FuncOp>();
  for (auto function : functions) {
    std::vector<std::string> &arguments = view.arguments[function.getSymName().str()];
    for (Attribute name : function.getArgNames())
      arguments.push_back(cast<StringAttr>(name).getValue().str());
    view.plans[function.getSymName().str()] = gpu::describePlan(function);
    view.pipelines[function.getSymName().str()] = describeStages(function);
  }
  view.rules = rulesOf(module);
  if (names.size() == 1 && llvm::hasSingleElement(functions))
    view.scheduleBlock = scheduleOf(kernel, names[0], *functions.begin());
}

static void countInstructions(KernelView &view) {
  for (StringRef name : {"sass", "ptx"}) {
    auto stage = llvm::find_if(view.stages, [&](const StageText &s) { return s.name == name; });
    if (stage == view.stages.end() || stage->text.empty())
      continue;
    view.countedStage = name;
    view.instructions.assign(view.places.size() + 1, {});
    SmallVector<StringRef> lines;
    StringRef(stage->text).split(lines, '\n');
    for (auto [line, from] : llvm::zip(lines, stage->lines))
      if (auto kind = name == "ptx" ? kindOfPtx(line) : kindOfSass(line))
        ++view.instructions[from.empty() ? view.places.size() : from.front()]
                           [static_cast<size_t>(*kind)];
    return;
  }
}

/// A location that names several lines gives each of them the same share.
static void addTimeShares(KernelView &view, PlaceTable &places) {
  if (!view.cost)
    return;
  std::vector<std::vector<std::vector<unsigned>>> numbers; // by launch and location
  for (const LaunchCost &launch : view.cost->kernel.launches)
    for (auto &of = numbers.emplace_back(); const auto &[where, share] : launch.shares)
      of.push_back(places.numbers(where));
  const size_t count = places.places().size();
  for (auto [launch, of] : llvm::zip(view.cost->kernel.launches, numbers)) {
    std::vector<double> &shares = view.timeShares[launch.symbol];
    shares.assign(count + 1, 0);
    for (auto [entry, lines] : llvm::zip(launch.shares, of)) {
      if (lines.empty())
        shares.back() += entry.second;
      for (unsigned line : lines)
        shares[line] += entry.second / static_cast<double>(lines.size());
    }
  }
}

Expected<KernelView> CompiledSource::view(size_t kernel, std::string_view target,
                                          const Facts &given, ArrayRef<int64_t> dims,
                                          ArrayRef<std::optional<Scalar>> scalars) {
  std::lock_guard lock(mutex);
  Facts facts = relevant_facts(kernel, target, given);
  Expected<OwningOpRef<ModuleOp>> copy = isolate(kernel, target, facts);
  if (!copy)
    return copy.error();
  Dump dump(kernelNames[kernel], target, facts);
  const bool isGpu = isGpuText(target);
  KernelView view;
  PlaceTable places(sources);
  view.stages.push_back(stageOfModule("tk", **copy, places));
  view.definitions = definitionsOf((*copy)->lookupSymbol<KernelOp>(kernelNames[kernel]));
  noteSchedules((*copy)->lookupSymbol<KernelOp>(kernelNames[kernel]), kernel, target, facts);
  std::vector<std::vector<std::string>> names; // by statement
  OwningOpRef<ModuleOp> fused;
  auto seen = [&](StringRef stage, ModuleOp module) {
    if (stage == "fused") {
      names = tileNamesOf(module);
      fused = module.clone();
    }
    keepStage(view.stages, stageOfModule(stage, module, places));
  };
  ChangeRecorder recorder(places);
  recorder.begin(**copy);
  auto &afterPass = driver.pipeline.afterPass;
  auto outer = std::exchange(afterPass, [&](const PassRun &run, ModuleOp module) {
    recorder.see(run, module);
    return success();
  });
  llvm::scope_exit restore([&] { afterPass = std::move(outer); });
  if (Status lowered = lower(**copy, isGpu ? Stage::Gpu : Stage::Fused, dump, seen); !lowered)
    return lowered.error();
  view.changes = recorder.take();
  auto op = (*copy)->lookupSymbol<KernelOp>(kernelNames[kernel]);
  view.remarks = remarksOf(op);
  if (isGpu) {
    addPlans(view, **copy, kernelNames[kernel], names);
    addFusedOperations(view, **copy, *fused);
    PassDiagnostics collect(context.get());
    Expected<detail::Executable> emitted = emitText(**copy, kernel, facts);
    if (!emitted)
      return Error(ErrorCode::internal, emitted.error().message() + "\n" + collect.text());
    view.executable = std::move(*emitted);
    view.stages.push_back(stageOfCuda(view.executable.cuda, places));
    addMachineCode(view, std::string(target), places);
    std::vector<Scalar> variables(dims.begin(), dims.end());
    for (const std::optional<Scalar> &scalar : scalars) {
      if (!scalar || dims.size() != kernelSignatures[kernel].dims.size())
        break;
      variables.push_back(*scalar);
    }
    Expected<const Architecture *> row = findArchitecture(detail::architecture_of(target));
    if (!row)
      return row.error();
    view.launches = reportsOf(view.executable, static_cast<unsigned>((*row)->arch), variables);
    auto blocksOf = [&](StringRef symbol) -> unsigned {
      for (const LaunchReport &launch : view.launches)
        if (launch.launch->symbol == symbol)
          return launch.occupancy.blocks;
      return 0;
    };
    if (dims.size() == kernelSignatures[kernel].dims.size()) {
      auto cost = costOf(**copy, fused.get(), kernel, target, dims, scalars, blocksOf);
      if (!cost)
        return cost.error();
      view.cost = std::move(*cost);
    }
  } else {
    for (StringRef stage : {"tiled", "gpu", "cuda", "ptx", "sass"})
      view.stages.push_back(missingStage(stage, "target 'cpu' has no such stage"));
  }
  addTimeShares(view, places);
  view.places.assign(places.places().begin(), places.places().end());
  for (FileId id = 0; id < sources.size(); ++id)
    view.files.push_back({sources.file(id).name(), std::string(sources.file(id).text())});
  countInstructions(view);
  return view;
}

} // namespace tk
