"""Kernels as operators of PyTorch.

    norm = tk.torch.op("mylib::rms_norm", tk.compile_file("norm.tk")["rms_norm"])
    y = norm(x, w)                         # also torch.ops.mylib.rms_norm(x, w)

torch.compile, torch.export and torch.autograd see one operator with a schema, not Python code.
"""
import re

import torch

from ._library import DTYPES, LAST_FLOAT, LIB
from ._prepare import dims_of
from ._tensors import _TORCH_NAMES

_NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*")


class _Extents:
    """The shapes of a kernel's arguments as expressions over its dimensions and integer scalars."""

    def __init__(self, kernel):
        self.kernel, self.dims = kernel, dims_of(kernel)
        self.texts = [self._of(i, argument) for i, argument in enumerate(kernel._arguments)]
        # In expressions of integers `/` is the division that rounds down.
        self._code = {text: compile(text.replace("/", "//"), "<extent>", "eval")
                      for texts in self.texts for text in texts}

    def _of(self, index, argument):
        if not argument.is_tensor:
            return []
        return [LIB.tk_kernel_extent(self.kernel._handle, index, axis).decode()
                for axis in range(argument.rank)]

    def variables(self, given):
        """The dimensions that the inputs determine, and the integer scalars. Sizes may be symbols."""
        kernel, found = self.kernel, {}
        for name, argument, value in zip(kernel._names, kernel._arguments, given):
            if not argument.is_tensor and argument.dtype > LAST_FLOAT and value is not None:
                found[name] = value
        tensors = [(texts, value) for texts, value in zip(self.texts, given) if texts]
        for texts, value in tensors:
            for text, size in zip(texts, value.shape):
                if text in self.dims:
                    found.setdefault(text, size)
        for texts, value in tensors:
            for text, size in zip(texts, value.shape):
                factor, _, name = text.partition(" * ")
                if factor.isdigit() and int(factor) and name in self.dims:
                    found.setdefault(name, size // int(factor))
        return found

    def shape(self, index, variables):
        return [eval(self._code[text], {"__builtins__": {}}, variables)  # pylint: disable=eval-used
                for text in self.texts[index]]

    def check(self, given, variables):
        """Refuses what a launch refuses: another type, rank or size than the signature has."""
        kernel = self.kernel
        for index, value in enumerate(given):
            argument, name = kernel._arguments[index], kernel._names[index]
            if not argument.is_tensor:
                continue
            wanted = _dtype(argument)
            torch._check(value.dtype == wanted,
                         lambda: f"argument '{name}': expected {wanted}, got {value.dtype}")
            torch._check(value.dim() == argument.rank,
                         lambda: f"argument '{name}': expected {argument.rank} axes, got {value.dim()}")
        for index, value in enumerate(given):
            if not kernel._arguments[index].is_tensor:
                continue
            for axis, (size, wanted) in enumerate(zip(value.shape, self.shape(index, variables))):
                torch._check(size == wanted, lambda: f"argument '{kernel._names[index]}': axis {axis} has "
                             f"the size {size}, expected {wanted}")


def _dtype(argument):
    return getattr(torch, _TORCH_NAMES[argument.dtype])


def _schema(kernel):
    """Such as "(Tensor x, Tensor(a0!) cache, float? eps=None) -> Tensor"."""
    count = kernel._num_params
    params, written = [], []
    last = max((i for i in range(count) if not kernel._arguments[i].has_default), default=-1)
    for i, (name, argument) in enumerate(zip(kernel._names[:count], kernel._arguments)):
        if argument.is_tensor and argument.is_in_out:
            params.append(f"Tensor(a{len(written)}!) {name}")
            written.append(name)
        elif argument.is_tensor:
            params.append(f"Tensor {name}")
        else:
            kind = ("bool" if DTYPES[argument.dtype] == "bool" else
                    "SymInt" if argument.dtype > LAST_FLOAT else "float")
            optional = "?" if argument.has_default else ""
            # A schema has arguments with defaults last.
            params.append(f"{kind}{optional} {name}" + ("=None" if i > last else ""))
    results = ["Tensor"] * (len(kernel._names) - count)
    returned = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"({', '.join(params)}) -> {returned}", written


def _register(name, kernel):
    """The operator without a gradient."""
    count = kernel._num_params
    if not any(argument.is_tensor for argument in kernel._arguments[:count]):
        raise TypeError(f"{kernel.signature}: an operator needs a tensor among its inputs")
    extents = _Extents(kernel)
    schema, written = _schema(kernel)

    def returned(results):
        return results[0] if len(results) == 1 else tuple(results) if results else None

    def run(*given):
        dense = [value.contiguous() if argument.is_tensor and not argument.is_strided and
                 not argument.is_in_out else value
                 for argument, value in zip(kernel._arguments, given)]
        with torch.no_grad():
            return returned(kernel._launch(dense, None))

    def fake(*given):
        variables = extents.variables(given)
        extents.check(given, variables)
        like = next(value for value in given if isinstance(value, torch.Tensor))
        return returned([like.new_empty(extents.shape(i, variables), dtype=_dtype(kernel._arguments[i]))
                         for i in range(count, len(kernel._names))])

    def refuse_vmap(info, in_dims, *given):
        raise NotImplementedError(
            f"{name} has no rule for torch.vmap: write the batch as an index of the kernel, as in "
            "`x[b, i]`, and call the operator once")

    operator = torch.library.custom_op(name, run, mutates_args=written, schema=schema)
    operator.register_fake(fake)
    operator.register_vmap(refuse_vmap)
    return operator


def _wanted(kernel, gradients, wanted):
    """The number of the gradient with the fewest results that has all that are wanted."""
    fits = [i for i, gradient in enumerate(gradients)
            if wanted <= set(gradient._names[gradient._num_params:])]
    if fits:
        return min(fits, key=lambda i: len(gradients[i]._names))
    names = ", ".join(sorted(name[2:] for name in wanted))
    kernel_name = kernel.signature.split("(")[0]
    raise TypeError(f"{kernel.signature}: no `grad` item gives {', '.join(sorted(wanted))}. Add "
                    f"`grad {kernel_name}_backward = {kernel_name} wrt ({names})` to the program")


def _register_autograd(operator, kernel, gradients, operators):
    count = kernel._num_params
    results = kernel._names[count:]

    def wanted_of(ctx):
        return {"d_" + name for name, is_wanted in zip(kernel._names, ctx.needs_input_grad) if is_wanted}

    def setup_context(ctx, inputs, output):
        made = output if isinstance(output, tuple) else (output,)
        if wanted_of(ctx):
            _wanted(kernel, gradients, wanted_of(ctx))
        ctx.save_for_backward(*[value for value in inputs if isinstance(value, torch.Tensor)], *made)
        ctx.scalars = [None if isinstance(value, torch.Tensor) else value for value in inputs]
        ctx.mark_non_differentiable(*[value for value in made if not value.is_floating_point()])

    def backward(ctx, *cotangents):
        number = _wanted(kernel, gradients, wanted_of(ctx))
        gradient = gradients[number]
        saved = iter(ctx.saved_tensors)
        given = [next(saved) if argument.is_tensor else scalar
                 for argument, scalar in zip(kernel._arguments, ctx.scalars)]
        made = list(saved)
        by_name = {"d_" + name: torch.zeros_like(value) if cotangent is None else
                   cotangent.to(value.dtype)
                   for name, value, cotangent in zip(results, made, cotangents)}
        rest = gradient._names[len(kernel._names):gradient._num_params]
        found = operators[number](*given, *made, *[by_name[name] for name in rest])
        found = found if isinstance(found, (tuple, list)) else (found,)
        of_names = dict(zip(gradient._names[gradient._num_params:], found))
        return tuple(of_names.get("d_" + name) if is_wanted else None
                     for name, is_wanted in zip(kernel._names, ctx.needs_input_grad))

    operator.register_autograd(backward, setup_context=setup_context)


def op(name, kernel):
    """Registers a kernel as the operator `name`, such as "mylib::rms_norm", and returns it.

    Tensors and numbers are passed in the signature's order or by name; scalars with a default may be
    left out. An `inout` parameter is written in place. Results are new tensors. The operator has
    gradients if the module has `grad` items of the kernel: these become operators of their own,
    `name__gradient`. It has no rule for torch.vmap."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise TypeError(f"expected a name such as 'mylib::rms_norm', got {name!r}")
    operator = _register(name, kernel)
    # Whoever differentiates a kernel that writes to its arguments would not see the old values.
    is_functional = not any(argument.is_in_out for argument in kernel._arguments)
    gradients = kernel._gradients() if is_functional else []
    if gradients:
        operators = [_register(f"{name}__{gradient.signature.split('(')[0]}", gradient)
                     for gradient in gradients]
        _register_autograd(operator, kernel, gradients, operators)
    return operator
