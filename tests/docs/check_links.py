#!/usr/bin/env python3
"""Checks every Markdown page: relative links name a file of the repository, anchors name a heading of
their page, paths in code on pages of docs/ and pages that comments name exist, and every result in lab/results has a
reference from a page or from a comment."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.M | re.S)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
# A path of the repository in code, without placeholders.
PATH = re.compile(r"`((?:runtime|dialects|frontend|passes|compiler|python|tests|scripts|bench|examples|docs|lab|cmake)/"
                  r"[\w./-]+)`")
# A page that a comment in the code names.
COMMENT = re.compile(r"(?<![\w/.])((?:docs|lab)/[\w./-]+\.md)\b")
RESULT = re.compile(r"\d{4}-\d\d-\d\d-(?:cpu|[a-z]+\d+)(?:-[\w-]+)?\.md")


def files():
    try:
        names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                               capture_output=True, text=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*")
                 if p.is_file() and not p.parts[len(ROOT.parts)].startswith((".", "build"))]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def anchors(text):
    """The anchors that GitHub gives the headings of a page."""
    found, count = set(), {}
    for title in re.findall(r"^#{1,6}\s+(.*?)\s*#*$", FENCE.sub("", text), re.M):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
        name = re.sub(r"[^\w\- ]", "", title).replace(" ", "-")
        number = count[name] = count.get(name, -1) + 1
        found.add(f"{name}-{number}" if number else name)
    return found


def check():
    problems, everything = [], files()
    pages = {p: p.read_text() for p in everything if p.suffix == ".md"}
    for page, text in pages.items():
        for target in LINK.findall(CODE.sub("", FENCE.sub("", text))):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            other = (page.parent / name).resolve() if name else page
            where = f"{page.relative_to(ROOT)}: ({target})"
            if not other.exists():
                problems.append(f"{where}: no such file")
            elif anchor and other in pages and anchor not in anchors(pages[other]):
                problems.append(f"{where}: the page has no such heading")
        if page.is_relative_to(ROOT / "docs") or page == ROOT / "README.md":
            for name in PATH.findall(FENCE.sub("", text)):
                if not (ROOT / name).exists():
                    problems.append(f"{page.relative_to(ROOT)}: no file {name}")
    named = set()
    for path in everything:
        if path.suffix in (".md", ".cpp", ".h", ".py", ".td", ".inc") and path.stat().st_size < 1 << 20:
            text = path.read_text(errors="replace")
            named |= {n for n in RESULT.findall(text) if n != path.name}
            if path.suffix != ".md":
                problems += [f"{path.relative_to(ROOT)}: no file {name}" for name in COMMENT.findall(text)
                             if not (ROOT / name).exists()]
    for path in everything:
        if path.parent == ROOT / "lab/results" and path.name not in named:
            problems.append(f"{path.relative_to(ROOT)}: no page and no comment refers to this result")
    return problems


problems = check()
print("\n".join(problems) or "all links lead somewhere")
sys.exit(bool(problems))
