"""One f32 product on CUDA cores with the four passes switched on one after another, next to cuBLAS."""
import torch

import peers

torch.backends.cuda.matmul.allow_tf32 = False
N = 4096
RUNGS = (("naive (all four off)", "fusion,tiling,coalescing,coarsening"),
         ("+ coalescing", "fusion,tiling,coarsening"),
         ("+ tiling", "fusion,coarsening"),
         ("+ coarsening, scalar accesses", "fusion,vectorization"),
         ("+ vector width", "fusion"))

if __name__ == "__main__":
    a, b = peers.normal(N, N, dtype=torch.float32), peers.normal(N, N, dtype=torch.float32, seed=1)
    c, want = torch.empty_like(a), torch.empty_like(a)
    peer = lambda: torch.mm(a, b, out=want)
    peer()
    flops = 2 * N**3 * 1e-9
    for name, disabled in RUNGS:
        kernel = peers.Kernel("examples/gemm_f32.tk", disabled=disabled)
        run = lambda: kernel(a, b, c)
        run()
        wrong = peers.error(c, want)
        ms, peer_ms = peers.times([run, peer], repeats=5, warmup=1)
        print(f"{name:32} {flops / ms:7.2f} TFLOP/s  {100 * peer_ms / ms:5.1f} % of cuBLAS"
              f"{'' if wrong < 1e-5 else f'  WRONG {wrong:.2g}'}", flush=True)
