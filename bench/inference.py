"""Programs of inference (bench/programs/inference) beside eager torch, torch.compile and libraries.

    bench/inference.py [NAME]…   only these programs
    --no-compile                 without torch.compile, which takes seconds a line

A line has the median time in us, what it moves in TB/s, the peers' times with their ratio to it, and the greatest
errors against eager torch, relative to the results' scale. The second-level cache is flushed before each call.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import torch

import peers
import programs.attention  # noqa: F401 (fills CASES)
import programs.decoding  # noqa: F401
import programs.products  # noqa: F401
from programs.cases import CASES

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "inference")


def text_of(name):
    """The program of a case: several cases of one program have words behind its name."""
    path = os.path.join(PROGRAMS, name + ".tk")
    return open(path).read() if os.path.exists(path) else text_of(name.rsplit("_", 1)[0])


def line(name, kernel, arguments, results, function, compiled, others):
    kernel(*arguments, *results)
    errors = [peers.error(r.float(), w.float()) for r, w in zip(results, function(*arguments))]
    runs = {"tk": lambda: kernel(*arguments, *results), "eager": lambda: function(*arguments)}
    for label, other in others.items():
        runs[label] = lambda other=other: other(*arguments)
    if compiled:
        fast = torch.compile(function, dynamic=False)
        runs["compiled"] = lambda: fast(*arguments)
    for label in list(runs):
        try:
            runs[label]()
        except Exception as error:  # a peer that this release of torch does not have
            print(f"{name}: {label}: {str(error).splitlines()[0][:120]}")
            del runs[label]
    times = peers.times(list(runs.values()), repeats=9, cold=True, warmup=2)
    moved = sum(t.numel() * t.element_size() for t in arguments + results if isinstance(t, torch.Tensor))
    rest = "  ".join(f"{label} {t * 1e3:.1f} ({t / times[0]:.2f})" for label, t in list(zip(runs, times))[1:])
    worst = " ".join(f"{e:.1e}" for e in errors)
    print(
        f"{name:22} tk {times[0] * 1e3:9.1f} us  {moved / times[0] * 1e-9:5.2f} TB/s  {rest}  err {worst}", flush=True
    )


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    names = [name for name in CASES if not words or name in words]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        kernels = dict(zip(names, pool.map(lambda name: peers.Kernel(source=text_of(name)), names)))
    for name in names:
        make, compiled = CASES[name]
        arguments, results, function, *others = make()
        compiled = compiled and "--no-compile" not in sys.argv
        line(name, kernels[name], arguments, results, function, compiled, others[0] if others else {})
        del arguments, results, function, others
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
