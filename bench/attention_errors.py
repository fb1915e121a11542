"""Errors of attention against f64, beside those of PyTorch's math in the same type.

For queries and keys of each pair of lengths, as they are and so large that scores reach 1e4: all keys, those up to
the query's where lengths are equal, and documents, of which some queries have no key. A line a form and scale: the
largest ratio of errors (Frobenius norm; of one element), which 2 is asked of, and whose lengths these are. `--part`
does every n-th pair of lengths.
"""
import argparse

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import attention
import peers

LENGTHS = (1, 7, 63, 64, 65, 127, 128, 129, 1000, 4097)
SCALES = (1.0, 3000.0)
DOCUMENTS = """kernel documents(q: bf16[B, H, S, D], k: bf16[B, H, T, D], v: bf16[B, H, T, D], rows: i32[S], keys: i32[T])
    -> (o: bf16[B, H, S, D]) {
  let s[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h, j, d]) * rsqrt(D)
  let p[b, h, i, j] = softmax[j](if rows[i] == keys[j] then s[b, h, i, j] else -inf)
  o[b, h, i, e]     = sum[j](p[b, h, i, j] * v[b, h, j, e])
}"""


def errors(got, want):
    got, want = got.double(), want.double()
    return (got - want).norm().item(), (got - want).abs().max().item()


def compare(kernel, q, k, v, extra, mask):
    """The two ratios of errors, of rows that see a key; others must be 0."""
    o = torch.full_like(q, float("nan"))
    kernel(q, k, v, *extra, o)
    with sdpa_kernel(SDPBackend.MATH):
        math = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        want = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask=mask)
    seen = mask.any(-1)
    if o[:, :, ~seen].abs().sum().item() != 0:
        return float("inf"), float("inf")
    ours, theirs = errors(o[:, :, seen], want[:, :, seen]), errors(math[:, :, seen], want[:, :, seen])
    # Where both only round the result, which one is nearer is chance.
    rounding = 2.0 ** -9 * v.double().abs().max().item()
    least = rounding * seen.sum().item() ** 0.5, rounding
    return tuple(a / max(b, c) for a, b, c in zip(ours, theirs, least))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--width", type=int, default=128)
    options = parser.parse_args()
    full, causal = peers.Kernel(source=attention.FULL), peers.Kernel(source=attention.CAUSAL)
    documents = peers.Kernel(source=DOCUMENTS)
    worst = {}
    pairs = [(s, t) for s in LENGTHS for t in LENGTHS][options.part::options.parts]
    for s, t in pairs:
        # Enough heads for what pays only where there is much to do.
        heads = 2 if s * t < 4097 * 1000 else 4
        q = peers.normal(1, heads, s, options.width)
        k, v = (peers.normal(1, heads, t, options.width, seed=n) for n in (1, 2))
        i, j = torch.arange(s, device="cuda")[:, None], torch.arange(t, device="cuda")[None, :]
        rows, keys = (i[:, 0] // 37 - (i[:, 0] % 97 == 5).int() * 10**6).int(), (j[0] // 37).int()
        forms = [("full", full, [], torch.ones(s, t, dtype=torch.bool, device="cuda")),
                 ("documents", documents, [rows, keys], rows[:, None] == keys[None, :])]
        if s == t:
            forms.append(("causal", causal, [], j <= i))
        for scale in SCALES:
            for name, kernel, extra, mask in forms:
                for what, ratio in zip(("norm", "element"), compare(kernel, q * scale, k, v, extra, mask)):
                    key = name, scale, what
                    if ratio > worst.get(key, (0,))[0]:
                        worst[key] = ratio, s, t
    for (name, scale, what), (ratio, s, t) in sorted(worst.items()):
        print(f"{name:10} d{options.width} queries {scale:6.0f} times, {what:8} {ratio:.3f} of PyTorch's math ({s} x {t})", flush=True)


if __name__ == "__main__":
    main()
