"""Attention of a few queries on caches: packed keys, latent keys, trees of drafts, a shared prefix."""

import math

import torch
import torch.nn.functional as F

from programs.cases import bf, case, d, empty, f32, f8, i32, i8, integers, normal


@case()
def kv_i8_decode():
    ln = integers(8193, 16, lo=4096)

    def f(q, k, v, sk, sv, ln):
        kk, vv = (k.to(bf) * sk[..., None].to(bf)), (v.to(bf) * sv[..., None].to(bf))
        m = (torch.arange(8192, device=d)[None] < ln[:, None])[:, None, None]
        s = torch.einsum("bghd,btgd->bght", q.view(16, 8, 4, 128), kk).float() * 128**-0.5
        p = torch.softmax(torch.where(m, s, -math.inf), -1).to(bf)
        return (torch.einsum("bght,btgd->bghd", p, vv).reshape(16, 32, 128),)

    return (
        [
            normal(16, 32, 128),
            integers(128, 16, 8192, 8, 128, lo=-127, dtype=i8),
            integers(127, 16, 8192, 8, 128, lo=-127, dtype=i8),
            normal(16, 8192, 8, dtype=f32).abs() / 50,
            normal(16, 8192, 8, dtype=f32, seed=2).abs() / 50,
            ln,
        ],
        [empty(16, 32, 128)],
        f,
    )


@case()
def kv_f8_decode():
    kb, vb, qb = normal(16, 8, 8192, 128), normal(16, 8, 8192, 128, seed=2), normal(16, 32, 1, 128)

    def f(q, k, v, sk, sv):
        s = torch.einsum("bghd,bgtd->bght", q.view(16, 8, 4, 128), k.to(bf)).float() * 128**-0.5 * sk[:, None, None]
        p = torch.softmax(s, -1).to(bf)
        return ((torch.einsum("bght,bgtd->bghd", p, v.to(bf)) * sv[:, None, None]).to(bf).reshape(16, 32, 128),)

    return (
        [
            normal(16, 32, 128),
            normal(16, 8, 8192, 128, dtype=f8),
            normal(16, 8, 8192, 128, dtype=f8, seed=2),
            normal(8, dtype=f32).abs(),
            normal(8, dtype=f32).abs(),
        ],
        [empty(16, 32, 128)],
        f,
        {"bf16 sdpa": lambda *_: F.scaled_dot_product_attention(qb, kb, vb, enable_gqa=True)},
    )


def mla(sequences, lengths=None):
    """Latent attention with the projections absorbed, for `sequences` sequences of up to 4096 keys."""
    ln = lengths if lengths is not None else integers(4097, sequences, lo=2048)

    def f(qn, qr, uk, ca, kr, uv, ln):
        ql = torch.einsum("bhp,hpc->bhc", qn, uk)
        s = (torch.einsum("bhc,btc->bht", ql, ca) + torch.einsum("bhr,btr->bht", qr, kr)).float() * 192**-0.5
        p = torch.softmax(
            torch.where((torch.arange(4096, device=d)[None] < ln[:, None])[:, None], s, -math.inf), -1
        ).to(bf)
        return (torch.einsum("bhc,hcv->bhv", torch.einsum("bht,btc->bhc", p, ca), uv),)

    return (
        [
            normal(sequences, 128, 128),
            normal(sequences, 128, 64),
            normal(128, 128, 512, scale=0.05),
            normal(sequences, 4096, 512),
            normal(sequences, 4096, 64),
            normal(128, 512, 128, scale=0.05),
            ln,
        ],
        [empty(sequences, 128, 128)],
        f,
    )


@case()
def mla_decode():
    return mla(8)


@case()
def mla_decode_64():
    return mla(64)


@case()
def mla_decode_64_full():
    return mla(64, torch.full((64,), 4096, device=d, dtype=i32))


def mla_rows(sequences):
    """The loop of latent attention alone: 128 query heads on 4096 rows of a cache, whose first 512 columns are values."""

    def f(q, kv, scale):
        s = torch.bmm(q, kv.mT).float() * scale
        return (torch.bmm(torch.softmax(s, -1).to(bf), kv[..., :512]),)

    def sdpa(q, kv, scale):
        return F.scaled_dot_product_attention(q[:, None], kv[:, None], kv[:, None, :, :512], scale=scale)

    return (
        [normal(sequences, 128, 576), normal(sequences, 4096, 576), 0.04],
        [empty(sequences, 128, 512)],
        f,
        {"sdpa": sdpa},
    )


@case()
def mla_core():
    return mla_rows(16)


@case()
def mla_core_8():
    return mla_rows(8)


@case()
def mla_core_64():
    return mla_rows(64)


@case(False)
def tree_decode():
    ln = integers(8177, 4, lo=4096)
    tree = torch.tril(torch.ones(16, 16, device=d, dtype=torch.bool)) & (
        torch.rand(16, 16, device=d) < 0.7
    ) | torch.eye(16, device=d, dtype=torch.bool)

    def mask(tree, ln):
        j = torch.arange(8192, device=d)
        r = j[None] - ln[:, None]
        return (r < 0)[:, None, None] | ((r < 16)[:, None] & tree[:, r.clamp(0, 15).long()].transpose(0, 1))[:, None]

    def f(q, k, v, tree, ln):
        return (F.scaled_dot_product_attention(q, k, v, attn_mask=mask(tree, ln), enable_gqa=True),)

    m = mask(tree, ln)

    def premasked(q, k, v, tree, ln):
        return (F.scaled_dot_product_attention(q, k, v, attn_mask=m, enable_gqa=True),)

    return (
        [normal(4, 32, 16, 128), normal(4, 8, 8192, 128), normal(4, 8, 8192, 128, seed=2), tree, ln],
        [empty(4, 32, 16, 128)],
        f,
        {"mask ready": premasked},
    )


@case()
def prefix_shared():
    ln = integers(513, 32, lo=100)

    def f(q, kp, vp, k, v, ln):
        qq = q.view(32, 8, 4, 128)
        sp = torch.einsum("bghd,tgd->gbht", qq, kp).float() * 128**-0.5
        s = torch.einsum("bghd,btgd->gbht", qq, k).float() * 128**-0.5
        s = torch.where((torch.arange(512, device=d)[None] < ln[:, None])[None, :, None], s, -math.inf)
        p = torch.softmax(torch.cat([sp, s], -1), -1).to(bf)
        o = torch.einsum("gbht,tgd->bghd", p[..., :8192], vp) + torch.einsum("gbht,btgd->bghd", p[..., 8192:], v)
        return (o.reshape(32, 32, 128),)

    return (
        [
            normal(32, 32, 128),
            normal(8192, 8, 128),
            normal(8192, 8, 128, seed=2),
            normal(32, 512, 8, 128),
            normal(32, 512, 8, 128, seed=2),
            ln,
        ],
        [empty(32, 32, 128)],
        f,
    )
