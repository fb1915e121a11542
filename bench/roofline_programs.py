"""Random programs of common kinds at large sizes, for bench/roofline_fuzz.py.

Kinds of rows are in roofline_rows.py and kinds of products in roofline_products.py. Here are those that move elements,
choose rows by keys, or combine several steps. The order of all kinds is part of what a seed means.
"""

import roofline_rows  # noqa: F401 (fills KINDS)
import roofline_products  # noqa: F401
from roofline_kinds import KINDS, beside, elements, floats, kind, rounded  # noqa: F401


@kind
def permutation(rng):
    axes = rng.choice([2, 3, 4])
    names, places = "ABCD"[:axes], "abcd"[:axes]
    order = list(range(axes))
    while order == sorted(order):
        rng.shuffle(order)
    kind_of = rng.choice(["f32", "bf16", "i8", "f16"])
    text = (f"kernel k(x: {kind_of}[{', '.join(names)}]) -> (y: {kind_of}[{', '.join(names[o] for o in order)}]) "
            f"{{ y[{', '.join(places[o] for o in order)}] = x[{', '.join(places)}] }}")
    sizes = {name: rounded(rng, 3, 4 ** (6 - axes) * 16) for name in names[1:]}
    inner = 1
    for size in sizes.values():
        inner *= size
    return text, sizes | {"A": beside(rng, elements(rng), inner, 65536)}


@kind
def concatenation(rng):
    kind_of = floats(rng)
    text = rng.choice([
        "kernel k(x: {0}[R, A], z: {0}[R, B]) -> (y: {0}[R, A + B]) {{ y[r, c] = if c < A then x[r, min(c, A - 1)] else z[r, max(c - A, 0)] }}",
        "kernel k(x: {0}[R, A], z: {0}[R, B]) -> (y: {0}[R, A + B]) {{ y[r, c] = pad(x[r, c], 0.0) + pad(z[r, c - A], 0.0) }}",
        "kernel k(x: {0}[R, A], z: {0}[B, A]) -> (y: {0}[R + B, A]) {{ y[r, c] = pad(x[r, c], 0.0) + pad(z[r - R, c], 0.0) }}"]).format(kind_of)
    a = rounded(rng, 8, 1 << 15)
    b = rounded(rng, 8, 1 << 15)
    return text.replace(") {", ") where A > 0, B > 0 {") if "min(c" in text else text, {"A": a, "B": b, "R": beside(rng, elements(rng), a + b)}


@kind
def gather(rng):
    kind_of = floats(rng)
    text = rng.choice([
        "kernel k(x: {0}[V, C], t: i32[R]) -> (y: {0}[R, C]) {{ y[r, c] = x[t[r], c] }}",
        "kernel k(x: {0}[V, C], t: i32[R]) -> (y: {0}[R, C]) {{ y[r, c] = x[t[r], c] * sqrt(C) + x[0, c] }}",
        "kernel k(x: {0}[V, C], t: i32[R, 8]) -> (y: {0}[R, C]) {{ y[r, c] = sum[n in 0..8](x[t[r, n], c]) }}"]).format(kind_of)
    columns = rounded(rng, 8, 1 << 14)
    text = text.replace(") {", ") where V > 0 {") if "x[0, c]" in text else text
    return text, {"V": beside(rng, elements(rng), columns), "R": beside(rng, elements(rng), columns), "C": columns}


@kind
def pointwise(rng):
    kind_of = floats(rng)
    body = rng.choice(["sigmoid(x[i])", "x[i] / (1.0 + abs(x[i]))", "gelu(x[i]) * z[i]", "x[i] / z[i]", "tanh(x[i] * 0.5)",
                       "x[N - 1 - i] + z[i]", "x[i] * tanh(softplus(x[i]))", "clamp(x[i], -1.0, 1.0) + exp(z[i])", "log1p(abs(x[i]))"])
    text = f"kernel k(x: {kind_of}[N], z: {kind_of}[N]) -> (y: {kind_of}[N]) {{ y[i] = {body} }}"
    return text, {"N": int(elements(rng))}


@kind
def broadcast(rng):
    kind_of, h = floats(rng), rounded(rng, 4, 1024)
    body = rng.choice(["x[b, c, h, w] * s[c] + t[b, c]", "relu(x[b, c, h, w] - s[c])", "x[b, c, h, w] * sigmoid(t[b, c])"])
    text = (f"kernel k(x: {kind_of}[B, C, H, W], s: f32[C], t: f32[B, C]) -> (y: {kind_of}[B, C, H, W]) "
            f"{{ y[b, c, h, w] = {body} }}")
    c, w = rounded(rng, 3, 512), rounded(rng, 4, 512)
    return text, {"C": c, "H": h, "W": w, "B": beside(rng, elements(rng), c * h * w)}


@kind
def attention(rng):
    kind_of = rng.choice(["bf16", "bf16", "f16", "f32"])
    d = rng.choice([16, 40, 48, 64, 72, 80, 96, 100, 112, 128, 160, 192, 256, 320, 512, 1024])
    mask = rng.choice(["s[b, h, i, j]", "(if j <= i + (T - S) then s[b, h, i, j] else -inf)", "s[b, h, i, j] + z[h, i, j]"])
    bias = f", z: {kind_of}[H, S, T]" if "z[" in mask else ""
    group = rng.choice(["h", "h", "h / (H / G)"])
    text = f"""kernel k(q: {kind_of}[B, H, S, D], k_: {kind_of}[B, G, T, D], v: {kind_of}[B, G, T, D]{bias}) -> (o: {kind_of}[B, H, S, D])
where H % G == 0, S <= T, {'H == G' if group == 'h' else 'G > 0'} {{
  let s[b, h, i, j] = sum[d](q[b, h, i, d] * k_[b, {group}, j, d]) * rsqrt(D)
  let p[b, h, i, j] = softmax[j]({mask})
  o[b, h, i, e] = sum[j](p[b, h, i, j] * v[b, {group}, j, e])
}}"""
    if group == "h":
        text = text.replace("[B, G, T, D]", "[B, H, T, D]").replace("where H % G == 0, S <= T, H == G", "where S <= T")
    heads = rng.choice([1, 4, 8, 16, 20, 32])
    keys = rounded(rng, 128, 8192)
    queries = rng.choice([1, 1, 4, keys, keys, max(1, keys // 3)])
    most = max(1, int(2 ** 34 / (heads * keys * queries * d)) if queries > 4 else int(2 ** 28 / (heads * keys * d)))
    sizes = {"B": min(most, rng.choice([1, 2, 8, 64])), "H": heads, "S": queries, "T": keys, "D": d}
    return text, sizes | ({"G": heads // rng.choice([1, 4]) or 1} if group != "h" else {})


@kind
def two_statistics(rng):
    kind_of, columns = floats(rng), rounded(rng, 32, 1 << 17)
    body = rng.choice([
        "a[r] = max[c](x[r, c])\n  s[r] = sum[c](x[r, c])", "a[r] = sum[c](x[r, c])\n  s[c_] = sum[r](x[r, c_])",
        "a[r] = mean[c](x[r, c])\n  let m[r] = mean[c](x[r, c])\n  s[r] = mean[c]((x[r, c] - m[r])^2)"])
    text = f"kernel k(x: {kind_of}[R, C]) -> (a: f32[R], s: f32[{'C' if 'c_' in body else 'R'}]) {{\n  {body}\n}}"
    return text, {"R": beside(rng, elements(rng), columns), "C": columns}


@kind
def stencil(rng):
    kind_of, w = floats(rng), rounded(rng, 64, 4096)
    body = rng.choice([
        "0.25 * (x[h, w] + x[h, w + 2] + x[h + 2, w] + x[h + 2, w + 2]) - x[h + 1, w + 1]",
        "sum[i in 0..3, j in 0..3](x[h + i, w + j] * f[i, j])", "max[i in 0..3, j in 0..3](x[h + i, w + j])"])
    text = (f"kernel k(x: {kind_of}[H, W], f: f32[3, 3]) -> (y: {kind_of}[H - 2, W - 2]) where H > 2, W > 2 "
            f"{{ y[h in 0..H - 2, w in 0..W - 2] = {body} }}")
    return text, {"H": max(3, beside(rng, elements(rng), w)), "W": w}


@kind
def histogram(rng):
    """Sums by class, and one-hot rows."""
    text = rng.choice([
        "kernel k(t: i32[R], s: f32[C]) -> (y: f32[R, C]) { y[r, c] = if t[r] == c then s[c] else 0.0 }",
        "kernel k(t: i32[R], s: f32[C]) -> (y: f32[C]) { y[c] = s[c] + sum[r](if t[r] == c then 1.0 else 0.0) }"])
    return text, {"R": rounded(rng, 4096, 1 << 18), "C": rounded(rng, 10, 1024)}


@kind
def segments(rng):
    """Reductions of the rows with a key: plain, computed, of a batch, and as a factor."""
    kind_of, columns, groups = floats(rng), rounded(rng, 1, 512), rounded(rng, 4, 4096)
    key_of, key = rng.choice(["i32", "i32", "i64", "i16"]), rng.choice(["s[i]", "s[i]", "s[i] / 4"])
    term = rng.choice([f"sum[i](if {key} == g then f32(x[i, c]) else 0.0)", f"max[i](if {key} == g then f32(x[i, c]) else -inf)",
                       f"sum[i](f32(x[i, c]) * (if {key} == g then 1.0 else 0.0))"])
    sizes = {"C": columns, "G": groups}
    if rng.random() < 0.25:
        text = (f"kernel k(x: {kind_of}[B, I, C], s: {key_of}[B, I], z: f32[G, C]) -> (y: f32[B, G, C]) "
                f"{{ y[b, g, c] = z[g, c] + {term.replace('s[i]', 's[b, i]').replace('x[i,', 'x[b, i,')} }}")
        return text, {"B": 8, "I": max(1, beside(rng, elements(rng), columns) // 8), **sizes}
    text = (f"kernel k(x: {kind_of}[I, C], s: {key_of}[I], z: f32[G, C]) -> (y: f32[G, C]) {{ y[g, c] = z[g, c] + {term} }}")
    return text, {"I": beside(rng, elements(rng), columns), **sizes}


@kind
def experts(rng):
    """Rows times matrices that each row chooses: one, two with a gate, several for each row, and gradients."""
    kind_of = rng.choice(["bf16", "f16", "f32"])
    entry = rng.choice(["e[m]", "e[m]", "e[m] + 1", "e[m, k]"])
    place = rng.choice([f"{entry}, f, c", f"{entry}, c, f"])
    shape = "E, F, C" if place.endswith("c") else "E, C, F"
    product = f"sum[c](x[m, c] * w[{place}])"
    if "k" in entry:
        product = f"sum[k](p[m, k] * {product})"
    elif rng.random() < 0.3:
        product = f"silu({product}) * {product.replace('w[', 'v[')}"
    params = f"x: {kind_of}[M, C], w: {kind_of}[{shape}], v: {kind_of}[{shape}], p: f32[M, K], e: i32[M{', K' if 'k' in entry else ''}]"
    text = f"kernel k({params}) -> (y: {kind_of}[M, F]) {{ y[m, f] = {product} }}"
    sizes = {"M": rounded(rng, 1, 65536), "C": rounded(rng, 64, 4096), "F": rounded(rng, 64, 4096),
             "E": rng.choice([4, 8, 64, 128]), "K": rng.choice([1, 2, 8])}
    if rng.random() < 0.3:
        text += "\ngrad k_backward = k wrt (x, w)"
        sizes["kernel"] = "k_backward"
    return text, sizes


@kind
def factors(rng):
    """Products of three factors, and of computed ones."""
    term = rng.choice(["x[m, k] * w[k, n] * (if p[m, k] > 0.0 then 1.0 else 0.0)", "silu(x[m, k]) * w[k, n] * p[m, k]",
                       "x[m, k] * w[k, n] * s[k] * p[m, k]", "p[m, k] * w[k, n] * tanh(w[k, n]) * x[m, k]",
                       "x[m, k] * w[k, n] / s[k]", "x[m, k] * w[k, n] / (s[k] + 2.0) / p[m, k]"])
    text = ("kernel k(x: f32[M, K], w: f32[K, N], p: f32[M, K], s: f32[K]) -> (y: f32[M, N]) "
            f"{{ y[m, n] = sum[k]({term}) }}")
    return text, {"M": rounded(rng, 1, 8192), "K": rounded(rng, 32, 8192), "N": rounded(rng, 1, 8192)}


@kind
def conditional_product(rng):
    """Products under a condition on one operand, or on the sum's index."""
    kind_of = rng.choice(["f32", "f32", "bf16"])
    condition = rng.choice(["p[m, k] > 0.0", "q[k, n] > 0.0", "s[k] > 0.0", "p[m, k] > 0.0 and q[k, n] > 0.0"])
    text = (f"kernel k(x: {kind_of}[M, K], w: {kind_of}[K, N], p: {kind_of}[M, K], q: {kind_of}[K, N], s: {kind_of}[K]) "
            f"-> (y: f32[M, N]) {{ y[m, n] = sum[k](if {condition} then x[m, k] * w[k, n] else 0.0) }}")
    return text, {"M": rounded(rng, 16, 8192), "K": rounded(rng, 32, 8192), "N": rounded(rng, 16, 8192)}


@kind
def weighted_pairs(rng):
    """Elements that are functions of two values of a row, or of a column."""
    term = rng.choice(["s[k] * (x[m, k] - w[k, n]) ^ 2", "s[k] * abs(x[m, k] - w[k, n])", "max(x[m, k] - w[k, n], 0.0) * p[m, k]",
                       "x[m, k] * w[k, n] + p[m, k]"])
    reduction = rng.choice(["sum", "max"])
    text = ("kernel k(x: f32[M, K], w: f32[K, N], p: f32[M, K], s: f32[K]) -> (y: f32[M, N]) "
            f"{{ y[m, n] = {reduction}[k]({term}) }}")
    return text, {"M": rounded(rng, 32, 4096), "K": rounded(rng, 8, 2048), "N": rounded(rng, 32, 4096)}


@kind
def two_products(rng):
    """Two sums of products that share an operand, computed or as it is stored."""
    first = rng.choice(["x[m, k]", "x[m, k] * s[k]", "silu(x[m, k])"])
    second = rng.choice(["x[m, k] * v[k, n]", "x[m, k] * w[k, n] * t[k]"])
    text = ("kernel k(x: f32[M, K], w: f32[K, N], v: f32[K, N], s: f32[K], t: f32[K]) -> (y: f32[M, N], z: f32[M, N]) "
            f"{{ y[m, n] = sum[k]({first} * w[k, n])\n z[m, n] = sum[k]({second}) }}")
    return text, {"M": rounded(rng, 16, 8192), "K": rounded(rng, 32, 8192), "N": rounded(rng, 16, 8192)}


@kind
def few_long_rows(rng):
    """Statistics of few long rows."""
    kind_of = rng.choice(["f32", "f32", "bf16"])
    value = rng.choice(["softmax[c](x[r, c])", "x[r, c] * rsqrt(mean[c](x[r, c]^2))", "argmax[c](x[r, c])",
                        "logsumexp[c](x[r, c])", "x[r, c] - mean[c](x[r, c])"])
    isRow = value.endswith("[c](x[r, c])") and not value.startswith(("softmax", "x"))
    result = f"(y: {'i32' if 'arg' in value else 'f32'}[R]) {{ y[r]" if isRow else f"(y: {kind_of}[R, C]) {{ y[r, c]"
    return (f"kernel k(x: {kind_of}[R, C]) -> {result} = {value} }}",
            {"R": rng.randint(1, 64), "C": rounded(rng, 16384, 1 << 20)})
