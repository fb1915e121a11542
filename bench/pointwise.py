"""Element by element, matrix times vector, and results in place, beside a copy and eager PyTorch.

    bench/pointwise.py [WORD]…   only the lines whose name contains one of the words
    --repeats N                  calls of each, in alternation (9)

Inputs are standard-normal. A line has tk's median, the copy's of as many bytes (read and written) by the bandwidth that a
device-to-device copy of 2 GiB has, tk's rate as a part of the copy's, eager's median and the error against eager,
relative to the results' norm. Wanted: 0.97 of the copy for lines of f32 element by element, 0.9 else.
"""
import argparse

import torch
import torch.nn.functional as F

import peers

F32, BF16 = torch.float32, torch.bfloat16
NAMES = {F32: "f32", BF16: "bf16"}


def pointwise(dtype, expression, eager, rows=4096, columns=65536):
    def make():
        source = f"kernel k(x: {NAMES[dtype]}[R, C]) -> (y: {NAMES[dtype]}[R, C]) {{ y[r, c] = {expression} }}"
        x = peers.normal(rows, columns, dtype=dtype)
        y = torch.empty_like(x)
        return source, (x, y), y, lambda: eager(x), 2 * x.nbytes
    return make


def quotient(rows=4096, columns=65536):
    def make():
        source = "kernel k(x: f32[R, C], z: f32[R, C]) -> (y: f32[R, C]) { y[r, c] = x[r, c] / z[r, c] }"
        x, z = (peers.normal(rows, columns, dtype=F32, seed=n) for n in (0, 1))
        y = torch.empty_like(x)
        return source, (x, z, y), y, lambda: x / z, 3 * x.nbytes
    return make


def vector(dtype, rows, depth, columns, left="x[i, k]", right="w[k, j]"):
    """Sums of `depth` terms; the texts say which axis of a factor is which."""
    def make():
        shapes = {"i": rows, "k": depth, "j": columns}
        axes = [text[2:-1].split(", ") for text in (left, right)]
        extents = {"i": "M", "k": "K", "j": "N"}
        tensors = [f"{name}: {NAMES[dtype]}[{', '.join(extents[a] for a in of)}]" for name, of in zip("xw", axes)]
        source = (f"kernel k({', '.join(tensors)}) -> (y: {NAMES[dtype]}[M, N]) "
                  f"{{ y[i, j] = sum[k]({left} * {right}) }}")
        x, w = (peers.normal(*(shapes[a] for a in of), dtype=dtype, seed=n) for n, of in enumerate(axes))
        y = torch.empty(rows, columns, dtype=dtype, device="cuda")
        a, b = x if axes[0] == ["i", "k"] else x.T, w if axes[1] == ["k", "j"] else w.T
        return source, (x, w, y), y, lambda: a @ b, x.nbytes + w.nbytes + y.nbytes
    return make


def in_place(natural, rows=16384, columns=4096):
    def make():
        body = ("residual[r, c] = x[r, c] + residual[r, c]\n"
                "  y[r, c] = residual[r, c] * rsqrt(mean[k](residual[r, k]^2) + eps) * g[c]" if natural else
                "let h[r, c] = x[r, c] + residual[r, c]\n"
                "  y[r, c] = h[r, c] * rsqrt(mean[k](h[r, k]^2) + eps) * g[c]\n  residual[r, c] = h[r, c]")
        source = ("kernel k(x: bf16[R, C], inout residual: bf16[R, C], g: bf16[C], eps: f32 = 1e-6) -> "
                  f"(y: bf16[R, C]) {{\n  {body}\n}}")
        # Adding nothing leaves what is in place as it is from call to call.
        x = torch.zeros(rows, columns, dtype=BF16, device="cuda")
        residual, g = peers.normal(rows, columns), peers.normal(columns)
        y = torch.empty_like(x)

        def eager():
            h = x + residual
            return F.rms_norm(h.float(), (columns,), g.float(), 1e-6).to(BF16)
        return source, (x, residual, g, 1e-6, y), y, eager, 4 * x.nbytes
    return make


WIDE = {"rows": 4096, "columns": 393216}  # more than 2^30 elements: addresses take 64 bits
HARD = "clamp((x[r, c] + 3.0) / 6.0, 0.0, 1.0)"
SIGN = "x[r, c] / (1.0 + abs(x[r, c]))"
CASES = {
    "relu f32": pointwise(F32, "max(x[r, c], 0.0)", torch.relu),
    "hard_sigmoid f32": pointwise(F32, HARD, F.hardsigmoid),
    "sigmoid f32": pointwise(F32, "sigmoid(x[r, c])", torch.sigmoid),
    "softsign f32": pointwise(F32, SIGN, F.softsign),
    "exp f32": pointwise(F32, "exp(x[r, c])", torch.exp),
    "silu f32": pointwise(F32, "silu(x[r, c])", F.silu),
    "tanh f32": pointwise(F32, "tanh(x[r, c])", torch.tanh),
    "gelu f32": pointwise(F32, "gelu(x[r, c])", F.gelu),
    "sqrt f32": pointwise(F32, "sqrt(abs(x[r, c]))", lambda x: x.abs().sqrt()),
    "reciprocal f32": pointwise(F32, "1.0 / x[r, c]", torch.reciprocal),
    "quotient f32": quotient(),
    "relu f32 wide": pointwise(F32, "max(x[r, c], 0.0)", torch.relu, **WIDE),
    "hard_sigmoid f32 wide": pointwise(F32, HARD, F.hardsigmoid, **WIDE),
    "sigmoid f32 wide": pointwise(F32, "sigmoid(x[r, c])", torch.sigmoid, **WIDE),
    "softsign f32 wide": pointwise(F32, SIGN, F.softsign, **WIDE),
    "sigmoid bf16": pointwise(BF16, "sigmoid(x[r, c])", torch.sigmoid),
    "softsign bf16": pointwise(BF16, SIGN, F.softsign),
    "hard_sigmoid bf16": pointwise(BF16, HARD, F.hardsigmoid),
    "matvec f32 2048x1M": vector(F32, 2048, 1048576, 1),
    "matvec f32 16k": vector(F32, 16384, 16384, 1),
    "matvec bf16 16k": vector(BF16, 16384, 16384, 1),
    "matvec f32 across": vector(F32, 16384, 16384, 1, left="x[k, i]"),
    "vecmat f32 16k": vector(F32, 1, 16384, 16384),
    "vecmat f32 along": vector(F32, 1, 16384, 16384, right="w[j, k]"),
    "skinny f32 n4": vector(F32, 16384, 16384, 4),
    "skinny f32 n4 along": vector(F32, 16384, 16384, 4, right="w[j, k]"),
    "skinny bf16 n4": vector(BF16, 16384, 16384, 4, right="w[j, k]"),
    "in place norm": in_place(False),
    "in place norm, natural": in_place(True),
}


def line(name, make, repeats, bandwidth):
    source, arguments, result, eager, moved = make()
    kernel = peers.Kernel(source=source)
    kernel(*arguments)
    want = eager()
    finite = want.isfinite()  # a quotient by 0 is infinite in both
    wrong = peers.error(result[finite], want[finite])
    ours, theirs = peers.times([lambda: kernel(*arguments), eager], repeats=repeats, warmup=2)
    copy = moved / bandwidth * 1e3
    note = "" if wrong < 2e-2 else "  WRONG"
    print(f"{name:24} tk {ours * 1e3:9.1f} us  copy {copy * 1e3:9.1f}  of the copy {copy / ours:.3f}  "
          f"eager {theirs * 1e3:9.1f}  ratio {theirs / ours:.2f}  err {wrong:.1e}{note}", flush=True)
    return copy / ours


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    bandwidth = peers.copy_bandwidth()
    print(f"copy: {bandwidth / 1e9:.0f} GB/s", flush=True)
    parts = {}
    for name, make in CASES.items():
        if options.words and not any(word in name for word in options.words):
            continue
        try:
            parts[name] = line(name, make, options.repeats, bandwidth)
        except (RuntimeError, torch.OutOfMemoryError) as error:  # one line does not end the others
            print(f"{name:24} failed: {str(error).splitlines()[0][:150]}", flush=True)
        torch.cuda.empty_cache()
    if parts:
        least = min(parts, key=parts.get)
        print(f"least {parts[least]:.3f} ({least})")


if __name__ == "__main__":
    main()
