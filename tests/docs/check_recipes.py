#!/usr/bin/env python3
"""Checks the lists of files in docs/how-to against real examples.

A page says what its list is checked against, in comments:

  <!-- files that contain REGEX in FOLDERS -->   the table below `## Files` lists exactly these (and others that
                                                 the regular expression does not find, which must exist)
  <!-- every pass -->                            each pass of passes/*/*Passes.td has all of the files that the page lists

A row with a third column in code says which text the file contains.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOW_TO = ROOT / "docs/how-to"
TEXT = {".cpp", ".h", ".cuh", ".td", ".def", ".tk", ".mlir", ".py", ".md", ".inc", ".txt"}


def listed(page, text):
    section = re.search(r"^## Files\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if not section:
        return None
    files = re.findall(r"^\| `([^`]+)`", section[1], re.M)
    if not files:
        sys.exit(f"{page.name}: the section 'Files' has no table")
    return files


def containing(regex, folders):
    found = set()
    for folder in folders:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in TEXT and re.search(regex, path.read_text(errors="replace"), re.I):
                found.add(str(path.relative_to(ROOT)))
    return found


def check_passes():
    """Each pass has a definition, a row in the table, a source file, and a test that names it."""
    problems = []
    table = "\n".join(p.read_text() for folder in ("compiler", "passes") for p in (ROOT / folder).glob("*.cpp"))
    sources = {p: p.read_text() for p in (ROOT / "passes").rglob("*.cpp")}
    lists = "\n".join(p.read_text() for p in (ROOT / "passes").rglob("CMakeLists.txt"))
    tests = "\n".join(p.read_text(errors="replace") for p in (ROOT / "tests").rglob("*")
                      if p.suffix in {".mlir", ".tk", ".txt", ".cpp", ".toml", ".py"})
    stems = {p.stem for p in (ROOT / "tests/passes").rglob("*")}
    definitions = "\n".join(p.read_text() for p in (ROOT / "passes").glob("*/*Passes.td"))
    names = re.findall(r'def (\w+) : Pass<"([\w-]+)"', definitions)
    # Those of a mesh run before the table's passes see the local kernels.
    apart = set(re.findall(r'Pass<"([\w-]+)"', (ROOT / "passes/mesh/MeshPasses.td").read_text()))
    for name, flag in names:
        defining = [p for p, t in sources.items() if f"GEN_PASS_DEF_{name.upper()}\n" in t]
        if len(defining) != 1:
            problems.append(f"{flag}: {len(defining)} files define it")
        elif defining[0].name not in lists:
            problems.append(f"{flag}: no CMakeLists.txt of passes/ lists {defining[0].name}")
        if f'"{flag}"' not in table and flag not in apart:
            problems.append(f"{flag}: not in the table of passes")
        if flag not in tests and flag.removeprefix("tk-") not in stems:
            problems.append(f"{flag}: no test names it")
    return problems if names else ["passes/*/*Passes.td: no pass found"]


def check(page):
    text, problems = page.read_text(), []
    files = listed(page, text)
    for name in files or ():
        if not any(mark in name for mark in "<*…") and not (ROOT / name).exists():
            problems.append(f"{page.name}: no file {name}")
    for regex, folders in re.findall(r"<!-- files that contain (\S+) in ([^>]+?) -->", text):
        found = containing(regex, folders.split())
        if not found:
            problems.append(f"{page.name}: nothing contains {regex}")
        for name in sorted(found - set(files or ())):
            problems.append(f"{page.name}: {name} contains {regex} and is not listed")
        for name in files or ():
            if name.split("/")[0] in folders and name not in found and (ROOT / name).is_file() \
                    and pathlib.Path(name).suffix in TEXT and "generated" not in text_of_row(text, name):
                problems.append(f"{page.name}: {name} is listed and does not contain {regex}")
    for name, line in re.findall(r"^\| `([^`]+)` \|[^|\n]*\| `(.+)` \|$", text, re.M):
        if (ROOT / name).exists() and line not in (ROOT / name).read_text():
            problems.append(f"{page.name}: {name} does not contain the line {line}")
    if "<!-- every pass -->" in text:
        problems += [f"{page.name}: {problem}" for problem in check_passes()]
    return problems


def text_of_row(text, name):
    return re.search(rf"^\| `{re.escape(name)}`.*$", text, re.M)[0]


def main():
    pages = sorted(HOW_TO.glob("*.md"))
    problems = [problem for page in pages for problem in check(page)]
    if not pages:
        problems = ["docs/how-to has no pages"]
    print("\n".join(problems) or "the lists of files are those of the examples")
    sys.exit(bool(problems))


main()
