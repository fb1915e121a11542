//===- Main.cpp - tkc, the command line of tk -----------------------------===//
#include "compiler/tkc/Commands.h"
#include "compiler/tkc/Process.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>

/// The first word, if it is no command: CLI11 would say that there is none.
static bool isUnknownCommand(CLI::App &app, const char *word) {
  if (!word || *word == '-')
    return false;
  std::string known;
  for (const CLI::App *command : app.get_subcommands({})) {
    if (command->get_name() == word)
      return false;
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  std::fprintf(stderr, "tkc: no command '%s'; there are %s\n", word, known.c_str());
  return true;
}

static int runCommand(int argc, char **argv) {
  CLI::App app{"tkc compiles and runs tensor kernels written in index notation (.tk files)."};
  app.require_subcommand(1);
  app.set_version_flag("--version", "tkc 0.1.0");
  int status = tk::tkc::Done;
  tk::tkc::addBuild(app, status);
  tk::tkc::addRun(app, status);
  tk::tkc::addBench(app, status);
  tk::tkc::addInspect(app, status);
  tk::tkc::addFmt(app, status);
  tk::tkc::addCache(app, status);
  tk::tkc::addDoctor(app, status);
  if (isUnknownCommand(app, argc > 1 ? argv[1] : nullptr))
    return tk::tkc::WrongUsage;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? tk::tkc::Done : tk::tkc::WrongUsage;
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
  int status = runCommand(argc, argv);
  if (tk::Status written = tk::tkc::flushOutput(); !written) {
    int failed = tk::tkc::report(written.error(), false);
    status = status == tk::tkc::Done ? failed : status;
  }
  return status;
}
