// The table of passes: what its rows have, and that names of patterns select what they say.
#include "compiler/Pipeline.h"
#include "compiler/CompiledSource.h"
#include "tests/unit/catch.h"

#include <set>

using namespace tk;

namespace {

constexpr const char *program = R"(
kernel rows(x: f32[R, C]) -> (y: f32[R, C]) {
  y[r, c] = softmax[c](x[r, c])
}
)";

/// The steps that run on a GPU target while `disabled` is left out.
std::set<std::string> stepsWithout(const std::string &disabled) {
  std::set<std::string> names;
  DriverOptions driver;
  driver.pipeline.afterPass = [&](const PassRun &pass, mlir::ModuleOp) {
    names.insert(pass.name.str());
    return mlir::success();
  };
  CompileOptions options;
  if (!disabled.empty())
    options.disabled_passes = {disabled};
  auto source = CompiledSource::create(program, options, driver).value();
  REQUIRE(source->stage_text(0, "cuda", "sm_90a", facts_for(std::vector<int64_t>{64, 4096})));
  return names;
}

} // namespace

TEST_CASE("the pipeline has ten phases of named rows", "[pipeline]") {
  CHECK(phaseTable().size() == 10);
  std::set<std::string> passes; // tk-simplify and tk-clean stand in several rows
  for (const PhaseRow &phase : phaseTable()) {
    INFO(phase.name.str());
    CHECK(phase.rows.size() >= 4);
    CHECK(phase.rows.size() <= 8);
    CHECK(!phase.purpose.empty());
    for (const PassRow &row : phase.rows) {
      INFO(row.name.str());
      passes.insert(row.name.str());
      CHECK(row.name.starts_with("tk-"));
      CHECK(!row.group.empty());
      CHECK(row.why.ends_with("."));
    }
  }
  CHECK(passes.size() <= 50);
}

TEST_CASE("steps are numbered, have reasons, and names of their own", "[pipeline]") {
  std::set<std::pair<const PassRow *, std::string>> names;
  unsigned number = 0;
  for (const PipelineStep &step : pipelineSteps()) {
    INFO(step.name);
    CHECK(step.number == ++number);
    CHECK(step.why.ends_with("."));
    CHECK(names.insert({step.row, step.name}).second);
    for (llvm::StringRef name : {llvm::StringRef(step.name), step.row->name, step.group})
      CHECK(isKnownPass(name));
    CHECK((step.former.empty() || isKnownPass(step.former)));
  }
}

TEST_CASE("a name that selects no pass is an error with a suggestion", "[pipeline]") {
  CHECK(!isKnownPass("tk-til"));
  CHECK(!isKnownPass(""));
  CHECK(unknownPass("tk-til") == "unknown pass 'tk-til'; did you mean 'tk-tile'?");
  CHECK(unknownPass("tk-simplify:fould") ==
        "unknown pass 'tk-simplify:fould'; did you mean 'tk-simplify:fold'?");
  CHECK(unknownPass("no such pass") == "unknown pass 'no such pass'");
  CHECK(tkOptFlag("tk-tile") == "--tk-tile");
  CHECK(tkOptFlag("tk-simplify:fold") == "--tk-simplify=only=fold");
  CHECK(tkOptFlag("tk-clean:cse") == "--tk-clean=only=cse");
  CHECK(tkOptFlag("tk-order-products:waits") == "--tk-begin-products=only=waits");
}

TEST_CASE("each pattern that is on is seen, and no other", "[pipeline]") {
  const std::set<std::string> all = stepsWithout("");
  CHECK(all.contains("tk-simplify:hoist-factors"));
  CHECK(all.contains("tk-choose-arithmetic:exponentials"));
  CHECK(all.contains("tk-reduce-registers:packed-tiles"));
  const auto without = [&](std::initializer_list<const char *> names) {
    std::set<std::string> rest = all;
    for (const char *name : names)
      CHECK(rest.erase(name) == 1);
    return rest;
  };
  // A rewrite inside a pass, a pattern that is a pass, and one by its pass's name.
  CHECK(stepsWithout("tk-simplify:hoist-factors") == without({"tk-simplify:hoist-factors"}));
  CHECK(stepsWithout("tk-reduce-registers:packed-tiles") ==
        without({"tk-reduce-registers:packed-tiles"}));
  CHECK(stepsWithout("tk-hold-narrow-tiles") == without({"tk-reduce-registers:packed-tiles"}));
  // A rewrite inside a pass that is a pattern, that pattern, and a group.
  CHECK(stepsWithout("tk-reduce-registers:maxima") == without({"tk-reduce-registers:maxima"}));
  CHECK(stepsWithout("tk-reduce-registers:reductions") ==
        without({"tk-reduce-registers:moments", "tk-reduce-registers:differences",
                 "tk-reduce-registers:maxima", "tk-reduce-registers:means",
                 "tk-reduce-registers:next-rows"}));
  CHECK(stepsWithout("pipelining") ==
        without({"tk-load-ahead:copies", "tk-load-ahead:converted-operands",
                 "tk-load-ahead:windows", "tk-load-ahead:small-loads"}));
  // Indices are widened all the same: there would be no right code.
  CHECK(stepsWithout("tk-convert-indices") == without({"tk-choose-arithmetic:floats"}));
  CHECK(stepsWithout("tk-convert-indices:floats") == without({"tk-choose-arithmetic:floats"}));
}
