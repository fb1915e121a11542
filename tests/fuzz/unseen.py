"""Random attention whose left-out places hold anything: the bits must be those of a run with zeros there.

    unseen.py TKC --targets cpu,emu --count N [--seed S] [--type T]

A program is one of several forms (lengths, pages, packed sequences, keys left out one by one, documents, windows, two bounds,
chunks of prefill, last queries of grouped heads) with random sizes, types, bounds and results. Then one value that some queries
see is NaN or infinite: results of other queries must stay as they are, but for the order of their sums. Prints the seed of what
differs; `--seed S --count 1` runs it again.
"""
import argparse
import pathlib
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "exact"))
from exact import FAILURES, Runner, holds, same  # noqa: E402
from choices import Random  # noqa: E402

FILLINGS = (numpy.nan, numpy.inf, -numpy.inf, 65504.0)
SIZES = (1, 2, 3, 7, 16, 17, 33, 64, 65, 100, 130)
WIDTHS = (8, 16, 24, 32, 40, 64, 72, 128)


def close(found, wanted, what):
    """Equal but for the order of sums, before a rounding to 16 bits; an infinite log-sum-exp is the same."""
    isFinite = numpy.isfinite(wanted)
    same(found[~isFinite], wanted[~isFinite], what)
    found, wanted = found[isFinite], wanted[isFinite]
    holds(numpy.allclose(found, wanted, rtol=2e-2, atol=2e-3 * max(numpy.abs(wanted).max(initial=0), 1e-3)), what)


class Case:
    """A program, its inputs, and which of their elements no term reads."""

    def __init__(self, seed, type=None):
        r = self.random = Random(seed)
        self.type = r.of((type,) * 4 if type else ("bf16", "bf16", "f16", "f32"))
        self.batch, self.heads, self.groups = r.of((1, 2, 3)), r.of((1, 2, 4)), r.of((1, 2))
        self.heads *= self.groups
        self.rows, self.keys, self.width, self.columns = r.of(SIZES), r.of(SIZES), r.of(WIDTHS), r.of(WIDTHS)
        self.inputs, self.absent, self.args, self.results = {}, {}, {}, ["o"]
        self.mayReorder = False  # tiles may load keys that no query sees, and add results up again without
        self.sees = None  # which keys a query of a sequence sees; None: not checked
        form = r.of((self.lengths, self.lengths, self.pages, self.packed, self.kept, self.documents,
                     self.window, self.bounds, self.chunks, self.queries, self.queries, self.queries_of_pages))
        self.program = form()

    def text(self, parameters, score, condition, key, value, over="j", where=""):
        """The text of a kernel. `key` and `value` are accesses."""
        lse = self.random.percent(30)
        self.results += ["l"] if lse else []
        scale = self.random.of((" * rsqrt(D)", "", " * 0.3"))
        rounded = ": bf16" if self.type == "bf16" and self.random.percent(20) else ""
        lines = [f"let s[b, h, i, {over}] = sum[d](q[b, h, i, d] * {key}){scale}{score}",
                 f"let m[b, h, i, {over}] = if {condition} then s[b, h, i, j] else -inf"]
        if self.random.percent(50):
            lines += [f"let p[b, h, i, {over}]{rounded} = softmax[j](m[b, h, i, j])",
                      f"o[b, h, i, e] = sum[{over}](p[b, h, i, j] * {value})"]
        else:
            lines.append(f"o[b, h, i, e] = sum[{over}](softmax[j](m[b, h, i, j]) * {value})")
        if lse:
            lines.append(f"l[b, h, i] = logsumexp[{over}](m[b, h, i, j])")
        results = f"o: {self.type}[B, H, S, E]" + (", l: f32[B, H, S]" if lse else "")
        return (f"kernel unseen(q: {self.type}[B, H, S, D], {parameters}) -> ({results}){where}\n{{\n  "
                + "\n  ".join(lines) + "\n}\n")

    def dense(self, parameters, condition, seen):
        """Keys and values of each sequence; `seen` has an entry for each of its keys."""
        b, g, t = self.batch, self.groups, self.keys
        self.inputs |= {"q": self.random.normal(b, self.heads, self.rows, self.width),
                        "k": self.random.normal(b, g, t, self.width), "v": self.random.normal(b, g, t, self.columns)}
        for name in ("k", "v"):
            self.absent[name] = ~numpy.broadcast_to(seen[:, None, :, None], self.inputs[name].shape)
        return self.text(f"k: {self.type}[B, G, T, D], v: {self.type}[B, G, T, E], {parameters}", "", condition,
                         "k[b, h / (H / G), j, d]", "v[b, h / (H / G), j, e]", where=" where G > 0, H % G == 0")

    def lengths(self):
        length = self.random.integers(-1, self.keys + 2, self.batch)
        self.inputs["len"] = length
        return self.dense("len: i32[B]", "j < len[b]", numpy.arange(self.keys)[None] < length[:, None])

    def kept(self):
        keep = self.random.integers(0, 2, self.batch, self.keys)
        self.inputs["keep"] = keep
        return self.dense("keep: i32[B, T]", "keep[b, j] != 0", keep != 0)

    def documents(self):
        rows = numpy.sort(self.random.integers(0, 4, self.batch, self.rows))
        keys = numpy.sort(self.random.integers(-1, 6, self.batch, self.keys))
        self.inputs |= {"of": rows, "keys": keys}
        self.mayReorder = True
        seen = numpy.stack([numpy.isin(k, r) for k, r in zip(keys, rows)])
        return self.dense("of: i32[B, S], keys: i32[B, T]", "of[b, i] == keys[b, j]", seen)

    def window(self):
        length = self.random.integers(0, self.keys + 1, self.batch)
        width = int(self.random.of((1, 3, 20, 1000)))
        self.inputs["len"], self.args["width"] = length, width
        places, ends = numpy.arange(self.keys)[None], length[:, None]
        seen = (places < ends) & (places > ends - self.rows - width)
        return self.dense("len: i32[B], width: i32",
                          "j < len[b] and j <= i + (len[b] - S) and j > i + (len[b] - S) - width", seen)

    def bounds(self):
        n = int(self.random.integers(-1, self.keys + 2))
        self.args["n"] = n
        seen = numpy.broadcast_to(numpy.arange(self.keys) < min(n, self.rows), (self.batch, self.keys))
        return self.dense("n: i32", "j <= i and j < n", seen)

    def chunks(self):
        """Queries that are the last ones of their sequences, as many as a tile has at least."""
        self.rows = self.random.of((64, 65, 100, 130))
        return self.last_queries(self.rows + self.random.of((0, 3, 64)))

    def queries(self):
        """A few last queries of grouped heads, over keys that are cut into parts where they are many."""
        return self.last_queries(self.keys_of_queries())

    def queries_of_pages(self):
        """The same over pages."""
        size = self.random.of((16, 64))
        most = -(-self.keys_of_queries() // size)
        length = self.random.integers(self.rows, most * size + 1, self.batch)
        return self.paged(size, most, length, "j < len[b] and j <= i + (len[b] - S)")

    def keys_of_queries(self):
        self.rows = self.random.of((2, 3, 4, 8, 16, 20))
        shared = self.random.of((1, 2, 4, 8))
        self.heads = self.groups * shared
        return self.rows + self.random.of((5, 60, 300, 700))

    def last_queries(self, keys):
        self.keys = keys
        length = self.random.integers(self.rows, self.keys + 1, self.batch)
        self.inputs["len"] = length
        self.sees = self.seen_by_last(length, self.keys)
        return self.dense("len: i32[B]", "j < len[b] and j <= i + (len[b] - S)",
                          numpy.arange(self.keys)[None] < length[:, None])

    def seen_by_last(self, length, keys):
        """Which keys each of the last queries sees."""
        ends = length[:, None, None]
        places, rows = numpy.arange(keys), numpy.arange(self.rows)
        return (places < ends) & (places <= rows[:, None] + (ends - self.rows))

    def packed(self):
        most = self.random.of((8, 40, 64, 130))
        length = self.random.integers(0, most + 1, self.batch)
        start = numpy.cumsum(numpy.concatenate([[self.random.of((0, 5))], length]))[:-1].astype(numpy.int32)
        total = int(length.sum()) + 9
        seen = numpy.zeros(total, bool)
        chosen = self.random.integers(0, self.batch, 1)[0]  # one sequence may be there alone
        for b in range(self.batch):
            if b == chosen or self.random.percent(70):
                seen[start[b]:start[b] + length[b]] = True
            else:
                length[b] = 0
        self.inputs = {"q": self.random.normal(self.batch, self.heads, self.rows, self.width), "start": start,
                       "len": length, "k": self.random.normal(total, self.groups, self.width),
                       "v": self.random.normal(total, self.groups, self.columns)}
        for name in ("k", "v"):
            self.absent[name] = ~numpy.broadcast_to(seen[:, None, None], self.inputs[name].shape)
        return self.text(f"k: {self.type}[N, G, D], v: {self.type}[N, G, E], start: i32[B], len: i32[B]", "",
                         "j < len[b]", "k[start[b] + j, h / (H / G), d]", "v[start[b] + j, h / (H / G), e]",
                         f"j in 0..{most}", " where G > 0, H % G == 0")

    def pages(self):
        size = self.random.of((4, 8, 12, 16, 64))
        most = self.random.of((1, 3, 6))
        return self.paged(size, most, self.random.integers(0, most * size + 1, self.batch), "j < len[b]")

    def paged(self, size, most, length, condition):
        need = -(-length // size)
        count = int(need.sum()) + 3
        table = self.random.rng.choice([-1, count, 2**31 - 1, -2**31], (self.batch, most)).astype(numpy.int32)
        free = iter(self.random.rng.permutation(count))
        seen = numpy.zeros((count, size), bool)
        for b, keys in enumerate(length):
            for n in range(need[b]):
                table[b, n] = page = next(free)
                seen[page, :min(size, keys - n * size)] = True
        self.inputs = {"q": self.random.normal(self.batch, self.heads, self.rows, self.width), "table": table,
                       "len": length, "k": self.random.normal(count, size, self.groups, self.width),
                       "v": self.random.normal(count, size, self.groups, self.columns)}
        if "S" in condition:
            self.sees = self.seen_by_last(length, most * size)
        for name in ("k", "v"):
            self.absent[name] = ~numpy.broadcast_to(seen[:, :, None, None], self.inputs[name].shape)
        return self.text(f"k: {self.type}[N, P, G, D], v: {self.type}[N, P, G, E], table: i32[B, M], len: i32[B]", "",
                         condition, "k[table[b, j / P], j % P, h / (H / G), d]",
                         "v[table[b, j / P], j % P, h / (H / G), e]", "j in 0..M * P",
                         " where G > 0, H % G == 0, P > 0")

    def run(self, run, filling):
        inputs = {name: values.copy() for name, values in self.inputs.items()}
        for name, places in self.absent.items():
            inputs[name][places] = filling
        return run(self.program, inputs, self.results, args=self.args)

    def check_partly(self, run, wanted):
        """A value that is not finite reaches the queries that see it, and no others."""
        r, shared = self.random, self.heads // self.groups
        b, g, e = (int(r.integers(0, size, 1)[0]) for size in (self.batch, self.groups, self.columns))
        # Mostly one that some queries see and others do not.
        some = numpy.flatnonzero(self.sees[b].any(0) & ~self.sees[b].all(0))
        j = int(r.of(some) if len(some) and r.percent(70) else r.integers(0, self.sees.shape[-1], 1)[0])
        number = r.of((numpy.nan, numpy.nan, numpy.inf, -numpy.inf))
        if "table" in self.inputs:
            size = self.inputs["v"].shape[1]
            page = self.inputs["table"][b, j // size]
            if not 0 <= page < len(self.inputs["v"]):
                return
            place = (page, j % size, g, e)
        else:
            place = (b, g, j, e)
        self.inputs["v"][place] = number
        found = self.run(run, 0)["o"]
        isReached = numpy.zeros(found.shape, bool)
        isReached[b, g * shared:(g + 1) * shared, :, e] = self.sees[b, :, j]
        close(found[~isReached], wanted["o"][~isReached], f"queries that do not see {number} in v{list(place)}")
        holds(numpy.array_equal(found[isReached], numpy.full(isReached.sum(), number), equal_nan=True),
              f"queries that see {number} in v{list(place)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tkc")
    parser.add_argument("--targets", default="cpu,emu")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--type", help="the only element type; f64 has no other way to be chosen")
    options = parser.parse_args()
    wrong = 0
    for seed in range(options.seed, options.seed + options.count):
        for target in options.targets.split(","):
            case, run = Case(seed, options.type), Runner(options.tkc, target)
            FAILURES.clear()
            try:
                wanted, found = case.run(run, 0), case.run(run, case.random.of(FILLINGS))
                for result in case.results:
                    compare = close if case.mayReorder and target != "cpu" else same
                    compare(found[result], wanted[result], result)
                if case.sees is not None and not FAILURES:
                    case.check_partly(run, wanted)
            except RuntimeError as error:
                FAILURES.append(str(error))
            if FAILURES:
                wrong += 1
                print(f"--seed {seed} on {target}: " + "; ".join(FAILURES) + "\n" + case.program, flush=True)
    print(f"{options.count} programs, {wrong} wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
