"""Plants the mutants of *.toml in a copy of the tree."""
import pathlib
import shutil
import subprocess
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WORK = ROOT / "build-mutants"
OWN = {"build", "emulator", "results.json"}  # what is in WORK besides the tree

# What every file with a mutant includes.
HEADER = """#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
namespace tk {
/// Adds a mutant to the file of those whose code was reached.
inline void reachMutant(const char *file, const char *name) {
  static std::mutex mutex;
  static std::set<std::string> seen;
  std::lock_guard lock(mutex);
  if (!seen.insert(name).second)
    return;
  if (std::FILE *out = std::fopen(file, "a")) {
    std::fprintf(out, "%s\\n", name);
    std::fclose(out);
  }
}
/// Is this the mutant that the environment asks for?
inline bool mutated(const char *name) {
  static const char *const active = std::getenv("TK_MUTANT");
  static const char *const reached = std::getenv("TK_MUTANTS_REACHED");
  if (reached)
    reachMutant(reached, name);
  return active && std::strcmp(active, name) == 0;
}
} // namespace tk
"""

# lit gives tests an environment of its own.
LIT_LINES = """
config.environment.update({k: v for k, v in os.environ.items() if k.startswith("TK_MUTANT")})
"""


def read_mutants():
    mutants = []
    for path in sorted(pathlib.Path(__file__).parent.glob("*.toml")):
        table = tomllib.loads(path.read_text())
        tests = table.pop("tests", [])
        for name, mutant in table.items():
            mutants.append({"tests": tests} | mutant | {"name": name, "group": path.stem})
    return mutants


def edited(text, mutants):
    """`text` with all mutants of one file planted; the second value says which do not apply."""
    edits, stale = [], []
    for mutant in mutants:
        at = text.find(mutant["from"])
        if at < 0 or text.find(mutant["from"], at + 1) >= 0:
            stale.append((mutant["name"], "its text is gone" if at < 0 else "its text is not unique"))
            continue
        to = mutant["to"].replace("MUTANT", f'tk::mutated("{mutant["name"]}")')
        edits.append((at, at + len(mutant["from"]), to, mutant["name"]))
    edits.sort()
    for (_, end, _, first), (begin, _, _, second) in zip(edits, edits[1:]):
        if begin < end:
            stale.append((second, f"it overlaps {first}"))
    for begin, end, to, _ in reversed(edits):
        text = text[:begin] + to + text[end:]
    return text, stale


def plant(mutants):
    """The mutated files by path, and the mutants that do not apply."""
    files, stale = {}, []
    for path in sorted({mutant["file"] for mutant in mutants}):
        of_file = [mutant for mutant in mutants if mutant["file"] == path]
        if not (ROOT / path).exists():
            stale += [(mutant["name"], f"there is no {path}") for mutant in of_file]
            continue
        text, wrong = edited((ROOT / path).read_text(), of_file)
        stale += wrong
        files[path] = f'#include "mutant.h"\n#line 1\n{text}'
    files["tests/lit.cfg.py"] = (ROOT / "tests/lit.cfg.py").read_text() + LIT_LINES
    return files, stale


def copy_tree(files):
    """Brings WORK up to date, touching only what changed, so that builds are incremental."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    wanted = {path for path in listed if path and (ROOT / path).is_file()}
    for old in [p for p in WORK.rglob("*") if p.is_file()]:
        path = str(old.relative_to(WORK))
        if path.split("/")[0] not in OWN and path not in wanted | {"mutant.h"}:
            old.unlink()
    for path in wanted | {"mutant.h"}:
        if path == "mutant.h":
            data = HEADER.encode()
        else:
            data = files[path].encode() if path in files else (ROOT / path).read_bytes()
        target = WORK / path
        if target.exists() and target.read_bytes() == data:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if path in files or path == "mutant.h":
            target.write_bytes(data)
        else:
            shutil.copy2(ROOT / path, target)
