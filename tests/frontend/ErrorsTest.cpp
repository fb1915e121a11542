// Runs the frontend over every file of errors/ and compares the codes; and checks that every code
// of the registry has a file.
//
// A file starts with lines such as
//   // expect: TK0302 at 6          one diagnostic, in the order of position; `at LINE` may be left
//   out
//   // says: dimension 'K' is 64    a piece of the rendered text
//   // with: schedules/file.tk       a schedule file, relative to errors/; it then has the errors
//
// errors/messages.txt holds the messages of each file, which docs/reference/diagnostics.md shows.
// scripts/generate-diagnostics has it written, by TK_WRITE_MESSAGES.

#include "frontend/Program.h"
#include "tests/unit/catch.h"
#ifdef TK_HAVE_SEMA
#include "frontend/Gradient.h"
#include "frontend/Sema.h"
#endif

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
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
         id == Diag::ScheduleDoesNotFit || id == Diag::NeedsNewerMachine ||
         id == Diag::NotBatchInvariant;
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

/// Runs the frontend over a file.
void runFrontend(const ErrorFile &file, SourceManager &sources, Diagnostics &diags) {
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
}

/// The messages of a file without places and lines of the source, each once.
std::string messagesOf(const ErrorFile &file) {
  SourceManager sources;
  Diagnostics diags(sources);
  runFrontend(file, sources, diags);
  std::vector<std::string> messages;
  std::istringstream lines(diags.text());
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = std::min(line.find(": error[TK"), line.find(": warning[TK"));
    const bool isSource = line.find_first_not_of(" 0123456789") == line.find('|');
    if (begin != std::string::npos)
      messages.push_back(line.substr(begin + 2) + "\n");
    else if (!isSource && !messages.empty())
      messages.back() += line + "\n";
  }
  const std::string folder = std::string(TK_ERRORS_DIR) + "/";
  for (std::string &message : messages)
    for (std::size_t at = message.find(folder); at != std::string::npos; at = message.find(folder))
      message.erase(at, folder.size());
  std::string text;
  for (auto message = messages.begin(); message != messages.end(); ++message)
    if (std::find(messages.begin(), message, *message) == message)
      text += *message;
  return text;
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
    runFrontend(file, sources, diags);
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

#ifdef TK_HAVE_SEMA
TEST_CASE("messages.txt holds what the files report") {
  std::string wanted;
  for (const ErrorFile &file : errorFiles())
    wanted += "== " + file.path.filename().string() + "\n" + messagesOf(file);
  const std::string path = std::string(TK_ERRORS_DIR) + "/messages.txt";
  if (std::getenv("TK_WRITE_MESSAGES"))
    std::ofstream(path) << wanted;
  std::ifstream in(path);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  INFO("errors/messages.txt is out of date: run scripts/generate-diagnostics");
  CHECK(text == wanted);
}
#endif
