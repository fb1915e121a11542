// Runs the frontend over every file of errors/ and compares the codes; and checks that every code
// of the registry has a file.
//
// A file starts with lines such as
//   // expect: TK0302 at 6          one diagnostic, in the order of position; `at LINE` may be left
//   out
//   // says: dimension 'K' is 64    a piece of the rendered text
//   // with: schedules/file.tk       a schedule file, relative to errors/; it then has the errors

#include "frontend/Program.h"
#include "tests/unit/catch.h"
#ifdef TK_HAVE_SEMA
#include "frontend/Gradient.h"
#include "frontend/Sema.h"
#endif

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

using namespace tk;

namespace {

struct Expectation {
  std::string code;
  unsigned line = 0; ///< 0: any
};

struct ErrorFile {
  std::filesystem::path path;
  std::vector<Expectation> codes;
  std::vector<std::string> says;
  std::string schedules; ///< empty: none
};

std::vector<ErrorFile> errorFiles() {
  std::vector<ErrorFile> files;
  for (auto &entry : std::filesystem::directory_iterator(TK_ERRORS_DIR)) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with("fail_") || entry.path().extension() != ".tk")
      continue;
    ErrorFile file{entry.path(), {}, {}, {}};
    SourceManager sources;
    FileId id = sources.load(entry.path().string());
    REQUIRE(id != kNoFile);
    std::istringstream lines{std::string(sources.file(id).text())};
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("// says: ")) {
        file.says.push_back(line.substr(9));
      } else if (line.starts_with("// with: ")) {
        file.schedules = line.substr(9);
      } else if (line.starts_with("// expect: ")) {
        std::istringstream words(line.substr(11));
        Expectation expectation;
        std::string at;
        words >> expectation.code >> at >> expectation.line;
        file.codes.push_back(std::move(expectation));
      }
    }
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(), [](auto &a, auto &b) { return a.path < b.path; });
  return files;
}

/// Codes that need a text too long to keep in a file, which ParserTest has, or that passes report:
/// those are in e2e/errors/check_errors.py.
bool isTestedElsewhere(Diag id) {
  return id == Diag::NestingTooDeep || id == Diag::SourceTooLarge ||
         id == Diag::TooManyOperations || id == Diag::ExpressionTooDeep ||
         id == Diag::ScheduleDoesNotFit || id == Diag::NeedsNewerMachine;
}

[[maybe_unused]] bool isSyntax(unsigned number) {
  return number < 200 || (number > 600 && number < 605);
}

/// Whether this build has the stage that reports the code.
bool isReported(const std::string &code) {
#ifdef TK_HAVE_SEMA
  return true;
#else
  return isSyntax(static_cast<unsigned>(std::stoul(code.substr(2))));
#endif
}

} // namespace

TEST_CASE("every file reports exactly what it says") {
  for (const ErrorFile &file : errorFiles()) {
    bool skip = std::any_of(file.codes.begin(), file.codes.end(),
                            [](auto &e) { return !isReported(e.code); });
    if (skip)
      continue;
    SourceManager sources;
    Diagnostics diags(sources);
    FileId main = sources.load(file.path.string());
    ParseOptions options;
    if (!file.schedules.empty())
      options.schedules = sources.load((file.path.parent_path() / file.schedules).string());
    auto program = parseProgram(sources, main, diags, options);
#ifdef TK_HAVE_SEMA
    if (!diags.hasErrors()) {
      frontend::deriveGradients(sources, *program, diags);
      frontend::analyze(*program, diags);
    }
#endif
    INFO(file.path.filename().string() << "\n" << diags.text());
    auto found = diags.sorted();
    REQUIRE_FALSE(file.codes.empty());
    REQUIRE(found.size() == file.codes.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(info(found[i]->id).code() == file.codes[i].code);
      if (file.codes[i].line)
        CHECK(sources.lineColumn(found[i]->span).line == file.codes[i].line);
    }
    for (const std::string &piece : file.says)
      CHECK(diags.text().find(piece) != std::string::npos);
  }
}

TEST_CASE("every code of the registry has a file") {
  std::set<std::string> tested;
  for (const ErrorFile &file : errorFiles())
    for (const Expectation &expectation : file.codes)
      tested.insert(expectation.code);
  for (const DiagInfo &row : allDiagnostics()) {
    INFO(row.code() << " " << row.name
                    << " has no tests/frontend/errors/fail_*.tk that expects it");
    CHECK((tested.contains(row.code()) || isTestedElsewhere(row.id)));
    tested.erase(row.code());
  }
  INFO("codes that are expected but not in the registry");
  CHECK(tested.empty());
}
