"""Predicted bytes of launches (tkc inspect) beside those that Nsight Compute counts, on a GPU.

    bench/counters.py [WORD]…   only the lines of CASES that contain one of the words
    --predict                   predict alone: needs no GPU
    --seconds N                 begin no program later than this
    --out FILE                  write all figures as JSON (default: $OUT/counters.json where OUT is set)

Each launch runs once with cold caches. Columns, in MB: predicted, counted, and the first over the second.

    read      bytes that device memory delivers
    written   bytes stored; counted are sectors stored through L2, as the cache still holds a part of them at the end
    L2        bytes that multiprocessors ask L2 for, and store; counted where they enter and leave the multiprocessors

Between the multiprocessors and L2 requests of neighbouring multiprocessors for one sector are joined: L2 delivers up
to half of the bytes that they get. `served` is what L2 delivers and takes.

The working sets are larger than the L2. The last lines say how many launches that move more than 100 MB are within
5 % in each column, and the programs whose launches all are for device memory.
"""
import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from model import ROOT, find_tkc, inspect, make_arguments, parse_line

CASES = """
examples/layernorm.tk R=32768 C=8192
examples/softmax.tk R=16384 C=16384
examples/rmsnorm_residual.tk R=32768 C=8192
examples/cumsum.tk R=16384 C=16384
examples/dropout.tk R=32768 C=8192
examples/argmax.tk R=16384 C=32768
examples/cross_entropy.tk R=8192 V=65536 label<65536
examples/group_norm.tk N=64 G=32 K=16 P=16384
examples/rope.tk B=8 S=4096 H=32 D=128
examples/gemm.tk M=8192 N=8192 K=8192
examples/linear_gelu.tk M=16384 N=8192 K=4096
examples/swiglu.tk M=8192 K=4096 N=14336
examples/batched_gemm.tk B=64 M=1024 N=1024 K=1024
examples/attention.tk B=4 H=16 S=8192 T=8192 G=16 D=128 E=128
examples/conv2d.tk N=64 C=256 H=64 W=64 O=256 R=3 S=3
examples/elu.tk kernel=elu_forward N=268435456
examples/softmax.tk R=1024 C=131072
examples/gemm.tk M=16 N=28672 K=8192
bench/programs/inference/act_quant_static.tk R=16384 C=16384
bench/programs/inference/conv1d_silu.tk B=16 S=4096 C=4096
bench/programs/inference/kv_f8_decode.tk B=64 H=32 G=8 T=8192 D=128
bench/programs/inference/w4a16.tk M=16 N=57344 K=8192
bench/programs/training/adamw.tk N=134217728
bench/programs/training/swiglu_bwd.tk R=8192 F=14336
bench/programs/training/softmax_bwd.tk B=4 H=16 S=2048 T=2048
"""
METRICS = {"read": "dram__bytes_read.sum", "written_dram": "dram__bytes_write.sum",
           "served_read": "lts__t_sectors_srcunit_tex_op_read.sum", "served_written": "lts__t_sectors_srcunit_tex_op_write.sum"}
# Beside them, as an older Nsight Compute may not know these.
OF_SM = {"sm_read": "l1tex__m_xbar2l1tex_read_bytes.sum", "sm_written": "l1tex__m_l1tex2xbar_write_bytes.sum"}
SECTOR = 32
LARGE = 1e8  # bytes from which a launch counts for the summary


def launch(cases, seconds):
    """In a process that Nsight Compute watches: a call of each kernel, between marks."""
    begin = time.time()
    import peers
    import torch
    profiler = torch.cuda.cudart()
    for case in cases:
        if time.time() - begin > seconds:
            break
        kernel = peers.Kernel(case["file"], kernel=case["kernel"])
        arguments = make_arguments(case, case["signature"])
        kernel(*arguments)
        torch.cuda.synchronize()
        profiler.cudaProfilerStart()
        kernel(*arguments)
        torch.cuda.synchronize()
        profiler.cudaProfilerStop()
        del arguments
        torch.cuda.empty_cache()


def count(cases, seconds, metrics):
    """What Nsight Compute counts, by launch in the order of the calls; nothing if it does not know the metrics."""
    tool = shutil.which("ncu") or shutil.which("ncu", path="/usr/local/cuda/bin")
    if not tool:
        sys.exit("Nsight Compute (ncu) is not installed")
    run = subprocess.run(
        [tool, "--profile-from-start", "off", "--metrics", ",".join(metrics.values()), "--csv", "--page", "raw",
         "--print-units", "base", "--cache-control", "all", "--clock-control", "none", sys.executable, os.path.abspath(__file__),
         "--launch", "--seconds", str(seconds)], input=json.dumps(cases), capture_output=True, text=True)
    lines = run.stdout.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        print(f"ncu counted nothing:\n{run.stdout[-1500:]}\n{run.stderr[-1500:]}")
        return []
    rows = csv.DictReader(lines[begin:])
    counted = []
    for row in rows:
        if row["ID"]:  # the first row has units
            figures = {name: float(row[metric].replace(",", "")) * (SECTOR if "sectors" in metric else 1)
                       for name, metric in metrics.items()}
            counted.append({"symbol": row["Kernel Name"].split("(")[0], **figures})
    return counted


def columns(predicted, counted):
    """Pairs of predicted and counted bytes."""
    return {"read": (predicted["read_bytes"], counted["read"]),
            "written": (predicted["written_bytes"], counted["served_written"]),
            "L2": (predicted["l2_bytes"], counted["sm_read"] + counted["sm_written"])}


def is_close(mine, theirs):
    return theirs <= LARGE or abs(mine / theirs - 1) <= 0.05


def summarise(programs):
    """Launches that move more than LARGE bytes, and programs."""
    pairs = [figures for launches in programs.values() for figures in launches]
    for name in ("read", "written", "L2"):
        large = [figures[name] for figures in pairs if figures[name][1] > LARGE]
        print(f"{name}: {sum(is_close(*pair) for pair in large)} of {len(large)} launches of more than 100 MB within 5 %")
    whole = [name for name, launches in programs.items()
             if launches and all(is_close(*figures[column]) for figures in launches for column in ("read", "written"))]
    print(f"device memory: {len(whole)} of {len(programs)} programs within 5 % in each large launch: {'; '.join(whole)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--predict", action="store_true")
    parser.add_argument("--launch", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--out", default=os.path.join(os.environ["OUT"], "counters.json") if "OUT" in os.environ else None)
    options = parser.parse_args()
    if options.launch:
        return launch(json.load(sys.stdin), options.seconds)
    options.tkc, options.target = find_tkc(), "sm_90a" if options.predict else "gpu"
    lines = [line for line in CASES.split("\n") if line and (not options.words or any(word in line for word in options.words))]
    cases = [parse_line(line) for line in lines]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        reports = list(pool.map(lambda case: inspect(case, options), cases))
    for case, found in zip(cases, reports):
        if "error" in found:
            sys.exit(f"{case['name']}: {found['error']}")
        case["kernel"], case["signature"] = found["kernel"], found["signature"]
    counted = [] if options.predict else count(cases, options.seconds, METRICS)
    for row, of_sm in zip(counted, count(cases, options.seconds, OF_SM) if counted else []):
        row.update(of_sm)
    left, record, programs = list(counted), [], {}
    print(f"{'launch':36}" + "".join(f"{name:>10}{'counted':>10}{'ratio':>7}" for name in ("read", "written", "L2")))
    for case, found in zip(cases, reports):
        print(case["name"])
        for predicted in found["launches"]:
            real = next((row for row in left if row["symbol"] == predicted["symbol"]), None)
            if real:
                left.remove(real)
            record.append({"name": case["name"], "predicted": predicted, "counted": real})
            figures = columns(predicted, {**dict.fromkeys([*METRICS, *OF_SM], 0.0), **(real or {})})
            print(f"  {predicted['symbol'][:34]:34}" + "".join(
                f"{mine / 1e6:10.1f}{theirs / 1e6:10.1f}" + (f"{mine / theirs:7.3f}" if theirs else " " * 7)
                for mine, theirs in figures.values()) +
                (f"  (memory takes {real['written_dram'] / 1e6:.1f}, served {(real['served_read'] + real['served_written']) / 1e6:.1f})"
                 if real else ""), flush=True)
            if real:
                programs.setdefault(case["name"], []).append(figures)
    for row in left:
        print(f"  counted, but not predicted: {row}")
    if programs:
        summarise(programs)
    if options.out:
        with open(options.out, "w") as file:
            json.dump(record, file, indent=1)


if __name__ == "__main__":
    main()
