"""What is stored into a narrower type is the exact value, rounded once to nearest even."""
from fractions import Fraction
import math

import numpy

from exact import main, same

PROGRAM = "tests/e2e/programs/stored_roundings.tk"

# Significant bits, the exponent of the least normal number, the greatest number, and what is beyond.
TYPES = {
    "s": (24, -126, float(numpy.finfo(numpy.float32).max), math.inf),
    "b": (8, -126, float.fromhex("0x1.fep127"), math.inf),
    "h": (11, -14, 65504.0, math.inf),
    "p": (4, -6, 448.0, 448.0),
    "q": (3, -14, 57344.0, 57344.0),
}


def nearest(value, type_):
    """The exact value of a float or an integer, rounded once."""
    bits, least, greatest, beyond = TYPES[type_]
    if isinstance(value, float):
        if math.isnan(value):
            return value
        if math.isinf(value):
            return math.copysign(beyond, value)
        if value == 0:
            return value
    exact = Fraction(value)
    if exact == 0:
        return 0.0
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, least) - bits + 1)
    rounded = round(size / quantum) * quantum  # Python rounds a fraction to nearest even
    result = beyond if rounded > Fraction(greatest) else float(rounded)
    return -result if exact < 0 else result


def ties(bits, exponents):
    """Ties between neighbours of so many significant bits, and what lies next to them."""
    values = []
    for exponent in exponents:
        for low in (2 ** (bits - 1), 2 ** (bits - 1) + 1, 2**bits - 1):
            tie = (low + 0.5) * 2.0 ** (exponent - bits + 1)
            values += [tie, tie * (1 + 2.0**-40), tie * (1 - 2.0**-40), tie * (1 + 2.0**-52)]
    return values


def check(run):
    numbers = [1 + 2.0**-8 + 2.0**-40, 65519.999999, 65520.0, 1 + 2.0**-4 + 2.0**-40, 0.0, -0.0, math.inf, -math.inf,
               math.nan, 464.0, 463.9999999, 61440.0, 1e300, 1e-300, 3.4028235677973366e38, 3.4028235e38, 3.3961775e38]
    for bits, least, _, _ in TYPES.values():
        numbers += ties(bits, (0, 5, least, least + 1))
        if least > -126 or bits < 24:
            # Between subnormal numbers.
            step = 2.0 ** (least - bits + 1)
            numbers += [(n + 0.5) * step * (1 + s * 2.0**-40) for n in (0, 1, 2) for s in (-1, 0, 1)]
    rng = numpy.random.default_rng(2)
    numbers += list(rng.standard_normal(500) * 2.0 ** rng.integers(-20, 20, 500))
    numbers += [-value for value in numbers]

    x = numpy.array(numbers, numpy.float64)
    found = run(PROGRAM, {"x": x}, results=["s", "b", "h", "p", "q"], kernel="from_f64", check=True)
    for type_, values in found.items():
        same(values, [nearest(float(value), type_) for value in x], f"f64 as {type_}")
    with numpy.errstate(over="ignore"):
        x = x.astype(numpy.float32)
    found = run(PROGRAM, {"x": x}, results=["b", "h", "p", "q"], kernel="from_f32", check=True)
    for type_, values in found.items():
        same(values, [nearest(float(value), type_) for value in x], f"f32 as {type_}")
    x = numpy.arange(65536, dtype=numpy.uint16)[::7].view(numpy.float16)
    found = run(PROGRAM, {"x": x}, results=["b", "p", "q"], kernel="from_f16", check=True)
    for type_, values in found.items():
        same(values, [nearest(float(value), type_) for value in x], f"f16 as {type_}")

    for kernel, width in (("from_i32", 32), ("from_i64", 64)):
        numbers = [0, 1, 65519, 65520, 2 ** (width - 1) - 1, 448, 464, 465]
        for bits in (3, 4, 8, 11, 24, 53):
            for top in range(bits + 1, width - 1):
                tie = (2 ** (bits - 1) * 2 + 1) << (top - bits)
                odd = (2**bits + 2 + 1) << (top - bits)
                numbers += [n for at in (tie, odd) for n in (at - 1, at, at + 1) if n < 2 ** (width - 1)]
        numbers += [-n for n in numbers] + [-(2 ** (width - 1))]
        x = numpy.array(numbers, f"i{width // 8}")
        found = run(PROGRAM, {"x": x}, results=["d", "s", "b", "h", "p", "q", "c"], kernel=kernel, check=True)
        same(found["d"], [float(n) for n in numbers], f"i{width} as f64")
        for type_ in TYPES:
            same(found[type_], [nearest(n, type_) for n in numbers], f"i{width} as {type_}")
        same(found["c"], found["b"], f"a cast of i{width} to bf16")

    x = rng.standard_normal((3, 67))
    x[:, 0::15] = (1 + 2.0**-8) * (1 + 2.0**-40)
    x[:, 5::15] = (1 + 2.0**-11) * (1 - 2.0**-40)
    x[:, 10::15] = -(1 + 2.0**-4) * (1 + 2.0**-40)
    x[1, 3], x[2, 4] = 9 * (1 + 2.0**-11 + 2.0**-40), -9 * (1 + 2.0**-8 + 2.0**-40)
    found = run(PROGRAM, {"x": x}, results=["least", "most", "size", "turned"], kernel="handed_on", check=True)
    same(found["least"], [nearest(float(row.min()), "b") for row in x], "a minimum")
    same(found["most"], [nearest(float(row.max()), "h") for row in x], "a maximum")
    same(found["size"], [[nearest(abs(float(v)), "b") for v in row] for row in x], "abs")
    same(found["turned"], [[nearest(abs(float(v)), "p") for v in row] for row in x], "a choice")

    names = ["b", "h", "p", "l", "k", "s", "t", "u"]
    far = 2**40 + 2**32 + 1
    for a in (1 + 2.0**-8 + 2.0**-40, -(1 + 2.0**-11 + 2.0**-40), 1 + 2.0**-4 - 2.0**-40):
        found = run(PROGRAM, {"x": numpy.zeros(5, numpy.float16)}, results=names, kernel="of_launches",
                    args={"a": repr(a), "n": far, "m": 2**24 + 2**16 + 1})
        wanted = [nearest(a, "b"), nearest(a, "h"), nearest(a, "p"), nearest(far, "b"), nearest(2**24 + 2**16 + 1, "b"),
                  nearest(far, "s"), nearest(a, "b"), nearest(far, "b")]
        for name, value in zip(names, wanted):
            same(found[name], [value] * 5, f"{name} of a scalar {a!r}")
        found = run(PROGRAM, {"x": numpy.ones(3, numpy.float32), "h": numpy.ones(3, numpy.float16), "z": numpy.array([a]),
                              "n": numpy.array([far])}, results=["y", "w", "v"], kernel="outside")
        same(found["y"], [nearest(a, "b"), 1, 1], "an f64 outside bf16")
        same(found["w"], [nearest(a, "h"), 1, 1], "an f64 outside f16")
        same(found["v"], [nearest(far, "b"), 1, 1], "an i64 outside bf16")


main(check)
