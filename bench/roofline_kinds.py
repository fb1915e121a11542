"""What the kinds of random programs share: their list, and lengths drawn at random.

A kind is a function of a random generator that returns a program and its sizes. Sizes are those of a few MB to
a few hundred MB each, odd lengths among them.
"""

KINDS = {}


def kind(function):
    KINDS[function.__name__] = function
    return function


def rounded(rng, low, high):
    """A length between two, as often odd as a power of two or a multiple of 8."""
    value = 2 ** rng.uniform(low.bit_length() - 1, high.bit_length() - 1)
    form = rng.randrange(4)
    if form == 0:
        return max(low, 2 ** round(value).bit_length() // 2)
    if form == 1:
        return max(low, int(value) // 8 * 8)
    if form == 2:
        return max(low, int(value) // 2 * 2 + 1)
    return max(low, int(value))


def beside(rng, elements, length, most=1 << 20):
    """How many rows of a length make so many elements at about."""
    return max(1, min(most, int(elements / length * rng.uniform(0.5, 1.5))))


def elements(rng):
    return 2 ** rng.uniform(23, 27)


def floats(rng):
    return rng.choice(["f32", "f32", "bf16", "f16"])
