"""Attention of whole sequences, state spaces and sampling."""

import math

import torch
import torch.nn.functional as F

from programs.cases import band, bf, case, d, empty, f16, f32, f8, halves, i32, integers, normal, repeat, tables


@case()
def rope_pairs():
    def f(x, c, n):
        a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
        c, n = c[:, None], n[:, None]
        return (torch.stack([a * c - b * n, b * c + a * n], -1).flatten(-2).to(bf),)

    return [normal(4, 4096, 32, 128)] + tables(4096, 128), [empty(4, 4096, 32, 128)], f


@case()
def rope_attention():
    def f(q, k, v, c, n, wq, wk):
        def pre(x, w):
            return halves(
                x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6) * w, c[:, None], n[:, None]
            ).to(bf)

        o = F.scaled_dot_product_attention(
            pre(q, wq).transpose(1, 2), pre(k, wk).transpose(1, 2), v.transpose(1, 2), is_causal=True, enable_gqa=True
        )
        return (o.transpose(1, 2),)

    return (
        [normal(4, 4096, 32, 128), normal(4, 4096, 8, 128), normal(4, 4096, 8, 128, seed=2)]
        + tables(4096, 128)
        + [normal(128), normal(128, seed=3)],
        [empty(4, 4096, 32, 128)],
        f,
    )


@case()
def qk_norm_rope():
    def f(x, w, p, s):
        a = p[:, None].float() * torch.exp(-9.210340371976184 * torch.arange(64, device=d) / 64)
        z = x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6) * w
        return ((halves(z, a.cos()[:, None], a.sin()[:, None]) / s[:, None]).to(f8),)

    return (
        [normal(16384, 32, 128), normal(128), integers(4096, 16384), normal(32, dtype=f32).abs() + 0.1],
        [empty(16384, 32, 128, dtype=f8)],
        f,
    )


@case(False)
def sink_window():
    def f(q, k, v, sink, w):
        k, v = repeat(k, 8), repeat(v, 8)
        s = torch.where(band(8192, w), (q @ k.mT).float() * 0.125, -math.inf)
        s = torch.cat([s, sink[None, :, None, None].expand(1, 64, 8192, 1)], -1)
        return (torch.softmax(s, -1)[..., :-1].to(bf) @ v,)

    def full(q, k, v, sink, w):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    return (
        [normal(1, 64, 8192, 64), normal(1, 8, 8192, 64), normal(1, 8, 8192, 64, seed=2), normal(64, dtype=f32), 128],
        [empty(1, 64, 8192, 64)],
        f,
        {"sdpa causal": full},
    )


@case(False)
def stream_window():
    def f(q, k, v, w, first):
        s = torch.where(band(8192, w, first), (q @ k.mT).float() * 128**-0.5, -math.inf)
        return (torch.softmax(s, -1).to(bf) @ v,)

    def full(q, k, v, *_):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    return (
        [normal(1, 32, 8192, 128), normal(1, 32, 8192, 128, seed=2), normal(1, 32, 8192, 128, seed=3), 1024, 4],
        [empty(1, 32, 8192, 128)],
        f,
        {"sdpa causal": full},
    )


@case(False)
def cross_lengths():
    lq, lk = integers(1025, 8, lo=512), integers(1501, 8, lo=700)

    def f(q, k, v, lq, lk):
        m = (torch.arange(1500, device=d)[None] < lk[:, None])[:, None, None]
        o = F.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), attn_mask=m
        ).transpose(1, 2)
        return (torch.where((torch.arange(1024, device=d)[None] < lq[:, None])[..., None, None], o, 0),)

    return (
        [
            normal(8, 1024, 16, 64, dtype=f16),
            normal(8, 1500, 16, 64, dtype=f16),
            normal(8, 1500, 16, 64, dtype=f16, seed=2),
            lq,
            lk,
        ],
        [empty(8, 1024, 16, 64, dtype=f16)],
        f,
    )


@case()
def minp_gumbel():
    def f(z, t, p, seed):
        s = z / t
        keep = torch.where(s >= s.amax(-1, keepdim=True) + math.log(p), s, -math.inf)
        noise = -torch.log(-torch.log(torch.rand_like(z).clamp(min=1e-10)))
        i = (keep + noise).argmax(-1)
        return i, keep.gather(1, i[:, None])[:, 0] - torch.logsumexp(keep, -1)

    return [normal(256, 128256, dtype=f32, scale=2.0), 0.8, 0.05, 7], [empty(256, dtype=i32), empty(256, dtype=f32)], f


@case()
def ssd_chunk():
    def f(x, dt, a, bm, cm):
        dt = F.softplus(dt).permute(0, 1, 3, 2)
        acc = torch.cumsum(-torch.exp(a)[:, None] * dt, -1)
        g = torch.einsum("bcin,bcjn->bcij", cm, bm).float()
        w = (
            torch.where(
                torch.tril(torch.ones(256, 256, device=d, dtype=torch.bool)),
                torch.exp(acc[..., :, None] - acc[..., None, :]),
                0.0,
            )
            * g[:, :, None]
            * dt[..., None, :]
        )
        y = torch.einsum("bchij,bcjhp->bcihp", w.to(bf), x)
        r = torch.exp(acc[..., -1:] - acc) * dt
        st = torch.einsum("bcjhp,bchj,bcjn->bchpn", x.float(), r, bm.float())
        return y, st

    return (
        [
            normal(4, 16, 256, 32, 64),
            normal(4, 16, 256, 32, dtype=f32),
            normal(32, dtype=f32) - 3,
            normal(4, 16, 256, 128),
            normal(4, 16, 256, 128, seed=2),
        ],
        [empty(4, 16, 256, 32, 64), empty(4, 16, 32, 64, 128, dtype=f32)],
        f,
    )


@case()
def gated_linear():
    def f(q, k, v, g, s0):
        a = torch.cumsum(g.clamp(max=0), 2).permute(0, 1, 3, 2)
        s = torch.einsum("bcihd,bcjhd->bchij", q, k).float()
        w = torch.where(
            torch.tril(torch.ones(64, 64, device=d, dtype=torch.bool)),
            s * torch.exp(a[..., :, None] - a[..., None, :]),
            0.0,
        )
        return (
            (
                torch.einsum("bchij,bcjhe->bcihe", w.to(bf), v)
                + torch.einsum("bcihd,bchde->bcihe", q, s0) * torch.exp(a).permute(0, 1, 3, 2)[..., None]
            ).to(bf),
        )

    return (
        [
            normal(4, 32, 64, 16, 128),
            normal(4, 32, 64, 16, 128, seed=2),
            normal(4, 32, 64, 16, 128, seed=3),
            normal(4, 32, 64, 16, dtype=f32),
            normal(4, 32, 16, 128, 128),
        ],
        [empty(4, 32, 64, 16, 128)],
        f,
    )


@case()
def mtp_verify():
    def f(t, s, dr, seed):
        g = lambda z: torch.log_softmax(z.float(), -1).gather(2, dr.long()[..., None])[..., 0]
        ok = torch.rand(dr.shape, device=d) < torch.exp(g(t) - g(s))
        return torch.cumprod(ok.int(), 1).sum(1), ok

    return (
        [normal(64, 8, 128256), normal(64, 8, 128256, seed=2), integers(128256, 64, 8), 3],
        [empty(64, dtype=i32), empty(64, 8, dtype=torch.bool)],
        f,
    )


@case(False)
def diff_gqa_f16():
    def f(q, k, v, bias, ok):
        m = torch.where(ok[:, None, None], bias, -math.inf)
        return (F.scaled_dot_product_attention(q, k, v, attn_mask=m, scale=1.0, enable_gqa=True),)

    m = normal(1, 32, 4096, 4096, dtype=f16).expand(2, -1, -1, -1)
    return (
        [
            normal(2, 32, 4096, 128, dtype=f16, scale=0.3),
            normal(2, 8, 4096, 128, dtype=f16, scale=0.3),
            normal(2, 8, 4096, 128, dtype=f16, seed=2),
            normal(32, 4096, 4096, dtype=f16),
            torch.rand(2, 4096, device=d) < 0.9,
        ],
        [empty(2, 32, 4096, 128, dtype=f16)],
        f,
        {
            "mask ready": lambda q, k, v, *_: F.scaled_dot_product_attention(
                q, k, v, attn_mask=m, scale=1.0, enable_gqa=True
            )
        },
    )


@case()
def linear_rope():
    def f(x, w, c, n):
        return (halves((x @ w.view(-1, 4096).mT).view(-1, 32, 128).transpose(0, 1).float(), c, n).to(bf).contiguous(),)

    return [normal(4096, 4096), normal(32, 128, 4096, scale=0.02)] + tables(4096, 128), [empty(32, 4096, 128)], f
