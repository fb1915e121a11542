"""Attention in other forms than torch's own: what FlexAttention does, windows, soft caps, 8 bits.

One line a form, for 16 heads of 128 (`--width`) and one sequence (`--length`). TFLOP/s count the scores
that the mask leaves; a `ratio` is to the peer named, in the same run. The forms of a window, and those in 8
bits under one mask, are timed in one alternation with their peer, forwards and backwards, once the clock has
settled: from an idle device on it falls by a sixth within 50 ms, and a kernel that power bounds loses less by
that than one that it does not, so that figures of pairs, timed one pair after another, cannot be compared.

`pairs` times each form of a window in alternation with its peer alone, from an idle device on: beside `forms`,
it shows how much of a ratio is the clock's.
"""
import argparse
import math
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import attention
import peers

BIASED = """kernel biased(q: bf16[B, H, S, D], k: bf16[B, H, S, D], v: bf16[B, H, S, D], slope: f32[H],
                          cap: f32, window: i32) -> (o: bf16[B, H, S, D]) where S > 0 {
  let s[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h, j, d]) * rsqrt(D)
  let c[b, h, i, j] = SCORE
  let m[b, h, i, j] = if j <= i and i - j < window then c[b, h, i, j] else -inf
  let p[b, h, i, j] = softmax[j](m[b, h, i, j])
  o[b, h, i, e]     = sum[j](p[b, h, i, j] * v[b, h, j, e])
}"""
SCORES = {"window": "s[b, h, i, j]",
          "window + ALiBi": "s[b, h, i, j] + slope[h] * (j - i)",
          "window + soft cap": "cap * tanh(s[b, h, i, j] / cap)",
          "window + soft cap + ALiBi": "cap * tanh(s[b, h, i, j] / cap) + slope[h] * (j - i)"}
SMALL = " <= 50"  # such caps need no maximum, where the program says that they are no larger
SCORES |= {name.replace("cap", "cap" + SMALL): score for name, score in SCORES.items() if "cap" in name}
NARROW = """kernel narrow(q: f8e4m3[B, H, S, D], k: f8e4m3[B, H, T, D], v: f8e4m3[B, H, VALUES], of_scores: f32,
                          of_values: f32) -> (o: bf16[B, H, S, E]) where T > 0, of_scores > 0 {
  let s[b, h, i, j] = sum[d; fast](q[b, h, i, d] * k[b, h, j, d]) * (of_scores * rsqrt(D))
  let m[b, h, i, j] = MASKED
  let p[b, h, i, j]: f8e4m3 = softmax[j](m[b, h, i, j])
  o[b, h, i, e]     = sum[j; fast](p[b, h, i, j] * VALUE) * of_values
}"""
STORED = {"values by key": ("T, E", "v[b, h, j, e]"), "values by column": ("E, T", "v[b, h, e, j]")}
MASKED = {"full": "s[b, h, i, j]", "causal": "if j <= i then s[b, h, i, j] else -inf"}


def flops(heads, length, width, window=None, causal=True):
    """Of one sequence, where a query sees `window` keys, itself and those before it."""
    if not causal:
        return 4 * heads * width * length * length
    window = min(window or length, length)
    return 4 * heads * width * (window * (window + 1) // 2 + (length - window) * window)


def reference(q, k, v, mask, of_score):
    """One head at a time in f32."""
    def head(h):
        scores = q[:, h].float() @ k[:, h].float().mT / math.sqrt(q.shape[-1])
        masked = torch.where(mask, of_score(h, scores), -math.inf)
        return torch.softmax(masked, -1) @ v[:, h].float()
    return torch.stack([head(h) for h in range(q.shape[1])], 1)


def settled(runs, repeats):
    """Milliseconds of each, in alternation forwards and backwards, after at least 0.2 s of work."""
    once = sum(peers.times(runs, repeats=1))
    forwards = peers.times(runs, repeats=repeats, warmup=5 + math.ceil(200 / once))
    backwards = peers.times(runs[::-1], repeats=repeats)[::-1]
    return [(a + b) / 2 for a, b in zip(forwards, backwards)]


def report(name, work, mine, peer, peer_name, peer_work=None, wrong=None, of_first=None):
    rate, other = work / mine * 1e-9, (peer_work or work) / peer * 1e-9
    note = "" if of_first is None else f"  of the first {of_first:.3f}"
    note += "" if wrong is None else f"  error {wrong:.1e}"
    print(f"{name:44} tk {rate:6.1f}  {peer_name} {other:6.1f} ratio {rate / other:.3f}{note}", flush=True)


def flex(options):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    compiled = torch.compile(flex_attention, dynamic=False)
    heads, length, width = attention.HEADS[options.width], options.length, options.width
    q, k, v = (peers.normal(1, heads, length, width, seed=n) for n in range(3))
    o = torch.empty_like(q)
    mask = create_block_mask(lambda b, h, i, j: j <= i, None, None, length, length)
    for causal in (False, True):
        ours = peers.Kernel(source=attention.CAUSAL if causal else attention.FULL)
        call = (lambda: compiled(q, k, v, block_mask=mask)) if causal else (lambda: compiled(q, k, v))
        want = call()
        ours(q, k, v, o)
        mine, theirs = peers.times([lambda: ours(q, k, v, o), call], repeats=options.repeats)
        report(f"{'causal' if causal else 'full'}", flops(heads, length, width, causal=causal), mine, theirs,
               peer_name="FlexAttention", wrong=peers.error(o, want))


def window_forms(options):
    """For each window: it, calls and errors of its forms in the order of SCORES, a call of causal attention."""
    heads, length, width = attention.HEADS[options.width], options.length, options.width
    q, k, v = (peers.normal(1, heads, length, width, seed=n) for n in range(3))
    o = torch.empty_like(q)
    slope, cap = 2.0 ** (-8 * (torch.arange(heads, device="cuda") + 1) / heads), 30.0
    plain = peers.Kernel(source=attention.CAUSAL)
    position = torch.arange(2048, device="cuda")
    distance = position[:, None] - position[None, :]
    small = [x[:, :2, :2048].contiguous() for x in (q, k, v)]
    got = torch.empty_like(small[0])
    for window in options.windows:
        runs, wrong = [], []
        for name, score in SCORES.items():
            source = BIASED.replace("SCORE", score)
            if SMALL in name:
                source = source.replace("where S > 0", "where S > 0, cap > 0, cap" + SMALL)
            ours = peers.Kernel(source=source)
            ours(*small, slope[:2], cap, min(window, 1024), got)

            def of_score(h, s):
                s = cap * torch.tanh(s / cap) if "cap" in name else s
                return s - slope[h] * distance if "ALiBi" in name else s
            want = reference(*small, (distance >= 0) & (distance < min(window, 1024)), of_score)
            wrong.append(peers.error(got, want))
            runs.append(lambda ours=ours: ours(q, k, v, slope, cap, window, o))
        yield window, runs, wrong, lambda: plain(q, k, v, o)


def report_form(options, name, window, ms, causal, **notes):
    size = attention.HEADS[options.width], options.length, options.width
    report(f"{name}, {window} keys", flops(*size, window), ms, causal, "causal", peer_work=flops(*size), **notes)


def forms(options):
    for window, runs, wrong, causal in window_forms(options):
        *mine, whole = settled(runs + [causal], options.repeats)
        for name, ms, error in zip(SCORES, mine, wrong):
            report_form(options, name, window, ms, whole, wrong=error, of_first=mine[0] / ms)


def pairs(options):
    def from_idle(*functions):
        for function in functions:
            function()  # compiled before the device is left idle
        torch.cuda.synchronize()
        time.sleep(2)
        return peers.times(functions, repeats=options.repeats)
    for window, runs, wrong, causal in window_forms(options):
        for name, run, error in zip(SCORES, runs, wrong):
            ms, whole = from_idle(run, causal)
            of_first = None
            if run is not runs[0]:
                again, first = from_idle(run, runs[0])
                of_first = first / again
            report_form(options, name, window, ms, whole, wrong=error, of_first=of_first)


def narrow(options):
    heads, length, width = attention.HEADS[options.width], options.length, options.width
    q, k, v = (peers.normal(1, heads, length, width, seed=n) for n in range(3))
    o = torch.empty_like(q)
    eight = [x.to(torch.float8_e4m3fn) for x in (q, k, v)]
    position = torch.arange(2048, device="cuda")
    for masked, mask in MASKED.items():
        causal = masked == "causal"
        want = reference(*(x[:, :2, :2048].bfloat16() for x in eight),
                         (position[:, None] >= position) | (not causal), lambda h, s: s)

        def cudnn():
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        runs, wrong = [], []
        for stored, (shape, value) in STORED.items():
            source = NARROW.replace("VALUES", shape).replace("VALUE", value).replace("MASKED", mask)
            ours = peers.Kernel(source=source)

            def call(q, k, v, o):
                ours(q, k, v.mT.contiguous() if shape == "E, T" else v, 1.0, 1.0, o)
            got = torch.empty_like(o[:, :2, :2048].contiguous())
            call(*(x[:, :2, :2048].contiguous() for x in eight), got)
            values = eight[2].mT.contiguous() if shape == "E, T" else eight[2]
            wrong.append(peers.error(got, want))
            runs.append(lambda ours=ours, values=values: ours(*eight[:2], values, 1.0, 1.0, o))
        *mine, theirs = settled(runs + [cudnn], options.repeats)
        for stored, ms, error in zip(STORED, mine, wrong):
            report(f"f8e4m3 {masked}, {stored}", flops(heads, length, width, causal=causal), ms, theirs,
                   "bf16 cuDNN", wrong=error)


FORMS = {"flex": flex, "forms": forms, "pairs": pairs, "narrow": narrow}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["flex", "forms", "narrow"], help="of: " + ", ".join(FORMS))
    parser.add_argument("--length", type=int, default=16384)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--windows", type=int, nargs="*", default=[1024, 4096])
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    for part in options.parts:
        FORMS[part](options)


if __name__ == "__main__":
    main()
