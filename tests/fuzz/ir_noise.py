#!/usr/bin/env python3
"""Damaged IR text into tk-opt: it must answer with an error or a module, and in time.

ir_noise.py TK_OPT TESTS_FOLDER [--seed N] [--count N] [--time-limit S] [--jobs N] [--out FOLDER]
            [--answer-within S] [--memory GIB]

The texts are the .mlir tests, each with the passes of its RUN lines or with none; words and
characters are dropped, repeated, exchanged with others of the corpus, or overwritten. Trial n of a
run has the seed N + n. A text that ends tk-opt by a signal, or not within 20 s, is cut down line by
line and written to FOLDER. --memory 0 sets no limit: sanitizers reserve terabytes.
"""
import argparse
import concurrent.futures
import pathlib
import random
import re
import resource
import subprocess
import sys
import time

WORD = re.compile(r"[\w.%@#!$-]+|\S")
NUMBERS = ["0", "1", "-1", "3", "64", "2147483648", "9223372036854775807", "99999999999999999999"]


def corpus(folder):
    """(text, passes) of every test, one a section of its file."""
    samples = []
    for path in sorted(folder.rglob("*.mlir")):
        text = path.read_text()
        runs = re.findall(r"RUN: tk-opt (.*)", text)
        passes = [re.findall(r"(--tk-\S+|--canonicalize|--cse)", run) for run in runs]
        body = re.sub(r"^\s*//.*\n", "", text.replace("// -----", "\0"), flags=re.M)
        for section in body.split("\0"):
            if section.strip():
                samples.append((section, passes or [[]]))
    return samples


def damaged(text, words, rng):
    for _ in range(rng.randint(1, 4)):
        places = [m.span() for m in WORD.finditer(text)]
        if not places:
            return text
        begin, end = rng.choice(places)
        way = rng.randrange(7)
        if way == 0:
            new = ""
        elif way == 1:
            new = rng.choice(words)
        elif way == 2:
            new = text[begin:end] + " " + rng.choice(words)
        elif way == 3:
            new = rng.choice(NUMBERS)
        elif way == 4:
            new = chr(rng.randrange(1, 256))
        elif way == 5:  # a whole line twice, or not at all
            lines = text.splitlines(keepends=True)
            at = rng.randrange(len(lines))
            lines[at] = lines[at] * rng.choice([0, 2])
            text = "".join(lines)
            continue
        else:
            other = rng.choice(places)
            new = text[other[0]:other[1]]
        text = text[:begin] + new + text[end:]
    return text


def fault(options, passes, text):
    """What is wrong with the tool's answer, or None."""
    def limits():
        memory = options.memory << 30 or resource.RLIM_INFINITY
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    try:
        run = subprocess.run([options.tool, *passes, "-", "-o", "/dev/null"], input=text.encode("utf-8", "replace"),
                             capture_output=True, timeout=options.answer_within, preexec_fn=limits)
    except subprocess.TimeoutExpired:
        return f"no answer in {options.answer_within} s"
    if run.returncode in (0, 1):
        return None
    return f"ended with {run.returncode}"


def shrunk(options, passes, text, what):
    lines = text.splitlines(keepends=True)
    size = max(1, len(lines) // 2)
    while True:
        progress = False
        at = 0
        while at < len(lines):
            shorter = lines[:at] + lines[at + size:]
            if fault(options, passes, "".join(shorter)) == what:
                lines, progress = shorter, True
            else:
                at += size
        if size == 1 and not progress:
            return "".join(lines)
        size = max(1, size // 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("tests", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--time-limit", type=float, default=1e9)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--answer-within", type=int, default=20)
    parser.add_argument("--memory", type=int, default=4)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("fuzz-failures"))
    options = parser.parse_args()
    samples = corpus(options.tests)
    words = sorted({word for text, _ in samples for word in WORD.findall(text)})
    started = time.monotonic()

    def trial(seed):
        if time.monotonic() - started > options.time_limit:
            return None
        rng = random.Random(seed)
        text, choices = rng.choice(samples)
        passes = rng.choice(choices) if rng.random() < 0.9 else []
        text = damaged(text, words, rng)
        what = fault(options, passes, text)
        if not what:
            return False
        options.out.mkdir(parents=True, exist_ok=True)
        path = options.out / f"ir-{seed}.mlir"
        path.write_text(shrunk(options, passes, text, what))
        print(f"seed {seed}: {what}: tk-opt {' '.join(passes)} {path}", flush=True)
        return True

    results = []
    end = options.seed + options.count
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for begin in range(options.seed, end, 100):
            batch = list(pool.map(trial, range(begin, min(begin + 100, end))))
            results += [found for found in batch if found is not None]
            if None in batch:
                break
    print(f"{len(results)} trials from seed {options.seed}: {sum(results)} findings")
    sys.exit(any(results))


if __name__ == "__main__":
    main()
