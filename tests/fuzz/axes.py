"""Random products of tensors with several axes in random orders, against the reference.

    axes.py TKC --count N [--seed S] [--target emu]

The code is planned for large sizes, at which axes that are out of order are brought in order (tk-split-reductions:axis-order),
and runs at small ones. Types, biases, other readers of the result and strides are random. Prints what differs, and fails if
fewer than half of the programs were tried with their axes in order.
"""
import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile

LETTERS = "abcdefghijklm"
TYPES = ("bf16", "bf16", "f16", "f32", "f8e4m3")


class Case:
    """A program with its sizes, and those that it is planned for."""

    def __init__(self, seed):
        r = random.Random(seed)
        letters = r.sample(LETTERS, len(LETTERS))
        batch, rows, columns, terms = ([letters.pop() for _ in range(r.choice(counts))]
                                       for counts in ((0, 0, 1, 2), (1, 2, 3), (1, 2, 2), (1, 2, 3)))
        left, right, result = (r.sample(axes, len(axes))
                               for axes in (batch + rows + terms, batch + columns + terms, batch + rows + columns))
        self.dims = {index: r.randint(1, 5) for index in batch + rows + columns + terms}
        self.planned = {}
        for indices, elements in ((batch, 8), (rows, 4096), (columns, 1024), (terms, 1024)):
            for index in indices:
                self.planned[index] = max(2, int(elements ** (1 / len(indices)) * r.uniform(.7, 1.4)))
        element, self.isStrided = r.choice(TYPES), r.random() < 0.3
        product = f"sum[{commas(r.sample(terms, len(terms)))}](x[{commas(left)}] * y[{commas(right)}])"
        parameters = [f"{'strided ' if self.isStrided else ''}x: {element}[{sizes(left)}]", f"y: {element}[{sizes(right)}]"]
        results = [f"z: {r.choice(('f32', 'f16' if element == 'f16' else 'bf16'))}[{sizes(result)}]"]
        lines = [f"z[{commas(result)}] = {product}"]
        form = r.choice(("plain", "bias", "activation", "read"))
        if form == "bias":
            parameters.append(f"w: f32[{sizes(result[-1:])}]")
            lines = [f"z[{commas(result)}] = {product} + w[{result[-1]}]"]
        elif form == "activation":
            lines = [f"let s[{commas(result)}] = {product}", f"z[{commas(result)}] = max(s[{commas(result)}], 0.0) * 0.5"]
        elif form == "read":
            results = [f"z: f32[{sizes(result)}]", f"t: f32[{sizes(result[:1])}]"]
            lines.append(f"t[{result[0]}] = sum[{commas(result[1:])}](z[{commas(result)}])")
        self.program = (f"kernel product({', '.join(parameters)}) -> ({', '.join(results)})\n{{\n  "
                        + "\n  ".join(lines) + "\n}\n")

    def run(self, tkc, target):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "product.tk"
            path.write_text(self.program)
            words = [tkc, "run", path, "--target", target, "--check"]
            for index, size in self.dims.items():
                words += ["--dim", f"{index.upper()}={size}", "--plan-dim", f"{index.upper()}={self.planned[index]}"]
            if self.isStrided:
                words += ["--gap", "x=3"]
            return subprocess.run(words, capture_output=True, text=True, check=False, timeout=300,
                                  env=os.environ | {"TK_LOG": "1", "TK_CACHE": "off"})


def commas(indices):
    return ", ".join(indices)


def sizes(indices):
    return commas([index.upper() for index in indices])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tkc")
    parser.add_argument("--target", default="emu")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    wrong = tried = 0
    for seed in range(options.seed, options.seed + options.count):
        case = Case(seed)
        done = case.run(options.tkc, options.target)
        tried += "multiplied in order" in done.stderr
        if done.returncode != 0:
            wrong += 1
            print(f"--seed {seed}: status {done.returncode}\n{case.program}{(done.stdout + done.stderr)[-1500:]}", flush=True)
    print(f"{options.count} programs, {wrong} wrong, {tried} tried with their axes in order")
    sys.exit(wrong > 0 or 2 * tried < options.count)


if __name__ == "__main__":
    main()
