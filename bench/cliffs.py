"""Programs whose plan once was many times slower than eager PyTorch, beside it.

    bench/cliffs.py [WORD]…   only the lines whose name contains one of the words
    --repeats N               calls of each, in alternation (7)

Inputs are standard-normal; factors are divided by the root of the sum's length, so that sums stay near 1. A
line has both medians, their ratio (eager / tk: 0.9 is wanted) and the error against eager, relative to the
results' norm. Places of maxima are right if the element there is no less than the greatest, but for rounding.
"""
import argparse

import torch
import torch.nn.functional as F

import peers

ROW = "kernel {0}(x: {1}[M, K], w: {1}[N, K]) -> (y: f32[M]) {{ y[m] = {2} }}"
PRODUCT = "sum[k](x[m, k] * w[j, k])"
GREEDY = "kernel greedy(x: bf16[M, K], w: bf16[V, K]) -> (t: i32[M]) { t[m] = argmax[v](sum[k](x[m, k] * w[v, k])) }"
LAYERS = """kernel layers(x: f32[M, K], w1: f32[H, K], w2: f32[N, H]) -> (y: f32[M]) {
  let a[m, h] = sigmoid(sum[k](x[m, k] * w1[h, k]))
  let l[m, j] = sum[h](a[m, h] * w2[j, h])
  y[m] = logsumexp[j](l[m, j])
}"""
GROUPED = """kernel grouped(x: bf16[M, K], w: bf16[N, K]) -> (y: bf16[M, N]) where N % 64 == 0 {
  let l[m, j] = sum[k](x[m, k] * w[j, k])
  let a[m, j] = gelu(l[m, j])
  let mu[m, u in 0..64] = mean[v in 0..N / 64](a[m, u * (N / 64) + v])
  y[m, j] = a[m, j] - mu[m, j / (N / 64)]
}"""
EXPERTS = "kernel experts(x: bf16[M, C], w: bf16[E, C, F], e: i32[M]) -> (y: bf16[M, F]) { y[m, f] = sum[c](x[m, c] * w[e[m], c, f]) }"
SEGMENTS = """kernel segments(x: f32[I, C], key: i32[I], G: i32) -> (y: f32[G, C]) {
  y[g, c] = sum[i](if key[i] == g then x[i, c] else 0.0)
}"""
FACTORS = "kernel factors(x: f32[M, K], w: f32[K, N], p: f32[M, K]) -> (y: f32[M, N]) {{ y[m, n] = sum[k]({}) }}"
DECODE = """kernel decode(q: bf16[B, H, D], k: bf16[B, H, T, D], v: bf16[B, H, T, D]) -> (o: bf16[B, H, D]) {
  let s[b, h, j] = sum[d](q[b, h, d] * k[b, h, j, d]) * rsqrt(D)
  o[b, h, e] = sum[j](softmax[j](s[b, h, j]) * v[b, h, j, e])
}"""


def factor(*shape, dtype, seed):
    return (peers.normal(*shape, dtype=torch.float32, seed=seed) * shape[-1] ** -0.5).to(dtype)


def row_case(name, dtype, size, text, eager):
    def make():
        rows, depth, columns = size
        x = peers.normal(rows, depth, dtype=dtype)
        w = factor(columns, depth, dtype=dtype, seed=1)
        kind = "f32" if dtype == torch.float32 else "bf16"
        source = ROW.format(name, kind, text)
        return source, (x, w), torch.empty(rows, device="cuda"), eager
    return make


def greedy(rows, depth, columns):
    def make():
        x = peers.normal(rows, depth)
        w = factor(columns, depth, dtype=torch.bfloat16, seed=1)
        result = torch.empty(rows, dtype=torch.int32, device="cuda")
        return GREEDY, (x, w), result, lambda x, w: (x @ w.T).argmax(1)
    return make


def layers(rows, depth, hidden, columns):
    def make():
        x = peers.normal(rows, depth, dtype=torch.float32)
        w1 = factor(hidden, depth, dtype=torch.float32, seed=1)
        w2 = factor(columns, hidden, dtype=torch.float32, seed=2)
        return (LAYERS, (x, w1, w2), torch.empty(rows, device="cuda"),
                lambda x, w1, w2: torch.logsumexp(torch.sigmoid(x @ w1.T) @ w2.T, 1))
    return make


def grouped(rows, depth, columns):
    def make():
        x = peers.normal(rows, depth)
        w = factor(columns, depth, dtype=torch.bfloat16, seed=1)

        def eager(x, w):
            a = F.gelu(x @ w.T, approximate="none")
            groups = a.view(rows, 64, columns // 64)
            return (groups - groups.mean(2, keepdim=True)).view(rows, columns)
        return GROUPED, (x, w), torch.empty(rows, columns, dtype=torch.bfloat16, device="cuda"), eager
    return make


def decode(batch, heads, keys, width):
    def make():
        q = peers.normal(batch, heads, width)
        k, v = (peers.normal(batch, heads, keys, width, seed=n) for n in (1, 2))
        return (DECODE, (q, k, v), torch.empty_like(q),
                lambda q, k, v: F.scaled_dot_product_attention(q.unsqueeze(2), k, v).squeeze(2))
    return make


def experts(rows, depth, count, columns):
    def make():
        x = peers.normal(rows, depth)
        w = factor(count, columns, depth, dtype=torch.bfloat16, seed=1).transpose(1, 2).contiguous()
        chosen = torch.randint(count, (rows,), dtype=torch.int32, device="cuda")

        def eager(x, w, chosen):
            y = torch.empty(rows, columns, dtype=torch.bfloat16, device="cuda")
            for expert in range(count):
                places = (chosen == expert).nonzero().squeeze(1)
                y[places] = x[places] @ w[expert]
            return y
        return EXPERTS, (x, w, chosen), torch.empty(rows, columns, dtype=torch.bfloat16, device="cuda"), eager
    return make


def segments(terms, columns, groups):
    def make():
        x = peers.normal(terms, columns, dtype=torch.float32)
        key = torch.randint(groups, (terms,), dtype=torch.int32, device="cuda")

        def eager(x, key, groups):
            return torch.zeros(groups, columns, device="cuda").index_add(0, key, x)
        return SEGMENTS, (x, key, groups), torch.empty(groups, columns, device="cuda"), eager
    return make


def factors(size, text, eager):
    def make():
        x, p = (peers.normal(size, size, dtype=torch.float32, seed=n) for n in (0, 2))
        w = factor(size, size, dtype=torch.float32, seed=1)
        return FACTORS.format(text), (x, w, p), torch.empty(size, size, device="cuda"), eager
    return make


F32, BF16 = torch.float32, torch.bfloat16
CASES = {
    "row_sum f32": row_case("row_sum", F32, (1024, 8192, 8192), f"sum[j](relu({PRODUCT}))",
                            lambda x, w: torch.relu(x @ w.T).sum(1)),
    "row_sum bf16": row_case("row_sum", BF16, (1024, 8192, 8192), f"sum[j](relu({PRODUCT}))",
                             lambda x, w: torch.relu(x @ w.T).sum(1, dtype=F32)),
    "row_max bf16": row_case("row_max", BF16, (1024, 8192, 8192), f"max[j]({PRODUCT})",
                             lambda x, w: (x @ w.T).amax(1).float()),
    "row_mean bf16": row_case("row_mean", BF16, (4096, 4096, 8192), f"mean[j](gelu({PRODUCT}))",
                              lambda x, w: F.gelu(x @ w.T).mean(1, dtype=F32)),
    "row_lse bf16": row_case("row_lse", BF16, (1024, 8192, 8192), f"logsumexp[j]({PRODUCT})",
                             lambda x, w: torch.logsumexp((x @ w.T).float(), 1)),
    "row_lse f32": row_case("row_lse", F32, (1024, 8192, 8192), f"logsumexp[j]({PRODUCT})",
                            lambda x, w: torch.logsumexp(x @ w.T, 1)),
    "greedy m64": greedy(64, 4096, 128256),
    "greedy m1": greedy(1, 4096, 128256),
    "first_layer f32": layers(16384, 2048, 4096, 1024),
    "grouped bf16": grouped(4096, 4096, 4096),
    "experts e8": experts(8192, 1024, 8, 4096),
    "experts e64": experts(131072, 1024, 64, 512),
    "segments 1M x 128": segments(1048576, 128, 1024),
    "segments 1M x 4": segments(1048576, 4, 197),
    "factors masked f32": factors(4096, "x[m, k] * w[k, n] * (if p[m, k] > 0.0 then 1.0 else 0.0)",
                                  lambda x, w, p: (x * (p > 0)) @ w),
    "factors silu f32": factors(4096, "silu(x[m, k]) * p[m, k] * w[k, n]", lambda x, w, p: (F.silu(x) * p) @ w),
    "decode b32 h32 t8192": decode(32, 32, 8192, 128),
    "decode b64 h12 t1024": decode(64, 12, 1024, 64),
}


def wrongness(arguments, result, want):
    """Of places of maxima: by how much the element there is less than the greatest, relative to that."""
    if result.dtype != torch.int32:
        return peers.error(result, want)
    x, w = (t.float() for t in arguments)
    scores = x @ w.T
    found = scores.gather(1, result.long().unsqueeze(1)).squeeze(1)
    greatest = scores.amax(1)
    return ((greatest - found) / greatest).max().item()


def line(name, make, repeats):
    source, arguments, result, eager = make()
    kernel = peers.Kernel(source=source)
    kernel(*arguments, result)
    wrong = wrongness(arguments, result, eager(*arguments))
    ours, theirs = peers.times([lambda: kernel(*arguments, result), lambda: eager(*arguments)], repeats=repeats, warmup=2)
    note = "" if wrong < 2e-2 else "  WRONG"
    print(f"{name:22} tk {ours * 1e3:9.1f} us  eager {theirs * 1e3:9.1f}  ratio {theirs / ours:.2f}  err {wrong:.1e}{note}",
          flush=True)
    return theirs / ours


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    ratios = {}
    for name, make in CASES.items():
        if options.words and not any(word in name for word in options.words):
            continue
        try:
            ratios[name] = line(name, make, options.repeats)
        except (RuntimeError, torch.OutOfMemoryError) as error:  # one line does not end the others
            print(f"{name:22} failed: {str(error).splitlines()[0][:150]}", flush=True)
        torch.cuda.empty_cache()
    if ratios:
        least = min(ratios, key=ratios.get)
        print(f"least {ratios[least]:.2f} ({least})")


if __name__ == "__main__":
    main()
