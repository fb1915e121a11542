"""Attention against PyTorch's FlashAttention-2 and cuDNN: TFLOP/s and ratios."""
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import peers

FULL = """kernel attention(q: bf16[B, H, S, D], k: bf16[B, H, T, D], v: bf16[B, H, T, E]) -> (o: bf16[B, H, S, E]) {
  let s[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h, j, d]) * rsqrt(D)
  let p[b, h, i, j] = softmax[j](s[b, h, i, j])
  o[b, h, i, e]     = sum[j](p[b, h, i, j] * v[b, h, j, e])
}"""
CAUSAL = FULL.replace("  let p", "  let m[b, h, i, j] = if j <= i then s[b, h, i, j] else -inf\n  let p").replace(
    "softmax[j](s[", "softmax[j](m[")


def case(batch, heads, length, width, causal):
    q, k, v = (peers.normal(batch, heads, length, width, seed=n) for n in range(3))
    o = torch.empty_like(q)
    ours = peers.Kernel(source=CAUSAL if causal else FULL)

    def backend(which):
        def call():
            with sdpa_kernel(which):
                return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return call

    run, fa2, cudnn = (lambda: ours(q, k, v, o)), backend(SDPBackend.FLASH_ATTENTION), backend(SDPBackend.CUDNN_ATTENTION)
    run()
    wrong = peers.error(o, fa2())
    ms, fa2_ms, cudnn_ms = peers.times([run, fa2, cudnn], repeats=15)
    flops = 4 * batch * heads * length * length * width * (0.5 if causal else 1) * 1e-9
    note = "" if wrong < 2e-2 else f"  WRONG {wrong:.2g}"
    print(f"b{batch} h{heads} s{length} d{width} {'causal' if causal else 'full  '}  tk {flops / ms:6.1f}  "
          f"FA2 {flops / fa2_ms:6.1f} ratio {fa2_ms / ms:.3f}  cuDNN {flops / cudnn_ms:6.1f} "
          f"ratio {cudnn_ms / ms:.3f}{note}", flush=True)


if __name__ == "__main__":
    for batch, heads, length, width in ((4, 16, 4096, 128), (32, 16, 512, 128), (1, 16, 16384, 128),
                                        (1, 32, 16384, 64)):
        for causal in (False, True):
            case(batch, heads, length, width, causal)
