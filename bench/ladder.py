"""Two products with the optimisations switched on one after another, next to cuBLAS: f32 on CUDA cores, and bf16
on the matrix unit. docs/tutorial/2-naive-to-fast.md explains each rung.

ladder.py [f32] [bf16]
"""
import sys

import torch

import peers

torch.backends.cuda.matmul.allow_tf32 = False
N = 4096
CORES = "transposition,emulation"  # f32 by bf16x3 on the matrix unit would hide the rungs below
RUNGS = {
    "f32": ("examples/gemm_f32.tk", torch.float32, 1e-5,
            (("naive (all four off)", f"fusion,tiling,coalescing,coarsening,{CORES}"),
             ("+ coalescing", f"fusion,tiling,coarsening,{CORES}"),
             ("+ tiling", f"fusion,coarsening,{CORES}"),
             ("+ coarsening, scalar accesses", f"fusion,vectorization,{CORES}"),
             ("+ vector width", f"fusion,{CORES}"),
             ("+ left operand transposed first", "fusion,emulation"),
             ("+ bf16x3 on the matrix unit", ""))),
    "bf16": ("examples/gemm.tk", torch.bfloat16, 1e-2,
             (("naive (all four off)", "fusion,tiling,coalescing,coarsening,warpgroups,persistence,roles"),
              ("mma.sync, cp.async", "warpgroups,persistence,roles"),
              ("+ wgmma, TMA", "persistence,roles"),
              ("+ warp specialization", "persistence"),
              ("+ persistent blocks", ""))),
}


def climb(program, dtype, tolerance, rungs):
    a, b = peers.normal(N, N, dtype=dtype), peers.normal(N, N, dtype=dtype, seed=1)
    c, want = torch.empty_like(a), torch.empty_like(a)
    peer = lambda: torch.mm(a, b, out=want)
    peer()
    flops = 2 * N**3 * 1e-9
    for name, disabled in rungs:
        kernel = peers.Kernel(program, disabled=disabled)
        run = lambda: kernel(a, b, c)
        run()
        wrong = peers.error(c, want)
        ms, peer_ms = peers.times([run, peer], repeats=5, warmup=1)
        print(f"{name:32} {flops / ms:7.2f} TFLOP/s  {100 * peer_ms / ms:5.1f} % of cuBLAS"
              f"{'' if wrong < tolerance else f'  WRONG {wrong:.2g}'}", flush=True)


if __name__ == "__main__":
    for kind in sys.argv[1:] or RUNGS:
        print(f"{kind}, {N} x {N} x {N}")
        climb(*RUNGS[kind])
