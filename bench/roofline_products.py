"""Random programs of products: matrices, vectors, batches, triangles, and what is reduced of a product."""

from roofline_kinds import beside, elements, floats, kind, rounded

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
