"""Sums over windows beside cuDNN through PyTorch: forward, transposed and gradients, one to three axes.

    bench/convolutions.py [WORD]…   only the lines whose name contains one of the words
    --first N                       only the first N of these; lines stand in the order of importance
    --repeats N                     calls of each, in alternation (7; 3 where one takes more than 20 ms)
    --tuned                         cuDNN tries its algorithms first (torch.backends.cudnn.benchmark)

Inputs are standard-normal; weights are divided by the root of the sum's length, so that sums stay near 1. f32 is
strict: TF32 is off. In lines of tf32 both round the operands to 19 bits. A line has both medians, their ratio
(cuDNN / tk) and the error against cuDNN, or f64 for gradients by weights in f32, relative to the results' norm. Groups
of lines (f32, tf32, bf16, transposed, gradients) end with geometric means and the least ratio.
"""
import argparse
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F

import peers

PLACES, TAPS, SIZES, EXTENTS = "abc", "rst", "DHW", "RST"
TORCH = {"f32": torch.float32, "bf16": torch.bfloat16}
FORWARD = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


@dataclass
class Conv:
    """One line: sizes, and what is asked for of each spatial axis."""
    name: str
    n: int
    c: int
    size: tuple
    o: int
    taps: tuple
    stride: tuple = ()
    pad: tuple = ()
    dilation: tuple = ()
    dtype: str = "f32"
    last: bool = False  # channels last
    groups: int = 1
    outer: int = 0  # output padding of a transposed one
    kind: str = "forward"  # or transposed, input, weights, depthwise
    relu: bool = False
    tf32: bool = False  # operands are rounded to 19 bits, by both

    def __post_init__(self):
        rank = len(self.size)
        self.stride = self.stride or (1,) * rank
        self.pad = self.pad or (0,) * rank
        self.dilation = self.dilation or (1,) * rank

    @property
    def rank(self):
        return len(self.size)

    def results(self):
        """Sizes of the result's spatial axes."""
        if self.kind == "transposed":
            return tuple((h - 1) * s + r - 2 * p + self.outer
                         for h, s, r, p in zip(self.size, self.stride, self.taps, self.pad))
        return tuple((h + 2 * p - d * (r - 1) - 1) // s + 1 for h, s, r, p, d in
                     zip(self.size, self.stride, self.taps, self.pad, self.dilation))


def axes(conv, channels, spatial):
    """Axes of a tensor: its channels' axis stands before the spatial ones, or last."""
    spatial = list(spatial)
    return ", ".join(spatial + [channels] if conv.last else [channels] + spatial)


def extents_of_result(conv):
    sizes, extents = SIZES[3 - conv.rank:], EXTENTS
    if conv.kind == "transposed":
        return [f"{s} * {h} + {r} - {s} - {2 * p} + {conv.outer}"
                for h, s, r, p in zip(sizes, conv.stride, extents, conv.pad)]
    return [f"({h} + {2 * p} - {d} * ({r} - 1) - 1) / {s} + 1"
            for h, s, r, p, d in zip(sizes, conv.stride, extents, conv.pad, conv.dilation)]


def source_of(conv):
    """The program, in index notation as one would write it."""
    rank, t = conv.rank, conv.dtype
    sizes, extents = list(SIZES[3 - rank:]), list(EXTENTS[:rank])
    places, taps = list(PLACES[:rank]), list(TAPS[:rank])
    result = extents_of_result(conv)
    where = "where " + ", ".join(f"{r} >= 1" for r in extents)
    at = [f"{s} * {a} + {d} * {r} - {p}".replace("1 * ", "").replace(" - 0", "")
          for a, r, s, d, p in zip(places, taps, conv.stride, conv.dilation, conv.pad)]
    read = lambda text: f"pad({text}, 0.0)" if any(conv.pad) else text
    rounded = "; tf32" if conv.tf32 else ""
    every = ", ".join(taps)
    after = ("relu(", " + bias[o])") if conv.relu else ("", "")
    bias = f", bias: {t}[O]" if conv.relu else ""
    spread = lambda names: ", ".join(names)
    if conv.kind == "depthwise":
        return (f"kernel conv(x: {t}[N, {axes(conv, 'C', sizes)}], w: {t}[{axes(conv, 'C', extents)}]) -> "
                f"(y: {t}[N, {axes(conv, 'C', result)}]) {where} {{\n  y[n, {axes(conv, 'i', places)}] = "
                f"sum[{every}{rounded}]({read(f'x[n, ' + axes(conv, 'i', at) + ']')} * w[{axes(conv, 'i', taps)}])\n}}")
    if conv.kind == "transposed":
        from_ = [f"({a} + {p} - {r})" for a, r, p in zip(places, taps, conv.pad)]
        hits = " and ".join(f"{f} % {s} == 0" for f, s in zip(from_, conv.stride))
        at = [f"{f} / {s}" for f, s in zip(from_, conv.stride)]
        return (f"kernel conv(x: {t}[N, {axes(conv, 'C', sizes)}], w: {t}[C, {axes(conv, 'O', extents)}]) -> "
                f"(y: {t}[N, {axes(conv, 'O', result)}]) {where} {{\n  y[n, {axes(conv, 'o', places)}] = "
                f"sum[i, {every}{rounded}](if {hits} then pad(x[n, {axes(conv, 'i', at)}], 0.0) * w[i, {axes(conv, 'o', taps)}] "
                f"else 0.0)\n}}")
    if conv.kind == "weights":
        return (f"kernel conv(x: {t}[N, {axes(conv, 'C', sizes)}], dy: {t}[N, {axes(conv, 'O', [f'P{a}' for a in places])}], "
                f"g: {t}[{spread(extents)}]) -> (dw: {t}[O, {axes(conv, 'C', extents)}]) {{\n"
                f"  dw[o, {axes(conv, 'i', taps)}] = sum[n, {spread(places)}{rounded}](dy[n, {axes(conv, 'o', places)}] * "
                f"pad(x[n, {axes(conv, 'i', at)}], 0.0))\n}}")
    if conv.kind == "input":  # of stride 1
        back = [f"{a} - {d} * {r} + {p}".replace("1 * ", "") for a, r, d, p in zip(places, taps, conv.dilation, conv.pad)]
        return (f"kernel conv(dy: {t}[N, {axes(conv, 'O', [f'P{a}' for a in places])}], w: {t}[O, {axes(conv, 'C', extents)}], "
                f"g: {t}[{spread(sizes)}]) -> (dx: {t}[N, {axes(conv, 'C', sizes)}]) {{\n"
                f"  dx[n, {axes(conv, 'i', places)}] = sum[o, {every}{rounded}](pad(dy[n, {axes(conv, 'o', back)}], 0.0) * "
                f"w[o, {axes(conv, 'i', taps)}])\n}}")
    if conv.groups > 1:
        return (f"kernel conv(x: {t}[N, G, C, {spread(sizes)}], w: {t}[G, O, C, {spread(extents)}]) -> "
                f"(y: {t}[N, G, O, {spread(result)}]) {where} {{\n  y[n, g, o, {spread(places)}] = "
                f"sum[i, {every}{rounded}]({read(f'x[n, g, i, ' + spread(at) + ']')} * w[g, o, i, {every}])\n}}")
    return (f"kernel conv(x: {t}[N, {axes(conv, 'C', sizes)}], w: {t}[O, {axes(conv, 'C', extents)}]{bias}) -> "
            f"(y: {t}[N, {axes(conv, 'O', result)}]) {where} {{\n  y[n, {axes(conv, 'o', places)}] = {after[0]}sum[i, {every}{rounded}]("
            f"{read(f'x[n, ' + axes(conv, 'i', at) + ']')} * w[o, {axes(conv, 'i', taps)}]){after[1]}\n}}")


def scaled(*shape, dtype, count, seed):
    return (peers.normal(*shape, dtype=torch.float32, seed=seed) * count ** -0.5).to(dtype)


def stored(tensor, last):
    """How tk reads what PyTorch has with channels before the spatial axes."""
    return tensor.movedim(1, -1).contiguous() if last else tensor


def as_peer(tensor, last):
    if not last:
        return tensor
    return tensor.contiguous(memory_format=torch.channels_last if tensor.dim() == 4 else torch.channels_last_3d)


def make(conv):
    """The program, its arguments, a result, and what PyTorch calls, which gives the same."""
    dtype, taps = TORCH[conv.dtype], math.prod(conv.taps)
    fixed = {"stride": conv.stride, "padding": conv.pad, "dilation": conv.dilation}
    out = conv.results()
    x = peers.normal(conv.n, conv.c, *conv.size, dtype=dtype)
    if conv.kind == "depthwise":
        w = scaled(conv.c, 1, *conv.taps, dtype=dtype, count=taps, seed=1)
        ours = w.squeeze(1).movedim(0, -1).contiguous() if conv.last else w.squeeze(1)
        peer, pw = as_peer(x, conv.last), as_peer(w, conv.last)
        call = lambda: FORWARD[conv.rank](peer, pw, groups=conv.c, **fixed)
        return (stored(x, conv.last), ours), (conv.n, conv.c, *out), call
    if conv.kind == "transposed":
        count = conv.c * taps / math.prod(conv.stride)
        w = scaled(conv.c, conv.o, *conv.taps, dtype=dtype, count=count, seed=1)
        peer, pw = as_peer(x, conv.last), as_peer(w, conv.last)
        call = lambda: TRANSPOSED[conv.rank](peer, pw, stride=conv.stride, padding=conv.pad, output_padding=conv.outer)
        return (stored(x, conv.last), stored(w, conv.last)), (conv.n, conv.o, *out), call
    w = scaled(conv.o, conv.c // conv.groups, *conv.taps, dtype=dtype, count=conv.c // conv.groups * taps, seed=1)
    peer, pw = as_peer(x, conv.last), as_peer(w, conv.last)
    if conv.kind in ("weights", "input"):
        dy = peers.normal(conv.n, conv.o, *out, dtype=dtype, seed=2)
        if conv.kind == "weights":
            dy = dy * (conv.n * math.prod(out)) ** -0.5
        pdy, mask = as_peer(dy, conv.last), [conv.kind == "input", conv.kind == "weights", False]
        call = lambda: torch.ops.aten.convolution_backward(
            pdy, peer, pw, None, conv.stride, conv.pad, conv.dilation, False, [0] * conv.rank, 1, mask)[mask.index(True)]
        if conv.kind == "weights":
            g = torch.empty(conv.taps, dtype=dtype, device="cuda")
            return (stored(x, conv.last), stored(dy, conv.last), g), w.shape, call
        g = torch.empty(conv.size, dtype=dtype, device="cuda")
        return (stored(dy, conv.last), stored(w, conv.last), g), x.shape, call
    if conv.groups > 1:
        call = lambda: F.conv2d(x, w, groups=conv.groups, **fixed)
        return ((x.view(conv.n, conv.groups, -1, *conv.size), w.view(conv.groups, -1, *w.shape[1:])),
                (conv.n, conv.o, *out), call)
    bias = peers.normal(conv.o, dtype=dtype, seed=3) if conv.relu else None
    call = lambda: FORWARD[conv.rank](peer, pw, bias, **fixed)
    if conv.relu:
        call = lambda: torch.relu_(FORWARD[conv.rank](peer, pw, bias, **fixed))
    return (stored(x, conv.last), stored(w, conv.last)) + ((bias,) if conv.relu else ()), (conv.n, conv.o, *out), call


def wanted(conv, arguments, shape, call):
    """What a result is compared with: cuDNN's, but f64 for gradients by weights in f32, whose long sums cuDNN rounds
    more often than tk does."""
    if conv.kind != "weights" or conv.dtype != "f32" or conv.tf32:
        return call()
    x, dy = arguments[0].double(), arguments[1].double()
    weights = torch.empty(shape, dtype=torch.float64, device="cuda")
    return torch.ops.aten.convolution_backward(dy, x, weights, None, conv.stride, conv.pad, conv.dilation, False,
                                               [0] * conv.rank, 1, [False, True, False])[1]


def line(conv, repeats):
    torch.backends.cudnn.allow_tf32 = conv.tf32
    arguments, shape, call = make(conv)
    result = torch.empty(shape, dtype=TORCH[conv.dtype], device="cuda")
    if conv.last:
        result = result.movedim(1, -1).contiguous()
    ours = result.view(conv.n, conv.groups, -1, *shape[2:]) if conv.groups > 1 else result
    kernel = peers.Kernel(source=source_of(conv))
    kernel(*arguments, ours)
    want = wanted(conv, arguments, shape, call)
    wrong = peers.error(result.movedim(-1, 1) if conv.last else result, want)
    del want
    first, = peers.times([lambda: kernel(*arguments, ours)], repeats=1, warmup=0)
    repeats = min(repeats, 3) if first > 20 else repeats
    tk, cudnn = peers.times([lambda: kernel(*arguments, ours), call], repeats=repeats, warmup=1 if first > 20 else 2)
    most = 2e-2 if conv.dtype != "f32" else 2e-3 if conv.tf32 else 1e-5
    note = "" if wrong < most else "  WRONG"
    print(f"{conv.name:46} tk {tk * 1e3:9.1f} us  cuDNN {cudnn * 1e3:9.1f}  ratio {cudnn / tk:.2f}  err {wrong:.1e}{note}",
          flush=True)
    return cudnn / tk


def plane(n, c, size, o, taps, **more):
    """A line of two axes, as square as it is usual."""
    both = {key: (value, value) for key, value in more.items() if key in ("stride", "pad", "dilation")}
    rest = {key: value for key, value in more.items() if key not in both}
    dtype, kind = rest.get("dtype", "f32"), rest.get("kind", "forward")
    text = "".join(f" {key}{value}" for key, value in more.items() if key in ("stride", "pad", "dilation", "groups", "outer"))
    type_name = "tf32" if rest.get("tf32") else dtype
    name = f"{kind} {type_name} {n}x{c}x{size}² {o}x{taps}²{text}{' relu' if rest.get('relu') else ''}"
    return Conv(name, n, c, (size, size), o, (taps, taps), **both, **rest)


def general(n, c, size, o, taps, **more):
    kind, dtype = more.get("kind", "forward"), more.get("dtype", "f32")
    join = lambda values: "x".join(map(str, values))
    text = "".join(f" {key}{join(value)}" for key, value in more.items() if key in ("stride", "pad", "dilation"))
    return Conv(f"{kind} {dtype} {len(size)}d {n}x{c}x{join(size)} {o}x{join(taps)}{text}", n, c, size, o, taps, **more)


HALF = {"dtype": "bf16", "last": True}
TF32 = {"tf32": True}
CASES = [
    # f32, planes, as ResNet and VGG have them
    plane(32, 64, 56, 64, 3, pad=1), plane(32, 128, 28, 128, 3, pad=1), plane(32, 256, 14, 256, 3, pad=1),
    plane(32, 512, 7, 512, 3, pad=1), plane(32, 64, 56, 128, 3), plane(16, 64, 112, 128, 3, pad=1),
    plane(16, 128, 112, 128, 3, pad=1), plane(16, 256, 56, 256, 3, pad=1), plane(16, 512, 28, 512, 3, pad=1),
    plane(64, 256, 14, 256, 3, pad=1, relu=True), plane(32, 64, 56, 64, 3, pad=1, relu=True),
    plane(32, 128, 56, 128, 3, stride=2, pad=1), plane(32, 256, 28, 256, 3, stride=2, pad=1),
    plane(32, 3, 224, 64, 7, stride=2, pad=3), plane(32, 3, 224, 64, 3, pad=1), plane(16, 3, 224, 32, 3, stride=2, pad=1),
    # f32, 1 x 1
    plane(32, 64, 56, 256, 1), plane(32, 256, 56, 64, 1), plane(32, 512, 28, 128, 1), plane(32, 1024, 14, 256, 1),
    plane(32, 256, 56, 512, 1, stride=2), plane(32, 512, 28, 1024, 1, stride=2),
    # f32, one and three axes: audio and video
    general(16, 3, (64, 64, 64), 64, (3, 3, 3)), general(4, 64, (16, 56, 56), 64, (3, 3, 3), pad=(1, 1, 1)),
    general(4, 64, (16, 28, 28), 128, (3, 3, 3), stride=(2, 2, 2), pad=(1, 1, 1)),
    general(4, 64, (16, 56, 56), 64, (1, 3, 3), pad=(0, 1, 1)), general(4, 64, (16, 56, 56), 64, (3, 1, 1), pad=(1, 0, 0)),
    general(16, 256, (4096,), 256, (3,), pad=(1,)), general(16, 512, (3000,), 512, (3,), pad=(1,)),
    general(16, 80, (3000,), 512, (3,), pad=(1,)), general(16, 512, (3000,), 512, (3,), stride=(2,), pad=(1,)),
    general(8, 1, (160000,), 512, (10,), stride=(5,)), general(8, 512, (16000,), 512, (3,), stride=(2,)),
    general(8, 64, (16384,), 64, (7,), dilation=(4,), pad=(12,)),
    # f32, UNet, dilation, groups, depthwise
    plane(4, 64, 256, 64, 3, pad=1), plane(4, 128, 128, 128, 3, pad=1), plane(4, 320, 64, 320, 3, pad=1),
    plane(4, 640, 32, 640, 3, pad=1), plane(4, 1280, 16, 1280, 3, pad=1), plane(4, 960, 64, 320, 3, pad=1),
    plane(8, 256, 64, 256, 3, pad=2, dilation=2), plane(8, 256, 64, 256, 3, pad=12, dilation=12),
    plane(16, 128, 56, 128, 5, pad=2), plane(16, 64, 28, 96, 11, pad=5), plane(64, 32, 32, 64, 3, pad=1),
    plane(256, 16, 32, 16, 3, pad=1), plane(1, 64, 512, 64, 3, pad=1), plane(1, 512, 28, 512, 3, pad=1),
    plane(32, 256, 28, 256, 3, pad=1, groups=32), plane(32, 256, 28, 256, 3, pad=1, groups=4),
    plane(32, 192, 56, 192, 3, pad=1, kind="depthwise"), plane(32, 384, 28, 384, 7, pad=3, kind="depthwise"),
    plane(32, 192, 56, 192, 3, stride=2, pad=1, kind="depthwise"),
    # transposed, strides 2 to 5
    plane(8, 128, 56, 64, 3, stride=2, pad=1, outer=1, kind="transposed"),
    plane(8, 256, 32, 128, 4, stride=2, pad=1, kind="transposed"), plane(8, 512, 16, 256, 2, stride=2, kind="transposed"),
    plane(4, 64, 64, 32, 5, stride=3, pad=1, kind="transposed"), plane(4, 64, 32, 64, 8, stride=4, pad=2, kind="transposed"),
    plane(4, 128, 16, 64, 5, stride=5, kind="transposed"),
    general(8, 256, (1024,), 128, (16,), stride=(4,), pad=(6,), kind="transposed"),
    general(8, 512, (512,), 256, (10,), stride=(5,), pad=(2,), kind="transposed"),
    general(2, 64, (16, 28, 28), 32, (2, 2, 2), stride=(2, 2, 2), kind="transposed"),
    # bf16, channels last
    plane(32, 64, 56, 64, 3, pad=1, **HALF), plane(32, 128, 28, 128, 3, pad=1, **HALF),
    plane(32, 256, 14, 256, 3, pad=1, **HALF), plane(32, 512, 7, 512, 3, pad=1, **HALF),
    plane(16, 256, 56, 256, 3, pad=1, **HALF), plane(32, 256, 28, 256, 3, pad=1, **HALF),
    plane(32, 128, 56, 128, 3, stride=2, pad=1, **HALF), plane(32, 256, 28, 256, 3, stride=2, pad=1, **HALF),
    plane(32, 64, 56, 256, 1, **HALF), plane(32, 1024, 14, 256, 1, **HALF), plane(4, 320, 64, 320, 3, pad=1, **HALF),
    plane(4, 1280, 16, 1280, 3, pad=1, **HALF), plane(8, 256, 64, 256, 3, pad=2, dilation=2, **HALF),
    plane(32, 384, 28, 384, 7, pad=3, kind="depthwise", **HALF),
    general(4, 64, (16, 56, 56), 64, (3, 3, 3), pad=(1, 1, 1), **HALF),
    plane(8, 256, 32, 128, 4, stride=2, pad=1, kind="transposed", **HALF),
    # tf32, planes
    plane(32, 64, 56, 64, 3, pad=1, **TF32), plane(32, 128, 28, 128, 3, pad=1, **TF32),
    plane(32, 256, 14, 256, 3, pad=1, **TF32), plane(32, 512, 7, 512, 3, pad=1, **TF32),
    plane(16, 256, 56, 256, 3, pad=1, **TF32), plane(32, 256, 28, 256, 3, stride=2, pad=1, **TF32),
    plane(32, 256, 56, 64, 1, **TF32), plane(32, 3, 224, 64, 7, stride=2, pad=3, **TF32),
    plane(4, 320, 64, 320, 3, pad=1, **TF32), plane(16, 256, 56, 256, 3, pad=1, kind="input", **TF32),
    # gradients
    plane(32, 64, 56, 64, 3, pad=1, kind="input"), plane(32, 256, 14, 256, 3, pad=1, kind="input"),
    plane(16, 256, 56, 256, 3, pad=1, kind="input"), plane(32, 64, 56, 64, 3, pad=1, kind="weights"),
    plane(32, 256, 14, 256, 3, pad=1, kind="weights"), plane(16, 256, 56, 256, 3, pad=1, kind="weights"),
    plane(32, 256, 28, 256, 3, pad=1, kind="input", **HALF), plane(32, 256, 28, 256, 3, pad=1, kind="weights", **HALF),
]


def group_of(conv):
    if conv.tf32:
        return "tf32"
    if conv.kind in ("input", "weights"):
        return "gradients"
    return conv.kind if conv.kind == "transposed" else conv.dtype


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--first", type=int)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--tuned", action="store_true")
    options = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = options.tuned
    chosen = [conv for conv in CASES if not options.words or any(word in conv.name for word in options.words)]
    ratios = {}
    for conv in chosen[:options.first]:
        try:
            ratios.setdefault(group_of(conv), {})[conv.name] = line(conv, options.repeats)
        except (RuntimeError, torch.OutOfMemoryError) as error:  # one line does not end the others
            print(f"{conv.name:46} failed: {str(error).splitlines()[0][:150]}", flush=True)
        torch.cuda.empty_cache()
    for group, lines in ratios.items():
        least = min(lines, key=lines.get)
        mean = math.exp(sum(map(math.log, lines.values())) / len(lines))
        print(f"{group}: {len(lines)} lines, geometric mean {mean:.2f}, least {lines[least]:.2f} ({least})")


if __name__ == "__main__":
    main()
