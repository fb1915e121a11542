"""Tensors for tk: PyTorch's on a GPU, NumPy's on the host. NumPy has no bf16, so that `HostBf16` holds the bits."""

import ctypes

import numpy as np

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

_DTYPE_CODE = 20  # offset of dtype.code in DLPack's DLTensor: behind data, device and ndim
_BF16 = 4  # kDLBfloat


class HostBf16:
    """An array of bf16 as a tensor of DLPack: a capsule of the bits, with the type's code replaced."""

    def __init__(self, bits):
        self.bits = bits

    @property
    def shape(self):
        return self.bits.shape

    def __dlpack__(self, stream=None):
        capsule = self.bits.__dlpack__()
        ctypes.c_uint8.from_address(_pointer(capsule, b"dltensor") + _DTYPE_CODE).value = _BF16
        return capsule

    def __dlpack_device__(self):
        return self.bits.__dlpack_device__()

    def reshape(self, *shape):
        return HostBf16(self.bits.reshape(*shape))

    def __getitem__(self, index):
        return HostBf16(self.bits[index])


class HostArrays:
    """NumPy's arrays."""

    has_graphs = False

    def bf16(self, *shape, bits=None):
        return HostBf16(np.zeros(shape, np.uint16) if bits is None else np.array(bits, np.uint16))

    def array(self, values, dtype):
        return np.array(values, dtype)

    def write(self, tensor, values):
        tensor[...] = values

    def numpy(self, tensor):
        return np.array(tensor)


class TorchArrays:
    """PyTorch's tensors. On a GPU all work is ordered on a stream of its own, which graphs are captured on."""

    def __init__(self, device="cuda"):
        import torch

        self._torch, self._device = torch, device
        self.has_graphs = device == "cuda"
        if self.has_graphs:
            self._stream = torch.cuda.Stream()
            torch.cuda.set_stream(self._stream)

    def bf16(self, *shape, bits=None):
        if bits is None:
            return self._torch.zeros(shape, dtype=self._torch.bfloat16, device=self._device)
        signed = self._torch.from_numpy(bits.view(np.int16))
        return signed.to(self._device).view(self._torch.bfloat16).clone()

    def array(self, values, dtype):
        return self._torch.from_numpy(np.array(values, dtype)).to(self._device)

    def write(self, tensor, values):
        tensor.copy_(self._torch.from_numpy(values))

    def numpy(self, tensor):
        return tensor.cpu().numpy()

    def capture(self, function):
        """A function that launches again what `function` launches. It must have run on this stream before."""
        graph = self._torch.cuda.CUDAGraph()
        with self._torch.cuda.graph(graph, stream=self._stream):
            function()
        return graph.replay
