#!/usr/bin/env python3
"""A Llama decoder with the sizes of an 8B model (examples/llama): predicted times, or times beside PyTorch.

    bench/llama.py --predict [--device NAME]   what `tkc inspect` predicts for each kernel; needs no GPU
    bench/llama.py [--program PATH] [--alone]  prefill of 4 prompts of 4096 tokens, decode of 1, 8 and 64 sequences with
                                               4096 tokens each; random weights; PATH is the C++ program, run as well;
                                               --alone leaves PyTorch's model out

The bound of a decode step is the time that the weights and the cache take at the copy's bandwidth. The bound of a
prefill is the time of its multiply-adds at the rate that the matrix unit sustains. The peer is the same model in PyTorch
whose layer is compiled by torch.compile(mode="max-autotune-no-cudagraphs"), with scaled_dot_product_attention on a cache
that is not paged. Its decode step is a CUDA graph.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXAMPLE = os.path.join(ROOT, "examples", "llama")
VOCABULARY, WIDTH, INTERMEDIATE, LAYERS = 128256, 4096, 14336, 32
HEADS, GROUPS, SIZE, PAGE, CONTEXT = 32, 8, 128, 16, 4096
WEIGHTS = "qkv", "out", "gate", "up", "down"
ROWS = (HEADS + 2 * GROUPS) * SIZE
COPY = 4250.0  # bytes a nanosecond, measured on an H200 (docs/explanation/cost-model.md)
MATRIX = 770e3  # bf16 operations a nanosecond that an H200 sustains: the least times of tkc inspect have it

LAYER_BYTES = 2 * (ROWS * WIDTH + HEADS * SIZE * WIDTH + 3 * WIDTH * INTERMEDIATE)
HEAD_BYTES = 2 * VOCABULARY * WIDTH
TOKEN_BYTES = 2 * 2 * GROUPS * SIZE * LAYERS  # of the cache


def decode_bound(sequences):
    """Nanoseconds."""
    return (LAYERS * LAYER_BYTES + HEAD_BYTES + sequences * CONTEXT * TOKEN_BYTES) / COPY


def attention_operations(prompts, length):
    """Of one layer. Half of the scores are masked."""
    return 4 * prompts * HEADS * SIZE * length * length / 2


def prefill_bound(prompts, length):
    """Nanoseconds. A weight has two bytes, and takes two operations a row."""
    products = LAYERS * LAYER_BYTES * prompts * length + HEAD_BYTES * prompts
    return (products + LAYERS * attention_operations(prompts, length)) / MATRIX


def layer_kernels(rows):
    """The first two products of a layer: kernel, dimensions."""
    return [("qkv", dict(N=rows, C=WIDTH, M=ROWS)), ("gate_up", dict(N=rows, C=WIDTH, F=INTERMEDIATE))]


def step_kernels(sequences):
    """The kernels of a decode step: file, kernel, dimensions, scalars, how often, and the least time in us where
    data decide how often a loop runs."""
    heads = dict(B=sequences, M=HEADS + 2 * GROUPS, D=SIZE, T=CONTEXT + PAGE, P=PAGE, G=GROUPS)
    blocks = CONTEXT // PAGE
    pages = dict(B=sequences, H=HEADS, D=SIZE, PAGES=sequences * (1 + blocks), P=PAGE, G=GROUPS, MAX=blocks)
    cache = sequences * CONTEXT * TOKEN_BYTES / LAYERS / COPY * 1e-3
    layer = layer_kernels(sequences) + [("rope_keep", heads)]
    for terms in (HEADS * SIZE, INTERMEDIATE):
        layer.append(("project_parts", dict(B=sequences, S=2, J=terms // 2, C=WIDTH)))
        layer.append(("add_parts", dict(B=sequences, S=2, C=WIDTH)))
    return [("llama", *kernel, {}, LAYERS, 0) for kernel in layer] + [
        ("llama", "attention_decode", pages, {}, LAYERS, cache),
        ("llama", "embed_normed", dict(B=sequences, V=VOCABULARY, C=WIDTH), {}, 1, 0),
        ("llama", "logits", dict(B=sequences, V=VOCABULARY, C=WIDTH), {}, 1, 0),
        ("sample", "greedy", dict(B=sequences, V=VOCABULARY), {}, 1, 0),
        ("llama", "advance", dict(B=sequences), {}, 1, 0),
    ]


def prefill_kernels(prompts, length):
    rows = prompts * length
    heads = dict(N=rows, M=HEADS + 2 * GROUPS, D=SIZE, T=CONTEXT)
    attention = attention_operations(prompts, length) / MATRIX * 1e-3
    layer = layer_kernels(rows)
    layer += [("project", dict(N=rows, J=terms, C=WIDTH)) for terms in (HEADS * SIZE, INTERMEDIATE)]
    kernels = [("llama", *kernel, {}, LAYERS, 0) for kernel in layer]
    kernels.append(("llama", "rope", heads, dict(G=GROUPS), LAYERS, 0))
    kernels.append(("llama", "attention_prefill", dict(N=rows, H=HEADS, D=SIZE, G=GROUPS), {}, LAYERS, attention))
    return kernels + [("llama", "logits", dict(B=prompts, V=VOCABULARY, C=WIDTH), {}, 1, 0)]


def predict(options, file, kernel, dims, scalars):
    """Predicted and least time in us, and the number of launches."""
    command = [options.tkc, "inspect", os.path.join(EXAMPLE, "kernels", file + ".tk"), "--kernel", kernel, "--cost"]
    command += ["--target", "sm_90a"] + (["--device", options.device] if options.device else [])
    command += [word for name, value in dims.items() for word in ("--dim", f"{name}={value}")]
    command += [word for name, value in scalars.items() for word in ("--arg", f"{name}={value}")]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    total = re.search(r"^predicted\s+([\d.]+) us on", text, re.M)
    least = re.search(r"^least\s+([\d.]+) us", text, re.M)
    launches = len(re.findall(r"^  predicted", text, re.M))
    return float(total[1]), float(least[1]), launches


def print_predictions(options, title, kernels, bound):
    print(f"\n{title}\n  {'kernel':20} {'each, us':>10} {'least, us':>10} {'launches':>9} {'all, ms':>10}")
    total = launches = 0
    for file, kernel, dims, scalars, count, known in kernels:
        time, least, number = predict(options, file, kernel, dims, scalars)
        note = "  each is below the least time, which is taken" if time < known else ""
        least = known or least
        all_of_it = max(time, known) * count * 1e-3
        print(f"  {kernel:20} {time:10.1f} {least:10.1f} {number:9} {all_of_it:10.3f}{note}")
        total, launches = total + all_of_it, launches + number * count
    print(f"  sum {total:.3f} ms in {launches} launches; bound {bound * 1e-6:.3f} ms; {bound * 1e-6 / total:.2f} of it")


def predictions(options):
    for sequences in (1, 8, 64):
        title = f"decode, {sequences} x {CONTEXT} tokens"
        print_predictions(options, title, step_kernels(sequences), decode_bound(sequences))
    print_predictions(options, "prefill, 4 x 4096 tokens", prefill_kernels(4, 4096), prefill_bound(4, 4096))


class TorchModel:
    """The same model in PyTorch: the weights of examples/llama, a dense cache."""

    def __init__(self, torch, config, weights, tables, sequences, length):
        self.torch, self.c, self.w = torch, config, weights
        self.layer = torch.compile(self._layer, mode="max-autotune-no-cudagraphs", dynamic=False)
        self.cosine, self.sine = (torch.cat([t, t], -1).bfloat16() for t in tables)
        shape = (config.layers, 2, sequences, config.key_heads, length, config.head_size)
        self.cache = torch.zeros(shape, dtype=torch.bfloat16, device=weights.head.device)

    def _norm(self, x):
        wide = x.float()
        return (wide * self.torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.c.norm_epsilon)).bfloat16()

    def _rope(self, x, position):
        a, b = x.chunk(2, -1)
        return x * self.cosine[position] + self.torch.cat([-b, a], -1) * self.sine[position]

    def __call__(self, tokens, position, is_prefill):
        """Logits after the last token; `tokens` is [sequences, rows], `position` [rows]. A step reads all of the
        cache, whose last row it writes."""
        x = self.w.embedding[tokens.long()]
        for cache, layer in zip(self.cache, self.w.layers):
            x = self.layer(x, cache[0], cache[1], position, is_prefill, *(layer[name] for name in WEIGHTS))
        return self.torch.nn.functional.linear(self._norm(x[:, -1]), self.w.head).float()

    def _layer(self, x, keys, values, position, is_prefill, qkv, out, gate, up, down):
        c, f = self.c, self.torch.nn.functional
        rows = f.linear(self._norm(x), qkv).unflatten(-1, (-1, c.head_size)).transpose(1, 2)
        q, k, v = rows.split([c.heads, c.key_heads, c.key_heads], 1)
        q, k = self._rope(q, position), self._rope(k, position)
        keys[:, :, position], values[:, :, position] = k, v
        if not is_prefill:
            k, v = keys, values
        o = f.scaled_dot_product_attention(q, k, v, is_causal=is_prefill, enable_gqa=True)
        x = x + f.linear(o.transpose(1, 2).flatten(2), out)
        n = self._norm(x)
        return x + f.linear(f.silu(f.linear(n, gate)) * f.linear(n, up), down)


def captured(torch, step):
    """A CUDA graph of a step, which its peer is, too."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def timed(torch, function, repeats, warmup=3):
    """Median of single runs in ms, by CUDA events."""
    times = []
    for i in range(warmup + repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        function()
        end.record()
        end.synchronize()
        if i >= warmup:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)


def measure(options):
    sys.path[:0] = [os.path.join(EXAMPLE, "python"), os.path.join(ROOT, "python")]
    import torch
    from arrays import TorchArrays
    from checkpoint import NAMED, rope_table
    from model import Kernels, Model, Sampler, Weights

    config, arrays, kernels = NAMED["8b"], TorchArrays(), Kernels()
    weights = Weights(arrays, kernels, config).fill(0)
    tables = [arrays.array(t, "float32") for t in rope_table(config, CONTEXT + 64)]

    def line(name, ours, theirs, bound):
        peer = f"  torch {theirs:9.3f} ({theirs / ours:.2f})" if theirs else ""
        print(f"{name:28} tk {ours:9.3f} ms{peer}  bound {bound * 1e-6:9.3f} ({bound * 1e-6 / ours:.2f})", flush=True)

    for sequences in options.sequences:
        sampler = Sampler(arrays, kernels, sequences)
        model = Model(arrays, kernels, config, weights, sampler, sequences, PAGE, CONTEXT + 64)
        torch_model = TorchModel(torch, config, weights, tables, sequences, CONTEXT)
        prompts = [[(7 * i + s) % 256 for i in range(CONTEXT)] for s in range(sequences)]
        tokens = torch.tensor(prompts, device="cuda")
        with torch.no_grad():
            if sequences == 4:
                position = torch.arange(CONTEXT, device="cuda")

                ours = timed(torch, lambda: model.prefill(prompts), 5)
                theirs = 0 if options.alone else timed(torch, lambda: torch_model(tokens, position, True), 5)
                line("prefill 4 x 4096", ours, theirs, prefill_bound(4, CONTEXT))
            else:
                model.prefill([prompt[:-1] for prompt in prompts[:1]] * sequences)
                last = torch.tensor([CONTEXT - 1], device="cuda")
                ours = timed(torch, model.decode, 40)
                newest = tokens[:, -1:].clone()
                theirs = 0 if options.alone else timed(
                    torch, captured(torch, lambda: torch_model(newest, last, False)), 40)
                line(f"decode {sequences} x {CONTEXT}", ours, theirs, decode_bound(sequences))
        del model, torch_model
        torch.cuda.empty_cache()
    del weights
    torch.cuda.empty_cache()
    if options.program:
        for sequences in (1, 8, 64, 4):
            command = [options.program, "--size", "8b", "--random-prompts", f"{sequences}x{CONTEXT}", "--time"]
            result = subprocess.run(command + ["--tokens", "48"], capture_output=True, text=True, check=True)
            print(f"C++, {sequences} x {CONTEXT}:\n{result.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--predict", action="store_true")
    parser.add_argument("--device", help="the GPU that predictions are for")
    parser.add_argument("--tkc", default=os.path.join(ROOT, "build", "bin", "tkc"))
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--sequences", type=int, nargs="+", default=[4, 1, 8, 64], help="4 is the prefill")
    parser.add_argument("--program", help="the program of examples/llama in C++")
    options = parser.parse_args()
    predictions(options) if options.predict else measure(options)


if __name__ == "__main__":
    main()
