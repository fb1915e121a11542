//===- BuildCommand.cpp - tkc build: every stage, without running ---------===//
#include "compiler/tkc/BundleStage.h"
#include "compiler/tkc/Commands.h"

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
  BundleOptions bundle;
};

/// The syntax tree, before any check of meaning.
Expected<std::string> syntaxTree(const SourceOptions &options) {
  SourceManager sources;
  std::string why;
  FileId file = sources.load(options.file, &why);
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
    Status written = writeFile(options.output + "/" + fileNameFor(name, stage.str()), *text);
    if (!written)
      return report(written.error(), options.source.json);
  }
  return Done;
}

int build(BuildOptions &options) {
  bool json = options.source.json;
  const bool onlyExplain = options.explain && options.emit.empty();
  if (options.emit.empty())
    options.emit = "cubin";
  const bool hasOneOutput =
      options.emit != "ast" && options.emit != "all" && options.output != "-" && !onlyExplain;
  if (!options.bundle.depfile.empty() && !hasOneOutput)
    return report(Error(ErrorCode::invalid_argument, "--depfile needs a stage behind ast that is "
                                                     "written to a file: -o PATH"),
                  json);
  if (options.emit == "ast") {
    Expected<std::string> text = syntaxTree(options.source);
    if (!text)
      return report(text.error(), json);
    Status written = writeFile(options.output.empty() ? "-" : options.output, *text);
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
  Expected<ChosenKernel> chosen = options.source.compileKernel();
  if (!chosen)
    return report(chosen.error(), json);
  auto &[source, kernel] = *chosen;
  Expected<std::string> target = resolve_target(options.source.target);
  if (!target)
    return report(target.error(), json);
  Expected<Facts> facts = options.source.factsFor(source->signatures()[kernel], options.general);
  if (!facts)
    return report(facts.error(), json);
  auto given = options.source.givenVariables(source->signatures()[kernel]);
  if (!given)
    return report(given.error(), json);
  decideConditions(*source, kernel, *target, *given, *facts);
  if (options.explain) {
    Expected<std::string> notes = source->explain(kernel, *target, *facts);
    if (!notes)
      return report(notes.error(), json);
    if (notes->empty())
      notes = nothingSaid(options.source.file, source->signatures()[kernel], *target);
    (onlyExplain ? std::cout : std::cerr) << *notes;
    if (onlyExplain)
      return Done;
  }
  if (options.emit == "all")
    return emitAll(*source, kernel, *target, *facts, options);
  Expected<std::string> text = source->stage_text(kernel, options.emit, *target, *facts);
  if (!text)
    return report(text.error(), json);
  std::string path = options.output;
  if (path.empty())
    path = fileNameFor(source->signatures()[kernel].name, options.emit);
  Status written = writeFile(path, *text);
  if (written && !options.bundle.depfile.empty())
    written = writeDepfile(options.bundle.depfile, path, *source);
  return written ? Done : report(written.error(), json);
}

} // namespace

void addBuild(CLI::App &app, int &status) {
  CLI::App *command = app.add_subcommand("build", "Compiles a kernel and writes a stage of it.");
  auto options = std::make_shared<BuildOptions>();
  options->source.addTo(*command);
  command->add_option(
      "--emit", options->emit,
      "ast, tk, fused, linalg (cpu), tiled, gpu, cuda, plan, ptx, cubin, sass, bundle, or "
      "all (default: cubin)");
  options->bundle.addTo(*command);
  command->add_flag("--explain", options->explain,
                    "Print what the passes derived and declined, by lines of the source; without "
                    "--emit nothing is written");
  command->add_flag("--general", options->general,
                    "Assume nothing of sizes that are not given; else tensors are taken to have "
                    "less than 2^30 elements, and rows of whole 16-byte vectors");
  options->source.addScalarsTo(*command);
  command->add_option("-o", options->output, "Where to write it; - is standard output");
  command->callback([options, &status] { status = build(*options); });
}

} // namespace tk::tkc
