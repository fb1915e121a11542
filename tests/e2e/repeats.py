"""Launches kernels of every family many times on the GPU; every result must have the first one's bits.

    TK_LIBRARY=…/libtk.so python3 tests/e2e/repeats.py [repeats]

Needs PyTorch. Other work runs beside each launch in a second stream, so that blocks start in another order.
"""
import os
import re
import sys

import torch

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))
import tk  # noqa: E402

EXAMPLES, PROGRAMS = "examples/", "tests/e2e/programs/"
# A file, its kernel, sizes, scalars, and the ranges of integer tensors.
CASES = (
    (EXAMPLES + "gemm.tk", "", dict(M=1000, N=1111, K=777), {}, {}),
    (EXAMPLES + "gemm.tk", "", dict(M=4096, N=4096, K=1024), {}, {}),
    (EXAMPLES + "gemm.tk", "", dict(M=128, N=1024, K=14336), {}, {}),
    (EXAMPLES + "gemm.tk", "", dict(M=4, N=4096, K=4096), {}, {}),
    (EXAMPLES + "gemm_f32.tk", "", dict(M=1000, N=520, K=300), {}, {}),
    (EXAMPLES + "linear_int8.tk", "", dict(M=16, N=1024, K=4096), {}, {"w": (-127, 128)}),
    (EXAMPLES + "swiglu.tk", "", dict(M=512, N=1024, K=512), {}, {}),
    (PROGRAMS + "product_rows.tk", "", dict(M=1000, N=1040, K=512), {}, {}),
    (PROGRAMS + "products.tk", "f8_narrow", dict(M=512, N=512, K=1024), {}, {}),
    (PROGRAMS + "register_operands.tk", "tf32_tn", dict(M=512, N=528, K=1024), {}, {}),
    (PROGRAMS + "split_product.tk", "", dict(M=100, N=104, K=5000), {}, {}),
    (EXAMPLES + "attention.tk", "", dict(B=2, H=8, G=2, S=1000, T=1024, D=128, E=128), {}, {}),
    (EXAMPLES + "attention.tk", "", dict(B=4, H=8, G=2, S=1, T=9000, D=128, E=128), {}, {}),
    (EXAMPLES + "attention.tk", "", dict(B=4, H=8, G=2, S=4, T=9000, D=128, E=128), {}, {}),
    (EXAMPLES + "attention.tk", "", dict(B=4, H=8, G=2, S=16, T=9000, D=128, E=128), {}, {}),
    (EXAMPLES + "attention_plain.tk", "", dict(B=2, H=70, S=1000, T=2000, D=64, E=64), {}, {}),
    (EXAMPLES + "attention_window.tk", "", dict(B=1, H=8, S=2000, D=128), {"window": 300}, {}),
    (PROGRAMS + "attention_ragged.tk", "", dict(B=8, H=8, G=2, S=4, T=3000, D=128), {}, {"length": (0, 3001)}),
    (PROGRAMS + "attention_shares.tk", "causal", dict(B=8, H=8, G=2, S=4, T=3000, D=128), {}, {"length": (0, 3001)}),
    (PROGRAMS + "attention_ragged.tk", "", dict(B=8, H=8, G=2, S=16, T=3000, D=128), {}, {"length": (0, 3001)}),
    (EXAMPLES + "attention_paged.tk", "", dict(B=8, H=8, G=2, D=128, PAGES=900, P=16, MAX=100), {},
     {"pages": (0, 900), "length": (1, 1600)}),
    (EXAMPLES + "layernorm.tk", "", dict(R=1000, C=4096), {}, {}),
    (EXAMPLES + "layernorm.tk", "", dict(R=999, C=4093), {}, {}),
    (EXAMPLES + "layernorm.tk", "", dict(R=40, C=131072), {}, {}),
    (EXAMPLES + "softmax.tk", "", dict(R=300, C=16384), {}, {}),
    (EXAMPLES + "softmax.tk", "", dict(R=20, C=524288), {}, {}),
    (EXAMPLES + "rmsnorm_residual.tk", "", dict(R=200, C=65536), {}, {}),
    (EXAMPLES + "cross_entropy.tk", "", dict(R=500, V=32000), {}, {"label": (0, 32000)}),
    (EXAMPLES + "cumsum.tk", "", dict(R=30, C=100000), {}, {}),
    (PROGRAMS + "column_scans.tk", "", dict(R=9000, C=500), {}, {}),
    (PROGRAMS + "column_statistics.tk", "", dict(R=9000, C=500), {}, {}),
    (PROGRAMS + "moments.tk", "columns", dict(R=9000, C=500), {}, {}),
    (PROGRAMS + "window_apart.tk", "capped", dict(H=8, S=3000, T=3000, D=128, E=128), {"cap": 30.0, "window": 1000}, {}),
    (PROGRAMS + "sums_of_products.tk", "added", dict(M=1100, N=1032, K=256, L=256), {}, {}),
    (PROGRAMS + "first_keys.tk", "first", dict(H=8, S=3000, D=128, E=128), {"window": 500, "n": 4}, {}),
    (PROGRAMS + "two_results.tk", "gated", dict(M=1100, K=512, N=1032), {}, {}),
    (PROGRAMS + "shared_terms.tk", "nearest", dict(B=3, M=100, N=5000), {}, {}),
    (PROGRAMS + "totals.tk", "both", dict(R=9000, C=2048), {}, {}),
    (EXAMPLES + "argmax.tk", "", dict(R=100, C=30000), {}, {}),
    (PROGRAMS + "long_sum.tk", "", dict(N=10000000), {}, {}),
)
DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
          "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2, "i64": torch.int64, "i32": torch.int32,
          "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool}


def inputs(signature, sizes, ranges):
    """Tensors for the parameters of a signature such as "f(x: f32[N, K / 2], s: f32) -> (y: f32[N])"."""
    made = {}
    for name, dtype, extents in re.findall(r"(\w+): (?:\w+ )*(\w+)\[([^\]]*)\]", signature.split("->")[0]):
        shape = [eval(extent.replace("/", "//"), {}, sizes) for extent in extents.split(",")]
        if name in ranges:
            made[name] = torch.randint(*ranges[name], shape, device="cuda", dtype=DTYPES[dtype])
        else:
            made[name] = torch.randn(shape, device="cuda").to(DTYPES[dtype])
    return made


def differing(kernel, given, scalars, repeats):
    """How many of `repeats` launches have another bit than the first one."""
    def launch():
        results = kernel(**given, **scalars)
        return results if isinstance(results, tuple) else (results,)

    def bits(result):
        return result.reshape(-1).view(torch.uint8)

    first = [bits(result).clone() for result in launch()]
    beside, other = torch.cuda.Stream(), torch.empty(1 << 22, device="cuda")
    count = torch.zeros((), dtype=torch.int64, device="cuda")
    for repeat in range(repeats):
        with torch.cuda.stream(beside):
            other[: 1 + repeat * 4093 % other.numel()].mul_(0.5)
        count += ~torch.stack([(bits(a) == b).all() for a, b in zip(launch(), first)]).all()
    return int(count)


def main():
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    torch.manual_seed(1)
    bad = 0
    for path, name, sizes, scalars, ranges in CASES:
        module = tk.compile_file(os.path.join(ROOT, path))
        kernel = module[name or module.kernels[0]]
        wrong = differing(kernel, inputs(kernel.signature, sizes, ranges), scalars, repeats)
        bad += wrong > 0
        if wrong:
            print(f"DIFFERS {path} {name} {sizes}: {wrong} of {repeats}")
    print(f"repeat: {len(CASES) - bad} cases with the same bits in {repeats} launches, {bad} without")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
