"""What `grad` derives from attention, with the rows' log-sum-exp as a result and without, beside cuDNN's backward pass in
PyTorch and the three kernels of attention_backward.py where queries and keys have as many heads. Batches of 16384 tokens.
"""
import argparse

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import attention_backward as by_hand
import peers

ATTENTION = """kernel attention(q: bf16[B, H, S, D], k: bf16[B, G, T, D], v: bf16[B, G, T, D], scale: f32 = rsqrt(D))
    -> (RESULTS)
where H % G == 0
{
  let s[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h / (H / G), j, d]) * scale
  let m[b, h, i, j] = SCORE
  let p[b, h, i, j] = softmax[j](m[b, h, i, j])
  o[b, h, i, d]     = sum[j](p[b, h, i, j] * v[b, h / (H / G), j, d])
LSE}
grad backward = attention wrt (q, k, v)
"""
SCORE = {False: "s[b, h, i, j]", True: "if j <= i then s[b, h, i, j] else -inf"}
RESULTS = {False: "o: bf16[B, H, S, D]", True: "o: bf16[B, H, S, D], lse: f32[B, H, S]"}
LSE = {False: "", True: "  lse[b, h, i]      = logsumexp[j](m[b, h, i, j])\n"}


def derived(causal, has_lse):
    text = ATTENTION.replace("SCORE", SCORE[causal]).replace("RESULTS", RESULTS[has_lse]).replace("LSE", LSE[has_lse])
    return peers.Kernel(source=text, kernel="backward")


def case(length, width, key_heads, causal, repeats):
    batch, heads = by_hand.TOKENS // length, by_hand.HEADS[width]
    q, k, v, dout = (peers.normal(batch, n, length, width, seed=seed)
                     for seed, n in enumerate((heads, key_heads, key_heads, heads)))
    for tensor in (q, k, v):
        tensor.requires_grad_()
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        o = F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=key_heads != heads)
    calls = [lambda inputs=(q, k, v): torch.autograd.grad(o, inputs, dout, retain_graph=True)]
    want = calls[0]()
    with torch.no_grad():
        lse = by_hand.lse_of(q, k.repeat_interleave(heads // key_heads, 1), causal)
    q, k, v, out = q.detach(), k.detach(), v.detach(), o.detach().contiguous()
    grads = [torch.empty_like(tensor) for tensor in (q, k, v)]
    zeros, delta = torch.zeros_like(lse), torch.empty_like(lse)
    with_lse, without = derived(causal, True), derived(causal, False)
    runs = [lambda: with_lse(q, k, v, None, out, lse, dout, zeros, *grads),
            lambda: without(q, k, v, None, out, dout, *grads)]
    if key_heads == heads:
        sums, dq, dkv = (peers.Kernel(source=text.replace("WEIGHT", by_hand.WEIGHT[causal]))
                         for text in (by_hand.DELTA, by_hand.DQ, by_hand.DKV))

        def all_three():
            sums(out, dout, delta)
            dq(q, k, v, dout, lse, delta, None, grads[0])
            dkv(q, k, v, dout, lse, delta, None, *grads[1:])

        runs.append(all_three)
    notes = []
    for run in runs:
        run()
        wrong = max(peers.error(got, expected) for got, expected in zip(grads, want))
        notes.append("" if wrong < 2e-2 else f"  WRONG {wrong:.2g}")
    cudnn, *mine = peers.times(calls + runs, repeats=repeats, warmup=2)
    line = ", ".join(f"{name} {1e3 * ms:.0f} ({cudnn / ms:.3f}){note}"
                     for name, ms, note in zip(("derived", "without lse", "by hand"), mine, notes))
    print(f"b{batch} h{heads} of {key_heads} s{length} d{width} {'causal' if causal else 'full  '}  cuDNN {1e3 * cudnn:.0f} us; {line}",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", type=int, nargs="*", default=by_hand.LENGTHS)
    parser.add_argument("--widths", type=int, nargs="*", default=sorted(by_hand.HEADS))
    parser.add_argument("--key-heads", type=int, nargs="*", default=[0], help="0: as many as of queries")
    parser.add_argument("--repeats", type=int, default=11)
    options = parser.parse_args()
    for width in options.widths:
        for key_heads in options.key_heads:
            for length in options.lengths:
                for causal in (False, True):
                    case(length, width, key_heads or by_hand.HEADS[width], causal, options.repeats)


if __name__ == "__main__":
    main()
