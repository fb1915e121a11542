"""Kernels written in index notation, compiled and launched on any DLPack tensor.

    import tk
    attention = tk.compile_file("attention.tk")["attention"]
    o, lse = attention(q, k, v)            # torch tensors: on their device's current stream

A thin layer over the C interface of libtk.so, which is looked for at $TK_LIBRARY, where tk is
installed, and in the build folder.
"""
from ._library import Error, version
from ._module import Kernel, Module, compile, compile_file, load_bundle

__all__ = ["Error", "Kernel", "Module", "compile", "compile_file", "load_bundle", "version"]


def __getattr__(name):
    # PyTorch is imported by those alone who use it.
    if name == "torch":
        import importlib
        return importlib.import_module("tk.torch")
    raise AttributeError(f"module 'tk' has no attribute '{name}'")
