#!/usr/bin/env python3
"""Predicted times of random programs beside their rooflines; needs no GPU.

usage: bench/roofline_fuzz.py [--count N] [--seed N] [--worst N] [--kinds WORD,…] [--target ARCH]

Program n has the seed --seed + n. Most are of the kinds of bench/roofline_programs.py; every fourth is one of
tk-fuzz at large sizes, if that is built. `tkc inspect --cost` predicts each launch, and the least time of the
program: what it must read and write at the machine's bandwidth, what it must compute at the units' rates, and
one launch. A line has predicted / least, both times, the kind, the seed, and the launch that takes longest with
its bound. Programs that take less than 10 us are not
listed. Behind a line stands what is wrong: `blocks` where a launch that takes long has fewer blocks than the
machine has multiprocessors, `work` where operations are done more than twice. The summary lists the
refusals, the internal errors and the programs that took more than --slow seconds.
"""
import argparse
import concurrent.futures
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

from roofline_programs import KINDS

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROCESSORS = {"sm_80": 108, "sm_90a": 132}
LONG = 10.0  # us: a launch that takes less is over before few blocks matter


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worst", type=int, default=30, help="how many programs are listed")
    parser.add_argument("--kinds", default="", help="only kinds that contain one of the words; random: those of tk-fuzz")
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--limit", type=float, default=2.0, help="ratios above are counted")
    parser.add_argument("--slow", type=float, default=5.0, help="seconds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"))
    parser.add_argument("--show", action="store_true", help="print the worst programs, too")
    parser.add_argument("--out", help="write all figures as JSON")
    return parser.parse_args()


def random_program(options, seed, rng):
    """A program of tk-fuzz, and sizes to begin with."""
    command = [os.path.join(options.bin, "tk-fuzz"), "--print", "--count", "1", "--seed", str(seed)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    text = re.sub(r"^schedule.*?^}\n", "", text, flags=re.M | re.S)
    names = set(re.findall(r"--dim (\w+)=", text))
    return text, {name: rng.randint(12, 40) for name in names}


def make_program(options, seed):
    rng = random.Random(seed)
    kinds = [name for name in KINDS if any(word in name for word in options.kinds.split(","))]
    isRandom = not kinds or (options.has_fuzz and "random".startswith(options.kinds) and seed % 4 == 0)
    if isRandom:
        return "random", *random_program(options, seed, rng)
    name = kinds[seed % len(kinds)] if len(kinds) > 1 else kinds[0]
    return name, *KINDS[name](rng)


def run_program(options, seed):
    """A program's result; the sizes of one of tk-fuzz grow until it takes long."""
    kind, text, sizes = make_program(options, seed)
    result = inspect(options, seed, kind, text, sizes)
    while kind == "random" and sizes and result.get("least_us", LONG) < 2 * LONG and result.get("predicted_us", 1e9) < 100 * LONG:
        sizes = {name: size * 3 // 2 + size % 5 for name, size in sizes.items()}
        larger = inspect(options, seed, kind, text, sizes)
        if max(sizes.values()) > 1 << 27 or larger.get("code"):
            break
        result = larger
    return result


def inspect(options, seed, kind, text, sizes):
    result = {"seed": seed, "kind": kind, "text": text, "sizes": sizes}
    path = os.path.join(options.folder, f"p{seed}.tk")
    with open(path, "w") as file:
        file.write(text)
    command = [os.path.join(options.bin, "tkc"), "inspect", path, "--cost", "--json", "--target", options.target]
    kernel = sizes.get("kernel", "k" if "kernel k(" in text else None)
    command += (["--kernel", kernel] if kernel else [])
    command += [word for name, size in sizes.items() if name != "kernel" for word in ("--dim", f"{name}={size}")]
    start = time.monotonic()
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=4 * options.slow, check=False)
    except subprocess.TimeoutExpired:
        return result | {"seconds": 4 * options.slow, "error": "no end"}
    result["seconds"] = time.monotonic() - start
    try:
        result |= json.loads(ran.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        message = (ran.stderr.strip().splitlines() or [f"exit status {ran.returncode}"])[0]
        return result | {"error": message, "internal": ran.returncode not in (1, 2)}
    if "predicted_us" not in result:
        return result | {"error": json.dumps(result)[:300], "internal": False}
    return result | judge(options, result)


def judge(options, result):
    worst = max(result["launches"], key=lambda launch: launch["predicted_us"], default=None)
    if not worst:
        return {"error": "no launch", "internal": False}
    wrong = []
    few = [launch for launch in result["launches"]
           if launch["blocks"] < PROCESSORS.get(options.target, 100) and launch["predicted_us"] > LONG]
    if few and result["predicted_us"] > 1.5 * result["least_us"]:
        wrong.append("blocks")
    if result["recomputation"] > 2:
        wrong.append("work")
    return {"ratio": result["predicted_us"] / result["least_us"], "worst": worst, "wrong": wrong}


def describe(result):
    worst, sizes = result["worst"], result["sizes"]
    parts = ", ".join(f"{name} {us:.0f}" for name, us in sorted(worst["parts_us"].items(), key=lambda part: -part[1])[:2])
    return (f"{result['ratio']:7.2f}  {result['predicted_us']:9.1f} {result['least_us']:9.1f} us  {result['kind']:17} {result['seed']:6} "
            f"{' '.join(f'{name}={size}' for name, size in sizes.items())}  {len(result['launches'])} launches; "
            f"{worst['symbol']} {worst['predicted_us']:.0f} us ({parts}), {worst['blocks']} blocks; "
            f"least by {result['least_bound']} {' '.join(result['wrong'])}")


def report(options, results):
    good = [result for result in results if "error" not in result]
    good.sort(key=lambda result: -result["ratio"])
    for result in [result for result in good if result["predicted_us"] > LONG][:options.worst]:
        print(describe(result))
        if options.show:
            print("    " + result["text"].strip().replace("\n", "\n    "))
    for result in results:
        if "error" in result:
            print(f"{'internal' if result.get('internal') else 'refused'}: {result['kind']} {result['seed']} "
                  f"{' '.join(f'{name}={size}' for name, size in result['sizes'].items())}: {result['error'][:300]}")
        if result["seconds"] > options.slow:
            print(f"slow: {result['kind']} {result['seed']}: {result['seconds']:.1f} s")
    print(f"\n{'kind':17} programs  median   worst  above {options.limit}")
    for kind in sorted({result["kind"] for result in good}):
        ratios = sorted(result["ratio"] for result in good if result["kind"] == kind)
        print(f"{kind:17} {len(ratios):8} {ratios[len(ratios) // 2]:7.2f} {ratios[-1]:7.2f}  {sum(r > options.limit for r in ratios)}")
    above = sum(result["ratio"] > options.limit for result in good)
    print(f"{len(results)} programs from seed {options.seed}: {above} above {options.limit}, "
          f"{sum('error' in result for result in results)} refused or failed")


def main():
    options = read_options()
    options.has_fuzz = os.path.exists(os.path.join(options.bin, "tk-fuzz"))
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as options.folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        seeds = range(options.seed, options.seed + options.count)
        results = list(pool.map(lambda seed: run_program(options, seed), seeds))
    report(options, results)
    print(f"{time.monotonic() - start:.0f} s")
    if options.out:
        with open(options.out, "w") as file:
            json.dump(results, file)
    sys.exit(any(result.get("internal") or result["seconds"] > options.slow for result in results))


if __name__ == "__main__":
    main()
