"""The backward pass of attention, written in index notation, beside cuDNN's and FlashAttention-2's in PyTorch.

Batches of 16384 tokens. Three kernels: dq; dk and dv; delta, the row sums of o * dout. `--schedule` adds a row for
each schedule of the second ("tile i = 64").
"""
import math

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import peers

TOKENS = 16384
LENGTHS = (1024, 4096, 16384)
HEADS = {64: 32, 128: 16}  # by the width of a head

INPUTS = """(q: bf16[B, H, S, D], k: bf16[B, H, T, D], v: bf16[B, H, T, D], dout: bf16[B, H, S, D],
                lse: f32[B, H, S], delta: f32[B, H, S], scale: f32 = rsqrt(D))"""
WEIGHTS = """{
  let s[b, h, i, j]  = sum[d](q[b, h, i, d] * k[b, h, j, d]) * scale
  let p[b, h, i, j]  = WEIGHT
  let dp[b, h, i, j] = sum[d](dout[b, h, i, d] * v[b, h, j, d])
  let ds[b, h, i, j] = p[b, h, i, j] * (dp[b, h, i, j] - delta[b, h, i]) * scale
"""
WEIGHT = {False: "exp(s[b, h, i, j] - lse[b, h, i])", True: "if j <= i then exp(s[b, h, i, j] - lse[b, h, i]) else 0"}
DQ = "kernel dq" + INPUTS + " -> (dq: bf16[B, H, S, D]) " + WEIGHTS + """  dq[b, h, i, d]     = sum[j](ds[b, h, i, j] * k[b, h, j, d])
}"""
DKV = "kernel dkv" + INPUTS + " -> (dk: bf16[B, H, T, D], dv: bf16[B, H, T, D]) " + WEIGHTS + """  dv[b, h, j, d]     = sum[i](p[b, h, i, j] * dout[b, h, i, d])
  dk[b, h, j, d]     = sum[i](ds[b, h, i, j] * q[b, h, i, d])
}"""
DELTA = """kernel delta(o: bf16[B, H, S, D], dout: bf16[B, H, S, D]) -> (delta: f32[B, H, S]) {
  delta[b, h, i] = sum[d](f32(o[b, h, i, d]) * dout[b, h, i, d])
}"""


def forward(q, k, v, causal, backend):
    with sdpa_kernel(backend):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def lse_of(q, k, causal):
    """The logarithms of the sums of exponentials, by rows of 1024 queries."""
    length = q.shape[2]
    parts = []
    for first in range(0, length, 1024):
        last = min(first + 1024, length)
        keys = k[:, :, :last] if causal else k
        s = (q[:, :, first:last].float() @ keys.float().transpose(2, 3)) / math.sqrt(q.shape[3])
        if causal:
            rows = torch.arange(first, last, device="cuda")[:, None]
            s.masked_fill_(torch.arange(last, device="cuda")[None] > rows, -math.inf)
        parts.append(torch.logsumexp(s, 3))
    return torch.cat(parts, 2).contiguous()


def case(length, width, causal, schedules, repeats):
    """Prints a row; returns the ratio to cuDNN."""
    batch, heads = TOKENS // length, HEADS[width]
    q, k, v, dout = (peers.normal(batch, heads, length, width, seed=n) for n in range(4))
    for tensor in (q, k, v):
        tensor.requires_grad_()
    calls, wants = [], []
    for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION):
        o = forward(q, k, v, causal, backend)
        calls.append(lambda o=o, inputs=(q, k, v): torch.autograd.grad(o, inputs, dout, retain_graph=True))
        wants.append(calls[-1]())
    with torch.no_grad():
        lse = lse_of(q, k, causal)
        o, dq, dk, dv = o.detach().contiguous(), *(torch.empty_like(q, requires_grad=False) for _ in range(3))
    q, k, v, delta = q.detach(), k.detach(), v.detach(), torch.empty_like(lse)
    weight = WEIGHT[causal]
    delta_kernel = peers.Kernel(source=DELTA)
    dq_kernel = peers.Kernel(source=DQ.replace("WEIGHT", weight))
    dkv_kernels = [peers.Kernel(source=DKV.replace("WEIGHT", weight) + (f"\nschedule dkv {{ {s} }}" if s else ""))
                   for s in ["", *schedules]]
    runs = [lambda: delta_kernel(o, dout, delta), lambda: dq_kernel(q, k, v, dout, lse, delta, None, dq)]
    runs += [lambda f=f: f(q, k, v, dout, lse, delta, None, dk, dv) for f in dkv_kernels]
    notes = []
    for run in runs:
        run()
        wrong = max(peers.error(got, want) for got, want in zip((dq, dk, dv), wants[0]))
        notes.append("" if wrong < 2e-2 else f"  WRONG {wrong:.2g}")
    apart = max(peers.error(a, b) for a, b in zip(*wants))
    cudnn, flash, delta_ms, dq_ms, *dkv = peers.times(calls + runs, repeats=repeats, warmup=3)
    work = 2 * batch * heads * length * length * width * (0.5 if causal else 1) * 1e-9
    mine = delta_ms + dq_ms + dkv[0]
    print(f"b{batch} h{heads} s{length} d{width} {'causal' if causal else 'full  '}  cuDNN {5 * work / cudnn:5.0f} TFLOP/s "
          f"{1e3 * cudnn:.0f} us, FA2 {1e3 * flash:.0f}; delta {1e3 * delta_ms:.0f}, dq {1e3 * dq_ms:.0f} "
          f"({3 * work / dq_ms:.0f} TFLOP/s), dk and dv {1e3 * dkv[0]:.0f} ({4 * work / dkv[0]:.0f}); sum {1e3 * mine:.0f}: "
          f"{cudnn / mine:.3f} of cuDNN, {flash / mine:.3f} of FA2  (cuDNN and FA2 apart by {apart:.1e}){notes[2]}", flush=True)
    for block, ms, note in zip(schedules, dkv[1:], notes[3:]):
        print(f"    {{ {block} }}  dk and dv {1e3 * ms:.0f} ({4 * work / ms:.0f}){note}", flush=True)
    return cudnn / mine


if __name__ == "__main__":
    peers.attention_cases(__doc__, case, LENGTHS, sorted(HEADS), repeats=11)
