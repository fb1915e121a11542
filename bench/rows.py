"""Row kernels, reductions, scans and pointwise chains as fractions of the copy bandwidth, with PyTorch eager
and torch.compile beside them.

    bench/rows.py [WORD]…     only the lines whose name or shape contains one of the words
    --no-compile              without torch.compile, which takes seconds a line

A line counts the bytes that must be read and written once. "copy" is a copy of as many bytes, timed in the same
alternation: what a kernel of this size can reach, launch included. Lines of little work are times, in those of an
empty kernel and of the bytes at the copy's rate.
"""
import sys

import torch
import torch.nn.functional as F

import peers

ROWS = ((32768, 256), (32768, 1024), (16384, 4096), (8192, 5120), (8192, 8192), (4096, 16384), (2048, 32768),
        (1024, 131072), (256, 524288), (8191, 4093))
NORM = """kernel norm(x: bf16[R, C], gamma: bf16[C], eps: f32 = 1e-6) -> (y: bf16[R, C]) {
  let square[r] = mean[c](f32(x[r, c])^2)
  y[r, c] = x[r, c] * rsqrt(square[r] + eps) * gamma[c]
}"""
NORM_F8 = """kernel norm(x: bf16[R, C], residual: bf16[R, C], gamma: bf16[C], eps: f32 = 1e-6)
    -> (sum_out: bf16[R, C], q: f8e4m3[R, C], scale: f32[R]) {
  sum_out[r, c] = x[r, c] + residual[r, c]
  let square[r] = mean[c](f32(sum_out[r, c])^2)
  let n[r, c] = sum_out[r, c] * rsqrt(square[r] + eps) * gamma[c]
  scale[r] = max(max[c](abs(n[r, c])), 1e-6) / 448.0
  q[r, c] = n[r, c] / scale[r]
}"""
LOSS = """kernel loss(x: bf16[R, C], label: i32[R]) -> (loss: f32[R], dx: bf16[R, C]) {
  let z[r] = logsumexp[c](x[r, c])
  loss[r] = z[r] - x[r, label[r]]
  dx[r, c] = exp(x[r, c] - z[r]) - (if c == label[r] then 1.0 else 0.0)
}"""
BIAS_GELU = """kernel act(x: bf16[R, C], bias: bf16[C], scale: bf16[C], residual: bf16[R, C]) -> (y: bf16[R, C]) {
  let u[r, c] = f32(x[r, c]) + bias[c]
  y[r, c] = 0.5 * u[r, c] * (1.0 + erf(u[r, c] * 0.70710678)) * scale[c] + residual[r, c]
}"""

DROPPED = """kernel dropped(x: bf16[R, C], bias: bf16[C], scale: bf16[C], residual: bf16[R, C], seed: i64, rate: f32 = 0.1)
    -> (y: bf16[R, C]) {
  let u[r, c] = f32(x[r, c]) + bias[c]
  let g[r, c] = 0.5 * u[r, c] * (1.0 + erf(u[r, c] * 0.70710678)) * scale[c]
  y[r, c] = (if rand(seed, r * C + c) < rate then 0.0 else g[r, c] / (1.0 - rate)) + residual[r, c]
}"""


BY_LENGTH = """kernel softmax(x: bf16[R, C], n: i32[R]) -> (y: bf16[R, C]) {
  y[r, c] = softmax[c](if c < n[r] then x[r, c] else -inf)
}"""


def statement(name, signature, body):
    return f"kernel {name}({signature[0]}) -> ({signature[1]}) {{ {body} }}"


def rmsnorm(x, g):
    return F.rms_norm(x, (x.shape[1],), g, 1e-6)


def quantised(x, residual, g):
    s = x + residual
    n = rmsnorm(s, g).float()
    scale = n.abs().amax(1, keepdim=True).clamp_min(1e-6) / 448.0
    return s, (n / scale).to(torch.float8_e4m3fn), scale[:, 0]


def loss(x, label):
    z = torch.logsumexp(x.float(), 1)
    d = torch.exp(x.float() - z[:, None])
    rows = torch.arange(x.shape[0], device=x.device)
    d[rows, label] -= 1
    return z - x[rows, label], d.bfloat16()


def of_rows(rows, columns):
    """Lines for one shape: name, source, inputs, scalars, outputs, what torch runs, bytes of the inputs that none needs."""
    x, residual = peers.normal(rows, columns), peers.normal(rows, columns, seed=2)
    g, b = peers.normal(columns), peers.normal(columns, seed=1)
    label = torch.randint(0, columns, (rows,), device="cuda", dtype=torch.int32)
    like = torch.empty_like
    f8, column = like(x, dtype=torch.float8_e4m3fn), torch.empty(rows, device="cuda")
    yield "layernorm", "examples/layernorm.tk", (x, g, b), (None,), (like(x),), lambda x, g, b: F.layer_norm(
        x, (columns,), g, b)
    yield "rmsnorm", NORM, (x, g), (None,), (like(x),), rmsnorm
    yield "softmax", "examples/softmax.tk", (x,), (), (like(x),), lambda x: torch.softmax(x, -1)
    yield "add+rmsnorm", "examples/rmsnorm_residual.tk", (x, residual, g), (None,), (
        like(x), like(x)), lambda x, r, g: (x + r, rmsnorm(x + r, g))
    yield "add+rms+f8", NORM_F8, (x, residual, g), (None,), (like(x), f8, column), quantised
    yield "loss+grad", LOSS, (x, label), (), (column, like(x)), loss


def masked_softmax(x, n):
    column = torch.arange(x.shape[1], device=x.device)
    return torch.softmax(x.masked_fill(column >= n[:, None], -torch.inf), -1)


def of_parts_and_planes():
    """Softmax of rows up to a length; statistics over several axes, of which a group's channels are one."""
    for rows, columns in ((16384, 4096), (4096, 16384)):
        x = peers.normal(rows, columns)
        n = torch.randint(1, columns + 1, (rows,), device="cuda", dtype=torch.int32)
        unread = int((columns - n.long()).sum()) * x.element_size()
        yield "by length", BY_LENGTH, (x, n), (), (torch.empty_like(x),), masked_softmax, unread
    for shape in ((64, 32, 8, 196), (32, 32, 16, 784), (16, 32, 10, 4096)):
        x = torch.randn(shape, device="cuda", dtype=torch.float16)
        g, b = (torch.randn(shape[1:3], device="cuda", dtype=torch.float16) for _ in range(2))
        yield "group_norm", "examples/group_norm.tk", (x, g, b), (None,), (torch.empty_like(x),), (
            lambda x, g, b: F.group_norm(x.flatten(1, 2), x.shape[1], g.flatten(), b.flatten(), 1e-5).view_as(x))


def of_matrices():
    """The other lines: sums, statistics, transposition, scans, pointwise chains."""
    one = "x: bf16[R, C]"
    for rows, columns in ((16384, 4096), (16384, 16384)):
        x = peers.normal(rows, columns)
        row, column = torch.empty(rows, device="cuda"), torch.empty(columns, device="cuda")
        total = torch.empty((), device="cuda")
        yield "sum of rows", statement("k", (one, "s: f32[R]"), "s[r] = sum[c](x[r, c])"), (x,), (), (row,), (
            lambda x: x.sum(1, dtype=torch.float32))
        yield "sum of cols", statement("k", (one, "s: f32[C]"), "s[c] = sum[r](x[r, c])"), (x,), (), (column,), (
            lambda x: x.sum(0, dtype=torch.float32))
        yield "sum", statement("k", (one, "s: f32[]"), "s = sum[r, c](x[r, c])"), (x,), (), (total,), (
            lambda x: x.sum(dtype=torch.float32))
        yield "statistics", statement(
            "k", (one, "m: f32[C], v: f32[C]"), "m[c] = mean[r](x[r, c])\n v[c] = mean[r]((x[r, c] - m[c])^2)"), (
                x,), (), (column, torch.empty_like(column)), lambda x: (x.float().mean(0), x.float().var(0, False))
        yield "argmax", statement("k", (one, "i: i32[R]"), "i[r] = argmax[c](x[r, c])"), (x,), (), (
            row.int(),), lambda x: x.argmax(1).int()
        yield "transpose", statement("k", (one, "y: bf16[C, R]"), "y[c, r] = x[r, c]"), (x,), (), (
            torch.empty(columns, rows, dtype=x.dtype, device="cuda"),), lambda x: x.t().contiguous()
    f32 = ("x: f32[R, C]", "y: f32[R, C]")
    for rows, columns in ((16384, 4096), (16384, 16384)):
        x = torch.randn(rows, columns, device="cuda")
        yield "cumsum rows", statement("k", f32, "y[r, c] = cumsum[c](x[r, c])"), (x,), (), (
            torch.empty_like(x),), lambda x: x.cumsum(1)
        yield "cumsum cols", statement("k", f32, "y[r, c] = cumsum[r](x[r, c])"), (x,), (), (
            torch.empty_like(x),), lambda x: x.cumsum(0)
    x = torch.randn(1 << 28, device="cuda")
    yield "elu", "examples/elu.tk", (x,), (None,), (torch.empty_like(x),), F.elu
    x, residual = peers.normal(16384, 8192), peers.normal(16384, 8192, seed=2)
    b, s = peers.normal(8192), peers.normal(8192, seed=1)
    yield "gelu chain", BIAS_GELU, (x, b, s, residual), (), (
        torch.empty_like(x),), lambda x, b, s, r: F.gelu(x.float() + b) * s + r
    yield "dropout", "examples/dropout.tk", (x,), (7, None), (torch.empty_like(x),), lambda x: F.dropout(x, 0.1)
    yield "gelu+dropout", DROPPED, (x, b, s, residual), (7, None), (
        torch.empty_like(x),), lambda x, b, s, r: F.dropout(F.gelu(x.float() + b) * s, 0.1) + r


def of_few_results():
    """Few results of many elements, and few rows that no cluster of blocks holds."""
    f32 = "x: f32[R, C]"
    batch_norm = """let m[c] = mean[r](x[r, c])
 let v[c] = mean[r]((x[r, c] - m[c])^2)
 y[r, c] = (x[r, c] - m[c]) * rsqrt(v[c] + 1e-5)"""
    for rows in (1, 8):
        x = torch.randn(rows, 1 << 22, device="cuda")
        row = torch.empty(rows, device="cuda")
        yield "logsumexp", statement("k", (f32, "s: f32[R]"), "s[r] = logsumexp[c](x[r, c])"), (x,), (), (
            row,), lambda x: torch.logsumexp(x, 1)
        yield "argmax", statement("k", (f32, "i: i32[R]"), "i[r] = argmax[c](x[r, c])"), (x,), (), (
            row.int(),), lambda x: x.argmax(1).int()
        yield "softmax", statement("k", (f32, "y: f32[R, C]"), "y[r, c] = softmax[c](x[r, c])"), (x,), (), (
            torch.empty_like(x),), lambda x: torch.softmax(x, -1)
    for rows, columns in ((16384, 4096), (65536, 1024)):
        x = peers.normal(rows, columns)
        column = torch.empty(columns, device="cuda")
        two = "x: bf16[R, C]"
        yield "lse of cols", statement("k", (two, "s: f32[C]"), "s[c] = logsumexp[r](x[r, c])"), (x,), (), (
            column,), lambda x: torch.logsumexp(x.float(), 0)
        # In f32: of equal ones PyTorch may name any.
        yield "argmax of cols", statement("k", (f32, "i: i32[C]"), "i[c] = argmax[r](x[r, c])"), (
            torch.randn(rows, columns, device="cuda"),), (), (column.int(),), lambda x: x.argmax(0).int()
        yield "batch norm", statement("k", (two, "y: bf16[R, C]"), batch_norm), (x,), (), (
            torch.empty_like(x),), lambda x: F.batch_norm(x, None, None, training=True)


def of_little_work():
    """Lines whose launch takes as long as their memory."""
    x = torch.randn(1 << 20, device="cuda")
    yield "elu", "examples/elu.tk", (x,), (None,), (torch.empty_like(x),), F.elu
    x, g, b = peers.normal(1024, 1024), peers.normal(1024), peers.normal(1024, seed=1)
    yield "softmax", "examples/softmax.tk", (x,), (), (torch.empty_like(x),), lambda x: torch.softmax(x, -1)
    yield "layernorm", "examples/layernorm.tk", (x, g, b), (None,), (
        torch.empty_like(x),), lambda x, g, b: F.layer_norm(x, (1024,), g, b)


def tensors_of(value):
    return value if isinstance(value, tuple) else (value,)


def comparable(name, inputs, result):
    """What two runs agree on: the elements, or how many of them random numbers dropped."""
    if "dropout" not in name:
        return result.float()
    kept = result - inputs[3] if len(inputs) > 3 else result
    return (kept == 0).float().mean()[None]


def line(case, compiling, little):
    name, source, inputs, scalars, outputs, peer, *unread = case
    kernel = peers.Kernel(source) if source.endswith(".tk") else peers.Kernel(source=source)
    run = lambda: kernel(*inputs, *scalars, *outputs)
    run()
    want = tensors_of(peer(*inputs))
    wrong = max(peers.error(comparable(name, inputs, got), comparable(name, inputs, expected.to(got.dtype)))
                for got, expected in zip(outputs, want))
    moved = sum(t.numel() * t.element_size() for t in (*inputs, *outputs)) - sum(unread)
    source_bytes = torch.empty(moved // 2, dtype=torch.uint8, device="cuda")
    target_bytes = torch.empty_like(source_bytes)
    functions = [run, lambda: target_bytes.copy_(source_bytes), lambda: peer(*inputs)]
    if compiling:
        torch._dynamo.reset()
        compiled = torch.compile(peer, dynamic=False)
        functions.append(lambda: compiled(*inputs))
    if little:
        functions.append(lambda: torch.cuda._sleep(0))
    ms = peers.times(functions, repeats=20, cold=True)
    bound = 6e-2 if any(t.dtype == torch.float8_e4m3fn for t in outputs) else 2e-2
    note = "" if wrong < bound else f"  WRONG {wrong:.2g}"
    shape = "x".join(str(n) for n in inputs[0].shape)
    if little:
        least = ms.pop() + moved / peers.COPY * 1e3
        of, digits, rates = "of an empty kernel and the bytes", 2, [t / least for t in ms]
    else:
        of, digits, rates = "of the copy", 3, [moved / (t * 1e-3) / peers.COPY for t in ms]
    told = "  ".join(f"{who} {rate:.{digits}f}" for who, rate in zip(("tk", "same-size copy", "eager", "compiled"), rates))
    print(f"{name:14}{shape:>14}  {of}: {told}{note}", flush=True)


def main(arguments):
    compiling = "--no-compile" not in arguments
    words = [word for word in arguments if not word.startswith("--")]
    peers.COPY = peers.copy_bandwidth()
    print(f"copy: {peers.COPY * 1e-9:.0f} GB/s")
    groups = [lambda shape=shape: of_rows(*shape) for shape in ROWS] + [
        of_parts_and_planes, of_matrices, of_few_results, of_little_work]
    for group in groups:
        for case in group():
            label = f"{case[0]} {'x'.join(str(n) for n in case[2][0].shape)}"
            if words and not any(word in label for word in words):
                continue
            try:
                line(case, compiling, group is of_little_work)
            except RuntimeError as error:
                print(f"{label}: {str(error).splitlines()[0]}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
