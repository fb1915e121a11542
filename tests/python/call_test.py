"""Calls of kernels on NumPy's arrays and on any other DLPack tensor, and bound kernels."""
import sys
import threading
import unittest

from common import PackageTest, Wrapped

import numpy as np
import tk


class CallTest(PackageTest):
    def test_results_are_made_like_the_inputs(self):
        x, y = np.arange(5, dtype="f4"), np.ones(5, "f4")
        axpy = self.module["axpy"]
        np.testing.assert_array_equal(axpy(x, y), 2 * x + 1)
        np.testing.assert_array_equal(axpy(x, y, a=-1), 1 - x)
        np.testing.assert_array_equal(axpy(y=y, x=x, a=np.float32(0.5)), 0.5 * x + 1)
        data = np.array([[3, -1, 2], [7, 7, 9]], "i4")
        low, high = self.module["extremes"](data)
        np.testing.assert_array_equal(low, [-1, 7])
        np.testing.assert_array_equal(high, [3, 9])

    def test_results_may_be_given(self):
        x, z = np.arange(4, dtype="f4"), np.empty(4, "f4")
        self.assertIs(self.module["axpy"](x, x, out=z), z)
        np.testing.assert_array_equal(z, 3 * x)
        data, high = np.array([[3, -1]], "i4"), np.empty(1, "i4")
        low, same = self.module["extremes"](data, out={"high": high})
        self.assertIs(same, high)
        self.assertEqual((low[0], high[0]), (-1, 3))

    def test_calls_like_one_before(self):
        axpy, rng = self.module["axpy"], np.random.default_rng(0)
        for size in (4, 9, 4, 9, 0, 4):
            for a in (2, 0.5, None, 2):
                x, y = rng.standard_normal((2, size), "f4")
                np.testing.assert_array_equal(axpy(x, y, a=a), np.float32(2 if a is None else a) * x + y)
                z = np.empty(size, "f4")
                self.assertIs(axpy(x, y, a, out=z), z)
                np.testing.assert_array_equal(z, np.float32(2 if a is None else a) * x + y)
        data = rng.integers(-9, 9, (3, 4), "i4")
        low, high = np.empty(3, "i4"), np.empty(3, "i4")
        for out in ((low, high), [low, high], {"low": low, "high": high}, None):
            results = self.module["extremes"](data, out=out)
            self.assertIsInstance(results, tuple)
            np.testing.assert_array_equal(results, (data.min(1), data.max(1)))
            self.assertEqual(results[0] is low, out is not None)
        x, counts = np.ones(3, "f4"), [sys.getrefcount(low)]
        for _ in range(100):
            self.module["extremes"](data, out=(low, high))
            axpy(x, x)
            with self.assertRaises(tk.Error):
                axpy(x, x[:2], out=x.copy())
        self.assertEqual(sys.getrefcount(low), counts[0])

    def test_several_threads(self):
        def work(seed):
            rng = np.random.default_rng(seed)
            for _ in range(200):
                x, y = rng.standard_normal((2, int(rng.integers(1, 5))), "f4")
                wrong.extend([seed] if not np.array_equal(self.module["axpy"](x, y), 2 * x + y) else [])
        wrong = []
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_subclasses_of_arrays(self):
        class Array(np.ndarray):
            pass
        x = np.arange(3, dtype="f4")
        np.testing.assert_array_equal(self.module["axpy"](x.view(Array), x), 3 * x)
        np.testing.assert_array_equal(self.module["axpy"](x.view(Array), x, out=np.empty(3, "f4")), 3 * x)

    def test_views_are_not_copied(self):
        x = np.arange(24, dtype="f4").reshape(4, 6)
        np.testing.assert_array_equal(self.module["rows"](x[::2, :3]), x[::2, :3].sum(1))

    def test_views_may_have_any_strides(self):
        x = np.arange(24, dtype="f4").reshape(4, 6)
        apart, repeated = x[:, ::2], np.lib.stride_tricks.as_strided(x, (3, 6), (0, 4))
        for view in (x.T, apart, apart.T, x[::-1, ::-1], x[1:, 5::-2].T, repeated, repeated.T):
            np.testing.assert_array_equal(self.module["rows"](view), view.sum(1))

    def test_any_dlpack_tensor(self):
        x, z = np.arange(3, dtype="f4"), np.empty(3, "f4")
        self.module["axpy"](Wrapped(x), x, out=Wrapped(z))
        np.testing.assert_array_equal(z, 3 * x)
        with self.assertRaisesRegex(TypeError, "give them as out="):
            self.module["axpy"](Wrapped(x), x)

    def test_refusals(self):
        x = np.ones(4, "f4")
        axpy = self.module["axpy"]
        error = self.refused("shape_mismatch", lambda: axpy(x, np.ones(3, "f4"), out=x.copy()))
        self.assertIn("'N'", error.message)
        self.assertRegex(error.place, r"^<string>:\d+:\d+$")
        self.refused("invalid_argument", lambda: axpy(x, x.astype("f8")))
        self.refused("invalid_argument", lambda: axpy(x, x, out=x))
        self.refused("unsupported", lambda: axpy(x.astype("c8"), x))
        error = self.refused("compile_failed", lambda: tk.compile("kernel"))
        self.assertEqual(error.place, "<string>:1:7")
        self.assertTrue(str(error).startswith("<string>:1:7: error[TK0101]"), str(error))
        self.refused("io", lambda: tk.compile_file("/nowhere.tk"))
        self.refused("io", lambda: tk.compile_file("/nowhere.tk", checked=True))
        self.refused("io", lambda: tk.load_bundle("/nowhere.tkb"))
        self.refused("invalid_argument", lambda: self.module["nope"])
        for call in (lambda: axpy(x), lambda: axpy(x, x, 1, x), lambda: axpy(x, x, x=x),
                     lambda: axpy(x, x, b=1), lambda: axpy(x, 1.5), lambda: axpy(x, "y"),
                     lambda: axpy(x, x, out=(x, x)), lambda: axpy(x, x, out={"y": x})):
            with self.assertRaises((TypeError, ValueError)):
                call()

    def test_read_only_arrays(self):
        x, out = np.arange(6, dtype="f4").reshape(2, 3), np.empty(2, "f4")
        x.flags.writeable = out.flags.writeable = False
        np.testing.assert_array_equal(self.module["rows"](x), x.sum(1))
        np.testing.assert_array_equal(self.module["rows"](x[:, :2]), x[:, :2].sum(1))
        y = np.frombuffer(np.ones(4, "f4").tobytes(), "f4")
        np.testing.assert_array_equal(self.module["axpy"](y, y), [3, 3, 3, 3])
        with self.assertRaisesRegex(TypeError, "result 's': the array is read-only"):
            self.module["rows"](x, out=out)
        with self.assertRaisesRegex(TypeError, "inout argument 'x': the array is read-only"):
            self.module["grow"](y, 1.0)
        for odd in (x.astype(">f4"), x.astype("c8"), np.zeros(3, "f4,f4")):
            odd.flags.writeable = False
            self.refused("unsupported", lambda odd=odd: self.module["rows"](odd))
        error = self.refused("shape_mismatch", lambda: self.module["axpy"](y, y[:3]))
        self.assertIn("'N'", error.message)

    def test_bound_kernels(self):
        x, y = np.arange(6, dtype="f4"), np.ones(6, "f4")
        bound = self.module["axpy"].bind(x, y, a=3)
        z = bound()
        np.testing.assert_array_equal(z, 3 * x + 1)
        x += 1
        self.assertIs(bound(), z)
        np.testing.assert_array_equal(z, 3 * x + 1)
        other = np.empty(6, "f4")
        self.assertIs(bound(y, x, other), other)
        np.testing.assert_array_equal(other, 3 + x)
        low, high = np.empty(2, "i4"), np.empty(2, "i4")
        extremes = self.module["extremes"].bind(np.zeros((2, 3), "i4"))
        results = extremes(np.array([[3, -1, 2], [7, 7, 9]], "i4"), low, high)
        self.assertIs(results[1], high)
        np.testing.assert_array_equal(low, [-1, 7])
        wrapped = self.module["axpy"].bind(Wrapped(x), y, out=Wrapped(z))
        wrapped(Wrapped(y), y, Wrapped(other))
        np.testing.assert_array_equal(other, 3 * y)
        fixed = other.copy()
        fixed.flags.writeable = False
        for tensors in ((x, y, z[:5]), (x, y, z.astype("f8")), (x, y[::-1], z), (x, y, fixed)):
            self.refused("shape_mismatch", lambda tensors=tensors: bound(*tensors))
        with self.assertRaisesRegex(TypeError, "expected 3 tensors"):
            bound(x, y)
        self.refused("shape_mismatch", lambda: self.module["axpy"].bind(x, y[:3], out=z))
        np.testing.assert_array_equal(bound(fixed, y, z), 3 * fixed + 1)

    def test_small_floats(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("there is no ml_dtypes")
        for name, dtype in (("bf16", ml_dtypes.bfloat16), ("f8e4m3", ml_dtypes.float8_e4m3fn),
                            ("f8e5m2", ml_dtypes.float8_e5m2)):
            kernel = tk.compile(f"kernel k(x: {name}[N]) -> (y: {name}[N]) {{ y[i] = x[i] + x[i] }}",
                                target="cpu")["k"]
            x = np.arange(5).astype(dtype)
            y = kernel(x)
            self.assertEqual(y.dtype, np.dtype(dtype))
            np.testing.assert_array_equal(y.astype("f4"), 2 * x.astype("f4"))
            x.flags.writeable = False
            np.testing.assert_array_equal(kernel(x).astype("f4"), 2 * x.astype("f4"))
            self.refused("invalid_argument", lambda: kernel(x.astype("f4")))


if __name__ == "__main__":
    unittest.main()
