"""Row kernels as fractions of the copy bandwidth, with PyTorch eager and torch.compile beside them."""
import torch
import torch.nn.functional as F

import peers

SIZES = ((32768, 1024), (16384, 4096), (8192, 8192), (4096, 16384), (2048, 32768), (8191, 4093))


def line(name, rows, columns, passes, run, got, peers_of):
    copy = peers.COPY
    run()
    want = peers_of[0]()
    wrong = peers.error(got, want)
    ms = peers.times([run] + peers_of, repeats=20, flush=True)
    bytes_moved = rows * columns * 2 * passes
    rates = [bytes_moved / (t * 1e-3) for t in ms]
    note = "" if wrong < 2e-2 else f"  WRONG {wrong:.2g}"
    print(f"{name:12}{rows:7}x{columns:<7} of the copy: tk {rates[0] / copy:.3f}  eager {rates[1] / copy:.3f}  "
          f"compiled {rates[2] / copy:.3f}{note}", flush=True)


def layernorm(rows, columns):
    x, g, b = peers.normal(rows, columns), peers.normal(columns), peers.normal(columns, seed=1)
    y = torch.empty_like(x)
    kernel = peers.Kernel("examples/layernorm.tk")
    eager = lambda: F.layer_norm(x, (columns,), g, b)
    compiled = torch.compile(lambda x, g, b: F.layer_norm(x, (columns,), g, b), dynamic=False)
    line("layernorm", rows, columns, 2, lambda: kernel(x, g, b, None, y), y, [eager, lambda: compiled(x, g, b)])


def softmax(rows, columns):
    x = peers.normal(rows, columns)
    y = torch.empty_like(x)
    kernel = peers.Kernel("examples/softmax.tk")
    compiled = torch.compile(lambda x: torch.softmax(x, -1), dynamic=False)
    line("softmax", rows, columns, 2, lambda: kernel(x, y), y, [lambda: torch.softmax(x, -1), lambda: compiled(x)])


if __name__ == "__main__":
    peers.COPY = peers.copy_bandwidth()
    print(f"copy: {peers.COPY * 1e-9:.0f} GB/s")
    for size in SIZES:
        layernorm(*size)
        softmax(*size)
