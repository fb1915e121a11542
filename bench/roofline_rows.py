"""Random programs of rows: reductions, norms, gradients of norms, pools, scans and losses."""

from roofline_kinds import beside, elements, floats, kind, rounded

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
