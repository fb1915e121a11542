#!/usr/bin/env python3
"""Draws the pictures of the documentation as SVG files beside this script.

With --check it writes nothing and fails if a picture is out of date (a test runs that). A picture that shows
measurements reads them from a file in lab/results.
"""
import json
import math
import pathlib
import re
import sys
from xml.sax.saxutils import escape

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE.parents[1] / "lab/results"
INK, MUTED = "#1f2933", "#616e7c"
BLUE, GREEN, AMBER, RED, GREY = "#d6e4f5", "#d5ecd9", "#fbe7c2", "#f6d4d2", "#e9edf1"
LINE = {BLUE: "#3b6ea8", GREEN: "#3c8250", AMBER: "#b07d1c", RED: "#b0453f", GREY: "#7b8794"}


class Picture:
    def __init__(self, width, height, title):
        self.size, self.title, self.parts = (width, height), title, []

    def box(self, x, y, width, height, lines=(), fill=GREY, size=13, bold=False, mono=False, dash=False):
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" fill="{fill}" stroke="{LINE[fill]}"'
            + (' stroke-dasharray="4 3"' if dash else "") + "/>")
        lines = [lines] if isinstance(lines, str) else list(lines)
        step = size + 4
        top = y + height / 2 - (len(lines) - 1) * step / 2 + size * 0.35
        for number, line in enumerate(lines):
            self.text(x + width / 2, top + number * step, line, size, "middle",
                      bold=bold and number == 0, mono=mono, color=INK)

    def text(self, x, y, line, size=13, anchor="start", bold=False, mono=False, color=INK, turn=0):
        style = ' font-weight="600"' if bold else ""
        style += ' font-family="ui-monospace, Menlo, Consolas, monospace"' if mono else ""
        style += f' transform="rotate({turn} {x:g} {y:g})"' if turn else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" '
                          f'fill="{color}" xml:space="preserve"{style}>{escape(line)}</text>')

    def arrow(self, *points, dash=False, color=MUTED, head=True):
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.5"'
                          + (' stroke-dasharray="5 4"' if dash else "")
                          + (' marker-end="url(#head)"' if head else "") + "/>")

    def svg(self):
        width, height = self.size
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                f'height="{height}" role="img" font-family="Helvetica, Arial, sans-serif">\n'
                f"<title>{escape(self.title)}</title>\n"
                '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
                f'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{MUTED}"/></marker></defs>\n'
                f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n' + "\n".join(self.parts) + "\n</svg>\n")


def overview():
    p = Picture(860, 330, "From a .tk file to a launch")
    p.box(20, 20, 300, 92, ["let s[i, j] = sum[d](q[i, d] * k[j, d])", "let p[i, j] = softmax[j](s[i, j])",
                            "o[i, e] = sum[j](p[i, j] * v[j, e])"], AMBER, 12, mono=True)
    p.text(20, 130, "a .tk file: what is computed", 12, color=MUTED)
    stages = [("tk dialect", "one compute op a statement", "--emit tk"),
              ("fused", "one compute op a kernel", "--emit fused"),
              ("tkgpu tiles", "the program of one block", "--emit tiled"),
              ("tkgpu layouts", "warps, shared memory, MMA", "--emit gpu"),
              ("CUDA C++", "text that you can read", "--emit cuda"),
              ("PTX, SASS", "by NVRTC, no GPU needed", "--emit ptx | sass")]
    x, y = 20, 170
    for number, (name, what, flag) in enumerate(stages):
        left = x + number * 140
        p.box(left, y, 126, 56, [name], GREEN if number in (1, 3) else BLUE, 13, bold=True)
        p.text(left + 63, y + 72, what, 10, "middle", color=MUTED)
        p.text(left + 63, y + 86, flag, 10, "middle", mono=True, color=MUTED)
        if number:
            p.arrow((left - 14, y + 28), (left - 1, y + 28))
    p.arrow((83, 136), (83, 168))
    p.box(350, 20, 150, 44, ["reference interpreter", "in f64"], GREY, 12)
    p.box(520, 20, 150, 44, ["CPU code", "linalg, LLVM"], GREY, 12)
    p.box(690, 20, 150, 44, ["emulator", "runs the CUDA text"], GREY, 12)
    p.arrow((90, 168), (90, 152), (425, 152), (425, 66), dash=True)
    p.arrow((223, 168), (223, 158), (595, 158), (595, 66), dash=True)
    p.arrow((643, 168), (643, 120), (765, 120), (765, 66), dash=True)
    p.text(350, 84, "the result that --check compares with", 10, color=MUTED)
    p.box(20, 280, 826, 36, "runtime: launch plans, a cache of compiled kernels, bundles; called from C++, C and Python",
          GREY, 13)
    return p


def fusion():
    p = Picture(860, 300, "Three statements with two stored matrices become one loop")
    p.text(20, 24, "as written: s and p have S x T elements each", 13, bold=True)
    names = [("q, k", BLUE, 60, 60), ("s", RED, 90, 90), ("p", RED, 90, 90), ("o", BLUE, 60, 60)]
    x = 30
    for number, (name, fill, width, height) in enumerate(names):
        p.box(x, 90 - height / 2, width, height, name, fill, 16, mono=True)
        if number < 3:
            p.arrow((x + width + 4, 90), (x + width + 62, 90))
            p.text(x + width + 33, 82, ["sum[d]", "softmax[j]", "sum[j]"][number], 11, "middle", mono=True)
        x += width + 66
    p.text(560, 62, "five launches", 13)
    p.text(560, 82, "4 S T bytes each for s and p", 13)
    p.text(560, 102, "are written to and read from global memory", 13)
    p.text(20, 174, "after fusion: one block walks over the keys and carries three values a row", 13, bold=True)
    p.box(30, 190, 60, 60, ["q tile"], BLUE, 12)
    p.arrow((94, 220), (128, 220))
    p.box(132, 190, 470, 90, [], GREEN)
    p.text(142, 208, "for each tile of keys j:", 12, mono=True)
    p.text(158, 226, "s = q k^T / sqrt(d)", 12, mono=True)
    p.text(158, 242, "m' = max(m, max_j s)     r = exp(m - m')", 12, mono=True)
    p.text(158, 258, "p = exp(s - m')          l = r l + sum_j p", 12, mono=True)
    p.text(158, 274, "acc = r acc + p v        m = m'", 12, mono=True)
    p.arrow((606, 220), (640, 220))
    p.box(644, 190, 80, 60, ["o tile", "= acc / l"], BLUE, 12)
    p.text(740, 214, "one launch,", 13)
    p.text(740, 234, "no stored matrix", 13)
    return p


def tiles():
    p = Picture(860, 340, "Tiles of attention on Hopper")
    p.text(30, 24, "scores: S rows of queries, T columns of keys", 13, bold=True)
    side, count = 30, 8
    for row in range(count):
        for column in range(count):
            fill = GREEN if row == 5 else GREY
            p.box(50 + column * side, 40 + row * side, side, side, [], AMBER if (row, column) == (5, 3) else fill)
    p.text(290 + 8, 40 + 5 * side + 19, "one block: 128 queries, all keys", 12)
    p.text(298, 40 + 5 * side + 35, "one step: 128 keys", 12, color=LINE[AMBER])
    p.text(40, 40 + 4 * side, "queries", 12, "middle", turn=-90)
    p.text(50 + 4 * side, 300, "keys", 12, "middle")
    p.text(540, 24, "one step: 128 x 128 scores", 13, bold=True)
    for group in range(2):
        p.box(540, 40 + group * 100, 200, 100, [], BLUE if group else GREEN)
        for warp in range(4):
            p.box(540, 40 + group * 100 + warp * 25, 200, 25,
                  f"warp {group * 4 + warp}: rows {16 * (group * 4 + warp)} to {16 * (group * 4 + warp) + 15}",
                  GREEN if group == 0 else BLUE, 11)
        p.text(750, 94 + group * 100, f"consumer {group}", 12)
        p.text(750, 110 + group * 100, "64 rows", 12)
    p.text(540, 262, "A thread has row r and row r + 8 of its warp.", 12)
    p.text(540, 280, "Four threads share a row: its maximum and", 12)
    p.text(540, 298, "its sum take two shuffles each.", 12)
    return p


def warps():
    p = Picture(860, 330, "Warp roles and ping-pong scheduling in attention's main loop")
    left, unit = 150, 84
    rows = [("producer warp", 40), ("consumer 0: MMA", 100), ("consumer 0: softmax", 140),
            ("consumer 1: MMA", 200), ("consumer 1: softmax", 240)]
    for name, y in rows:
        p.text(left - 10, y + 20, name, 12, "end")
        p.arrow((left, y + 32), (left + 8.2 * unit, y + 32), color="#cbd2d9", head=False)
    for step in range(4):
        p.box(left + step * 2 * unit, 40, unit * 0.95, 28, f"TMA K{step + 1}", AMBER, 11)
        p.box(left + (step * 2 + 1) * unit, 40, unit * 0.95, 28, f"TMA V{step + 1}", AMBER, 11)
    for group, (mma, soft) in enumerate(((100, 140), (200, 240))):
        for step in range(4):
            at = left + (step * 2 + group) * unit
            p.box(at, mma, unit * 0.95, 28, f"QK{step + 1}, PV{step}" if step else "QK1", GREEN, 11)
            if at + 2 * unit <= left + 9.2 * unit:
                width = min(unit, left + 8.2 * unit - at - unit)
                if width > 20:
                    p.box(at + unit, soft, width * 0.95, 28, f"softmax {step + 1}", BLUE, 11)
    p.text(left, 296, "time", 12, color=MUTED)
    p.arrow((left + 34, 292), (left + 8.2 * unit, 292))
    p.text(left, 318, "One consumer's softmax runs while the other consumer's products occupy the matrix unit.", 12)
    return p


def hierarchy():
    p = Picture(860, 290, "A tile's way through the memory hierarchy")
    levels = [("global memory", "all of a, b and c", "gigabytes, ~4 TB/s", GREY, "naive: each product reads two numbers here"),
              ("L2 cache", "the tiles of blocks that run together", "50 MB", GREY, "coalescing: whole lines; raster order: reuse"),
              ("shared memory", "a tile of a, a tile of b; several stages", "227 KB a block", BLUE, "tiling: each number serves a row or a column of the tile"),
              ("registers", "16 x 8 results a thread", "255 a thread", GREEN, "coarsening: 24 values serve 128 multiply-adds"),
              ("matrix unit", "64 x 256 x 16 products an instruction", "wgmma", AMBER, "warpgroups: operands straight from shared memory")]
    for number, (name, what, size, fill, gain) in enumerate(levels):
        y = 16 + number * 54
        p.box(30 + number * 22, y, 330 - number * 30, 42, [f"{name}: {size}"], fill, 12, bold=True)
        p.text(390, y + 18, what, 12)
        p.text(390, y + 34, gain, 12, color=MUTED)
        if number:
            p.arrow((195, y - 12), (195, y - 1))
    return p


def rungs():
    text = (RESULTS / "2026-11-21-h200-all.md").read_text()
    block = text[text.index("## ladder.py"):]
    return [(name.strip(), float(rate), float(share)) for name, rate, share in
            re.findall(r"^(\S.*?) +([\d.]+) TFLOP/s +([\d.]+) % of cuBLAS", block, re.M)]


def ladder():
    rows = rungs()
    p = Picture(860, 60 + 38 * (len(rows) + 1), "The memory-hierarchy ladder, measured")
    p.text(20, 24, "f32 product, 4096 x 4096 x 4096, one H200, share of cuBLAS; more is better "
                   "(lab/results/2026-11-21-h200-all.md)", 12, color=MUTED)
    for number, (name, rate, share) in enumerate(rows + [("cuBLAS", 0.0, 100.0)]):
        y = 40 + number * 38
        p.text(270, y + 19, name, 12, "end")
        p.box(280, y, round(4.6 * share, 1), 28, [], GREY if name == "cuBLAS" else GREEN)
        label = f"{share:g} %" + (f", {rate:g} TFLOP/s" if rate else "")
        p.text(288 + 4.6 * share, y + 19, label, 12)
    return p


def layers():
    p = Picture(860, 330, "Folders and their dependencies")
    p.box(30, 20, 800, 64, [], GREY)
    p.text(40, 40, "compiler/", 14, bold=True, mono=True)
    for number, name in enumerate(["tkc", "Pipeline.cpp", "codegen/cuda", "codegen/cpu", "codegen/emu", "interp", "validate"]):
        p.box(150 + number * 96, 34, 90, 36, name, BLUE, 11, mono=True)
    p.box(30, 120, 380, 64, [], GREY)
    p.text(40, 140, "passes/", 14, bold=True, mono=True)
    for number, name in enumerate(["analysis", "machine", "fusion", "parallel", "tiling", "memory", "lowering"]):
        p.box(112 + number % 4 * 74, 126 + number // 4 * 28, 70, 24, name, GREEN, 11, mono=True)
    p.box(450, 120, 380, 64, [], GREY)
    p.text(460, 140, "frontend/", 14, bold=True, mono=True)
    for number, name in enumerate(["lexer, parser", "Sema", "bounds proofs", "gradients"]):
        p.box(560 + number % 2 * 130, 126 + number // 2 * 28, 124, 24, name, GREEN, 11)
    p.box(190, 220, 480, 44, [], GREY)
    p.text(200, 246, "dialects/", 14, bold=True, mono=True)
    p.box(300, 226, 170, 32, "tk: tensors", AMBER, 12)
    p.box(486, 226, 170, 32, "tkgpu: blocks and tiles", AMBER, 12)
    p.box(30, 290, 800, 30, "runtime/: tensors, plans, cache, drivers, device primitives (no LLVM, no MLIR)", GREY, 13)
    p.arrow((220, 84), (220, 118))
    p.arrow((640, 84), (640, 118))
    p.arrow((300, 184), (300, 218))
    p.arrow((560, 184), (560, 218))
    p.arrow((18, 52), (10, 52), (10, 305), (28, 305))
    p.text(430, 212, "an arrow: may include", 11, "middle", color=MUTED)
    return p


def phases():
    p = Picture(860, 250, "How one kernel gets smaller and more detailed")
    columns = [("tensor level", BLUE, ["fold, inline, merge", "online reductions", "split, store operands"], "tk.compute, tk.reduce"),
               ("plan", AMBER, ["tiles, warps, stages", "from structure, sizes", "and the machine"], "#tkgpu.plan"),
               ("tiles", GREEN, ["one block's program", "masks, contractions", "loops over tiles"], "tkgpu.dot, tkgpu.reduce"),
               ("layouts, memory", GREEN, ["registers, lanes, warps", "shared memory, TMA", "warp specialization"], "#tkgpu.layout"),
               ("loop schedule", GREEN, ["pipelining, ping-pong", "overlap, barriers", "register targets"], "tkgpu.warp_roles"),
               ("text", GREY, ["prints, decides nothing", "CUDA C++ and a", "launch plan"], "tk_device.cuh")]
    for number, (name, fill, lines, sample) in enumerate(columns):
        x = 16 + number * 140
        p.box(x, 20, 130, 40, name, fill, 12, bold=True)
        for place, line in enumerate(lines):
            p.text(x + 65, 84 + place * 18, line, 11, "middle")
        p.text(x + 65, 150, sample, 10, "middle", mono=True, color=MUTED)
        if number:
            p.arrow((x - 10, 40), (x - 1, 40))
    for x, width, name in ((16, 270, "tk dialect: --emit tk, fused"), (296, 130, "--emit tiled"),
                           (436, 270, "tkgpu dialect: --emit gpu"), (716, 130, "--emit cuda")):
        p.box(x, 178, width, 28, name, GREY, 11, mono=True)
    p.text(16, 234, "Every step is a pass: leave one out with --disable-pass, print the IR behind one with --print-after.", 12)
    return p


def described(name):
    """A network of examples/networks."""
    return json.loads((HERE.parents[1] / f"examples/networks/{name}.json").read_text())


def all_reduce_of_two(network, size):
    """Nanoseconds, by the formulas of docs/explanation/network-model.md for one level of two GPUs."""
    level, times = network["levels"][0], []
    for protocol in (p for p in network["protocols"] if p.get("by") != "copies"):
        own = level["protocols"][protocol["name"]]
        base, share = (value.get("all_reduce", value["other"]) if isinstance(value, dict) else value
                       for value in (protocol["base_us"], own["share"]))
        bandwidth = level["links"] * level["link_gb_s"] * share
        times.append(1000 * (base + 2 * own["step_us"]) + size / bandwidth)
    return min(times)


def measured_all_reduces():
    """Array sizes and microseconds of the first table of lab/mesh.md."""
    units = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
    rows = re.findall(r"^\| all-reduce \| (\d+) (\w+) \| ([\d.]+)", (HERE.parents[1] / "lab/mesh.md").read_text(), re.M)
    return [(int(number) * units[unit], float(time)) for number, unit, time in rows]


def network():
    p = Picture(860, 330, "The levels of a DGX H100 SuperPOD, and all-reduces between two H200")
    pod = described("h100-superpod")
    p.text(20, 24, pod["name"], 13, bold=True)
    y, devices = 40, 1
    for level in pod["levels"]:
        devices *= level["children"]
    for level in reversed(pod["levels"]):
        below = devices // level["children"]
        each = level["links"] * level["link_gb_s"]
        p.box(20, y, 110, 38, [level["name"], f"{devices} GPUs"], BLUE, 12, bold=True)
        p.text(142, y + 16, f"{level['children']} children of {below} GPU{'s' if below > 1 else ''}, "
               f"{level['switches']} switches", 12)
        p.text(142, y + 33, f"{level['links']} x {level['link_gb_s']} = {each:g} GB/s from each child", 12, color=MUTED)
        p.arrow((75, y + 40), (75, y + 66), head=False)
        y, devices = y + 68, below
    p.box(20, y, 110, 30, ["GPU"], GREEN, 12, bold=True)
    left, top, width, height = 500, 50, 330, 210
    p.text(left - 40, 24, "all-reduce of two H200, GB/s of each one's links", 13, bold=True)
    low, high, most = 12, 31, 400

    def place(size, rate):
        return (left + width * (math.log2(size) - low) / (high - low), top + height * (1 - rate / most))

    for rate in range(0, most + 1, 100):
        p.arrow((left, place(1 << low, rate)[1]), (left + width, place(1 << low, rate)[1]), head=False, color="#d5dbe1")
        p.text(left - 8, place(1 << low, rate)[1] + 4, str(rate), 11, "end", color=MUTED)
    for power, name in ((13, "8 KiB"), (19, "512 KiB"), (25, "32 MiB"), (30, "1 GiB")):
        p.text(place(1 << power, 0)[0], top + height + 18, name, 11, "middle", color=MUTED)
    pair = described("h200-pair")
    sizes = [2 ** (low + step / 4) for step in range(4 * (high - low) + 1)]
    p.arrow(*[place(size, size / all_reduce_of_two(pair, size)) for size in sizes], head=False, color=LINE[BLUE])
    for size, time in measured_all_reduces():
        x, height_of_point = place(size, size / (1000 * time))
        p.parts.append(f'<circle cx="{x:g}" cy="{height_of_point:g}" r="4" fill="{LINE[RED]}"/>')
    p.text(left - 40, top + height + 44, "line: predicted, the faster protocol; points: measured", 12)
    return p


PICTURES = {f.__name__: f for f in (overview, fusion, tiles, warps, hierarchy, ladder, layers, phases, network)}


def main():
    stale = []
    for name, draw in PICTURES.items():
        path, wanted = HERE / f"{name}.svg", draw().svg()
        if "--check" not in sys.argv[1:]:
            path.write_text(wanted)
        elif not path.exists() or path.read_text() != wanted:
            stale.append(path.name)
    if stale:
        sys.exit(f"out of date: {', '.join(stale)}; run docs/pictures/draw.py")


main()
