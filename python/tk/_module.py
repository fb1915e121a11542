"""Modules and kernels."""
import ctypes
import json
import numbers
import os
import sys

from . import _autograd, _prepare, _tensors
from ._call import Call, sort_arguments
from ._library import LIB, NATIVE, Argument, Error, check

_REPORTS = ("explain", "inspect", "cost")  # what the library gives beside the stages


def compile(source, target=None, file_name="<string>", disable_passes=(), checked=False, schedule=None,
            background=False, few_keys=False):
    """Compiles the text of a .tk file. `target` is "cpu", "gpu", "sm_90a", …; the GPU where there is
    one, else the CPU. Launches of `checked` kernels report indices from tensors that are outside,
    instead of reading 0, and wait for what comes before them on the stream. `disable_passes` names
    passes or groups to leave out. `schedule` is the text of schedule blocks that replace the
    program's. With `background` a call whose sizes have no code yet runs general code, and code for
    them is compiled by another thread meanwhile; kernels that are `@deterministic` take no part. With
    `few_keys` sizes of a dimension that grows share code, and some programs are slower."""
    return _compile(source.encode(), target, file_name, disable_passes, checked, schedule, background, few_keys)


def _compile(text, target, file_name, disable_passes, checked, schedule, background, few_keys):
    if isinstance(disable_passes, str):
        raise TypeError("disable_passes: expected a sequence of names, got a text")
    handle = ctypes.c_void_p()
    call = LIB.tk_compile_checked if checked else LIB.tk_compile_with
    check(call(text, len(text), os.fsencode(file_name), _bytes(target),
               ",".join(disable_passes).encode(), _bytes(schedule), ctypes.byref(handle)))
    module = Module(handle)
    if background:
        check(LIB.tk_module_compile_in_background(handle))
    if few_keys:
        check(LIB.tk_module_use_few_keys(handle))
    return module


def compile_file(path, target=None, checked=False, disable_passes=(), schedule=None, background=False, few_keys=False):
    """Compiles a .tk file; the options are those of compile."""
    try:
        with open(path, "rb") as file:
            text = file.read()
    except OSError as error:
        raise Error("io", str(error)) from None
    return _compile(text, target, path, disable_passes, checked, schedule, background, few_keys)


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

    def wait(self):
        """Returns once nothing is compiled in the background: calls then run code for their sizes."""
        check(LIB.tk_module_wait(self._handle))

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
        self._launch_natively = None
        if NATIVE and len(self._names) <= 32:
            self._launch_natively = NATIVE.Launcher(handle.value, tuple(
                (sys.intern(name), a.dtype, bool(a.is_tensor), bool(a.is_result or a.is_in_out),
                 bool(a.has_default)) for name, a in zip(self._names, self._arguments)),
                self._num_params).launch

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
        if self._launch_natively:
            results = self._launch_natively(args, out, stream, named)
            if results is not None:
                return results
        if out is None and _autograd.wants_gradient([*args, *named.values()]):
            given = sort_arguments(self, args, named, None)
            return _autograd.call(self, _autograd.gradient_for(self, given), given, stream)
        call = Call(self, args, named, out, stream)
        check(LIB.tk_kernel_launch(self._handle, call.stream, call.values, len(call.values)))
        return call.returned()

    def _launch(self, given, stream):
        """Launches on inputs in the signature's order; a tuple of the results."""
        call = Call(self, given, {}, None, stream)
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
        call = Call(self, args, named, out, stream)
        check(LIB.tk_kernel_prepare(self._handle, call.values, len(call.values)))

    def bind(self, *args, out=None, **named):
        """Checks and compiles as a call does, and returns a BoundKernel for these shapes, types,
        strides and scalars."""
        call = Call(self, args, named, out, None)
        handle = ctypes.c_void_p()
        check(LIB.tk_kernel_bind(self._handle, call.values, len(call.values), ctypes.byref(handle)))
        return BoundKernel(handle, call)

    def text(self, stage, target=None, dims=None):
        """The text of a stage, such as "fused", "cuda" or "ptx". Without `dims` nothing is assumed of
        the sizes; with it, a dictionary of some of them, tensors are usual ones."""
        if stage in _REPORTS:
            raise Error("invalid_argument", f"there is no stage '{stage}'")
        return self._text(stage, target, dims)

    def explain(self, target=None, dims=None):
        """What the passes derived and declined, by lines of the source."""
        return self._text("explain", target, dims or {})

    def inspect(self, target=None, dims=None, cost_only=False):
        """What the GPU code uses, and what its launches cost where `dims` has all dimensions: a
        dictionary. With `cost_only` nothing is compiled, and no NVRTC is needed."""
        return json.loads(self._text("cost" if cost_only else "inspect", target, dims or {}))

    def _text(self, stage, target, dims):
        text, size = ctypes.c_void_p(), ctypes.c_size_t()
        if dims is None:
            check(LIB.tk_kernel_text(self._handle, stage.encode(), _bytes(target), ctypes.byref(text),
                                     ctypes.byref(size)))
        else:
            sizes = self._sizes(dims)
            check(LIB.tk_kernel_text_for(self._handle, stage.encode(), _bytes(target), sizes, len(sizes),
                                         ctypes.byref(text), ctypes.byref(size)))
        try:
            return ctypes.string_at(text, size.value).decode(errors="surrogateescape")
        finally:
            LIB.tk_text_free(text)

    def _sizes(self, dims):
        """The sizes in the order of the kernel's dimensions; -1 for those that `dims` lacks."""
        names = [LIB.tk_kernel_dim_name(self._handle, d).decode()
                 for d in range(LIB.tk_kernel_num_dims(self._handle))]
        for name, size in dims.items():
            if name not in names:
                raise Error("invalid_argument", f"{self.signature} has no dimension '{name}'")
            if not isinstance(size, numbers.Integral) or not 0 <= size < 2**63:
                raise Error("invalid_argument", f"dimension '{name}': expected a size, got {size!r}")
        return (ctypes.c_int64 * len(names))(*[int(dims.get(name, -1)) for name in names])


class BoundKernel(NATIVE.Bound if NATIVE else object):
    """A kernel bound to shapes, types, strides and scalars: launches check addresses alone."""

    def __init__(self, handle, call):
        self._handle = handle
        self._kernel = call.kernel
        self._call = call  # whose tensors a launch without arguments takes
        places = [i for i, argument in enumerate(call.kernel._arguments) if argument.is_tensor]
        arguments = [call.kernel._arguments[i] for i in places]
        tensors = [call.given[i] for i in places]
        self._written = [bool(argument.is_result or argument.is_in_out) for argument in arguments]
        self._forms = [_tensors.form_of(*pair) for pair in zip(tensors, self._written)]
        self._own = (ctypes.c_void_p * len(places))(*[call.values[i].data for i in places])
        self._device = _tensors.device_of(tensors[0]) if tensors else -1
        self._results = call.returned()
        if NATIVE:
            self._connect(handle.value, tuple(tensors), tuple(self._own), tuple(self._written), self._device,
                          self._results, len(arguments) - sum(not a.is_result for a in arguments))

    def __del__(self):
        if getattr(self, "_handle", None):
            LIB.tk_bound_free(self._handle)

    def __repr__(self):
        return f"<tk.BoundKernel {self._kernel.signature}>"

    def _launch(self, *tensors, stream=None):
        """Launches on other tensors of the same shapes, types, strides and device: the tensor
        parameters in order, then the results. Without arguments: on the tensors that were bound.
        Returns the results."""
        if stream is None:
            stream = _tensors.current_stream(self._device)
        if not tensors:
            check(LIB.tk_bound_launch(self._handle, stream, self._own, len(self._own)))
            return self._results
        forms = self._forms
        if len(tensors) != len(forms):
            raise TypeError(f"{self._kernel.signature}: expected {len(forms)} tensors, parameters and "
                            f"results, got {len(tensors)}")
        for at, tensor in enumerate(tensors):
            if _tensors.form_of(tensor, self._written[at]) != forms[at]:
                self._refuse(at, tensor)
        pointers = (ctypes.c_void_p * len(forms))(*[_tensors.address_of(t) for t in tensors])
        check(LIB.tk_bound_launch(self._handle, stream, pointers, len(forms)))
        count = len(forms) - (len(self._kernel._names) - self._kernel._num_params)
        return tensors[count] if len(forms) - count == 1 else tensors[count:]

    def _refuse(self, at, tensor):
        names = [name for name, argument in zip(self._kernel._names, self._kernel._arguments)
                 if argument.is_tensor]
        raise Error("shape_mismatch", f"argument '{names[at]}': bound as {self._forms[at]}, got "
                    f"{_tensors.form_of(tensor, self._written[at])}")


if not NATIVE:
    BoundKernel.__call__ = BoundKernel._launch
