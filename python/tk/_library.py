"""libtk.so, its functions' types and its errors."""
import ctypes
import importlib.machinery
import importlib.util
import os
import pathlib
import sys
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t, c_void_p

ABSENT, TENSOR, INTEGER, REAL = range(4)

# tk_status, by number.
CODES = ("ok", "compile_failed", "invalid_argument", "shape_mismatch", "constraint_failed",
         "overflow", "unsupported", "no_driver", "driver_too_old", "no_device", "no_nvrtc",
         "nvrtc_too_old", "nvrtc_failed", "out_of_memory", "module_load", "launch_failed",
         "needs_prepare", "context_poisoned", "io", "bad_file", "internal",
         "index_out_of_bounds", "write_failed", "interrupted", "frozen",
         "mesh_mismatch", "rank_lost", "no_nccl", "nccl_too_old", "nccl_failed")

# tk_dtype, by number: the names of the language.
DTYPES = ("f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u8", "bool")
LAST_FLOAT = DTYPES.index("f8e5m2")


class Value(ctypes.Structure):
    """tk_value."""
    _fields_ = [("kind", c_int32), ("dtype", c_int32), ("rank", c_int32), ("device", c_int32),
                ("data", c_void_p), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("storage_bytes", c_int64), ("integer", c_int64), ("real", c_double)]


class MeshLayout(ctypes.Structure):
    """tk_mesh_layout."""
    _fields_ = [("names", POINTER(c_char_p)), ("sizes", POINTER(c_int64)), ("axes", c_size_t),
                ("timeout_ms", c_int64), ("network", c_char_p)]


class Argument(ctypes.Structure):
    """tk_argument."""
    _fields_ = [("name", c_char_p)] + [(name, c_int32) for name in (
        "dtype", "is_tensor", "is_result", "is_strided", "is_in_out", "has_default", "rank")]


class Sizes(ctypes.Structure):
    """tk_sizes."""
    LIST, RANGE, SCALAR = range(3)
    _fields_ = [("name", c_char_p), ("kind", c_int32), ("list", POINTER(c_int64)),
                ("count", c_size_t), ("first", c_int64), ("last", c_int64), ("step", c_int64),
                ("scalar", c_double)]


PROGRESS = ctypes.CFUNCTYPE(c_int32, c_void_p, c_size_t, c_size_t)


class Error(Exception):
    """What the compiler or the runtime refused: `code` such as "shape_mismatch", `place` such as
    "attn.tk:41:3" or ""."""

    def __init__(self, code, message, place=""):
        # Diagnostics have their places in them.
        super().__init__(f"{place}: {message}" if place and code != "compile_failed" else message)
        self.code, self.message, self.place = code, message, place


SIGNATURES = {
    # name: (result, arguments)
    "tk_version": (c_char_p, []),
    "tk_last_error": (c_char_p, []),
    "tk_last_error_place": (c_char_p, []),
    "tk_compile_with": (c_int32, [c_char_p, c_size_t, c_char_p, c_char_p, c_char_p, c_char_p,
                                  POINTER(c_void_p)]),
    "tk_compile_checked": (c_int32, [c_char_p, c_size_t, c_char_p, c_char_p, c_char_p, c_char_p,
                                     POINTER(c_void_p)]),
    "tk_compile_file": (c_int32, [c_char_p, c_char_p, POINTER(c_void_p)]),
    "tk_load_bundle": (c_int32, [c_char_p, POINTER(c_void_p)]),
    "tk_module_free": (None, [c_void_p]),
    "tk_module_target": (c_char_p, [c_void_p]),
    "tk_module_diagnostics": (c_char_p, [c_void_p]),
    "tk_module_num_kernels": (c_size_t, [c_void_p]),
    "tk_module_kernel_name": (c_char_p, [c_void_p, c_size_t]),
    "tk_module_kernel": (c_int32, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "tk_kernel_free": (None, [c_void_p]),
    "tk_kernel_signature": (c_char_p, [c_void_p]),
    "tk_kernel_num_dims": (c_size_t, [c_void_p]),
    "tk_kernel_dim_name": (c_char_p, [c_void_p, c_size_t]),
    "tk_kernel_num_arguments": (c_size_t, [c_void_p]),
    "tk_kernel_argument": (c_int32, [c_void_p, c_size_t, POINTER(Argument)]),
    "tk_kernel_extent": (c_char_p, [c_void_p, c_size_t, c_size_t]),
    "tk_value_from_dlpack": (c_int32, [c_void_p, POINTER(Value)]),
    "tk_kernel_solve": (c_int32, [c_void_p, POINTER(Value), c_size_t, POINTER(c_int64)]),
    "tk_kernel_shape": (c_int32, [c_void_p, c_size_t, POINTER(c_int64), POINTER(c_int64),
                                  POINTER(c_int32)]),
    "tk_kernel_shape_for": (c_int32, [c_void_p, c_size_t, POINTER(Value), c_size_t,
                                      POINTER(c_int64), POINTER(c_int32)]),
    "tk_kernel_launch": (c_int32, [c_void_p, c_void_p, POINTER(Value), c_size_t]),
    "tk_kernel_prepare": (c_int32, [c_void_p, POINTER(Value), c_size_t]),
    "tk_kernel_prepare_sizes": (c_int32, [c_void_p, POINTER(Sizes), c_size_t, ctypes.c_uint32,
                                          PROGRESS, c_void_p, POINTER(c_size_t)]),
    "tk_module_freeze": (c_int32, [c_void_p]),
    "tk_module_compile_in_background": (c_int32, [c_void_p]),
    "tk_module_use_few_keys": (c_int32, [c_void_p]),
    "tk_module_wait": (c_int32, [c_void_p]),
    "tk_kernel_text": (c_int32, [c_void_p, c_char_p, c_char_p, POINTER(c_void_p),
                                 POINTER(c_size_t)]),
    "tk_kernel_text_for": (c_int32, [c_void_p, c_char_p, c_char_p, POINTER(c_int64), c_size_t,
                                     POINTER(c_void_p), POINTER(c_size_t)]),
    "tk_kernel_bind": (c_int32, [c_void_p, POINTER(Value), c_size_t, POINTER(c_void_p)]),
    "tk_bound_launch": (c_int32, [c_void_p, c_void_p, POINTER(c_void_p), c_size_t]),
    "tk_bound_free": (None, [c_void_p]),
    "tk_text_free": (None, [c_void_p]),
    "tk_mesh_threads": (c_int32, [POINTER(c_char_p), POINTER(c_int64), c_size_t, c_int64,
                                  POINTER(c_void_p), c_size_t]),
    "tk_mesh_process": (c_int32, [POINTER(MeshLayout), c_char_p, c_int64, POINTER(c_void_p)]),
    "tk_nccl_unique_id": (c_int32, [c_char_p]),
    "tk_mesh_join": (c_int32, [POINTER(MeshLayout), c_char_p, c_int64, c_int32, POINTER(c_void_p)]),
    "tk_mesh_of_communicator": (c_int32, [POINTER(MeshLayout), c_void_p, c_int32,
                                          POINTER(c_void_p)]),
    "tk_mesh_free": (None, [c_void_p]),
    "tk_mesh_rank": (c_int64, [c_void_p]),
    "tk_mesh_size": (c_int64, [c_void_p]),
    "tk_mesh_abort": (c_int32, [c_void_p, c_char_p]),
    "tk_mesh_kernel_make": (c_int32, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "tk_mesh_kernel_free": (None, [c_void_p]),
    "tk_mesh_kernel_plan": (c_char_p, [c_void_p]),
    "tk_mesh_kernel_shape": (c_int32, [c_void_p, c_size_t, POINTER(Value), c_size_t,
                                       POINTER(c_int64), POINTER(c_int32)]),
    "tk_mesh_kernel_launch": (c_int32, [c_void_p, c_void_p, POINTER(Value), c_size_t]),
}


def _candidates():
    """Where libtk.so may lie. Never the loader's path: Tcl has a library of this name there."""
    if os.environ.get("TK_LIBRARY"):
        yield os.environ["TK_LIBRARY"]
        return
    here = pathlib.Path(__file__).resolve().parent
    yield here / "libtk.so"
    if here.parts[-4:] == ("share", "tk", "python", "tk"):  # an installed prefix
        for folder in ("lib", "lib/x86_64-linux-gnu", "lib64"):
            yield here.parents[3] / folder / "libtk.so"
    elif (here.parents[1] / "CMakeLists.txt").exists():  # the source tree
        yield here.parents[1] / "build/lib/libtk.so"


def _load():
    tried = [str(path) for path in _candidates()]
    for path in tried:
        if not os.path.exists(path):
            continue
        library = ctypes.CDLL(path)
        if not hasattr(library, "tk_version"):
            continue
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        return library
    raise ImportError(f"libtk.so is not found at {', '.join(tried)}: set TK_LIBRARY to its path, or build "
                      "it (cmake --preset release && cmake --build build --target tk_shared)")


LIB = _load()


def check(status):
    """Raises for a status that is not TK_OK. After a SIGINT Python itself raises KeyboardInterrupt
    in the main thread, before the error "interrupted" is seen."""
    if status:
        code = CODES[status] if 0 <= status < len(CODES) else "internal"
        # Names of files may be any bytes.
        raise Error(code, os.fsdecode(LIB.tk_last_error()), os.fsdecode(LIB.tk_last_error_place()))


def _load_native():
    """The extension that makes calls without ctypes, or None: it lies beside the package or beside
    libtk.so, and serves CPython from 3.11 on."""
    name = __package__ + "._native"
    if name in sys.modules:
        return sys.modules[name]  # None: not wanted
    if sys.implementation.name != "cpython" or sys.version_info < (3, 11) or "t" in sys.abiflags:
        return None
    for folder in (pathlib.Path(__file__).parent, pathlib.Path(LIB._name).parent):
        path = folder / "_native.abi3.so"
        if not path.exists():
            continue
        loader = importlib.machinery.ExtensionFileLoader(name, str(path))
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        sys.modules[name] = module
        return module
    return None


NATIVE = _load_native()


def version():
    """The version of libtk.so."""
    return LIB.tk_version().decode()
