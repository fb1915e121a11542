"""Terms that a condition at the sum's index leaves out of a contraction: their elements may be NaN or infinite."""
import numpy

from exact import main, same

MASKED = "tests/e2e/programs/factors.tk"


def check(run):
    rng = numpy.random.default_rng(7)
    for rows, columns, depth in ((70, 72, 136), (3, 40, 33)):
        keep = rng.random(depth) < 0.6
        x, w = (rng.integers(-3, 4, (n, depth)).astype(numpy.float32) for n in (rows, columns))
        s = rng.integers(1, 4, depth).astype(numpy.float32)
        wanted = numpy.where(keep, x * s, 0) @ numpy.where(keep, w, 0).T
        for of_x, of_w, of_s in ((numpy.nan, numpy.inf, 1), (0, numpy.nan, numpy.inf), (numpy.inf, 0, numpy.nan)):
            x[:, ~keep], w[:, ~keep], s[~keep] = of_x, of_w, of_s
            found = run(MASKED, {"x": x, "w": w, "s": s, "keep": keep}, kernel="masked")["y"]
            same(found, wanted, f"{rows} x {columns} sums of {depth} terms without those of {of_x} and {of_w}")


main(check)
