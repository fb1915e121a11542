"""Products against cuBLAS (torch.mm, torch.bmm), cublasLt (torch._scaled_mm) and eager PyTorch: TFLOP/s
and the ratio. `gemm.py quick` takes a few sizes of bf16 only; `gemm.py few` takes few rows, of bf16 and of
weights in 8 bits with scales (the peer multiplies by them in bf16), and gives times over those of the bytes;
`gemm.py f32` takes f32 in many sizes, with the errors of both; `gemm.py fused` compares products with what
follows them with all peers: eager, cublasLt's epilogue, torch.compile and its max-autotune; `gemm.py odd` takes
rows and columns that tiles do not divide."""
import logging
import math
import sys

import torch
import torch.nn.functional as F

import peers

torch.backends.cuda.matmul.allow_tf32 = False
SOURCE = "kernel gemm(a: {t}[{left}], b: {t}[{right}]) -> (c: {t}[M, N]) {{ c[i, j] = sum[k](a[{x}] * b[{y}]) }}"
WIDE = ((2048, 4096, 4096), (8192, 14336, 4096), (8192, 4096, 14336), (1024, 1024, 16384), (512, 4096, 4096),
        (256, 4096, 4096), (8192, 8192, 256), (4000, 4040, 4104), (3001, 3001, 3001), (1400, 1400, 1400),
        (1000, 1001, 999), (768, 768, 768), (512, 512, 512))
# The names are those of the source: N and T say whether an operand is stored as it is multiplied.
LAYOUTS = {"NN": ("M, K", "K, N", "i, k", "k, j"), "NT": ("M, K", "N, K", "i, k", "j, k"),
           "TN": ("K, M", "K, N", "k, i", "k, j"), "TT": ("K, M", "N, K", "k, i", "j, k")}
TF32 = "kernel tf32(a: f32[{left}], b: f32[{right}]) -> (c: f32[M, N]) {{ c[i, j] = sum[k; tf32](a[{x}] * b[{y}]) }}"
F8 = "kernel f8(a: f8e4m3[M, K], b: f8e4m3[N, K]) -> (c: bf16[M, N]) {{ c[i, j] = sum[k{fast}](a[i, k] * b[j, k]) }}"
INT8 = """kernel int8(x: bf16[M, K], w: {t}[N, K], scale: f32[N, K / 128]) -> (y: bf16[M, N])
where K % 128 == 0 {{ y[m, n] = {sum} }}"""
INT8_SUMS = {"in the factor": "sum[k](x[m, k] * (f32(w[n, k]) * scale[n, k / 128]))",
             "of each group": "sum[g](scale[n, g] * sum[k in 0..128](x[m, g * 128 + k] * f32(w[n, g * 128 + k])))"}
RESIDUAL = """kernel residual(x: bf16[M, K], w: bf16[N, K], r: bf16[M, N]) -> (y: bf16[M, N], s: f32[M]) {
  y[m, n] = sum[k](x[m, k] * w[n, k]) + r[m, n]
  s[m] = mean[n](y[m, n] * y[m, n])
}"""
LINEAR_TANH = """kernel linear_tanh(x: bf16[M, K], w: bf16[N, K], bias: bf16[N]) -> (y: bf16[M, N]) {
  y[i, j] = gelu_tanh(sum[k](x[i, k] * w[j, k]) + bias[j])
}"""
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "f64": torch.float64}
LARGE = ((4096, 4096, 4096), (8192, 8192, 8192), (16384, 16384, 4096), (8192, 14336, 4096),
         (8192, 4096, 14336), (8192, 6144, 4096), (2048, 4096, 4096), (1024, 1024, 16384),
         (4000, 4040, 4104), (512, 512, 512))
FLAT = ((16, 14336, 4096), (64, 14336, 4096), (128, 14336, 4096), (256, 14336, 4096),
        (128, 4096, 14336))
ODD = tuple((m, 8192, 4096) for m in (24, 33, 40, 48, 65, 80, 96, 100, 120, 129, 160, 200, 300, 384, 500, 1000)) + tuple(
    (4096, n, 4096) for n in (40, 96, 200, 320, 640, 1040, 1152, 1504, 2112)) + (
    (640, 8192, 4096), (700, 8192, 4096), (1025, 8192, 4096), (1152, 8192, 4096), (768, 3072, 4096), (1152, 1152, 8192),
    (1408, 1408, 1408), (3008, 3008, 3008))
QUICK = ((4096, 4096, 4096), (8192, 8192, 8192), (4000, 4040, 4104), (512, 512, 512))


def compare(name, ours, peer, flops, wrong=0.0, bound=1e-2):
    ms, peer_ms = peers.times([ours, peer])
    note = "" if wrong < bound else f"  WRONG {wrong:.2g}"
    print(f"{name:34} tk {flops / ms * 1e-9:7.1f}  peer {flops / peer_ms * 1e-9:7.1f}  "
          f"ratio {peer_ms / ms:.3f}{note}", flush=True)
    return peer_ms / ms


def product(m, n, k, dtype, layout):
    """Two calls, ours and the peer's, and how far apart their results are."""
    left, right, x, y = LAYOUTS[layout]
    sizes = {"M": m, "N": n, "K": k}
    a, b = (peers.normal(*(sizes[d] for d in shape.split(", ")), dtype=TYPES[dtype], seed=seed)
            for seed, shape in enumerate((left, right)))
    c, want = (torch.empty(m, n, device="cuda", dtype=TYPES[dtype]) for _ in range(2))
    kernel = peers.Kernel(source=SOURCE.format(t=dtype, left=left, right=right, x=x, y=y))
    factors = (a.t() if layout[0] == "T" else a), (b.t() if layout[1] == "T" else b)
    run, peer = (lambda: kernel(a, b, c)), (lambda: torch.mm(*factors, out=want))
    run()
    peer()
    return run, peer, peers.error(c, want)


def case(m, n, k, dtype, layout):
    run, peer, wrong = product(m, n, k, dtype, layout)
    return compare(f"{dtype:5}{layout:4}{m:7}{n:7}{k:7}", run, peer, 2 * m * n * k, wrong)


def wide(m, n, k, layout):
    """A product in f32, also as it is emitted for CUDA cores, and each one's error against f64 in 256 rows."""
    left, right, x, y = LAYOUTS[layout]
    sizes = {"M": m, "N": n, "K": k}
    a, b = (peers.normal(*(sizes[d] for d in shape.split(", ")), dtype=torch.float32, seed=seed)
            for seed, shape in enumerate((left, right)))
    source = SOURCE.format(t="f32", left=left, right=right, x=x, y=y)
    kernels = [peers.Kernel(source=source, disabled=name) for name in ("", "tk-split-significands")]
    factors = (a.t() if layout[0] == "T" else a), (b.t() if layout[1] == "T" else b)
    results = [torch.empty(m, n, device="cuda") for _ in range(3)]
    runs = [lambda kernel=kernel, c=c: kernel(a, b, c) for kernel, c in zip(kernels, results)]
    runs.append(lambda: torch.mm(*factors, out=results[2]))
    for run in runs:
        run()
    exact = factors[0][:256].double() @ factors[1].double()
    errors = [peers.error(c[:256], exact) for c in results]
    ms = peers.times(runs, repeats=11)
    rates = [2e-9 * m * n * k / time for time in ms]
    print(f"f32  {layout} {m:6} {n:6} {k:6}  tk {rates[0]:6.1f}, on CUDA cores {rates[1]:5.1f}  peer {rates[2]:5.1f}  "
          f"ratio {ms[2] / ms[0]:.3f} ({ms[2] / ms[1]:.3f})  errors {errors[0]:.2g} ({errors[1]:.2g}) {errors[2]:.2g}",
          flush=True)
    return ms[2] / ms[0]


def batched(count, size):
    kernel = peers.Kernel(path="examples/batched_gemm.tk")
    a, b = (peers.normal(count, size, size, dtype=torch.float16, seed=seed) for seed in (0, 1))
    c, want = torch.empty_like(a), torch.empty_like(a)
    run, peer = (lambda: kernel(a, b, c)), (lambda: torch.bmm(a, b, out=want))
    run()
    peer()
    return compare(f"f16  {count} x {size}^3", run, peer, 2 * count * size**3, peers.error(c, want))


def tf32(size, layout):
    left, right, x, y = LAYOUTS[layout]
    kernel = peers.Kernel(source=TF32.format(left=left, right=right, x=x, y=y))
    a, b = (peers.normal(size, size, dtype=torch.float32, seed=seed) for seed in (0, 1))
    factors = (a.t() if layout[0] == "T" else a), (b.t() if layout[1] == "T" else b)
    c, want = torch.empty_like(a), torch.empty_like(a)
    torch.backends.cuda.matmul.allow_tf32 = True
    run, peer = (lambda: kernel(a, b, c)), (lambda: torch.mm(*factors, out=want))
    run()
    peer()
    ratio = compare(f"tf32 {layout}  {size}^3", run, peer, 2 * size**3, peers.error(c, want))
    torch.backends.cuda.matmul.allow_tf32 = False
    return ratio


def f8(size, fast):
    """With sums in f32, or with those of the hardware (`fast`)."""
    kernel = peers.Kernel(source=F8.format(fast="; fast" if fast else ""))
    a, b = (peers.normal(size, size, dtype=torch.float32, seed=seed).to(torch.float8_e4m3fn)
            for seed in (0, 1))
    c, one = torch.empty(size, size, device="cuda", dtype=torch.bfloat16), torch.ones((), device="cuda")
    run = lambda: kernel(a, b, c)
    peer = lambda: torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=fast)
    run()
    return compare(f"f8   NT  {size}^3{', fast' if fast else ''}", run, peer, 2 * size**3, peers.error(c, peer()))


def weights8(m, n, k, form, dtype="i8"):
    """Like `product`, with weights of 8 bits whose scales are in the factor or after the sum of each group."""
    kernel = peers.Kernel(source=INT8.format(t=dtype, sum=INT8_SUMS[form]))
    x, w = peers.normal(m, k), torch.randint(-127, 128, (n, k), device="cuda", dtype=torch.int8)
    if dtype == "f8e4m3":
        w = (w.float() / 32).to(torch.float8_e4m3fn)
    scale = torch.rand(n, k // 128, device="cuda") * 0.02 + 0.01
    weights = (w.float() * scale.repeat_interleave(128, 1)).bfloat16()
    y, want = (torch.empty(m, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    run, peer = (lambda: kernel(x, w, scale, y)), (lambda: torch.mm(x, weights.t(), out=want))
    run()
    peer()
    return run, peer, peers.error(y, want)


def int8(m, n, k, form):
    run, peer, wrong = weights8(m, n, k, form)
    return compare(f"i8   scale {form} {m} {n} {k}", run, peer, 2 * m * n * k, wrong)


def few(n, k):
    """What bounds all of them is reading the factor: times over that of its bytes, with those of rows and
    results, at the rate of a copy. The factor may be in the cache in part, or not at all."""
    bandwidth = peers.copy_bandwidth()
    print(f"a copy reads and writes {bandwidth * 1e-12:.2f} TB/s")

    def show(name, m, factor, run, peer, wrong):
        least = (factor + 2 * m * (n + k)) / bandwidth * 1e3
        parts = []
        for where in ("", "cold "):
            ms, peer_ms = peers.times([run, peer], cold=bool(where))
            parts.append(f"{where}{ms * 1e3:6.1f} us, of bytes {ms / least:.3f}, ratio {peer_ms / ms:.3f}")
        print(f"{name:30} {m:2}  " + "  ".join(parts) + ("" if wrong < 1e-2 else f"  WRONG {wrong:.2g}"), flush=True)

    for m in (1, 2, 4, 8, 16):
        for layout in ("NN", "NT"):
            show(f"bf16 {layout}", m, 2 * n * k, *product(m, n, k, "bf16", layout))
        for form in INT8_SUMS:
            for dtype in ("i8", "f8e4m3"):
                show(f"{dtype} scale {form}", m, n * k + n * k // 32, *weights8(m, n, k, form, dtype))


def contend(name, ours, others, flops):
    """Like `compare`, with the best of several peers by name."""
    times = peers.times([ours] + list(others.values()), repeats=20)
    rates = "  ".join(f"{peer} {flops / ms * 1e-9:.1f}" for peer, ms in zip(others, times[1:]))
    print(f"{name:34} tk {flops / times[0] * 1e-9:7.1f}  {rates}  ratio to the best "
          f"{min(times[1:]) / times[0]:.3f}", flush=True)


def compiled(function):
    modes = (("compiled", "default"), ("autotuned", "max-autotune-no-cudagraphs"))
    return {name: torch.compile(function, dynamic=False, mode=mode) for name, mode in modes}


def add_residual(x, w, r):
    """What the next RMSNorm needs: the sum, and the mean square of its rows."""
    y = F.linear(x, w) + r
    return y, y.float().square().mean(-1)


def fused(m, n, k):
    x = peers.normal(m, k, dtype=torch.bfloat16)
    w, bias = peers.normal(n, k, dtype=torch.bfloat16, seed=1), peers.normal(n, dtype=torch.bfloat16, seed=2)
    gate, up = (peers.normal(k, n, dtype=torch.bfloat16, seed=seed) for seed in (1, 2))
    y, r = torch.empty(m, n, device="cuda", dtype=torch.bfloat16), peers.normal(m, n, seed=3)
    squares = torch.empty(m, device="cuda")
    linear, gated = (peers.Kernel(path=f"examples/{name}.tk") for name in ("linear_gelu", "swiglu"))
    tanh = peers.Kernel(source=LINEAR_TANH)
    residual = peers.Kernel(source=RESIDUAL)
    cublaslt = lambda: torch._addmm_activation(bias, x, w.t(), use_gelu=True)
    functions = {
        # cublasLt's epilogue has the approximation by tanh, not the error function.
        "linear + gelu": (lambda: linear(x, w, bias, y), lambda x, w, bias: F.gelu(F.linear(x, w, bias)),
                          (x, w, bias), 2, cublaslt),
        "linear + gelu by tanh": (lambda: tanh(x, w, bias, y),
                                  lambda x, w, bias: F.gelu(F.linear(x, w, bias), approximate="tanh"),
                                  (x, w, bias), 2, cublaslt),
        "swiglu": (lambda: gated(x, gate, up, y), lambda x, gate, up: F.silu(x @ gate) * (x @ up),
                   (x, gate, up), 4, None),
        "linear + residual": (lambda: residual(x, w, r, y, squares), add_residual, (x, w, r), 2, None),
    }
    for name, (run, eager, arguments, products, epilogue) in functions.items():
        others = {"eager": eager, **compiled(eager)}
        others = {peer: (lambda f=function: f(*arguments)) for peer, function in others.items()}
        if epilogue:
            others["cublasLt"] = epilogue
        run()
        contend(f"{name} {m} {n} {k}", run, others, products * m * n * k)


def linear_gelu(m, n, k):
    kernel = peers.Kernel(path="examples/linear_gelu.tk")
    x, w = (peers.normal(rows, k, dtype=torch.bfloat16, seed=seed) for seed, rows in enumerate((m, n)))
    bias, y = peers.normal(n, dtype=torch.bfloat16, seed=2), torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    run, peer = (lambda: kernel(x, w, bias, y)), (lambda: F.gelu(F.linear(x, w, bias)))
    run()
    return compare(f"linear + gelu {m} {n} {k}", run, peer, 2 * m * n * k, peers.error(y, peer()))


def swiglu(m, n, k):
    kernel = peers.Kernel(path="examples/swiglu.tk")
    x = peers.normal(m, k, dtype=torch.bfloat16)
    gate, up = (peers.normal(k, n, dtype=torch.bfloat16, seed=seed) for seed in (1, 2))
    y = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    run, peer = (lambda: kernel(x, gate, up, y)), (lambda: F.silu(x @ gate) * (x @ up))
    run()
    return compare(f"swiglu {m} {n} {k}", run, peer, 4 * m * n * k, peers.error(y, peer()))


def linear_residual(m, n, k):
    kernel = peers.Kernel(source=RESIDUAL)
    x, w, r = (peers.normal(*shape, seed=seed) for seed, shape in enumerate(((m, k), (n, k), (m, n))))
    y, squares = torch.empty_like(r), torch.empty(m, device="cuda")
    run, peer = (lambda: kernel(x, w, r, y, squares)), (lambda: add_residual(x, w, r))
    run()
    want = peer()
    return compare(f"linear + residual {m} {n} {k}", run, peer, 2 * m * n * k,
                   max(peers.error(y, want[0]), peers.error(squares, want[1])))


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


if __name__ == "__main__":
    if sys.argv[1:] == ["fused"]:
        logging.disable(logging.ERROR)  # of candidates that max-autotune drops
        fused(4096, 4096, 4096), fused(8192, 14336, 4096)
        sys.exit()
    if sys.argv[1:] == ["few"]:
        few(14336, 4096)
        sys.exit()
    if sys.argv[1:] == ["odd"]:
        ratios = [case(*size, "bf16", "NT") for size in ODD]
        print(f"odd sizes: geometric mean of the ratios {mean(ratios):.3f}, least {min(ratios):.3f}")
        sys.exit()
    if sys.argv[1:] == ["f32"]:
        ratios = [wide(size, size, size, layout) for size in (8192, 4096, 2048, 1024) for layout in LAYOUTS]
        ratios += [wide(*size, layout) for size in WIDE for layout in ("NN", "NT")]
        print(f"f32: geometric mean of the ratios {mean(ratios):.3f}, least {min(ratios):.3f}")
        sys.exit()
    quick = sys.argv[1:] == ["quick"]
    ratios = [case(*size, "bf16", layout) for layout in ("NN", "NT", "TN")
              for size in (QUICK if quick else LARGE + FLAT)]
    if not quick:
        ratios += [case(*size, "f16", "NN") for size in QUICK] + [batched(64, 1024)]
    print(f"16 bits: geometric mean of the ratios {mean(ratios):.3f}, least {min(ratios):.3f}")
    if not quick:
        f8(4096, True), f8(8192, True), f8(4096, False), f8(8192, False)
        for layout in LAYOUTS:
            tf32(4096, layout), tf32(8192, layout)
        for form in INT8_SUMS:
            int8(16, 14336, 4096, form)
        for size in ((4096, 4096, 4096), (8192, 14336, 4096)):
            linear_gelu(*size)
            swiglu(*size)
            linear_residual(*size)
        for layout in LAYOUTS:
            for size in (2048, 4096, 8192):
                case(size, size, size, "f32", layout)
            for size in (2048, 4096):
                case(size, size, size, "f64", layout)
            case(1000, 1001, 999, "f64", layout)
