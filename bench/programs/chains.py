"""Chains of operators as models have them: a product or a sum over windows, and what follows it.

Each has a program in index notation, sizes, small sizes for tests, and a function of PyTorch that gives the same. PyTorch is
needed for the functions alone: whoever only reads the programs gets along without it.

Names of arguments say how they are filled: x standard-normal, w weights over the root of the sum's length, u weights [C, O, …] of
a transposed convolution, b and e small, g near 1, v positive, label places of classes.
"""
import math
from dataclasses import dataclass, field

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = F = None

SMALL = {"N": 2, "C": 3, "O": 8, "D": 6, "H": 9, "W": 10, "M": 19, "K": 40, "J": 48, "L": 24, "S": 4, "T": 21, "B": 3, "V": 70}


@dataclass
class Chain:
    name: str
    source: str
    dims: dict
    peer: object
    small: dict = field(default_factory=dict)
    labels: int = 0  # classes that an argument label chooses from


@dataclass
class Conv:
    """A sum over windows as the first statement of a program: t[n, o, p, q] of x[n, c, …]."""
    taps: int = 3
    stride: int = 1
    pad: int = 0
    rank: int = 2
    bias: bool = True
    transposed: bool = False

    def axes(self):
        return list(zip("DHW"[3 - self.rank:], "EPQ"[3 - self.rank:], "epq"[3 - self.rank:], "hij"[3 - self.rank:]))

    def params(self):
        sizes = ", ".join(a[0] for a in self.axes())
        taps = ", ".join([str(self.taps)] * self.rank)
        weights = f"u: f32[C, O, {taps}]" if self.transposed else f"w: f32[O, C, {taps}]"
        return f"x: f32[N, C, {sizes}], {weights}" + (", b: f32[O]" if self.bias else "")

    def where(self):
        if self.transposed:
            return ", ".join(f"{out} == ({size} - 1) * {self.stride} + {self.taps - 2 * self.pad}" for size, out, *_ in self.axes())
        return ", ".join(f"{out} == ({size} + {2 * self.pad} - {self.taps}) / {self.stride} + 1" for size, out, *_ in self.axes())

    def statement(self):
        left = ", ".join(f"{place} in 0..{out}" for _, out, place, _ in self.axes())
        taps = ", ".join(tap for *_, tap in self.axes())
        bias = " + b[o]" if self.bias else ""
        if self.transposed:
            back = [f"({place} + {self.pad} - {tap})" for *_, place, tap in self.axes()]
            hits = " and ".join(f"{at} % {self.stride} == 0" for at in back)
            read = ", ".join(f"{at} / {self.stride}" for at in back)
            return (f"let t[n, o, {left}] = sum[c, {taps}](if {hits} then pad(x[n, c, {read}], 0.0) * u[c, o, {taps}] else 0.0)"
                    f"{bias}")
        at = ", ".join((f"{self.stride} * " if self.stride > 1 else "") + f"{place} + {tap}" + (f" - {self.pad}" if self.pad else "")
                       for *_, place, tap in self.axes())
        read = f"pad(x[n, c, {at}], 0.0)" if self.pad else f"x[n, c, {at}]"
        return f"let t[n, o, {left}] = sum[c, {taps}]({read} * w[o, c, {taps}]){bias}"

    def peer(self, x, w, *bias):
        name = ("conv_transpose" if self.transposed else "conv") + f"{self.rank}d"
        return getattr(F, name)(x, w, bias[0] if bias else None, stride=self.stride, padding=self.pad)


@dataclass
class Linear:
    """A product as the first statement of a program: t[m, j]."""
    bias: bool = True

    def params(self):
        return "x: f32[M, K], w: f32[J, K]" + (", b: f32[J]" if self.bias else "")

    def where(self):
        return ""

    def statement(self):
        return "let t[m, j] = sum[k](x[m, k] * w[j, k])" + (" + b[j]" if self.bias else "")

    def peer(self, x, w, *bias):
        return F.linear(x, w, *bias)


def after(name, first, extra, results, body, peer, small=None, labels=0, where="", **dims):
    """A chain that begins with `first`. `peer` gets its result, then the arguments that `extra` declares."""
    count = 3 if first.bias else 2
    conditions = ", ".join(filter(None, [first.where(), where]))
    lines = "\n".join("  " + line.strip() for line in [first.statement()] + body.strip().split("\n"))
    source = (f"import std\nkernel chain({first.params()}{', ' + extra if extra else ''}) -> ({results})"
              f"{' where ' + conditions if conditions else ''} {{\n{lines}\n}}\n")
    return Chain(name, source, dims, lambda *a: peer(first.peer(*a[:count]), *a[count:]), small or {}, labels)


def plain(name, source, peer, small=None, **dims):
    return Chain(name, "import std\n" + source.strip() + "\n", dims, peer, small or {})


IMAGE = "y: f32[N, O, P, Q]"
VIDEO = "y: f32[N, O, E, P, Q]"
POOLED = "y: f32[N, O, P / 2, Q / 2]"
EVERY = "y[n, o, p, q] = "
POOL = "max[i in 0..2, j in 0..2](%s[n, o, 2 * p + i, 2 * q + j])"
MEAN = "mean[i in 0..2, j in 0..2](%s[n, o, 2 * p + i, 2 * q + j])"
BATCH = """let mu[o] = mean[n, p, q](%(a)s[n, o, p, q])
let va[o] = mean[n, p, q]((%(a)s[n, o, p, q] - mu[o])^2)
let z[n, o, p, q] = (%(a)s[n, o, p, q] - mu[o]) * rsqrt(va[o] + 1e-5) * g[o] + e[o]"""
PLANE = """let mu[n, o] = mean[p, q](%(a)s[n, o, p, q])
let va[n, o] = mean[p, q]((%(a)s[n, o, p, q] - mu[n, o])^2)
let z[n, o, p, q] = (%(a)s[n, o, p, q] - mu[n, o]) * rsqrt(va[n, o] + 1e-5)"""
GROUPS = """let mu[n, k in 0..4] = mean[l in 0..O / 4, p, q](%(a)s[n, k * (O / 4) + l, p, q])
let va[n, k in 0..4] = mean[l in 0..O / 4, p, q]((%(a)s[n, k * (O / 4) + l, p, q] - mu[n, k])^2)
let z[n, o, p, q] = (%(a)s[n, o, p, q] - mu[n, o / (O / 4)]) * rsqrt(va[n, o / (O / 4)] + 1e-5) * g[o] + e[o]"""
GROUPED = {"where": "O % 4 == 0"}
AFFINE = "g: f32[O], e: f32[O]"


def images():
    """A convolution over planes, then functions of an element, a pixel, a window, a plane, a batch."""
    medium = dict(N=32, C=32, H=128, W=128, O=64)
    return [
        after("conv relu bias", Conv(), "e: f32[O]", IMAGE, EVERY + "relu(t[n, o, p, q]) + e[o]",
              lambda t, e: torch.relu(t) + e.view(1, -1, 1, 1), **medium),
        after("conv relu hardswish", Conv(), "", IMAGE, EVERY + "hardswish(relu(t[n, o, p, q]))",
              lambda t: F.hardswish(torch.relu(t)), **medium),
        after("conv mish mish", Conv(), "", IMAGE, EVERY + "mish(mish(t[n, o, p, q] - 0.5) - 0.2)",
              lambda t: F.mish(F.mish(t - 0.5) - 0.2), **medium),
        after("conv /2 leaky_relu", Conv(), "", IMAGE, EVERY + "leaky_relu(t[n, o, p, q] / 2.0, 0.01)",
              lambda t: F.leaky_relu(t / 2.0, 0.01), N=64, C=8, H=128, W=128, O=64),
        after("conv softplus tanh product", Conv(), "e: f32[O]", IMAGE,
              EVERY + "t[n, o, p, q] * tanh(softplus(t[n, o, p, q])) * e[o]",
              lambda t, e: t * torch.tanh(F.softplus(t)) * e.view(1, -1, 1, 1), **medium),
        after("conv min tanh tanh", Conv(), "", "y: f32[N, P, Q]",
              "let z[n, p, q] = min[o](t[n, o, p, q])\ny[n, p, q] = tanh(tanh(z[n, p, q]))",
              lambda t: torch.tanh(torch.tanh(t.amin(1))), N=64, C=16, H=256, W=256, O=64),
        after("conv softmax over channels", Conv(), "", IMAGE, EVERY + "softmax[o](t[n, o, p, q])",
              lambda t: F.softmax(t, 1), **medium),
        after("conv logsumexp relu", Conv(pad=1), "", "y: f32[N, P, Q]",
              "let z[n, p, q] = logsumexp[o](t[n, o, p, q])\ny[n, p, q] = relu(z[n, p, q])",
              lambda t: torch.relu(torch.logsumexp(t, 1)), **medium),
        after("conv residual logsumexp", Conv(), "", "y: f32[N, P, Q]",
              "let z[n, o, p, q] = t[n, o, p, q] + hardswish(tanh(t[n, o, p, q]))\ny[n, p, q] = logsumexp[o](z[n, o, p, q])",
              lambda t: torch.logsumexp(t + F.hardswish(torch.tanh(t)), 1), **medium),
        after("conv argmax over classes", Conv(taps=1), "", "y: i32[N, P, Q]", "y[n, p, q] = argmax[o](t[n, o, p, q])",
              lambda t: t.argmax(1).int(), N=16, C=256, H=128, W=128, O=21),
        after("conv norm over channels", Conv(taps=1), "", IMAGE,
              "let z[n, p, q] = sum[o](t[n, o, p, q]^2)\n" + EVERY + "t[n, o, p, q] * rsqrt(z[n, p, q] + 1e-6)",
              lambda t: t * torch.rsqrt((t * t).sum(1, keepdim=True) + 1e-6), N=16, C=128, H=64, W=64, O=256),
        after("conv layer norm over channels", Conv(taps=4, stride=4), AFFINE, IMAGE,
              "let mu[n, p, q] = mean[o](t[n, o, p, q])\nlet va[n, p, q] = mean[o]((t[n, o, p, q] - mu[n, p, q])^2)\n" + EVERY +
              "(t[n, o, p, q] - mu[n, p, q]) * rsqrt(va[n, p, q] + 1e-6) * g[o] + e[o]",
              lambda t, g, e: F.layer_norm(t.permute(0, 2, 3, 1), (t.shape[1],), g, e, 1e-6).permute(0, 3, 1, 2),
              small=dict(H=12, W=16), N=64, C=3, H=224, W=224, O=96),
        after("conv hardswish max pool mish", Conv(), "", POOLED,
              "let a[n, o, p, q] = hardswish(t[n, o, p, q] - 0.5)\nlet z[n, o, p in 0..P / 2, q in 0..Q / 2] = "
              + POOL % "a" + "\n" + EVERY + "mish(z[n, o, p, q])",
              lambda t: F.mish(F.max_pool2d(F.hardswish(t - 0.5), 2)), **medium),
        after("conv tanh average pool", Conv(), "", POOLED,
              "let a[n, o, p, q] = tanh(t[n, o, p, q] - 0.5) - 0.2\nlet z[n, o, p in 0..P / 2, q in 0..Q / 2] = "
              + MEAN % "a" + "\n" + EVERY + "z[n, o, p, q]",
              lambda t: F.avg_pool2d(torch.tanh(t - 0.5) - 0.2, 2), **medium),
        after("conv average pool sigmoid sum", Conv(), "", "y: f32[N]",
              "let a[n, o, p in 0..P / 2, q in 0..Q / 2] = sigmoid(" + MEAN % "t" + ")\ny[n] = sum[o, p, q](a[n, o, p, q])",
              lambda t: torch.sigmoid(F.avg_pool2d(t, 2)).sum((1, 2, 3)), **medium),
        after("conv tanh scale max pool clamp", Conv(), "g: f32[O]", "y: f32[N, O, P / 3, Q / 3]",
              "let a[n, o, p, q] = tanh(t[n, o, p, q]) * 1.5 * g[o]\nlet z[n, o, p in 0..P / 3, q in 0..Q / 3] = "
              "max[i in 0..3, j in 0..3](a[n, o, 3 * p + i, 3 * q + j])\n" + EVERY + "clamp(z[n, o, p, q], 0.0, 1.0)",
              lambda t, g: F.max_pool2d(torch.tanh(t) * 1.5 * g.view(1, -1, 1, 1), 3).clamp(0, 1), **medium),
        after("stem: conv batch norm relu max pool", Conv(taps=7, stride=2, pad=3, bias=False),
              "rm: f32[O], v: f32[O], g: f32[O], e: f32[O]", "y: f32[N, O, (P - 1) / 2 + 1, (Q - 1) / 2 + 1]",
              "let a[n, o, p, q] = relu((t[n, o, p, q] - rm[o]) * rsqrt(v[o] + 1e-5) * g[o] + e[o])\n"
              "y[n, o, p, q] = max[i in 0..3, j in 0..3](pad(a[n, o, 2 * p + i - 1, 2 * q + j - 1], -inf))",
              lambda t, rm, v, g, e: F.max_pool2d(torch.relu(F.batch_norm(t, rm, v, g, e, False, 0.1, 1e-5)), 3, 2, 1),
              where="P >= 1, Q >= 1", N=32, C=3, H=224, W=224, O=64),
        after("conv gelu global average", Conv(), "", "y: f32[N, O]", "y[n, o] = mean[p, q](gelu(t[n, o, p, q]))",
              lambda t: F.gelu(t).mean((2, 3)), **medium),
        after("conv hardtanh mean tanh", Conv(pad=1), "", "y: f32[N, O]",
              "let z[n, o] = mean[p, q](clamp(t[n, o, p, q], -1.0, 1.0))\ny[n, o] = tanh(z[n, o])",
              lambda t: torch.tanh(F.hardtanh(t).mean((2, 3))), **medium),
        after("conv sum over height gelu", Conv(), "e: f32[Q]", "y: f32[N, Q]",
              "let z[n, p, q] = min[o](t[n, o, p, q])\nlet s[n, q] = sum[p](z[n, p, q])\ny[n, q] = gelu(s[n, q]) + e[q]",
              lambda t, e: F.gelu(t.amin(1).sum(1)) + e, **medium),
        after("conv batch norm of the batch relu", Conv(pad=1, bias=False), AFFINE, IMAGE,
              BATCH % {"a": "t"} + "\n" + EVERY + "relu(z[n, o, p, q])",
              lambda t, g, e: torch.relu(F.batch_norm(t, None, None, g, e, True)), N=32, C=64, H=56, W=56, O=128),
        after("conv softplus batch norm of the batch", Conv(), AFFINE, IMAGE,
              "let a[n, o, p, q] = t[n, o, p, q] * tanh(softplus(t[n, o, p, q]))\n" + BATCH % {"a": "a"} + "\n" + EVERY +
              "z[n, o, p, q]", lambda t, g, e: F.batch_norm(t * torch.tanh(F.softplus(t)), None, None, g, e, True), **medium),
        after("conv instance norm divide", Conv(), "", IMAGE, PLANE % {"a": "t"} + "\n" + EVERY + "z[n, o, p, q] / 2.0",
              lambda t: F.instance_norm(t) / 2.0, **medium),
        after("conv group norm relu", Conv(pad=1), AFFINE, IMAGE, GROUPS % {"a": "t"} + "\n" + EVERY + "relu(z[n, o, p, q])",
              lambda t, g, e: torch.relu(F.group_norm(t, 4, g, e)), **GROUPED, N=16, C=64, H=64, W=64, O=128),
        after("conv group norm tanh hardswish residual", Conv(), AFFINE, IMAGE, GROUPS % {"a": "t"} + "\n" + EVERY +
              "t[n, o, p, q] + hardswish(tanh(z[n, o, p, q]))",
              lambda t, g, e: t + F.hardswish(torch.tanh(F.group_norm(t, 4, g, e))), **GROUPED, **medium),
        after("conv group norm max pool clamp", Conv(), AFFINE, POOLED, GROUPS % {"a": "t"} +
              "\nlet m[n, o, p in 0..P / 2, q in 0..Q / 2] = " + POOL % "z" + "\n" + EVERY + "clamp(m[n, o, p, q], 0.0, 1.0)",
              lambda t, g, e: F.max_pool2d(F.group_norm(t, 4, g, e), 2).clamp(0, 1), **GROUPED, **medium),
        after("conv layer norm of an image", Conv(pad=1), "g: f32[O, P, Q], e: f32[O, P, Q]", IMAGE,
              "let mu[n] = mean[o, p, q](t[n, o, p, q])\nlet va[n] = mean[o, p, q]((t[n, o, p, q] - mu[n])^2)\n" + EVERY +
              "(t[n, o, p, q] - mu[n]) * rsqrt(va[n] + 1e-5) * g[o, p, q] + e[o, p, q]",
              lambda t, g, e: F.layer_norm(t, t.shape[1:], g, e), N=64, C=32, H=32, W=32, O=64),
        after("conv batch norm residual relu", Conv(pad=1, bias=False), "rm: f32[O], v: f32[O], g: f32[O], e: f32[O], x2: f32[N, O, P, Q]",
              IMAGE, EVERY + "relu((t[n, o, p, q] - rm[o]) * rsqrt(v[o] + 1e-5) * g[o] + e[o] + x2[n, o, p, q])",
              lambda t, rm, v, g, e, x2: torch.relu(F.batch_norm(t, rm, v, g, e, False, 0.1, 1e-5) + x2),
              N=32, C=256, H=14, W=14, O=256),
        after("conv squeeze and excite", Conv(pad=1), "w1: f32[S, O], w2: f32[O, S]", IMAGE,
              "let m[n, o] = mean[p, q](t[n, o, p, q])\nlet h[n, s] = relu(sum[o](m[n, o] * w1[s, o]))\n"
              "let k[n, o] = sigmoid(sum[s](h[n, s] * w2[o, s]))\n" + EVERY + "t[n, o, p, q] * k[n, o]",
              lambda t, w1, w2: t * torch.sigmoid(F.linear(torch.relu(F.linear(t.mean((2, 3)), w1)), w2))[:, :, None, None],
              N=32, C=64, H=56, W=56, O=128, S=16),
        after("conv cross entropy of pixels", Conv(taps=1), "label: i32[N, P, Q]", "y: f32[]",
              "let l[n, p, q] = logsumexp[o](t[n, o, p, q])\ny = mean[n, p, q](l[n, p, q] - t[n, label[n, p, q], p, q])",
              lambda t, label: F.cross_entropy(t, label.long()), labels=1, small=dict(O=9), N=16, C=256, H=128, W=128, O=21),
    ]


def transposed():
    """Transposed convolutions over planes."""
    up = dict(transposed=True, stride=2)
    medium = dict(N=32, C=64, H=32, W=32, O=64)
    return [
        after("conv^T bias clamp scale", Conv(taps=4, pad=1, **up), "e: f32[O]", IMAGE,
              EVERY + "clamp(clamp(t[n, o, p, q] + e[o], 0.0, 1.0) * 2.0, 0.0, 1.0) / 2.0",
              lambda t, e: ((t + e.view(1, -1, 1, 1)).clamp(0, 1) * 2).clamp(0, 1) / 2, **medium),
        after("conv^T subtract tanh", Conv(taps=4, pad=1, **up), "e: f32[O]", IMAGE, EVERY + "tanh(t[n, o, p, q] - e[o])",
              lambda t, e: torch.tanh(t - e.view(1, -1, 1, 1)), **medium),
        after("conv^T softmax bias scale sigmoid", Conv(taps=4, pad=1, **up), "e: f32[O]", IMAGE,
              "let z[n, o, p, q] = softmax[o](t[n, o, p, q])\n" + EVERY + "sigmoid((z[n, o, p, q] + e[o]) * 2.0)",
              lambda t, e: torch.sigmoid((F.softmax(t, 1) + e.view(1, -1, 1, 1)) * 2), **medium),
        after("conv^T min sum gelu", Conv(taps=3, pad=1, **up), "", "y: f32[N, Q]",
              "let z[n, p, q] = min[o](t[n, o, p, q])\nlet s[n, q] = sum[p](z[n, p, q]) * 0.01\ny[n, q] = gelu(s[n, q])",
              lambda t: F.gelu(t.amin(1).sum(1) * 0.01), **medium),
        after("conv^T global average logsumexp", Conv(taps=3, transposed=True), "e: f32[O]", "y: f32[N]",
              "let m[n, o] = mean[p, q](t[n, o, p, q]) + e[o]\nlet l[n] = logsumexp[o](m[n, o])\ny[n] = l[n] * 10.0",
              lambda t, e: torch.logsumexp(t.mean((2, 3)) + e, 1) * 10, N=32, C=32, H=128, W=128, O=64),
        after("conv^T gelu group norm", Conv(taps=4, pad=1, **up), AFFINE, IMAGE,
              "let a[n, o, p, q] = gelu(t[n, o, p, q])\n" + GROUPS % {"a": "a"} + "\n" + EVERY + "z[n, o, p, q]",
              lambda t, g, e: F.group_norm(F.gelu(t), 4, g, e), **GROUPED, **medium),
        after("conv^T batch norm of the batch tanh max pool", Conv(taps=4, pad=1, **up), AFFINE, POOLED,
              BATCH % {"a": "t"} + "\nlet h[n, o, p, q] = tanh(z[n, o, p, q])\ny[n, o, p, q] = " + POOL % "h",
              lambda t, g, e: F.max_pool2d(torch.tanh(F.batch_norm(t, None, None, g, e, True)), 2), **medium),
        after("conv^T max pool hardtanh mean", Conv(taps=3, transposed=True), "", "y: f32[N, O]",
              "let m[n, o, p in 0..P / 2, q in 0..Q / 2] = " + POOL % "t" + "\nlet s[n, o] = mean[p, q](clamp(m[n, o, p, q], -1.0, 1.0))\n"
              "y[n, o] = tanh(s[n, o])", lambda t: torch.tanh(F.hardtanh(F.max_pool2d(t, 2)).mean((2, 3))),
              N=32, C=32, H=128, W=128, O=64),
        after("conv^T add min gelu product", Conv(taps=4, **up), "", IMAGE, EVERY + "gelu(min(t[n, o, p, q] + 0.5, 0.0)) * 2.0",
              lambda t: F.gelu(torch.clamp(t + 0.5, max=0)) * 2, **medium),
    ]


def videos():
    """Convolutions over volumes."""
    medium = dict(N=16, C=8, D=16, H=64, W=64, O=32)
    volume = Conv(rank=3)
    every = "y[n, o, e, p, q] = "
    t = "t[n, o, e, p, q]"
    pool = "max[h in 0..2, i in 0..2, j in 0..2](%s[n, o, 2 * e + h, 2 * p + i, 2 * q + j])"
    halves = "e in 0..E / 2, p in 0..P / 2, q in 0..Q / 2"
    return [
        after("conv3d relu gelu sigmoid bias", volume, "g: f32[O]", VIDEO,
              every + f"sigmoid(gelu(leaky_relu(relu({t}), 0.01))) + g[o]",
              lambda t, g: torch.sigmoid(F.gelu(F.leaky_relu(torch.relu(t), 0.01))) + g.view(1, -1, 1, 1, 1), **medium),
        after("conv3d mish tanh", Conv(rank=3, pad=1), "", VIDEO, every + f"tanh(mish({t}))", lambda t: torch.tanh(F.mish(t)), **medium),
        after("conv3d scale tanh sigmoid", volume, "g: f32[O], e: f32[O]".replace("e:", "e1:"), VIDEO,
              every + f"sigmoid(tanh({t} * g[o]) * e1[o])",
              lambda t, g, e: torch.sigmoid(torch.tanh(t * g.view(1, -1, 1, 1, 1)) * e.view(1, -1, 1, 1, 1)), **medium),
        after("conv3d min over depth softmax", volume, "", IMAGE,
              f"let m[n, o, p, q] = min[e]({t})\n" + EVERY + "softmax[o](m[n, o, p, q])",
              lambda t: F.softmax(t.amin(2), 1), **medium),
        after("conv3d softmax max pool", volume, "", "y: f32[N, O, E / 2, P / 2, Q / 2]",
              f"let z[n, o, e, p, q] = softmax[o]({t})\n" + every + pool % "z", lambda t: F.max_pool3d(F.softmax(t, 1), 2), **medium),
        after("conv3d max pool logsumexp relu", Conv(rank=3, pad=1), "", "y: f32[N, E / 2, P / 2, Q / 2]",
              f"let m[n, o, {halves}] = " + pool % "t" + "\nlet l[n, e, p, q] = logsumexp[o](m[n, o, e, p, q])\n"
              "y[n, e, p, q] = relu(l[n, e, p, q])", lambda t: torch.relu(torch.logsumexp(F.max_pool3d(t, 2), 1)), **medium),
        after("conv3d max pool global average sum", volume, "g: f32[O]", "y: f32[N]",
              f"let m[n, o, {halves}] = " + pool.replace("max", "max") % "t" + " / 2.0\nlet s[n, o] = mean[e, p, q](m[n, o, e, p, q]) + g[o]\n"
              "y[n] = sum[o](s[n, o])", lambda t, g: (F.max_pool3d(t / 2, 2).mean((2, 3, 4)) + g).sum(1), **medium),
        after("conv3d group norm mean", volume, "g: f32[O], e1: f32[O]", "y: f32[N]",
              f"let mu[n, k in 0..4] = mean[l in 0..O / 4, e, p, q](t[n, k * (O / 4) + l, e, p, q])\n"
              f"let va[n, k in 0..4] = mean[l in 0..O / 4, e, p, q]((t[n, k * (O / 4) + l, e, p, q] - mu[n, k])^2)\n"
              f"let z[n, o, e, p, q] = ({t} - mu[n, o / (O / 4)]) * rsqrt(va[n, o / (O / 4)] + 1e-5) * g[o] + e1[o]\n"
              f"y[n] = mean[o, e, p, q](relu(z[n, o, e, p, q]))",
              lambda t, g, e: torch.relu(F.group_norm(t, 4, g, e)).mean((1, 2, 3, 4)), **GROUPED, **medium),
        after("conv3d instance norm clamp max", volume, "g: f32[O]", "y: f32[N, E, P, Q]",
              f"let a[n, o, e, p, q] = {t} * g[o]\nlet mu[n, o] = mean[e, p, q](a[n, o, e, p, q])\n"
              f"let va[n, o] = mean[e, p, q]((a[n, o, e, p, q] - mu[n, o])^2)\n"
              f"let z[n, o, e, p, q] = clamp((a[n, o, e, p, q] - mu[n, o]) * rsqrt(va[n, o] + 1e-5), -1.0, 1.0) * g[o]\n"
              f"y[n, e, p, q] = max[o](z[n, o, e, p, q])",
              lambda t, g: (F.instance_norm(t * g.view(1, -1, 1, 1, 1)).clamp(-1, 1) * g.view(1, -1, 1, 1, 1)).amax(1), **medium),
        after("conv3d leaky sum clamp gelu", volume, "e1: f32[O]", VIDEO,
              every + f"gelu(clamp(leaky_relu({t}, 0.2) + e1[o], -1.0, 1.0))",
              lambda t, e: F.gelu((F.leaky_relu(t, 0.2) + e.view(1, -1, 1, 1, 1)).clamp(-1, 1)), **medium),
        after("conv3d^T swish group norm hardswish", Conv(rank=3, taps=4, stride=2, pad=1, transposed=True), "g: f32[O], e1: f32[O]",
              VIDEO, f"let a[n, o, e, p, q] = silu({t})\n"
              f"let mu[n, k in 0..4] = mean[l in 0..O / 4, e, p, q](a[n, k * (O / 4) + l, e, p, q])\n"
              f"let va[n, k in 0..4] = mean[l in 0..O / 4, e, p, q]((a[n, k * (O / 4) + l, e, p, q] - mu[n, k])^2)\n"
              f"let z[n, o, e, p, q] = (a[n, o, e, p, q] - mu[n, o / (O / 4)]) * rsqrt(va[n, o / (O / 4)] + 1e-5) * g[o] + e1[o]\n"
              + every + "hardswish(z[n, o, e, p, q])", lambda t, g, e: F.hardswish(F.group_norm(F.silu(t), 4, g, e)),
              **GROUPED, N=8, C=32, D=8, H=32, W=32, O=16),
        after("conv3d^T scale max pool global average clamp", Conv(rank=3, taps=3, stride=2, pad=1, transposed=True), "", "y: f32[N, O]",
              f"let m[n, o, {halves}] = " + pool % "t" + " * 0.5\nlet s[n, o] = mean[e, p, q](m[n, o, e, p, q])\ny[n, o] = clamp(s[n, o], 0.0, 1.0)",
              lambda t: F.max_pool3d(t * 0.5, 2).mean((2, 3, 4)).clamp(0, 1), N=8, C=32, D=8, H=32, W=32, O=32),
        after("conv3d^T batch norm less mean", Conv(rank=3, taps=3, stride=2, pad=1, transposed=True), "g: f32[O], e1: f32[O]", VIDEO,
              f"let mu[o] = mean[n, e, p, q]({t})\nlet va[o] = mean[n, e, p, q](({t} - mu[o])^2)\n"
              f"let z[n, o, e, p, q] = ({t} - mu[o]) * rsqrt(va[o] + 1e-5) * g[o] + e1[o]\n"
              f"let s[n, o] = mean[e, p, q](z[n, o, e, p, q])\n" + every + "z[n, o, e, p, q] - s[n, o]",
              lambda t, g, e: (lambda z: z - z.mean((2, 3, 4), keepdim=True))(F.batch_norm(t, None, None, g, e, True)),
              N=8, C=32, D=8, H=32, W=32, O=16),
    ]


def products():
    """A product with a bias, then functions of an element, a row, a column, a group of columns."""
    wide = dict(M=1024, K=8192, J=8192)
    even = dict(M=4096, K=4096, J=4096)
    tall = dict(M=16384, K=1024, J=1024)
    row = "y: f32[M]"
    matrix = "y: f32[M, J]"
    groups = """let mu[m, i in 0..16] = mean[l in 0..J / 16](t[m, i * (J / 16) + l])
    let va[m, i in 0..16] = mean[l in 0..J / 16]((t[m, i * (J / 16) + l] - mu[m, i])^2)
    let z[m, j] = (t[m, j] - mu[m, j / (J / 16)]) * rsqrt(va[m, j / (J / 16)] + 1e-5) * g[j] + e[j]"""
    affine = "g: f32[J], e: f32[J]"
    sixteen = {"where": "J % 16 == 0"}
    return [
        after("linear relu divide", Linear(), "", matrix, "y[m, j] = relu(t[m, j]) / 2.0", lambda t: torch.relu(t) / 2, **even),
        after("linear mish mish", Linear(), "", matrix, "y[m, j] = mish(mish(t[m, j]))", lambda t: F.mish(F.mish(t)), **even),
        after("linear swish scale", Linear(), "", matrix, "y[m, j] = silu(t[m, j]) * 2.0", lambda t: F.silu(t) * 2, **tall),
        after("linear sigmoid scale residual", Linear(), "", matrix, "y[m, j] = t[m, j] + sigmoid(t[m, j]) * 2.0",
              lambda t: t + torch.sigmoid(t) * 2, **wide),
        after("linear min subtract", Linear(), "", matrix, "y[m, j] = min(t[m, j], 0.5) - 0.5", lambda t: torch.clamp(t, max=0.5) - 0.5, **tall),
        after("linear swish tanh gelu hardtanh", Linear(), "e: f32[J]", matrix,
              "y[m, j] = clamp(gelu(tanh(silu(t[m, j] + e[j]))), -1.0, 1.0)",
              lambda t, e: F.hardtanh(F.gelu(torch.tanh(F.silu(t + e)))), **wide),
        after("linear gelu softmax", Linear(), "", matrix, "let a[m, j] = gelu(t[m, j])\ny[m, j] = softmax[j](a[m, j])",
              lambda t: F.softmax(F.gelu(t), 1), **wide),
        after("linear sum over columns", Linear(), "", row, "y[m] = sum[j](sigmoid(t[m, j]))", lambda t: torch.sigmoid(t).sum(1), **wide),
        after("linear max pool sum scale", Linear(), "", row,
              "let z[m, i in 0..J / 2] = max[l in 0..2](t[m, 2 * i + l])\ny[m] = sum[i in 0..J / 2](z[m, i]) * 0.5",
              lambda t: F.max_pool1d(t, 2).sum(1) * 0.5, **wide),
        after("linear average pool gelu max", Linear(), "", row,
              "let z[m, i in 0..J / 16] = gelu(mean[l in 0..16](t[m, 16 * i + l])) * 2.0\ny[m] = max[i in 0..J / 16](z[m, i])",
              lambda t: (F.gelu(F.avg_pool1d(t, 16)) * 2).amax(1), **wide),
        after("linear logsumexp leaky gelu", Linear(), "", row,
              "let l[m] = logsumexp[j](t[m, j])\ny[m] = gelu(gelu(leaky_relu(leaky_relu(l[m], 0.01), 0.01)))",
              lambda t: F.gelu(F.gelu(F.leaky_relu(F.leaky_relu(torch.logsumexp(t, 1), 0.01), 0.01))), **wide),
        after("linear argmax", Linear(), "", "y: i32[M]", "y[m] = argmax[j](t[m, j])", lambda t: t.argmax(1).int(), M=2048, K=1024, J=16384),
        after("linear subtract mean gelu residual", Linear(), "e: f32[J]", "y: f32[M, K]".replace("K", "J"),
              "let s[m] = gelu(mean[j](t[m, j] - e[j]))\ny[m, j] = t[m, j] + s[m]",
              lambda t, e: t + F.gelu((t - e).mean(1, keepdim=True)), **wide),
        after("linear cross entropy", Linear(), "label: i32[M]", "y: f32[]",
              "let l[m] = logsumexp[j](t[m, j])\ny = mean[m](l[m] - t[m, label[m]])",
              lambda t, label: F.cross_entropy(t, label.long()), labels=1, M=4096, K=1024, J=32000),
        after("linear mean squared error", Linear(), "x2: f32[M, J]", "y: f32[]", "y = mean[m, j]((t[m, j] - x2[m, j])^2)",
              lambda t, x2: F.mse_loss(t, x2), **even),
        after("linear layer norm", Linear(), affine, matrix,
              "let mu[m] = mean[j](t[m, j])\nlet va[m] = mean[j]((t[m, j] - mu[m])^2)\n"
              "y[m, j] = (t[m, j] - mu[m]) * rsqrt(va[m] + 1e-5) * g[j] + e[j]",
              lambda t, g, e: F.layer_norm(t, t.shape[1:], g, e), **tall),
        after("linear group norm hardtanh", Linear(), affine, matrix, groups + "\ny[m, j] = clamp(z[m, j], -2.0, 2.0)",
              lambda t, g, e: F.hardtanh(F.group_norm(t, 16, g, e), -2, 2), **sixteen, **wide),
        after("linear group norm leaky twice", Linear(), affine, matrix, groups + "\ny[m, j] = leaky_relu(z[m, j], 0.01) * 2.0",
              lambda t, g, e: F.leaky_relu(F.group_norm(t, 16, g, e), 0.01) * 2, **sixteen, **wide),
        after("linear group norm min bias", Linear(), affine, row, groups + "\ny[m] = min[j](z[m, j]) + 0.5",
              lambda t, g, e: F.group_norm(t, 16, g, e).amin(1) + 0.5, **sixteen, **wide),
        after("linear batch norm of the batch gelu relu", Linear(), affine, matrix,
              "let mu[j] = mean[m](t[m, j])\nlet va[j] = mean[m]((t[m, j] - mu[j])^2)\n"
              "y[m, j] = relu(gelu((t[m, j] - mu[j]) * rsqrt(va[j] + 1e-5) * g[j] + e[j]))",
              lambda t, g, e: torch.relu(F.gelu(F.batch_norm(t, None, None, g, e, True))), **tall),
        after("linear batch norm scale softmax", Linear(), affine, matrix,
              "let mu[j] = mean[m](t[m, j])\nlet va[j] = mean[m]((t[m, j] - mu[j])^2)\n"
              "let z[m, j] = ((t[m, j] - mu[j]) * rsqrt(va[j] + 1e-5) * g[j] + e[j]) * 0.5\ny[m, j] = softmax[j](z[m, j])",
              lambda t, g, e: F.softmax(F.batch_norm(t, None, None, g, e, True) * 0.5, 1), **wide),
    ]


def models():
    """Blocks of models, of more than one product."""
    conv = "sum[c, i, j](pad(%s[n, c, p + i - 1, q + j - 1], 0.0) * %s[%s, c, i, j])"
    return [
        plain("basic block: two convs, residual", f"""
kernel chain(x: f32[N, C, H, W], w1: f32[C, C, 3, 3], b1: f32[C], w2: f32[C, C, 3, 3], b2: f32[C]) -> (y: f32[N, C, H, W]) {{
  let a[n, o, p in 0..H, q in 0..W] = relu({conv % ("x", "w1", "o")} + b1[o])
  let z[n, o, p in 0..H, q in 0..W] = {conv % ("a", "w2", "o")} + b2[o]
  y[n, o, p, q] = relu(z[n, o, p, q] + x[n, o, p, q])
}}""", lambda x, w1, b1, w2, b2: torch.relu(F.conv2d(torch.relu(F.conv2d(x, w1, b1, padding=1)), w2, b2, padding=1) + x),
              N=32, C=128, H=28, W=28),
        plain("bottleneck: 1x1, 3x3, 1x1, residual", f"""
kernel chain(x: f32[N, O, H, W], w1: f32[C, O], b1: f32[C], w2: f32[C, C, 3, 3], b2: f32[C], w3: f32[O, C], b3: f32[O])
    -> (y: f32[N, O, H, W]) {{
  let a[n, c, h, v] = relu(sum[o](x[n, o, h, v] * w1[c, o]) + b1[c])
  let z[n, d, p in 0..H, q in 0..W] = relu({conv % ("a", "w2", "d")} + b2[d])
  y[n, o, h, v] = relu(sum[c](z[n, c, h, v] * w3[o, c]) + b3[o] + x[n, o, h, v])
}}""", lambda x, w1, b1, w2, b2, w3, b3: torch.relu(F.conv2d(torch.relu(F.conv2d(torch.relu(
            F.conv2d(x, w1[:, :, None, None], b1)), w2, b2, padding=1)), w3[:, :, None, None], b3) + x),
              N=32, O=256, C=64, H=56, W=56),
        plain("two convs, max pool", f"""
kernel chain(x: f32[N, C, H, W], w1: f32[O, C, 3, 3], b1: f32[O], w2: f32[O, O, 3, 3], b2: f32[O]) -> (y: f32[N, O, H / 2, W / 2]) {{
  let a[n, o, p in 0..H, q in 0..W] = relu({conv % ("x", "w1", "o")} + b1[o])
  let z[n, o, p in 0..H, q in 0..W] = relu({conv % ("a", "w2", "o")} + b2[o])
  y[n, o, p, q] = max[r in 0..2, s in 0..2](z[n, o, 2 * p + r, 2 * q + s])
}}""", lambda x, w1, b1, w2, b2: F.max_pool2d(torch.relu(F.conv2d(torch.relu(F.conv2d(x, w1, b1, padding=1)), w2, b2, padding=1)), 2),
              N=8, C=3, H=224, W=224, O=64),
        plain("group norm, silu, conv, residual", f"""
kernel chain(x: f32[N, C, H, W], g: f32[C], e: f32[C], w: f32[C, C, 3, 3], b: f32[C]) -> (y: f32[N, C, H, W]) where C % 4 == 0 {{
  let mu[n, k in 0..4] = mean[l in 0..C / 4, h, v](x[n, k * (C / 4) + l, h, v])
  let va[n, k in 0..4] = mean[l in 0..C / 4, h, v]((x[n, k * (C / 4) + l, h, v] - mu[n, k])^2)
  let a[n, c, h, v] = silu((x[n, c, h, v] - mu[n, c / (C / 4)]) * rsqrt(va[n, c / (C / 4)] + 1e-5) * g[c] + e[c])
  y[n, o, p, q] = {conv % ("a", "w", "o")} + b[o] + x[n, o, p, q]
}}""", lambda x, g, e, w, b: F.conv2d(F.silu(F.group_norm(x, 4, g, e)), w, b, padding=1) + x, small=dict(C=8), N=4, C=256, H=64, W=64),
        plain("depthwise conv, layer norm, linear, gelu", """
kernel chain(x: f32[N, C, H, W], w: f32[C, 7, 7], b: f32[C], g: f32[C], e: f32[C], w1: f32[J, C], b1: f32[J]) -> (y: f32[N, H, W, J]) {
  let t[n, c, p in 0..H, q in 0..W] = sum[i, j](pad(x[n, c, p + i - 3, q + j - 3], 0.0) * w[c, i, j]) + b[c]
  let mu[n, h, v] = mean[c](t[n, c, h, v])
  let va[n, h, v] = mean[c]((t[n, c, h, v] - mu[n, h, v])^2)
  let z[n, c, h, v] = (t[n, c, h, v] - mu[n, h, v]) * rsqrt(va[n, h, v] + 1e-6) * g[c] + e[c]
  y[n, h, v, j] = gelu(sum[c](z[n, c, h, v] * w1[j, c]) + b1[j])
}""", lambda x, w, b, g, e, w1, b1: F.gelu(F.linear(F.layer_norm(F.conv2d(x, w.unsqueeze(1), b, padding=3, groups=x.shape[1])
                                                                 .permute(0, 2, 3, 1), (x.shape[1],), g, e, 1e-6), w1, b1)),
              N=16, C=192, H=28, W=28, J=768),
        plain("audio: conv1d gelu, layer norm over channels", """
kernel chain(x: f32[N, C, W], w: f32[O, C, 3], b: f32[O], g: f32[O], e: f32[O]) -> (y: f32[N, W, O]) {
  let t[n, o, p in 0..W] = gelu(sum[c, i](pad(x[n, c, p + i - 1], 0.0) * w[o, c, i]) + b[o])
  let mu[n, p] = mean[o](t[n, o, p])
  let va[n, p] = mean[o]((t[n, o, p] - mu[n, p])^2)
  y[n, p, o] = (t[n, o, p] - mu[n, p]) * rsqrt(va[n, p] + 1e-5) * g[o] + e[o]
}""", lambda x, w, b, g, e: F.layer_norm(F.gelu(F.conv1d(x, w, b, padding=1)).transpose(1, 2), (w.shape[0],), g, e),
              N=16, C=80, W=3000, O=512),
        plain("mlp: linear gelu linear residual", """
kernel chain(x: f32[M, K], w1: f32[J, K], b1: f32[J], w2: f32[K, J], b2: f32[K]) -> (y: f32[M, K]) {
  let a[m, j] = gelu(sum[k](x[m, k] * w1[j, k]) + b1[j])
  y[m, l] = sum[j](a[m, j] * w2[l, j]) + b2[l] + x[m, l]
}""", lambda x, w1, b1, w2, b2: F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2) + x, M=8192, K=1024, J=4096),
        plain("mlp: three layers, relu", """
kernel chain(x: f32[M, K], w1: f32[J, K], w2: f32[J, J], w3: f32[L, J]) -> (y: f32[M, L]) {
  let a[m, j] = relu(sum[k](x[m, k] * w1[j, k]))
  let z[m, i] = relu(sum[j](a[m, j] * w2[i, j]))
  y[m, l] = sum[j](z[m, j] * w3[l, j])
}""", lambda x, w1, w2, w3: F.linear(torch.relu(F.linear(torch.relu(F.linear(x, w1)), w2)), w3), M=16384, K=784, J=1024, L=64),
        plain("two layers, sigmoid, logsumexp", """
kernel chain(x: f32[M, K], w1: f32[J, K], b1: f32[J], w2: f32[L, J], b2: f32[L]) -> (y: f32[M]) {
  let a[m, j] = sigmoid(sum[k](x[m, k] * w1[j, k]) + b1[j])
  let z[m, l] = sum[j](a[m, j] * w2[l, j]) + b2[l]
  y[m] = logsumexp[l](z[m, l])
}""", lambda x, w1, b1, w2, b2: torch.logsumexp(F.linear(torch.sigmoid(F.linear(x, w1, b1)), w2, b2), 1),
              M=16384, K=2048, J=4096, L=1024),
        plain("gated mlp in bf16", """
kernel chain(x: bf16[M, K], w1: bf16[J, K], w2: bf16[J, K], w3: bf16[K, J]) -> (y: bf16[M, K]) {
  let a[m, j]: bf16 = silu(sum[k](x[m, k] * w1[j, k])) * sum[k](x[m, k] * w2[j, k])
  y[m, l] = sum[j](a[m, j] * w3[l, j])
}""", lambda x, w1, w2, w3: F.linear(F.silu(F.linear(x, w1)) * F.linear(x, w2), w3), M=4096, K=4096, J=11008),
        plain("bmm softmax", """
kernel chain(x: f32[B, T, K], x1: f32[B, T, K]) -> (y: f32[B, T, T]) {
  let s[b, t, u] = sum[k](x[b, t, k] * x1[b, u, k]) * 0.125
  y[b, t, u] = softmax[u](s[b, t, u])
}""", lambda x, x1: F.softmax(torch.bmm(x, x1.transpose(1, 2)) * 0.125, 2), B=48, T=1024, K=64),
        plain("bmm instance norm residual product", """
kernel chain(x: f32[M, K], w: f32[J, K], b: f32[J], x2: f32[M, J]) -> (y: f32[M, J]) {
  let t[m, j] = sum[k](x[m, k] * w[j, k]) + b[j]
  let mu[m] = mean[j](t[m, j])
  let va[m] = mean[j]((t[m, j] - mu[m])^2)
  y[m, j] = ((t[m, j] - mu[m]) * rsqrt(va[m] + 1e-5) + x2[m, j]) * x2[m, j]
}""", lambda x, w, b, x2: (F.instance_norm(F.linear(x, w, b).unsqueeze(1)).squeeze(1) + x2) * x2, M=1024, K=8192, J=8192),
        plain("bmm mean over rows", """
kernel chain(x: f32[B, T, K], w: f32[B, J, K]) -> (y: f32[B, J]) {
  let a[b, t, j] = gelu(sum[k](x[b, t, k] * w[b, j, k]))
  y[b, j] = mean[t](a[b, t, j])
}""", lambda x, w: F.gelu(torch.bmm(x, w.transpose(1, 2))).mean(1), B=32, T=1024, K=256, J=512),
    ]


def chains():
    return images() + transposed() + videos() + products() + models()
