"""`rand` has the bits of Philox 4x32-10 on every target, whatever the tiling is.

The numbers come from the generator below, which is held to the known answers that Random123 publishes for
philox4x32 with 10 rounds: counter, key, and the four words of the block.
"""
import numpy

from exact import holds, main, same

KNOWN_ANSWERS = (
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
)
WORD = 0xFFFFFFFF


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(second >> 32) ^ c[1] ^ k[0], second & WORD, (first >> 32) ^ c[3] ^ k[1], first & WORD]
        k = [(k[0] + 0x9E3779B9) & WORD, (k[1] + 0xBB67AE85) & WORD]
    return tuple(c)


def rand(seed, n):
    block = n // 4
    word = philox((block & WORD, block >> 32 & WORD, 0, 0), (seed & WORD, seed >> 32 & WORD))[n % 4]
    return numpy.float32((word >> 8) * 2.0**-24)


def numbers(seed, places):
    return numpy.array([rand(seed, int(n)) for n in numpy.ravel(places)], numpy.float32).reshape(numpy.shape(places))


PLAIN = """kernel draw(seed: i64, first: i64, like: f32[R, C]) -> (y: f32[R, C]) {
  y[r, c] = rand(seed, first + r * C + c) + like[r, c]
}"""
TURNED = """kernel draw(seed: i64, like: f32[R, C]) -> (y: f32[C, R]) {
  y[c, r] = rand(seed, r * C + c) + like[r, c]
}"""
DOUBLED = """kernel draw(seed: i64, like: f32[R, C]) -> (y: f32[R, C]) {
  y[r, c] = rand(seed, 2 * (r * C + c) + 1) + like[r, c]
}"""
SEEDS = """kernel draw(seeds: i64[N], like: f32[N]) -> (y: f32[N]) {
  y[i] = rand(seeds[i], i) + like[i]
}"""
TILED = """kernel draw(seed: i64, like: f32[R, C]) -> (y: f32[R, C]) {{
  y[r, c] = rand(seed, r * C + c) + like[r, c]
}}
schedule draw for {target} {{
  vector = {step}
}}"""
HALVES = """kernel draw(seed: i64, x: bf16[R, C], rate: f32) -> (y: bf16[R, C]) {
  y[r, c] = if rand(seed, r * C + c) < rate then 0.0 else x[r, c]
}"""


def check(run):
    for counter, key, words in KNOWN_ANSWERS:
        holds(philox(counter, key) == words, f"the generator of this test at counter {counter}")
    same(numbers(0, range(4)), [w / 2**24 for w in (0x6627E8, 0xE169C5, 0xBC57AC, 0x9B00DB)], "the first block")

    draws = ((3, 5, 0, 0), (4, 64, 123456789012345, 1), (5, 66, -7, -6), (3, 40, 1 << 40, 2**34 - 3),
             (2, 24, 5, -(2**40)))
    for rows, columns, seed, first in draws:
        like = numpy.zeros((rows, columns), numpy.float32)
        y = run(PLAIN, {"like": like}, args={"seed": seed, "first": first})["y"]
        wanted = numbers(seed, numpy.arange(rows * columns).reshape(rows, columns) + first)
        same(y, wanted, f"{rows} x {columns} from {first} with seed {seed}")

    rows, columns = 3, 136
    places = numpy.arange(rows * columns).reshape(rows, columns)
    like = numpy.zeros((rows, columns), numpy.float32)
    same(run(TURNED, {"like": like}, args={"seed": 3})["y"], numbers(3, places).T, "transposed")
    same(run(DOUBLED, {"like": like}, args={"seed": 3})["y"], numbers(3, 2 * places + 1), "every other number")
    for width in (136, 130, 129):
        kept = numbers(9, numpy.arange(rows * width).reshape(rows, width)) >= numpy.float32(0.3)
        y = run(HALVES, {"x": numpy.ones((rows, width), numpy.float32)}, args={"seed": 9, "rate": 0.3})["y"]
        same(y, kept, f"bf16 in rows of {width}, dropped")
    if run.target != "cpu":
        arch = "sm_80" if run.target.endswith("sm_80") else "sm_90a"
        for step in (1, 2, 4):
            y = run(TILED.format(target=arch, step=step), {"like": like}, args={"seed": 3})["y"]
            same(y, numbers(3, places), f"vectors of {step}")
    seeds = numpy.arange(37, dtype=numpy.int64) * 3000000001 - 7
    y = run(SEEDS, {"seeds": seeds, "like": numpy.zeros(37, numpy.float32)})["y"]
    same(y, [rand(int(seed), i) for i, seed in enumerate(seeds)], "a seed for each number")


main(check)
