#!/usr/bin/env python3
"""Compiles the examples to machine code, without a GPU.

1. Those of cases.txt, with their usual sizes, must not spill, nor may ptxas warn.
2. Each example must compile without sizes. The processor time of a cold compilation is printed:
   unlike the time on the clock, other work on the machine does not inflate it much.

Usage: check_compile.py TKC EXAMPLE.tk ...   Exit status 77: no NVRTC on this machine.
"""
import glob
import os
import re
import resource
import subprocess
import sys
import tempfile

TARGETS = ("sm_80", "sm_90a")


def build(tkc, path, target, dims, dump):
    command = [tkc, "build", path, "--target", target, "-o", os.path.join(dump, "code.cubin")]
    # Beside the kernel that is differentiated there is the gradient.
    with open(path) as file:
        for gradient in re.findall(r"^grad (\w+)", file.read(), re.MULTILINE):
            command += ["--kernel", gradient]
    for dim in dims:
        command += ["--dim", dim]
    environment = dict(os.environ, TK_CACHE="off", TK_DUMP=dump)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    logs = [open(log).read() for log in glob.glob(os.path.join(dump, "*.log"))]
    return done, seconds, "\n".join(logs)


def check(label, done, wrong, log):
    ok = done.returncode == 0 and not wrong
    print("ok  " if ok else "FAIL", label, wrong)
    if not ok:
        print(done.stderr, log)
    return ok


def main() -> int:
    tkc, *examples = sys.argv[1:]
    folder = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(os.path.dirname(folder)))
    good = True
    with open(os.path.join(folder, "cases.txt")) as file:
        cases = [line.split() for line in file if line.strip() and not line.startswith("#")]
    for only, path, *dims in cases:
        for target in TARGETS if only == "all" else (only,):
            with tempfile.TemporaryDirectory() as dump:
                done, _, log = build(tkc, os.path.join(root, path), target, dims, dump)
            if "cannot load NVRTC" in done.stderr:
                print("not run: no NVRTC")
                return 77
            spills = [int(n) for n in re.findall(r"(\d+) bytes spill", log)]
            warnings = [line for line in log.splitlines() if "warning" in line.lower()]
            wrong = ("no resource usage in the log" if not spills else
                     f"spills {max(spills)} bytes" if any(spills) else "; ".join(warnings))
            good &= check(f"{target} {path} {' '.join(dims)}", done, wrong, log)
    for path in examples:
        with tempfile.TemporaryDirectory() as dump:
            done, seconds, log = build(tkc, path, "sm_90a", [], dump)
        good &= check(f"{path} ({seconds:.2f} s)", done, "", log)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
