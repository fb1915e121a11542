"""Attention of few queries over long caches: how fast keys and values are read, as a fraction of a copy.

Sequences of 8k to 32k keys, 32 query heads on 8 heads of keys of width 128, bf16: each with as many keys
(dense), with a length of its own (ragged), one with all of them and the others with a 32nd (skewed), and with
lengths of their own through a table of pages of 16 keys (paged); the same with NaN behind each sequence's end,
beside zeros there (unseen). Heads with keys of their own and one query
(own) have several numbers of heads and widths. The bytes are those of the keys and values that count. PyTorch's
backends run beside the dense cases and those of heads with keys of their own, in alternation.
"""
import argparse
import math

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import peers

HEADS, GROUPS, WIDTH, PAGE = 32, 8, 128, 16
CASES = ((8, 32768), (16, 16384), (64, 8192))  # sequences, keys of each
QUERIES = (1, 4, 16)
OWN_CASES = ((32, 32, 8192, 128), (64, 12, 1024, 64), (4, 16, 8192, 128), (128, 8, 8192, 64), (1, 32, 32768, 128),
             (64, 32, 300, 96))  # sequences, heads, keys of each, width

DENSE = """kernel decode(q: bf16[B, H, S, D], k: bf16[B, G, T, D], v: bf16[B, G, T, D]) -> (o: bf16[B, H, S, D])
where H % G == 0
{
  let s[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h / (H / G), j, d]) * rsqrt(D)
  let p[b, h, i, j] = softmax[j](s[b, h, i, j])
  o[b, h, i, e]     = sum[j](p[b, h, i, j] * v[b, h / (H / G), j, e])
}"""
RAGGED = """kernel decode(q: bf16[B, H, S, D], k: bf16[B, G, T, D], v: bf16[B, G, T, D], length: i32[B]) -> (o: bf16[B, H, S, D])
where H % G == 0
{
  let s[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h / (H / G), j, d]) * rsqrt(D)
  let m[b, h, i, j] = if j < length[b] then s[b, h, i, j] else -inf
  let p[b, h, i, j] = softmax[j](m[b, h, i, j])
  o[b, h, i, e]     = sum[j](p[b, h, i, j] * v[b, h / (H / G), j, e])
}"""
PAGED = """kernel decode(q: bf16[B, H, S, D], k: bf16[PAGES, P, G, D], v: bf16[PAGES, P, G, D], pages: i32[B, MAX], length: i32[B])
    -> (o: bf16[B, H, S, D])
where H % G == 0, P > 0
{
  let s[b, h, i, j in 0..MAX * P] = sum[d](q[b, h, i, d] * k[pages[b, j / P], j % P, h / (H / G), d]) * rsqrt(D)
  let m[b, h, i, j in 0..MAX * P] = if j < length[b] then s[b, h, i, j] else -inf
  let p[b, h, i, j in 0..MAX * P] = softmax[j](m[b, h, i, j])
  o[b, h, i, e] = sum[j in 0..MAX * P](p[b, h, i, j] * v[pages[b, j / P], j % P, h / (H / G), e])
}"""

OWN = """kernel decode(q: bf16[B, H, D], k: bf16[B, H, T, D], v: bf16[B, H, T, D]) -> (o: bf16[B, H, D]) {
  let s[b, h, j] = sum[d](q[b, h, d] * k[b, h, j, d]) * rsqrt(D)
  o[b, h, e]     = sum[j](softmax[j](s[b, h, j]) * v[b, h, j, e])
}"""
# With a name the weights are rounded to 16 bits, for the matrix unit.
OWN_ROUNDED = """kernel decode(q: bf16[B, H, D], k: bf16[B, H, T, D], v: bf16[B, H, T, D]) -> (o: bf16[B, H, D]) {
  let s[b, h, j] = sum[d](q[b, h, d] * k[b, h, j, d]) * rsqrt(D)
  let p[b, h, j] = softmax[j](s[b, h, j])
  o[b, h, e]     = sum[j](p[b, h, j] * v[b, h, j, e])
}"""


def reference(q, k, v, lengths):
    """In the type of the tensors, a sequence at a time."""
    rows = []
    for row in range(q.shape[0]):
        keys, values = k[row:row + 1, :, :lengths[row]], v[row:row + 1, :, :lengths[row]]
        rows.append(F.scaled_dot_product_attention(q[row:row + 1].float(), keys.float().repeat_interleave(HEADS // GROUPS, 1),
                                                   values.float().repeat_interleave(HEADS // GROUPS, 1)))
    return torch.cat(rows)


def sdpa(q, k, v, backend):
    def call():
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    return call


def available(backends):
    """Those of (name, function) that run here."""
    good = []
    for name, function in backends:
        try:
            function()
            good.append((name, function))
        except RuntimeError:
            print(f"    {name} does not run this case")
    return good


def case(kind, batch, keys, queries, bandwidth, schedules, repeats):
    """Prints a row; returns the fraction of the copy's bandwidth."""
    q = peers.normal(batch, HEADS, queries, WIDTH)
    k, v = (peers.normal(batch, GROUPS, keys, WIDTH, seed=n) for n in (1, 2))
    o = torch.empty_like(q)
    lengths = [keys] * batch
    if kind != "dense":  # between a quarter and all of the keys
        lengths = [keys - (row * 7919) % (3 * keys // 4) for row in range(batch)]
    if kind == "skewed":
        lengths = [keys] + [keys // 32] * (batch - 1)
    length = torch.tensor(lengths, dtype=torch.int32, device="cuda")
    arguments = (q, k, v, o) if kind == "dense" else (q, k, v, length, o)
    clean = None
    if kind in ("paged", "unseen"):
        table = torch.randperm(batch * keys // PAGE, device="cuda").reshape(batch, keys // PAGE)
        def paged(x):
            pages = x.reshape(batch, GROUPS, keys // PAGE, PAGE, WIDTH).permute(0, 2, 3, 1, 4).flatten(0, 1)
            cache = torch.empty_like(pages)
            cache[table.flatten()] = pages
            return cache
        caches = [paged(k), paged(v)]
        if kind == "unseen":
            clean = [cache.clone() for cache in caches]
            for sequence, end in enumerate(lengths):
                for number in range(end // PAGE, keys // PAGE):
                    page, begin = table[sequence, number], max(end - number * PAGE, 0)
                    for values, filling in ((caches, math.nan), (clean, 0.0)):
                        for cache in values:
                            cache[page, begin:] = filling
        arguments = (q, *caches, table.int(), length, o)
    text = {"dense": DENSE, "paged": PAGED, "unseen": PAGED}.get(kind, RAGGED)
    texts = [text] + [text + "\nschedule decode { " + block + " }" for block in schedules]
    want, runs, notes = reference(q, k, v, lengths), [], []
    for source in texts:
        ours = peers.Kernel(source=source)
        ours(*arguments)
        wrong = peers.error(o, want)
        notes.append("" if wrong < 1e-2 else f"  WRONG {wrong:.2g}")
        runs.append(lambda ours=ours: ours(*arguments))
    if clean:
        runs.append(lambda: ours(q, *clean, *arguments[3:]))
        schedules = (*schedules, "zeros behind the ends")
        notes.append("")
    others = available([(n, sdpa(q, k, v, b)) for n, b in (("flash", SDPBackend.FLASH_ATTENTION), ("cuDNN", SDPBackend.CUDNN_ATTENTION))]
                       if kind == "dense" else [])
    spent = peers.times(runs + [function for _, function in others], repeats=repeats)
    size = 2 * 2 * GROUPS * WIDTH * sum(lengths)
    fraction = [size / (ms * 1e-3) / bandwidth for ms in spent]
    row = f"{kind:6} b{batch} t{keys} s{queries}"
    print(f"{row:22} tk {spent[0] * 1e3:8.1f} us  {fraction[0]:.3f} of the copy" +
          "".join(f"  {name} {part:.3f}" for (name, _), part in zip(others, fraction[len(runs):])) + notes[0], flush=True)
    for block, ms, part, note in zip(schedules, spent[1:], fraction[1:], notes[1:]):
        print(f"    {{ {block} }}  {ms * 1e3:.1f} us  {part:.3f}{note}", flush=True)
    return fraction[0]


def own_case(batch, heads, keys, width, bandwidth, repeats):
    """Prints a row of heads with keys of their own; returns the fraction of the copy's bandwidth."""
    q = peers.normal(batch, heads, width)
    k, v = (peers.normal(batch, heads, keys, width, seed=n) for n in (1, 2))
    o = torch.empty_like(q)

    def torch_decode():
        return F.scaled_dot_product_attention(q.unsqueeze(2), k, v).squeeze(2)
    runs, notes, want = [], "", torch_decode()
    for source in (OWN, OWN_ROUNDED):
        ours = peers.Kernel(source=source)
        ours(q, k, v, o)
        wrong = peers.error(o, want)
        notes += "" if wrong < 1e-2 else f"  WRONG {wrong:.2g}"
        runs.append(lambda ours=ours: ours(q, k, v, o))
    *mine, theirs = peers.times(runs + [torch_decode], repeats=repeats)
    size = 2 * 2 * batch * heads * keys * width
    fractions = [size / (ms * 1e-3) / bandwidth for ms in mine]
    print(f"{f'own b{batch} h{heads} t{keys} d{width}':22} tk {mine[0] * 1e3:8.1f} us  {fractions[0]:.3f} of the copy"
          f"  rounded weights {fractions[1]:.3f}  eager {theirs * 1e3:8.1f} us ({theirs / mine[0]:.2f}, {theirs / mine[1]:.2f})"
          f"{notes}", flush=True)
    return fractions[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="*", default=("own", "dense", "ragged", "skewed", "paged", "unseen"))
    parser.add_argument("--queries", type=int, nargs="*", default=QUERIES)
    parser.add_argument("--cases", type=lambda text: tuple(map(int, text.split("x"))), nargs="*", default=CASES)
    parser.add_argument("--schedule", action="append", default=[])
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    bandwidth = peers.copy_bandwidth()
    print(f"copy {bandwidth * 1e-9:.0f} GB/s")
    for kind in options.kinds:
        if kind == "own":
            parts = [own_case(*sizes, bandwidth, options.repeats) for sizes in OWN_CASES]
        else:
            parts = [case(kind, batch, keys, queries, bandwidth, options.schedule, options.repeats)
                     for batch, keys in options.cases for queries in options.queries]
        mean = math.exp(sum(map(math.log, parts)) / len(parts))
        print(f"{kind}: geometric mean {mean:.3f}, least {min(parts):.3f}")


if __name__ == "__main__":
    main()
