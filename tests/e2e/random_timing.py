#!/usr/bin/env python3
"""Runs whole-kernel cases on the emulator with asynchronous effects and threads in random order.

usage: random_timing.py TKC CASES [--target emu] [--sample N] [--seed N] [--launches N] [--jobs N]

Each case of CASES (tests/e2e/cases.txt) is one `tkc run --check --launches N`. Its launches are of one
bound kernel, with the timings random:SEED, random:SEED + 1 and so on. --sample N runs N of the cases,
spread over the file: successive seeds run others. 0, the default, runs all of them.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Refused on this architecture, as `needs=` says in the list of cases.
REFUSED = "error[TK0608]"


def read_cases(path):
    cases = []
    for line in path.read_text().splitlines():
        words = shlex.split(line, comments=False) if line and not line.startswith("#") else []
        needs = 0
        if words and (match := re.fullmatch(r"needs=sm_(\d+)", words[0])):
            needs = int(match[1])
            words = words[1:]
        if words:
            cases.append((needs, words))
    return cases


def choose(cases, sample, seed):
    """`sample` cases at equal distances; each seed begins at another place."""
    if sample == 0 or sample >= len(cases):
        return cases
    step = len(cases) / sample
    first = seed % max(1, round(step))
    return [cases[min(len(cases) - 1, int(first + n * step))] for n in range(sample)]


def run(options, needs, words):
    command = [options.tkc, "run", words[0], "--target", options.target, "--check",
               "--launches", str(options.launches), *words[1:]]
    environment = dict(os.environ, TK_EMU_MODE=f"random:{options.seed}")
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, text=True, errors="replace",
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=options.timeout)
    except subprocess.TimeoutExpired:
        return command, f"no answer within {options.timeout} seconds"
    match = re.fullmatch(r"emu-sm_(\d+)", options.target)
    if match and int(match[1]) < needs:
        return command, None if REFUSED in done.stdout else f"expected {REFUSED}, got:\n{done.stdout}"
    return command, None if done.returncode == 0 else f"exit status {done.returncode}:\n{done.stdout}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tkc")
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--target", default="emu")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--launches", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--timeout", type=int, default=600)
    options = parser.parse_args()
    cases = choose(read_cases(options.cases), options.sample, options.seed)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for command, what in pool.map(lambda case: run(options, *case), cases):
            if what is not None:
                failed += 1
                print(f"TK_EMU_MODE=random:{options.seed} {shlex.join(command)}\n{what}", flush=True)
    print(f"{len(cases)} cases of {options.launches} launches each on {options.target} "
          f"from random:{options.seed} on: {len(cases) - failed} right, {failed} wrong")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
