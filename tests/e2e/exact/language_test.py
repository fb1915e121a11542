"""Names, extents, bounds and literals of the language, on numbers whose sums are exact."""
import numpy

from exact import holds, main, same

PROGRAMS = "tests/e2e/programs/"
RANDOM = numpy.random.default_rng(1)


def whole(*shape):
    """Small integers as f32: sums and products of few are exact in any order."""
    return RANDOM.integers(-4, 5, shape).astype(numpy.float32)


def refused(run, what, says, *arguments, **named):
    try:
        run(*arguments, **named)
    except RuntimeError as error:
        holds(says in str(error), f"{what}: says {error}")
        return
    holds(False, f"{what}: not refused")


def reused_names(run):
    x = whole(5, 12)
    y = run("kernel k(x: f32[R, C]) -> (y: f32[R, C]) { y[r, c] = x[r, c] * c - sum[c](x[r, c]) }", {"x": x})
    same(y["y"], x * numpy.arange(12) - x.sum(1, keepdims=True), "a reduction over the name of a left index")
    w = whole(3)
    y = run("kernel k(x: f32[R, C], w: f32[K]) -> (y: f32[R, C]) { y[r, c] = x[r, c] + sum[c](w[c] * c) }",
            {"x": x, "w": w})
    same(y["y"], x + (w * numpy.arange(3)).sum(), "over the range of its own uses")


def not_equal(run):
    x = whole(3, 9)
    y = run(PROGRAMS + "not_equal_bounds.tk", {"x": x}, kernel="exclusive")["y"]
    same(y, numpy.cumsum(x, 1) - x, "a sum of all before")
    x, w = whole(9), whole(9)
    found = run(PROGRAMS + "not_equal_bounds.tk", {"x": x, "w": w}, "abcde", kernel="neighbours")
    same(found["a"], numpy.append(x[1:], 0), "not the last")
    b = x.copy()
    b[1:-1] = x[:-2] + x[2:]
    same(found["b"], b, "neither the first nor the last")
    same(found["c"], numpy.concatenate([[1, 1], x[:-2]]), "not one of the first two")
    same(found["d"], numpy.append(numpy.full(8, 2), x[0]), "only the last")
    e = [sum(x[abs(k - i) - 1] * w[k] for k in range(9) if k != i) for i in range(9)]
    same(found["e"], e, "by cases of the sign")


def extents(run):
    file = PROGRAMS + "scalar_extents.tk"
    x = whole(7)
    same(run(file, {"x": x}, args={"N": 7}, kernel="copy")["y"], x, "a scalar as an extent")
    refused(run, "a tensor that disagrees", "argument 'N' is 6, but argument 'x' has the extent 7 (axis 0)", file,
            {"x": x}, args={"N": 6}, kernel="copy")
    refused(run, "a negative scalar", "-1", file, args={"N": -1}, kernel="copy")
    refused(run, "a scalar as a dimension", "give --arg N=7", file, dims={"N": 7}, kernel="copy")
    a, b = whole(5, 3), whole(3, 4)
    c = run(file, {"a": a, "b": b}, ("c", "s"), args={"M": 5, "K": 3}, kernel="product")
    same(c["c"], a @ b, "a product over a scalar")
    same(c["s"], a.sum(1), "a sum over a scalar")

    file = PROGRAMS + "named_extents.tk"
    x = whole(11)
    found = run(file, {"x": x}, ("y", "z"), args={"k": 1}, kernel="halves")
    same(found["y"], numpy.repeat(x[:4] * 8, 2), "an extent that where names")
    same(found["z"], x[:8].sum() + numpy.arange(4), "a range up to a named extent")
    refused(run, "a negative extent", "B = N / 2 - k >= 0", file, {"x": x}, args={"k": 6}, kernel="halves")
    codes, scale = RANDOM.integers(-9, 9, 384).astype(numpy.int8), whole(3)
    same(run(file, {"x": codes, "s": scale}, kernel="blocks")["y"], codes * numpy.repeat(scale, 128),
         "a multiple beside its symbol")
    rows = whole(12, 5)
    found = run(file, {"x": rows}, ("y", "z"), kernel="groups")
    same(found["y"], rows.reshape(3, 20).sum(1), "a multiple that binds its symbol")
    same(found["z"], rows.reshape(3, 4, 5).max(1), "the same in a second result")
    refused(run, "no multiple", "expected a multiple of 4 (M * 4), got 11", file, {"x": rows[:11]}, kernel="groups")


def loaded_bounds(run):
    file = PROGRAMS + "loaded_bounds.tk"
    off = numpy.array([0, 3, 3, 9, 20], numpy.int32)
    n = numpy.array([2, 5, 0, 30], numpy.int32)
    x, w = whole(20), whole(20, 3)
    wanted = "smhpado"
    inf = numpy.inf

    def segments(off, x, w):
        cut = [slice(max(off[g], 0), max(off[g + 1], 0)) for g in range(4)]
        counts = numpy.array([len(x[c]) for c in cut], numpy.float32)
        sums = numpy.array([x[c].sum() for c in cut], numpy.float32)
        with numpy.errstate(all="ignore"):
            return {
                "s": sums, "m": sums / counts,
                "h": [x[off[g]:off[g] + n[g]].max(initial=-inf) for g in range(4)],
                "p": [x[off[g]:min(off[g] + 3, off[g + 1])].prod() for g in range(4)],
                "a": [(x[c] > 1.5).any() for c in cut],
                "d": [(x[c, None] * w[c]).sum(0) for c in cut], "o": numpy.diff(off)}

    found = run(file, {"off": off, "n": n, "x": x, "w": w}, wanted, kernel="segments")
    for name, value in segments(off, x, w).items():
        if name == "m":  # a quotient is rounded once on every target, or is a product by a reciprocal
            holds(numpy.allclose(found[name], value, rtol=1e-6, equal_nan=True), f"segments: {found[name]} {value}")
        else:
            same(found[name], value, "segments: " + name)
    # NaN in one segment reaches no other.
    poisoned = x.copy()
    poisoned[3:9] = numpy.nan
    again = run(file, {"off": off, "n": n * 0, "x": poisoned, "w": w}, wanted, kernel="segments")
    for name in "spd":
        same(numpy.delete(again[name], 2, 0), numpy.delete(found[name], 2, 0), "beside a segment of NaN: " + name)
    # Beyond the tensor terms are absent, and refused with --checked.
    beyond = off.copy()
    beyond[4] = 25
    far = run(file, {"off": beyond, "n": n, "x": x, "w": w}, wanted, kernel="segments")
    same(far["s"], found["s"], "beyond the tensor's end")
    refused(run, "a bound beyond the end", "bound 'off[g + 1]' of index 't'", file,
            {"off": beyond, "n": n * 0, "x": x, "w": w}, wanted, kernel="segments", options=("--checked",))
    run(file, {"off": off, "n": n * 0, "x": x, "w": w}, wanted, kernel="segments", options=("--checked",))

    a, b = whole(9, 9), whole(9, 4)
    found = run(file, {"a": a, "b": b}, "uvr", kernel="triangle")
    same(found["u"], numpy.triu(a).sum(1), "from an index to the end")
    same(found["v"], numpy.tril(a) @ b, "up to an index")
    same(found["r"], numpy.arange(9), "between multiples of an index")


def literals(run):
    m = RANDOM.integers(0, 2, 9).astype(numpy.int32)
    text = """kernel k(m: i32[N]) -> (a: i32[N], b: i32[N], c: i16[N], d: i32, e: i32[N]) {
  a[i] = cumsum[i](if m[i] > 0 then 1 else 0)
  b[i] = cummax[i](if m[i] > 0 then 3 else 1)
  let one[i] = if m[i] > 0 then 1 else 0
  c[i] = one[i] + 1
  let total = max(sum[i](one[i]), 1)
  d = total
  let two[i in 0..N] = 2
  e[i] = two[i]
}""".replace("d: i32,", "d: i32[],")
    found = run(text, {"m": m}, "abcde")
    same(found["a"], numpy.cumsum(m), "a running sum of literals")
    same(found["b"], numpy.maximum.accumulate(numpy.where(m, 3, 1)), "a running maximum of literals")
    same(found["c"], m + 1, "a local of literals")
    same(found["d"], max(m.sum(), 1), "a maximum of a sum and a literal")
    same(found["e"], numpy.full(9, 2), "a local that is a literal")


def functions(run):
    file = PROGRAMS + "tensor_functions.tk"
    ids = RANDOM.integers(0, 8, 5).astype(numpy.int32)
    x, y, w = whole(4, 8), whole(3, 2), whole(8)
    found = run(file, {"x": x, "y": y, "w": w, "ids": ids}, "muvdgc", kernel="k")
    t = (x - x.mean(1, keepdims=True)) * 2
    same(found["u"], t * (x @ w)[:, None], "a tensor by its leading indices")
    same(found["v"], y - y.mean(1, keepdims=True), "the same of another extent")
    same(found["m"], x.mean(1) + t.mean(1), "a tensor by its name")
    same(found["d"], (t * x[::-1]).sum(1), "leading indices that are computed")
    same(found["g"], w[ids], "two tensors")
    same(found["c"], x @ x.T, "a product")
    s = whole(6, 6)
    same(run(file, {"x": s}, kernel="symmetric")["y"], s + s.T, "indices in another order")
    own = run("""import std
fn mish(x) = x + 1.0
fn row_mean(t) = 100.0
kernel k(x: f32[R, C], softsign: f32[R]) -> (y: f32[R, C]) {
  let k[r] = mish(softsign[r])
  y[r, c] = layer_norm(x[r], c, 0.0) * k[r]
}""", {"x": numpy.array([[1, -1, 1, -1]], numpy.float32), "softsign": numpy.ones(1, numpy.float32)})["y"]
    same(own, [[2, -2, 2, -2]], "a file's own functions and names come before the library's")


def check(run):
    for test in (reused_names, not_equal, extents, loaded_bounds, literals, functions):
        test(run)


main(check)
