"""What the tests of tkc's commands have in common: commands that must succeed, and what is expected of them."""
import pathlib
import subprocess
import sys

TKC = pathlib.Path(sys.argv[1]).resolve()


def run(*arguments):
    return subprocess.run([TKC, *map(str, arguments)], capture_output=True, text=True, check=False)


def tkc(*arguments):
    done = run(*arguments)
    if done.returncode != 0:
        sys.exit(f"tkc {' '.join(map(str, arguments))}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def expect(condition, what):
    if not condition:
        sys.exit(f"not so: {what}")
