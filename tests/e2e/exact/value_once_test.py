"""A name has one value: comparisons, differences and branches on named sums, without a tolerance."""
import numpy
from exact import holds, main, same

PROGRAMS = "tests/e2e/programs/"
COUNTS = (1, 2, 3, 8, 9, 33)


def normal(seed, *shape):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(numpy.float32)


def one_in_each_row(y, what):
    holds(((y == 0) | (y == 1)).all() and (y.sum(axis=-1) >= 1).all(), f"{what}: a row has no element that is its maximum")


def factors(count, rows=16, terms=64, scale=1):
    return {"x": normal(count, rows, terms) * numpy.float32(scale), "w": normal(count + 100, count, terms)}


def check(run):
    for count in COUNTS:
        one_in_each_row(run(PROGRAMS + "value_once.tk", factors(count))["y"], f"products of {count}")
        sums = {"x": normal(count, 64, count, 100)}
        one_in_each_row(run(PROGRAMS + "value_once_sums.tk", sums)["y"], f"sums of {count}")

    tokens = {"x": normal(1, 64, 256), "w": normal(2, 8, 256)}
    gate = run(PROGRAMS + "value_once_router.tk", tokens, results=("gate",))["gate"]
    holds(((gate > 0).sum(axis=-1) == 2).all(), "the router: a token does not have two experts")
    holds((gate.max(axis=-1) == 1).all(), "the router: the largest gate is not 1")

    for rows, terms, count in ((3, 9, 8), (5, 64, 8), (4, 33, 5), (4, 100, 40)):
        large = factors(count, rows, terms, 1e4)
        for program, kernel in (("value_once_softmax.tk", None), ("value_once_places.tk", "unnamed")):
            y = run(PROGRAMS + program, large, kernel=kernel)["y"]
            holds((y <= 1).all() and (y >= 0).all(), f"{program}: weights of {count} logits are up to {y.max()}")

    places = PROGRAMS + "value_once_places.tk"
    for count in (3, 8, 33):
        one_in_each_row(run(places, factors(count), kernel="stored_maximum")["y"], f"a stored maximum of {count}")
        y = run(places, factors(count), kernel="both_sides")["y"]
        holds((y <= 0).all() and (y.max(axis=0) == 0).all() and (y.max(axis=1) == 0).all(), f"both sides of {count}")
        sums = {"x": normal(count, 16, count, 100)}
        same(run(places, sums, kernel="found")["y"], numpy.zeros((16, count), numpy.float32), f"argmax of {count}")
        same(run(places, sums, kernel="first")["y"], numpy.zeros((16, count), numpy.float32), f"the first of {count}")
    for terms in (5, 100, 5000):
        same(run(places, {"x": normal(terms, 16, terms)}, kernel="sides")["y"], numpy.ones((16, terms), numpy.float32),
             f"both signs of sums of {terms}")


main(check)
