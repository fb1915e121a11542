"""Scalars of kernels: what they may be, scalars as extents, and kernels without tensors."""
import unittest
from decimal import Decimal
from fractions import Fraction

from common import PackageTest

import numpy as np
import tk


class ScalarTest(PackageTest):
    def test_scalars_are_extents(self):
        source = """kernel k(N: i32, x: f32[N], w: f32[128 * M]) -> (y: f32[2 * N], z: f32[P], s: f32[M])
where P == N / 2 + M {
  y[i] = x[i / 2]
  z[i] = 1.0
  s[m] = sum[k in 0..128](w[128 * m + k])
}
"""
        kernel = tk.compile(source, target="cpu")["k"]
        x, w = np.arange(5, dtype="f4"), np.ones(256, "f4")
        y, z, s = kernel(5, x, w)
        np.testing.assert_array_equal(y, np.repeat(x, 2))
        np.testing.assert_array_equal(z, np.ones(4))
        np.testing.assert_array_equal(s, [128, 128])
        for call in (lambda: kernel(4, x, w), lambda: kernel(4, x, w, out=(y, z, s))):
            error = self.refused("shape_mismatch", call)
            self.assertIn("argument 'N' is 4, but argument 'x' has the extent 5", error.message)
        self.refused("shape_mismatch", lambda: kernel(5, x, w[:100]))

    def test_scalars_alone(self):
        source = "kernel steps(N: i32, by: f32) -> (y: f32[N]) { y[i] = by * i }"
        y = tk.compile(source, target="cpu")["steps"](4, 0.5)
        np.testing.assert_array_equal(y, np.array([0, 0.5, 1, 1.5], "f4"))
        self.refused("shape_mismatch", lambda: tk.compile(source, target="cpu")["steps"](-1, 0.5))
        with self.assertRaisesRegex(TypeError, "give the results as out="):
            tk.compile(source, target="sm_90a")["steps"](4, 0.5)

    def test_scalars(self):
        x = np.ones(3, "i8")
        shift, axpy, f = self.module["shift"], self.module["axpy"], np.ones(3, "f4")
        for by in (2**63 - 2, -2**63, np.int8(-3), np.uint64(7)):
            np.testing.assert_array_equal(shift(x, by), x + int(by))
        for by in (2**63, -2**63 - 1, 2**64 + 1, 10**30, np.uint64(2**63)):
            error = self.refused("overflow", lambda by=by: shift(x, by))
            self.assertIn("argument 'by'", error.message)
            self.refused("overflow", lambda by=by: axpy(f, f, by))
        for on in (True, np.True_):
            np.testing.assert_array_equal(shift(x, 2, on), [3, 3, 3])
        np.testing.assert_array_equal(shift(x, 2, np.False_), [1, 1, 1])
        for a in (0.5, 2, np.float16(0.5), np.int32(2), Fraction(1, 2), Decimal("0.5")):
            np.testing.assert_array_equal(axpy(f, f, a), float(a) * f + f)
        for a in ("0.5", b"1", True, np.True_, 1j, np.complex64(1), [1.0], object()):
            with self.assertRaisesRegex(TypeError, "argument 'a': expected a number for f32"):
                axpy(f, f, a)
        for by in ("1", b"1", None, 1j):
            with self.assertRaises(TypeError):
                shift(x, by)


if __name__ == "__main__":
    unittest.main()
