//===- PipelinePage.cpp - docs/reference/pipeline.md ----------------------===//
#include "compiler/Pipeline.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace llvm;

namespace tk {

static StringRef stageName(Stage stage) {
  switch (stage) {
  case Stage::Tk:
    return "tk";
  case Stage::Fused:
    return "fused";
  case Stage::Tiled:
    return "tiled";
  case Stage::Gpu:
    return "gpu";
  }
  return "";
}

/// "`tk-pass`", with a link to the page of passes where that has it.
static std::string code(StringRef text) { return ("`" + text + "`").str(); }

static void writeSteps(raw_ostream &out, ArrayRef<PipelineStep> steps) {
  const PassRow &row = *steps.front().row;
  const bool hasPatterns = steps.front().name != row.name;
  out << "| " << code(row.name) << " | " << row.group << " | " << row.why
      << (row.whenOff.empty() ? "" : " Left out: " + code(row.whenOff) + " runs.") << " |\n";
  if (!hasPatterns)
    return;
  for (const PipelineStep &step : steps) {
    out << "| &nbsp;&nbsp;" << code(":" + StringRef(step.name).split(':').second.str()) << " | "
        << (step.group == row.group ? StringRef() : step.group) << " | " << step.why;
    const StringRef pass = step.pass == row.name ? step.former : step.pass;
    if (!pass.empty())
      out << " (" << code(pass) << ")";
    if (!step.whenOff.empty() && step.inner.empty())
      out << " It runs always.";
    if (step.needed)
      out << " It runs always.";
    out << " |\n";
  }
}

/// Whether all patterns of a row are in its group.
static bool isOneGroup(const PassRow &row) {
  return all_of(pipelineSteps(), [&](const PipelineStep &step) {
    return step.row != &row || step.group == row.group;
  });
}

static void writeGroups(raw_ostream &out) {
  std::map<std::string, std::vector<std::string>> groups;
  for (const PipelineStep &step : pipelineSteps()) {
    const std::string member = code(isOneGroup(*step.row) ? step.row->name : StringRef(step.name));
    std::vector<std::string> &members = groups[step.group.str()];
    if (!is_contained(members, member))
      members.push_back(member);
  }
  out << "\n## Groups\n\n| group | passes |\n|---|---|\n";
  for (const auto &[group, members] : groups)
    out << "| " << code(group) << " | " << join(members, ", ") << " |\n";
}

std::string pipelinePage() {
  std::string text;
  raw_string_ostream out(text);
  size_t rows = 0;
  for (const PhaseRow &phase : phaseTable())
    rows += phase.rows.size();
  out << "# The pipeline\n\n<!-- Written by scripts/generate-reference from "
         "compiler/PipelineTable.cpp. "
         "-->\n\n"
      << "The compiler runs these " << rows << " rows in this order, in " << phaseTable().size()
      << " phases. A row is one pass, or a family of named patterns.\n\n"
      << "* `--disable-pass NAME` leaves a row, a pattern (`ROW:PATTERN`) or a group out.\n"
      << "* `--print-after NAME` prints the IR after each step that the name selects.\n"
      << "* `tk-opt --ROW=only=PATTERN` runs one pattern of a row alone, `--ROW=disable=PATTERN` "
         "the "
         "others.\n"
      << "* `tkc run --validate-passes` checks the result after each row and each pattern.\n\n"
      << "The name in brackets behind a pattern is the pass that runs it. Both options take that "
         "name, "
         "too.\n";
  ArrayRef<PipelineStep> steps = pipelineSteps();
  for (const auto &[number, phase] : enumerate(phaseTable())) {
    out << "\n## " << number + 1 << ". " << phase.name << "\n\n"
        << phase.purpose << " The phase is part of the stage `" << stageName(phase.stage)
        << "`.\n\n| pass | group | why it stands here |\n|---|---|---|\n";
    for (const PassRow &row : phase.rows) {
      size_t count = 0;
      while (count < steps.size() && steps[count].row == &row)
        ++count;
      writeSteps(out, steps.take_front(count));
      steps = steps.drop_front(count);
    }
  }
  writeGroups(out);
  return text;
}

} // namespace tk
