"""What the programs' cases share: their data, and the list that bench/inference.py goes through."""

import torch
import torch.nn.functional as F

bf, f32, f8, f16 = torch.bfloat16, torch.float32, torch.float8_e4m3fn, torch.float16
i32, i8 = torch.int32, torch.int8
d = "cuda"
CASES = {}


def normal(*shape, dtype=bf, scale=1.0, seed=1):
    generator = torch.Generator(device=d).manual_seed(seed + sum(shape))
    return (torch.randn(*shape, device=d, generator=generator) * scale).to(dtype)


def integers(high, *shape, lo=0, dtype=i32):
    generator = torch.Generator(device=d).manual_seed(high)
    return torch.randint(lo, high, shape, device=d, generator=generator).to(dtype)


def empty(*shape, dtype=bf):
    return torch.empty(*shape, dtype=dtype, device=d)


def repeat(k, g):
    return k.repeat_interleave(g, 1)


def case(compiled=True):
    """A program: its arguments, results, a torch function of the arguments, and further peers by name."""

    def add(make):
        CASES[make.__name__] = (make, compiled)
        return make

    return add


def sorted_experts():
    return torch.arange(64, device=d).mul(8).div(64, rounding_mode="floor").to(i32)


def tables(s, dd):
    a = torch.arange(s, device=d)[:, None] * torch.exp(-9.21034 * torch.arange(dd // 2, device=d) / (dd // 2))
    return [a.cos(), a.sin()]


def halves(z, c, n):
    h = z.shape[-1] // 2
    return torch.cat([z[..., :h] * c - z[..., h:] * n, z[..., h:] * c + z[..., :h] * n], -1)


def w4(m):
    def f(x, w, s, z):
        n = torch.stack([w & 15, (w >> 4) & 15], -1).view(w.shape[0], -1, 128).to(bf)
        return (x @ ((n - z[..., None]) * s[..., None]).view(w.shape[0], -1).mT,)

    full = normal(14336, 4096, scale=0.02)
    return (
        [
            normal(m, 4096),
            integers(128, 14336, 2048, lo=-128, dtype=i8),
            normal(14336, 32, scale=0.01),
            normal(14336, 32) + 8,
        ],
        [empty(m, 14336)],
        f,
        {"bf16 mm": lambda x, *a: x @ full.mT},
    )


def f8block(m):
    x, w = normal(m, 7168, dtype=f8), normal(4096, 7168, dtype=f8)
    sx, sw = normal(m, 56, dtype=f32).abs(), normal(32, 56, dtype=f32).abs()

    def f(x, sx, w, sw):
        return (
            (
                (x.float().view(m, 56, 128) * sx[..., None]).view(m, -1).to(bf)
                @ (w.float().view(32, 128, 56, 128) * sw[:, None, :, None]).view(4096, -1).to(bf).mT
            ),
        )

    a, b = normal(m, 7168), normal(4096, 7168)
    more = {"bf16 mm": lambda *_: a @ b.mT}
    sxt = sx.t().contiguous().t()
    more["scaled_mm blocks"] = lambda x, sx, w, sw: torch._scaled_mm(
        x, w.t(), scale_a=sxt, scale_b=sw.t(), out_dtype=bf
    )
    return [x, sx, w, sw], [empty(m, 4096)], f, more


def band(s, window, first=0):
    r = torch.arange(s, device=d)
    return (r[:, None] >= r) & ((r[:, None] - r < window) | (r < first))


def normlin(t):
    def f(x, g, w, b):
        return (F.linear((x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6) * g).to(bf), w, b),)

    return [normal(t, 4096), normal(4096), normal(6144, 4096, scale=0.02), normal(6144)], [empty(t, 6144)], f
