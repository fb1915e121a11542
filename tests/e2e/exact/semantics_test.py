"""Values at the ends of ranges: places of extrema, roundings, conversions, quotients, shifts."""
import numpy

from exact import main, same

PROGRAM = "tests/e2e/programs/semantics.tk"
NAN, INF = numpy.nan, numpy.inf


def first(values, wants_most):
    """The first NaN, else the first extremum."""
    values = numpy.asarray(values)
    if values.dtype.kind == "f" and numpy.isnan(values).any():
        return int(numpy.argmax(numpy.isnan(values)))
    return int(numpy.argmax(values) if wants_most else numpy.argmin(values))


def check_places(run):
    rng = numpy.random.default_rng(3)
    for columns in (1, 7, 300, 5000):
        x = rng.integers(-3, 4, (6, columns)).astype(numpy.float32)
        x[1, columns // 2:] = NAN
        x[2] = NAN
        x[3] = -INF
        x[4] = INF
        x[5, columns - 1] = NAN
        n = rng.integers(-3, 4, (6, columns)).astype(numpy.int32)
        n[0], n[1] = -(2**31), 2**31 - 1
        names = ["most", "least", "whole", "whole_least", "most_n", "least_n"]
        found = run(PROGRAM, {"x": x, "n": n}, results=names, kernel="places")
        same(found["most"], [first(row, True) for row in x], f"argmax of {columns}")
        same(found["least"], [first(row, False) for row in x], f"argmin of {columns}")
        same(found["whole"], first(x.ravel(), True), f"argmax over 6 x {columns}")
        same(found["whole_least"], first(x.ravel(), False), f"argmin over 6 x {columns}")
        same(found["most_n"], [first(row, True) for row in n], f"argmax of {columns} integers")
        same(found["least_n"], [first(row, False) for row in n], f"argmin of {columns} integers")


def check_conversions(run):
    numbers = numpy.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, 8388607.5, 1e30, INF, -INF, NAN, -0.0, 3.7])
    x = numbers.astype(numpy.float32)
    found = run(PROGRAM, {"x": x, "z": numbers}, results=["y", "w"], kernel="roundings")
    same(found["y"], numpy.rint(x), "round in f32")
    same(found["w"], numpy.rint(numbers), "round in f64")

    numbers = [0.9, -0.9, 1.99, -1.99, 127.9, 128.0, -128.9, -129.0, 255.9, 256.0, -1.0, 32767.9, 32768.0, -32769.0,
               2147483647.0, 2147483648.0, -2147483649.0, 4294967296.0, 9.2e18, 9.3e18, -9.3e18, 1e30, -1e30, INF, -INF, NAN]
    z = numpy.array(numbers)
    x = z.astype(numpy.float32)
    found = run(PROGRAM, {"x": x, "z": z}, results=list("abcdefghkl"), kernel="to_integers")
    types = [numpy.int64, numpy.int32, numpy.int16, numpy.int8, numpy.uint8]
    for names, source in (("abcde", x), ("fghkl", z)):
        for name, type_ in zip(names, types):
            info = numpy.iinfo(type_)
            wanted = [0 if numpy.isnan(v) else info.max if v >= info.max else info.min if v <= info.min else int(v)
                      for v in source.astype(float)]
            same(found[name], numpy.array(wanted, dtype=object).astype(type_), f"{source.dtype} as {info.dtype}")

    x = numpy.array([INF, -INF, NAN, 1e9, -1e9, 448, 449, 57344, 60000, 1e-9], numpy.float32)
    found = run(PROGRAM, {"x": x}, results=["p", "q"], kernel="saturated")
    same(found["p"], [448, -448, NAN, 448, -448, 448, 448, 448, 448, 0], "f8e4m3 saturates")
    same(found["q"], [57344, -57344, NAN, 57344, -57344, 448, 448, 57344, 57344, 0], "f8e5m2 saturates")


def check_integers(run):
    a = numpy.array([7, -7, 7, -7, 5, -5, 0, -(2**31)], numpy.int32)
    b = numpy.array([2, 2, -2, -2, 0, 0, 0, 0], numpy.int32)
    c, d = a.astype(numpy.int64) * 2**32, b.astype(numpy.int64)
    e, f = numpy.array([7, 255, 200, 9, 5, 255, 0, 1], numpy.uint8), b.astype(numpy.int8)
    found = run(PROGRAM, {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f}, results=list("qrstuv"), kernel="quotients")
    for names, left, right in (("qr", a, b), ("st", c, d), ("uv", e.astype(int), f.astype(int))):
        safe = numpy.where(right == 0, 1, right)
        quotient = numpy.where(right == 0, 0, left // safe)
        rest = numpy.where(right == 0, 0, left - left // safe * safe)
        same(found[names[0]], quotient, f"{left.dtype} / {right.dtype}")
        same(found[names[1]], rest, f"{left.dtype} % {right.dtype}")

    n = numpy.array([0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, -1, 1000], numpy.int32)
    names = [letter + side for side in ("_l", "_r") for letter in "abcde"]
    types = [numpy.int64, numpy.int32, numpy.int16, numpy.int8, numpy.uint8]
    inputs = {letter: numpy.full(n.size, 0xA5 if type_ is numpy.uint8 else -91, type_)
              for letter, type_ in zip("abcde", types)}
    found = run(PROGRAM, inputs | {"n": n}, results=names, kernel="shifts")
    for letter, type_ in zip("abcde", types):
        count = n % (8 * numpy.dtype(type_).itemsize)
        same(found[letter + "_l"], numpy.left_shift(inputs[letter], count.astype(type_)), f"shl of {type_.__name__}")
        same(found[letter + "_r"], numpy.right_shift(inputs[letter], count.astype(type_)), f"shr of {type_.__name__}")


def check_literals(run):
    found = run(PROGRAM, {"x": numpy.zeros(5, numpy.float32)}, results=list("abcd"), kernel="literals", check=True)
    for name, value in zip("abcd", (-1, 200, -30000, [-7] * 5)):
        same(found[name], value, f"the literal of {name}")


def check(run):
    check_literals(run)
    check_places(run)
    check_conversions(run)
    check_integers(run)


main(check)
