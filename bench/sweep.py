"""Products under many schedules, in alternation with cuBLAS in one process: which tile, number of parts,
cluster and order of tiles the planner should have chosen. Schedules are compiled in parallel.

sweep.py [M N K ...] takes sizes in threes (default: those that few tiles make hard). LAYOUTS, TYPE and TOP
from the environment say which layouts, which type, and how many schedules of each are printed."""
import itertools
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import torch

import gemm
import peers

SIZES = ((16, 14336, 4096), (64, 14336, 4096), (128, 14336, 4096), (128, 4096, 14336),
         (1024, 1024, 16384), (4000, 4040, 4104))
MANY_OUTPUTS = 1 << 21


def choices(m, n, k):
    """Texts of schedule blocks worth trying for a size; "" is the planner's choice."""
    yield ""
    few = m * n <= MANY_OUTPUTS
    if m <= 64:
        tiles = [(max(m, 16), j, depth) for j in (64, 128) for depth in (64, 128)]
    elif few:
        tiles = [(i, j, 64) for i in (64, 128, 256) for j in (64, 128, 256) if 64 < i + j <= 384]
    else:
        tiles = [(128, 256, 64), (256, 128, 64), (128, 128, 64)]
    parts = (1, 2, 3, 4, 6, 8) if few and k >= 8192 else (1, 2, 4) if few else (1,)
    walks = [("true", 0), ("false", 0)] if few else [("true", group) for group in (8, 16, 32)]
    clusters = [size for size in (1, 2, 4) if m >= 128 * size]
    for (i, j, depth), split, (persistent, group), cluster in itertools.product(
            tiles, parts, walks, clusters or [1]):
        if cluster > 1 and persistent == "false":
            continue
        text = f"tile i = {i}, j = {j}, k = {depth}; persistent = {persistent}; cluster i = {cluster}"
        yield text + (f"; split k = {split}" if split > 1 else "") + (
            f"; raster = grouped({group})" if group else "")


def sweep(m, n, k, dtype, layout, top):
    left, right, x, y = gemm.LAYOUTS[layout]
    sizes = {"M": m, "N": n, "K": k}
    a, b = (peers.normal(*(sizes[d] for d in shape.split(", ")), dtype=gemm.TYPES[dtype], seed=seed)
            for seed, shape in enumerate((left, right)))
    factors = (a.t() if layout[0] == "T" else a), (b.t() if layout[1] == "T" else b)
    want = torch.mm(*factors)
    source = gemm.SOURCE.format(t=dtype, left=left, right=right, x=x, y=y)

    def prepare(text):
        block = f"\nschedule gemm {{ {text} }}\n" if text else ""
        c = torch.empty_like(want)
        try:
            kernel = peers.Kernel(source=source + block)
            kernel(a, b, c)
            torch.cuda.synchronize()
        except RuntimeError as error:
            print(f"  {text}: {error}")
            return None
        if (wrong := peers.error(c, want)) > 1e-2:
            print(f"  {text}: WRONG {wrong:.2g}")
            return None
        return text, lambda: kernel(a, b, c)

    with ThreadPoolExecutor(12) as pool:
        ready = [entry for entry in pool.map(prepare, choices(m, n, k)) if entry]
    peer, *times = peers.times([lambda: torch.mm(*factors, out=want)] + [run for _, run in ready],
                               repeats=20)
    print(f"{dtype} {layout} {m} {n} {k}: cuBLAS {peer * 1e3:.1f} us, {len(ready)} schedules", flush=True)
    ranking = sorted((time, text) for (text, _), time in zip(ready, times))
    for rank, (time, text) in enumerate(ranking):
        if rank < top or not text:
            print(f"  {rank + 1:3}. {time * 1e3:8.1f} us  ratio {peer / time:.3f}  {text or 'planned'}")


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    for size in list(zip(*[iter(numbers)] * 3)) or SIZES:
        for layout in os.environ.get("LAYOUTS", "NN NT TN").split():
            sweep(*size, os.environ.get("TYPE", "bf16"), layout, int(os.environ.get("TOP", "4")))
