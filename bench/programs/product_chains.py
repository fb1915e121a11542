"""Chains that begin with a product, and blocks of models with several products or convolutions."""
from chain_forms import F, Linear, after, plain, torch


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
