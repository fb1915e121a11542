"""Chains that begin with a convolution: over planes, transposed, and over volumes."""
from chain_forms import Conv, F, after, torch

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
