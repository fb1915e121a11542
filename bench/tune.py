"""Does `tkc tune` find what an exhaustive search of its candidates finds? Needs a GPU.

For each kernel: `tkc tune` with its budget, then the same with --exhaustive, which goes on from what the first
one measured, and then both blocks once more beside the program as it is. A row has the ratio of the best
times, exhaustive by tuned: 0.98 and more is asked, in 60 s at most.

tune.py [--budget SECONDS] [--exhaustive SECONDS] [--candidates N] [--within SECONDS] [KERNEL ...]
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TKC = os.environ.get("TKC", os.path.join(ROOT, "build", "bin", "tkc"))

# A program of examples/, and its sizes. The first ones are those whose choice of tiles is hard.
KERNELS = {
    "linear of few rows": ("linear_gelu.tk", "M=128 N=4096 K=4096"),
    "gemm of few tiles": ("gemm.tk", "M=1024 N=1024 K=4096"),
    "gemm": ("gemm.tk", "M=4096 N=4096 K=4096"),
    "layernorm": ("layernorm.tk", "R=8192 C=4096"),
    "softmax": ("softmax.tk", "R=4096 C=8192"),
    "weights of 8 bits": ("linear_int8.tk", "M=16 N=14336 K=4096"),
    "residual and norm": ("rmsnorm_residual.tk", "R=16384 C=2048"),
    "batched gemm": ("batched_gemm.tk", "B=16 M=512 N=512 K=1024"),
    "convolution": ("conv2d.tk", "N=8 C=128 H=56 W=56 O=128 R=3 S=3"),
    "attention": ("attention.tk", "B=1 H=16 S=2048 T=2048 D=128 E=128 G=16"),
    "swiglu": ("swiglu.tk", "M=2048 N=4096 K=4096"),
}


def tune(program, sizes, *options):
    """The seconds that a search took, and its last line: the best schedule and its ratio."""
    command = [TKC, "tune", os.path.join(ROOT, "examples", program), "--json", *options]
    for size in sizes.split():
        command += ["--dim", size]
    begin = time.monotonic()
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(f"{' '.join(command)}: {ran.stderr.strip()[-500:]}")
    return time.monotonic() - begin, json.loads(ran.stdout.splitlines()[-1])


def again(program, sizes, block, folder):
    """The ratio of a block's time to that of the program as it is, measured anew."""
    if not block:
        return 1.0
    path = os.path.join(folder, "block.tk")
    with open(path, "w") as file:
        file.write(block)
    return tune(program, sizes, "--verify", path, "--tolerance", "1000")[1]["ratio"]


def compare(name, options, folder):
    program, sizes = KERNELS[name]
    record = os.path.join(folder, "record.jsonl")
    if os.path.exists(record):
        os.remove(record)
    common = ("--record", record, "--candidates", str(options.candidates))
    seconds, found = tune(program, sizes, "--budget", str(options.budget), *common)
    _, best = tune(program, sizes, "--budget", str(options.exhaustive), "--exhaustive", *common)
    of_found, of_best = (again(program, sizes, each["best"], folder) for each in (found, best))
    timed = found["timed"] + best["timed"]
    # The exhaustive search has measured all that the other one has: its best is not slower but by noise.
    ratio = min(of_best, of_found) / of_found
    print(f"{name:20} {sizes:40} {seconds:5.1f} s, {found['timed']:3} timed: {of_found:.3f} of the time; "
          f"exhaustive {timed:3} of {best['candidates']:3}: {of_best:.3f}; ratio {ratio:.3f}", flush=True)
    return ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help=", ".join(KERNELS))
    parser.add_argument("--budget", type=float, default=60, help="seconds of tkc tune (60)")
    parser.add_argument("--exhaustive", type=float, default=600, help="seconds of the exhaustive search (600)")
    parser.add_argument("--candidates", type=int, default=200, help="schedules of both (200)")
    parser.add_argument("--within", type=float, help="begin no other kernel after so many seconds")
    options = parser.parse_args()
    for name in options.kernels:
        if name not in KERNELS:
            parser.error(f"no kernel {name!r}; there are {', '.join(KERNELS)}")
    begin, ratios = time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.kernels or KERNELS:
            if options.within and time.monotonic() - begin > options.within:
                break
            try:
                ratios.append(compare(name, options, folder))
            except RuntimeError as error:
                print(f"{name:20} {error}", flush=True)
    if ratios:
        good = sum(ratio >= 0.98 for ratio in ratios)
        print(f"{good} of {len(ratios)} kernels have 0.98 and more; the least is {min(ratios):.3f}; "
              f"{time.monotonic() - begin:.0f} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
