"""Predicted times of the cost model (tkc inspect) beside measured ones, over the programs of bench/model.txt.

    bench/model.py [WORD]…     only the lines that contain one of the words
    --list FILE                the programs of a sizes.txt in their place: FILE --kernel NAME --dim NAME=SIZE … # TENSOR<LIMIT …
    --predict                  predict alone: needs no GPU
    --target ARCH              what is predicted for without a GPU (sm_90a)
    --measured FILE            take measured times from a file that an earlier call wrote
    --out FILE                 write all figures as JSON (default: $OUT/model.json where OUT is set)
    --parts                    show the parts of each launch's predicted time
    --launches                 measure each launch, too, by PyTorch's profiler, and add up shares over launches

Measured: the median of 7 calls, each after 512 MB were read, so that nothing is in the second-level cache. A call
on an idle GPU takes longer than a launch that follows another one, which is what is predicted. The difference is measured
with one element, and taken off each measured time. A line has both times and predicted / measured; the last lines are
the shares within factors of 1.5 and 3.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHORT = 5.0  # us: below it a program counts for the factor of 1.5 alone


def find_tkc():
    for path in (os.environ.get("TKC"), os.path.join(ROOT, ".carry", "tkc"), os.path.join(ROOT, "build", "bin", "tkc")):
        if path and os.path.exists(path):
            return path
    sys.exit("tkc is not built: scripts/carry")


def parse_line(text):
    """A case of model.txt: file, kernel, sizes, limits of integer inputs (lowest, highest)."""
    words = text.split()
    case = {"name": text, "file": words[0], "kernel": None, "dims": {}, "limits": {}}
    for word in words[1:]:
        if match := re.fullmatch(r"(\w+)<(=?)(\d+)", word):
            limit = int(match[3])
            case["limits"][match[1]] = (1, limit) if match[2] else (0, limit - 1)
        else:
            key, value = word.split("=")
            if key == "kernel":
                case["kernel"] = value
            else:
                case["dims"][key] = int(value)
    return case


def listed_line(text):
    """A line of a sizes.txt, whose options are those of tkc, as a line of model.txt; limits stand behind a #."""
    options, _, limits = text.partition("#")
    words = options.replace("--kernel ", "kernel=").replace("--dim ", "").split()
    return " ".join([*words, *limits.split()])


def load_listed(path, words):
    lines = [line.strip() for line in open(path)]
    lines = [line for line in lines if line and not line.startswith("#") and "--plan-dim" not in line]
    return [parse_line(listed_line(line)) for line in lines if not words or any(word in line for word in words)]


def load_cases(words):
    lines = [line.strip() for line in open(os.path.join(ROOT, "bench", "model.txt"))]
    lines = [line for line in lines if line and not line.startswith("#")]
    folder = "bench/programs/fields"
    for name in sorted(os.listdir(os.path.join(ROOT, folder))):
        text = open(os.path.join(ROOT, folder, name)).read()
        if match := re.search(r"^// real (.*)$", text, re.M):
            lines.append(f"{folder}/{name} " + " ".join(re.findall(r"\w+=\d+", match[1])))
    return [parse_line(line) for line in lines if not words or any(word in line for word in words)]


def inspect(case, options):
    """What tkc inspect says of a case; its error where it refuses."""
    command = [options.tkc, "inspect", os.path.join(ROOT, case["file"]), "--json"]
    command += ["--target", options.target] + (["--cost"] if options.predict else [])
    if case["kernel"]:
        command += ["--kernel", case["kernel"]]
    for dim, size in case["dims"].items():
        command += ["--dim", f"{dim}={size}"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if run.returncode:
        return {"error": run.stderr.strip().splitlines()[-1] if run.stderr else f"status {run.returncode}"}
    return json.loads(run.stdout)


def parse_signature(text, dims):
    """Parameters and results of a signature: (name, type, shape or None for a scalar, has a default)."""
    def extent(expression):
        return int(eval(expression.replace("/", "//"), {}, dims))  # sizes of our own programs
    items = []
    for match in re.finditer(r"(\w+): (\w+)(\[[^\]]*\])?( = )?", text.split("(", 1)[1]):
        name, kind, shape, default = match.groups()
        if shape is not None:
            shape = [extent(part) for part in shape[1:-1].split(",") if part.strip()]
        items.append((name, kind, shape, default is not None))
    return items


def make_arguments(case, signature):
    import torch
    kinds = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
             "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2, "i64": torch.int64, "i32": torch.int32,
             "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool}
    arguments = []
    for name, kind, shape, default in parse_signature(signature, case["dims"]):
        if shape is None:
            arguments.append(None if default else 7 if kind[0] == "i" else 0.5)
        elif kind == "bool":
            arguments.append(torch.rand(shape, device="cuda") < 0.9)
        elif kind[0] in "iu":
            low, high = case["limits"].get(name, (0, 7))
            whole = torch.randint(low, high + 1, shape, device="cuda")
            if name == "off":  # offsets of ranges, in order, from the first limit to the last one
                whole = whole.sort().values
                whole[0], whole[-1] = low, high
            arguments.append(whole.to(kinds[kind]))
        else:
            whole = torch.randn(shape, device="cuda", dtype=torch.float32 if kind != "f64" else torch.float64)
            arguments.append(whole.mul_(0.3).to(kinds[kind]))
    return arguments


def time_launches(kernel, arguments, found):
    """Microseconds that each launch runs, by the profiler: without what it costs to launch. A launch that begins
    before the one before it has ended counts from that end on."""
    import peers
    import torch
    torch.sum(peers.COLD[0], dim=0, out=peers.COLD[1])
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        kernel(*arguments)
        torch.cuda.synchronize()
    ranges = sorted((event.time_range.start, event.time_range.end, event.name) for event in profiler.events()
                    if event.device_type == torch.autograd.DeviceType.CUDA)
    times, last = {}, 0
    for begin, end, name in ranges:
        times[name] = end - max(begin, last)
        last = max(end, last)
    for launch in found["launches"]:
        launch["measured_us"] = times.get(launch["symbol"])


START = "kernel start(x: f32[N]) -> (y: f32[N]) { y[i] = 2 * x[i] }"


def time_of_start(options):
    """Microseconds that a call takes beyond its launch as predicted."""
    import peers
    import torch
    with tempfile.NamedTemporaryFile("w", suffix=".tk") as file:
        file.write(START)
        file.flush()
        found = inspect({"file": file.name, "kernel": None, "dims": {"N": 1}, "limits": {}}, options)
    x, y = torch.ones(1, device="cuda"), torch.empty(1, device="cuda")
    kernel = peers.Kernel(source=START)
    median, = peers.times([lambda: kernel(x, y)], repeats=21, cold=True, warmup=3)
    return max(median * 1e3 - found["predicted_us"], 0.0)


def measure(case, found, launches=False):
    """Median microseconds of calls with a cold cache."""
    import peers
    import torch
    kernel = peers.Kernel(case["file"], kernel=case["kernel"] or found["kernel"])
    arguments = make_arguments(case, found["signature"])
    median, = peers.times([lambda: kernel(*arguments)], repeats=7, cold=True, warmup=2)
    if launches:
        time_launches(kernel, arguments, found)
    torch.cuda.empty_cache()
    return median * 1e3


def measure_or_restart(case, found, known, options):
    """Microseconds, or nothing where a program fails. After a fault no program runs in this process any more: it
    begins anew behind the faulty one, with what is known."""
    try:
        return measure(case, found, options.launches) - options.start
    except Exception as error:  # one program more or less
        print(f"{case['name'][-72:]:72} {str(error).splitlines()[0][:100]}", flush=True)
    import torch
    try:
        torch.cuda.synchronize()
    except Exception:
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
            json.dump({**known, case["name"]: None}, file)
        os.execv(sys.executable, [sys.executable, *sys.argv, "--resume", file.name])
    return None


def take_measured(path, cases, reports):
    """The times that an earlier call wrote: of programs, which are returned, and of launches of the same name."""
    earlier = {row["name"]: row for row in json.load(open(path))}
    for case, found in zip(cases, reports):
        times = {launch["symbol"]: launch.get("measured_us")
                 for launch in earlier.get(case["name"], {}).get("launches", [])}
        for launch in found.get("launches", []):
            launch["measured_us"] = times.get(launch["symbol"])
    return {name: row.get("measured_us") for name, row in earlier.items()}


def show(case, found, measured, options):
    predicted = found["predicted_us"]
    launches = sorted(found["launches"], key=lambda launch: -launch["predicted_us"])
    ratio = f"{predicted / measured:8.2f}" if measured else " " * 8
    print(f"{case['name'][-72:]:72} {predicted:10.1f} {measured or 0:10.1f} {ratio}  {launches[0]['bound']:10} "
          f"x{found['recomputation']:.2f} {len(launches)}", flush=True)
    if options.parts:
        for launch in launches:
            parts = "  ".join(f"{name} {value:.1f}" for name, value in launch["parts_us"].items() if value >= 0.05)
            print(f"    {launch['symbol'][-40:]:40} {launch['predicted_us']:9.1f} {launch.get('measured_us') or 0:9.1f}  blocks {launch['blocks']} x"
                  f"{launch['blocks_at_once']:.0f} heaviest {launch['heaviest']:.2f}: {parts}")
            for note in launch["notes"]:
                print("      note:", note)


def summarise(rows, what):
    ratios = [(max(p / m, m / p), m) for p, m in rows if m]
    if not ratios:
        return
    for factor, least in ((1.5, 0.0), (3.0, SHORT)):
        counted = [ratio for ratio, m in ratios if m > least]
        within = sum(ratio <= factor for ratio in counted)
        over = f" that take more than {least:.0f} us" if least else ""
        print(f"within a factor of {factor}: {within} of {len(counted)} {what}{over} ({within / max(len(counted), 1):.0%})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--list")
    parser.add_argument("--predict", action="store_true")
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--launches", action="store_true")
    parser.add_argument("--target")
    parser.add_argument("--measured")
    parser.add_argument("--resume", help=argparse.SUPPRESS)
    parser.add_argument("--out", default=os.path.join(os.environ["OUT"], "model.json") if "OUT" in os.environ else None)
    options = parser.parse_args()
    options.tkc = find_tkc()
    options.predict |= options.measured is not None
    options.target = options.target or ("sm_90a" if options.predict else "gpu")
    begin = time.time()
    cases = load_listed(options.list, options.words) if options.list else load_cases(options.words)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        reports = list(pool.map(lambda case: inspect(case, options), cases))
    known = take_measured(options.measured, cases, reports) if options.measured else {}
    if options.resume:
        known = json.load(open(options.resume))
    rows, record = [], []
    options.start = 0.0 if options.predict else time_of_start(options)
    print(f"start of a call: {options.start:.2f} us")
    print(f"{'program':72} {'predicted':>10} {'measured':>10} {'ratio':>8}  bound")
    for case, found in zip(cases, reports):
        entry = {"name": case["name"], **found}
        record.append(entry)
        if "error" in found or "predicted_us" not in found:
            print(f"{case['name'][-72:]:72} {found.get('error', 'no prediction')[:100]}")
            continue
        if not options.predict and case["name"] not in known:
            known[case["name"]] = measure_or_restart(case, found, known, options)
        measured = known.get(case["name"])
        entry["measured_us"] = measured
        show(case, found, measured, options)
        rows.append((found["predicted_us"], measured))
    summarise(rows, "programs")
    launches = [launch for found in reports for launch in found.get("launches", []) if launch.get("measured_us")]
    # What a launch costs is no part of the time that it runs.
    summarise([(launch["predicted_us"] - launch["launch_us"], launch["measured_us"]) for launch in launches], "launches")
    print(f"{time.time() - begin:.0f} s")
    if options.out:
        with open(options.out, "w") as file:
            json.dump(record, file, indent=1)


if __name__ == "__main__":
    main()
