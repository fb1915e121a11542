"""argmax and argmin: i64 as the whole right side of an i64 result or local, else i32 of at most 2^31 positions."""
import numpy

from exact import holds, main, same

PROGRAM = "tests/e2e/programs/far_argmax.tk"


def check(run):
    rng = numpy.random.default_rng(4)
    for rows, columns in ((5, 1), (3, 257), (2, 40011)):
        x = rng.integers(-3, 4, (rows, columns)).astype(numpy.float32)
        names = ["near", "far", "least", "sum_", "top", "at_top"]
        found = run(PROGRAM, {"x": x}, results=names, kernel="both", check=True)
        most, least = x.argmax(1), x.argmin(1)
        wanted = [most, most, least, most + least, x.max(1), x.max(1)]
        for name, value in zip(names, wanted):
            same(found[name], value, f"{name} of {rows} x {columns}")
        holds(found["far"].dtype == numpy.int64 and found["near"].dtype == numpy.int32, "the types of places")
        found = run(PROGRAM, {"x": x}, results=["near", "far"], kernel="whole", check=True)
        same(found["near"], x.argmax(), f"a place in {rows} x {columns}")
        same(found["far"], x.argmax(), f"a place in {rows} x {columns} as i64")
    x = rng.integers(-100, 100, 5000).astype(numpy.int8)
    for kernel in ("where_greatest", "where_greatest_far"):
        same(run(PROGRAM, {"x": x}, results=["i"], kernel=kernel)["i"], x.argmax(), kernel)

    def is_refused(kernel, **sizes):
        try:
            run(PROGRAM, results=["i"], kernel=kernel, **sizes)
        except RuntimeError as error:
            return "fit i32" in str(error)
        return False

    holds(is_refused("where_greatest", dims={"C": 2**31 + 1}), "more than 2^31 positions in i32 are not refused")
    holds(is_refused("in_plane", dims={"R": 600000, "C": 4096}), "more than 2^31 places in a plane are not refused")
    holds(is_refused("computed_near", args={"n": 2**31 + 1}), "more than 2^31 computed places are not refused")
    if run.target == "cpu":  # the emulator would take hours
        same(run(PROGRAM, results=["i"], kernel="computed", args={"n": 2**31 + 52})["i"], 2**31 + 47, "a far place")


main(check)
