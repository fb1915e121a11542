"""Attention whose masks are tensors: packed documents, blocks that a table names or shows.

One line a mask, for 16 heads of 128 (`--width`) and one sequence (`--length`). TFLOP/s count the scores that
the mask leaves. Peers are FlexAttention, whose block mask is made beforehand and not timed, and attention
without a mask, or a causal one, by tk; all are timed in one alternation. What tk finds out about a mask it
finds out in each call.
"""
import argparse

import torch

import attention
import peers

DOCUMENTS = """kernel documents(q: bf16[B, H, S, D], k: bf16[B, H, S, D], v: bf16[B, H, S, D], of: i32[S])
    -> (o: bf16[B, H, S, D]) {
  let s[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h, j, d]) * rsqrt(D)
  let p[b, h, i, j] = softmax[j](if MASK then s[b, h, i, j] else -inf)
  o[b, h, i, e]     = sum[j](p[b, h, i, j] * v[b, h, j, e])
}"""
# The same causal documents by the first key of each query.
FIRST = DOCUMENTS.replace("of: i32[S]", "first: i32[S]").replace("MASK", "j >= first[i] and j <= i")
# The blocks of keys that each block of queries sees, as a list of their numbers.
LISTED = """kernel listed(q: bf16[B, H, S, D], k: bf16[B, H, S, D], v: bf16[B, H, S, D], blocks: i32[S / ROWS, N])
    -> (o: bf16[B, H, S, D]) where S % 128 == 0, S > 0 {
  let s[b, h, i, n, j in 0..64] = sum[d](q[b, h, i, d] * k[b, h, blocks[i / ROWS, n] * 64 + j, d]) * rsqrt(D)
  let p[b, h, i, n, j in 0..64] = softmax[n, j](s[b, h, i, n, j])
  o[b, h, i, e] = sum[n, j in 0..64](p[b, h, i, n, j] * v[b, h, blocks[i / ROWS, n] * 64 + j, e])
}"""
# The same, as a table with an entry for each pair of blocks.
SHOWN = """kernel shown(q: bf16[B, H, S, D], k: bf16[B, H, S, D], v: bf16[B, H, S, D], seen: i32[S / ROWS, S / 64])
    -> (o: bf16[B, H, S, D]) where S % 128 == 0, S > 0 {
  let s[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h, j, d]) * rsqrt(D)
  let p[b, h, i, j] = softmax[j](if seen[i / ROWS, j / 64] != 0 then s[b, h, i, j] else -inf)
  o[b, h, i, e]     = sum[j](p[b, h, i, j] * v[b, h, j, e])
}"""


def inputs(options):
    heads, length, width = attention.HEADS[options.width], options.length, options.width
    q, k, v = (peers.normal(1, heads, length, width, seed=n) for n in range(3))
    return q, k, v, torch.empty_like(q)


def compare(options, name, kernel, extra, mask, plain, block=(128, 128)):
    """Times a kernel with its further arguments beside FlexAttention by `mask(b, h, i, j)`, and plain ones."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    compiled = torch.compile(flex_attention, dynamic=False)
    q, k, v, o = inputs(options)
    length = options.length
    blocks = create_block_mask(mask, None, None, length, length, BLOCK_SIZE=block)
    position = torch.arange(length, device="cuda")
    seen = sum(int(mask(0, 0, rows[:, None], position[None, :]).sum()) for rows in position.split(1024))

    def flex():
        return compiled(q, k, v, block_mask=blocks)
    want = flex()
    kernel(q, k, v, *extra, o)
    wrong = peers.error(o, want)
    mine, theirs, *others = peers.times([lambda: kernel(q, k, v, *extra, o), flex]
                                        + [lambda plain=plain: plain(q, k, v, o) for plain in plain.values()],
                                        repeats=options.repeats)
    work = 4 * q.shape[1] * options.width
    rate = work * seen / mine * 1e-9
    text = f"{name:36} {1e3 * mine:7.1f} us  tk {rate:6.1f}  FlexAttention ratio {theirs / mine:.3f}"
    for (what, _), ms in zip(plain.items(), others):
        whole = length * (length + 1) // 2 if what == "causal" else length * length
        text += f"  of {what} {rate / (work * whole / ms * 1e-9):.3f}"
    print(text + f"  error {wrong:.1e}", flush=True)


def documents(options):
    generator = torch.Generator().manual_seed(0)
    full, causal = peers.Kernel(source=attention.FULL), peers.Kernel(source=attention.CAUSAL)
    for count in options.documents:
        ends = torch.randperm(options.length - 1, generator=generator)[:count - 1] + 1
        starts = torch.zeros(options.length, dtype=torch.int32)
        starts[ends] = 1
        of = starts.cumsum(0).to(torch.int32).cuda()
        mine = peers.Kernel(source=DOCUMENTS.replace("MASK", "of[i] == of[j]"))
        compare(options, f"{count} documents", mine, [of], lambda b, h, i, j: of[i] == of[j], {"full": full})
        mine = peers.Kernel(source=DOCUMENTS.replace("MASK", "of[i] == of[j] and j <= i"))
        compare(options, f"{count} documents, causal", mine, [of], lambda b, h, i, j: (of[i] == of[j]) & (j <= i),
                {"causal": causal})
        first = torch.cat([torch.zeros(1, dtype=torch.long), ends.sort().values])[of.cpu()].to(torch.int32).cuda()
        mine = peers.Kernel(source=FIRST)
        compare(options, f"{count} documents, first keys, causal", mine, [first],
                lambda b, h, i, j, first=first: (j >= first[i]) & (j <= i), {"causal": causal})


def tables(options):
    generator = torch.Generator().manual_seed(0)
    full = peers.Kernel(source=attention.FULL)
    for rows in (64, 128):
        for count in options.blocks:
            order = torch.rand(options.length // rows, options.length // 64, generator=generator).argsort(1)
            blocks = order[:, :count].sort(1).values.to(torch.int32).contiguous()
            seen = torch.zeros(order.shape, dtype=torch.int32).scatter_(1, blocks.long(), 1)
            blocks, seen = blocks.cuda(), seen.cuda()

            def mask(b, h, i, j):
                return seen[i // rows, j // 64] != 0
            for name, source, table in (("listed", LISTED, blocks), ("shown", SHOWN, seen)):
                mine = peers.Kernel(source=source.replace("ROWS", str(rows)))
                compare(options, f"{count} blocks of {rows} x 64, {name}", mine, [table], mask, {"full": full},
                        block=(128, 64 if rows == 128 else 128))


PARTS = {"documents": documents, "tables": tables}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help="of: " + ", ".join(PARTS))
    parser.add_argument("--length", type=int, default=16384)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--documents", type=int, nargs="*", default=[1, 8, 64])
    parser.add_argument("--blocks", type=int, nargs="*", default=[16, 64])
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    for part in options.parts:
        PARTS[part](options)


if __name__ == "__main__":
    main()
