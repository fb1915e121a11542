//===- InspectCommand.cpp - tkc inspect: what the compiled code uses ------===//
#include "compiler/tkc/Commands.h"
#include "compiler/tkc/MeshCost.h"

#include "compiler/CudaBackend.h"
#include "compiler/InspectReport.h"
#include "compiler/arch/Architecture.h"
#include "compiler/plan/WorkCount.h"
#include "frontend/Diagnostics.h"
#include "tk/bundle.h"

#include "llvm/ADT/StringExtras.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <iostream>

namespace tk::tkc {
namespace {

struct InspectOptions {
  SourceOptions source;
  bool sass = false;
  bool cost = false;    ///< compile no code: print what the launches cost
  bool general = false; ///< assume nothing of sizes that are not given
  MeshChoice mesh;
};

std::string tripleText(const uint32_t (&values)[3]) {
  return std::to_string(values[0]) + "x" + std::to_string(values[1]) + "x" +
         std::to_string(values[2]);
}

/// The number that an expression has at the sizes that are known, else the expression.
std::string valueText(const Expr &value, const Signature &signature,
                      std::span<const Scalar> known) {
  if (Expected<int64_t> number = value.evaluate_integer(known))
    return std::to_string(*number);
  return value.str(signature.variable_names());
}

std::string gridText(const Launch &launch, const Signature &signature,
                     std::span<const Scalar> known) {
  return valueText(launch.grid[0], signature, known) + " x " +
         valueText(launch.grid[1], signature, known) + " x " +
         valueText(launch.grid[2], signature, known);
}

void printText(const std::vector<LaunchReport> &reports, const detail::Executable &executable,
               const std::unique_ptr<PredictedCost> &cost, const Signature &signature,
               std::span<const Scalar> known) {
  std::printf("%s for %s, %zu launch%s, %zu bytes of code\n", signature.name.c_str(),
              executable.target.c_str(), reports.size(), reports.size() == 1 ? "" : "es",
              executable.cubin.size());
  for (const LaunchReport &report : reports) {
    const Launch &launch = *report.launch;
    std::printf("%s%s%s\n", launch.symbol.c_str(), launch.span.valid() ? "  " : "",
                launch.span.str().c_str());
    std::printf("  grid       %s, blocks of %s", gridText(launch, signature, known).c_str(),
                tripleText(launch.block).c_str());
    if (launch.cluster[0] * launch.cluster[1] * launch.cluster[2] > 1)
      std::printf(", clusters of %s", tripleText(launch.cluster).c_str());
    std::printf("\n  registers  %u a thread\n", report.code.registers);
    const std::string dynamic = valueText(launch.shared_bytes, signature, known);
    std::printf("  shared     %lld + %s bytes a block\n",
                static_cast<long long>(report.code.staticShared), dynamic.c_str());
    std::printf("  spills     %lld bytes stored, %lld loaded; stack %lld\n",
                static_cast<long long>(report.code.spillStores),
                static_cast<long long>(report.code.spillLoads),
                static_cast<long long>(report.code.stackBytes));
    if (report.occupancy.blocks > 0)
      std::printf("  occupancy  %u block%s a multiprocessor, %.0f %% of its warps; limited by %s\n",
                  report.occupancy.blocks, report.occupancy.blocks == 1 ? "" : "s",
                  100 * report.occupancy.fraction, std::string(report.occupancy.limiter).c_str());
    if (const LaunchCost *launchCost = costOf(cost, launch.symbol)) {
      printPlan(*cost, launch.symbol);
      printCost(*cost, *launchCost);
    }
  }
  for (const Scratch &scratch : executable.plan.scratch)
    std::printf("scratch  %s bytes%s: %s\n", valueText(scratch.bytes, signature, known).c_str(),
                scratch.zeroed     ? ", zeroed"
                : scratch.restored ? ", restored"
                                   : "",
                scratch.purpose.c_str());
  if (cost)
    printTotal(*cost);
}

/// What is known before any code is compiled: the launches' costs alone.
int printCostAlone(const std::unique_ptr<PredictedCost> &cost, const Signature &signature,
                   const std::string &target, bool json) {
  if (!cost)
    return report(Error(ErrorCode::invalid_argument,
                        "the cost of kernel '" + signature.name +
                            "' depends on all of its dimensions (" +
                            llvm::join(signature.dims, ", ") + "): give each with --dim" +
                            (signature.num_scalars() > 0 ? ", and its scalars with --arg" : "")),
                  json);
  if (json) {
    std::printf("%s\n", inspectJson(*cost, signature, target).c_str());
    return Done;
  }
  std::printf("%s for %s\n", signature.name.c_str(), target.c_str());
  for (const LaunchCost &launch : cost->kernel.launches) {
    std::printf("%s\n", launch.symbol.c_str());
    printPlan(*cost, launch.symbol);
    printCost(*cost, launch);
  }
  printTotal(*cost);
  return Done;
}

void printBundleKernel(const BundleKernel &kernel) {
  std::printf("%s\n", kernel.signature.str().c_str());
  for (const Check &check : kernel.signature.checks)
    std::printf("  where %s\n", check.text.c_str());
  for (const BundleVariant &variant : kernel.variants)
    std::printf("  %-8s %7zu bytes, %zu launch%s: %s\n", variant.arch.c_str(), variant.cubin.size(),
                variant.plan.launches.size(), variant.plan.launches.size() == 1 ? "" : "es",
                describe(variant.facts, kernel.signature).c_str());
}

std::string bundleJson(const BundleKernel &kernel) {
  std::string text = "{\"kernel\":";
  quoteJson(kernel.signature.name, text);
  text += ",\"signature\":";
  quoteJson(kernel.signature.str(), text);
  text += ",\"where\":[";
  for (const Check &check : kernel.signature.checks) {
    text += text.back() == '[' ? "" : ",";
    quoteJson(check.text, text);
  }
  text += "],\"variants\":[";
  const char *separator = "";
  for (const BundleVariant &variant : kernel.variants) {
    text += std::string(separator) + "{\"target\":";
    quoteJson(variant.arch, text);
    text += ",\"code_bytes\":" + std::to_string(variant.cubin.size()) + ",\"assumes\":";
    quoteJson(describe(variant.facts, kernel.signature), text);
    text += ",\"launches\":[";
    for (const Launch &launch : variant.plan.launches) {
      text += text.back() == '[' ? "{\"symbol\":" : ",{\"symbol\":";
      quoteJson(launch.symbol, text);
      text += ",\"grid\":";
      quoteJson(gridText(launch, kernel.signature, {}), text);
      text +=
          ",\"threads\":" + std::to_string(launch.block[0] * launch.block[1] * launch.block[2]) +
          "}";
    }
    text += "]}";
    separator = ",";
  }
  return text + "]}";
}

/// Options that would have no effect; empty if there is none.
std::string idleOptions(const InspectOptions &options, bool isBundle) {
  std::vector<std::string> idle;
  auto add = [&](bool isGiven, const char *name) {
    if (isGiven)
      idle.emplace_back(name);
  };
  add(options.sass, "--sass");
  add(options.cost, "--cost");
  add(options.general, "--general");
  add(options.mesh.isGiven(), "--mesh");
  if (isBundle) {
    add(!options.source.target.empty(), "--target");
    add(!options.source.dims.empty(), "--dim");
    add(!options.source.scalars.empty(), "--arg");
    add(!options.source.scheduleFile.empty(), "--schedule");
    add(!options.source.device.empty(), "--device");
    add(!options.source.disabledPasses.empty(), "--disable-pass");
    add(!options.source.inlined.empty(), "--inline");
    add(!options.source.stored.empty(), "--store");
    add(!options.source.merged.empty(), "--merge");
    add(!options.source.apart.empty(), "--apart");
    add(!options.source.printAfter.empty(), "--print-after");
    add(options.source.checked, "--checked");
  }
  return llvm::join(idle, ", ");
}

int refuseIdle(const std::string &idle, const char *why) {
  std::cerr << "tkc inspect: " << idle << " " << why << "\n";
  return WrongUsage;
}

int inspectBundle(const InspectOptions &options) {
  if (std::string idle = idleOptions(options, /*isBundle=*/true); !idle.empty())
    return refuseIdle(idle, "would have no effect: a bundle holds code that is compiled");
  Expected<Bundle> bundle = read_bundle(options.source.file);
  if (!bundle)
    return report(bundle.error(), options.source.json);
  const std::string &chosen = options.source.kernel;
  std::vector<std::string> names;
  for (const BundleKernel &kernel : bundle->kernels)
    names.push_back(kernel.signature.name);
  if (!chosen.empty() && !llvm::is_contained(names, chosen))
    return report(Error(ErrorCode::invalid_argument, "no kernel '" + chosen + "' in '" +
                                                         options.source.file + "'; it has " +
                                                         llvm::join(names, ", ")),
                  options.source.json);
  for (const BundleKernel &kernel : bundle->kernels) {
    if (!chosen.empty() && kernel.signature.name != chosen)
      continue;
    if (options.source.json)
      std::puts(bundleJson(kernel).c_str());
    else
      printBundleKernel(kernel);
  }
  return Done;
}

/// The CPU has no launches to look into: what the program needs at the sizes that are given.
int inspectCpu(CompiledSource &source, size_t kernel, const GivenVariables &given, bool json) {
  const Signature &signature = source.signatures()[kernel];
  const size_t numDims = signature.dims.size();
  std::vector<int64_t> dims;
  for (const std::optional<Scalar> &dim : llvm::ArrayRef(given).take_front(numDims))
    if (dim)
      dims.push_back(dim->i);
  if (dims.size() != numDims)
    return report(Error(ErrorCode::invalid_argument,
                        "the cost of kernel '" + signature.name +
                            "' on the CPU depends on all of its dimensions (" +
                            llvm::join(signature.dims, ", ") +
                            "): give each with --dim; for GPU code name an architecture, such as "
                            "sm_90a"),
                  json);
  Expected<std::vector<Scalar>> variables =
      complete_variables(signature, dims, llvm::ArrayRef(given).drop_front(numDims));
  if (!variables)
    return report(variables.error(), json);
  const WorkCount work = countWork(source.kernelOp(kernel), signature, *variables);
  if (json)
    std::printf("{\"kernel\":\"%s\",\"target\":\"cpu\",\"needed_operations\":%.9g,"
                "\"needed_bytes\":%.9g}\n",
                signature.name.c_str(), work.flops, work.bytes);
  else
    std::printf("%s for cpu\n  needs      %.4g operations, %.4g MB read and written, %.4g "
                "operations a byte\n",
                signature.name.c_str(), work.flops, work.bytes * 1e-6,
                work.bytes > 0 ? work.flops / work.bytes : 0);
  return Done;
}

/// --mesh: the launches and collectives of one rank.
int inspectOnMesh(CompiledSource &source, size_t kernel, const std::string &target,
                  const InspectOptions &options) {
  const bool json = options.source.json;
  if (options.sass || options.general)
    return refuseIdle(options.sass ? "--sass" : "--general", "goes without --mesh");
  auto given = options.source.givenVariables(source.signatures()[kernel]);
  if (!given)
    return report(given.error(), json);
  Expected<MeshCost> cost = costOnMesh(source, kernel, target, options.mesh, *given);
  if (!cost)
    return report(cost.error(), json);
  std::string text;
  if (json)
    llvm::raw_string_ostream(text) << jsonOf(*cost) << "\n";
  else
    text = textOf(*cost);
  std::fputs(text.c_str(), stdout);
  return Done;
}

int inspect(InspectOptions &options) {
  bool json = options.source.json;
  if (llvm::StringRef(options.source.file).ends_with(".tkb"))
    return inspectBundle(options);
  Expected<ChosenKernel> chosen = options.source.compileKernel();
  if (!chosen)
    return report(chosen.error(), json);
  auto &[source, kernel] = *chosen;
  const Signature &signature = source->signatures()[kernel];
  Expected<Facts> facts = options.source.factsFor(signature, options.general);
  if (!facts)
    return report(facts.error(), json);
  Expected<std::string> target = targetOfCode(options.source);
  if (!target)
    return report(target.error(), json);
  if (Status met = options.source.checkGiven(signature); !met)
    return report(met.error(), json);
  if (options.mesh.isGiven() && *target != "cpu")
    return inspectOnMesh(*source, kernel, *target, options);
  if (*target == "cpu") {
    if (std::string idle = idleOptions(options, /*isBundle=*/false); !idle.empty())
      return refuseIdle(idle, "would have no effect: target 'cpu' has no GPU code");
    auto given = options.source.givenVariables(signature);
    return given ? inspectCpu(*source, kernel, *given, json) : report(given.error(), json);
  }
  Expected<const Architecture *> row = findArchitecture(detail::architecture_of(*target));
  if (!row)
    return report(row.error(), json);
  const unsigned arch = static_cast<unsigned>((*row)->arch);
  auto given = options.source.givenVariables(signature);
  if (!given)
    return report(given.error(), json);
  decideConditions(*source, kernel, *target, *given, *facts);
  if (options.cost) {
    auto cost = predictCost(*source, kernel, *target, *facts, *given, {});
    return cost ? printCostAlone(*cost, signature, *target, json) : report(cost.error(), json);
  }
  Expected<detail::Executable> executable = source->specialise(kernel, *target, *facts);
  if (!executable)
    return report(executable.error(), json);
  if (options.sass) {
    Expected<std::string> text = disassemble(executable->cubin);
    if (!text)
      return report(text.error(), json);
    Status written = writeFile("-", *text);
    return written ? Done : report(written.error(), json);
  }
  std::vector<LaunchReport> reports = reportsOf(*executable, arch, knownOf(*given));
  auto cost = predictCost(*source, kernel, *target, *facts, *given, reports);
  if (!cost)
    return report(cost.error(), json);
  if (json)
    std::printf("%s\n", inspectJson(reports, *executable, *cost, signature).c_str());
  else
    printText(reports, *executable, *cost, signature, knownOf(*given));
  return Done;
}

} // namespace

void addInspect(CLI::App &app, int &status) {
  CLI::App *command = app.add_subcommand(
      "inspect", "Says what a kernel's GPU code uses (registers, shared memory, spills, "
                 "occupancy), what its launches cost where all dimensions are given (time, bytes, "
                 "operations), or what a bundle holds. Needs no GPU, and without --cost NVRTC.");
  auto options = std::make_shared<InspectOptions>();
  options->source.addTo(*command);
  options->source.addScalarsTo(*command);
  command->add_flag("--sass", options->sass,
                    "Print the machine code instead; needs nvdisasm, of the CUDA toolkit");
  command
      ->add_flag("--cost", options->cost,
                 "Print the predicted times alone; compiles no code, and needs all dimensions")
      ->excludes("--sass");
  command->add_flag("--general", options->general, "Assume nothing of sizes that are not given");
  options->mesh.addTo(*command, "On one rank of a mesh, the predicted time of each launch and "
                                "collective; needs all dimensions");
  command->footer("Examples:\n"
                  "  tkc inspect norm.tk --target sm_90a --dim R=4096 --dim C=4096\n"
                  "  tkc inspect norm.tk --target sm_90a --dim R=4096 --dim C=4096 --cost");
  command->callback([options, &status] { status = inspect(*options); });
}

} // namespace tk::tkc
