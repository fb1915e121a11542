"""The arguments of one call."""
import ctypes
import numbers

from . import _tensors
from ._library import (ABSENT, DTYPES, INTEGER, LAST_FLOAT, LIB, REAL, Error, Value, check)


def sort_arguments(kernel, args, named, out):
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


class Call:
    """The values of one call, and what must live until it is launched."""

    def __init__(self, kernel, args, named, out, stream):
        self.kernel = kernel
        self.given = sort_arguments(kernel, args, named, out)
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
        target = kernel._module.target if kernel._module else ""
        if not tensors and target != "cpu" and not target.startswith("emu"):
            raise TypeError(f"{kernel.signature}: give the results as out=, there is no tensor "
                            "to make them like")
        sample = tensors[0] if tensors else None  # NumPy's arrays
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
            self.given[i] = _tensors.empty_like(sample, kernel._arguments[i].dtype,
                                                tuple(shape[:rank.value]))
            self._keep.append(self._fill(i, self.given[i]))
