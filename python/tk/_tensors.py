"""Other libraries' tensors as values of the C interface, results like the inputs, and streams."""
import ctypes
import sys

from ._library import DTYPES, LIB, NATIVE, TENSOR, Error, Value, check

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

_TORCH_NAMES = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
                "int64", "int32", "int16", "int8", "uint8", "bool")
_NUMPY_NAMES = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int64",
                "int32", "int16", "int8", "uint8", "bool")

_CUDA_DEVICES = (2, 13)  # kDLCUDA, kDLCUDAManaged


def _is_torch(value):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_tensor(value):
    return _is_torch(value) or (hasattr(value, "__dlpack__") and hasattr(value, "shape"))


def device_of(value):
    """The number of the CUDA device that a tensor is on, or -1 for host memory."""
    if _is_torch(value):
        return value.get_device() if value.is_cuda else -1
    kind, index = value.__dlpack_device__()
    return index if int(kind) in _CUDA_DEVICES else -1


class ReadOnlyError(Exception):
    """An array that may not be written, where the kernel writes."""


def fill(value, tensor, stream, is_written):
    """Describes a tensor in a tk_value; returns what must live as long as the value. `is_written`
    says whether the kernel writes to it."""
    if _is_torch(tensor):
        return _fill_torch(value, tensor)
    # DLPack's capsules of most libraries have no word for arrays that are read-only, and none have
    # NumPy's types of ml_dtypes.
    interface = getattr(tensor, "__array_interface__", None)
    if interface is not None and interface["data"] is not None:
        return _fill_host(value, tensor, interface, is_written)
    if stream is None or device_of(tensor) < 0:
        capsule = tensor.__dlpack__()
    else:
        # The producer makes its work visible to this stream; 1 stands for the default one.
        capsule = tensor.__dlpack__(stream=stream or 1)
    # A DLManagedTensor begins with its DLTensor; the capsule frees it.
    check(LIB.tk_value_from_dlpack(_capsule_pointer(capsule, b"dltensor"), value))
    return capsule


def _fill_host(value, array, interface, is_written):
    """Describes a NumPy array by its array interface."""
    try:
        dtype = _NUMPY_NAMES.index(array.dtype.name)
    except ValueError:
        raise Error("unsupported", f"tk has no type for {array.dtype}") from None
    if not array.dtype.isnative:
        raise Error("unsupported", "expected the machine's byte order")
    data, read_only = interface["data"]
    if read_only and is_written:
        raise ReadOnlyError
    size = array.dtype.itemsize
    if any(step % size for step in array.strides):
        raise Error("unsupported", "expected strides that are whole elements")
    rank = array.ndim
    shape = (ctypes.c_int64 * max(rank, 1))(*array.shape)
    strides = (ctypes.c_int64 * max(rank, 1))(*[step // size for step in array.strides])
    value.kind, value.dtype, value.rank, value.device = TENSOR, dtype, rank, -1
    value.data, value.shape, value.strides = data, shape, strides
    value.storage_bytes = -1
    return shape, strides, array


def form_of(tensor, is_written=False):
    """All but the address of a tensor that a bound kernel rests on, to be compared."""
    if _is_torch(tensor):
        return tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.device, tensor.is_neg()
    flags = getattr(tensor, "flags", None)
    if flags is not None and hasattr(tensor, "__array_interface__"):
        return tensor.dtype, tensor.shape, tensor.strides, not is_written or flags.writeable
    value = Value()
    keep = fill(value, tensor, None, is_written)
    strides = tuple(value.strides[:value.rank]) if value.strides else None
    form = DTYPES[value.dtype], tuple(value.shape[:value.rank]), strides, value.device
    del keep
    return form


def address_of(tensor):
    """The address of a tensor whose form is known to fit."""
    if _is_torch(tensor):
        return tensor.data_ptr()
    interface = getattr(tensor, "__array_interface__", None)
    if interface is not None:
        return interface["data"][0]
    value = Value()
    fill(value, tensor, None, False)
    return value.data


def _fill_torch(value, tensor):
    torch = sys.modules["torch"]
    if tensor.is_neg():
        raise Error("unsupported", "the memory of this view holds negated values: pass tensor.resolve_neg()")
    for dtype, name in enumerate(_TORCH_NAMES):
        if getattr(torch, name, None) == tensor.dtype:
            break
    else:
        raise TypeError(f"tk has no type for {tensor.dtype}")
    rank = tensor.dim()
    shape = (ctypes.c_int64 * max(rank, 1))(*tensor.shape)
    strides = (ctypes.c_int64 * max(rank, 1))(*tensor.stride())
    value.kind, value.dtype, value.rank, value.device = TENSOR, dtype, rank, device_of(tensor)
    value.data, value.shape, value.strides = tensor.data_ptr(), shape, strides
    value.storage_bytes = -1
    return shape, strides


def empty_like(sample, dtype, shape):
    """A tensor of the sample's library and device, with a type of tk's; without a sample NumPy's."""
    if _is_torch(sample):
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, _TORCH_NAMES[dtype]), device=sample.device)
    if sample is None:
        import numpy
        is_array = True
    else:
        numpy = sys.modules.get("numpy")
        is_array = numpy is not None and isinstance(sample, numpy.ndarray)
    library = "numpy" if is_array else type(sample).__module__.split(".")[0]
    if library in ("numpy", "cupy"):
        name = _NUMPY_NAMES[dtype]
        if DTYPES[dtype] in ("bf16", "f8e4m3", "f8e5m2"):
            name = _type_of_ml_dtypes(library, dtype)
        return sys.modules[library].empty(shape, dtype=name)
    raise TypeError(f"results like a tensor of '{library}' cannot be made: give them as out=")


def _type_of_ml_dtypes(library, dtype):
    """NumPy's type of the package ml_dtypes."""
    try:
        import ml_dtypes
    except ImportError:
        ml_dtypes = None
    if library != "numpy" or ml_dtypes is None:
        raise TypeError(f"{library} has no type for {DTYPES[dtype]}: give the result as out="
                        + (", or install ml_dtypes" if library == "numpy" else ""))
    return getattr(ml_dtypes, _NUMPY_NAMES[dtype])


def current_stream(device):
    """The stream that the libraries in use work on; the default one where none says."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if device < 0:
        return None
    if torch is not None and torch.cuda.is_available():
        return torch.cuda.current_stream(device).cuda_stream
    if cupy is not None:
        with cupy.cuda.Device(device):
            return cupy.cuda.get_current_stream().ptr
    return 0




def _source_of(kind):
    """How the extension describes tensors of a type: by the capsule of DLPack's exchange API; True: by
    the buffer protocol; None: it leaves them to this module. Subclasses may have no memory."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and issubclass(kind, torch.Tensor):
        if kind not in (torch.Tensor, torch.nn.Parameter):
            return None
        return getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if numpy is not None and issubclass(kind, numpy.ndarray):
        return kind is numpy.ndarray or None
    return vars(kind).get("__dlpack_c_exchange_api__")


def _is_recording():
    torch = sys.modules.get("torch")
    return torch is not None and torch.is_grad_enabled()


def _address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


if NATIVE:
    NATIVE.connect(_address(LIB.tk_kernel_launch), _address(LIB.tk_bound_launch),
                   _address(LIB.tk_value_from_dlpack), _address(LIB.tk_kernel_shape_for), check,
                   _source_of, empty_like, _is_recording)
