"""Does `tkc tune` find what an exhaustive search of its candidates finds? Needs a GPU.

For each kernel: `tkc tune` with its budget, then the same with --exhaustive, which goes on from what the first
one measured, until the kernel's time is used up. If both have found the same block, the ratio is 1. Otherwise both
blocks are timed once more beside the program as it is. A row has the ratio of the best times, exhaustive by
tuned: 0.98 and more is asked, in 60 s at most.

tune.py [--budget SECONDS] [--each SECONDS] [--candidates N] [--within SECONDS] [KERNEL ...]
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TKC = os.environ.get("TKC", os.path.join(ROOT, "build", "bin", "tkc"))

# A program of examples/, its sizes, and inputs that are not normal data. The first ones are those whose choice of tiles is hard.
KERNELS = {
    "linear of few rows": ("linear_gelu.tk", "M=128 N=4096 K=4096"),
    "gemm of few tiles": ("gemm.tk", "M=1024 N=1024 K=4096"),
    "gemm": ("gemm.tk", "M=4096 N=4096 K=4096"),
    "layernorm": ("layernorm.tk", "R=8192 C=4096"),
    "softmax": ("softmax.tk", "R=4096 C=8192"),
    "weights of 8 bits": ("linear_int8.tk", "M=16 N=14336 K=4096", "w=random:1:-100:100"),
    "residual and norm": ("rmsnorm_residual.tk", "R=16384 C=2048"),
    "batched gemm": ("batched_gemm.tk", "B=16 M=512 N=512 K=1024"),
    "convolution": ("conv2d.tk", "N=8 C=128 H=56 W=56 O=128 R=3 S=3"),
    "attention": ("attention.tk", "B=1 H=16 S=2048 T=2048 D=128 E=128 G=16"),
    "swiglu": ("swiglu.tk", "M=2048 N=4096 K=4096"),
}
# What is kept of a kernel's time for the two blocks once more.
SECONDS_AGAIN = 4


def tune(program, sizes, inputs, *options, seconds=None):
    """The seconds that a search took, and what it printed. After `seconds` it is ended."""
    command = [TKC, "tune", os.path.join(ROOT, "examples", program), "--json", *options]
    for size in sizes.split():
        command += ["--dim", size]
    for values in inputs:
        command += ["--in", values]
    begin = time.monotonic()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        timer = threading.Timer(seconds, process.kill) if seconds else None
        if timer:
            timer.start()
        lines = process.stdout.read().splitlines()
        process.wait()
        took = time.monotonic() - begin
        ended = bool(timer) and not timer.is_alive()
        if timer:
            timer.cancel()
        if process.returncode and not ended:
            errors.seek(0)
            raise RuntimeError(f"{' '.join(command)}: {errors.read().strip()[-500:]}")
    rows = []
    for line in lines:
        try:
            rows.append(json.loads(line))
        except ValueError:  # the line in which it was ended
            pass
    return took, rows


def best_of(rows):
    """The block that a search chose, or would have chosen when it was ended; "" for none."""
    if rows and "best" in rows[-1]:
        return without_head(rows[-1]["best"])
    right = [row for row in rows if row["right"] and not row["spilled"]]
    best = min(right, key=lambda row: row["ratio"], default=None)
    return best["schedule"] if best and best["ratio"] < 0.99 else ""


def without_head(block):
    """A block for all targets and sizes: searches that were ended print such ones."""
    if " for " not in block:
        return block
    begin, end = block.index(" for "), block.index(" {")
    return block[:begin] + block[end:]


def again(program, sizes, inputs, block, folder):
    """The ratio of a block's time to that of the program as it is, measured anew."""
    if not block:
        return 1.0
    path = os.path.join(folder, "block.tk")
    with open(path, "w") as file:
        file.write(block)
    return tune(program, sizes, inputs, "--verify", path, "--tolerance", "1000")[1][-1]["ratio"]


def compare(name, options, folder):
    program, sizes, *inputs = KERNELS[name]
    record = os.path.join(folder, "record.jsonl")
    if os.path.exists(record):
        os.remove(record)
    begin = time.monotonic()
    common = ("--record", record, "--candidates", str(options.candidates))
    seconds, found = tune(program, sizes, inputs, "--budget", str(options.budget), *common)
    left = options.each - SECONDS_AGAIN - (time.monotonic() - begin)
    rows = found
    if left > 0:
        rows = tune(program, sizes, inputs, "--budget", str(left), "--exhaustive", *common, seconds=left)[1] or found
    tuned, best = best_of(found), best_of(rows)
    timed = sum("predicted_us" in row for row in found), sum("predicted_us" in row for row in rows)
    of_tuned = of_best = again(program, sizes, inputs, tuned, folder)
    if best != tuned:
        of_best = again(program, sizes, inputs, best, folder)
    # The exhaustive search has measured all that the other one has: its best is not slower but by noise.
    ratio = min(of_best, of_tuned) / of_tuned
    print(f"{name:20} {sizes:40} tuned in {seconds:5.1f} s, {timed[0]:3} of {found[-1]['candidates']:3} timed: {of_tuned:.3f} of "
          f"the time; exhaustive {timed[1]:3} timed: {of_best:.3f}; ratio {ratio:.3f}; "
          f"{time.monotonic() - begin:.1f} s", flush=True)
    return ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help=", ".join(KERNELS))
    parser.add_argument("--budget", type=float, default=60, help="seconds of tkc tune (60)")
    parser.add_argument("--each", type=float, default=600, help="seconds of both searches of a kernel, about (600)")
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
