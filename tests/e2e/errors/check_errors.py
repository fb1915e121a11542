"""Bad input to tkc, and machines that lack something: each case must end with the right status and say what is wrong.

usage: check_errors.py TKC [NAME ...]

No case may abort, say nothing, or write to standard output.
"""

import ctypes.util
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

GEMM = """kernel gemm(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N]) {
  c[i, j] = sum[k](a[i, k] * b[k, j])
}
"""
GREATER = "kernel k(x: f32[N]) -> (y: f32[N])\nwhere N > 2, N >= 3\n{\n  y[i] = x[i]\n}\n"
DIVIDED = "kernel k(x: f32[H], w: f32[G]) -> (y: f32[H])\nwhere H % G == 0\n{\n  y[i] = x[i] * w[i / (H / G)]\n}\n"
HALVES = "kernel k(n: f32[N], x: f32[N / 2]) -> (y: f32[N]) {\n  y[i] = n[i] + x[i / 2]\n}\n"
TURNS = "kernel k(x: f32[N], t: f32[M]) -> (y: f32[N]) {\n  y[i] = x[i] + t[i % 4]\n}\n"
BF16 = GEMM.replace("f32[M, K]", "bf16[M, K]").replace("f32[K, N]", "bf16[K, N]")
F8 = "kernel gemm(a: f8e4m3[M, K], b: f8e4m3[N, K]) -> (c: bf16[M, N]) {\n  c[i, j] = sum[k](a[i, k] * b[j, k])\n}\n"
TAKE = """kernel take(x: f32[N, D], ids: i32[B]) -> (y: f32[B, D]) {
  y[b, d] = x[ids[b], d]
}
"""
ARGMAX = "kernel most(x: f32[R, C]) -> (y: i32[R]) {\n  y[r] = argmax[c](x[r, c])\n}\n"
EXCUSED = """kernel shifted(x: f32[N], w: f32[K], d: f32[M]) -> (y: f32[M], z: f32[M]) {
  y[i] = sum[k](x[i + 1] * w[k])
  z[i] = x[i + 1]
}
"""
COPY = "kernel copy(x: f32[N]) -> (y: f32[N]) {\n  y[i] = x[i]\n}\n"


def sum_of(first, last):
    """The sum of tensors x0, x1, ..., nested in halves: a flat one has too many chained operators."""
    middle = (first + last) // 2
    return f"x{first}[i]" if last - first == 1 else f"({sum_of(first, middle)} + {sum_of(middle, last)})"


def many(count):
    """A kernel of that many tensors, all of which one statement reads."""
    return (f"kernel many({', '.join(f'x{t}: f32[N]' for t in range(count))}) -> (y: f32[N]) {{\n"
            f"  y[i] = {sum_of(0, count)}\n}}\n")


def npy(descr, shape, item):
    """The bytes of a .npy file of zeros."""
    header = str({"descr": descr, "fortran_order": False, "shape": tuple(shape)})
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    count = 1
    for extent in shape:
        count *= extent
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + b"\0" * (count * item)


# name: (program, arguments, exit status, what the message must hold, files)
RUN = ["run", "x.tk", "--target", "cpu"]
LARGE = ["build", "x.tk", "--target", "sm_90a", "--emit", "cuda", "-o", "-", "--dim", "M=4096", "--dim", "N=4096",
         "--dim", "K=4096"]
PTX = ["build", "x.tk", "--target", "sm_90a", "--emit", "ptx", "-o", "-"]
GPU = ["run", "x.tk", "--target", "gpu", "--dim", "N=3"]
EMU = ["run", "x.tk", "--target", "emu", "--dim", "N=3"]
SUM = "kernel add(x: f32[N]) -> (y: f32[N]) {\n  y[i] = x[i] + 1234\n}\n"
# A compiler that takes one number for another.
MISCOMPILE = b"""for word; do
  case $word in *.cpp) sed -i s/1234/1235/ "$word" ;; esac
done
for compiler in clang++-22 clang++ g++ c++; do
  command -v $compiler >/dev/null && exec $compiler "$@"
done
"""
LIBM = ctypes.util.find_library("m") or "libm.so.6"

# What the machine is like in some of the cases; an empty value is one that is not set.
ENVIRONMENTS = {
    "no-nvrtc": {"TK_NVRTC": "/nowhere.so", "TK_CACHE": "off"},
    "nvrtc-no-library": {"TK_NVRTC": "./nvrtc.so", "TK_CACHE": "off"},
    "nvrtc-other-library": {"TK_NVRTC": LIBM, "TK_CACHE": "off"},
    "no-driver": {"TK_LIBCUDA": "/nowhere.so"},
    "driver-other-library": {"TK_LIBCUDA": LIBM},
    "no-host-compiler": {"CXX": "/nowhere"},
    "host-compiler-fails": {"CXX": "/bin/false", "TK_DUMP": "."},
    "wrong-result": {"CXX": "sh miscompile.sh"},
    "wrong-result-in-json": {"CXX": "sh miscompile.sh"},
    "no-temporary-directory": {"TMPDIR": "/nowhere"},
    "cache-not-writable": {"TK_CACHE_DIR": "/proc/tk"},
    "cache-is-a-file": {"TK_CACHE_DIR": "cache"},
    "no-place-for-a-cache": {"TK_CACHE_DIR": "", "XDG_CACHE_HOME": "", "HOME": ""},
}
CASES = {
    "nul": (b"kernel k\0(", RUN, 1, "invalid byte", {}),
    "utf8": (b"kernel k(x: f32[N])\n\xff", RUN, 1, "invalid byte", {}),
    "empty": (b"", RUN, 1, "no kernel in 'x.tk'", {}),
    "linalg-of-gpu": (COPY, ["build", "x.tk", "--target", "sm_90a", "--emit", "linalg"], 1, "has no stage 'linalg'", {}),
    "comment-only": (b"// nothing\n", RUN, 1, "no kernel in 'x.tk'", {}),
    "no-file": (None, RUN, 1, "cannot read 'x.tk': No such file", {}),
    "file-is-a-directory": (None, ["run", ".", "--target", "cpu"], 1, "cannot read '.': Is a directory", {}),
    "parentheses": (b"kernel k(x: f32[N]) -> (y: f32[N]) {\n y[i] = " + b"(" * 100000, RUN, 1, "nest", {}),
    "brackets": (b"[" * 100000, RUN, 1, "nest", {}),
    "minuses": (b"kernel k(x: f32[N]) -> (y: f32[N]) {\n y[i] = " + b"-" * 100000 + b"x[i]\n}\n", RUN, 1, "nest", {}),
    "long-sum": (
        b"kernel k(x: f32[N]) -> (y: f32[N]) {\n y[i] = x[i]" + b" + x[i]" * 30000 + b"\n}\n", RUN, 1, "operat", {}),
    "large-file": (b"// " + b"x" * (2 << 20), RUN, 1, "1048576", {}),
    "free-index": (
        b"kernel k(a: f32[M, K]) -> (c: f32[M]) {\n  c[i] = a[i, k]\n}\n", RUN, 1, "index 'k'", {}),
    "unprovable": (
        b"kernel k(x: f32[N]) -> (y: f32[N]) {\n  y[i] = x[(i * 2 + 1) % 4]\n}\n", RUN, 1, "pad(", {}),
    "rank-9": (b"kernel k(x: f32[A,A,A,A,A,A,A,A,A]) -> (y: f32[A]) {\n  y[i] = 0.0\n}\n", RUN, 1, "at most 8", {}),
    "unknown-dim": (COPY, RUN + ["--dim", "Q=3"], 1, "no dimension 'Q'", {}),
    "missing-dim": (COPY, RUN, 1, "'N'", {}),
    "two-dims": (COPY, RUN + ["--dim", "N=3", "--dim", "N=4"], 1, "dimension 'N' is given as 3 and as 4", {}),
    "negative-dim": (COPY, RUN + ["--dim", "N=-3"], 1, "at least 0", {}),
    "wide-dim": (COPY, RUN + ["--dim", "N=99999999999999999999"], 1, "--dim", {}),
    "overflow": (GEMM, RUN + ["--dim", "M=9223372036854775807", "--dim", "K=9223372036854775807", "--dim", "N=1"],
                 1, "overflow", {}),
    "overflow-63": (COPY, RUN + ["--dim", "N=9223372036854775807"], 1, "overflow", {}),
    "unknown-input": (COPY, RUN + ["--dim", "N=3", "--in", "z=zeros"], 1, "no tensor 'z'", {}),
    "unknown-arg": (COPY, RUN + ["--dim", "N=3", "--arg", "z=1"], 1, "no scalar 'z'", {}),
    # The empty range of one access does not excuse another access.
    "read-behind-the-end": (EXCUSED, RUN + ["--dim", "N=4", "--dim", "K=0", "--dim", "M=8"], 1,
        "does not hold with N = 4, M = 8", {}),
    "gap-of-nothing": (COPY, RUN + ["--dim", "N=3", "--gap", "z=1"], 1, "expected --gap TENSOR=COUNT", {}),
    "negative-gap": (COPY, RUN + ["--dim", "N=3", "--gap", "x=-1"], 1, "expected --gap TENSOR=COUNT", {}),
    "gap-of-a-dense-tensor": (GEMM, RUN + ["--dim", "M=2", "--dim", "N=2", "--dim", "K=2", "--gap", "a=1"], 1,
                              "or declare it 'strided'", {}),
    "bad-generator": (COPY, RUN + ["--dim", "N=3", "--in", "x=random:1:2"], 1, "random", {}),
    "special-with-range": (COPY, RUN + ["--dim", "N=3", "--in", "x=special:1:2:3"], 1, "special:SEED", {}),
    "special-integers": (
        b"kernel k(x: i32[N]) -> (y: i32[N]) {\n  y[i] = x[i]\n}\n", RUN + ["--dim", "N=3", "--in", "x=special:1"], 1,
        "special:SEED for floats", {}),
    "two-sizes": (GEMM, RUN + ["--dim", "M=1", "--dim", "N=1", "--in", "a=a.npy", "--in", "b=b.npy"], 1,
                  "dimension 'K' is 64", {"a.npy": npy("<f4", [1, 64], 4), "b.npy": npy("<f4", [32, 1], 4)}),
    "wrong-rank": (COPY, RUN + ["--in", "x=a.npy"], 1, "'x'", {"a.npy": npy("<f4", [2, 2], 4)}),
    "float-for-integer": (
        b"kernel k(x: i32[N]) -> (y: i32[N]) {\n  y[i] = x[i]\n}\n", RUN + ["--in", "x=a.npy"], 1,
        "expected x: i32[N]", {"a.npy": npy("<f4", [2], 4)}),
    "not-npy": (COPY, RUN + ["--in", "x=a.npy"], 1, "a.npy", {"a.npy": b"hello"}),
    "short-npy": (COPY, RUN + ["--in", "x=a.npy"], 1, "a.npy", {"a.npy": npy("<f4", [100], 4)[:200]}),
    "huge-npy": (COPY, RUN + ["--in", "x=a.npy"], 1, "a.npy",
                 {"a.npy": npy("<f4", [0], 4).replace(b"(0,)", b"(4611686018427387904, 8)")}),
    "no-npy": (COPY, RUN + ["--in", "x=none.npy"], 1, "none.npy", {}),
    "integers-need-a-range": (
        b"kernel k(x: i32[N]) -> (y: i32[N]) {\n  y[i] = x[i]\n}\n", RUN + ["--dim", "N=2"], 1, "range", {}),
    "constraint": (
        b"kernel k(x: f32[N]) -> (y: f32[N])\nwhere N % 2 == 0\n{\n  y[i] = x[i]\n}\n", RUN + ["--dim", "N=3"], 1,
        "N % 2 == 0", {}),
    "constraint-greater": (GREATER, RUN + ["--dim", "N=3"], 0, "", {}),
    "constraint-not-greater": (GREATER, RUN + ["--dim", "N=2"], 1, "N > 2", {}),
    "nothing-divided-by-nothing": (DIVIDED, RUN + ["--dim", "H=0", "--dim", "G=0", "--check"], 0, "", {}),
    "something-divided-by-nothing": (DIVIDED, RUN + ["--dim", "H=3", "--dim", "G=0"], 1, "G = 0, H = 3", {}),
    "odd-half": (HALVES, RUN + ["--dim", "N=3"], 1, "bounds check", {}),
    "even-halves": (HALVES, RUN + ["--dim", "N=4", "--check"], 0, "", {}),
    "remainder-too-large": (TURNS, RUN + ["--dim", "N=9", "--dim", "M=3"], 1, "bounds check 'i % 4 < M", {}),
    "remainder-that-is-not-reached": (TURNS, RUN + ["--dim", "N=3", "--dim", "M=3", "--check"], 0, "", {}),
    "remainder-in-bounds": (TURNS, RUN + ["--dim", "N=9", "--dim", "M=4", "--check"], 0, "", {}),
    "unknown-target": (COPY, ["run", "x.tk", "--target", "vax", "--dim", "N=3"], 1, "vax", {}),
    "unknown-architecture": (COPY, ["build", "x.tk", "--target", "sm_12", "--emit", "cuda", "-o", "-"], 1, "sm_12", {}),
    "unknown-stage": (COPY, ["build", "x.tk", "--target", "sm_90a", "--emit", "soup", "-o", "-"], 2, "soup", {}),
    "unknown-pass": (COPY, RUN + ["--dim", "N=3", "--disable-pass", "magic"], 1, "unknown pass 'magic'", {}),
    "unknown-kernel": (COPY, RUN + ["--kernel", "z", "--dim", "N=3"], 1, "no kernel 'z'", {}),
    "several-kernels": (COPY + COPY.replace("copy", "other"), RUN + ["--dim", "N=3"], 1, "--kernel", {}),
    "unknown-option": (COPY, RUN + ["--frobnicate"], 2, "", {}),
    "no-command": (COPY, [], 2, "", {}),
    "unknown-command": (COPY, ["frobnicate", "x.tk"], 2, "no command 'frobnicate'; there are build, run", {}),
    "unknown-architecture-to-run": (COPY, ["run", "x.tk", "--target", "sm_42", "--dim", "N=3"], 1,
                                    "no architecture 'sm_42'; tk knows sm_80", {}),
    "unknown-architecture-to-emulate": (COPY, ["run", "x.tk", "--target", "emu-sm_42", "--dim", "N=3"], 1,
                                        "no architecture 'sm_42'; tk knows sm_80", {}),
    "huge-tile": (
        GEMM + "schedule gemm {\n  tile i = 1048576, j = 1048576\n}\n",
        ["build", "x.tk", "--target", "sm_90a", "--emit", "cuda", "-o", "-"], 1, "tile", {}),
    "huge-threads": (
        GEMM + "schedule gemm {\n  tile i = 1024, j = 1024\n}\n",
        ["build", "x.tk", "--target", "sm_90a", "--emit", "cuda", "-o", "-"], 1,
        "x.tk:5:3: error[TK0507]: a tile of 1048576 outputs", {}),
    "huge-reduction": (
        "kernel k(x: f32[16, M, M]) -> (y: f32[16, M]) {\n  y[i, j] = sum[k](x[i, j, k])\n}\n"
        "schedule k {\n  tile j = 128, k = 1024\n}\n",
        ["build", "x.tk", "--target", "sm_90a", "--emit", "gpu", "-o", "-", "--dim", "M=2"], 1, "which hold at most 512",
        {}),
    "huge-shared": (
        BF16 + "schedule gemm {\n  tile i = 256, j = 256, k = 64\n  stages = 8\n}\n", LARGE, 1,
        "x.tk:6:3: error[TK0507]: the schedule needs ", {}),
    "huge-shared-name": (
        BF16 + "schedule gemm {\n  tile i = 256, j = 256, k = 64\n  stages = 8\n}\n", LARGE, 1, "sm_90 has 232448 B", {}),
    "few-rows-for-consumers": (
        BF16 + "schedule gemm {\n  tile i = 64\n  consumers = 2\n}\n", LARGE, 1,
        "x.tk:6:3: error[TK0507]: a tile of 64 rows cannot be shared by 2 warpgroups", {}),
    "f8-on-sm80": (
        F8, ["build", "x.tk", "--target", "sm_80", "--emit", "ptx", "-o", "-"], 1,
        "error[TK0608]: f8e4m3 products need sm_89, target is sm_80", {}),
    "invariant-columns": (
        "@batch_invariant " + BF16, ["build", "x.tk", "--target", "sm_90a", "--emit", "cuda", "-o", "-", "--dim", "N=7"], 1,
        "error[TK0609]: 'gemm' is batch-invariant, and its plan for these sizes adds in another order", {}),
    "bundle-cpu-level": (
        GEMM, ["build", "x.tk", "--emit", "bundle", "--target", "cpu-x86-64-v2", "-o", "x.tkb"], 1,
        "expected cpu, cpu-x86-64-v3 or cpu-x86-64-v4, got 'cpu-x86-64-v2'", {}),
    "f8-on-sm89": (F8, ["build", "x.tk", "--target", "sm_89", "--emit", "cuda", "-o", "x.cu"], 0, "", {}),
    "odd-tile": (
        BF16 + "schedule gemm {\n  tile i = 100\n}\n",
        ["build", "x.tk", "--target", "sm_90a", "--emit", "tiled", "-o", "x.mlir"], 0, "is used as one of 64", {}),
    "undecided-schedule": (
        BF16 + "schedule gemm when M > N {\n  tile i = 64\n}\n",
        ["build", "x.tk", "--target", "sm_90a", "--emit", "tiled", "-o", "x.mlir", "--dim", "M=64"], 0,
        "without a size for N the schedule for 'M > N' is not used", {}),
    "schedule-file": (
        GEMM, RUN + ["--schedule", "s.tk"], 1, "s.tk:2:8: error[TK0503]: kernel 'gemm' has no index 'q'",
        {"s.tk": b"schedule gemm {\n  tile q = 16\n}\n"}),
    "schedule-file-kernel": (
        GEMM, RUN + ["--schedule", "s.tk"], 1, "s.tk:1:10: error[TK0209]", {"s.tk": b"schedule gem { }\n"}),
    "schedule-file-empty": (GEMM, RUN + ["--schedule", "s.tk"], 1, "no schedule block in 's.tk'", {"s.tk": b""}),
    "schedule-file-noise": (GEMM, RUN + ["--schedule", "s.tk"], 1, "s.tk:1:1: error", {"s.tk": b"\xff\x00("}),
    "schedule-file-missing": (GEMM, RUN + ["--schedule", "s.tk"], 1, "cannot read 's.tk'", {}),
    "gather-high": (
        TAKE, RUN + ["--dim", "N=5", "--dim", "D=3", "--dim", "B=4", "--in", "ids=random:1:7:9", "--checked"], 1,
        "error[index_out_of_bounds]: index 'ids[b]' of x[ids[b], d] (axis 0) is 8, expected 0 to 4", {}),
    "gather-low": (
        TAKE, RUN + ["--dim", "N=5", "--dim", "D=3", "--dim", "B=4", "--in", "ids=random:1:-3:-2", "--checked"], 1,
        "x.tk:2:15: error[index_out_of_bounds]: index 'ids[b]' of x[ids[b], d] (axis 0) is -3", {}),
    "gather-empty": (
        TAKE, RUN + ["--dim", "N=0", "--dim", "D=3", "--dim", "B=4", "--in", "ids=zeros", "--checked"], 1,
        "expected none: the axis is empty", {}),
    "gather-inside": (
        TAKE, RUN + ["--dim", "N=5", "--dim", "D=3", "--dim", "B=4", "--in", "ids=random:1:0:5", "--checked",
                     "--check"], 0, "", {}),
    "gather-none": (
        TAKE, RUN + ["--dim", "N=5", "--dim", "D=3", "--dim", "B=0", "--in", "ids=zeros", "--checked"], 0, "", {}),
    "gather-guarded": (
        TAKE.replace("x[ids[b], d]", "if ids[b] < 5 then x[ids[b], d] else 0.0"),
        RUN + ["--dim", "N=5", "--dim", "D=3", "--dim", "B=40", "--in", "ids=random:1:0:9", "--checked"], 0, "", {}),
    "gather-unchecked": (
        TAKE, RUN + ["--dim", "N=5", "--dim", "D=3", "--dim", "B=4", "--in", "ids=random:1:7:9", "--check"], 0, "", {}),
    "assert-value": (
        TAKE.replace("{", "{\n  assert ids[b] < 7 or b < 1\n", 1),
        RUN + ["--dim", "N=9", "--dim", "D=3", "--dim", "B=4", "--in", "ids=iota", "--checked"], 0, "", {}),
    "assert-fails": (
        TAKE.replace("{", "{\n  assert ids[b] < 2\n", 1),
        RUN + ["--dim", "N=9", "--dim", "D=3", "--dim", "B=4", "--in", "ids=iota", "--checked"], 1,
        "x.tk:2:3: error[constraint_failed]: assert ids[b] < 2 fails at b = 2: ids[b] is 2 (the first of 2)", {}),
    "assert-unchecked": (
        TAKE.replace("{", "{\n  assert ids[b] < 2\n", 1),
        RUN + ["--dim", "N=9", "--dim", "D=3", "--dim", "B=4", "--in", "ids=iota", "--check"], 0, "", {}),
    "assert-gather": (
        TAKE.replace("{", "{\n  assert x[ids[b], d] < inf\n", 1),
        RUN + ["--dim", "N=3", "--dim", "D=3", "--dim", "B=4", "--in", "ids=iota", "--checked"], 1,
        "error[index_out_of_bounds]", {}),
    "assert-empty": (
        TAKE.replace("{", "{\n  assert ids[b] < 2\n", 1),
        RUN + ["--dim", "N=9", "--dim", "D=3", "--dim", "B=0", "--in", "ids=iota", "--checked"], 0, "", {}),
    "assert-sizes": (
        TAKE.replace("{", "{\n  assert ids[b + 2] >= ids[b] and ids[b] < 9\n", 1),
        RUN + ["--dim", "N=9", "--dim", "D=3", "--dim", "B=4", "--in", "ids=iota"], 1, "error[TK", {}),
    "assert-not-bool": (
        TAKE.replace("{", "{\n  assert ids[b]\n", 1), RUN, 1, "x.tk:2:10: error[TK0301]: an assertion is a condition", {}),
    "assert-no-range": (
        TAKE.replace("{", "{\n  assert ids[b + 1] > 0\n", 1), RUN, 1, "is bound: all[b in 0..B](…)", {}),
    "assert-unknown-name": (
        TAKE.replace("{", "{\n  assert ids[b] > epz\n", 1), RUN, 1, "x.tk:2:19: error[TK0201]: unknown name 'epz'", {}),
    "assert-gradient": (
        "kernel f(x: f32[N]) -> (s: f32[]) {\n  assert x[i] > 3\n  s = sum[i](x[i]^2)\n}\ngrad g = f wrt (x)\n",
        RUN + ["--kernel", "g", "--dim", "N=5", "--checked", "--check"], 0, "", {}),
    "empty-argmax": (ARGMAX, RUN + ["--dim", "R=2", "--dim", "C=0"], 1, "C is not empty for argmax[c]", {}),
    "empty-argmax-of-none": (ARGMAX, RUN + ["--dim", "R=0", "--dim", "C=0"], 0, "", {}),
    "unknown-key": (
        GEMM + "schedule gemm {\n  frob = 3\n}\n",
        ["build", "x.tk", "--target", "sm_90a", "--emit", "cuda", "-o", "-"], 1, "frob", {}),
    "too-many-parameters": (
        many(4200), ["build", "x.tk", "--target", "sm_90a", "--emit", "cuda", "-o", "-"], 1,
        "a GPU takes at most 32764", {}),
    "no-nvrtc": (COPY, PTX, 3, "cannot load NVRTC", {}),
    "nvrtc-no-library": (COPY, PTX, 3, "error[no_nvrtc]", {"nvrtc.so": b"no library"}),
    "nvrtc-other-library": (COPY, PTX, 3, "error[nvrtc_too_old]", {}),
    "no-driver": (COPY, GPU, 3, "help: the targets cpu and emu run without a GPU", {}),
    "driver-other-library": (COPY, GPU, 3, "error[driver_too_old]", {}),
    "no-host-compiler": (COPY, EMU, 1, "x.tk:1:8: error[unsupported]", {}),
    "host-compiler-fails": (COPY, EMU, 70, "x.tk:1:8: error[internal]", {}),
    "wrong-result": (SUM, EMU + ["--check"], 70, "", {"miscompile.sh": MISCOMPILE}),
    "wrong-result-in-json": (SUM, EMU + ["--check", "--json"], 70, "", {"miscompile.sh": MISCOMPILE}),
    "right-result": (SUM, EMU + ["--check"], 0, "", {}),
    "no-temporary-directory": (COPY, EMU, 3, "x.tk:1:8: error[write_failed]", {}),
    "cache-not-writable": (COPY, RUN + ["--dim", "N=3", "--check"], 0, "", {}),
    "cache-is-a-file": (COPY, RUN + ["--dim", "N=3", "--check"], 0, "", {"cache": b"not a directory"}),
    "no-place-for-a-cache": (COPY, RUN + ["--dim", "N=3", "--check"], 0, "", {}),
    "bundle-of-the-emulator": (COPY, ["build", "x.tk", "--emit", "bundle", "--target", "emu"], 1, "'emu'", {}),
    "bundle-variant": (
        COPY, ["build", "x.tk", "--emit", "bundle", "--target", "sm_90a", "--variant", "N"], 1, "--variant", {}),
    "bundle-dimension": (
        COPY, ["build", "x.tk", "--emit", "bundle", "--target", "sm_90a", "--variant", "Q=8"], 1, "dimension 'Q'", {}),
    "bundle-range": (
        COPY, ["build", "x.tk", "--emit", "bundle", "--target", "sm_90a", "--variant", "N=9..4"], 1, "got 9..4", {}),
    "bundle-architectures": (
        COPY, ["build", "x.tk", "--emit", "bundle", "--target", "sm_90a,soup"], 1, "'soup'", {}),
    "bundle-source-of-a-pipe": (
        COPY, ["build", "x.tk", "--emit", "bundle", "--target", "sm_90a", "--cpp", "x", "-o", "-"], 1, "-o PATH", {}),
    "inspect-no-bundle": (COPY, ["inspect", "y.tkb"], 1, "is not a bundle", {"y.tkb": b"hello"}),
    "inspect-no-file": (COPY, ["inspect", "y.tkb"], 1, "cannot read 'y.tkb'", {}),
    "inspect-the-cpu": (COPY, ["inspect", "x.tk", "--target", "cpu"], 1, "depends on all of its dimensions", {}),
    "bench-sizes": (COPY, ["bench", "x.tk", "--target", "cpu", "--dim", "N=8,x"], 1, "'x'", {}),
    "bench-lists": (
        GEMM, ["bench", "x.tk", "--target", "cpu", "--dim", "M=8,9", "--dim", "N=1,2,3"], 1, "lists of 2", {}),
    "bench-without-sizes": (COPY, ["bench", "x.tk", "--target", "cpu"], 1, "'N'", {}),
    "bench-unknown-pass": (
        COPY, ["bench", "x.tk", "--target", "cpu", "--dim", "N=8", "--without", "magic"], 1, "unknown pass 'magic'", {}),
    "zero-extent": (COPY, RUN + ["--dim", "N=0", "--check"], 0, "", {}),
}


def check(tkc, name):
    """Runs one case; what is wrong with it, or nothing."""
    program, arguments, status, message, files = CASES[name]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        if program is not None:
            (root / "x.tk").write_bytes(program.encode() if isinstance(program, str) else program)
        for path, contents in files.items():
            (root / path).write_bytes(contents)
        try:
            done = subprocess.run([tkc, *arguments], cwd=root, capture_output=True, timeout=60, check=False,
                                  env=os.environ | ENVIRONMENTS.get(name, {}))
        except subprocess.TimeoutExpired:
            return "takes more than a minute"
    errors = done.stderr.decode(errors="replace")
    if done.returncode != status:
        return f"status {done.returncode}, expected {status}: {errors[:300]}"
    if message not in errors:
        return f"expected '{message}' in: {errors[:300]}"
    if status == 1 and done.stdout:
        return f"wrote to standard output: {done.stdout[:100]}"
    return ""


def main():
    tkc, names = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2:] or list(CASES)
    wrong = 0
    for name in names:
        reason = check(tkc, name)
        wrong += bool(reason)
        if reason:
            print(f"{name}: {reason}")
    print(f"{len(names) - wrong} of {len(names)} cases right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
