"""What the benchmarks share: tk through its C interface, in one process with PyTorch, and timing.

Peers are timed in alternation with tk, on standard-normal data, by CUDA events; figures are medians.
Before each timed call a buffer larger than the L2 cache is read, where asked for.
"""
import argparse
import ctypes
import math
import os
import statistics
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
DTYPES = {torch.float64: 0, torch.float32: 1, torch.float16: 2, torch.bfloat16: 3,
          torch.float8_e4m3fn: 4, torch.float8_e5m2: 5, torch.int64: 6, torch.int32: 7,
          torch.int16: 8, torch.int8: 9, torch.uint8: 10, torch.bool: 11}


class Value(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("device", ctypes.c_int32), ("data", ctypes.c_void_p),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("storage_bytes", ctypes.c_int64),
                ("integer", ctypes.c_int64), ("real", ctypes.c_double)]


def _library():
    for path in (os.environ.get("TK_LIBRARY"), os.path.join(ROOT, ".carry", "libtk.so"),
                 os.path.join(ROOT, "build", "lib", "libtk.so")):
        if path and os.path.exists(path):
            lib = ctypes.CDLL(path)
            lib.tk_last_error.restype = ctypes.c_char_p
            return lib
    sys.exit("libtk.so is not built: scripts/carry")


LIB = _library()


def _check(status):
    if status:
        raise RuntimeError(LIB.tk_last_error().decode())


class Kernel:
    """A kernel of a .tk file; call it with tensors and scalars in the order of its signature.

    TK_TARGET=sm_90 has what is emitted for GPUs without Hopper's own instructions run on one with them."""

    def __init__(self, path=None, source=None, kernel=None, disabled="",
                 target=os.environ.get("TK_TARGET", "gpu")):
        text = (source if source is not None else open(os.path.join(ROOT, path)).read()).encode()
        module, handle = ctypes.c_void_p(), ctypes.c_void_p()
        _check(LIB.tk_compile_with(text, ctypes.c_size_t(len(text)), (path or "bench.tk").encode(),
                                   target.encode(), disabled.encode(), b"", ctypes.byref(module)))
        name = kernel.encode() if kernel else None
        if name is None:
            LIB.tk_module_kernel_name.restype = ctypes.c_char_p
            name = LIB.tk_module_kernel_name(module, ctypes.c_size_t(0))
        _check(LIB.tk_module_kernel(module, name, ctypes.byref(handle)))
        self.handle = handle

    def __call__(self, *arguments):
        values = (Value * len(arguments))()
        keep = []
        for value, argument in zip(values, arguments):
            if isinstance(argument, torch.Tensor):
                shape = (ctypes.c_int64 * max(argument.dim(), 1))(*argument.shape)
                strides = (ctypes.c_int64 * max(argument.dim(), 1))(*argument.stride())
                keep += [shape, strides]
                value.kind, value.dtype, value.rank = 1, DTYPES[argument.dtype], argument.dim()
                value.device = argument.get_device() if argument.is_cuda else -1
                value.data, value.shape, value.strides = argument.data_ptr(), shape, strides
                value.storage_bytes = -1
            elif argument is None:
                value.kind = 0
            elif isinstance(argument, int):
                value.kind, value.integer = 2, argument
            else:
                value.kind, value.real = 3, float(argument)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        _check(LIB.tk_kernel_launch(self.handle, stream, values, ctypes.c_size_t(len(arguments))))


COLD = None


HEAD_START = 200_000  # clock cycles, about 0.1 ms


def times(functions, repeats=30, cold=False, warmup=5):
    """Median milliseconds of each function, called in alternation. If `cold`, 512 MB are read before
    each call: nothing that it reads is in the L2 cache, nor anything that must be written back."""
    global COLD
    if cold and COLD is None:
        COLD = torch.ones(1 << 27, device="cuda"), torch.empty((), device="cuda")
    for _ in range(warmup):
        for function in functions:
            function()
    torch.cuda.synchronize()
    # The device waits before each measurement while the host queues it: else the time of a short
    # kernel would be that of its call.
    records = [[] for _ in functions]
    for _ in range(repeats):
        for record, function in zip(records, functions):
            if cold:
                torch.sum(COLD[0], dim=0, out=COLD[1])
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(HEAD_START)
            first.record()
            function()
            last.record()
            record.append((first, last))
    torch.cuda.synchronize()
    return [statistics.median(a.elapsed_time(b) for a, b in record) for record in records]


def copy_bandwidth():
    """Bytes read and written in a second by a device-to-device copy of 2 GiB."""
    source = torch.empty(1 << 31, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    milliseconds, = times([lambda: target.copy_(source)], repeats=20)
    return 2 * source.numel() / (milliseconds * 1e-3)


def normal(*shape, dtype=torch.bfloat16, seed=0):
    generator = torch.Generator(device="cuda").manual_seed(seed + sum(shape))
    return torch.randn(*shape, device="cuda", generator=generator).to(dtype)


def error(got, want):
    got, want = got.double(), want.double()
    return ((got - want).norm() / want.norm()).item()


def attention_cases(description, case, lengths, widths, repeats):
    """Runs `case(length, width, causal, schedules, repeats)`, which gives a ratio to cuDNN, over what
    the command line asks for, and prints the ratios' geometric mean and the least."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--lengths", type=int, nargs="*", default=lengths)
    parser.add_argument("--widths", type=int, nargs="*", default=widths)
    parser.add_argument("--schedule", action="append", default=[])
    parser.add_argument("--repeats", type=int, default=repeats)
    options = parser.parse_args()
    ratios = [case(length, width, causal, options.schedule, options.repeats)
              for width in options.widths for length in options.lengths for causal in (False, True)]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"geometric mean of the ratios to cuDNN {mean:.3f}, least {min(ratios):.3f}")
