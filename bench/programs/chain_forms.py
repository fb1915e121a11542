"""What chains of operators are made of: the first statement, and the program around it.

Each has a program in index notation, sizes, small sizes for tests, and a function of PyTorch that gives the same. PyTorch is
needed for the functions alone: whoever only reads the programs gets along without it.

Names of arguments say how they are filled: x standard-normal, w weights over the root of the sum's length, u weights [C, O, …] of
a transposed convolution, b and e small, g near 1, v positive, label places of classes.
"""
from dataclasses import dataclass, field

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = F = None

SMALL = {"N": 2, "C": 3, "O": 8, "D": 6, "H": 9, "W": 10, "M": 19, "K": 40, "J": 48, "L": 24, "S": 4, "T": 21, "B": 3, "V": 70}


@dataclass
class Chain:
    name: str
    source: str
    dims: dict
    peer: object
    small: dict = field(default_factory=dict)
    labels: int = 0  # classes that an argument label chooses from


@dataclass
class Conv:
    """A sum over windows as the first statement of a program: t[n, o, p, q] of x[n, c, …]."""
    taps: int = 3
    stride: int = 1
    pad: int = 0
    rank: int = 2
    bias: bool = True
    transposed: bool = False

    def axes(self):
        return list(zip("DHW"[3 - self.rank:], "EPQ"[3 - self.rank:], "epq"[3 - self.rank:], "hij"[3 - self.rank:]))

    def params(self):
        sizes = ", ".join(a[0] for a in self.axes())
        taps = ", ".join([str(self.taps)] * self.rank)
        weights = f"u: f32[C, O, {taps}]" if self.transposed else f"w: f32[O, C, {taps}]"
        return f"x: f32[N, C, {sizes}], {weights}" + (", b: f32[O]" if self.bias else "")

    def where(self):
        if self.transposed:
            return ", ".join(f"{out} == ({size} - 1) * {self.stride} + {self.taps - 2 * self.pad}" for size, out, *_ in self.axes())
        return ", ".join(f"{out} == ({size} + {2 * self.pad} - {self.taps}) / {self.stride} + 1" for size, out, *_ in self.axes())

    def statement(self):
        left = ", ".join(f"{place} in 0..{out}" for _, out, place, _ in self.axes())
        taps = ", ".join(tap for *_, tap in self.axes())
        bias = " + b[o]" if self.bias else ""
        if self.transposed:
            back = [f"({place} + {self.pad} - {tap})" for *_, place, tap in self.axes()]
            hits = " and ".join(f"{at} % {self.stride} == 0" for at in back)
            read = ", ".join(f"{at} / {self.stride}" for at in back)
            return (f"let t[n, o, {left}] = sum[c, {taps}](if {hits} then pad(x[n, c, {read}], 0.0) * u[c, o, {taps}] else 0.0)"
                    f"{bias}")
        at = ", ".join((f"{self.stride} * " if self.stride > 1 else "") + f"{place} + {tap}" + (f" - {self.pad}" if self.pad else "")
                       for *_, place, tap in self.axes())
        read = f"pad(x[n, c, {at}], 0.0)" if self.pad else f"x[n, c, {at}]"
        return f"let t[n, o, {left}] = sum[c, {taps}]({read} * w[o, c, {taps}]){bias}"

    def peer(self, x, w, *bias):
        name = ("conv_transpose" if self.transposed else "conv") + f"{self.rank}d"
        return getattr(F, name)(x, w, bias[0] if bias else None, stride=self.stride, padding=self.pad)


@dataclass
class Linear:
    """A product as the first statement of a program: t[m, j]."""
    bias: bool = True

    def params(self):
        return "x: f32[M, K], w: f32[J, K]" + (", b: f32[J]" if self.bias else "")

    def where(self):
        return ""

    def statement(self):
        return "let t[m, j] = sum[k](x[m, k] * w[j, k])" + (" + b[j]" if self.bias else "")

    def peer(self, x, w, *bias):
        return F.linear(x, w, *bias)


def after(name, first, extra, results, body, peer, small=None, labels=0, where="", **dims):
    """A chain that begins with `first`. `peer` gets its result, then the arguments that `extra` declares."""
    count = 3 if first.bias else 2
    conditions = ", ".join(filter(None, [first.where(), where]))
    lines = "\n".join("  " + line.strip() for line in [first.statement()] + body.strip().split("\n"))
    source = (f"import std\nkernel chain({first.params()}{', ' + extra if extra else ''}) -> ({results})"
              f"{' where ' + conditions if conditions else ''} {{\n{lines}\n}}\n")
    return Chain(name, source, dims, lambda *a: peer(first.peer(*a[:count]), *a[count:]), small or {}, labels)


def plain(name, source, peer, small=None, **dims):
    return Chain(name, "import std\n" + source.strip() + "\n", dims, peer, small or {})
