#!/usr/bin/env python3
"""Sharded kernels on several GPUs of one machine beside PyTorch with NCCL.

    bench/mesh.py [WORD]…     only the lines whose name contains one of the words
    --ranks N                 how many GPUs (2)
    --repeats N               rounds in alternation (7); a round is 20 calls
    --plan                    also print what each rank runs
    --copies HOW              how blocks beside launches go: auto, engines, nccl (TK_MESH_COPIES)
    --network NAME|FILE       the network by whose costs collectives are chosen
    --small                   sizes that show that results are right, and no times

Lines: all-gather and product (M x 4096 -> 14336), product and reduce-scatter (M x 14336 -> 4096), an all-reduce with
residual and RMSNorm; a gather and a reduce-scatter beside a copy of the share; attention over 32768 keys that the ranks share, 64 experts of which a token has 6, and a Llama block
(bench/mesh_models.py). Partial sums of tk travel in bf16 (`wire = bf16`), as those of PyTorch do. The peers are cuBLAS
with NCCL, PyTorch's tensor parallelism on symmetric memory ("async"), where it runs, and for models PyTorch with NCCL
under torch.compile. Of attention the rate of one GPU is measured, too: "of 2 GPUs" is the rate by that of as many. A call is timed within a CUDA graph of 20, or alone where it cannot be captured. A time is the median of rounds
of the slowest rank. The error is the difference from NCCL's result, relative to its norm.
"""
import argparse
import os
import re
import statistics
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "python"), os.path.dirname(os.path.abspath(__file__))]
import mesh_models  # noqa: E402  (of this folder)

CALLS = 20
C, F = 4096, 14336
GATHERED = """mesh (tp)
kernel up(x: bf16[M @ tp, C], w: bf16[C, F @ tp]) -> (h: bf16[M, F @ tp]) { h[m, f] = sum[c](x[m, c] * w[c, f]) }
"""
SCATTERED = """mesh (tp)
kernel down(h: bf16[M, F @ tp], w: bf16[F @ tp, C]) -> (y: bf16[M @ tp, C]) {
  y[m, c] = sum[f; wire = bf16](h[m, f] * w[f, c])
}
"""
REDUCED = """mesh (tp)
kernel norm(p: bf16[R @ tp, M, C], r: bf16[M, C], g: bf16[C]) -> (s: bf16[M, C], y: bf16[M, C]) {
  let t[m, c] = sum[d; wire = bf16](p[d, m, c]) + r[m, c]
  s[m, c] = t[m, c]
  y[m, c] = t[m, c] * rsqrt(mean[c](t[m, c]^2) + 1e-5) * g[c]
}
"""
# Collectives alone, beside a copy of a rank's share.
ONLY_GATHERED = """mesh (tp)
kernel gather(x: bf16[M @ tp, C]) -> (y: bf16[M, C]) { y[m, c] = x[m, c] }
"""
ONLY_SCATTERED = """mesh (tp)
kernel scatter(p: bf16[R @ tp, M, C]) -> (y: bf16[M @ tp, C]) { y[m, c] = sum[d; wire = bf16](p[d, m, c]) }
"""


def graph_of(call, captures):
    """Calls in a row as one CUDA graph; plain calls where they cannot be captured."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    if not captures:
        return lambda: [call() for _ in range(CALLS)], True
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(CALLS):
                call()
        return graph.replay, True
    except Exception as error:  # said once, beside the line
        torch.cuda.synchronize()
        return lambda: [call() for _ in range(CALLS)], str(error).splitlines()[0][:80]


def times(calls, repeats, captures):
    """Microseconds of one call, of the slowest rank."""
    made = [graph_of(call, captures) for call in calls]
    found = [[] for _ in calls]
    for _ in range(repeats):
        for record, (run, _) in zip(found, made):
            dist.barrier()
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            run()
            last.record()
            torch.cuda.synchronize()
            slowest = torch.tensor([first.elapsed_time(last) * 1e3 / CALLS], device="cuda")
            dist.all_reduce(slowest, dist.ReduceOp.MAX)
            record.append(slowest.item())
    return [statistics.median(record) for record in found], [how for _, how in made]


def error(got, want):
    return ((got.float() - want.float()).norm() / want.float().norm()).item()


def async_gather(x, w):
    group = dist.group.WORLD.group_name
    return torch.ops.symm_mem.fused_all_gather_matmul(x, [w], gather_dim=0, group_name=group)[1][0]


def async_scatter(h, w):
    group = dist.group.WORLD.group_name
    return torch.ops.symm_mem.fused_matmul_reduce_scatter(h, w, "sum", scatter_dim=0, group_name=group)


class Compiler:
    """Kernels by text and name, on a mesh with these axes; on one GPU if there are none."""

    def __init__(self, network):
        self.modules, self.meshes, self.plans, self.network = {}, {}, [], network

    def __call__(self, text, name, axes):
        import tk
        if text not in self.modules:
            self.modules[text] = tk.compile(text)
        kernel = self.modules[text][name]
        if axes is None:
            return kernel
        key = tuple(axes.items())
        if key not in self.meshes:
            self.meshes[key] = tk.Mesh.from_torch(axes=axes, network=self.network)
        self.plans.append(self.meshes[key].kernel(kernel))
        return self.plans[-1]


def normal(*shape, scale=1.0):
    return (torch.randn(*shape, device="cuda") * scale).bfloat16()


def gather_case(kernel, m):
    ranks = dist.get_world_size()
    x, w = normal(m // ranks, C), normal(C, F // ranks, scale=C ** -0.5)
    whole, h, out = (torch.empty(*shape, dtype=torch.bfloat16, device="cuda")
                     for shape in ((m, C), (m, F // ranks), (m, F // ranks)))

    def nccl():
        dist.all_gather_into_tensor(whole, x)
        torch.mm(whole, w, out=h)
    return (lambda: kernel(x, w, out=out)), nccl, (lambda: async_gather(x, w)), (lambda: torch.mm(whole, w, out=h)), out, h


def scatter_case(kernel, m):
    ranks = dist.get_world_size()
    x, w = normal(m, F // ranks), normal(F // ranks, C, scale=F ** -0.5)
    part = torch.empty(m, C, dtype=torch.bfloat16, device="cuda")
    y, out = (torch.empty(m // ranks, C, dtype=torch.bfloat16, device="cuda") for _ in range(2))

    def nccl():
        torch.mm(x, w, out=part)
        dist.reduce_scatter_tensor(y, part)
    return (lambda: kernel(x, w, out=out)), nccl, (lambda: async_scatter(x, w)), (lambda: torch.mm(x, w, out=part)), out, y


def norm_case(kernel, m):
    part, r, g = normal(1, m, C), normal(m, C), normal(C)
    dist.broadcast(r, 0)
    dist.broadcast(g, 0)
    s, y = (torch.empty(m, C, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    whole, want = torch.empty_like(s), torch.empty_like(s)

    def nccl():
        whole.copy_(part[0])
        dist.all_reduce(whole)
        t = whole.float() + r.float()
        want.copy_(t * torch.rsqrt(t.square().mean(-1, keepdim=True) + 1e-5) * g.float())
    reduced = torch.empty_like(s)
    return (lambda: kernel(part, r, g, out=[s, y])), nccl, None, (lambda: dist.all_reduce(reduced)), y, want


def only_gather_case(kernel, m):
    ranks = dist.get_world_size()
    x = normal(m // ranks, C)
    out, whole = (torch.empty(m, C, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    return (lambda: kernel(x, out=out)), (lambda: dist.all_gather_into_tensor(whole, x)), None, None, out, whole


def only_scatter_case(kernel, m):
    ranks = dist.get_world_size()
    part = normal(1, m, C)
    out, y = (torch.empty(m // ranks, C, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    return (lambda: kernel(part, out=out)), (lambda: dist.reduce_scatter_tensor(y, part[0])), None, None, out, y


LINES = ([("all-gather, product", GATHERED, gather_case, m, "product alone") for m in (128, 512, 2048, 8192, 16384)] +
         [("product, reduce-scatter", SCATTERED, scatter_case, m, "product alone") for m in (128, 512, 2048, 8192, 16384)] +
         [("all-reduce, residual, norm", REDUCED, norm_case, m, "all-reduce alone") for m in (1, 8, 16, 64)] +
         [("gather alone", ONLY_GATHERED, only_gather_case, m, "") for m in (16, 128, 512, 2048, 8192, 16384)] +
         [("scatter alone", ONLY_SCATTERED, only_scatter_case, m, "") for m in (16, 128, 512, 2048, 8192, 16384)])


def has_async_tp(options):
    if options.no_async:
        return False
    try:
        from torch.distributed._symmetric_memory import enable_symm_mem_for_group
        enable_symm_mem_for_group(dist.group.WORLD.group_name)
        return True
    except Exception:
        return False


def product_line(compiler, text, case, m, has_async):
    """Ours and the peers by name, the result and NCCL's, and what it takes alone."""
    kernel = re.search(r"kernel (\w+)", text).group(1)
    ours, nccl, fast, single, got, want = case(compiler(text, kernel, {"tp": dist.get_world_size()}), m)
    peers = {"NCCL": nccl}
    if fast and has_async:
        peers["async"] = fast
    return mesh_models.Case(ours, peers, got, want, single=single)


def report(title, case, options, alone):
    """Checks a line's result, and measures it; all ranks do, and the first one prints."""
    case.ours()
    for peer in case.peers.values():
        peer()
    if case.one_gpu:
        case.single()
    torch.cuda.synchronize()
    wrong = error(case.got, case.want)
    calls = [case.ours, *case.peers.values()] + ([case.single] if case.single else [])
    if options.small:
        if dist.get_rank() == 0:
            print(f"{title:34} err {wrong:.1e}", flush=True)
        return
    found, how = times(calls, options.repeats, options.captures and case.captures)
    own, others = found[0], dict(zip(case.peers, found[1:]))
    text = f"{title:34} tk {own:8.1f} us"
    for name, other in others.items():
        text += f"  {name} {other:8.1f} ratio {other / own:.2f}"
    if case.one_gpu:
        ranks = dist.get_world_size()
        text += f"  one GPU {found[-1]:8.1f}: {found[-1] / own / ranks:.2f} of {ranks} GPUs"
    elif case.single:
        text += f"  {alone} {found[-1]:8.1f}"
    text += "".join(f"  (not captured: {reason})" for reason in how if reason is not True)
    if dist.get_rank() == 0:
        print(f"{text}  err {wrong:.1e}", flush=True)


def lines(options):
    """Titles, what the time alone is of, and functions that make a line's case."""
    for name, text, case, m, alone in LINES:
        def product(compiler, has_async, text=text, case=case, m=m):
            return product_line(compiler, text, case, m, has_async)
        yield f"{name} M={m}", alone, product
    for name, case, sizes, small in mesh_models.LINES:
        def model(compiler, _, case=case, sizes=small if options.small else sizes):
            return case(compiler, **sizes)
        yield name, "", model


def work(rank, options):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options.port), TK_MESH_COPIES=options.copies)
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=options.ranks, device_id=torch.device("cuda", rank))
    has_async, compiler = has_async_tp(options), Compiler(options.network)
    torch.manual_seed(rank)
    for title, alone, make in lines(options):
        if options.words and not any(word in title for word in options.words):
            continue
        try:
            compiler.plans.clear()
            report(title, make(compiler, has_async), options, alone)
            if options.plan and rank == 0:
                for kernel in compiler.plans:
                    print(kernel.plan, flush=True)
        except Exception as failure:
            print(f"rank {rank}: {title} failed: {str(failure).splitlines()[0][:300]}", flush=True)
            break
        torch.cuda.empty_cache()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--plain", dest="captures", action="store_false", help="plain calls, no CUDA graphs")
    parser.add_argument("--copies", default="auto", choices=["auto", "engines", "nccl"])
    parser.add_argument("--network", type=lambda given: mesh_models.read(given) if os.path.exists(given) else given)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--no-async", action="store_true", help="without the peers on symmetric memory")
    parser.add_argument("--port", type=int, default=29517)
    options = parser.parse_args()
    torch.multiprocessing.spawn(work, (options,), nprocs=options.ranks)


if __name__ == "__main__":
    main()
