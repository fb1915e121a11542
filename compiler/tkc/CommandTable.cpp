//===- CommandTable.cpp - tkc completions, tkc man ------------------------===//
//
// Shell completions and manual pages are made from the same table as --help: the commands and the
// options that the commands have added.
//
//===----------------------------------------------------------------------===//
#include "compiler/tkc/Commands.h"

#include "llvm/ADT/StringRef.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>

namespace tk::tkc {
namespace {

/// An option as the shells and man want it.
struct TableOption {
  std::vector<std::string> names; ///< -o, --help
  std::string text;               ///< one line
  bool takesValue = false;
};

struct TableCommand {
  std::string name, text;
  std::vector<TableOption> options;
  std::string positionals; ///< as the usage has them
};

std::vector<TableCommand> tableOf(const CLI::App &app) {
  std::vector<TableCommand> table;
  for (const CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; })) {
    TableCommand &row =
        table.emplace_back(TableCommand{command->get_name(), command->get_description(), {}, ""});
    for (const CLI::Option *option : command->get_options()) {
      if (option->get_positional()) {
        row.positionals += " " + option->get_name(true);
        continue;
      }
      TableOption &made = row.options.emplace_back(
          TableOption{{}, option->get_description(), option->get_items_expected_max() > 0});
      for (const std::string &name : option->get_snames())
        made.names.push_back("-" + name);
      for (const std::string &name : option->get_lnames())
        made.names.push_back("--" + name);
    }
  }
  return table;
}

std::string joined(const std::vector<std::string> &words, const char *separator) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : separator) + word;
  return text;
}

std::string wordsOf(const TableCommand &command) {
  std::string words;
  for (const TableOption &option : command.options)
    words += (words.empty() ? "" : " ") + joined(option.names, " ");
  return words;
}

/// A text within the single quotes of a shell.
std::string quoted(llvm::StringRef text, llvm::StringRef quote) {
  std::string result;
  for (char c : text)
    result += c == '\'' ? quote.str() : std::string(1, c);
  return result;
}

std::string bashText(const std::vector<TableCommand> &table) {
  std::string names;
  for (const TableCommand &command : table)
    names += (names.empty() ? "" : " ") + command.name;
  std::string text = "# tkc completions bash\n_tkc() {\n"
                     "  local word=${COMP_WORDS[COMP_CWORD]} words=\n"
                     "  if ((COMP_CWORD == 1)); then\n    words='" +
                     names + " help --help --version'\n  else\n    case ${COMP_WORDS[1]} in\n";
  for (const TableCommand &command : table)
    text += "      " + command.name + ") words='" + wordsOf(command) + "' ;;\n";
  return text + "      help) words='" + names +
         "' ;;\n    esac\n  fi\n"
         "  if ((COMP_CWORD == 1)) || [[ ${COMP_WORDS[1]} == help || $word == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "  else\n    COMPREPLY=($(compgen -f -- \"$word\"))\n  fi\n}\n"
         "complete -o filenames -F _tkc tkc\n";
}

std::string zshText(const std::vector<TableCommand> &table) {
  // Brackets end a description, and colons the parts of one.
  auto described = [](llvm::StringRef text) {
    std::string result;
    for (char c : quoted(text, "'\\''"))
      result += c == '[' || c == ']' || c == ':' ? std::string("\\") + c : std::string(1, c);
    return result;
  };
  std::string commands, cases;
  for (const TableCommand &command : table) {
    commands += "    '" + command.name + ":" + described(command.text) + "'\n";
    cases += "    " + command.name + ") _arguments";
    for (const TableOption &option : command.options)
      for (const std::string &name : option.names)
        cases += " \\\n      '*" + name + (option.takesValue ? "=" : "") + "[" +
                 described(option.text) + "]" + (option.takesValue ? ":value:_files" : "") + "'";
    cases += " \\\n      '*:file:_files' ;;\n";
  }
  return "#compdef tkc\n# tkc completions zsh\n_tkc() {\n  local -a commands=(\n" + commands +
         "    'help:Prints the options of a command.'\n  )\n"
         "  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n"
         "  local command=$words[2]\n  if [[ $command == help ]]; then\n"
         "    _describe command commands\n    return\n  fi\n"
         "  shift words\n  ((CURRENT--))\n  case $command in\n" +
         cases + "  esac\n}\ncompdef _tkc tkc\n";
}

std::string fishText(const std::vector<TableCommand> &table) {
  std::string text = "# tkc completions fish\n";
  for (const TableCommand &command : table)
    text += "complete -c tkc -n __fish_use_subcommand -f -a " + command.name + " -d '" +
            quoted(command.text, "\\'") + "'\n";
  text += "complete -c tkc -n __fish_use_subcommand -f -a help -d 'Prints the options of a "
          "command.'\n";
  for (const TableCommand &command : table)
    for (const TableOption &option : command.options) {
      text += "complete -c tkc -n '__fish_seen_subcommand_from " + command.name + "'";
      for (const std::string &name : option.names)
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      text += (option.takesValue ? " -r" : "");
      text += " -d '" + quoted(option.text, "\\'") + "'\n";
    }
  return text;
}

/// A line of a manual page: hyphens that are typed, and no control line.
std::string manText(llvm::StringRef text) {
  std::string result;
  for (char c : text) {
    if (c == '\\')
      result += "\\e";
    else
      result += c == '-' ? "\\-" : std::string(1, c);
  }
  return llvm::StringRef(result).starts_with(".") || llvm::StringRef(result).starts_with("'")
             ? "\\&" + result
             : result;
}

std::string manPage(const CLI::App &app, const std::vector<TableCommand> &table,
                    const TableCommand *command) {
  const std::string title = command ? "tkc-" + command->name : "tkc";
  std::string text = ".TH " + title + " 1 \"\" \"tk 0.1.0\"\n.SH NAME\n" + manText(title) +
                     " \\- " + manText(command ? command->text : app.get_description()) +
                     "\n.SH SYNOPSIS\n.B tkc ";
  if (command) {
    text += command->name + "\n[OPTIONS]" + manText(command->positionals) + "\n.SH OPTIONS\n";
    for (const TableOption &option : command->options)
      text += ".TP\n.B " + manText(joined(option.names, ", ")) +
              (option.takesValue ? " VALUE" : "") + "\n" + manText(option.text) + "\n";
  } else {
    text += "COMMAND\n[OPTIONS]\n.SH COMMANDS\n";
    for (const TableCommand &row : table)
      text += ".TP\n.B " + row.name + "\n" + manText(row.text) + "\n";
  }
  text += ".SH EXIT STATUS\n";
  for (auto [code, meaning] : exitCodes())
    text += ".TP\n.B " + std::to_string(code) + "\n" + manText(meaning) + "\n";
  return text;
}

} // namespace

void addTable(CLI::App &app, int &status) {
  CLI::App *completions =
      app.add_subcommand("completions", "Prints completions for a shell: bash, zsh or fish.");
  auto shell = std::make_shared<std::string>();
  completions->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completions->callback([shell, &app, &status] {
    const std::vector<TableCommand> table = tableOf(app);
    const std::string text = *shell == "bash"  ? bashText(table)
                             : *shell == "zsh" ? zshText(table)
                                               : fishText(table);
    std::fputs(text.c_str(), stdout);
    status = Done;
  });
  CLI::App *man = app.add_subcommand("man", "Prints the manual page of tkc or of a command.");
  auto name = std::make_shared<std::string>();
  man->add_option("COMMAND", *name, "The command");
  man->callback([name, &app, &status] {
    const std::vector<TableCommand> table = tableOf(app);
    const TableCommand *command = nullptr;
    for (const TableCommand &row : table)
      command = row.name == *name ? &row : command;
    if (!name->empty() && !command) {
      std::fprintf(stderr, "tkc man: no command '%s'; tkc --help lists the commands\n",
                   name->c_str());
      status = WrongUsage;
      return;
    }
    std::fputs(manPage(app, table, command).c_str(), stdout);
    status = Done;
  });
}

} // namespace tk::tkc
