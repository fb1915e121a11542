//===- LspCommand.cpp - tkc lsp: the language server ----------------------===//
#include "compiler/tkc/Commands.h"
#include "compiler/tkc/lsp/Server.h"

#include <CLI/CLI.hpp>

namespace tk::tkc {

void addLsp(CLI::App &app, int &status) {
  CLI::App *command = app.add_subcommand(
      "lsp", "Serves an editor: the language server protocol on standard input and output.");
  command->callback([&status] { status = lsp::serve(); });
}

} // namespace tk::tkc
