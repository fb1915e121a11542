"""bf16, f16 and f32 products against cuBLAS (torch.mm): TFLOP/s and the ratio."""
import math

import torch

import peers

torch.backends.cuda.matmul.allow_tf32 = False
SOURCE = "kernel gemm(a: {t}[M, K], b: {t}[{shape}]) -> (c: {t}[M, N]) {{ c[i, j] = sum[k](a[i, k] * b[{access}]) }}"


def kernel(dtype, layout):
    shape, access = ("K, N", "k, j") if layout == "NN" else ("N, K", "j, k")
    return peers.Kernel(source=SOURCE.format(t=dtype, shape=shape, access=access))


def case(m, n, k, dtype, layout):
    torch_type = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}[dtype]
    a = peers.normal(m, k, dtype=torch_type)
    b = peers.normal(*((k, n) if layout == "NN" else (n, k)), dtype=torch_type, seed=1)
    right = b if layout == "NN" else b.t()
    c, want = torch.empty(m, n, device="cuda", dtype=torch_type), torch.empty(m, n, device="cuda", dtype=torch_type)
    ours = kernel(dtype, layout)
    run, peer = (lambda: ours(a, b, c)), (lambda: torch.mm(a, right, out=want))
    run()
    peer()
    wrong = peers.error(c, want)
    ms, peer_ms = peers.times([run, peer])
    flops = 2 * m * n * k * 1e-9
    note = "" if wrong < 1e-2 else f"  WRONG {wrong:.2g}"
    print(f"{dtype:5}{layout:4}{m:7}{n:7}{k:7}  tk {flops / ms:7.1f}  cuBLAS {flops / peer_ms:7.1f}  "
          f"ratio {peer_ms / ms:.3f}{note}", flush=True)
    return peer_ms / ms


if __name__ == "__main__":
    ratios = [case(*size, dtype, layout)
              for dtype, layout in (("bf16", "NN"), ("bf16", "NT"), ("f16", "NN"))
              for size in ((4096, 4096, 4096), (8192, 8192, 8192), (8192, 4096, 14336),
                           (2048, 4096, 4096), (4000, 4040, 4104), (512, 512, 512))]
    ratios.append(case(4096, 4096, 4096, "f32", "NN"))
    print(f"geometric mean of the ratios: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}")
