//===- BuildCommand.cpp - tkc build: every stage, without running ---------===//
#include "compiler/tkc/BundleStage.h"
#include "compiler/tkc/Commands.h"
#include "compiler/tkc/MeshRun.h"

#include "frontend/AstPrinter.h"
#include "frontend/Gradient.h"
#include "frontend/Program.h"
#include "tk/module.h"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <iostream>

namespace tk::tkc {
namespace {

struct BuildOptions {
  SourceOptions source;
  std::string emit; ///< empty: cubin, or nothing where an explanation was asked for
  std::string output;
  bool explain = false;
  bool general = false; ///< assume nothing of sizes that are not given
  MeshChoice mesh;
  BundleOptions bundle;
};

/// The syntax tree, before any check of meaning.
Expected<std::string> syntaxTree(const SourceOptions &options) {
  SourceManager sources;
  std::string why;
  FileId file = loadSource(sources, options.file, &why);
  if (file == kNoFile)
    return Error(ErrorCode::io, "cannot read '" + options.file + "': " + why);
  Diagnostics diags(sources);
  std::unique_ptr<ast::Program> program = parseProgram(sources, file, diags);
  frontend::deriveGradients(sources, *program, diags);
  if (diags.hasErrors())
    return Error(ErrorCode::compile_failed,
                 diags.text({!options.json && wantsColour(), options.json}));
  return printAst(*program);
}

std::string fileNameFor(const std::string &kernel, std::string_view stage) {
  if (stage == "ptx" || stage == "cubin" || stage == "sass")
    return kernel + "." + std::string(stage);
  if (stage == "cuda")
    return kernel + ".cu";
  if (stage == "ast" || stage == "plan")
    return kernel + "." + std::string(stage) + ".txt";
  return kernel + "." + std::string(stage) + ".mlir";
}

int emitAll(CompiledSource &source, size_t kernel, const std::string &target, const Facts &facts,
            const BuildOptions &options) {
  if (options.output.empty() || options.output == "-")
    return report(Error(ErrorCode::invalid_argument, "--emit=all needs a directory: -o DIR"),
                  options.source.json);
  std::error_code failed;
  std::filesystem::create_directories(options.output, failed);
  const std::string &name = source.signatures()[kernel].name;
  for (llvm::StringRef stage : CompiledSource::stageNames()) {
    Expected<std::string> text = stage == "ast"
                                     ? syntaxTree(options.source)
                                     : source.stage_text(kernel, stage.str(), target, facts);
    // A CPU target has no CUDA stages, a machine may lack a disassembler: say so, and go on.
    if (!text) {
      std::cerr << "tkc: no stage '" << stage.str() << "': " << text.error().message() << "\n";
      continue;
    }
    Status written =
        options.source.write(options.output + "/" + fileNameFor(name, stage.str()), *text);
    if (!written)
      return report(written.error(), options.source.json);
  }
  return Done;
}

/// Where a stage of a kernel goes: -o names the file of one kernel, and the folder of several.
std::string pathOf(const BuildOptions &options, const std::string &kernel, bool isOneOfSeveral) {
  std::string name = fileNameFor(kernel, options.emit);
  if (options.output.empty())
    return name;
  return isOneOfSeveral && options.output != "-" ? options.output + "/" + name : options.output;
}

/// Writes a stage of a kernel on a mesh, or what --explain says of it.
int buildOnMesh(const ChosenKernel &chosen, const std::string &target,
                const BuildOptions &options) {
  const bool json = options.source.json, onlyExplain = options.explain && options.emit.empty();
  const Signature &signature = chosen.source->signatures()[chosen.kernel];
  Expected<std::vector<int64_t>> dims = knownDims(options.source, signature);
  if (!dims)
    return report(dims.error(), json);
  if (options.explain) {
    auto remarks = meshRemarks(*chosen.source, chosen.kernel, options.mesh, *dims, target);
    if (!remarks)
      return report(remarks.error(), json);
    (onlyExplain ? std::cout : std::cerr) << CompiledSource::textOf(*remarks);
    if (onlyExplain)
      return Done;
  }
  if (options.emit == "cubin" || options.emit == "all")
    return report(Error(ErrorCode::invalid_argument,
                        "a kernel on a mesh has several cubins: name another stage with --emit"),
                  json);
  Expected<std::string> text =
      meshStage(*chosen.source, chosen.kernel, options.mesh, *dims, options.emit, target);
  if (!text)
    return report(text.error(), json);
  Status written = writeFile(pathOf(options, signature.name, false), *text);
  return written ? Done : report(written.error(), json);
}

/// A stage that no kernel for the CPU has is that of GPU code, also where there is no GPU.
Expected<std::string> targetOfStage(const BuildOptions &options) {
  constexpr llvm::StringLiteral ofGpu[] = {"tiled", "gpu", "cuda", "plan", "ptx", "sass"};
  if (llvm::is_contained(ofGpu, options.emit) && !options.mesh.isGiven())
    return targetOfCode(options.source);
  return resolve_target(options.source.target);
}

/// Writes a stage of one kernel, or what --explain says of it.
int buildKernel(const ChosenKernel &chosen, bool isOneOfSeveral, BuildOptions &options) {
  const bool json = options.source.json, onlyExplain = options.explain && options.emit.empty();
  const auto &[source, kernel] = chosen;
  const Signature &signature = source->signatures()[kernel];
  Expected<std::string> target = targetOfStage(options);
  if (!target)
    return report(target.error(), json);
  if (options.mesh.isGiven())
    return buildOnMesh(chosen, *target, options);
  Expected<Facts> facts = options.source.factsFor(signature, options.general);
  if (!facts)
    return report(facts.error(), json);
  auto given = options.source.givenVariables(signature);
  if (!given)
    return report(given.error(), json);
  decideConditions(*source, kernel, *target, *given, *facts);
  if (options.explain) {
    Expected<std::string> notes = source->explain(kernel, *target, *facts);
    if (!notes)
      return report(notes.error(), json);
    if (notes->empty())
      notes = nothingSaid(options.source.file, signature, *target);
    (onlyExplain ? std::cout : std::cerr) << *notes;
    if (onlyExplain)
      return Done;
  }
  if (options.emit == "all")
    return emitAll(*source, kernel, *target, *facts, options);
  Expected<std::string> text = source->stage_text(kernel, options.emit, *target, *facts);
  if (!text)
    return report(text.error(), json);
  if (isOneOfSeveral && options.output == "-")
    text->insert(0, "// kernel " + signature.name + "\n");
  const std::string path = pathOf(options, signature.name, isOneOfSeveral);
  Status written = options.source.write(path, *text);
  if (written && !options.bundle.depfile.empty())
    written = writeDepfile(options.bundle.depfile, path, *source);
  return written ? Done : report(written.error(), json);
}

/// A stage of every kernel of the file, each in a file of its own.
int buildEach(const std::shared_ptr<CompiledSource> &source, BuildOptions &options) {
  auto refuse = [&](const char *why) {
    return report(Error(ErrorCode::invalid_argument, why), options.source.json);
  };
  if (!options.bundle.depfile.empty())
    return refuse("--depfile is of one output: name a kernel with --kernel");
  if (options.output == "-" && options.emit == "cubin")
    return refuse("several cubins do not go to standard output: name a kernel with --kernel");
  if (!options.output.empty() && options.output != "-") {
    std::error_code failed;
    std::filesystem::create_directories(options.output, failed);
  }
  for (size_t kernel = 0; kernel < source->signatures().size(); ++kernel)
    if (int status = buildKernel({source, kernel}, /*isOneOfSeveral=*/true, options);
        status != Done)
      return status;
  return Done;
}

/// An option that has no effect on the stage that is written; empty if there is none.
std::string idleOption(const BuildOptions &options, bool onlyExplain) {
  const std::string stage = onlyExplain ? "the explanation" : "stage '" + options.emit + "'";
  for (auto [isGiven, name] : {std::pair(!options.bundle.variants.empty(), "--variant"),
                               std::pair(!options.bundle.sourceBase.empty(), "--cpp"),
                               std::pair(!options.bundle.nameSpace.empty(), "--namespace")})
    if (isGiven && options.emit != "bundle")
      return std::string(name) + " has no effect on " + stage + ": it is of --emit bundle";
  constexpr llvm::StringLiteral ofText[] = {"cuda", "ptx", "cubin", "sass", "bundle", "all"};
  if (options.source.noLines && (onlyExplain || !llvm::is_contained(ofText, options.emit)))
    return "--no-lines has no effect on " + stage + ": it is of the CUDA text";
  return "";
}

int build(BuildOptions &options) {
  bool json = options.source.json;
  const bool onlyExplain = options.explain && options.emit.empty();
  if (options.emit.empty())
    options.emit = "cubin";
  if (std::string idle = idleOption(options, onlyExplain); !idle.empty()) {
    std::cerr << "tkc build: " << idle << "\n";
    return WrongUsage;
  }
  const bool hasOneOutput =
      options.emit != "ast" && options.emit != "all" && options.output != "-" && !onlyExplain;
  if (!options.bundle.depfile.empty() && !hasOneOutput)
    return report(Error(ErrorCode::invalid_argument, "--depfile needs a stage after ast that is "
                                                     "written to a file: -o PATH"),
                  json);
  if (options.emit == "ast") {
    Expected<std::string> text = syntaxTree(options.source);
    if (!text)
      return report(text.error(), json);
    Status written = options.source.write(options.output.empty() ? "-" : options.output, *text);
    return written ? Done : report(written.error(), json);
  }
  if (options.emit == "bundle")
    return emitBundle(options.source, options.bundle, options.output);
  if (options.emit != "all" && !llvm::is_contained(CompiledSource::stageNames(), options.emit)) {
    std::string names;
    for (llvm::StringRef stage : CompiledSource::stageNames())
      names += (names.empty() ? "" : ", ") + stage.str();
    std::cerr << "tkc: no stage '" << options.emit << "'; there are " << names
              << ", bundle and all\n";
    return WrongUsage;
  }
  Expected<std::shared_ptr<CompiledSource>> source = options.source.compile();
  if (!source)
    return report(source.error(), json);
  if (onlyExplain)
    options.emit.clear();
  if (options.source.kernel.empty() && (*source)->signatures().size() > 1)
    return buildEach(*source, options);
  Expected<size_t> kernel = options.source.kernelOf(**source);
  if (!kernel)
    return report(kernel.error(), json);
  return buildKernel({*source, *kernel}, /*isOneOfSeveral=*/false, options);
}

} // namespace

void addBuild(CLI::App &app, int &status) {
  CLI::App *command = app.add_subcommand("build", "Compiles a kernel and writes a stage of it.");
  auto options = std::make_shared<BuildOptions>();
  options->source.addTo(*command);
  command
      ->add_option(
          "--emit", options->emit,
          "ast, tk, fused, linalg (cpu), tiled, gpu, cuda, plan, ptx, cubin, sass, bundle, "
          "or all (default: cubin)")
      ->type_name("STAGE");
  command
      ->add_option(
          "-o", options->output,
          "Where to write it: a file, or a folder for several kernels; - is standard output")
      ->type_name("PATH");
  options->bundle.addTo(*command);
  command->add_flag("--explain", options->explain,
                    "Print what the passes derived and declined, by lines of the source; without "
                    "--emit nothing is written");
  command->add_flag("--general", options->general,
                    "Assume nothing of sizes that are not given; else tensors are taken to have "
                    "less than 2^30 elements, and rows of whole 16-byte vectors");
  options->mesh.addTo(*command, "The kernel on a mesh, with its collectives and local kernels");
  command->add_flag("--no-lines", options->source.noLines, "Leave #line out of the CUDA text");
  options->source.addScalarsTo(*command);
  command->footer(
      "Examples:\n"
      "  tkc build norm.tk --target sm_90a --emit cuda -o norm.cu\n"
      "  tkc build norm.tk --target sm_90a --dim R=4096 --dim C=4096 --emit tiled -o -");
  command->callback([options, &status] { status = build(*options); });
}

} // namespace tk::tkc
