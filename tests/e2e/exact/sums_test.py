"""Sums of many equal numbers: their error does not grow with the number of terms, on the CPU target neither."""
import numpy

from exact import holds, main

PROGRAM = "tests/e2e/programs/sums.tk"
# Bounds are in units of 2^-24, relative to the exact result. Those of the CPU target are none larger than the others'.
SCALE = 2.0**-24


def error(found, wanted):
    wanted = numpy.asarray(wanted, numpy.float64)
    return float(numpy.max(numpy.abs(found - wanted) / numpy.maximum(numpy.abs(wanted), 1e-30))) / SCALE


def check(run):
    tenth = numpy.float32(0.1)
    exact = float(tenth)

    def bounded(kernel, inputs, result, wanted, bound):
        found = run(PROGRAM, inputs, results=[result], kernel=kernel)[result]
        size = error(found, wanted)
        holds(size <= bound, f"{kernel}: an error of {size:.3g} units, above {bound}")

    is_cpu = run.target == "cpu"
    count = 1 << 20 if is_cpu else 1 << 16
    flat = numpy.full(count, tenth)
    bounded("total", {"x": flat}, "y", exact * count, 1)
    bounded("rows", {"x": flat.reshape(2, -1)}, "y", numpy.full(2, exact * (count // 2)), 1)
    bounded("columns", {"x": flat.reshape(-1, 2)}, "y", numpy.full(2, exact * (count // 2)), 1 if is_cpu else 4)
    bounded("squares", {"x": flat.reshape(2, -1)}, "y", numpy.full(2, exact * exact * (count // 2)), 1)
    bounded("exponentials", {"x": flat.reshape(2, -1)}, "y", numpy.full(2, exact + numpy.log(count // 2)), 1)
    bounded("running", {"x": flat}, "y", exact * numpy.arange(1, count + 1), 1 if is_cpu else 4)
    for depth, bound in ((512, 4), (4096, 4), (1 << 16, 16)) if is_cpu else ((4096, 512),):
        a = numpy.full((9, depth), tenth)
        wanted = numpy.full((9, 5), exact * exact * depth)
        bounded("product", {"a": a, "b": a.T[:, :5].copy()}, "c", wanted, bound)
    constant = numpy.full((2, 40000), numpy.float32(1000.1))
    bounded("normed", {"x": constant}, "mu", numpy.full(2, float(numpy.float32(1000.1))), 1)
    y = run(PROGRAM, {"x": constant}, kernel="normed")["y"]
    holds(numpy.all(y == 0), "the norm of a constant row is not 0")


main(check)
