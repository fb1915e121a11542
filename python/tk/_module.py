"""Modules and kernels."""
import ctypes
import numbers
import os

from . import _autograd, _prepare, _tensors
from ._library import (ABSENT, DTYPES, INTEGER, LAST_FLOAT, LIB, REAL, Argument, Error, Value,
                       check)


def compile(source, target=None, file_name="<string>", disable_passes=(), checked=False):
    """Compiles the text of a .tk file. `target` is "cpu", "gpu", "sm_90a", …; the GPU where there is
    one, else the CPU. Launches of `checked` kernels report indices from tensors that are outside,
    instead of reading 0, and wait for what comes before them on the stream."""
    return _compile(source.encode(), target, file_name, disable_passes, checked)


def _compile(text, target, file_name, disable_passes, checked):
    handle = ctypes.c_void_p()
    call = LIB.tk_compile_checked if checked else LIB.tk_compile_with
    check(call(text, len(text), os.fsencode(file_name), _bytes(target),
               ",".join(disable_passes).encode(), b"", ctypes.byref(handle)))
    return Module(handle)


def compile_file(path, target=None, checked=False):
    """Compiles a .tk file."""
    if checked:
        try:
            with open(path, "rb") as file:
                text = file.read()
        except OSError as error:
            raise Error("io", str(error)) from None
        return _compile(text, target, path, (), checked)
    handle = ctypes.c_void_p()
    check(LIB.tk_compile_file(os.fsencode(path), _bytes(target), ctypes.byref(handle)))
    return Module(handle)


def load_bundle(path):
    """Loads what `tkc build --emit bundle` made, for this machine's GPU."""
    handle = ctypes.c_void_p()
    check(LIB.tk_load_bundle(os.fsencode(path), ctypes.byref(handle)))
    return Module(handle)


def _bytes(text):
    return (text or "").encode()


class Module:
    """Compiled kernels, by name: module["attention"]."""

    def __init__(self, handle):
        self._handle = handle
        self._kernels = {}

    def __del__(self):
        if getattr(self, "_handle", None):
            LIB.tk_module_free(self._handle)

    @property
    def kernels(self):
        """The kernels' names."""
        count = LIB.tk_module_num_kernels(self._handle)
        return [LIB.tk_module_kernel_name(self._handle, i).decode() for i in range(count)]

    @property
    def target(self):
        return LIB.tk_module_target(self._handle).decode()

    @property
    def diagnostics(self):
        """The compilation's warnings, "" where none."""
        return os.fsdecode(LIB.tk_module_diagnostics(self._handle))

    def freeze(self):
        """From now on a call that would have to compile raises the error "frozen"."""
        check(LIB.tk_module_freeze(self._handle))

    def __getitem__(self, name):
        if name not in self._kernels:
            handle = ctypes.c_void_p()
            check(LIB.tk_module_kernel(self._handle, name.encode(), ctypes.byref(handle)))
            self._kernels[name] = Kernel(handle, self)
        return self._kernels[name]

    def __iter__(self):
        return iter(self.kernels)


class Kernel:
    """A kernel. Calling it launches it and returns its result, or a tuple of them."""

    def __init__(self, handle, module=None):
        self._handle = handle
        self._module = module  # whose kernels may be gradients of this one
        self._known_gradients = None
        self._arguments = []
        for i in range(LIB.tk_kernel_num_arguments(handle)):
            argument = Argument()
            check(LIB.tk_kernel_argument(handle, i, ctypes.byref(argument)))
            self._arguments.append(argument)
        self._names = [argument.name.decode() for argument in self._arguments]
        self._num_params = sum(not argument.is_result for argument in self._arguments)

    def __del__(self):
        if getattr(self, "_handle", None):
            LIB.tk_kernel_free(self._handle)

    @property
    def signature(self):
        """Such as "gemm(a: bf16[M, K], b: bf16[K, N]) -> (c: bf16[M, N])"."""
        return LIB.tk_kernel_signature(self._handle).decode()

    def __repr__(self):
        return f"<tk.Kernel {self.signature}>"

    def __call__(self, *args, out=None, stream=None, **named):
        """Launches on the current stream (or `stream`, a CUstream as a number) and returns at once on
        a GPU. Arguments come in the signature's order or by name; scalars with a default may be left
        out. Results are made like the first tensor, or are those given as `out`: a tensor, a
        sequence in the signature's order, or a dictionary by name. Where torch records gradients by an
        argument, the results have them, by a `grad` item of the module; without one that is an error."""
        if out is None and _autograd.wants_gradient([*args, *named.values()]):
            given = _sort(self, args, named, None)
            return _autograd.call(self, _autograd.gradient_for(self, given), given, stream)
        call = _Call(self, args, named, out, stream)
        check(LIB.tk_kernel_launch(self._handle, call.stream, call.values, len(call.values)))
        return call.returned()

    def _launch(self, given, stream):
        """Launches on inputs in the signature's order; a tuple of the results."""
        call = _Call(self, given, {}, None, stream)
        check(LIB.tk_kernel_launch(self._handle, call.stream, call.values, len(call.values)))
        return tuple(call.given[self._num_params:])

    def _gradients(self):
        """The module's kernels that are gradients of this one."""
        module = self._module
        if self._known_gradients is None and module is not None:
            self._known_gradients = [module[name] for name in module.kernels
                                     if _autograd.is_gradient(self, module[name])]
        return self._known_gradients or []

    def prepare(self, *args, out=None, stream=None, progress=None, threads=None, **named):
        """Compiles and loads for such arguments, so that a call like it can be captured in a graph.

        With sizes instead, such as `prepare(T=range(1, 8193), B=[1, 2, 4, 8], D=128)`, compiles every
        variant that calls of these sizes select, `threads` at once, and returns how many there are.
        A range is served by at most four variants; each size of a list has its own. Every dimension
        must be given; scalars may be. `progress(done, total)` is called after each variant."""
        if not args and out is None and any(name in named for name in _prepare.dims_of(self)):
            return _prepare.prepare(self, named, progress, threads)
        call = _Call(self, args, named, out, stream)
        check(LIB.tk_kernel_prepare(self._handle, call.values, len(call.values)))

    def text(self, stage, target=None):
        """The text of a stage, such as "fused", "cuda" or "ptx"."""
        text, size = ctypes.c_void_p(), ctypes.c_size_t()
        check(LIB.tk_kernel_text(self._handle, stage.encode(), _bytes(target), ctypes.byref(text),
                                 ctypes.byref(size)))
        try:
            return ctypes.string_at(text, size.value).decode(errors="surrogateescape")
        finally:
            LIB.tk_text_free(text)


def _sort(kernel, args, named, out):
    """The arguments in the signature's order; None for what was not given."""
    names, count = kernel._names, kernel._num_params
    if len(args) > count:
        raise TypeError(f"{kernel.signature} takes {count} arguments, got {len(args)}")
    given = list(args) + [None] * (len(names) - len(args))
    if out is not None and not isinstance(out, dict):
        results = list(out) if isinstance(out, (tuple, list)) else [out]
        if len(results) != len(names) - count:
            raise TypeError(f"{kernel.signature} has {len(names) - count} results, got "
                            f"{len(results)}")
        out = dict(zip(names[count:], results))
    for where, values in (("argument", named), ("result", out or {})):
        for name, value in values.items():
            at = names.index(name) if name in names else -1
            if at < 0 or (where == "result") != (at >= count):
                raise TypeError(f"{kernel.signature} has no {where} '{name}'")
            if given[at] is not None:
                raise TypeError(f"argument '{name}' is given twice")
            given[at] = value
    return given


def _is_real(value):
    """Whether float() takes the value as a number. It would also parse a text, and drop the imaginary
    part of some complex numbers."""
    if isinstance(value, numbers.Real):
        return True
    return hasattr(type(value), "__float__") and not isinstance(value, numbers.Complex)


class _Call:
    """The values of one call, and what must live until it is launched."""

    def __init__(self, kernel, args, named, out, stream):
        self.kernel = kernel
        self.given = _sort(kernel, args, named, out)
        tensors = [value for value in self.given if _tensors.is_tensor(value)]
        device = _tensors.device_of(tensors[0]) if tensors else -1
        self.stream = _tensors.current_stream(device) if stream is None else stream
        self.values = (Value * len(self.given))()
        self._keep = [self._fill(i, value) for i, value in enumerate(self.given)]
        self._make_results(tensors)

    def returned(self):
        results = self.given[self.kernel._num_params:]
        return results[0] if len(results) == 1 else tuple(results)

    def _fill(self, i, given):
        value, argument = self.values[i], self.kernel._arguments[i]
        if _tensors.is_tensor(given):
            try:
                return _tensors.fill(value, given, self.stream,
                                     argument.is_result or argument.is_in_out)
            except _tensors.ReadOnlyError:
                kind = "result" if argument.is_result else "inout argument"
                raise TypeError(f"{kind} '{self.kernel._names[i]}': the array is read-only") from None
        if given is None:
            if not argument.is_result and not argument.has_default:
                raise TypeError(f"{self.kernel.signature}: argument '{self.kernel._names[i]}' is "
                                "missing")
            value.kind = ABSENT
        elif argument.is_tensor:
            raise TypeError(f"argument '{self.kernel._names[i]}': expected a tensor with "
                            f"__dlpack__, got {type(given).__name__}")
        else:
            self._fill_scalar(i, given)
        return None

    def _fill_scalar(self, i, given):
        value, argument = self.values[i], self.kernel._arguments[i]
        name, wanted = self.kernel._names[i], DTYPES[argument.dtype]
        is_boolean = isinstance(given, bool) or type(given).__name__ in ("bool", "bool_")
        if isinstance(given, numbers.Integral) and not (is_boolean and argument.dtype <= LAST_FLOAT):
            number = int(given)
            if not -2**63 <= number < 2**63:
                raise Error("overflow", f"argument '{name}': {number} does not fit in 64 bits")
            value.kind, value.integer = INTEGER, number
        elif is_boolean and argument.dtype > LAST_FLOAT:
            value.kind, value.integer = INTEGER, int(given)
        elif is_boolean or not _is_real(given):
            raise TypeError(f"argument '{name}': expected a number for {wanted}, got "
                            f"{type(given).__name__}")
        else:
            value.kind, value.real = REAL, float(given)

    def _make_results(self, tensors):
        kernel = self.kernel
        missing = [i for i in range(kernel._num_params, len(self.given)) if self.given[i] is None]
        if not missing:
            return
        if not tensors:
            raise TypeError(f"{kernel.signature}: give the results as out=, there is no tensor "
                            "to make them like")
        count = LIB.tk_kernel_num_dims(kernel._handle)
        dims = (ctypes.c_int64 * max(count, 1))()
        check(LIB.tk_kernel_solve(kernel._handle, self.values, len(self.values), dims))
        for d in range(count):
            if dims[d] < 0:
                name = LIB.tk_kernel_dim_name(kernel._handle, d).decode()
                raise Error("invalid_argument", f"no argument determines dimension '{name}': give "
                            "the results as out=")
        for i in missing:
            shape, rank = (ctypes.c_int64 * 8)(), ctypes.c_int32()
            check(LIB.tk_kernel_shape_for(kernel._handle, i, self.values, len(self.values), shape,
                                          ctypes.byref(rank)))
            self.given[i] = _tensors.empty_like(tensors[0], kernel._arguments[i].dtype,
                                                tuple(shape[:rank.value]))
            self._keep.append(self._fill(i, self.given[i]))
