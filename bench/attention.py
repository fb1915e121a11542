"""Attention against PyTorch's FlashAttention-2 and cuDNN: TFLOP/s and ratios.

Batches of 16384 tokens. Without arguments all lengths and widths; `--schedule` adds a row for each
schedule block given ("tile j = 64; consumers = 4").
"""
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import peers

TOKENS = 16384
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
HEADS = {64: 32, 128: 16, 256: 8}  # by the width of a head

FULL = """kernel attention(q: bf16[B, H, S, D], k: bf16[B, H, T, D], v: bf16[B, H, T, E]) -> (o: bf16[B, H, S, E]) {
  let s[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h, j, d]) * rsqrt(D)
  let p[b, h, i, j] = softmax[j](s[b, h, i, j])
  o[b, h, i, e]     = sum[j](p[b, h, i, j] * v[b, h, j, e])
}"""
CAUSAL = FULL.replace("  let p", "  let m[b, h, i, j] = if j <= i then s[b, h, i, j] else -inf\n  let p").replace(
    "softmax[j](s[", "softmax[j](m[")


def sdpa(q, k, v, causal, backend):
    def call():
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return call


def case(length, width, causal, schedules, repeats):
    """Prints a row; returns the ratio to cuDNN."""
    batch, heads = TOKENS // length, HEADS[width]
    q, k, v = (peers.normal(batch, heads, length, width, seed=n) for n in range(3))
    o = torch.empty_like(q)
    source = CAUSAL if causal else FULL
    texts = [source] + [source + "\nschedule attention { " + block + " }" for block in schedules]
    fa2 = sdpa(q, k, v, causal, SDPBackend.FLASH_ATTENTION)
    cudnn = sdpa(q, k, v, causal, SDPBackend.CUDNN_ATTENTION)
    want, runs, notes = fa2(), [], []
    for text in texts:
        ours = peers.Kernel(source=text)
        ours(q, k, v, o)
        wrong = peers.error(o, want)
        notes.append("" if wrong < 2e-2 else f"  WRONG {wrong:.2g}")
        runs.append(lambda ours=ours: ours(q, k, v, o))
    *mine, fa2_ms, cudnn_ms = peers.times(runs + [fa2, cudnn], repeats=repeats)
    flops = 4 * batch * heads * length * length * width * (0.5 if causal else 1) * 1e-9
    name = f"b{batch} h{heads} s{length} d{width} {'causal' if causal else 'full  '}"
    print(f"{name:28} tk {flops / mine[0]:6.1f}  FA2 {flops / fa2_ms:6.1f} ratio {fa2_ms / mine[0]:.3f}  "
          f"cuDNN {flops / cudnn_ms:6.1f} ratio {cudnn_ms / mine[0]:.3f}{notes[0]}", flush=True)
    for block, ms, note in zip(schedules, mine[1:], notes[1:]):
        print(f"    {{ {block} }}  {flops / ms:6.1f}  ratio {cudnn_ms / ms:.3f}{note}", flush=True)
    return cudnn_ms / mine[0]


if __name__ == "__main__":
    peers.attention_cases(__doc__, case, LENGTHS, sorted(HEADS), repeats=15)
