//===- PassChanges.cpp - what each pass changes in a line -----------------===//
//
// 1. The IR after each pass is printed, and its lines are sorted by the places that they come from.
// 2. The lines of a place before and after a pass are compared as multisets, without the names of
//    SSA values. Lines that are in one of them alone are what the pass removed and added.
//
//===----------------------------------------------------------------------===//
#include "compiler/PassChanges.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace tk {

/// A line of IR without the names of SSA values.
static std::string withoutNames(StringRef line) {
  std::string text;
  for (size_t i = 0; i < line.size(); ++i) {
    text += line[i];
    if (line[i] != '%')
      continue;
    while (i + 1 < line.size() &&
           (llvm::isAlnum(line[i + 1]) || llvm::StringRef("_#.-$").contains(line[i + 1])))
      ++i;
  }
  return text;
}

/// The lines of `from` that are not in `other`, each as often as it is missing there.
static std::vector<std::string> difference(const std::vector<std::string> &from,
                                           const std::vector<std::string> &other) {
  std::map<std::string, unsigned> known;
  for (const std::string &line : other)
    ++known[withoutNames(line)];
  std::vector<std::string> rest;
  for (const std::string &line : from)
    if (unsigned &count = known[withoutNames(line)]; count > 0)
      --count;
    else
      rest.push_back(line);
  return rest;
}

ChangeRecorder::Snapshot ChangeRecorder::snapshotOf(ModuleOp module) {
  StageText stage = stageOfModule("", module, places);
  Snapshot snapshot;
  SmallVector<StringRef> lines;
  StringRef(stage.text).split(lines, '\n');
  for (auto [line, from] : llvm::zip(lines, stage.lines))
    for (unsigned place : from)
      snapshot[place].push_back(line.trim().str());
  return snapshot;
}

void ChangeRecorder::begin(ModuleOp module) { before = snapshotOf(module); }

void ChangeRecorder::see(const PassRun &run, ModuleOp module) {
  // Rewrites of one pass may alternate; passes themselves go back only to begin anew.
  while (!steps.empty() && steps.back().first > run.first)
    steps.pop_back();
  if (!steps.empty() && steps.back().pass == run.name)
    steps.back().after = snapshotOf(module);
  else
    steps.push_back({run.first, run.name.str(), snapshotOf(module)});
}

unsigned ChangeRecorder::numberOf(const std::string &text) {
  auto [known, isNew] = numbers.try_emplace(text, static_cast<unsigned>(changes.texts.size()));
  if (isNew)
    changes.texts.push_back(text);
  return known->second;
}

PassChanges ChangeRecorder::take() {
  const Snapshot *last = &before;
  const std::vector<std::string> none;
  auto linesOf = [&](const Snapshot &snapshot, unsigned place) -> const std::vector<std::string> & {
    auto found = snapshot.find(place);
    return found == snapshot.end() ? none : found->second;
  };
  for (const Step &step : steps) {
    PassChange change{step.pass, {}};
    for (unsigned place = 0; place < places.places().size(); ++place) {
      LineChange line{place, {}, {}};
      const std::vector<std::string> &old = linesOf(*last, place),
                                     &now = linesOf(step.after, place);
      for (const std::string &text : difference(old, now))
        line.removed.push_back(numberOf(text));
      for (const std::string &text : difference(now, old))
        line.added.push_back(numberOf(text));
      if (!line.removed.empty() || !line.added.empty())
        change.lines.push_back(std::move(line));
    }
    if (!change.lines.empty())
      changes.passes.push_back(std::move(change));
    last = &step.after;
  }
  return std::move(changes);
}

} // namespace tk
