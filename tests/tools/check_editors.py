#!/usr/bin/env python3
"""Compares the words of the editors' grammars with those of the compiler's sources."""
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
read = lambda name: (ROOT / name).read_text()

reserved = set(re.findall(r'\{"(\w+)", TokenKind::\w+\}', read("frontend/Lexer.cpp")))
items = set(re.search(r'words\[\] = \{("kernel".*?)\};', read("frontend/ParseItem.cpp"), re.S)[1]
            .replace('"', "").replace(",", " ").split())
tree = read("frontend/AST.cpp")
enum = lambda name: set(re.search(rf"enum class {name} : std::uint8_t \{{(.*?)\}};",
                                  re.sub(r"//.*", "", read("frontend/AST.h") + read("frontend/AstExpr.h")), re.S)[1]
                        .replace(",", " ").lower().split())
types, functions = enum("DType"), set(re.findall(r'^TK_BUILTIN\(\w+, "(\w+)"', read("frontend/Builtins.def"), re.M))
reductions = {"log_softmax" if r == "logsoftmax" else r for r in enum("ReduceKind")}
assert len(reserved) == 9 and len(items) == 7 and len(types) == 12 and len(functions) > 30 and len(reductions) == 15
wanted = {"keyword": reserved | items, "type": types, "function": functions | reductions}

grammar = json.loads(read("editors/vscode/syntaxes/tk.tmLanguage.json"))
vim = read("editors/vim/syntax/tk.vim")
emacs = read("editors/emacs/tk-mode.el")
problems = []
for kind, words in wanted.items():
    has = {
        "VS Code": set().union(*(re.findall(r"\w+", p["match"].replace("\\b", " ")) for p in grammar["patterns"]
                                 if kind in p["name"])),
        "Vim": set(" ".join(re.findall(rf"^syntax keyword tk{kind.title()} (.*)$", vim, re.M)).split()),
        "Emacs": set(re.search(rf"\(defconst tk-{kind}s\s+'\((.*?)\)\)", emacs, re.S)[1].replace('"', "").split()),
    }
    for editor, known in has.items():
        problems += [f"{editor}: the {kind} {word} is missing" for word in sorted(words - known)]
for name in ("editors/vscode/package.json", "editors/vscode/language-configuration.json"):
    json.loads(read(name))
for problem in problems:
    print(problem)
raise SystemExit(bool(problems))
