"""Random `@batch_invariant` kernels at several sizes: the elements that the sizes share must have the same bits.

    invariant.py TKC --targets cpu,emu --count N [--seed S]

A program is one of several forms (products, norms, softmaxes, sums of columns, attention with lengths or under a diagonal,
convolutions) with random types, layouts and sizes. It runs once on all of its data, and then on parts: some rows, some columns,
some sequences, and as a decode that sees the keys of one row. A refusal by TK0609 is no failure, but is counted. Prints the seed
of what differs; `--seed S --count 1` runs it again.
"""
import argparse
import pathlib
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "exact"))
import choices  # noqa: E402
from exact import FAILURES, Runner, same  # noqa: E402

SIZES = (1, 2, 7, 16, 17, 33, 64, 65, 100, 128, 130, 200, 256, 300)
TERMS = (1, 8, 16, 33, 64, 96, 128, 200, 256, 520)
WIDTHS = (8, 16, 32, 64, 128)
REFUSED = "TK0609"


class Random(choices.Random):
    def part(self, size):
        """A part of a dimension, not empty: often one element, a multiple of 16, or from 0 on."""
        length = min(size, self.of((1, 1, 3, 16, 64, size)))
        first = self.of((0, int(self.rng.integers(0, size - length + 1))))
        return slice(first, first + length)


class Case:
    """A program with its data. A part is a pair of inputs and of the places of its results in the whole."""

    def __init__(self, seed):
        self.random = Random(seed)
        self.type = self.random.of(("bf16", "bf16", "f16", "f32"))
        self.program, self.whole, self.parts = self.random.of(
            (self.product, self.product, self.norm, self.softmax, self.columns, self.attention, self.attention,
             self.lengths, self.convolution))()

    def kernel(self, parameters, result, body, where=""):
        lines = "\n  ".join(body)
        return f"@batch_invariant\nkernel k({parameters}) -> (y: {result}){where}\n{{\n  {lines}\n}}\n"

    def product(self):
        r = self.random
        m, k, n, batch = r.of(SIZES), r.of(TERMS), r.of(SIZES), r.of((1, 1, 3))
        turned = r.percent(50)
        form = r.of(("{}", "relu({})", "silu({}) * 0.5", "{} + bias[j]"))
        a, b, bias = r.normal(batch, m, k), r.normal(k, n), r.normal(n)
        of = (lambda b: b.T.copy()) if turned else (lambda b: b.copy())
        total = f"sum[k](f32(a[l, i, k]) * f32({'b[j, k]' if turned else 'b[k, j]'}))"
        more = {"bias": bias} if "bias" in form else {}
        program = self.kernel(
            f"a: {self.type}[L, M, K], b: {self.type}[{'N, K' if turned else 'K, N'}]"
            + (", bias: f32[N]" if more else ""), f"{self.type}[L, M, N]", [f"y[l, i, j] = {form.format(total)}"])
        parts = []
        for _ in range(3):
            rows, columns, l = r.part(m), r.of((slice(0, n), r.part(n))), r.part(batch)
            inputs = {"a": a[l, rows].copy(), "b": of(b[:, columns])}
            parts.append((inputs | {name: value[columns] for name, value in more.items()}, (l, rows, columns)))
        return program, {"a": a, "b": of(b)} | more, parts

    def rows(self, body):
        r = self.random
        rows, columns = r.of(SIZES), r.of((1, 5, 64, 100, 128, 257, 512, 1000, 2048))
        x = r.normal(rows, columns)
        parts = [({"x": x[part].copy()}, (part,)) for part in (r.part(rows), r.part(rows))]
        return self.kernel(f"x: {self.type}[R, C]", f"{self.type}[R, C]", body), {"x": x}, parts

    def norm(self):
        return self.rows(self.random.of((
            ["let s[r] = mean[d](f32(x[r, d]) ^ 2)", "y[r, c] = f32(x[r, c]) * rsqrt(s[r] + 1e-5)"],
            ["let m[r] = mean[d](f32(x[r, d]))", "let v[r] = mean[d]((f32(x[r, d]) - m[r]) ^ 2)",
             "y[r, c] = (f32(x[r, c]) - m[r]) * rsqrt(v[r] + 1e-5)"])))

    def softmax(self):
        return self.rows(self.random.of((["y[r, c] = softmax[c](x[r, c])"],
                                         ["let l[r] = logsumexp[c](x[r, c])", "y[r, c] = f32(x[r, c]) - l[r]"])))

    def columns(self):
        r = self.random
        rows, columns = r.of(TERMS), r.of(SIZES)
        x = r.normal(rows, columns)
        parts = [({"x": x[:, part].copy()}, (part,)) for part in (r.part(columns), r.part(columns))]
        return self.kernel("x: f32[R, C]", "f32[C]", ["y[c] = sum[r](x[r, c] ^ 2)"]), {"x": x}, parts

    def tensors(self):
        r = self.random
        b, g, d = r.of((1, 2, 3)), r.of((1, 2)), r.of(WIDTHS)
        h = g * r.of((1, 1, 2, 4))
        t = r.of((1, 16, 33, 64, 65, 100, 128, 150, 192))
        return b, h, g, t, d

    def scores(self, condition):
        return [f"let s[b, h, i, j] = sum[d](f32(q[b, h, i, d]) * f32(k[b, h / (H / G), j, d])) * rsqrt(D)",
                f"let m[b, h, i, j] = if {condition} then s[b, h, i, j] else -inf",
                "y[b, h, i, d] = sum[j](softmax[j](m[b, h, i, j]) * f32(v[b, h / (H / G), j, d]))"]

    def signature(self, more=""):
        return (f"q: {self.type}[B, H, S, D], k: {self.type}[B, G, T, D], v: {self.type}[B, G, T, D]{more}",
                f"{self.type}[B, H, S, D]")

    def attention(self):
        """A prefill; its parts are decodes, and prefills of the last rows."""
        r = self.random
        b, h, g, t, d = self.tensors()
        t = r.of((t, t, 300))
        q, k, v = r.normal(b, h, t, d), r.normal(b, g, t, d), r.normal(b, g, t, d)
        window = r.of(("", "", f" and j > i + T - S - {r.of((1, 20, 100, 200))}"))
        program = self.kernel(*self.signature(), self.scores("j <= i + T - S" + window), " where G > 0, H % G == 0, S <= T")
        parts = []
        for _ in range(3):
            last, of = int(r.rng.integers(0, t)), r.part(b)
            first = max(0, last + 1 - r.of((1, 1, 1, 2, 20, t)))
            rows, keys = slice(first, last + 1), slice(0, last + 1)
            parts.append(({"q": q[of, :, rows].copy(), "k": k[of, :, keys].copy(), "v": v[of, :, keys].copy()},
                          (of, slice(None), rows)))
        return program, {"q": q, "k": k, "v": v}, parts

    def lengths(self):
        """A decode of sequences with lengths; its parts have fewer sequences, and no more keys than these see."""
        r = self.random
        b, h, g, t, d = self.tensors()
        q, k, v = r.normal(b, h, 1, d), r.normal(b, g, t, d), r.normal(b, g, t, d)
        length = r.rng.integers(1, t + 1, b).astype(numpy.int32)
        program = self.kernel(*self.signature(", len: i32[B]"), self.scores("j < len[b]"),
                              " where G > 0, H % G == 0")
        parts = []
        for of in (r.part(b), r.part(b)):
            keys = slice(0, r.of((t, int(length[of].max()))))
            parts.append(({"q": q[of].copy(), "k": k[of, :, keys].copy(), "v": v[of, :, keys].copy(),
                           "len": length[of]}, (of,)))
        return program, {"q": q, "k": k, "v": v, "len": length}, parts

    def convolution(self):
        r = self.random
        n, c, f, taps = r.of((1, 2, 5)), r.of((1, 8, 16, 24)), r.of((1, 8, 16, 40)), r.of((1, 2, 3))
        height, width = r.of((3, 8, 13)), r.of((4, 9, 16))
        x, w = r.normal(n, height, width, c), r.normal(taps, taps, c, f)
        program = self.kernel(f"x: {self.type}[N, H, W, C], w: {self.type}[R, R, C, F]",
                              f"{self.type}[N, H - R + 1, W - R + 1, F]",
                              ["y[n, i, j, o] = sum[r, s, c](f32(x[n, i + r, j + s, c]) * f32(w[r, s, c, o]))"],
                              " where R > 0, R <= H, R <= W")
        of, rows = r.part(n), r.part(height - taps + 1)
        read = slice(rows.start, rows.stop + taps - 1)
        parts = [({"x": x[of].copy(), "w": w}, (of,)), ({"x": x[:, read].copy(), "w": w}, (slice(None), rows))]
        return program, {"x": x, "w": w}, parts

    def check(self, run):
        whole = run(self.program, self.whole)["y"]
        for inputs, places in self.parts:
            shapes = ", ".join(f"{name} {value.shape}" for name, value in inputs.items())
            same(run(self.program, inputs)["y"], whole[places], f"at {shapes}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tkc")
    parser.add_argument("--targets", default="cpu,emu,emu-sm_80")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-refused", type=int, default=1 << 30)
    options = parser.parse_args()
    wrong = refused = 0
    for seed in range(options.seed, options.seed + options.count):
        for target in options.targets.split(","):
            case, run = Case(seed), Runner(options.tkc, target)
            FAILURES.clear()
            try:
                case.check(run)
            except RuntimeError as error:
                if REFUSED in str(error):
                    refused += 1
                    print(f"--seed {seed} on {target}: " + str(error)[:600] + "\n" + case.program, flush=True)
                else:
                    FAILURES.append(str(error))
            if FAILURES:
                wrong += 1
                print(f"--seed {seed} on {target}: " + "; ".join(FAILURES) + "\n" + case.program, flush=True)
    print(f"{options.count} programs, {wrong} wrong, {refused} refused")
    sys.exit(wrong > 0 or refused > options.max_refused)


if __name__ == "__main__":
    main()
