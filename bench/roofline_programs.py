"""Random programs of common kinds at large sizes, for bench/roofline_fuzz.py.

A kind is a function of a random generator that returns a program and its sizes. Sizes are those of a few MB to
a few hundred MB each, odd lengths among them.
"""

KINDS = {}


def kind(function):
    KINDS[function.__name__] = function
    return function


def rounded(rng, low, high):
    """A length between two, as often odd as a power of two or a multiple of 8."""
    value = 2 ** rng.uniform(low.bit_length() - 1, high.bit_length() - 1)
    form = rng.randrange(4)
    if form == 0:
        return max(low, 2 ** round(value).bit_length() // 2)
    if form == 1:
        return max(low, int(value) // 8 * 8)
    if form == 2:
        return max(low, int(value) // 2 * 2 + 1)
    return max(low, int(value))


def beside(rng, elements, length, most=1 << 20):
    """How many rows of a length make so many elements at about."""
    return max(1, min(most, int(elements / length * rng.uniform(0.5, 1.5))))


def elements(rng):
    return 2 ** rng.uniform(23, 27)


def floats(rng):
    return rng.choice(["f32", "f32", "bf16", "f16"])


REDUCTIONS = ["sum[c]({0})", "mean[c]({0})", "max[c]({0})", "min[c](abs({0}))", "logsumexp[c]({0})", "sum[c]({0} * {0})",
              "prod[c](1.0 + 0.001 * {0})", "mean[c](exp({0}))", "sqrt(sum[c]({0}^2))", "argmax[c]({0})", "any[c]({0} > 3.0)"]


def reduction(rng, element):
    text = rng.choice(REDUCTIONS)
    return text.format(element), "i32" if "argmax" in text else "bool" if "any" in text else "f32"


@kind
def row_reduction(rng):
    columns = rounded(rng, 32, 1 << 20)
    body, result = reduction(rng, "x[r, c]")
    text = f"kernel k(x: {floats(rng)}[R, C]) -> (y: {result}[R]) {{ y[r] = {body} }}"
    return text, {"R": beside(rng, elements(rng), columns), "C": columns}


@kind
def middle_reduction(rng):
    columns, inner = rounded(rng, 4, 8192), rounded(rng, 4, 8192)
    body, result = reduction(rng, "x[b, c, i]")
    text = f"kernel k(x: {floats(rng)}[B, C, I]) -> (y: {result}[B, I]) {{ y[b, i] = {body} }}"
    return text, {"B": beside(rng, elements(rng), columns * inner), "C": columns, "I": inner}


@kind
def leading_reduction(rng):
    inner = rounded(rng, 4, 1 << 18)
    body, result = reduction(rng, "x[c, i]")
    text = f"kernel k(x: {floats(rng)}[C, I]) -> (y: {result}[I]) {{ y[i] = {body} }}"
    return text, {"C": beside(rng, elements(rng), inner), "I": inner}


@kind
def whole_reduction(rng):
    kind_of = floats(rng)
    body = rng.choice(["sum[r, c](x[r, c])", "mean[r, c](abs(x[r, c] - z[r, c]))", "max[r, c](x[r, c])",
                       "sum[r, c]((x[r, c] - z[r, c])^2) / R", "sqrt(sum[r, c](x[r, c]^2))",
                       "mean[r](logsumexp[c](x[r, c]))"])
    text = f"kernel k(x: {kind_of}[R, C], z: {kind_of}[R, C]) -> (y: f32[]) {{ y = {body} }}"
    columns = rounded(rng, 16, 1 << 17)
    return text, {"R": beside(rng, elements(rng), columns), "C": columns}


@kind
def row_norm(rng):
    kind_of, columns = floats(rng), rounded(rng, 64, 1 << 18)
    body = rng.choice([
        "let m[r] = mean[c](x[r, c])\nlet v[r] = mean[c]((x[r, c] - m[r])^2)\n"
        "y[r, c] = (x[r, c] - m[r]) * rsqrt(v[r] + 1e-5) * g[c]",
        "let v[r] = mean[c](x[r, c]^2)\ny[r, c] = x[r, c] * rsqrt(v[r] + 1e-5) * g[c]",
        "y[r, c] = softmax[c](x[r, c] * g[c])",
        "y[r, c] = log_softmax[c](x[r, c]) + g[c]",
        "let n[r] = sum[c](abs(x[r, c]))\ny[r, c] = x[r, c] / max(n[r], 1e-12) * g[c]",
        "let n[r] = max[c](abs(x[r, c]))\ny[r, c] = round(x[r, c] / n[r] * 127.0) * g[c]"])
    text = f"kernel k(x: {kind_of}[R, C], g: {kind_of}[C]) -> (y: {kind_of}[R, C]) {{\n{body}\n}}"
    return text, {"R": beside(rng, elements(rng), columns), "C": columns}


@kind
def middle_norm(rng):
    kind_of, columns, inner = floats(rng), rounded(rng, 4, 2048), rounded(rng, 4, 4096)
    body = rng.choice([
        "y[b, c, i] = softmax[c](x[b, c, i])",
        "y[b, c, i] = log_softmax[c](x[b, c, i])",
        "let m[b, i] = mean[c](x[b, c, i])\nlet v[b, i] = mean[c]((x[b, c, i] - m[b, i])^2)\n"
        "y[b, c, i] = (x[b, c, i] - m[b, i]) * rsqrt(v[b, i] + 1e-5)",
        "let v[b, i] = mean[c](x[b, c, i]^2)\ny[b, c, i] = x[b, c, i] * rsqrt(v[b, i] + 1e-5)"])
    text = f"kernel k(x: {kind_of}[B, C, I]) -> (y: {kind_of}[B, C, I]) {{\n{body}\n}}"
    return text, {"B": beside(rng, elements(rng), columns * inner), "C": columns, "I": inner}


@kind
def plane_norm(rng):
    """Group, instance and batch norms over planes."""
    kind_of, plane, groups = floats(rng), rounded(rng, 7, 512), rng.choice([1, 4, 8, 32])
    each = rng.choice([1, 2, 4, 8, 16, 3])
    form = rng.choice(["group", "instance", "batch"])
    sizes = {"H": plane, "W": plane}
    if form == "group":
        text = f"""kernel k(x: {kind_of}[N, G, E, H, W], g: f32[G, E], b: f32[G, E]) -> (y: {kind_of}[N, G, E, H, W]) {{
  let m[n, g_] = mean[e, h, w](x[n, g_, e, h, w])
  let v[n, g_] = mean[e, h, w]((x[n, g_, e, h, w] - m[n, g_])^2)
  y[n, g_, e, h, w] = (x[n, g_, e, h, w] - m[n, g_]) * rsqrt(v[n, g_] + 1e-5) * g[g_, e] + b[g_, e]
}}"""
        return text, sizes | {"G": groups, "E": each, "N": beside(rng, elements(rng), plane * plane * groups * each)}
    axes, indices = ("h, w", "n, c") if form == "instance" else ("n, h, w", "c")
    text = f"""kernel k(x: {kind_of}[N, C, H, W], g: f32[C]) -> (y: {kind_of}[N, C, H, W]) {{
  let m[{indices}] = mean[{axes}](x[n, c, h, w])
  let v[{indices}] = mean[{axes}]((x[n, c, h, w] - m[{indices}])^2)
  y[n, c, h, w] = (x[n, c, h, w] - m[{indices}]) * rsqrt(v[{indices}] + 1e-5) * g[c]
}}"""
    channels = groups * each
    return text, sizes | {"C": channels, "N": beside(rng, elements(rng), plane * plane * channels)}


@kind
def norm_gradient(rng):
    kind_of, columns = floats(rng), rounded(rng, 128, 65536)
    forward = rng.choice([
        "let m[r] = mean[c](x[r, c])\nlet v[r] = mean[c]((x[r, c] - m[r])^2)\n"
        "y[r, c] = (x[r, c] - m[r]) * rsqrt(v[r] + 1e-5) * g[c] + b[c]",
        "let v[r] = mean[c](x[r, c]^2)\ny[r, c] = x[r, c] * rsqrt(v[r] + 1e-5) * g[c] + b[c]",
        "y[r, c] = softmax[c](x[r, c]) * g[c] + b[c]"])
    wrt = rng.choice(["x, g, b", "x, g", "x", "g"])
    text = (f"kernel k(x: {kind_of}[R, C], g: {kind_of}[C], b: {kind_of}[C]) -> (y: {kind_of}[R, C]) {{\n{forward}\n}}\n"
            f"grad k_backward = k wrt ({wrt})")
    return text, {"R": beside(rng, elements(rng), columns), "C": columns, "kernel": "k_backward"}


@kind
def pool(rng):
    window, axes = rng.randint(2, 11), rng.choice([1, 2, 2, 3])
    step = rng.choice([1, 1, 2, window])
    names, places = ["D", "H", "W"][-axes:], ["d", "h", "w"][-axes:]
    windows = ["i", "j", "l"][-axes:]
    terms = ", ".join(f"{p} * {step} + {w}" for p, w in zip(places, windows))
    ranges = ", ".join(f"{w} in 0..{window}" for w in windows)
    body = rng.choice(["max[{r}](x[n, {t}])", "mean[{r}](x[n, {t}])", "sum[{r}](x[n, {t}]^2)"]).format(r=ranges, t=terms)
    dims = ", ".join(f"({n} - {window}) / {step} + 1" for n in names)
    where = ", ".join(f"{n} >= {window}" for n in names)
    lefts = ", ".join(f"{p} in 0..({n} - {window}) / {step} + 1" for p, n in zip(places, names))
    kind_of = floats(rng)
    text = f"kernel k(x: {kind_of}[N, {', '.join(names)}]) -> (y: {kind_of}[N, {dims}]) where {where} {{\n  y[n, {lefts}] = {body}\n}}"
    plane = {1: rounded(rng, 128, 1 << 18), 2: rounded(rng, 28, 1024), 3: rounded(rng, 16, 128)}[axes]
    return text, {n: plane for n in names} | {"N": beside(rng, elements(rng), plane ** axes)}


@kind
def scan(rng):
    name = rng.choice(["cumsum", "cumsum", "cumprod", "cummax"])
    element = rng.choice(["x[r, c]", "x[r, C - 1 - c]", "(if c > 0 then x[r, max(c - 1, 0)] else 0.0)", "x[r, c] * z[r, c]",
                          "(if x[r, c] > 0.0 then x[r, c] else 0.0)"])
    kind_of, columns = floats(rng), rounded(rng, 32, 1 << 20)
    body = f"{name}[c]({element})" + rng.choice(["", "", " - x[r, c]", " * 2.0"])
    text = f"kernel k(x: {kind_of}[R, C], z: {kind_of}[R, C]) -> (y: f32[R, C]) {{ y[r, c] = {body} }}"
    if rng.random() < 0.3:  # along another axis
        text = f"kernel k(x: {kind_of}[C, R]) -> (y: f32[C, R]) {{ y[c, r] = {name}[c](x[c, r]) }}"
    elif rng.random() < 0.3:  # the sum of what follows
        text = (f"kernel k(x: {kind_of}[R, C]) -> (y: f32[R, C]) {{\n  let s[r, c in 0..C] = cumsum[c](x[r, C - 1 - c])\n"
                f"  y[r, c] = s[r, C - 1 - c]\n}}")
    return text, {"R": beside(rng, elements(rng), columns), "C": columns}


@kind
def gathered_loss(rng):
    kind_of, columns = floats(rng), rounded(rng, 10, 1 << 18)
    body = rng.choice([
        "let p[r, c] = log_softmax[c](x[r, c])\ny[r] = -p[r, t[r]]",
        "y[r] = logsumexp[c](x[r, c]) - x[r, t[r]]",
        "let p[r, c] = softmax[c](x[r, c])\ny[r] = p[r, t[r]]",
        "let p[r, c] = log_softmax[c](x[r, c])\nlet s[r] = mean[c](p[r, c])\ny[r] = -0.9 * p[r, t[r]] - 0.1 * s[r]"])
    text = f"kernel k(x: {kind_of}[R, C], t: i32[R]) -> (y: f32[R]) {{\n{body}\n}}"
    if rng.random() < 0.3:
        text += "\ngrad k_backward = k wrt (x)"
        return text, {"R": beside(rng, elements(rng), columns), "C": columns, "kernel": "k_backward"}
    return text, {"R": beside(rng, elements(rng), columns), "C": columns}


ACTIVATIONS = ["{0}", "relu({0})", "sigmoid({0})", "gelu({0})", "silu({0})", "tanh({0})", "{0} + b[j]", "exp(-{0})"]


def activation(rng, value):
    return rng.choice(ACTIVATIONS).format(value)


def product(rng, m, n, k, batch=None):
    """y = a b, with either operand transposed."""
    kind_of = floats(rng)
    first, second = rng.choice(["m, k", "m, k", "k, m"]), rng.choice(["k, j", "j, k"])
    dims = {"m": "M", "k": "K", "j": "N"}
    axes = [", ".join(dims[letter] for letter in text.split(", ")) for text in (first, second)]
    lead, big = ("b_, ", "B, ") if batch else ("", "")
    body = activation(rng, f"sum[k](x[{lead}{first}] * w[{lead}{second}])")
    text = (f"kernel k(x: {kind_of}[{big}{axes[0]}], w: {kind_of}[{big}{axes[1]}], b: f32[N]) -> (y: {kind_of}[{big}M, N]) "
            f"{{ y[{lead}m, j] = {body} }}")
    return text, {"M": m, "N": n, "K": k} | ({"B": batch} if batch else {})


@kind
def plain_product(rng):
    return product(rng, rounded(rng, 256, 8192), rounded(rng, 256, 8192), rounded(rng, 256, 8192))


@kind
def matrix_vector(rng):
    k = rounded(rng, 256, 1 << 20)
    few = rng.choice([1, 1, 2, 3, 4, 7])
    many = beside(rng, elements(rng), k, 1 << 17)
    return product(rng, *((few, many) if rng.random() < 0.5 else (many, few)), k)


@kind
def skinny_product(rng):
    small, k = rounded(rng, 8, 64), rounded(rng, 512, 16384)
    many = rounded(rng, 1024, 65536)
    sizes = [(small, many, k), (many, small, k), (many // 4, many // 8, small), (small, rounded(rng, 8, 64), 500000)]
    return product(rng, *rng.choice(sizes))


@kind
def batched_product(rng):
    m, n, k = (rounded(rng, 4, 128) for _ in range(3))
    return product(rng, m, n, k, beside(rng, elements(rng), m * n + m * k + n * k, 65535))


@kind
def reduced_product(rng):
    kind_of = floats(rng)
    body = rng.choice(["sum[j]({0})", "max[j]({0})", "mean[j](gelu({0}))", "logsumexp[j]({0})", "argmax[j]({0})", "sum[j](({0})^2)"])
    result = "i32" if "argmax" in body else "f32"
    body = body.format("sum[k](x[m, k] * w[j, k])")
    text = f"kernel k(x: {kind_of}[M, K], w: {kind_of}[N, K]) -> (y: {result}[M]) {{ y[m] = {body} }}"
    return text, {"M": rounded(rng, 64, 8192), "N": rounded(rng, 256, 32768), "K": rounded(rng, 64, 4096)}


@kind
def product_norm(rng):
    kind_of = floats(rng)
    norm = rng.choice(["y[m, j] = softmax[j](s[m, j])", "let v[m] = mean[j](s[m, j]^2)\ny[m, j] = s[m, j] * rsqrt(v[m] + 1e-5)",
                       "let v[j] = max[m](abs(s[m, j]))\ny[m, j] = s[m, j] / v[j]", "y[m, j] = s[m, j] * sigmoid(s[m, j]) + x2[m, j]"])
    text = (f"kernel k(x: {kind_of}[M, K], w: {kind_of}[N, K], x2: {kind_of}[M, N]) -> (y: {kind_of}[M, N]) {{\n"
            f"let s[m, j] = sum[k](x[m, k] * w[j, k])\n{norm}\n}}")
    return text, {"M": rounded(rng, 64, 8192), "N": rounded(rng, 256, 8192), "K": rounded(rng, 64, 4096)}


@kind
def triangular(rng):
    body = rng.choice(["sum[k in 0..m + 1](x[m, k] * w[k, j])", "sum[k in m..K](x[m, k] * w[k, j])",
                       "sum[k](if k <= m then x[m, k] * w[k, j] else 0.0)"])
    kind_of = floats(rng)
    text = f"kernel k(x: {kind_of}[K, K], w: {kind_of}[K, N]) -> (y: {kind_of}[K, N]) {{ y[m, j] = {body} }}"
    return text, {"K": rounded(rng, 512, 8192), "N": rounded(rng, 64, 4096)}


@kind
def triangular_row(rng):
    body = rng.choice(["sum[c in 0..r + 1](x[r, c])", "sum[c](if c <= r then x[r, c] else 0.0)", "max[c in r..C](x[r, c])"])
    return f"kernel k(x: {floats(rng)}[C, C]) -> (y: f32[C]) {{ y[r] = {body} }}", {"C": rounded(rng, 1024, 16384)}


@kind
def outer_product(rng):
    body = rng.choice(["x[m] * w[j]", "exp(-abs(x[m] - w[j]))", "max(x[m], w[j])", "x[m] + w[j]"])
    kind_of = floats(rng)
    text = f"kernel k(x: {kind_of}[M], w: {kind_of}[N]) -> (y: {kind_of}[M, N]) {{ y[m, j] = {body} }}"
    n = rounded(rng, 16, 1 << 18)
    return text, {"M": beside(rng, elements(rng), n), "N": n}


@kind
def pairwise(rng):
    """Distances between all pairs of rows."""
    body = rng.choice(["sqrt(sum[k]((x[m, k] - w[j, k])^2))", "sum[k](abs(x[m, k] - w[j, k]))",
                       "sum[k](x[m, k] * w[j, k]) * rsqrt(sum[k](x[m, k]^2)) * rsqrt(sum[k](w[j, k]^2))"])
    kind_of = floats(rng)
    text = f"kernel k(x: {kind_of}[M, K], w: {kind_of}[N, K]) -> (y: f32[M, N]) {{ y[m, j] = {body} }}"
    return text, {"M": rounded(rng, 256, 8192), "N": rounded(rng, 256, 8192), "K": rounded(rng, 3, 512)}


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
