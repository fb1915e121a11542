#!/usr/bin/env python3
"""Random programs with random shardings on random meshes, checked against the reference.

random_mesh.py TKC TARGET [--count N] [--seed S] [--keep FOLDER]

A program has two to five statements: elementwise expressions, products, reductions, normalisers, transposes and
gathers. Each extent of each parameter and result is sharded or not, by an axis that its tensor does not have yet. A
failing program is printed with its command, and kept in the folder.
"""
import argparse
import pathlib
import random
import subprocess
import sys
import tempfile

MESHES = ({"tp": 2}, {"tp": 3}, {"dp": 2, "tp": 2}, {"tp": 4}, {"dp": 2, "tp": 3}, {"tp": 8})
# Extents that each axis of each mesh divides.
DIMS = {"A": 24, "B": 48, "C": 24}
# Those of programs with experts.
EXPERT_DIMS = {"A": 24, "B": 24, "E": 24, "F": 24, "K": 3}
INDEX = {"A": "a", "B": "b", "C": "c"}

SLOW = pathlib.Path(__file__).resolve().parent / "networks/slow.json"


class Program:
    def __init__(self, rng, axes):
        self.rng, self.axes = rng, axes
        self.params, self.lines, self.tensors, self.results = [], [], [], []
        self.inputs = []
        for _ in range(rng.randint(2, 4)):
            self.add_param(rng.sample(sorted(DIMS), rng.choice((1, 2, 2, 2))))

    def sharded(self, dims):
        """Extents with axes of the mesh behind some of them."""
        free, texts = list(self.axes), []
        for dim in dims:
            if free and self.rng.random() < 0.5:
                axis = free.pop(self.rng.randrange(len(free)))
                texts.append(f"{dim} @ {axis}")
            else:
                texts.append(dim)
        return ", ".join(texts)

    def add_param(self, dims, dtype=None):
        name = f"p{len(self.params)}"
        dtype = dtype or self.rng.choice(("f32", "f32", "bf16"))
        self.params.append(f"{name}: {dtype}[{self.sharded(dims)}]")
        self.tensors.append((name, dims))
        return name

    def read(self, tensor, renamed=None):
        name, dims = tensor
        return f"{name}[{', '.join((renamed or {}).get(d, INDEX[d]) for d in dims)}]"

    def any_with(self, *dims):
        """A tensor that has one of these dimensions, or none."""
        fits = [t for t in self.tensors if any(d in t[1] for d in dims)]
        return self.rng.choice(fits or self.tensors)

    def statement(self):
        """The dimensions and the expression of one statement."""
        rng = self.rng
        kind = rng.choice(("product", "product", "reduce", "elementwise", "softmax", "position", "gather"))
        x = rng.choice(self.tensors)
        dims = list(x[1])
        if kind == "product":
            k = rng.choice(dims)
            y = self.any_with(k)
            if k in y[1]:
                left = list(dict.fromkeys(d for d in [*dims, *y[1]] if d != k))
                return left, f"sum[{INDEX[k]}]({self.read(x)} * {self.read(y)}) * 0.1"
        if kind == "reduce":
            k = rng.choice(dims)
            how = rng.choice(("max", "min", "sum", "mean", "logsumexp"))
            return [d for d in dims if d != k], f"{how}[{INDEX[k]}]({self.read(x)})"
        if kind == "softmax":
            k = rng.choice(dims)
            return dims, f"softmax[{INDEX[k]}]({self.read(x)})"
        if kind == "position":
            k = rng.choice(dims)
            i = INDEX[k]
            shifted = self.read(x, {k: f"{i} - 1"})
            return dims, f"pad({shifted}, 0.5) + (if 2 * {i} < {k} then 0.01 * {i} else {self.read(x)})"
        if kind == "gather":
            k = rng.choice(dims)
            ids = f"p{len(self.params)}"
            self.params.append(f"{ids}: i32[{self.sharded([k])}]")
            self.inputs.append(f"{ids}=random:{rng.randint(0, 99)}:0:{DIMS[k]}")
            return dims, self.read(x, {k: f"{ids}[{INDEX[k]}]"})
        y = self.any_with(*dims)
        all_dims = list(dict.fromkeys([*dims, *y[1]]))
        return all_dims, f"tanh({self.read(x)}) + 0.5 * {self.read(y)}"

    def text(self):
        for number in range(self.rng.randint(2, 5)):
            dims, value = self.statement()
            left = f"[{', '.join(INDEX[d] for d in dims)}]"
            name = f"t{number}"
            if self.rng.random() < 0.5 or not dims:
                self.results.append((name, dims))
                self.lines.append(f"{name}{left if dims else ''} = {value}")
            else:
                self.lines.append(f"let {name}{left}{self.rng.choice(('', ': bf16'))} = {value}")
            if dims:
                self.tensors.append((name, dims))
        if not self.results:
            name, dims = self.tensors[-1]
            self.results.append(("r", dims))
            self.lines.append(f"r[{', '.join(INDEX[d] for d in dims)}] = {self.read((name, dims))}")
        results = ", ".join(f"{name}: f32[{self.sharded(dims)}]" for name, dims in self.results)
        body = "\n".join(f"  {line}" for line in self.lines)
        return f"mesh ({', '.join(self.axes)})\nkernel k({', '.join(self.params)})\n    -> ({results}) {{\n{body}\n}}\n"


class Experts:
    """Rows whose matrices stand in integer tensors."""

    def __init__(self, rng, axes):
        self.rng, self.axes = rng, axes
        self.inputs, self.params = [], []

    def add(self, name, dtype, dims):
        """A parameter, whose first dimension is often sharded by the last axis, and others by others."""
        free, texts = list(self.axes), []
        for place, dim in enumerate(dims):
            axis = free[-1] if free and place == 0 else free[0] if free else None
            is_sharded = axis and dim != "K" and self.rng.random() < (0.8 if place == 0 else 0.25)
            texts.append(f"{dim} @ {free.pop(free.index(axis))}" if is_sharded else dim)
        self.params.append(f"{name}: {dtype}[{', '.join(texts)}]")
        return f"{name}: {dtype}[{', '.join(texts)}]"

    def text(self):
        rng = self.rng
        has_k = rng.random() < 0.6
        rows, at = (["A", "K"], "a, k") if has_k else (["A"], "a")
        if has_k and rng.random() < 0.3:
            rows, place = ["K", "A"], "k, a"
        else:
            place = at
        dtype = rng.choice(("f32", "bf16"))
        self.add("x", dtype, ["A", "B"])
        self.add("ids", rng.choice(("i32", "i64")), rows)
        self.inputs.append(f"ids=random:{rng.randint(0, 99)}:{rng.choice((0, -3))}:{rng.choice((24, 27))}")
        self.add("w", dtype, ["E", "B", "F"])
        lines = [f"let h[{at}, f] = relu(sum[b](x[a, b] * w[ids[{place}], b, f])) * 0.1"]
        last, columns = "h", "f"
        if rng.random() < 0.6:
            self.add("v", dtype, ["E", "F", "B"])
            lines.append(f"let o[{at}, b] = sum[f](h[{at}, f] * v[ids[{place}], f, b])")
            last, columns = "o", "b"
        if rng.random() < 0.5:
            self.add("u", "f32", ["E", "B" if columns == "b" else "F"])
            lines.append(f"let q[{at}, {columns}] = {last}[{at}, {columns}] + u[ids[{place}], {columns}]")
            last = "q"
        value = f"{last}[{at}, {columns}]"
        lines.append(f"y[a, {columns}] = " + (f"sum[k]({value})" if has_k else value))
        params = list(self.params)
        result = self.add("y", "f32", ["A", columns.upper()])
        body = "\n".join(f"  {line}" for line in lines)
        self.params = params
        return f"mesh ({', '.join(self.axes)})\nkernel k({', '.join(params)})\n    -> ({result}) {{\n{body}\n}}\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tkc")
    parser.add_argument("target")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(options.keep or temporary)
        for number in range(options.seed, options.seed + options.count):
            rng = random.Random(number)
            mesh = rng.choice(MESHES)
            program = (Experts if number % 4 == 3 else Program)(rng, list(mesh))
            path = folder / f"random{number}.tk"
            text = program.text()
            path.write_text(text)
            command = [options.tkc, "run", str(path), "--target", options.target, "--check", "--mesh",
                       ",".join(f"{axis}={size}" for axis, size in mesh.items())]
            if number % 2:  # what saves or hides bytes
                command += ["--network", str(SLOW)]
            for dim, size in (EXPERT_DIMS if isinstance(program, Experts) else DIMS).items():
                if any(dim in part.split("[")[1] for part in program.params if "[" in part):
                    command += ["--dim", f"{dim}={size}"]
            for source in program.inputs:
                command += ["--in", source]
            run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
            if run.returncode:
                failed += 1
                print(f"seed {number}:", " ".join(command), text, run.stdout, run.stderr, sep="\n")
            elif not options.keep:
                path.unlink()
    print(f"{options.count - failed} of {options.count} random programs are right on {options.target}")
    sys.exit(1 if failed else 0)


main()
