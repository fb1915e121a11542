"""Sizes to prepare kernels for, as values of the C interface."""
import ctypes
import numbers

from ._library import LIB, PROGRESS, Error, Sizes, check


def dims_of(kernel):
    """The names of a kernel's dimensions."""
    count = LIB.tk_kernel_num_dims(kernel._handle)
    return [LIB.tk_kernel_dim_name(kernel._handle, d).decode() for d in range(count)]


def _size(name, value):
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"dimension '{name}': expected an integer, a range or a list of integers, "
                        f"got {type(value).__name__}")
    if not -2**63 <= value < 2**63:
        raise Error("overflow", f"dimension '{name}': {value} does not fit in 64 bits")
    return int(value)


def _describe(sizes, name, value, is_dim):
    """Fills in a tk_sizes."""
    sizes.name = name.encode()
    if not is_dim:
        sizes.kind, sizes.scalar = Sizes.SCALAR, float(value)
    elif isinstance(value, range) and len(value) > 0:
        ordered = value if value.step > 0 else value[::-1]
        sizes.kind, sizes.step = Sizes.RANGE, ordered.step
        sizes.first, sizes.last = _size(name, ordered[0]), _size(name, ordered[-1])
    else:
        values = value if hasattr(value, "__iter__") and not isinstance(value, str) else [value]
        values = [_size(name, one) for one in values]
        sizes.kind, sizes.count = Sizes.LIST, len(values)
        sizes.list = (ctypes.c_int64 * max(len(values), 1))(*values)


def prepare(kernel, named, progress, threads):
    """Compiles the variants that the sizes select; how many there are. See Kernel.prepare."""
    dims = dims_of(kernel)
    request = (Sizes * max(len(named), 1))()
    for sizes, (name, value) in zip(request, named.items()):
        _describe(sizes, name, value, name in dims or name not in kernel._names)
    raised = []

    def tell(_, done, total):
        try:
            progress(done, total)
        except BaseException as error:  # pylint: disable=broad-except
            raised.append(error)
        return len(raised)

    count = ctypes.c_size_t()
    status = LIB.tk_kernel_prepare_sizes(kernel._handle, request, len(named), threads or 0,
                                         PROGRESS(tell) if progress else PROGRESS(), None,
                                         ctypes.byref(count))
    if raised:
        raise raised[0]
    check(status)
    return count.value
