"""A condition that keeps an access inside the image leaves its term out, also if the weight of the term is NaN."""
import numpy

from exact import holds, main, same

PROGRAM = "tests/e2e/programs/window_conditions.tk"
KERNELS = {
    "around": ((2, 16, 9, 10), (16, 16, 3, 3)),
    "nearest": ((2, 16, 5, 6), (16, 16, 3, 3)),
    "transposed": ((2, 16, 5, 6), (16, 16, 4, 4)),
    "volume": ((1, 16, 3, 5, 6), (16, 16, 3, 3, 3)),
    "less": ((16, 33), (16, 16, 5)),
}


def check(run):
    rng = numpy.random.default_rng(1)
    for kernel, (image, taps) in KERNELS.items():
        inputs = {"x": rng.standard_normal(image).astype(numpy.float32),
                  "w": rng.standard_normal(taps).astype(numpy.float32)}
        if kernel == "around":
            inputs["bias"] = rng.standard_normal(taps[0]).astype(numpy.float32)
        wanted = run(PROGRAM, inputs, kernel=kernel)["y"]
        inputs["w"][1, 2][(0,) * (len(taps) - 2)] = numpy.nan
        # The reference leaves terms out.
        found = run(PROGRAM, inputs, kernel=kernel, check=True)["y"]
        isReached = numpy.isnan(found)
        holds(0 < isReached.sum() < found.size, f"{kernel}: some results see the weight, and others do not")
        same(found[~isReached], wanted[~isReached], f"{kernel}, results that do not see it")


main(check)
