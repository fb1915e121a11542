"""What a mask leaves out has no influence, whatever lies there.

Each form is run with zeros in all left-out places, and with NaN, infinities and 65504 there. Both runs must give the same bits.
Values that are not finite, and that some rows see and others do not, must not reach the latter: the bits of other results are
those of a run with zeros there.
"""
import numpy

from exact import ROOT, holds, main, same

PROGRAM = "tests/e2e/programs/unseen.tk"
PAGES = "tests/e2e/programs/attention_pages.tk"
SHARES = "tests/e2e/programs/attention_shares.tk"
FILLINGS = (numpy.nan, numpy.inf, -numpy.inf, 65504.0, numpy.nan)  # in turns: five divides no row


class Form:
    """A kernel with its arguments; `absent` holds a mask of left-out elements for some inputs."""

    def __init__(self, name, program, kernel, inputs, absent, results=("o",), dims=None, args=None, options=()):
        self.name, self.program, self.kernel = name, program, kernel
        self.inputs, self.absent, self.results = inputs, absent, results
        self.dims, self.args, self.options = dims, args, options

    def run(self, run, filling):
        inputs = {}
        for name, values in self.inputs.items():
            values = values.copy()
            if name in self.absent:
                values[self.absent[name]] = numpy.resize(filling, numpy.count_nonzero(self.absent[name]))
            inputs[name] = values
        return run(self.program, inputs, self.results, kernel=self.kernel, dims=self.dims, args=self.args,
                   options=self.options)


def check_form(run, form):
    wanted, found = form.run(run, (0,)), form.run(run, FILLINGS)
    for result in form.results:
        same(found[result], wanted[result], f"{form.name}, {result}")


def numbers(seed, *shape):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(numpy.float32)


def integers(*values):
    return numpy.asarray(values, numpy.int32)


def behind(shape, axis, lengths, over=0):
    """True where the place along `axis` is not before the length of the place along `over`."""
    places = numpy.arange(shape[axis]).reshape([-1 if n == axis else 1 for n in range(len(shape))])
    ends = numpy.asarray(lengths).reshape([-1 if n == over else 1 for n in range(len(shape))])
    return numpy.broadcast_to(places >= ends, shape)


def packed():
    seen = numpy.zeros((40, 64), bool)
    seen[0:5] = seen[5:12] = seen[20:33] = True
    yield Form("packed sequences", PROGRAM, "packed",
               {"q": numbers(1, 3, 1, 64), "k": numbers(2, 40, 64), "v": numbers(3, 40, 64),
                "start": integers(0, 5, 20), "len": integers(5, 7, 13)}, {"k": ~seen, "v": ~seen})
    # Of two neighbours one is not there at all.
    second = numpy.zeros((12, 64), bool)
    second[5:12] = True
    yield Form("the first of packed sequences", PROGRAM, "packed",
               {"q": numbers(1, 1, 1, 64), "k": numbers(2, 12, 64), "v": numbers(3, 12, 64),
                "start": integers(0), "len": integers(5)}, {"k": second, "v": second})


def two_bounds():
    for s, t, d, n in ((2, 2, 1, 1), (70, 90, 64, 33), (130, 300, 64, 100)):
        absent = behind((t, d), 0, [n])
        yield Form(f"two bounds, S={s} T={t} D={d}", PROGRAM, "two_bounds",
                   {"q": numbers(1, s, d), "k": numbers(2, t, d), "v": numbers(3, t, d)},
                   {"k": absent, "v": absent}, ("o", "l"), args={"n": n})


def paged(program, kernel, table, size, count, rows, length, heads=(8, 2), d=64):
    h, g = heads
    rng = numpy.random.default_rng(4)
    length = numpy.asarray(length)
    need = -(-length // size)
    most = max(int(need.max()), 1) + 1
    # Pages that no sequence has, and places behind the last one, have numbers of no page.
    pages = rng.choice([-1, count, 2**31 - 1, -2**31], (len(length), most)).astype(numpy.int32)
    free = iter(rng.permutation(count))
    seen = numpy.zeros((count, size, g, d), bool)
    for b, keys in enumerate(length):
        for n in range(need[b]):
            pages[b, n] = page = next(free)
            seen[page, :min(size, keys - n * size)] = True
    shape = (len(length), h, rows, d)
    return Form(f"{kernel} of {size} keys, {rows} queries, lengths {list(length)}", program, kernel,
                {"q": numbers(1, *shape), "k": numbers(2, *seen.shape), "v": numbers(3, *seen.shape),
                 table: pages, "length": length.astype(numpy.int32)}, {"k": ~seen, "v": ~seen})


def pages():
    yield paged(PAGES, "pages", "table", 16, 40, 16, [33, 160, 0, 1])
    yield paged(PAGES, "pages", "table", 12, 40, 1, [33, 100, 5])
    yield paged(PAGES, "pages", "table", 256, 7, 8, [300, 511])
    yield paged(SHARES, "pages", "pages", 16, 60, 1, [33, 300, 0, 130])
    yield paged(SHARES, "pages", "pages", 64, 12, 16, [70, 200, 129])


def decode_pages():
    form = paged("examples/attention_paged.tk", "attention_paged", "pages", 16, 90, 1, [33, 500, 0, 129])
    for name in ("k", "v"):
        form.inputs[name + "_cache"] = form.inputs.pop(name)
        form.absent[name + "_cache"] = form.absent.pop(name)
    form.inputs["q"] = form.inputs["q"][:, :, 0]
    yield form


def ragged():
    for name, rows, heads in (("examples/decode", 1, (8, 2)), ("queries", 16, (4, 2))):
        h, g = heads
        length = [300, 0, 77, 1]
        shape = (4, g, 400, 64)
        absent = behind(shape, 2, length)
        for program, kernel in (("tests/e2e/programs/attention_ragged.tk", "decode"), (SHARES, "ragged")):
            yield Form(f"lengths, {rows} queries, {kernel}", program, kernel,
                       {"q": numbers(1, 4, h, rows, 64), "k": numbers(2, *shape), "v": numbers(3, *shape),
                        "length": integers(*length)}, {"k": absent, "v": absent})
    yield Form("lengths, the last queries", SHARES, "causal",
               {"q": numbers(1, 4, 4, 4, 64), "k": numbers(2, *shape), "v": numbers(3, *shape),
                "length": integers(*length)}, {"k": absent, "v": absent}, ("o", "l"))
    shape = (4, 400, 64)
    places, ends = numpy.arange(400)[None, :, None], numpy.asarray(length)[:, None, None]
    absent = numpy.broadcast_to((places >= ends) | (places < ends - 50), shape)
    yield Form("lengths, a window", SHARES, "heads",
               {"q": numbers(1, 4, 8, 64), "k": numbers(2, *shape), "v": numbers(3, *shape),
                "length": integers(*length)}, {"k": absent, "v": absent}, args={"window": 50})


def kept():
    for s, t, d in ((3, 100, 32), (130, 200, 64)):
        keep = numpy.random.default_rng(5).integers(0, 2, (2, t)).astype(numpy.int32)
        keep[1, :70] = 0
        absent = numpy.broadcast_to(keep[:, None, :, None] == 0, (2, 2, t, d))
        yield Form(f"keys left out one by one, S={s}", PROGRAM, "kept",
                   {"q": numbers(1, 2, 2, s, d), "k": numbers(2, 2, 2, t, d), "v": numbers(3, 2, 2, t, d),
                    "keep": keep}, {"k": absent, "v": absent}, ("o", "l"))


def window():
    for s, t in ((130, 300), (5, 200)):
        length = numpy.asarray([t - 30, 130])
        places, ends = numpy.arange(t)[None, None, :, None], length[:, None, None, None]
        absent = numpy.broadcast_to((places >= ends) | (places <= ends - s - 20), (2, 2, t, 64))
        yield Form(f"windows, S={s} T={t}", PROGRAM, "window",
                   {"q": numbers(1, 2, 2, s, 64), "k": numbers(2, 2, 2, t, 64), "v": numbers(3, 2, 2, t, 64),
                    "len": length.astype(numpy.int32)}, {"k": absent, "v": absent}, args={"width": 20})


def causal():
    # Queries without keys are left out themselves.
    for s, t in ((200, 70), (70, 1), (9, 9)):
        absent = numpy.broadcast_to(numpy.arange(s)[None, :, None] < s - t, (2, s, 64))
        yield Form(f"fewer keys than queries, S={s} T={t}", PROGRAM, "causal",
                   {"q": numbers(1, 2, s, 64), "k": numbers(2, 2, t, 64), "v": numbers(3, 2, t, 64)},
                   {"q": absent}, ("o", "l"))


def documents():
    for s, t in ((130, 200), (3, 50)):
        rng = numpy.random.default_rng(6)
        rows, keys = numpy.sort(rng.integers(0, 4, s)), numpy.sort(rng.integers(-1, 6, t))
        absent = numpy.broadcast_to(~numpy.isin(keys, rows)[None, :, None], (2, t, 64))
        queries = numpy.broadcast_to(~numpy.isin(rows, keys)[None, :, None], (2, s, 64))
        yield Form(f"documents, S={s} T={t}", PROGRAM, "documents",
                   {"q": numbers(1, 2, s, 64), "k": numbers(2, 2, t, 64), "v": numbers(3, 2, t, 64),
                    "rows": rows.astype(numpy.int32), "keys": keys.astype(numpy.int32)},
                   {"q": queries, "k": absent, "v": absent}, ("o", "l"))


def offsets():
    n, m = 130, 200
    offset = integers(0, 40, 40, 90, 170)
    of = numpy.sort(numpy.random.default_rng(7).integers(0, 3, n)).astype(numpy.int32)
    absent = numpy.broadcast_to((numpy.arange(m) >= 90)[:, None, None], (m, 2, 64))
    yield Form("offsets", PROGRAM, "offsets",
               {"q": numbers(1, n, 2, 64), "k": numbers(2, m, 2, 64), "v": numbers(3, m, 2, 64),
                "offset": offset, "of": of}, {"k": absent, "v": absent})


def cores():
    length = [20, 0, 64]
    rows, planes = behind((3, 64), 1, length), behind((3, 64, 33), 1, length)
    yield Form("on CUDA cores", PROGRAM, "stored",
               {"q": numbers(1, 3, 33), "k": numbers(2, 3, 64, 33), "v": numbers(3, 3, 64, 33),
                "len": integers(*length)}, {"k": planes, "v": planes}, ("o", "p"))
    yield Form("weights of values", PROGRAM, "pooled",
               {"x": numbers(2, 3, 64), "v": numbers(3, 3, 64, 33), "len": integers(*length)},
               {"x": rows, "v": planes}, ("o", "m"))


def gradients():
    for s, t in ((9, 40), (130, 200)):
        rows, keys = [s - 2, 0, s], [t - 7, t, 0]
        queries, ofrows = behind((3, 2, s, 64), 2, rows), behind((3, 2, s), 2, rows)
        values = behind((3, 2, t, 64), 2, keys)
        forward = Form(f"lengths of both, S={s} T={t}", PROGRAM, "lengths",
                       {"q": numbers(1, 3, 2, s, 64), "k": numbers(2, 3, 2, t, 64), "v": numbers(3, 3, 2, t, 64),
                        "rows": integers(*rows), "keys": integers(*keys)},
                       {"q": queries, "k": values, "v": values}, ("o", "l"))
        yield forward
        # As the forward kernel gives them.
        o, l = numbers(4, 3, 2, s, 64), numbers(5, 3, 2, s) + 4
        none = ofrows | (numpy.asarray(keys)[:, None, None] == 0)
        o[none], l[none] = 0, -numpy.inf
        yield Form(f"gradients, S={s} T={t}", PROGRAM, "lengths_backward",
                   forward.inputs | {"o": o, "l": l, "d_o": numbers(6, 3, 2, s, 64), "d_l": numbers(7, 3, 2, s)},
                   {"q": queries, "k": values, "v": values, "d_o": queries, "d_l": ofrows}, ("d_q", "d_k", "d_v"))


def close(found, wanted, what):
    """Equal but for the order of sums, before a rounding to 16 bits."""
    holds(numpy.allclose(found, wanted, rtol=2e-2, atol=2e-3 * max(numpy.abs(wanted).max(initial=0), 1e-3)), what)


class Partly:
    """Elements of `v` that are not finite, and which rows see which keys: `sees[..., i, j]`."""

    def __init__(self, name, kernel, inputs, sees, results=("o",), program=PROGRAM, dims=None, args=None, exact=()):
        self.form = Form(name, program, kernel, inputs, {}, results, dims, args)
        self.sees = sees
        self.exact = exact  # targets on which other rows keep their bits; else these are computed again

    def check(self, run):
        v = self.form.inputs["v"]
        rng = numpy.random.default_rng(8)
        values, added = v.copy(), numpy.zeros(self.sees.shape[:-1] + v.shape[-1:], numpy.float32)
        for value in (numpy.nan, numpy.inf, -numpy.inf, numpy.nan, numpy.inf, numpy.inf):
            place = tuple(rng.integers(0, size) for size in v.shape)
            v[place], values[place] = 0, value
            seen = self.sees[place[:-2] + (slice(None), place[-2])]
            added[place[:-2] + (slice(None), place[-1])] += numpy.where(seen, value, 0).astype(numpy.float32)
        wanted = self.form.run(run, (0,))
        self.form.inputs["v"] = values
        found = self.form.run(run, (0,))
        isUntouched = added == 0
        what = f"{self.form.name}, rows that see finite values"
        if run.target in self.exact:
            same(found["o"][isUntouched], wanted["o"][isUntouched], what)
        elif run.target == "cpu":
            # A block of keys is added up in another order where a value is not finite.
            holds(numpy.allclose(found["o"][isUntouched], wanted["o"][isUntouched], rtol=1e-2, atol=1e-5), what)
        else:
            # Terms are added up in another order where a value is not finite.
            close(found["o"][isUntouched], wanted["o"][isUntouched], what)
        same(found["o"][~isUntouched], added[~isUntouched], f"{self.form.name}, rows that see others")
        for result in self.form.results[1:]:
            same(found[result], wanted[result], f"{self.form.name}, {result}")


def attention_of(s, t, heads=2, d=64):
    return {"q": numbers(1, heads, s, d), "k": numbers(2, heads, t, d), "v": numbers(3, heads, t, d)}


def of_type(element):
    """The program with that type in place of bf16."""
    return (ROOT / PROGRAM).read_text().replace("bf16", element)


def weights_beside(stored, element):
    """Attention under a mask of documents with the masked scores `m` or the weights `p` as a second result."""
    text = """
kernel weights(q: bf16[H, S, D], k: bf16[H, T, D], v: bf16[H, T, D], rows: i32[S], keys: i32[T])
    -> (o: bf16[H, S, D], STORED: ELEMENT[H, S, T]) {
  let s[h, i, j] = sum[d](q[h, i, d] * k[h, j, d]) * rsqrt(D)
  let m[h, i, j] = if rows[i] == keys[j] then s[h, i, j] else -inf
  let p[h, i, j] = softmax[j](m[h, i, j])
  o[h, i, e] = sum[j](p[h, i, j] * v[h, j, e])
}
"""
    return text.replace(f"let {stored}[", f"{stored}[").replace("STORED", stored).replace("ELEMENT", element)


EMU, BOTH = ("emu",), ("emu", "emu-sm_80")


def partly_seen():
    # On sm_90a loops of one step, and more than 128 columns, have their elements computed again; by mma.sync threads with many sums.
    for s, t, d, element, exact in ((130, 200, 64, "bf16", EMU), (64, 64, 64, "bf16", ()), (300, 300, 64, "bf16", EMU),
                                    (300, 300, 128, "bf16", EMU), (130, 200, 128, "f16", EMU), (300, 300, 64, "f16", EMU),
                                    (70, 90, 32, "f32", BOTH), (150, 200, 192, "bf16", ()), (150, 200, 256, "bf16", ())):
        rows, keys = numpy.arange(s)[:, None], numpy.arange(t)[None]
        yield Partly(f"causal in {element}, S={s} T={t} D={d}", "causal", attention_of(s, t, d=d),
                     numpy.broadcast_to(keys <= rows + t - s, (2, s, t)), ("o", "l"),
                     program=PROGRAM if element == "bf16" else of_type(element), exact=exact)
    for s, t, d in ((70, 90, 64), (40, 70, 16)):
        sees = numpy.broadcast_to(numpy.arange(t)[None] <= numpy.arange(s)[:, None] + t - s, (2, s, t))
        yield Partly(f"causal in f64, S={s} T={t} D={d}", "causal", attention_of(s, t, d=d), sees, ("o", "l"),
                     program=of_type("f64"))
    # Threads that overwrite the queries compute results again before.
    for s, t, d, element in ((130, 200, 64, "bf16"), (70, 90, 128, "f16"), (40, 70, 32, "f32"), (33, 70, 16, "f64")):
        inputs = attention_of(s, t, d=d)
        inputs["o"] = inputs.pop("q")
        sees = numpy.broadcast_to(numpy.arange(t)[None] <= numpy.arange(s)[:, None] + t - s, (2, s, t))
        yield Partly(f"results in {element} that replace queries, S={s} T={t} D={d}", "replaced", inputs, sees,
                     program=PROGRAM if element == "bf16" else of_type(element))
    s, t = 130, 300
    rows, keys = numpy.arange(s)[:, None], numpy.arange(t)[None]
    length = numpy.asarray([t - 30, 170])[:, None, None, None]
    place = rows + (length - s)
    sees = numpy.broadcast_to((keys < length) & (keys <= place) & (keys > place - 20), (2, 2, s, t))
    yield Partly("windows", "window",
                 {"q": numbers(1, 2, 2, s, 64), "k": numbers(2, 2, 2, t, 64), "v": numbers(3, 2, 2, t, 64),
                  "len": length.ravel().astype(numpy.int32)}, sees, args={"width": 20})
    sees = (keys <= rows) & (keys < 100)
    yield Partly("two bounds", "two_bounds",
                 {"q": numbers(1, s, 64), "k": numbers(2, t, 64), "v": numbers(3, t, 64)}, sees, ("o", "l"),
                 args={"n": 100}, exact=EMU)
    rng = numpy.random.default_rng(9)
    of, own = numpy.sort(rng.integers(0, 4, s)), numpy.sort(rng.integers(0, 4, t))
    yield Partly("documents", "documents",
                 attention_of(s, t) | {"rows": of.astype(numpy.int32), "keys": own.astype(numpy.int32)},
                 numpy.broadcast_to(of[:, None] == own[None], (2, s, t)), ("o", "l"), exact=EMU)
    # Masked scores, or weights, that are a result: a launch of its own multiplies them.
    for stored, element in (("m", "f32"), ("p", "bf16")):
        yield Partly(f"documents, {stored} is a result", "weights",
                     attention_of(s, t) | {"rows": of.astype(numpy.int32), "keys": own.astype(numpy.int32)},
                     numpy.broadcast_to(of[:, None] == own[None], (2, s, t)), ("o", stored),
                     program=weights_beside(stored, element))
    yield Partly("batch-invariant", "invariant", attention_of(s, s),
                 numpy.broadcast_to(numpy.arange(s)[None] <= rows, (2, s, s)))


def chunks(run):
    """Of chunks over pages: NaN in a row of the last page, which the last queries see."""
    for size, length, s in ((16, [90, 60, 40], 40), (64, [100, 64, 40], 33)):
        form = paged(PROGRAM, "chunks", "table", size, 40, s, length, heads=(4, 2))
        form.inputs["len"] = form.inputs.pop("length")
        form.absent = {}
        places, wanted = {}, form.run(run, (0,))["o"]
        for b, (keys, page) in enumerate(zip(length, form.inputs["table"])):
            j = keys - 5 - b
            places[b] = j
            form.inputs["v"][page[j // size], j % size, :, 3] = (numpy.nan, numpy.inf, -numpy.inf)[b]
        found = form.run(run, (0,))["o"]
        for b, j in places.items():
            first = j - (length[b] - s)  # query that sees it
            what = f"chunks over pages of {size} keys, sequence {b}"
            isReached = numpy.zeros(found[b].shape, bool)
            isReached[:, first:, 3] = True
            close(found[b][~isReached], wanted[b][~isReached], what)
            same(numpy.unique(found[b][isReached]), [(numpy.nan, numpy.inf, -numpy.inf)[b]], what)


def queries(run):
    """Last queries of heads that share keys: rows of a tile are heads and queries. Many keys are cut into parts."""
    for program, kernel, length, heads, s, t, d in (
            (PROGRAM, "queries", [100, 60], (8, 2), 4, 128, 64), (PROGRAM, "queries", [700, 300], (8, 2), 4, 700, 64),
            (PROGRAM, "queries", [400], (4, 4), 20, 420, 128), (of_type("f16"), "queries", [500, 470], (6, 2), 3, 500, 32),
            (of_type("f32"), "queries", [300, 290], (4, 2), 3, 303, 32),
            (SHARES, "causal", [700, 80, 333], (8, 2), 4, 700, 128)):
        batch, (h, g) = len(length), heads
        lengths = "len" if kernel == "queries" else "length"
        inputs = {"q": numbers(1, batch, h, s, d), "k": numbers(2, batch, g, t, d), "v": numbers(3, batch, g, t, d),
                  lengths: integers(*length)}
        wanted = run(program, inputs, ("o", "l"), kernel=kernel)
        isReached, numbered = numpy.zeros((batch, h, s, d), bool), numpy.zeros((batch, h, s, d), numpy.float32)
        inputs["v"] = inputs["v"].copy()
        for b, keys in enumerate(length):
            first = s - 1 - b  # query that sees the value
            for column, value in ((3, numpy.nan), (7, numpy.inf), (d - 1, -numpy.inf)):
                inputs["v"][b, 0, keys - s + first, column] = value
                isReached[b, :h // g, first:, column] = True
                numbered[b, :h // g, first:, column] = value
        found = run(program, inputs, ("o", "l"), kernel=kernel)
        what = f"last queries, {kernel} of {heads} heads, {s} of {length} keys, D={d}"
        close(found["o"][~isReached], wanted["o"][~isReached], what)
        same(found["o"][isReached], numbered[isReached], what)
        same(found["l"], wanted["l"], what)


def behind_functions(run):
    """Results that replace what they are added to, and functions of attention that are NaN for some finite values."""
    for kernel, s, t, d in (("added", 130, 200, 64), ("added", 40, 70, 128), ("roots", 70, 90, 64), ("roots", 40, 70, 192)):
        inputs = attention_of(s, t, d=d)
        if kernel == "added":
            inputs["o"] = numbers(4, 2, s, d)
        else:
            # The mean of all values is negative, and that of those before the last ones is not.
            inputs["v"] = numpy.abs(inputs["v"]) + 0.1
            inputs["v"][:, t - 4:] -= 20 * t
        wanted = run(PROGRAM, inputs, ("o",), kernel=kernel)["o"]
        inputs["v"] = inputs["v"].copy()
        inputs["v"][0, t - 6, 3] = numpy.nan
        found = run(PROGRAM, inputs, ("o",), kernel=kernel)["o"]
        isReached = numpy.zeros((2, s, d), bool)
        isReached[0, s - 6:, 3] = True
        what = f"{kernel}, S={s} T={t} D={d}"
        same(numpy.isnan(found[~isReached]), numpy.isnan(wanted[~isReached]), what)
        isNumber = ~isReached & ~numpy.isnan(wanted)
        close(found[isNumber], wanted[isNumber], what)
        same(numpy.isnan(found[isReached]).all(), True, what)


def causal_gradients(run):
    """NaN in a query's cotangent reaches the keys that it sees, and NaN in a key the queries that see it."""
    for s, d in ((70, 64), (70, 16), (40, 128)):
        inputs = attention_of(s, s, 1, d) | {"o": numbers(4, 1, s, d), "l": numbers(5, 1, s) + 4,
                                             "d_o": numbers(6, 1, s, d), "d_l": numbers(7, 1, s)}
        names = ("d_q", "d_k", "d_v")
        at, column = s - 4, 5
        for name in ("d_o", "k"):
            values = inputs[name].copy()
            inputs[name] = values.copy()
            inputs[name][:, at, column] = 0
            wanted = run(PROGRAM, inputs, names, kernel="causal_backward")
            inputs[name][:, at, column] = numpy.nan
            found = run(PROGRAM, inputs, names, kernel="causal_backward")
            inputs[name] = values
            # Rows of each gradient that the element reaches; of d_v, one column.
            reached = {"d_q": [at], "d_k": range(at + 1), "d_v": range(at + 1)} if name == "d_o" else {
                "d_q": range(at, s), "d_k": [at], "d_v": [at]}
            for result in names:
                isReached = numpy.zeros((1, s, d), bool)
                columns = [column] if (name, result) == ("d_o", "d_v") else slice(None)
                isReached[:, list(reached[result]), columns] = True
                what = f"{result} of {d} columns, NaN in {name}"
                same(numpy.isnan(found[result]), isReached, what)
                close(found[result][~isReached], wanted[result][~isReached], what)


def by_rows(run):
    """NaN that later queries see does not reach earlier ones, and the reference knows."""
    v = numbers(3, 2, 70, 64)
    inputs = {"q": numbers(1, 2, 70, 64), "k": numbers(2, 2, 70, 64), "v": v}
    wanted = run(PROGRAM, inputs, ("o",), kernel="causal", check=True)["o"]
    inputs["v"] = v.copy()
    inputs["v"][:, 40] = numpy.nan
    found = run(PROGRAM, inputs, ("o",), kernel="causal", check=True)["o"]
    same(numpy.isnan(found[:, 40:]).all(), True, "queries that see NaN")
    if run.target == "cpu":
        same(found[:, :40], wanted[:, :40], "queries that do not see NaN")


FORMS = (packed, two_bounds, pages, decode_pages, ragged, kept, window, causal, documents, offsets, cores, gradients)


def check(run):
    for forms in FORMS:
        for form in forms():
            check_form(run, form)
    by_rows(run)
    for form in partly_seen():
        form.check(run)
    chunks(run)
    queries(run)
    behind_functions(run)
    causal_gradients(run)


if __name__ == "__main__":
    main(check)
