"""What the tests of the package share: programs, and a test case that compiles them for the CPU."""
import sys
import unittest

try:
    import numpy  # noqa: F401
except ImportError:
    print("not run: there is no NumPy")
    sys.exit(77)

if "--ctypes" in sys.argv:
    sys.argv.remove("--ctypes")
    sys.modules["tk._native"] = None  # as where the extension is not built

import tk

SOURCE = """
kernel axpy(x: f32[N], y: f32[N], a: f32 = 2) -> (z: f32[N]) {
  z[i] = a * x[i] + y[i]
}
kernel extremes(x: i32[M, N]) -> (low: i32[M], high: i32[M]) {
  low[i] = min[j](x[i, j])
  high[i] = max[j](x[i, j])
}
kernel rows(strided x: f32[M, N]) -> (s: f32[M]) {
  s[i] = sum[j](x[i, j])
}
kernel shift(x: i64[N], by: i64, on: bool = true) -> (y: i64[N]) {
  y[i] = if on then x[i] + by else x[i]
}
kernel grow(inout x: f32[N], by: f32) -> (y: f32[N]) {
  x[i] = x[i] + by
  y[i] = x[i]
}
"""


GRADIENTS = """
kernel project(x: f32[M, K], w: f32[K, N], scale: f32 = 0.5) -> (y: f32[M, N], best: i32[M]) {
  y[i, j] = tanh(sum[k](x[i, k] * w[k, j]) * scale)
  best[i] = argmax[j](y[i, j])
}
grad project_by_x = project wrt (x)
grad project_by_both = project wrt (x, w)
kernel other(x: f32[M, K], w: f32[K, N]) -> (y: f32[M, N]) { y[i, j] = x[i, 0] * w[0, j] }
"""


class Wrapped:
    """A tensor of a library that the package knows nothing about."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class PackageTest(unittest.TestCase):
    def setUp(self):
        self.module = tk.compile(SOURCE, target="cpu")

    def refused(self, code, call):
        with self.assertRaises(tk.Error) as caught:
            call()
        self.assertEqual(caught.exception.code, code)
        return caught.exception
