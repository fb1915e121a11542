"""What a plan is predicted to move and to multiply, and what the emulator counts while it runs.

usage: check_counts.py TKC EXAMPLES

The emulator counts sectors of 32 bytes, each once for one access of a warp, and multiply-adds of matrix products. The
prediction goes through some blocks of the IR, and through some iterations of a loop. Both are of sm_90a.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

TKC, EXAMPLES = sys.argv[1], pathlib.Path(sys.argv[2])
# A program, its sizes, and by how much its bytes may differ. The emulator has no first-level cache, in which the model
# finds the bias.
SINGLE = None  # threads read elements one by one, of sectors that the first-level cache has: the counted bytes are the most
CASES = (
    ("layernorm", "R=64 C=1024", 0.0),
    ("softmax", "R=64 C=1024", 0.0),
    ("rmsnorm_residual", "R=64 C=1024", 0.0),
    ("cumsum", "R=32 C=2048", 0.0),
    ("dropout", "R=64 C=1024", 0.0),
    ("elu", "N=65536", 0.0),
    ("gemm", "M=512 N=512 K=512", 0.0),
    ("batched_gemm", "B=2 M=256 N=256 K=256", 0.0),
    ("linear_gelu", "M=512 N=512 K=256", 0.02),
    ("swiglu", "M=256 N=256 K=256", 0.0),
    ("attention", "B=1 H=2 S=512 T=512 G=2 D=128 E=128", 0.0),
    ("attention_plain", "B=1 H=2 S=256 T=256 D=64 E=64", 0.0),
    ("conv2d", "N=2 C=64 H=16 W=16 O=64 R=3 S=3", {"conv2d_y_windows": SINGLE, "conv2d_y_flat": 0.0, "conv2d_y": SINGLE}),
)


def run(*arguments, **environment):
    done = subprocess.run([TKC, *map(str, arguments)], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})
    if done.returncode != 0:
        sys.exit(f"tkc {' '.join(map(str, arguments))}: status {done.returncode}\n{done.stderr}")
    return done


def main():
    problems = []
    for name, sizes, tolerance in CASES:
        options = [EXAMPLES / f"{name}.tk", *(word for size in sizes.split() for word in ("--dim", size))]
        if name == "elu":
            options += ["--kernel", "elu_forward"]
        report = json.loads(run("inspect", *options, "--target", "sm_90a", "--cost", "--json").stdout)
        log = run("run", *options, "--target", "emu", *(("--arg", "seed=1") if name == "dropout" else ()),
                  TK_LOG="1").stderr
        counted = {found[1]: [float(number) for number in found.groups()[1:]] for found in re.finditer(
            r"emulated '(\w+)': (\d+) bytes read, (\d+) written, (\d+) multiply-adds", log)}
        for launch in report["launches"]:
            if launch["symbol"] not in counted:
                problems.append(f"{name}: {launch['symbol']} was not emulated: {sorted(counted)}")
                continue
            read, written, products = counted[launch["symbol"]]
            predicted = sum(launch["matrix_multiply_adds"].values())
            moved = read + written
            print(f"{launch['symbol']:32} {launch['l2_bytes']:12.0f} {moved:12.0f} {launch['l2_bytes'] / moved:6.3f}"
                  f"  {predicted:14.0f} {products:14.0f}")
            allowed = tolerance[launch["symbol"]] if isinstance(tolerance, dict) else tolerance
            least = sum(max(tensor["read"], tensor["written"]) for tensor in launch["tensors"])
            if allowed is SINGLE and not least <= launch["l2_bytes"] <= moved:
                problems.append(f"{launch['symbol']}: {launch['l2_bytes']:.0f} bytes predicted, not between {least:.0f} and {moved:.0f}")
            if allowed is not SINGLE and abs(launch["l2_bytes"] - moved) > allowed * moved + 1e-5 * moved:
                problems.append(f"{launch['symbol']}: {launch['l2_bytes']:.0f} bytes predicted, {moved:.0f} counted")
            if abs(predicted - products) > 1e-5 * products:
                problems.append(f"{launch['symbol']}: {predicted:.0f} multiply-adds predicted, {products:.0f} counted")
    sys.exit("\n".join(problems) or None)


main()
