"""Programs of bench/programs/unusual beside the same formula in PyTorch.

    bench/unusual.py [WORD]…  only the lines whose kernel contains one of the words
    --compiled                also under torch.compile
    --repeats N               calls of each, in alternation (7)

The formula is written with the operators that a user of PyTorch would take: einsum, conv, scaled_dot_product_attention. Gradients are timed
without their forward pass. A line has the medians, eager / tk and compiled / tk, and the error of the first result against eager, relative to
its norm. Integer inputs are random within the limits of sizes.txt; other inputs are normal numbers times 0.3.
"""
import argparse
import math
import os
import re

import torch
import torch.nn.functional as F

import model
import peers

LIST = os.path.join(peers.ROOT, "bench", "programs", "unusual", "sizes.txt")


def weights(q, k, v):
    p = torch.softmax((q @ k.mT) * q.shape[-1] ** -0.5, -1)
    return p @ v, p


def causal(q, k, v):
    s = (q @ k.mT) * q.shape[-1] ** -0.5
    p = torch.softmax(s.masked_fill(torch.ones_like(s[0], dtype=torch.bool).triu(1), -torch.inf), -1)
    return p @ v, p


def means(q, k, v):
    o, p = weights(q, k, v)
    return o, p.mean(0)


def distances(slope, rel, size):
    apart = torch.arange(size, device="cuda")[:, None] - torch.arange(size, device="cuda")
    return rel[:, (apart + 32).clamp(0, 63)] - slope[:, None, None] * apart.abs()


def alibi(q, k, v, slope, rel):
    bias = distances(slope, rel, q.shape[-2])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype))


def capped(q, k, v):
    s = 30 * torch.tanh((q @ k.mT) * q.shape[-1] ** -0.5 / 30)
    apart = torch.arange(s.shape[-1], device="cuda")[:, None] - torch.arange(s.shape[-1], device="cuda")
    return torch.softmax(s.masked_fill((apart < 0) | (apart >= 1024), -torch.inf), -1) @ v


def documents(q, k, v, doc):
    q, k, v = (t.transpose(0, 1) for t in (q, k, v))
    size = q.shape[1]
    seen = (doc[:, None] == doc) & torch.ones(size, size, dtype=torch.bool, device="cuda").tril()
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen).transpose(0, 1)


def bilinear(x, w, y):
    return ((x @ w) * y).sum(-1)


def clip(x, y, tau):
    x, y = F.normalize(x.float(), dim=-1), F.normalize(y.float(), dim=-1)
    s = tau * (x.bfloat16() @ y.bfloat16().mT).float()
    target = torch.arange(s.shape[0], device="cuda")
    return 0.5 * (F.cross_entropy(s, target) + F.cross_entropy(s.mT, target))


def decode(q, k, v):
    """q[B, H, D], k and v[B, T, G, D]."""
    o = F.scaled_dot_product_attention(q.unsqueeze(2), k.transpose(1, 2), v.transpose(1, 2), enable_gqa=True)
    return o.squeeze(2)


def numbers_of_4_bits(words, scale, zero):
    low, high = words & 15, words >> 4
    both = torch.stack((low, high), -1).flatten(-2)
    return (both * scale.unsqueeze(-1) + zero.unsqueeze(-1)).bfloat16()


def looked_up(w, table):
    return table[torch.stack((w & 15, w >> 4), -1).flatten(-2).long()]


def nf4(x, w, code, am):
    scaled = looked_up(w, code).unflatten(-1, (-1, 64)) * am.unsqueeze(-1)
    return x @ scaled.flatten(-2).bfloat16().mT


def mxfp4(x, w, fp4, sc):
    scaled = looked_up(w, fp4).unflatten(-1, (-1, 32)) * torch.exp2(sc.float() - 127).unsqueeze(-1)
    return x @ scaled.flatten(-2).bfloat16().mT


def gae(r, v, gamma, lam):
    d = r + gamma * v[1:] - v[:-1]
    a = torch.empty_like(r)
    last = torch.zeros_like(r[0])
    for t in range(r.shape[0] - 1, -1, -1):
        last = d[t] + gamma * lam * last
        a[t] = last
    return a


def knn2(x, y, f):
    d, i = torch.topk(((x[:, None] - y) ** 2).sum(-1), 2, largest=False)
    w = 1 / (d + 1e-8)
    return ((f[i] * w.unsqueeze(-1)).sum(1) / w.sum(1, keepdim=True)).bfloat16()


def longconv(x, w):
    return F.conv1d(x, w.unsqueeze(1), padding=w.shape[1] // 2, groups=w.shape[0])[..., :x.shape[-1]]


def hyena(x, w, g):
    size = 2 * x.shape[-1]
    return g * torch.fft.irfft(torch.fft.rfft(x.float(), n=size) * torch.fft.rfft(w.float(), n=size), n=size)[..., :x.shape[-1]].bfloat16()


def mahal(x, mu, p, lw):
    d = x[:, None] - mu
    s = lw - 0.005 * torch.einsum("mki,kij,mkj->mk", d, p, d)
    return torch.softmax(s, -1)


def rbf(x, z, ell, a):
    return torch.exp(-0.5 * torch.cdist(x / ell, z / ell) ** 2) @ a


def mmd(x, y, g):
    return sum(sign * torch.exp(-g * torch.cdist(a, b) ** 2).mean() for a, b, sign in ((x, x, 1), (y, y, 1), (x, y, -2)))


def swin(qkv, table, rel):
    q, k, v = qkv.permute(2, 0, 3, 1, 4)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=table[rel.long()].permute(2, 0, 1).unsqueeze(0)).transpose(1, 2)


def neighbours(q, k, v, rpb):
    def windows(t):
        return F.pad(t, (0, 0, 6, 6)).unfold(2, 13, 1)  # [B, H, L, D, 13]
    s = torch.einsum("bhld,bhldu->bhlu", q, windows(k)) * q.shape[-1] ** -0.5 + rpb[:, None]
    places = torch.arange(q.shape[2], device="cuda")[:, None] + torch.arange(13, device="cuda") - 6
    s = s.masked_fill((places < 0) | (places >= q.shape[2]), -torch.inf)
    return torch.einsum("bhlu,bhldu->bhld", torch.softmax(s, -1).half(), windows(v))


def relshift(q, k, v, r, u, w):
    content, places = (q + u[:, None]) @ k.mT, (q + w[:, None]) @ r.mT
    apart = torch.arange(q.shape[1], device="cuda")[:, None] - torch.arange(q.shape[1], device="cuda")
    places = places.gather(2, apart.clamp(min=0).expand_as(places))
    s = ((content + places) * q.shape[-1] ** -0.5).masked_fill(apart < 0, -torch.inf)
    return torch.softmax(s, -1) @ v


def rope(x, c, n):
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), -1)
    return (x * c[None, :, None] + turned * n[None, :, None]).bfloat16()


def scatteradd(x, g, w):
    sums = torch.zeros(w.shape[0], x.shape[1], device="cuda").index_add(0, g, x)
    return sums / torch.bincount(g, minlength=w.shape[0]).clamp(min=1)[:, None] * w[:, None]


def ssim(x, y, g):
    def blur(t):
        return F.conv2d(F.conv2d(t, g.view(1, 1, 11, 1)), g.view(1, 1, 1, 11))
    x, y = x[:, None], y[:, None]
    mx, my = blur(x), blur(y)
    xx, yy, xy = blur(x * x) - mx * mx, blur(y * y) - my * my, blur(x * y) - mx * my
    return (((2 * mx * my + 1e-4) * (2 * xy + 9e-4)) / ((mx * mx + my * my + 1e-4) * (xx + yy + 9e-4))).mean()


def supcon(f, y):
    own = torch.eye(f.shape[0], dtype=torch.bool, device="cuda")
    s = (f @ f.mT).float() * 0.1
    l = torch.logsumexp(s.masked_fill(own, -torch.inf), 1, keepdim=True)
    same = (y[:, None] == y) & ~own
    return -((s - l).where(same, 0.0).sum(1) / same.sum(1).clamp(min=1)).mean()


def graph_attention(x, src, s, off):
    count = off.diff().clamp(min=0)
    node = torch.repeat_interleave(torch.arange(len(count), device=x.device), count)
    s, rows = s[off[0]:off[-1]], x[src[off[0]:off[-1]].long()]
    places = node.reshape(-1, *[1] * (s.ndim - 1)).expand_as(s)
    top = torch.full((len(count), *s.shape[1:]), -torch.inf, device=x.device).scatter_reduce(0, places, s, "amax")
    weight = (s - top[node]).exp()
    weight = weight / torch.zeros_like(top).index_add(0, node, weight)[node]
    return torch.zeros(x.shape, device=x.device).index_add(0, node, weight.unsqueeze(-1) * rows).to(x.dtype)


def graph_heads(x, src, a, b, off):
    node = torch.repeat_interleave(torch.arange(len(b), device=x.device), off.diff().clamp(min=0))
    return graph_attention(x, src, F.leaky_relu(a[src.long()] + b[node], 0.2), off)


def adapters_by_token(x, base, a, b, id):
    y = base.clone()
    for n in range(a.shape[0]):
        rows = (id == n).nonzero()[:, 0]
        y[rows] += x[rows] @ a[n].mT @ b[n].mT
    return y


def topkgate(z):
    return topkept(torch.softmax(z, -1), 0.9)


def topk(z, k):
    ordered = z.sort(-1, descending=True).values
    last = ordered.gather(-1, (k.long() - 1).clamp(min=0)[:, None])
    return torch.softmax(z.where((z >= last) & (k[:, None] > 0), -torch.inf), -1)


def topp(z, top_p=0.9, temperature=0.7):
    kept = topkept(torch.softmax(z.float() / temperature, -1), top_p)
    return kept / kept.sum(-1, keepdim=True)


def topkept(p, top_p):
    ordered, places = p.sort(-1, descending=True)
    kept = ordered.where(ordered.cumsum(-1) - ordered < top_p, 0.0)
    return torch.empty_like(p).scatter(-1, places, kept)


def drawn(z, noise, k=50, top_p=0.9):
    m = z.where(z >= z.topk(int(k), -1).values[:, -1:], -torch.inf)
    kept = topkept(torch.softmax(m, -1), top_p)
    return (m + noise).where(kept > 0, -torch.inf).argmax(-1).int()


def windows_of_maxima(kernel, stride, padding):
    return lambda x: F.max_pool2d(x, kernel, stride, padding)


def hardtriplet(x, id, margin):
    n = (x * x).sum(1)
    d = (n[:, None] + n - 2 * x @ x.mT).clamp(min=1e-12).sqrt()
    same = id[:, None] == id
    return torch.relu(d.where(same, 0.0).amax(1) - d.where(~same, 1e9).amin(1) + margin).mean()


def append(keys, y, position):
    keys[torch.arange(y.shape[0], device="cuda"), position.long() % keys.shape[1]] = y


def kvwrite(cache, k, slot):
    cache.index_copy_(0, slot.long(), k)


def penalty(z, prev, p):
    chosen = z.gather(1, prev.long())
    return z.scatter(1, prev.long(), torch.where(chosen > 0, chosen / p[:, None], chosen * p[:, None]))


def power(w, v):
    u = F.normalize(w @ v, dim=0)
    n = F.normalize(w.mT @ u, dim=0)
    return u, n, (u * (w @ n)).sum()


def largest_four(x, w):
    z = (x @ w.mT).float()
    kept = torch.topk(z, 4)
    return torch.softmax(torch.full_like(z, -torch.inf).scatter(1, kept.indices, kept.values), -1)


def mixer(x, g, be, w1, b1, w2, b2):
    normed = F.layer_norm(x.float(), (x.shape[-1],), g, be).bfloat16()
    h = F.gelu(torch.einsum("fs,bsc->bfc", w1, normed) + b1[:, None]).bfloat16()
    return (x + torch.einsum("sf,bfc->bsc", w2, h) + b2[:, None]).bfloat16()


def state_step(s, x, dt, a, b, c, d):
    t = F.softplus(dt)
    s.mul_(torch.exp(t * a)[..., None, None]).add_((t[..., None] * x).unsqueeze(-1) * b[:, None, None])
    return ((s * c[:, None, None]).sum(-1) + d[:, None] * x).bfloat16()


def delta_step(s, q, k, v, beta, g):
    s.mul_(torch.exp(g)[..., None, None])
    u = beta[..., None] * (v - torch.einsum("bhij,bhi->bhj", s, k.float()))
    s.add_(k.float().unsqueeze(-1) * u.unsqueeze(-2))
    return torch.einsum("bhij,bhi->bhj", s, q.float()).bfloat16()


def rows_in_8_bits(x, w, sw, bias):
    s = x.abs().amax(1, keepdim=True).float() / 127
    return (torch._int_mm((x / s).round().to(torch.int8), w.mT) * s * sw + bias).bfloat16()


def depthwise(x, w, b, a):
    y = F.conv2d(x.permute(0, 3, 1, 2), w.permute(2, 0, 1).unsqueeze(1), b, padding=1, groups=x.shape[-1])
    return F.prelu(y, a.bfloat16()).permute(0, 2, 3, 1)


def ordered_pairs(p, n):
    n = n.sort().values
    places = torch.searchsorted(n, p) + torch.searchsorted(n, p, right=True)
    return (places.double().sum() / (2 * p.numel() * n.numel())).float()


def rank_gate(x, k):
    order = x.argsort(dim=1, descending=True, stable=True)
    rank = torch.empty_like(order).scatter_(1, order, torch.arange(x.shape[1], device="cuda").expand_as(order))
    return torch.where(rank < k, x, 0.0), rank


def frontier(cost, value, budget):
    cost, order = cost.sort(1)
    best = value.gather(1, order).cummax(1).values
    place = torch.searchsorted(cost, budget, right=True) - 1
    return torch.where(place >= 0, best.gather(1, place.clamp(min=0)), -torch.inf)


def cox(h, time, event):
    order = time.argsort(descending=True)
    h = h[order]
    return ((torch.logcumsumexp(h, 0) - h) * (event[order] != 0)).sum()


def ecdf(x, z):
    x, sample = x.sort().values, z.sort().values
    f = torch.searchsorted(x, z, right=True) / x.numel()
    return (f - torch.searchsorted(sample, z, right=True) / z.numel()).abs().max()


FORMULAS = {
    "bucketize": lambda x, edges: torch.bucketize(x, edges.sort().values, right=True).int(),
    "combine": lambda y, slot, w: (w.unsqueeze(-1) * y[slot.long()]).sum(1).bfloat16(),
    "conv_channels_first": lambda x, w: F.conv2d(x, w, padding=1), "cox": cox, "delta_step": delta_step,
    "dwprelu": depthwise, "ecdf": ecdf, "frontier": frontier,
    "gelu_layer": lambda x, w, b: F.gelu(x @ w.mT + b, approximate="tanh").bfloat16(), "mixer": mixer,
    "moetopk": largest_four, "orderedpairs": ordered_pairs, "penalty": penalty, "power": power, "rankgate": rank_gate,
    "step": state_step, "w8a8": rows_in_8_bits,
    "append": append, "adaptivepool": lambda x: F.adaptive_avg_pool2d(x, 7),
    "alibigrad": alibi, "attention_weights": weights, "weights": weights, "causal": causal, "means": means,
    "logs": lambda x, w: F.log_softmax((x @ w.mT).float(), -1), "norms": lambda x, w: F.normalize(x @ w.mT, dim=-1),
    "bilinear": bilinear, "bilinear16": lambda x, w, y, b: torch.einsum("md,ode,me->mo", x, w, y) + b,
    "capgrad": capped, "clip": clip,
    "confusion": lambda p, t, w: torch.bincount(t.int() * w.shape[0] + p, minlength=w.shape[0] ** 2).view(w.shape[0], -1),
    "c2": lambda x, w: F.conv2d(x, w, padding=1),
    "decodevbias": lambda q, k, v, w, c: decode(q, k, (v + c).bfloat16()), "docmask": documents, "gae": gae,
    "hardtriplet": hardtriplet, "hyena": hyena, "knn2": knn2,
    "kv4decode": lambda q, kq, vq, ks, kz, vs, vz: decode(q, numbers_of_4_bits(kq, ks, kz), numbers_of_4_bits(vq, vs, vz)),
    "kv8zp": lambda q, kq, vq, ks, kz, vs, vz: decode(q, (kq * ks[..., None] + kz[..., None]).bfloat16(), (vq * vs[..., None] + vz[..., None]).bfloat16()),
    "kvwrite": kvwrite, "longconv": longconv, "mahal": mahal,
    "maxpool3": windows_of_maxima(3, 2, 1), "mmd": mmd,
    "mttkrp16": lambda x, b, c: torch.einsum("ijk,jr,kr->ir", x, b, c).float(),
    "mx": mxfp4, "nf4_lookup": nf4, "neighattn": neighbours, "oddpool": windows_of_maxima((5, 3), (2, 1), (2, 1)),
    "outer_mean": lambda x, y: torch.einsum("smi,snj->mnij", x, y),
    "patch_embedding": lambda x, y: torch.einsum("bhpwqc,pqcd->bhwd", x, y), "rbf": rbf, "relshift": relshift,
    "rope_mod": rope, "scatteradd": scatteradd, "ssim": ssim, "supcon": supcon, "swinbias": swin, "adapters_by_token": adapters_by_token, "graph_attention": graph_attention, "graph_edges": graph_attention,
    "graph_heads": graph_heads,
    "layer_by_token": lambda x, w, a, b, id: adapters_by_token(x, x @ w.mT, a, b, id), "topkgate": topkgate, "topk": topk, "topp": topp, "drawn": drawn,
    "windows_of_pixels": lambda x, y: torch.einsum("bmiujc,cd->bmuijd", x, y),
}


def gradient(formula, arguments):
    """A function that runs the gradient of the formula alone, by the arguments in floating point."""
    leaves = [a.detach().clone().requires_grad_() if torch.is_tensor(a) and a.is_floating_point() else a for a in arguments]
    out = formula(*leaves)
    out = out[0] if isinstance(out, tuple) else out
    wanted = [a for a in leaves if torch.is_tensor(a) and a.requires_grad]
    ones = torch.ones_like(out)
    return lambda: torch.autograd.grad(out, wanted, ones, retain_graph=True, allow_unused=True)


def line(case, options):
    name = case["kernel"]
    base = name[:-2] if name.endswith("_b") else name
    formula = FORMULAS.get(base)
    if formula is None:
        return None
    found = model.inspect(case, options)
    if "error" in found:
        raise RuntimeError(found["error"])
    signature = found["signature"]
    arguments = model.make_arguments(case, signature)
    inputs = len(model.parse_signature(signature.split("->")[0], case["dims"]))
    kernel = peers.Kernel(case["file"], kernel=name)
    wanted = formula.__code__.co_argcount
    defaults = [float(value) for value in re.findall(r" = ([0-9.]+)", signature.split("->")[0])]
    filled = iter(defaults)
    given = [next(filled, None) if a is None else a for a in arguments[:inputs]][:wanted]
    if name != base:
        eager = gradient(formula, given)
        wrong = math.nan
    else:
        eager = lambda: formula(*given)
        want = eager()
        want = want[0] if isinstance(want, tuple) else want
        kernel(*arguments)
        got = arguments[inputs] if inputs < len(arguments) else None
        comparable = want is not None and got is not None and want.numel() == got.numel()
        wrong = peers.error(got.flatten(), want.flatten()) if comparable else math.nan
    functions = [lambda: kernel(*arguments), eager]
    if options.compiled and name == base:
        compiled = torch.compile(formula)
        functions.append(lambda: compiled(*given))
    measured = [value * 1e3 for value in peers.times(functions, repeats=options.repeats, warmup=2)]
    sizes = " ".join(f"{key}={value}" for key, value in case["dims"].items())
    text = f"{name:18} {sizes:42.42} tk {measured[0]:9.1f} us  eager {measured[1]:9.1f} {measured[1] / measured[0]:7.2f}"
    if len(measured) > 2:
        text += f"  compiled {measured[2]:9.1f} {measured[2] / measured[0]:7.2f}"
    print(f"{text}  err {wrong:.1e}", flush=True)
    return min(measured[1:]) / measured[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    options.tkc, options.target, options.predict = model.find_tkc(), "gpu", False
    ratios = []
    for case in model.load_listed(LIST, ()):
        if options.words and not any(word in case["kernel"] for word in options.words):
            continue
        try:
            ratio = line(case, options)
            ratios += [ratio] if ratio else []
        except (RuntimeError, TypeError, ValueError, torch.OutOfMemoryError) as error:  # one line does not end the others
            print(f"{case['kernel']:18} failed: {str(error).splitlines()[0][:150]}", flush=True)
        torch.cuda.empty_cache()
    if ratios:
        print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, least {min(ratios):.2f}, of {len(ratios)} programs")


if __name__ == "__main__":
    main()
