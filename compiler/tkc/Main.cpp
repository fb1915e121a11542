//===- Main.cpp - tkc, the command line of tk -----------------------------===//
#include "compiler/tkc/Commands.h"
#include "compiler/tkc/Process.h"

#include "llvm/ADT/StringRef.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <vector>

/// The first word, if it is no command: CLI11 would say that there is none.
static bool isUnknownCommand(CLI::App &app, const char *word) {
  if (!word || *word == '-')
    return false;
  std::string known;
  std::vector<std::string> names;
  for (const CLI::App *command : app.get_subcommands({})) {
    const std::string name = command->get_name();
    if (name == word)
      return false;
    known += (known.empty() ? "" : ", ") + name;
    names.push_back(name);
  }
  const std::string nearest = tk::tkc::nearestOf(word, names);
  const std::string help = llvm::StringRef(word).ends_with(".tk")
                               ? "a command comes first: tkc run " + std::string(word)
                           : nearest.empty() ? "there are " + known
                                             : "did you mean '" + nearest + "'?";
  std::fprintf(stderr, "tkc: no command '%s'; %s\n", word, help.c_str());
  return true;
}

/// Words that no command takes, in the order given; CLI11 would list them backwards.
static int reportExtras(const CLI::App &app) {
  std::string words;
  for (const std::string &word : app.remaining(true))
    words += (words.empty() ? "" : " ") + word;
  std::string command, help;
  std::vector<std::string> known;
  for (const CLI::App *chosen : app.get_subcommands()) {
    command = " " + chosen->get_name();
    for (const CLI::Option *option : chosen->get_options())
      for (const std::string &name : option->get_lnames())
        known.push_back("--" + name);
  }
  for (const std::string &word : app.remaining(true))
    if (std::string nearest = tk::tkc::nearestOf(word.substr(0, word.find('=')), known);
        word.starts_with("--") && !nearest.empty() && help.empty())
      help = "; did you mean '" + nearest + "'?";
  std::fprintf(stderr, "tkc%s: not expected: %s%s; tkc%s --help lists the options\n",
               command.c_str(), words.c_str(), help.c_str(), command.c_str());
  return tk::tkc::WrongUsage;
}

/// A command line that lacks a word, or has a value that an option does not take.
static int reportUsage(const CLI::App &app, const CLI::ParseError &error) {
  std::string command;
  for (const CLI::App *chosen : app.get_subcommands())
    command = " " + chosen->get_name();
  const std::string what = command.empty() ? "expected a command" : error.what();
  std::fprintf(stderr, "tkc%s: %s; tkc%s --help lists the %s\n", command.c_str(), what.c_str(),
               command.c_str(), command.empty() ? "commands" : "options");
  return tk::tkc::WrongUsage;
}

/// `tkc help` and `tkc help COMMAND` are `tkc --help` and `tkc COMMAND --help`.
static std::vector<char *> withHelpAsFlag(int argc, char **argv) {
  static char flag[] = "--help";
  std::vector<char *> words(argv, argv + argc);
  if (argc > 1 && llvm::StringRef(argv[1]) == "help") {
    words.erase(words.begin() + 1);
    words.insert(words.begin() + std::min<size_t>(words.size(), 2), flag);
  }
  return words;
}

namespace {

/// CLI11 writes `TEXT ...` behind an option that takes one value each time it is given.
struct HelpFormatter : CLI::Formatter {
  std::string make_option_opts(const CLI::Option *option) const override {
    std::string text = CLI::Formatter::make_option_opts(option);
    static constexpr llvm::StringLiteral several = " ...";
    const size_t at = text.find(several);
    if (at != std::string::npos && !option->get_allow_extra_args())
      text.replace(at, several.size(), " (repeatable)");
    return text;
  }
};

} // namespace

static int runCommand(int argc, char **argv) {
  CLI::App app{"tkc compiles and runs tensor kernels written in index notation (.tk files).",
               "tkc"};
  app.footer("tkc COMMAND --help lists the options of a command. A first run, without a GPU:\n"
             "  tkc run norm.tk --target emu --dim R=64 --dim C=512 --check");
  app.formatter(std::make_shared<HelpFormatter>()); // of the commands, too
  app.require_subcommand(1);
  app.set_version_flag("--version", "tkc 0.1.0");
  int status = tk::tkc::Done;
  tk::tkc::addBuild(app, status);
  tk::tkc::addRun(app, status);
  tk::tkc::addBench(app, status);
  tk::tkc::addTune(app, status);
  tk::tkc::addInspect(app, status);
  tk::tkc::addExplain(app, status);
  tk::tkc::addView(app, status);
  tk::tkc::addMesh(app, status);
  tk::tkc::addFmt(app, status);
  tk::tkc::addCache(app, status);
  tk::tkc::addDoctor(app, status);
  tk::tkc::addLsp(app, status);
  tk::tkc::addTable(app, status);
  if (isUnknownCommand(app, argc > 1 ? argv[1] : nullptr))
    return tk::tkc::WrongUsage;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError &) {
    return reportExtras(app);
  } catch (const CLI::ParseError &error) {
    return error.get_exit_code() == 0 ? app.exit(error) : reportUsage(app, error);
  } catch (const tk::Error &error) {
    return tk::tkc::report(error, false);
  } catch (const std::bad_alloc &) {
    std::fputs("tkc: out of memory\n", stderr);
    return tk::tkc::MachineCannot;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "tkc: internal error: %s\n", error.what());
    return tk::tkc::InternalError;
  }
  return status;
}

int main(int argc, char **argv) {
  tk::tkc::holdStandardStreams();
  tk::tkc::endOnSignals();
  std::vector<char *> words = withHelpAsFlag(argc, argv);
  int status = runCommand(static_cast<int>(words.size()), words.data());
  if (tk::Status written = tk::tkc::flushOutput(); !written) {
    int failed = tk::tkc::report(written.error(), false);
    status = status == tk::tkc::Done ? failed : status;
  }
  return status;
}
