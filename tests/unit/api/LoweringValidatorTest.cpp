// Faults planted behind passes below the tensor level: executing what each pass left names that
// pass, says what the kernel computes instead, and writes the IR that the pass got.
#include "compiler/Registration.h"
#ifdef TK_HAS_CPU
#include "compiler/codegen/cpu/CpuPipeline.h"
#endif
#include "compiler/tkc/Validation.h"
#include "tests/fuzz/Fault.h"
#include "tests/unit/api/TemporaryCache.h"
#include "tests/unit/catch.h"

#include "mlir/Parser/Parser.h"

#include <fstream>
#include <sstream>

using namespace tk;

namespace {

// The fault goes into the first statement; each pass below changes one of the two.
constexpr const char *program = R"(
kernel scaled(a: f16[M, K], b: f16[K, N], s: f32[N]) -> (t: f32[N], c: f16[M, N]) {
  t[j] = s[j] * (s[j] + 1.0)
  c[i, j] = sum[k](a[i, k] * b[k, j]) - s[j]
}
)";

struct Validated {
  std::string error; ///< or nothing
  tkc::Validated passes;
  std::string reproducer; ///< the file's text
};

Validated runWithFault(const std::string &target, llvm::StringRef faulty) {
  TemporaryCache cache;
  tkc::Validation validation(cache.directory);
  DriverOptions driver;
  driver.pipeline.afterPass = [&, hook = validation.hook()](const PassRun &pass,
                                                            mlir::ModuleOp module) {
    if (pass.name == faulty)
      fuzz::plantFault(module);
    return hook(pass, module);
  };
  auto source = CompiledSource::create(program, {}, driver).value();
  tkc::ArgumentTexts texts;
  texts.dims = {{"M", 20}, {"N", 24}, {"K", 16}};
  tkc::RunArguments inputs = tkc::gatherArguments(source->signatures()[0], texts).value();
  REQUIRE(validation.arm(*source, 0, inputs));
  REQUIRE(tkc::Session::create(source, 0, target, inputs));
  Expected<tkc::Validated> passes = validation.execute(source, 0, target, inputs, 0);
  CHECK(cache.entries() == 0);
  if (passes)
    return {"", *passes, ""};
  const std::string error = passes.error().message();
  std::string name = "/scaled-before-" + faulty.str() + ".mlir";
  std::replace(name.begin(), name.end(), ':', '.');
  std::ifstream file(cache.directory + name);
  std::stringstream text;
  text << file.rdbuf();
  return {error, {}, text.str()};
}

void checkThatItIsFound(const std::string &target, const std::string &pass) {
  INFO(target << " " << pass);
  const Validated found = runWithFault(target, pass);
  INFO(found.error);
  CHECK(found.error.starts_with("behind pass '" + pass + "' kernel 'scaled' is wrong: "));
  CHECK(found.error.find("; tk-opt " + tkOptFlag(pass) + " ") != std::string::npos);
  CHECK(found.reproducer.starts_with("// RUN: tk-opt " + tkOptFlag(pass) + " "));
  CHECK(found.reproducer.find("// where M = 20, K = 16, N = 24\n") != std::string::npos);
  mlir::DialectRegistry registry;
  registerDialects(registry);
#ifdef TK_HAS_CPU
  cpu::registerCpuDialects(registry);
#endif
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  CHECK(mlir::parseSourceString<mlir::ModuleOp>(found.reproducer, &context));
}

} // namespace

TEST_CASE("what passes below the tensor level leave is executed", "[validate]") {
#ifdef TK_HAS_EMU
  const Validated emulated = runWithFault("emu", "");
  CHECK(emulated.error == "");
  CHECK(emulated.passes.evaluated > 10);
  CHECK(emulated.passes.executed > 10);
  CHECK(emulated.passes.notCompiled.empty());
#endif
#ifdef TK_HAS_CPU
  const Validated compiled = runWithFault("cpu", "");
  CHECK(compiled.error == "");
  CHECK(compiled.passes.executed > 20);
  CHECK(compiled.passes.notCompiled.empty());
#endif
}

#ifdef TK_HAS_EMU
TEST_CASE("a fault behind a pass on tiles is found", "[validate]") {
  for (const char *pass : {"tk-tile", "tk-fold-masks:identities", "tk-coalesce-accesses:layouts",
                           "tk-promote-shared:operands", "tk-plan-shared-memory"})
    checkThatItIsFound("emu", pass);
}
#endif

#ifdef TK_HAS_CPU
TEST_CASE("a fault behind a pass of the CPU's pipeline is found", "[validate]") {
  for (const char *pass :
       {"tk-to-linalg", "tk-vectorize-contractions", "one-shot-bufferize", "tk-linalg-to-loops"})
    checkThatItIsFound("cpu", pass);
}
#endif
