#!/usr/bin/env python3
"""Runs the programs and commands of a documentation page, in a folder of the page's own.

run_blocks.py TKC PAGE [--build DIR] [--library LIBTK]

  ```LANGUAGE file=NAME      the block is written to NAME; a block of tk without a name must be formatted
  ```console needs=A,B       each line that begins with `$ ` runs; the lines behind it are its output
  <!-- hidden ... -->        fenced blocks inside an HTML comment count too

In an output a line `…` stands for any lines, and `…` within a line for any characters. A command without output
lines may print anything. Every command must succeed; `$! ` begins one that must fail. A block whose needs this
machine lacks is left out with a message: gpu, nvrtc, nvdisasm, numpy, torch, install (a build folder to install from).
"""
import argparse
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```\s*$", re.M | re.S)


class Page:
    def __init__(self, options, folder):
        self.options, self.folder, self.failures, self.skipped, self.ran = options, folder, [], [], 0
        path = [str(options.tkc.parent), str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "")]
        self.environment = {**os.environ, "PATH": os.pathsep.join(path), "NO_COLOR": "1",
                            "TK_CACHE_DIR": str(folder / ".cache"), "PYTHONDONTWRITEBYTECODE": "1",
                            "PYTHONPATH": str(ROOT / "python"), "PYTHON": sys.executable}
        self.environment.pop("TK_TARGET", None)
        # A machine with the packages of scripts/setup alone has Ninja and Clang, and neither make nor c++.
        for tool, variable, value in (("make", "CMAKE_GENERATOR", "Ninja"), ("c++", "CXX", "clang++-22")):
            if not shutil.which(tool):
                self.environment.setdefault(variable, value)
        if options.library:
            self.environment["TK_LIBRARY"] = str(options.library)
        (folder / "examples").symlink_to(ROOT / "examples")

    def run(self, command):
        return subprocess.run(["sh", "-c", command], cwd=self.folder, env=self.environment, text=True, timeout=300,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")

    @functools.cache
    def has(self, need):
        if need in ("gpu", "nvrtc"):
            return not re.search(rf"^{need} +none", self.run("tkc doctor").stdout, re.M)
        if need in ("numpy", "torch"):
            found = bool(self.options.library) and self.run(f'"$PYTHON" -c "import {need}"').returncode == 0
            return found
        if need == "nvdisasm":
            return bool(shutil.which("nvdisasm") or list(pathlib.Path("/usr/local").glob("cuda*/bin/nvdisasm")))
        if need == "install":
            if not self.options.build:
                return False
            prefix = self.folder / ".prefix"
            result = self.run(f'cmake --install "{self.options.build}" --prefix "{prefix}"')
            self.environment["PREFIX"] = str(prefix)
            return result.returncode == 0
        raise SystemExit(f"{self.options.page}: unknown need '{need}'")

    def check_output(self, where, command, expected, actual):
        pattern = ""
        for line in expected:
            if line.strip() == "…":
                pattern += r"(?:[^\n]*\n)*?"
            else:
                pattern += ".*?".join(re.escape(part) for part in line.rstrip().split("…")) + r"[ \t]*\n"
        if not re.fullmatch(pattern, actual if actual.endswith("\n") else actual + "\n"):
            self.failures.append(f"{where}: {command}\nexpected:\n" + "\n".join(expected) + f"\ngot:\n{actual}")

    def console(self, line, body):
        lines, at = body.splitlines(), 0
        while at < len(lines):
            prompt = re.match(r"\$(!?) (.*)", lines[at])
            where = f"{self.options.page}:{line + at + 1}"
            if not prompt:
                raise SystemExit(f"{where}: a block of commands begins with '$ '")
            command = prompt[2]
            while command.endswith("\\"):
                at += 1
                command = command[:-1] + lines[at].strip()
            at += 1
            expected = []
            while at < len(lines) and not re.match(r"\$!? ", lines[at]):
                expected.append(lines[at])
                at += 1
            result = self.run(command)
            self.ran += 1
            if bool(prompt[1]) == (result.returncode == 0):
                self.failures.append(f"{where}: {command}\nexit {result.returncode}\n{result.stdout}")
            elif any(text.strip() for text in expected):
                while not expected[-1].strip():
                    expected.pop()
                self.check_output(where, command, expected, result.stdout)

    def block(self, line, language, info, body):
        words = dict(word.split("=", 1) for word in info.split() if "=" in word)
        missing = [need for need in words.get("needs", "").split(",") if need and not self.has(need)]
        where = f"{self.options.page}:{line}"
        if missing:
            self.skipped.append(f"{where}: left out, this machine lacks {', '.join(missing)}")
        elif "file" in words:
            target = self.folder / words["file"]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(body)
        elif language == "console":
            self.console(line, body)
        elif language == "tk":
            (self.folder / ".block.tk").write_text(body)
            result = self.run("tkc fmt --check .block.tk")
            if result.returncode:
                self.failures.append(f"{where}: the program is wrong or not formatted\n{result.stdout}")
            self.ran += 1
        elif language == "sh" or "run" in info:
            raise SystemExit(f"{where}: write a block that runs as ```console")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tkc", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("page")
    parser.add_argument("--build")
    parser.add_argument("--library")
    options = parser.parse_args()
    text = pathlib.Path(options.page).read_text()
    with tempfile.TemporaryDirectory(prefix="tk-docs-") as name:
        page = Page(options, pathlib.Path(name))
        for match in BLOCK.finditer(text):
            page.block(text.count("\n", 0, match.start()) + 1, *match.groups())
    print("\n".join(page.skipped))
    if page.failures:
        sys.exit("\n\n".join(page.failures))
    if not page.ran:
        sys.exit(77 if page.skipped else f"{options.page}: the page has nothing that runs")
    print(f"{options.page}: {page.ran} commands and programs, all right")


main()
