"""User CPU time of cold compilations, and the size of the emitted text. Needs no GPU.

    bench/compile_time.py [WORD]…  only the programs whose line contains one of the words
    --target ARCH                  sm_90a by default
    --share N/M                    only each M-th program, beginning with the N-th
    --top N                        how many lines to print, the slowest first (40)

The programs are those of scripts/corpus and of bench/chains.py, at their sizes. A line has the user CPU time of
NVRTC and of all of `tkc build` for each launch, in seconds, the characters of the text of the largest launch, and
the program. NVRTC compiles the launches of a program together: its time is divided by their number.
"""
import argparse
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import model

KERNEL = re.compile(r'^extern "C" __global__', re.M)


def load(path):
    """A script as a module; scripts of other folders have the same names."""
    name = "script_" + re.sub(r"\W", "_", path)
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


def commands(folder):
    """(name, words behind `tkc build`) of each program."""
    for line in sorted({program.rsplit(" ", 1)[0] for program in load("scripts/corpus").programs()}):
        yield line, shlex.split(line)
    chains = load("bench/chains.py")
    for chain in chains.chains.chains():
        path = pathlib.Path(folder) / (re.sub(r"\W+", "_", chain.name) + ".tk")
        path.write_text(chain.source)
        sizes = chains.named_by_parameters(chain, chain.dims)
        yield f"chain {chain.name}", [str(path), *(f"--dim={name}={size}" for name, size in sizes.items())]


def measure(words, target):
    """User CPU seconds and the text's largest launch, or nothing where the compiler refuses the program."""
    tkc = model.find_tkc()
    environment = {**os.environ, "TK_CACHE": "off"}

    def build(stage, output):
        before = os.times().children_user
        done = subprocess.run([tkc, "build", *words, "--target", target, "--emit", stage, "-o", output], cwd=ROOT,
                              env=environment, capture_output=True, text=True, check=False)
        return os.times().children_user - before, done

    text_time, done = build("cuda", "-")
    if done.returncode:
        return None
    starts = [match.start() for match in KERNEL.finditer(done.stdout)] + [len(done.stdout)]
    launches = max(1, len(starts) - 1)
    largest = max((end - start for start, end in zip(starts, starts[1:])), default=0)
    with tempfile.NamedTemporaryFile() as output:
        whole, done = build("cubin", output.name)
    return None if done.returncode else ((whole - text_time) / launches, whole, launches, largest)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--share", default="0/1")
    parser.add_argument("--top", type=int, default=40)
    options = parser.parse_args()
    first, step = map(int, options.share.split("/"))
    found = []
    with tempfile.TemporaryDirectory() as folder:
        chosen = [(name, words) for name, words in commands(folder)
                  if not options.words or any(word in name for word in options.words)]
        for name, words in chosen[first::step]:
            if (cost := measure(words, options.target)) is not None:
                found.append((*cost, name))
    if not found:
        sys.exit("no program was compiled")
    found.sort(reverse=True)
    for of_launch, whole, launches, largest, name in found[:options.top]:
        print(f"{of_launch:6.2f} {whole:6.2f} {launches:2} {largest:7}  {name}")
    within = sum(cost[0] <= 1.0 for cost in found)
    print(f"{within} of {len(found)} programs take at most 1.0 s for a launch; the largest text of a launch has "
          f"{max(cost[3] for cost in found)} characters")


main()
