//===- Main.cpp - tkc, the command line of tk -----------------------------===//
#include "compiler/tkc/Commands.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>

int main(int argc, char **argv) {
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
