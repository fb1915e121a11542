"""Integers of 8 and 16 bits: arithmetic is done in i32, what is stored into a narrow type wraps."""
import numpy

from exact import main, same

PROGRAM = "tests/e2e/programs/narrow_integers.tk"


def check(run):
    def of(kernel, inputs, results, **options):
        return run(PROGRAM, inputs, results=results, kernel=kernel, check=True, **options)

    u8, i8, i16 = (lambda values, type_=type_: numpy.array(values, type_) for type_ in (numpy.uint8, numpy.int8, numpy.int16))
    same(of("difference", {"a": u8([1, 0, 255]), "b": u8([3, 255, 0])}, ["y"])["y"], [-2, -255, 255], "a - b")
    same(of("total", {"x": u8([200] * 4)}, ["y"])["y"], 800, "a sum of bytes")
    same(of("total", {"x": u8([255] * 4099)}, ["y"])["y"], 255 * 4099, "a long sum of bytes")
    same(of("square", {"w": i8([100, -128, 3])}, ["c"])["c"], [10000, 16384, 9], "a square")

    a, b, c = u8([0, 1, 99, 100, 200, 255]), i8([-128, -1, 7, 127, -100, 100]), i16([-32768, 5, -6, 32767, 100, -1])
    wide = {name: value.astype(numpy.int64) for name, value in (("a", a), ("b", b), ("c", c))}
    wa, wb, wc = wide["a"], wide["b"], wide["c"]
    names = ["plus", "minus", "times", "over", "rest", "power", "less", "size", "fused", "chosen"]
    found = of("operations", {"a": a, "b": b, "c": c}, names)
    wanted = [wa + wa, wa - 300, wa * wb, wb // 3, wc % 7, wb**3, -wc, abs(wb), wa * wb + wc,
              numpy.where(wa < 100, wa, wb) * 2]
    for name, value in zip(names, wanted):
        same(found[name], value, name)

    rng = numpy.random.default_rng(1)
    for rows, columns in ((3, 5), (5, 300), (2, 4097)):
        a = rng.integers(0, 256, (rows, columns)).astype(numpy.uint8)
        b = rng.integers(-128, 128, (rows, columns)).astype(numpy.int8)
        c = rng.integers(-32768, 32768, (rows, columns)).astype(numpy.int16)
        names = ["s", "t", "p", "u", "run", "through"]
        found = of("reductions", {"a": a, "b": b, "c": c}, names)
        wa, wb, wc = (value.astype(numpy.int32) for value in (a, b, c))
        wanted = [wa.sum(1), wc.sum(1), wb.prod(1, dtype=numpy.int32), (wa * wb).sum(1), wa.cumsum(1),
                  wb.cumprod(1, dtype=numpy.int32)]
        for name, value in zip(names, wanted):
            same(found[name], value.astype(numpy.int32), f"{name} of {rows} x {columns}")

    a, b, n = u8([0, 100, 200, 255]), i8([-128, -1, 100, 127]), numpy.array([70000, -5, 32767, 1 << 30], numpy.int32)
    found = of("stored", {"a": a, "b": b, "n": n}, ["y", "z", "w", "v", "back", "total"])
    wa, wb, wn = (value.astype(numpy.int64) for value in (a, b, n))
    same(found["y"], (wa - 200).astype(numpy.uint8), "a - 200 as u8")
    same(found["z"], wa.astype(numpy.int8), "a u8 as i8")
    same(found["w"], (wn * 3).astype(numpy.int16), "n * 3 as i16")
    same(found["v"], wb.astype(numpy.uint8), "an i8 as u8")
    same(found["back"], (wb + wb).astype(numpy.int8), "a local of i8")
    same(found["total"], wa.sum().astype(numpy.uint8), "a sum as u8")

    a, b = u8([0, 1, 128, 200, 255]), u8([255, 1, 127, 100, 3])
    found = of("kept", {"a": a, "b": b}, ["inverse", "up", "down", "most", "other"])
    same(found["inverse"], ~a, "bitnot keeps u8")
    same(found["up"], (a.astype(int) << 1) % 256, "shl keeps u8")
    same(found["down"], a >> 1, "counts are modulo 8")
    same(found["most"], numpy.maximum(a, b), "max")
    same(found["other"], ~numpy.where(a < b, a, b), "bitnot of a choice")

    a, b = u8([0, 100, 255]), i8([-128, 100, -1])
    found = of("literals", {"a": a, "b": b}, ["y", "z", "w", "v"])
    same(found["y"], [True] * 3, "a < 300")
    same(found["z"], [True] * 3, "b > -200")
    same(found["w"], [1000, 1100, 1255], "a + 1000")
    same(found["v"], [False, True, False], "a == b of two signs")

    x = numpy.arange(5, dtype=numpy.int32)
    found = of("scalars", {"x": x}, ["y", "z", "w"], args={"a": 100, "b": -100})
    same(found["y"], x + 200, "a - b of scalars")
    same(found["z"], x + 44, "3 * a as a scalar of u8")
    same(found["w"], x - 56, "2 * a as a scalar of i8")

    x = rng.integers(-2, 3, (3, 128)).astype(numpy.float32)
    w, zero = rng.integers(0, 256, (48, 64)).astype(numpy.uint8), rng.integers(0, 16, 48).astype(numpy.uint8)
    nib = numpy.stack([w & 15, w >> 4], -1).reshape(48, 128).astype(numpy.float64) - zero[:, None]
    found = of("nibbles", {"x": x, "w": w, "zero": zero, "scale": numpy.full(48, 0.5, numpy.float32)}, ["y"])
    same(found["y"], x.astype(numpy.float64) @ nib.T * 0.5, "a product of nibbles less zero points")

    q, zero = u8([0, 3, 255]), u8([255, 3, 0])
    gradient = run(PROGRAM, {"q": q, "zero": zero, "scale": numpy.ones(3, numpy.float32),
                             "y": numpy.zeros(3, numpy.float32), "d_y": numpy.ones(3, numpy.float32)},
                   results=["d_scale"], kernel="dequantise_backward")["d_scale"]
    same(gradient, [-255, 0, 255], "the gradient by a scale")


main(check)
