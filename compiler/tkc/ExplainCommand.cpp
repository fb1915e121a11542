//===- ExplainCommand.cpp - tkc explain -----------------------------------===//
//
// `tkc explain FILE`: what the passes derived and declined, by lines of the source.
// `tkc explain TK0305`: the section of docs/reference/diagnostics.md on a code.
//
//===----------------------------------------------------------------------===//
#include "compiler/tkc/Commands.h"
#include "compiler/tkc/MeshRun.h"

#include "tk/module.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <map>

namespace tk::tkc {

/// docs/reference/diagnostics.md; the build embeds it.
extern const std::string_view diagnosticsPage;

namespace {

using Remark = CompiledSource::Remark;

struct ExplainOptions {
  SourceOptions source;
  MeshChoice mesh;
  unsigned line = 0;
  bool general = false;
};

/// TK and four digits, in upper or lower case.
bool isCode(llvm::StringRef word) {
  return word.size() == 6 && word.take_front(2).equals_insensitive("tk") &&
         llvm::all_of(word.drop_front(2), llvm::isDigit);
}

int explainCode(llvm::StringRef word, bool json) {
  const std::string code = word.upper();
  llvm::StringRef page(diagnosticsPage.data(), diagnosticsPage.size());
  size_t begin = page.find("### " + code);
  if (begin == llvm::StringRef::npos)
    return report(
        Error(ErrorCode::invalid_argument,
              "there is no diagnostic " + code + "; docs/reference/diagnostics.md lists all"),
        json);
  llvm::StringRef section = page.substr(begin + 4);
  section = section.take_front(std::min(section.find("\n### "), section.find("\n## ")));
  std::string text = section.trim().str();
  if (json) {
    llvm::json::Object object{{"code", code}, {"text", std::exchange(text, "")}};
    llvm::raw_string_ostream(text) << llvm::json::Value(std::move(object));
  }
  std::cout << text << "\n";
  return Done;
}

/// Each fact once, in the order of the source; what has no place comes first.
std::vector<Remark> inOrderOfSource(std::vector<Remark> remarks, unsigned line) {
  std::map<std::pair<std::string, unsigned>, std::vector<Remark>> places;
  for (Remark &remark : remarks) {
    if (line != 0 && remark.line != line)
      continue;
    std::vector<Remark> &place = places[{remark.file, remark.line}];
    if (llvm::none_of(place, [&](const Remark &other) { return other.text == remark.text; }))
      place.push_back(std::move(remark));
  }
  std::vector<Remark> ordered;
  for (auto &[where, place] : places)
    llvm::append_range(ordered, place);
  return ordered;
}

void printJson(llvm::ArrayRef<Remark> remarks) {
  for (const Remark &remark : remarks) {
    llvm::json::Object object{{"verdict", remark.declined ? "declined" : "derived"},
                              {"pass", remark.pass},
                              {"text", remark.text}};
    if (remark.line > 0) {
      object["file"] = remark.file;
      object["line"] = remark.line;
    }
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(std::move(object));
    std::cout << text << "\n";
  }
}

Expected<std::vector<Remark>> remarksOnMesh(const ExplainOptions &options,
                                            const CompiledSource &source, size_t kernel,
                                            const std::string &target) {
  Expected<std::vector<int64_t>> dims = knownDims(options.source, source.signatures()[kernel]);
  if (!dims)
    return dims.error();
  return meshRemarks(source, kernel, options.mesh, *dims, target);
}

int explain(ExplainOptions &options) {
  const bool json = options.source.json;
  if (isCode(options.source.file))
    return explainCode(options.source.file, json);
  Expected<ChosenKernel> chosen = options.source.compileKernel();
  if (!chosen)
    return report(chosen.error(), json);
  auto &[source, kernel] = *chosen;
  const Signature &signature = source->signatures()[kernel];
  Expected<std::string> target = targetOfCode(options.source);
  if (!target)
    return report(target.error(), json);
  if (Status met = options.source.checkGiven(signature); !met)
    return report(met.error(), json);
  Expected<Facts> facts = options.source.factsFor(signature, options.general);
  if (!facts)
    return report(facts.error(), json);
  auto given = options.source.givenVariables(signature);
  if (!given)
    return report(given.error(), json);
  decideConditions(*source, kernel, *target, *given, *facts);
  auto remarks = !options.mesh.isGiven() ? source->remarks(kernel, *target, *facts)
                                         : remarksOnMesh(options, *source, kernel, *target);
  if (!remarks)
    return report(remarks.error(), json);
  std::vector<Remark> ordered = inOrderOfSource(std::move(*remarks), options.line);
  if (json)
    printJson(ordered);
  else if (ordered.empty())
    std::cout << nothingSaid(options.source.file, signature, *target, options.line);
  else
    std::cout << CompiledSource::textOf(ordered);
  return Done;
}

} // namespace

void addExplain(CLI::App &app, int &status) {
  CLI::App *command = app.add_subcommand(
      "explain", "Says what the passes derived and declined, by lines of the source; or, of a code "
                 "such as TK0305, what the diagnostic means. Needs no GPU.");
  auto options = std::make_shared<ExplainOptions>();
  options->source.addTo(*command);
  options->source.addScalarsTo(*command);
  command->add_option("--line", options->line, "Only what is said of this line");
  options->mesh.addTo(*command, "of the kernel on a mesh, why each collective is there");
  command->add_flag("--general", options->general, "Assume nothing of sizes that are not given");
  command->callback([options, &status] { status = explain(*options); });
}

} // namespace tk::tkc
