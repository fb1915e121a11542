#!/usr/bin/env python3
"""Compares the reference pages with the sources and with `tkc COMMAND --help`.

check_reference.py TKC
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs/reference"
COMMANDS = ("build", "run", "bench", "tune", "inspect", "explain", "view", "mesh", "fmt", "cache", "doctor", "lsp",
            "completions", "man")
problems = []


def expect(condition, message):
    if not condition:
        problems.append(message)


def read(name):
    return (PAGES / name).read_text()


def codes(text):
    """Everything that stands in code on a page."""
    return "\n".join(re.findall(r"`([^`\n]+)`", text))


def section(text, title):
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    return found[1] if found else ""


def help_of(tkc, command):
    text = subprocess.run([tkc, command, "--help"], capture_output=True, text=True, check=True).stdout
    return text, set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*(?=[ ,\n]|$)", "\n".join(
        re.findall(r"^  (-\S+)", text, re.M)).replace(",", "\n")))


def check_tkc(tkc):
    page = read("tkc.md")
    shared = section(page, "Options of several commands")
    rows = re.findall(r"^\| (`.*?`[^|]*) \| ([^|]+) \|", shared, re.M)
    everything = set()
    for command in COMMANDS:
        text, flags = help_of(tkc, command)
        everything |= flags
        own = section(page, command) or section(page, "fmt, cache") + section(page, "completions, man")
        common = "\n".join(names for names, commands in rows
                           if command in re.split(r",\s*", commands.strip()) or commands.strip() == "all")
        for flag in flags:
            documented = re.search(rf"(?<![\w-]){flag}(?![\w-])", codes(own) + "\n" + codes(common))
            expect(documented, f"tkc.md: {command} {flag} is not documented")
        expect(re.search(rf"^\| `tkc {command}", page, re.M), f"tkc.md: no row for {command}")
        for stages in re.findall(r"--emit STAGE\s+(.*?)or all", text, re.S):
            for name in re.findall(r"\w+", re.sub(r"\(.*?\)", "", stages)):
                expect(f"`{name}`" in section(page, "Stages"), f"tkc.md: no stage {name}")
    for flag in re.findall(r"(?<![\w-])--[a-z][\w-]*", codes(page)):
        expect(flag in everything or flag == "--version", f"tkc.md: {flag} is no option of tkc")
    enum = re.search(r"enum ExitCode \{(.*?)\};", (ROOT / "compiler/tkc/Commands.h").read_text(), re.S)[1]
    for number in re.findall(r"= (\d+)", enum):
        expect(f"| {number} |" in section(page, "Exit codes"), f"tkc.md: no exit code {number}")


def check_groups():
    page = read("tkc.md")
    if (PAGES / "pipeline.md").exists():  # generated, with the group of each row
        expect("](pipeline.md" in page, "tkc.md: no link to pipeline.md, which lists the groups of passes")
        return
    groups = set(re.findall(r'Stage::\w+, "([\w-]+)"', (ROOT / "compiler/Pipeline.cpp").read_text()))
    for group in groups:
        expect(f"`{group}`" in page, f"tkc.md: no group of passes {group}")


def check_environment():
    documented = set(re.findall(r"`([A-Z_]*[A-Z])`", section(read("tkc.md"), "Environment variables")))
    used = set()
    for folder in ("runtime", "compiler", "python"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix not in (".cpp", ".h", ".py"):
                continue
            text = path.read_text()
            used |= set(re.findall(r'getenv\("([A-Z_]+)"', text))
            used |= set(re.findall(r'environ\.get\("([A-Z_]+)"', text))
            used |= set(re.findall(r'EnvVar::\w+,\s*"([A-Z_]+)"', text))
            for loop in re.findall(r"const char \*variable :\s*\{([^}]*)\}", text):
                used |= set(re.findall(r'"([A-Z_]+)"', loop))
    expect(len(used) > 10, "no environment variables were found in the sources")
    for name in sorted(used - documented):
        problems.append(f"tkc.md: the environment variable {name} is not documented")
    for name in sorted(documented - used):
        problems.append(f"tkc.md: nothing reads the environment variable {name}")


def check_cpp():
    page = read("cpp.md")
    known = codes(page)
    for path in sorted((ROOT / "runtime/include/tk").glob("*.h")):
        if path.name in ("tk_c.h", "cpu_abi.h"):
            continue
        text = re.sub(r"namespace detail \{.*?\n\} // namespace detail\n", "", path.read_text(), flags=re.S)
        text = re.sub(r"//.*", "", text)
        for name in re.findall(r"^(?:class|struct|enum class|using)\s+(?:\[\[nodiscard\]\]\s+)?(\w+)[^;]*[{=]", text, re.M):
            if name not in ("DimExpr", "ScalarExpr"):
                expect(re.search(rf"\b{name}\b", known), f"cpp.md: {path.name} has {name}, which is not described")
        for body in re.findall(r"^class (?:\[\[nodiscard\]\] )?(?:Module|Kernel|BoundKernel) \{(.*?)^\};", text, re.M | re.S):
            public = body.split("private:")[0]
            for name in re.findall(r"^  (?:[\w:<>&*]+ )+&?\*?(\w+)\(", public, re.M):
                if name not in ("Module", "Kernel", "BoundKernel", "operator", "explicit"):
                    expect(re.search(rf"\b{name}\b", known), f"cpp.md: {path.name}: the member {name} is not described")
    options = re.search(r"struct CompileOptions \{(.*?)\n\};", (ROOT / "runtime/include/tk/backend.h").read_text(), re.S)[1]
    for name in re.findall(r"^  [\w:<>, ]+ (\w+)(?: = [^;]*)?;", re.sub(r"//.*", "", options), re.M):
        expect(re.search(rf"`{name}`", section(page, "Compile")), f"cpp.md: CompileOptions::{name} is not described")
    enum = re.search(r"enum class ErrorCode.*?\{(.*?)\};", (ROOT / "runtime/include/tk/error.h").read_text(), re.S)[1]
    for name in re.findall(r"^\s*(\w+),", re.sub(r"//.*", "", enum), re.M):
        expect(f"`{name}`" in page, f"cpp.md: no error code {name}")


def check_c():
    header = (ROOT / "runtime/include/tk/tk_c.h").read_text()
    known = codes(read("c.md"))
    names = set(re.findall(r"TK_API [^;]*?\b(tk_\w+)\(", header))
    status = re.search(r"enum tk_status \{(.*?)\}", header, re.S)[1]
    for name in sorted(names | set(re.findall(r"(TK_\w+) =", status))):
        expect(re.search(rf"\b{name}\b", known), f"c.md: {name} is not described")
    for name in re.findall(r"\btk_(?!status\b|value\b|c\b)\w+", known):
        expect(name in header, f"c.md: there is no {name}")


def check_python():
    known = codes(read("python.md"))
    exported = re.search(r"__all__ = \[(.*?)\]", (ROOT / "python/tk/__init__.py").read_text(), re.S)[1]
    for name in re.findall(r'"(\w+)"', exported):
        expect(re.search(rf"\b{name}\b", known), f"python.md: {name} is not described")
    module = (ROOT / "python/tk/_module.py").read_text()
    for body in re.findall(r"^class (?:Module|Kernel):(.*?)(?=^def |^class |\Z)", module, re.M | re.S):
        for name in re.findall(r"^    def ([a-z]\w*)\(", body, re.M):
            expect(re.search(rf"\b{name}\b", known), f"python.md: the member {name} is not described")


def check_language():
    known = codes(read("language.md"))
    for name in re.findall(r'^TK_BUILTIN\(\w+, "(\w+)"', (ROOT / "frontend/Builtins.def").read_text(), re.M):
        expect(re.search(rf"\b{name}\b", known), f"language.md: the function {name} is not described")
    for name in re.findall(r'^fn (\w+)\(', (ROOT / "frontend/std.tk").read_text(), re.M):
        expect(re.search(rf"\b{name}\b", read("std.md")), f"std.md: {name} is not described")


TOOLS = {"tk-opt", "tk-translate", "tk-emit-cuda", "tk-fuzz", "tk-fuzz-frontend", "tk-fuzz-runtime"}


def check_names():
    """Passes and patterns that pages name exist."""
    sources = "\n".join((ROOT / name).read_text() for name in (
        *(str(p.relative_to(ROOT)) for p in (ROOT / "passes").rglob("*Passes.td")), "passes/Patterns.cpp", "compiler/PipelineTable.cpp"))
    known = set(re.findall(r'"(tk-[a-z0-9-]+)"', sources)) | TOOLS
    patterns = set(re.findall(r"&nbsp;`:([a-z0-9-]+)`", read("pipeline.md")))
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for name, pattern in re.findall(r"`(tk-[a-z0-9-]+[a-z0-9])(?::([a-z0-9-]+))?`", page.read_text()):
            expect(name in known, f"{page.name}: there is no pass {name}")
            expect(not pattern or pattern in patterns, f"{page.name}: there is no pattern {name}:{pattern}")


tkc = sys.argv[1]
check_tkc(tkc)
check_groups()
check_environment()
check_cpp()
check_c()
check_python()
check_language()
check_names()
print("\n".join(problems) or "the reference describes what there is")
sys.exit(bool(problems))
