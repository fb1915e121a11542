"""Chains of operators (bench/programs/chains.py) beside eager PyTorch and torch.compile.

    bench/chains.py [WORD]…   only the chains whose name contains one of the words
    --repeats N               calls of each, in alternation (7; 3 where one takes more than 20 ms)
    --eager-only              without torch.compile, which takes seconds to compile each chain
    --launches                also the time of each of tk's launches, by PyTorch's profiler
    --predict                 predict by the cost model, needs no GPU: sorted by predicted time over the roofline
    --check-small             compare each chain at small sizes with the reference in f64, needs no GPU
    --target ARCH             of --predict (sm_90a) and of --check-small (cpu)
    --share N/M               only each M-th chain, beginning with the N-th

f32 is strict: TF32 is off. A line has the medians, their ratios (peer / tk) and the error against eager, relative to the
results' norm. The last lines are geometric means and the least ratios. The roofline is the larger of the necessary
bytes at 3700 GB/s and of the necessary operations at 110 TFLOP/s, 650 in bf16, plus one launch.
"""
import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs"))
import chains
import model

BYTE, OPERATION, NARROW_OPERATION, LAUNCH = 1 / 3.7e6, 1 / 110e6, 1 / 650e6, 2.5  # us
INDICES = 2e-3  # how far an element chosen by argmax may be below the greatest


def command(chain, sizes, file, *words):
    file.write(chain.source)
    file.flush()
    return [model.find_tkc(), words[0], file.name, *words[1:],
            *(f"--dim={name}={size}" for name, size in named_by_parameters(chain, sizes).items())]


def with_derived(chain, sizes):
    """The sizes, and those that the program's conditions define by them."""
    sizes = dict(sizes)
    for name, expression in re.findall(r"\b([EPQ]) == ([^,{]*)", chain.source):
        sizes[name] = int(eval(expression.replace("/", "//"), {}, sizes))  # sizes of our own programs
    return sizes


def named_by_parameters(chain, sizes):
    """The sizes that a launch takes from its arguments."""
    parameters = chain.source.split("->")[0]
    return {name: size for name, size in with_derived(chain, sizes).items() if re.search(rf"\b{name}\b", parameters)}


def sizes_small(chain):
    return {name: chain.small.get(name, chains.SMALL[name]) for name in chain.dims}


def check_small(chosen, target):
    """How many chains differ from the reference."""
    wrong = 0
    for chain in chosen:
        with tempfile.NamedTemporaryFile("w", suffix=".tk") as file:
            sizes = sizes_small(chain)
            labels = ["--in", f"label=random:1:0:{sizes.get('V') or sizes.get('O') or sizes['J']}"] if chain.labels else []
            labels += ["--in", "v=random:1:1:3"] if "v: f32" in chain.source else []
            words = command(chain, sizes, file, "run", "--check", "--target", target, *labels)
            run = subprocess.run(words, capture_output=True, text=True, timeout=600)
        if run.returncode:
            wrong += 1
            print(f"{chain.name}: {(run.stderr or run.stdout).strip()[:1000]}", flush=True)
    print(f"{len(chosen) - wrong} passed, {wrong} failed")
    return wrong


def predict(chosen, target):
    rows = []
    for chain in chosen:
        with tempfile.NamedTemporaryFile("w", suffix=".tk") as file:
            words = command(chain, chain.dims, file, "inspect", "--json", "--cost", "--target", target)
            run = subprocess.run(words, capture_output=True, text=True, timeout=600)
        if run.returncode:
            print(f"{chain.name}: {run.stderr.strip()[:300]}", flush=True)
            continue
        found = json.loads(run.stdout)
        operation = NARROW_OPERATION if "bf16" in chain.source else OPERATION
        roofline = LAUNCH + max(found["needed_bytes"] * BYTE, found["needed_operations"] * operation)
        rows.append((found["predicted_us"] / roofline, chain.name, roofline, found))
    for ratio, name, roofline, found in sorted(rows, key=lambda row: row[0], reverse=True):
        launches = sorted(found["launches"], key=lambda launch: -launch["predicted_us"])
        parts = " ".join(f"{launch['predicted_us']:.0f}" for launch in launches[:6])
        print(f"{name:48} predicted {found['predicted_us']:9.1f} us  roofline {roofline:8.1f}  {ratio:6.2f}  "
              f"{launches[0]['bound']:11} x{found['recomputation']:.2f}  {len(launches)}: {parts}", flush=True)


def shapes_of(chain):
    """Names, types and shapes of the parameters and of the result."""
    dims = with_derived(chain, chain.dims)
    signature = re.search(r"kernel chain(.*?)(where|\{\n)", chain.source, re.S)[1].replace("->", "")
    return [(name, kind, shape) for name, kind, shape, _ in model.parse_signature(signature, dims)]


def fill(name, kind, shape, classes, seed):
    """An argument, by what its name says."""
    import torch
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "i32": torch.int32}[kind]
    generator = torch.Generator(device="cuda").manual_seed(seed)
    if name == "label":
        return torch.randint(0, classes, shape, device="cuda", dtype=dtype, generator=generator)
    value = torch.randn(shape, device="cuda", generator=generator)
    if name[0] == "w":
        value *= math.prod(shape[1:]) ** -0.5
    elif name[0] == "u":
        value *= (shape[0] * math.prod(shape[2:]) / 4) ** -0.5
    elif name[0] in "be":
        value *= 0.1
    elif name[0] == "g":
        value = 1 + 0.1 * value
    elif name[0] == "v":
        value = 0.5 + value.abs()
    return value.to(dtype)


def wrongness(got, want):
    import peers
    if got.dtype.is_floating_point:
        return peers.error(got, want)
    return (got != want).float().mean().item()  # equal but for places of nearly equal maxima


def time_launches(ours):
    """Microseconds of each launch, the longest first."""
    import torch
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        ours()
        torch.cuda.synchronize()
    times = {event.key: event.device_time_total / max(event.count, 1) for event in profiler.key_averages()}
    for name, time in sorted(times.items(), key=lambda item: -item[1]):
        print(f"    {name[:60]:60} {time:9.1f}")


def line(chain, options):
    import peers
    import torch
    *parameters, (_, kind, shape) = shapes_of(chain)
    classes = chain.dims.get("O") or chain.dims.get("J")
    arguments = [fill(*parameter, classes, seed) for seed, parameter in enumerate(parameters)]
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "i32": torch.int32}[kind]
    result = torch.empty(shape, dtype=dtype, device="cuda")
    kernel = peers.Kernel(source=chain.source)
    ours = lambda: kernel(*arguments, result)
    ours()
    want = chain.peer(*arguments)
    wrong = wrongness(result, want.reshape(shape))
    del want
    calls = [ours, lambda: chain.peer(*arguments)]
    if not options.eager_only:
        torch._dynamo.reset()
        compiled = torch.compile(chain.peer)
        calls.append(lambda: compiled(*arguments))
    first, = peers.times([ours], repeats=1, warmup=0)
    repeats = min(options.repeats, 3) if first > 20 else options.repeats
    tk, *others = peers.times(calls, repeats=repeats, warmup=1 if first > 20 else 2)
    limit = INDICES if kind == "i32" else 2e-2 if kind == "bf16" else 2e-5
    names = ["eager", "compile"]
    text = "  ".join(f"{name} {other * 1e3:9.1f}  ratio {other / tk:.2f}" for name, other in zip(names, others))
    print(f"{chain.name:48} tk {tk * 1e3:9.1f} us  {text}  err {wrong:.1e}{'' if wrong < limit else '  WRONG'}", flush=True)
    if options.launches:
        time_launches(ours)
    return {name: other / tk for name, other in zip(names, others)}


def measure(chosen, options):
    import torch
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    ratios = {}
    for chain in chosen:
        try:
            for peer, ratio in line(chain, options).items():
                ratios.setdefault(peer, {})[chain.name] = ratio
        except Exception as error:  # one chain does not end the others
            print(f"{chain.name:48} failed: {str(error).splitlines()[0][:150]}", flush=True)
        torch.cuda.empty_cache()
    for peer, lines in ratios.items():
        least = min(lines, key=lines.get)
        mean = math.exp(sum(map(math.log, lines.values())) / len(lines))
        under = sum(ratio < 0.85 for ratio in lines.values())
        print(f"{peer}: {len(lines)} chains, geometric mean {mean:.2f}, least {lines[least]:.2f} ({least}), {under} under 0.85")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--eager-only", action="store_true")
    parser.add_argument("--launches", action="store_true")
    parser.add_argument("--predict", action="store_true")
    parser.add_argument("--check-small", action="store_true")
    parser.add_argument("--target")
    parser.add_argument("--share", default="0/1")
    options = parser.parse_args()
    chosen = [chain for chain in chains.chains() if not options.words or any(word in chain.name for word in options.words)]
    first, step = map(int, options.share.split("/"))
    chosen = chosen[first::step]
    if options.check_small:
        sys.exit(1 if check_small(chosen, options.target or "cpu") else 0)
    if options.predict:
        return predict(chosen, options.target or "sm_90a")
    return measure(chosen, options)


if __name__ == "__main__":
    main()
