//===- PipelineFamilies.cpp - families of passes in textual pipelines -----===//
//
// tk-opt runs a family of the table as it runs a pass, with options `disable` and `only`; and a
// rewrite inside a pass by its former name.
//
//===----------------------------------------------------------------------===//
#include "compiler/Pipeline.h"
#include "passes/Patterns.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"

#include <map>

using namespace mlir;

namespace tk {
namespace {

struct FamilyOptions : PassPipelineOptions<FamilyOptions> {
  ListOption<std::string> disable{*this, "disable", llvm::cl::desc("Patterns to leave out")};
  ListOption<std::string> only{*this, "only", llvm::cl::desc("The only patterns to run")};
};

using Report = llvm::function_ref<LogicalResult(const Twine &)>;

LogicalResult checkNames(const PassRow &row, ArrayRef<std::string> chosen, Report report) {
  std::vector<std::string> names;
  for (const PatternRow &pattern : row.patterns)
    names.push_back(pattern.name.str());
  for (const std::string &name : chosen)
    if (!llvm::is_contained(names, name)) {
      const std::string nearest = nearestOf(name, names);
      return report("unknown pattern '" + name + "' of " + row.name +
                    (nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
    }
  return success();
}

LogicalResult addFamily(const PassRow &row, OpPassManager &manager, StringRef text, Report report) {
  FamilyOptions options;
  if (failed(options.parseFromString(text)) || failed(checkNames(row, options.disable, report)) ||
      failed(checkNames(row, options.only, report)))
    return failure();
  for (const PatternRow &pattern : row.patterns) {
    const bool isOn = options.only.empty()
                          ? !llvm::is_contained(options.disable, pattern.name.str())
                          : llvm::is_contained(options.only, pattern.name.str());
    if (isOn && failed(parsePassPipeline(pattern.pass, manager)))
      return failure();
  }
  return success();
}

void addFormer(StringRef name, const std::string &pipeline) {
  registerPassPipeline(
      name, "A former name of " + pipeline,
      [pipeline](OpPassManager &manager, StringRef, Report) {
        return parsePassPipeline(pipeline, manager);
      },
      [](llvm::function_ref<void(const detail::PassOptions &)>) {});
}

} // namespace

void registerFamilies() {
  std::map<std::string, std::pair<std::string, std::string>> former; // name -> pass, patterns
  for (const PhaseRow &phase : phaseTable())
    for (const PassRow &row : phase.rows) {
      for (const PatternInfo &pattern : patternsOf(row.name))
        if (!pattern.former.empty()) {
          auto &[pass, patterns] = former[pattern.former.str()];
          pass = row.name.str();
          patterns += (patterns.empty() ? "" : ",") + pattern.name.str();
        }
      if (row.patterns.empty() || PassPipelineInfo::lookup(row.name))
        continue;
      registerPassPipeline(
          row.name, row.why,
          [&row](OpPassManager &manager, StringRef options, Report report) {
            return addFamily(row, manager, options, report);
          },
          [](llvm::function_ref<void(const detail::PassOptions &)> show) {
            show(FamilyOptions());
          });
    }
  for (const auto &[name, pass] : former)
    if (!PassInfo::lookup(name))
      addFormer(name, pass.first + "{only=" + pass.second + "}");
}

} // namespace tk
