"""Kernels written in index notation, compiled and launched on any DLPack tensor.

    import tk
    attention = tk.compile_file("attention.tk")["attention"]
    o, lse = attention(q, k, v)            # torch tensors: on their device's current stream

A thin layer over the C interface of libtk.so, which lies at $TK_LIBRARY, else beside the package, else
in the prefix or the source tree that the package is part of.
"""
from ._library import Error, version
from ._mesh import Mesh, MeshKernel
from ._module import BoundKernel, Kernel, Module, compile, compile_file, load_bundle

__all__ = ["BoundKernel", "Error", "Kernel", "Mesh", "MeshKernel", "Module", "compile", "compile_file", "load_bundle",
           "version"]

__version__ = version()


def __getattr__(name):
    # PyTorch is imported by those alone who use it.
    if name == "torch":
        import importlib
        return importlib.import_module("tk.torch")
    raise AttributeError(f"module 'tk' has no attribute '{name}'")
