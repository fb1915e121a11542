//===- ExplainCommand.cpp - tkc explain -----------------------------------===//
//
// `tkc explain FILE`: what the passes derived and declined, by lines of the source.
// `tkc explain TK0305`: the section of docs/reference/diagnostics.md on a code.
// `tkc explain tk-fold-masks`: the section of docs/reference/passes.md on a pass.
//
//===----------------------------------------------------------------------===//
#include "compiler/tkc/Commands.h"
#include "compiler/tkc/FusionTimes.h"
#include "compiler/tkc/MeshRun.h"
#include "compiler/tkc/tune/Candidates.h"

#include "tk/module.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <map>

namespace tk::tkc {

/// docs/reference/diagnostics.md; the build embeds it.
extern const std::string_view diagnosticsPage;
/// docs/reference/passes.md.
extern const std::string_view passesPage;

namespace {

using Remark = CompiledSource::Remark;

struct ExplainOptions {
  SourceOptions source;
  MeshChoice mesh;
  unsigned line = 0;
  bool general = false;
  bool verbose = false;
  bool quick = false; ///< predicts no other choices
};

/// TK and four digits, in upper or lower case.
bool isCode(llvm::StringRef word) {
  return word.size() == 6 && word.take_front(2).equals_insensitive("tk") &&
         llvm::all_of(word.drop_front(2), llvm::isDigit);
}

int printSection(const char *what, llvm::StringRef name, std::string text, bool json) {
  if (json) {
    llvm::json::Object object{{what, name}, {"text", std::exchange(text, "")}};
    llvm::raw_string_ostream(text) << llvm::json::Value(std::move(object));
  }
  std::cout << text << "\n";
  return Done;
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
  return printSection("code", code, section.trim().str(), json);
}

/// The section of the page of passes on a pass, or nothing.
llvm::StringRef sectionOf(llvm::StringRef pass) {
  llvm::StringRef page(passesPage.data(), passesPage.size());
  const size_t begin = page.find(("\n## `" + pass + "`\n").str());
  if (begin == llvm::StringRef::npos)
    return "";
  llvm::StringRef section = page.substr(begin + 4);
  return section.take_front(section.find("\n## ")).trim();
}

/// A pass, a row of the pipeline, a pattern or a group: what each step that it names does, and the
/// sections of their passes.
int explainPass(llvm::StringRef word, bool json) {
  std::string text;
  std::vector<llvm::StringRef> passes;
  for (const PipelineStep &step : pipelineSteps()) {
    if (!selects(word, step))
      continue;
    const std::string line = step.name + ": " + summaryOf(step) + ".\n";
    if (text.find(line) == std::string::npos) // a row may stand in the table more than once
      text += line;
    if (!llvm::is_contained(passes, step.pass))
      passes.push_back(step.pass);
  }
  for (llvm::StringRef pass : passes)
    if (llvm::StringRef section = sectionOf(pass); !section.empty())
      text += "\n" + section.str() + "\n";
  return printSection("pass", word, llvm::StringRef(text).trim().str(), json);
}

/// A word that looks like the name of a pass, and not like that of a file.
bool isMisspeltPass(llvm::StringRef word) {
  return word.starts_with("tk-") && !word.ends_with(".tk") && !llvm::sys::fs::exists(word);
}

/// Sentences of the page of passes that say when a pass declines.
std::string conditionsOf(llvm::StringRef pass) {
  std::string flat;
  bool isSpace = true, isCode = false;
  llvm::SmallVector<llvm::StringRef> lines;
  sectionOf(pass).split(lines, '\n');
  for (llvm::StringRef line : lines) {
    if (line.starts_with("```"))
      isCode = !isCode;
    else if (!isCode)
      for (char c : (line.str() + " "))
        if (c != ' ' || !std::exchange(isSpace, c == ' '))
          flat += c, isSpace = c == ' ';
  }
  std::string found;
  llvm::StringRef rest(flat);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(". "), rest.size() - 1);
    llvm::StringRef sentence = rest.take_front(end + 1).trim();
    rest = rest.drop_front(end + 1).ltrim();
    if (sentence.contains("decline"))
      found += (found.empty() ? "" : " ") + sentence.str();
  }
  return found;
}

/// Each fact once, in the order of the source; what has no place comes first.
std::vector<Remark> inOrderOfSource(std::vector<Remark> remarks, unsigned line) {
  std::map<std::pair<std::string, unsigned>, std::vector<Remark>> places;
  for (Remark &remark : remarks) {
    if (line != 0 && remark.line != line)
      continue;
    std::vector<Remark> &place = places[{remark.file, remark.line}];
    if (llvm::none_of(place, [&](const Remark &other) {
          return other.text == remark.text && other.pass == remark.pass;
        }))
      place.push_back(std::move(remark));
  }
  std::vector<Remark> ordered;
  for (auto &[where, place] : places)
    llvm::append_range(ordered, place);
  return ordered;
}

using Times = std::map<std::string, FusionTimes>;

void printJson(llvm::ArrayRef<Remark> remarks, const Times &times) {
  for (const Remark &remark : remarks) {
    llvm::json::Object object{{"verdict", remark.declined ? "declined" : "derived"},
                              {"pass", remark.pass},
                              {"text", remark.text}};
    if (!remark.tensor.empty())
      object["tensor"] = remark.tensor;
    if (auto both = times.find(remark.tensor); both != times.end())
      for (auto [key, time] : {std::pair(both->second.separateKey(), both->second.separate),
                               std::pair(both->second.fusedKey(), both->second.fused)})
        object[key] = time ? llvm::json::Value(*time) : nullptr;
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

/// Both predicted times of each choice of fusion, where the kernel's time is known.
Times timesOf(const ExplainOptions &options, const std::string &target, const std::string &kernel,
              llvm::ArrayRef<Remark> remarks) {
  SourceOptions source = options.source;
  source.printAfter.clear();
  if (options.quick || options.general || target == "cpu")
    return {};
  Expected<Candidate> own = predictCandidate(source, source, target, kernel, {});
  if (!own)
    return {};
  std::vector<Remark> shown;
  for (const Remark &remark : remarks)
    if (options.line == 0 || remark.line == options.line)
      shown.push_back(remark);
  return fusionTimes(source, target, kernel, shown, own->microseconds, own->plan);
}

/// Adds what keeps passes from rewriting; each pass's own conditions stand once.
Status addRefusals(std::vector<Remark> &remarks, CompiledSource &source, size_t kernel,
                   const std::string &target, const Facts &facts) {
  Expected<std::vector<Remark>> refused = source.refusals(kernel, target, facts);
  if (!refused)
    return refused.error();
  for (Remark &remark : *refused) {
    const auto step = llvm::find_if(pipelineSteps(),
                                    [&](const PipelineStep &s) { return selects(remark.pass, s); });
    const std::string conditions = step == pipelineSteps().end() ? "" : conditionsOf(step->pass);
    const bool isNew = llvm::none_of(remarks, [&](const Remark &other) {
      return llvm::StringRef(other.text).ends_with(conditions);
    });
    if (!conditions.empty() && isNew)
      remark.text += ". " + conditions;
    remarks.push_back(std::move(remark));
  }
  return {};
}

int explain(ExplainOptions &options) {
  const bool json = options.source.json;
  if (isCode(options.source.file))
    return explainCode(options.source.file, json);
  if (isKnownPass(options.source.file))
    return explainPass(options.source.file, json);
  if (isMisspeltPass(options.source.file))
    return report(Error(ErrorCode::invalid_argument, unknownPass(options.source.file)), json);
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
  const bool isOnMesh = options.mesh.isGiven();
  const Times times = isOnMesh ? Times() : timesOf(options, *target, signature.name, *remarks);
  if (options.verbose && !isOnMesh)
    if (Status added = addRefusals(*remarks, *source, kernel, *target, *facts); !added)
      return report(added.error(), json);
  std::vector<Remark> ordered = inOrderOfSource(std::move(*remarks), options.line);
  if (!json)
    for (Remark &remark : ordered)
      if (auto both = times.find(remark.tensor); both != times.end())
        remark.text += " (" + textOf(both->second) + ")";
  const bool isLeftOut = !times.empty() && llvm::any_of(ordered, [&](const Remark &remark) {
    return !remark.tensor.empty() && !times.count(remark.tensor);
  });
  if (isLeftOut && !json)
    std::cerr << "note: the times of some other choices are left out: predicting them takes long; "
                 "--line N predicts those of one line\n";
  if (json)
    printJson(ordered, times);
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
                 "such as TK0305 or a pass such as tk-fold-masks, what it means. Needs no GPU.");
  auto options = std::make_shared<ExplainOptions>();
  options->source.addTo(*command);
  command->get_option("FILE")->description(
      "The .tk file, a code such as TK0305, or a pass such as tk-fold-masks");
  options->source.addScalarsTo(*command);
  command->add_option("--line", options->line, "Print the facts of this line only")->type_name("N");
  options->mesh.addTo(*command, "Of the kernel on a mesh, why each collective is there");
  command->add_flag("--verbose", options->verbose,
                    "Also say what each pass leaves as it is, and why");
  command->add_flag("--quick", options->quick,
                    "Leave out the predicted times of the other choices");
  command->add_flag("--general", options->general, "Assume nothing of sizes that are not given");
  command->footer("Examples:\n"
                  "  tkc explain norm.tk --target sm_90a --dim R=4096 --dim C=4096\n"
                  "  tkc explain TK0302");
  command->callback([options, &status] { status = explain(*options); });
}

} // namespace tk::tkc
