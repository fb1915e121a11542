#!/usr/bin/env python3
"""The cost of a call from Python, of a kernel that does next to nothing: microseconds, the least of several rounds, beside
NumPy's and PyTorch's own addition. On the CPU, and on a GPU where there is one.

    PYTHONPATH=python bench/calls.py
"""
import sys
import time

import numpy as np

import tk

ADD = "kernel add(x: f32[N], y: f32[N]) -> (z: f32[N]) { z[i] = x[i] + y[i] }"
# Short rounds: on a machine that other work shares, some of them are not interrupted.
ROUNDS, CALLS = 200, 300


def microseconds(call, calls=CALLS, wait=lambda: None):
    best = float("inf")
    for _ in range(ROUNDS):
        wait()
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, time.perf_counter() - begin)
    return best / calls * 1e6


def rows(name, add, kernel, x, y, z, microseconds=microseconds):
    bound = kernel.bind(x, y, out=z)
    return [(f"{name}.add(x, y, out=z)", microseconds(lambda: add(x, y, out=z))),
            ("kernel(x, y, out=z)", microseconds(lambda: kernel(x, y, out=z))),
            ("kernel(x, y)", microseconds(lambda: kernel(x, y))),
            ("bound()", microseconds(bound)),
            ("bound(x, y, z)", microseconds(lambda: bound(x, y, z)))]


def main():
    kernel = tk.compile(ADD, target="cpu")["add"]
    found = rows("np", np.add, kernel, *(np.ones(8, np.float32) for _ in range(3)))
    try:
        import torch
    except ImportError:
        print("not measured: PyTorch (it is not installed)", file=sys.stderr)
    else:
        torch.set_num_threads(1)
        found += rows("torch", torch.add, kernel, *(torch.ones(8) for _ in range(3)))
        if torch.cuda.is_available():
            # So few calls that none waits for a free place in the queue of launches.
            found += [(f"{call} on the GPU", time_of_one) for call, time_of_one in rows(
                "torch", torch.add, tk.compile(ADD, target="gpu")["add"], *(torch.ones(8, device="cuda") for _ in range(3)),
                lambda call: microseconds(call, 400, torch.cuda.synchronize))]
    for call, time_of_one in found:
        print(f"{call:40s} {time_of_one:8.2f} us")


if __name__ == "__main__":
    main()
