"""The compiler's work grows at most quadratically with the program: usage check_growth.py TKC.

Each family of programs is compiled at several sizes, each twice the one before. What is compared is the number of
operations behind each phase and the length of the emitted text, not time. Doubling a program may multiply a count
by 4 at most, and by little more for what is constant. A time limit ends a compilation that would never end.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

PHASES = ("tk-collapse-axes", "tk-separate-reductions", "tk-fuse-producers", "tk-merge-computes", "tk-online-reductions",
          "tk-bound-masks", "tk-tile", "tk-coalesce-accesses", "tk-plan-shared-memory")
LIMIT = 4.5
SECONDS = 60


def stencil(n):
    steps = [f"  let t{k}[i] = 0.5 * t{k - 1}[i] + 0.25 * (pad(t{k - 1}[i - 1], 0.0) + pad(t{k - 1}[i + 1], 0.0))"
             for k in range(1, n)]
    return ["kernel k(t0: f32[N]) -> (y: f32[N]) {", *steps, f"  y[i] = t{n - 1}[i]", "}"]


def plane(n):
    steps = [f"  let t{k}[i, j] = pad(t{k - 1}[i - 1, j], 0.0) + pad(t{k - 1}[i + 1, j], 0.0) "
             f"+ pad(t{k - 1}[i, j - 1], 0.0) + pad(t{k - 1}[i, j + 1], 0.0) - 4.0 * t{k - 1}[i, j]"
             for k in range(1, n)]
    return ["kernel k(t0: f32[M, N]) -> (y: f32[M, N]) {", *steps, f"  y[i, j] = t{n - 1}[i, j]", "}"]


def lets(n):
    steps = [f"  let t{k}[i] = 0.5 * t{k - 1}[i] + 0.25" for k in range(1, n)]
    return ["kernel k(t0: f32[N]) -> (y: f32[N]) {", *steps, f"  y[i] = t{n - 1}[i]", "}"]


def squares(n):
    steps = [f"  let t{k}[i] = t{k - 1}[i] * t{k - 1}[i] + exp(t{k - 1}[i])" for k in range(1, n)]
    return ["kernel k(t0: f32[N]) -> (y: f32[N]) {", *steps, f"  y[i] = t{n - 1}[i]", "}"]


def fibonacci(n):
    steps = [f"  let t{k}[i] = 0.5 * t{k - 1}[i] + 0.25 * t{k - 2}[i]" for k in range(2, n)]
    return ["kernel k(t0: f32[N], t1: f32[N]) -> (y: f32[N]) {", *steps, f"  y[i] = t{n - 1}[i]", "}"]


def parameters(n):
    names = [f"x{k}" for k in range(n)]
    rows = [" + ".join(f"{name}[i]" for name in names[k:k + 50]) for k in range(0, n, 50)]
    total = " + ".join(f"({row})" for row in rows)
    return ["kernel k(" + ", ".join(f"{name}: f32[N]" for name in names) + ") -> (y: f32[N]) {",
            f"  y[i] = {total}", "}"]


def results(n):
    return ["kernel k(x: f32[N]) -> (" + ", ".join(f"y{k}: f32[N]" for k in range(n)) + ") {",
            *(f"  y{k}[i] = {k}.5 * x[i]" for k in range(n)), "}"]


def means(n):
    steps = []
    for k in range(1, n):
        steps += [f"  let m{k}[r] = mean[c](t{k - 1}[r, c])", f"  let t{k}[r, c] = exp(t{k - 1}[r, c] - m{k}[r])"]
    return ["kernel k(t0: f32[R, C]) -> (y: f32[R, C]) {", *steps, f"  y[r, c] = t{n - 1}[r, c]", "}"]


def products(n):
    steps = [f"  let t{k}[i, j]: bf16 = sum[l](t{k - 1}[i, l] * w[l, j])" for k in range(1, n)]
    return ["kernel k(t0: bf16[M, K], w: bf16[K, K]) -> (y: bf16[M, K]) {", *steps, f"  y[i, j] = t{n - 1}[i, j]", "}"]


FAMILIES = ((stencil, 8, 3), (plane, 4, 3), (lets, 64, 3), (squares, 32, 3), (fibonacci, 32, 3), (parameters, 100, 2),
            (results, 24, 2), (means, 4, 3), (products, 4, 3))


def counts(tkc, text):
    """Operations behind each phase, in order, and the characters of the emitted text."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = pathlib.Path(folder) / "k.tk", pathlib.Path(folder) / "k.cu"
        path.write_text("\n".join(text) + "\n")
        done = subprocess.run([tkc, "build", path, "--target", "sm_90a", "--emit", "cuda", "-o", out,
                               "--print-after", ",".join(PHASES)],
                              capture_output=True, text=True, timeout=SECONDS, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-1000:])
        found = {}
        for number, section in enumerate(done.stderr.split("// ---- after ")[1:]):
            name = section.split("\n", 1)[0]
            found[f"{number} {name}"] = len(re.findall(r"^ *(?:%\S.* = )?[a-z]+\.\w+", section, re.MULTILINE))
        found["emitted text"] = len(out.read_text())
        return found


def main(tkc):
    wrong = []
    for family, least, doublings in FAMILIES:
        before = None
        for step in range(doublings):
            size = least << step
            try:
                now = counts(tkc, family(size))
            except subprocess.TimeoutExpired:
                wrong.append(f"{family.__name__} of {size}: not compiled within {SECONDS} s")
                break
            except RuntimeError as error:
                wrong.append(f"{family.__name__} of {size}: {error}")
                break
            if len(now) != len(PHASES) + 1:
                wrong.append(f"{family.__name__} of {size}: phases {', '.join(now)}")
            for phase, count in now.items():
                if before and count > LIMIT * before.get(phase, count):
                    wrong.append(f"{family.__name__} of {size}: {count} behind {phase}, {before[phase]} at half the size")
            before = now
    sys.exit("\n".join(wrong) or 0)


main(sys.argv[1])
