"""Other libraries' tensors as values of the C interface, results like the inputs, and streams."""
import ctypes
import sys

from ._library import DTYPES, LIB, TENSOR, Error, check

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

_TORCH_NAMES = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
                "int64", "int32", "int16", "int8", "uint8", "bool")
_NUMPY_NAMES = ("float64", "float32", "float16", None, None, None, "int64", "int32", "int16",
                "int8", "uint8", "bool")

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
    # DLPack's capsules of most libraries have no word for arrays that are read-only: these are not
    # exported.
    interface = getattr(tensor, "__array_interface__", None)
    if interface is not None and interface["data"] is not None and interface["data"][1]:
        if is_written:
            raise ReadOnlyError
        return _fill_host(value, tensor, interface)
    if stream is None or device_of(tensor) < 0:
        capsule = tensor.__dlpack__()
    else:
        # The producer makes its work visible to this stream; 1 stands for the default one.
        capsule = tensor.__dlpack__(stream=stream or 1)
    # A DLManagedTensor begins with its DLTensor; the capsule frees it.
    check(LIB.tk_value_from_dlpack(_capsule_pointer(capsule, b"dltensor"), value))
    return capsule


def _fill_host(value, array, interface):
    """Describes a NumPy array by its array interface."""
    try:
        dtype = _NUMPY_NAMES.index(array.dtype.name)
    except ValueError:
        raise Error("unsupported", f"tk has no type for {array.dtype}") from None
    if not array.dtype.isnative:
        raise Error("unsupported", "expected the machine's byte order")
    size = array.dtype.itemsize
    if any(step % size for step in array.strides):
        raise Error("unsupported", "expected strides that are whole elements")
    rank = array.ndim
    shape = (ctypes.c_int64 * max(rank, 1))(*array.shape)
    strides = (ctypes.c_int64 * max(rank, 1))(*[step // size for step in array.strides])
    value.kind, value.dtype, value.rank, value.device = TENSOR, dtype, rank, -1
    value.data, value.shape, value.strides = interface["data"][0], shape, strides
    value.storage_bytes = -1
    return shape, strides, array


def _fill_torch(value, tensor):
    torch = sys.modules["torch"]
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
    """A tensor of the sample's library and device, with a type of tk's."""
    if _is_torch(sample):
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, _TORCH_NAMES[dtype]), device=sample.device)
    library = type(sample).__module__.split(".")[0]
    if library in ("numpy", "cupy"):
        name = _NUMPY_NAMES[dtype]
        if name is None:
            raise TypeError(f"{library} has no type for {DTYPES[dtype]}: give the result as out=")
        return sys.modules[library].empty(shape, dtype=name)
    raise TypeError(f"results like a tensor of '{library}' cannot be made: give them as out=")


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


