"""The C interface from Python's ctypes: compiles and launches one kernel on the CPU."""
import ctypes
import sys


class Value(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("device", ctypes.c_int32), ("data", ctypes.c_void_p),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("storage_bytes", ctypes.c_int64),
                ("integer", ctypes.c_int64), ("real", ctypes.c_double)]


TENSOR, F32 = 1, 1
SOURCE = b"kernel square(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] * x[i] }"


def main():
    tk = ctypes.CDLL(sys.argv[1])
    tk.tk_last_error.restype = ctypes.c_char_p
    tk.tk_kernel_signature.restype = ctypes.c_char_p
    tk.tk_kernel_signature.argtypes = [ctypes.c_void_p]

    def check(status):
        if status != 0:
            sys.exit("status %d: %s" % (status, tk.tk_last_error().decode()))

    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    check(tk.tk_compile(SOURCE, ctypes.c_size_t(len(SOURCE)), b"square.tk", b"cpu",
                        ctypes.byref(module)))
    check(tk.tk_module_kernel(module, None, ctypes.byref(kernel)))
    assert b"square(x: f32[N])" in tk.tk_kernel_signature(kernel)
    count = 1001
    x = (ctypes.c_float * count)(*[i % 31 for i in range(count)])
    y = (ctypes.c_float * count)()
    shape = (ctypes.c_int64 * 1)(count)
    values = (Value * 2)()
    for value, data in zip(values, (x, y)):
        value.kind, value.dtype, value.rank, value.device = TENSOR, F32, 1, -1
        value.data = ctypes.cast(data, ctypes.c_void_p)
        value.shape = shape
        value.storage_bytes = -1
    check(tk.tk_kernel_launch(kernel, None, values, ctypes.c_size_t(2)))
    assert list(y) == [float((i % 31) ** 2) for i in range(count)]
    tk.tk_kernel_free(kernel)
    tk.tk_module_free(module)


main()
