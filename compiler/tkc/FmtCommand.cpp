//===- FmtCommand.cpp - tkc fmt: the canonical form of a file -------------===//
#include "compiler/tkc/Commands.h"

#include "frontend/Formatter.h"
#include "runtime/Files.h"

#include <CLI/CLI.hpp>

#include <iostream>

namespace tk::tkc {
namespace {

struct FmtOptions {
  std::vector<std::string> files;
  bool check = false;
  bool write = false;
  bool json = false;
};

int fmt(const FmtOptions &options) {
  int status = Done;
  if (options.write && llvm::is_contained(options.files, "-"))
    return report(Error(ErrorCode::invalid_argument, "standard input cannot be rewritten in place"),
                  options.json);
  for (const std::string &path : options.files) {
    SourceManager sources;
    std::string why;
    FileId file = loadSource(sources, path, &why);
    if (file == kNoFile)
      return report(Error(ErrorCode::io, "cannot read '" + path + "': " + why), options.json);
    Diagnostics diags(sources);
    std::string text = formatSource(sources, file, diags);
    if (diags.hasErrors()) {
      diags.render(std::cerr, {!options.json && wantsColour(), options.json});
      status = WrongInput;
      continue;
    }
    bool same = text == sources.file(file).text();
    if (options.check) {
      if (!same) {
        std::cerr << path << ": not formatted\n";
        status = WrongInput;
      }
    } else if (options.write) {
      if (Status written =
              same ? Status() : detail::write_file(path, text, detail::FileKind::source);
          !written)
        return report(written.error(), options.json);
    } else {
      std::cout << text;
    }
  }
  return status;
}

} // namespace

void addFmt(CLI::App &app, int &status) {
  CLI::App *command = app.add_subcommand("fmt", "Formats .tk files.");
  auto options = std::make_shared<FmtOptions>();
  command->add_option("FILES", options->files, "The files; - is standard input")->required();
  command->add_flag("--check", options->check, "Only say which files differ; exit 1 if any does");
  command->add_flag("-i,--in-place", options->write, "Rewrite the files");
  command->add_flag("--json", options->json, "Diagnostics as JSON lines");
  command->callback([options, &status] { status = fmt(*options); });
}

} // namespace tk::tkc
