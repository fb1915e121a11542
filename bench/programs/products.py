"""Experts, weights in few bits, norms, activations and windows."""

import torch
import torch.nn.functional as F

from programs.cases import bf, case, d, empty, f32, f8, f8block, i32, i8, integers, normal, normlin, sorted_experts, w4


@case()
def moe_route():
    def f(x, w):
        v, i = torch.softmax((x @ w.mT).float(), -1).topk(2, -1)
        v = v / v.sum(-1, keepdim=True)
        return i[:, 0], i[:, 1], v[:, 0], v[:, 1]

    return (
        [normal(4096, 4096), normal(128, 4096, scale=0.02)],
        [empty(4096, dtype=i32), empty(4096, dtype=i32), empty(4096, dtype=f32), empty(4096, dtype=f32)],
        f,
    )


@case(False)
def moe_gather():
    def f(x, g, u, e):
        return (F.silu(torch.einsum("td,tfd->tf", x, g[e.long()])) * torch.einsum("td,tfd->tf", x, u[e.long()]),)

    def loop(x, g, u, e):
        o = empty(16, 14336)
        for k in range(8):
            m = e == k
            if m.any():
                o[m] = F.silu(x[m] @ g[k].mT) * (x[m] @ u[k].mT)
        return (o,)

    return (
        [
            normal(16, 4096),
            normal(8, 14336, 4096, scale=0.02),
            normal(8, 14336, 4096, scale=0.02, seed=2),
            integers(8, 16),
        ],
        [empty(16, 14336)],
        f,
        {"loop": loop},
    )


@case(False)
def moe_grouped():
    off = torch.arange(1, 9, device=d, dtype=i32) * 1024

    def f(x, w, e):
        return (torch.bmm(x, w[e.long()].mT),)

    def grouped(x, w, e):
        return (torch._grouped_mm(x.view(8192, 4096), w.mT, offs=off),)

    def mm(x, w, e):
        return (x.view(8192, 4096) @ w[0].mT,)

    return (
        [normal(64, 128, 4096), normal(8, 14336, 4096, scale=0.02), sorted_experts()],
        [empty(64, 128, 14336)],
        f,
        {"grouped_mm": grouped, "plain mm": mm},
    )


@case(False)
def moe_sorted():
    off = torch.arange(1, 9, device=d, dtype=i32) * 1024

    def f(x, g, u, e, t):
        z = x[t.long()]
        return (F.silu(torch.bmm(z, g[e.long()].mT)) * torch.bmm(z, u[e.long()].mT),)

    def grouped(x, g, u, e, t):
        z = x[t.long()].view(8192, 4096)
        return (F.silu(torch._grouped_mm(z, g.mT, offs=off)) * torch._grouped_mm(z, u.mT, offs=off),)

    return (
        [
            normal(4096, 4096),
            normal(8, 14336, 4096, scale=0.02),
            normal(8, 14336, 4096, scale=0.02, seed=2),
            sorted_experts(),
            integers(4096, 64, 128),
        ],
        [empty(64, 128, 14336)],
        f,
        {"grouped_mm": grouped},
    )


@case()
def moe_combine():
    def f(y, s, w, h, r):
        return ((r.float() + h + (y[s.long()].float() * w[..., None]).sum(1)).to(bf),)

    return (
        [
            normal(16384, 4096),
            integers(16384, 8192, 2),
            normal(8192, 2, dtype=f32),
            normal(8192, 4096),
            normal(8192, 4096, seed=2),
        ],
        [empty(8192, 4096)],
        f,
    )


@case()
def w4a16_16():
    return w4(16)


@case()
def w4a16_1():
    return w4(1)


@case(False)
def f8_block_scaled_4096():
    return f8block(4096)


@case(False)
def f8_block_scaled_16():
    return f8block(16)


@case()
def f8_weight_block():
    b = normal(7168, 7168)

    def f(x, w, s):
        return (x @ (w.to(f32).view(56, 128, 56, 128) * s[:, None, :, None]).view(7168, 7168).to(bf).mT,)

    return (
        [normal(16, 7168), normal(7168, 7168, dtype=f8), normal(56, 56, dtype=f32).abs()],
        [empty(16, 7168)],
        f,
        {"bf16 mm": lambda x, *_: x @ b.mT},
    )


@case()
def norm_quant():
    def f(x, r, w):
        s = x + r
        y = s.float() * torch.rsqrt(s.float().square().mean(-1, keepdim=True) + 1e-5) * w
        k = y.abs().amax(-1).clamp(min=1e-8) / 127.0
        return s, torch.round(y / k[:, None]).clamp(-127, 127).to(i8), k

    return (
        [normal(8192, 4096), normal(8192, 4096, seed=2), normal(4096)],
        [empty(8192, 4096), empty(8192, 4096, dtype=i8), empty(8192, dtype=f32)],
        f,
    )


@case()
def swiglu_quant():
    def f(x):
        h = F.silu(x[:, 0].float()) * x[:, 1]
        b = h.view(8192, -1, 128)
        s = b.abs().amax(-1).clamp(min=1e-10) / 448.0
        return (b / s[..., None]).view(8192, -1).to(f8), s

    return [normal(8192, 2, 14336)], [empty(8192, 14336, dtype=f8), empty(8192, 112, dtype=f32)], f


@case()
def multi_lora():
    def f(x, w, dn, up, a):
        t = torch.einsum("mk,mrk->mr", x, dn[a.long()])
        return (x @ w.mT + torch.einsum("mr,mnr->mn", t, up[a.long()]),)

    return (
        [
            normal(64, 4096),
            normal(4096, 4096, scale=0.02),
            normal(32, 16, 4096, scale=0.02),
            normal(32, 4096, 16),
            integers(32, 64),
        ],
        [empty(64, 4096)],
        f,
    )


@case()
def embed_norm():
    def f(tb, pl, i, w, b):
        h = (tb[i.long()].float() * 64.0 + pl).to(bf)
        return h, F.layer_norm(h.float(), (4096,), w.float(), b.float(), 1e-5).to(bf)

    return (
        [
            normal(32000, 4096, scale=0.02),
            normal(16384, 4096),
            integers(32000, 16384),
            normal(4096),
            normal(4096, seed=2),
        ],
        [empty(16384, 4096), empty(16384, 4096)],
        f,
    )


@case()
def logits_gather():
    def f(x, w, i, t):
        z = (x @ w.mT).float()
        c = 30.0 * torch.tanh(z / 30.0) / t
        return torch.log_softmax(c, -1).gather(1, i.long()[:, None])[:, 0], z.argmax(-1)

    return (
        [normal(256, 4096), normal(128256, 4096, scale=0.02), integers(128256, 256), 0.7],
        [empty(256, dtype=f32), empty(256, dtype=i32)],
        f,
    )


@case()
def conv1d_silu():
    def f(x, w, b):
        z = F.pad(x, (0, 0, 3, 0)).float()
        return (F.silu(sum(z[:, t : t + 4096] * w[:, t] for t in range(4)) + b).to(bf),)

    return [normal(8, 4096, 4096), normal(4096, 4), normal(4096)], [empty(8, 4096, 4096)], f


@case()
def group_rms_gate():
    def f(y, z, w):
        v = y.float() * F.silu(z.float())
        return ((v * torch.rsqrt(v.square().mean(-1, keepdim=True) + 1e-5) * w).to(bf),)

    return [normal(8192, 8, 512), normal(8192, 8, 512, seed=2), normal(8, 512, dtype=f32)], [empty(8192, 8, 512)], f


@case()
def residuals():
    def f(a, b, c, e, w1, w2, alpha):
        s = a.float() + alpha * b + c + e
        y = s * torch.rsqrt(s.square().mean(-1, keepdim=True) + 1e-6)
        return s, (y * (1.0 + w1.float())).to(bf), (y * (1.0 + w2.float())).to(bf)

    return (
        [
            normal(8192, 8192),
            normal(8192, 8192, seed=2),
            normal(8192, 8192, seed=3),
            normal(8192, 8192, dtype=f32),
            normal(8192),
            normal(8192, seed=2),
            0.5,
        ],
        [empty(8192, 8192, dtype=f32), empty(8192, 8192), empty(8192, 8192)],
        f,
    )


@case()
def patch_embed():
    def f(x, w, b, p):
        return (F.conv2d(x, w, b, stride=14).flatten(2).transpose(1, 2) + p,)

    return (
        [normal(64, 3, 224, 224), normal(1024, 3, 14, 14, scale=0.05), normal(1024), normal(256, 1024)],
        [empty(64, 256, 1024)],
        f,
    )


@case()
def patch_embed2():
    def f(x, w, b):
        return (F.conv2d(x, w, b, stride=16).permute(0, 2, 3, 1).contiguous(),)

    return [normal(64, 3, 224, 224), normal(1024, 3, 16, 16, scale=0.05), normal(1024)], [empty(64, 14, 14, 1024)], f


@case()
def avg_pool():
    return [normal(64, 256, 56, 56)], [empty(64, 256, 28, 28)], lambda x: (F.avg_pool2d(x, 3, 2, 1),)


@case()
def upsample():
    return (
        [normal(16, 320, 64, 64), normal(16, 320, 128, 128)],
        [empty(16, 320, 128, 128)],
        lambda x, s: (F.silu(F.interpolate(x, scale_factor=2, mode="nearest") + s),),
    )


@case()
def norm_linear_4096():
    return normlin(4096)


@case()
def norm_linear_1():
    return normlin(1)


@case()
def ffn_i8():
    def f(x, w, sx, sw, z, t, b):
        return (((torch._int_mm(x, w.t()) - z[:, None] * t).float() * (sx[:, None] * sw) + b).to(bf),)

    return (
        [
            integers(127, 4096, 4096, lo=-127, dtype=i8),
            integers(127, 4096, 4096, lo=-127, dtype=i8),
            normal(4096, dtype=f32),
            normal(4096, dtype=f32),
            integers(8, 4096),
            integers(99, 4096),
            normal(4096),
        ],
        [empty(4096, 4096)],
        f,
    )


@case()
def act_quant_static():
    def f(x):
        b = x.float().view(8192, 256, 32)
        e = (torch.floor(torch.log2(b.abs().amax(-1).clamp(min=1e-30))) - 8.0).clamp(-127, 127)
        return (b * torch.exp2(-e)[..., None]).view(8192, 8192).to(f8), (e + 127).to(torch.uint8)

    return [normal(8192, 8192)], [empty(8192, 8192, dtype=f8), empty(8192, 256, dtype=torch.uint8)], f


LATE = 0.0
