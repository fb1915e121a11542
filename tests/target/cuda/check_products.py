#!/usr/bin/env python3
"""Compiles products in the sizes that they are measured in; fails on a spill or a note of ptxas that
means a slow kernel (C75..: registers not moved, warpgroup products serialised).

Usage: check_products.py TKC SOURCE_DIR   Exit status 77: no NVRTC on this machine.
"""
import os
import re
import subprocess
import sys
import tempfile

LARGE = {"M": 4096, "N": 4096, "K": 4096}
CASES = [
    ("examples/gemm.tk", None, LARGE),
    ("examples/gemm.tk", None, {"M": 4000, "N": 4040, "K": 4104}),
    ("examples/gemm.tk", None, {"M": 512, "N": 512, "K": 512}),
    ("examples/linear_gelu.tk", None, LARGE),
    ("examples/swiglu.tk", None, LARGE),
    ("examples/swiglu.tk", None, {"M": 8, "N": 14336, "K": 4096}),
    ("examples/batched_gemm.tk", None, {"B": 64, "M": 1024, "N": 1024, "K": 1024}),
    ("tests/e2e/programs/products.tk", "nt", {"M": 256, "N": 14336, "K": 4096}),
    ("tests/e2e/programs/products.tk", "tn", LARGE),
    ("tests/e2e/programs/products.tk", "tt", LARGE),
    ("tests/e2e/programs/products.tk", "residual", LARGE),
    ("tests/e2e/programs/products.tk", "nt", {"M": 16, "N": 14336, "K": 4096}),
    ("tests/e2e/programs/products.tk", "nt", {"M": 1024, "N": 1024, "K": 16384}),
    ("tests/e2e/programs/products.tk", "nt", {"M": 4000, "N": 4040, "K": 4104}),
    ("tests/e2e/programs/products.tk", "f8", LARGE),
    ("tests/e2e/programs/products.tk", "i8", LARGE),
    ("tests/e2e/programs/wide_products.tk", "nn", LARGE),
    ("tests/e2e/programs/wide_products.tk", "nt", LARGE),
    ("tests/e2e/programs/wide_products.tk", "tn", LARGE),
    ("tests/e2e/programs/wide_products.tk", "tt", LARGE),
    ("tests/e2e/programs/wide_products.tk", "nn", {"M": 1000, "N": 1001, "K": 999}),
    ("tests/e2e/programs/wide_products.tk", "fused", LARGE),
    ("tests/e2e/programs/wide_products.tk", "mixed", LARGE),
]
# Chains of products: where registers are short, and where work is moved under products in flight.
PLAIN = {"B": 1, "H": 16, "S": 4096, "T": 4096}
GROUPED = {**PLAIN, "G": 4}
BY_POSITION = {"B": 1, "H": 16, "S": 4096}
for width in (64, 128, 256):
    values = {"D": width, "E": width}
    CASES += [("examples/attention.tk", None, {**GROUPED, **values}),
              ("examples/attention_plain.tk", None, {**PLAIN, **values})]
for width in (64, 128):
    values = {"D": width, "E": width}
    CASES += [("examples/attention_sigmoid.tk", None, {**PLAIN, **values}),
              ("examples/attention_window.tk", None, {**BY_POSITION, "D": width}),
              ("tests/e2e/programs/attention_f8.tk", "transposed", {"H": 16, "S": 4096, "T": 4096, **values})]
    CASES.append(("tests/e2e/programs/causal_sums.tk", "linear", {"H": 32, "S": 4096, **values}))
CASES.append(("tests/e2e/programs/alibi_window.tk", None, {"H": 16, "S": 4096, "D": 128}))

# Bytes that a thread may spill: beside 256 columns, the code that computes single results again. An H200 takes no longer with it
# (lab/results/2026-11-30-h200-odd-programs.md).
SPILLS = {("examples/attention.tk", 256): 4}


def main() -> int:
    tkc, source = sys.argv[1:]
    bad = 0
    for path, kernel, dims in CASES:
        with tempfile.TemporaryDirectory() as dump:
            words = [tkc, "build", os.path.join(source, path), "--target", "sm_90a", "--emit", "cubin",
                     "-o", os.path.join(dump, "kernel.cubin")]
            words += ["--kernel", kernel] if kernel else []
            words += [word for name, size in dims.items() for word in ("--dim", f"{name}={size}")]
            done = subprocess.run(words, capture_output=True, text=True,
                                  env=dict(os.environ, TK_DUMP=dump, TK_CACHE="off"))
            if done.returncode == 3:
                print(done.stderr.strip())
                return 77
            texts = {name.rsplit(".", 1)[-1]: open(os.path.join(dump, name), errors="replace").read()
                     for name in os.listdir(dump) if name.endswith((".log", ".cu"))}
        log = texts.get("log", "")
        spills = [int(n) for n in re.findall(r"(\d+) bytes spill", log)]
        notes = re.findall(r"C75\d\d", log)
        # Warpgroups do not multiply f64.
        product = "tk::mma_m16n8" if "wide_products" in path else "tk::warpgroup_mma"
        ok = (done.returncode == 0 and spills and max(spills) <= SPILLS.get((path, dims.get("D")), 0) and not notes
              and product in texts.get("cu", ""))
        print("ok  " if ok else "FAIL", path, kernel or "", dims)
        if not ok:
            bad += 1
            print(done.stderr, log)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
