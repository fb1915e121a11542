"""Runs one kernel on one target with given arrays, and compares results bit for bit.

A test in this folder is named *_test.py, is called as `*_test.py TKC TARGET`, and defines `check(run)`:

    from exact import main, same

    def check(run):
        y = run("tests/e2e/programs/scale.tk", {"x": numpy.ones(4, numpy.float32)})["y"]
        same(y, [2, 2, 2, 2], "a product by two")

    main(check)

CMake runs each test on `cpu`, `emu` and `emu-sm_80`.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
except ImportError:
    sys.exit(77)  # skipped

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Runner:
    """Calls `tkc run` on one target."""

    def __init__(self, tkc, target):
        self.tkc, self.target = pathlib.Path(tkc).resolve(), target
        self.wrong = []

    def __call__(self, program, inputs=None, results=(), dims=None, args=None, kernel=None, check=False,
                 options=(), environment=None):
        """Returns the results by name.

        program: a path below the root of the tree, or the text of a program.
        inputs: arrays by parameter name. results: names of the results to return, or () for `y`.
        dims, args: sizes and scalars by name. check: also compare with the f64 reference.
        Raises RuntimeError with the tool's message if the status is not 0.
        """
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            if "\n" in program or "{" in program:
                path = folder / "program.tk"
                path.write_text(program if program.endswith("\n") else program + "\n")
            else:
                path = ROOT / program
            words = [self.tkc, "run", path, "--target", self.target, *options]
            if kernel:
                words += ["--kernel", kernel]
            if check:
                words += ["--check"]
            for parameter, value in (inputs or {}).items():
                numpy.save(folder / f"in-{parameter}.npy", value)
                words += ["--in", f"{parameter}={folder / f'in-{parameter}.npy'}"]
            for flag, values in (("--dim", dims), ("--arg", args)):
                for key, value in (values or {}).items():
                    words += [flag, f"{key}={value}"]
            wanted = tuple(results) or ("y",)
            for result in wanted:
                words += ["--out", f"{result}={folder / f'out-{result}.npy'}"]
            done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False,
                                  env=os.environ | (environment or {}))
            if done.returncode != 0:
                raise RuntimeError(f"status {done.returncode}: {done.stderr[-2000:]}")
            return {result: numpy.load(folder / f"out-{result}.npy") for result in wanted}


FAILURES = []


def same(found, wanted, what):
    """Compares bit for bit; two NaN of any payload are the same."""
    found = numpy.asarray(found)
    wanted = numpy.asarray(wanted, dtype=found.dtype)
    if found.shape != wanted.shape:
        FAILURES.append(f"{what}: shape {found.shape} instead of {wanted.shape}")
        return
    differs = found != wanted
    if found.dtype.kind == "f":
        differs &= ~(numpy.isnan(found) & numpy.isnan(wanted))
        differs |= numpy.signbit(found) != numpy.signbit(wanted)
        differs &= ~(numpy.isnan(found) & numpy.isnan(wanted))
    if differs.any():
        place = tuple(int(i) for i in numpy.argwhere(differs)[0]) if found.ndim else ()
        FAILURES.append(f"{what}: {int(differs.sum())} of {found.size} elements differ, the first at {place}: "
                        f"{found[place]!r} instead of {wanted[place]!r}")


def holds(condition, what):
    """Notes a failure unless `condition` is true."""
    if not condition:
        FAILURES.append(what)


def main(check):
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} TKC TARGET")
    check(Runner(sys.argv[1], sys.argv[2]))
    if FAILURES:
        sys.exit("\n".join(FAILURES))
