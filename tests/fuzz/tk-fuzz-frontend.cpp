//===- tk-fuzz-frontend.cpp - bytes to the frontend, led by coverage ------===//
//
// tk-fuzz-frontend DIR [CORPUS…] [-runs=N] [-max_total_time=SECONDS] [-seed=N] …
//
// libFuzzer changes texts and keeps in DIR what reaches new code of lexer, parser, formatter and
// semantic analysis, which are built with AddressSanitizer and UndefinedBehaviorSanitizer. What
// fails is written to the current directory; `tk-fuzz-frontend FILE` runs it again.
//
//===----------------------------------------------------------------------===//
#include "frontend/AstPrinter.h"
#include "frontend/Formatter.h"
#include "frontend/Gradient.h"
#include "frontend/Program.h"
#include "frontend/Sema.h"

#include <cstdio>
#include <cstdlib>
#include <string>

using namespace tk;

namespace {

void require(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

/// What is made of a text, all of it rendered: nothing that is reported may be unfit to be shown.
struct Analysed {
  bool parses = false;
  std::string tree;

  explicit Analysed(const std::string &text) {
    SourceManager sources;
    Diagnostics diags(sources);
    const FileId file = sources.add("fuzz.tk", text);
    auto program = parseProgram(sources, file, diags, {.followImports = false});
    parses = !diags.hasErrors();
    if (parses) {
      tree = printAst(*program);
      frontend::deriveGradients(sources, *program, diags);
      const bool isAnalysed = frontend::analyze(*program, diags) != nullptr;
      require(isAnalysed == !diags.hasErrors(), "a program is analysed or has errors");
    }
    const bool isRendered = !diags.text().empty() && !diags.text({.json = true}).empty();
    require(isRendered || !diags.hasErrors(), "an error is shown");
  }
};

std::string format(const std::string &text) {
  SourceManager sources;
  Diagnostics diags(sources);
  return formatSource(sources, sources.add("fuzz.tk", text), diags);
}

} // namespace

/// LLVM's archives are not instrumented: containers that both sides touch cannot be tracked.
extern "C" const char *__asan_default_options() { return "detect_container_overflow=0"; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string text(reinterpret_cast<const char *>(data), size);
  const Analysed analysed(text);
  if (!analysed.parses)
    return 0;
  const std::string formatted = format(text);
  require(format(formatted) == formatted, "what is formatted stays as it is");
  require(Analysed(formatted).tree == analysed.tree, "the formatter keeps the tree");
  return 0;
}
