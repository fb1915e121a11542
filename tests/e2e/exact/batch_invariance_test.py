"""Elements of `@batch_invariant` kernels have the same bits alone, in a batch, and as a row of a prefill."""
import numpy

from exact import main, same

PRODUCT = """@batch_invariant
kernel product(a: bf16[M, K], b: bf16[K, N]) -> (y: bf16[M, N]) {
  y[i, j] = gelu(sum[k](f32(a[i, k]) * f32(b[k, j])))
}
"""
WIDE = """@batch_invariant
kernel product(a: f32[M, K], b: f32[N, K]) -> (y: f32[M, N]) {
  y[i, j] = sum[k](a[i, k] * b[j, k])
}
"""
NORM = """@batch_invariant
kernel norm(x: bf16[R, C], w: bf16[C]) -> (y: bf16[R, C]) {
  y[r, c] = f32(x[r, c]) * rsqrt(mean[d](f32(x[r, d]) ^ 2) + 1e-5) * f32(w[c])
}
"""
SOFTMAX = """@batch_invariant
kernel rows(x: f32[R, C]) -> (y: f32[R, C]) {
  y[r, c] = softmax[c](x[r, c])
}
"""
COLUMNS = """@batch_invariant
kernel columns(x: f32[R, C]) -> (y: f32[C]) {
  y[c] = sum[r](x[r, c] * x[r, c])
}
"""
ATTENTION = """@batch_invariant
kernel attention(q: bf16[B, H, S, D], k: bf16[B, G, T, D], v: bf16[B, G, T, D]) -> (y: bf16[B, H, S, D])
    where G > 0, H % G == 0, S <= T {
  let s[b, h, i, j] = sum[d](f32(q[b, h, i, d]) * f32(k[b, h / (H / G), j, d])) * rsqrt(D)
  let m[b, h, i, j] = if j <= i + T - S then s[b, h, i, j] else -inf
  y[b, h, i, d] = sum[j](softmax[j](m[b, h, i, j]) * f32(v[b, h / (H / G), j, d]))
}
"""
# The width of a head's values is a dimension of its own, and rows have a second result.
WIDTHS = ATTENTION.replace("v: bf16[B, G, T, D]) -> (y: bf16[B, H, S, D])", "v: bf16[B, G, T, E]) -> (y: bf16[B, H, S, E], l: f32[B, H, S])").replace(
    "y[b, h, i, d]", "l[b, h, i] = logsumexp[j](m[b, h, i, j])\n  y[b, h, i, e]").replace("j, d]))\n}", "j, e]))\n}")
WINDOW = ATTENTION.replace("if j <= i + T - S then", "if j <= i + T - S and j > i + T - S - 150 then")
CONVOLUTION = """@batch_invariant
kernel convolution(x: bf16[N, H, W, C], w: bf16[R, S, C, F]) -> (y: bf16[N, H - R + 1, W - S + 1, F])
    where R > 0, S > 0, R <= H, S <= W {
  y[n, i, j, f] = sum[r, s, c](f32(x[n, i + r, j + s, c]) * f32(w[r, s, c, f]))
}
"""
RNG = numpy.random.default_rng(50)


def normal(*shape):
    return RNG.standard_normal(shape).astype(numpy.float32)


def products(run):
    for text, turned, k in ((PRODUCT, False, 192), (WIDE, True, 80)):
        a, b = normal(150, k), normal(k, 136)
        of = (lambda b: b.T.copy()) if turned else (lambda b: b)
        whole = run(text, {"a": a, "b": of(b)})["y"]
        for rows in (slice(0, 1), slice(7, 8), slice(3, 20), slice(0, 128)):
            same(run(text, {"a": a[rows], "b": of(b)})["y"], whole[rows], f"rows {rows} of a product")
        same(run(text, {"a": a[:5], "b": of(b[:, 8:72].copy())})["y"], whole[:5, 8:72], "columns of a product")
    for text in (NORM, SOFTMAX):
        x, w = normal(70, 200), normal(200)
        whole = run(text, {"x": x} | ({"w": w} if text == NORM else {}))["y"]
        for rows in (slice(0, 1), slice(9, 12), slice(0, 64)):
            same(run(text, {"x": x[rows]} | ({"w": w} if text == NORM else {}))["y"], whole[rows],
                 f"rows {rows} of a reduction")
    x = normal(300, 64)
    whole = run(COLUMNS, {"x": x})["y"]
    for columns in (slice(0, 8), slice(16, 48)):
        same(run(COLUMNS, {"x": x[:, columns].copy()})["y"], whole[columns], f"columns {columns}")


def attention(run):
    """A row of a prefill, and a decode whose one query sees as many keys."""
    q, k, v = normal(2, 4, 96, 64), normal(2, 2, 96, 64), normal(2, 2, 96, 64)
    whole = run(ATTENTION, {"q": q, "k": k, "v": v})["y"]
    for row in (0, 30, 63, 64, 95):
        keys = slice(0, row + 1)
        inputs = {"q": q[:, :, row:row + 1], "k": k[:, :, keys], "v": v[:, :, keys]}
        same(run(ATTENTION, inputs)["y"], whole[:, :, row:row + 1], f"a decode of {row + 1} keys")
    same(run(ATTENTION, {"q": q[1:], "k": k[1:], "v": v[1:]})["y"], whole[1:], "one sequence of a batch")
    same(run(ATTENTION, {"q": q[:, :, 40:], "k": k, "v": v})["y"], whole[:, :, 40:], "the last rows of a prefill")


def columns(run):
    """Few heads divide the columns of their values among blocks, and many do not."""
    q, k, v = normal(3, 24, 2, 64), normal(3, 24, 40, 64), normal(3, 24, 40, 64)
    whole = run(ATTENTION, {"q": q, "k": k, "v": v})["y"]
    same(run(ATTENTION, {"q": q[1:2], "k": k[1:2], "v": v[1:2]})["y"], whole[1:2], "a sequence of 24 heads")
    q, k, v = normal(1, 2, 70, 64), normal(1, 2, 70, 64), normal(1, 2, 70, 128)
    whole = run(WIDTHS, {"q": q, "k": k, "v": v}, results=("y", "l"))
    for row in (5, 69):
        keys = slice(0, row + 1)
        one = run(WIDTHS, {"q": q[:, :, row:row + 1], "k": k[:, :, keys], "v": v[:, :, keys]}, results=("y", "l"))
        same(one["y"], whole["y"][:, :, row:row + 1], f"a decode of {row + 1} keys of two widths")
        same(one["l"], whole["l"][:, :, row:row + 1], "its sums")


def window(run):
    """Rows of a window begin at other keys, and tiles do not."""
    q, k, v = normal(1, 2, 330, 64), normal(1, 1, 330, 64), normal(1, 1, 330, 64)
    whole = run(WINDOW, {"q": q, "k": k, "v": v})["y"]
    for row in (160, 255, 329):
        keys = slice(0, row + 1)
        inputs = {"q": q[:, :, row:row + 1], "k": k[:, :, keys], "v": v[:, :, keys]}
        same(run(WINDOW, inputs)["y"], whole[:, :, row:row + 1], f"a decode of {row + 1} keys in a window")
    same(run(WINDOW, {"q": q[:, :, 301:], "k": k, "v": v})["y"], whole[:, :, 301:], "the last rows of a window")


def convolutions(run):
    x, w = normal(3, 10, 12, 16), normal(3, 3, 16, 24)
    whole = run(CONVOLUTION, {"x": x, "w": w})["y"]
    same(run(CONVOLUTION, {"x": x[1:2], "w": w})["y"], whole[1:2], "one image of a batch")
    same(run(CONVOLUTION, {"x": x[:, :6], "w": w})["y"], whole[:, :4], "rows of an image")


def check(run):
    products(run)
    attention(run)
    columns(run)
    window(run)
    convolutions(run)


main(check)
