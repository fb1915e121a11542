"""The Python package: compiling, launching on NumPy's arrays and on any other DLPack tensor, and
what it refuses. With PyTorch and a GPU, its tensors and streams too."""
import os
import subprocess
import sys
import tempfile
import threading
import unittest
from decimal import Decimal
from fractions import Fraction

try:
    import numpy as np
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

    def test_module(self):
        self.assertEqual(self.module.kernels, ["axpy", "extremes", "rows", "shift", "grow"])
        self.assertEqual(list(self.module), self.module.kernels)
        self.assertEqual(self.module.target, "cpu")
        self.assertEqual(self.module.diagnostics, "")
        self.assertIn("x: f32[N]", self.module["axpy"].signature)
        self.assertIn("__global__", self.module["axpy"].text("cuda", "sm_90a"))
        self.assertRegex(tk.version(), r"^\d+\.\d+\.\d+$")

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

    def test_the_library(self):
        source = "import std\nkernel k(x: f32[R, C]) -> (y: f32[R, C]) { y[r, c] = rms_norm(x[r], c, 0.0) }\n"
        x = np.array([[3, 3], [-2, 2]], "f4")
        np.testing.assert_allclose(tk.compile(source, target="cpu")["k"](x), [[1, 1], [-1, 1]], rtol=1e-6)

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

    def test_options(self):
        kernel = "kernel k(x: f32[N], w: f32[N]) -> (y: f32[N]) {\n  let s[i] = exp(x[i])\n  y[i] = s[i] * w[i]\n}\n"
        plain = tk.compile(kernel, target="sm_90a")["k"].text("cuda")
        apart = tk.compile(kernel, target="sm_90a", disable_passes=["fusion"])["k"].text("cuda")
        self.assertFalse(plain == apart)
        product = ("kernel k(a: bf16[M, K], b: bf16[K, N]) -> (c: bf16[M, N]) {\n"
                   "  c[i, j] = sum[k](a[i, k] * b[k, j])\n}\n")
        schedule = "schedule k for sm_90a {\n  tile i = 64, j = 64, k = 64\n}\n"
        usual = tk.compile(product, target="sm_90a")["k"].text("plan")
        chosen = tk.compile(product, target="sm_90a", schedule=schedule)["k"].text("plan")
        self.assertFalse(usual == chosen)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "k.tk")
            with open(path, "w") as file:
                file.write(product)
            self.assertEqual(tk.compile_file(path, target="sm_90a", schedule=schedule)["k"].text("plan"), chosen)
        self.refused("invalid_argument", lambda: tk.compile(kernel, disable_passes=["nope"]))
        self.refused("compile_failed", lambda: tk.compile(product, target="sm_90a", schedule="schedule {"))
        with self.assertRaisesRegex(TypeError, "expected a sequence of names"):
            tk.compile(kernel, disable_passes="fusion")

    def test_reports(self):
        kernel = tk.compile("kernel k(a: bf16[M, K], b: bf16[K, N]) -> (c: bf16[M, N]) {\n"
                            "  c[i, j] = sum[k](a[i, k] * b[k, j])\n}\n", target="cpu")["k"]
        dims = {"M": 4096, "N": 4096, "K": 4096}
        large, small = (kernel.text("cuda", "sm_90a", sizes) for sizes in (dims, {**dims, "M": 1}))
        self.assertTrue("warpgroup_mma" in large)
        self.assertFalse("warpgroup_mma" in small)
        self.assertFalse(large == kernel.text("cuda", "sm_90a"))
        self.assertIn("c[i, j] = sum[k](a[i, k] * b[k, j])", kernel.explain("sm_90a", dims))
        cost = kernel.inspect("sm_90a", dims, cost_only=True)
        self.assertEqual(cost["target"], "sm_90a")
        self.assertGreater(cost["launches"][0]["predicted_us"], 100)
        self.refused("invalid_argument", lambda: kernel.inspect("sm_90a", {"M": 4096}, cost_only=True))
        try:
            report = kernel.inspect("sm_90a", dims)
            self.assertGreater(report["launches"][0]["registers"], 30)
            self.assertGreater(report["launches"][0]["predicted_us"], 100)
            self.assertNotIn("predicted_us", kernel.inspect("sm_90a")["launches"][0])
        except tk.Error as error:
            self.assertIn(error.code, ("no_nvrtc", "nvrtc_too_old"))
        self.refused("invalid_argument", lambda: kernel.inspect(dims=dims))
        for dims in ({"P": 1}, {"M": -1}, {"M": 1.5}, {"M": 2**63}):
            self.refused("invalid_argument", lambda dims=dims: kernel.explain("sm_90a", dims))
        self.refused("invalid_argument", lambda: kernel.text("explain"))
        self.refused("invalid_argument", lambda: kernel.text("nope", "sm_90a", {}))

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

    def test_checked(self):
        source = "kernel take(x: f32[N], at: i32[B]) -> (y: f32[B]) {\n  y[b] = x[at[b]]\n}\n"
        x, at = np.arange(5, dtype="f4"), np.array([4, 5], "i4")
        np.testing.assert_array_equal(tk.compile(source, target="cpu")["take"](x, at), [4, 0])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "take.tk")
            with open(path, "w") as file:
                file.write(source)
            for module in (tk.compile(source, target="cpu", file_name=path, checked=True),
                           tk.compile_file(path, target="cpu", checked=True)):
                error = self.refused("index_out_of_bounds", lambda: module["take"](x, at))
                self.assertIn("is 5, expected 0 to 4", str(error))
                self.assertEqual(error.place, "take.tk:2:12")
                np.testing.assert_array_equal(module["take"](x, at[:1]), [4])

    def test_assertion(self):
        source = "kernel root(x: f32[N]) -> (y: f32[N]) {\n  assert x[i] >= 0.0\n  y[i] = sqrt(x[i])\n}\n"
        root = tk.compile(source, target="cpu", file_name="r.tk", checked=True)["root"]
        np.testing.assert_array_equal(root(np.array([4, 9], "f4")), [2, 3])
        error = self.refused("constraint_failed", lambda: root(np.array([4, -9], "f4")))
        self.assertIn("assert x[i] >= 0.0 fails at i = 1: x[i] is -9", str(error))
        self.assertEqual(error.place, "r.tk:2:3")

    def test_gradients_are_found_by_their_signatures(self):
        module = tk.compile(GRADIENTS, target="cpu")
        project = module["project"]
        self.assertEqual([g.signature.split("(")[0] for g in project._gradients()],
                         ["project_by_x", "project_by_both"])
        self.assertEqual(module["other"]._gradients(), [])
        self.assertEqual(module["project_by_x"]._gradients(), [])
        rng = np.random.default_rng(0)
        x, w = rng.standard_normal((5, 4), "f4"), rng.standard_normal((4, 3), "f4")
        y, best = project(x, w)
        d_y = rng.standard_normal(y.shape, "f4")
        d_x, d_w = module["project_by_both"](x, w, 0.5, y, best, d_y)
        inner = d_y * (1 - y**2) * np.float32(0.5)
        np.testing.assert_allclose(d_x, inner @ w.T, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(d_w, x.T @ inner, rtol=1e-4, atol=1e-5)

    def test_files(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "axpy.tk")
            with open(path, "w") as file:
                file.write(SOURCE)
            self.assertIn("axpy", tk.compile_file(path, target="cpu").kernels)
            with open(path, "w") as file:
                file.write("not a bundle")
            self.refused("bad_file", lambda: tk.load_bundle(path))

    def test_names_of_any_bytes(self):
        with tempfile.TemporaryDirectory() as directory:
            for name in (b"\xff.tk", b'a"b.tk', b"new\nline.tk"):
                path = os.path.join(os.fsencode(directory), name)
                with open(path, "w") as file:
                    file.write(SOURCE)
                self.assertIn("axpy", tk.compile_file(path, target="cpu").kernels)
                x = np.ones(4, "f4")
                axpy = tk.compile_file(path, target="cpu", checked=True)["axpy"]
                error = self.refused("shape_mismatch", lambda: axpy(x, np.ones(3, "f4"), out=x.copy()))
                self.assertTrue(error.place.startswith(os.fsdecode(name)), error.place)
                with open(path, "w") as file:
                    file.write("kernel")
                error = self.refused("compile_failed", lambda: tk.compile_file(path, target="cpu"))
                self.assertIn("TK0101", error.message)

    def test_a_missing_library_is_named(self):
        code = ("import tk._library as library\n"
                "library._candidates = lambda: ['/nowhere/libtk.so']\n"
                "library._load()")
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertIn("set TK_LIBRARY", ran.stderr)


def torch_with_gpu():
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def has_torch():
    try:
        import torch  # noqa: F401
    except ImportError:
        return False
    return True


@unittest.skipUnless(has_torch(), "needs PyTorch")
class TorchOnCpuTest(unittest.TestCase):
    def test_calls(self):
        import torch
        module = tk.compile(GRADIENTS + SOURCE, target="cpu")
        x, y = torch.arange(6, dtype=torch.float32), torch.ones(6)
        axpy = module["axpy"]
        for a in (2, 0.5, 2):
            torch.testing.assert_close(axpy(x, y, a=a), a * x + y)
        z = torch.empty(6)
        self.assertIs(axpy(x, y, out=z), z)
        bound = axpy.bind(x, y, out=z)
        self.assertIs(bound(), z)
        other = torch.empty(6)
        self.assertIs(bound(y, y, other), other)
        torch.testing.assert_close(other, 3 * y)
        for tensors in ((x, y, z[:5]), (x, y, z.double()), (x, y, torch.empty(12)[::2])):
            with self.assertRaises(tk.Error):
                bound(*tensors)
        with self.assertRaises(tk.Error):
            axpy(x, y[:3], out=z)
        imaginary = torch.full((3, 4), 1 + 2j).conj().imag
        with self.assertRaisesRegex(tk.Error, "negated"):
            module["rows"](imaginary)
        torch.testing.assert_close(module["rows"](imaginary.resolve_neg()), torch.full((3,), -8.0))
        torch.testing.assert_close(module["rows"](torch.ones(6, 8)[::2, ::2]), torch.full((3,), 4.0))
        weight = torch.nn.Parameter(torch.randn(4, 3))
        rows = torch.randn(5, 4)
        with torch.no_grad():
            self.assertFalse(module["project"](rows, weight)[0].requires_grad)
        result, best = module["project"](rows, weight)
        result.sum().backward()
        expected = torch.tanh((rows @ weight.detach()) * 0.5)
        torch.testing.assert_close(result, expected)
        torch.testing.assert_close(weight.grad, rows.T @ ((1 - expected**2) * 0.5))
        half = tk.compile("kernel k(x: bf16[N]) -> (y: f8e4m3[N]) { y[i] = x[i] }", target="cpu")["k"]
        torch.testing.assert_close(half(x.bfloat16()).float(), x)


@unittest.skipUnless(torch_with_gpu(), "needs PyTorch and a GPU")
class TorchTest(unittest.TestCase):
    def test_current_stream(self):
        torch = torch_with_gpu()
        axpy = tk.compile(SOURCE, target="gpu")["axpy"]
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            x = torch.randn(1 << 20, device="cuda")
            for _ in range(50):
                x = axpy(x, x, a=0.5) / 1.5
            expected = x.clone()
        stream.synchronize()
        torch.testing.assert_close(axpy(x, x, a=0.0), expected)

    def test_graph(self):
        torch = torch_with_gpu()
        axpy = tk.compile(SOURCE, target="gpu")["axpy"]
        x, z = torch.ones(1000, device="cuda"), torch.empty(1000, device="cuda")
        axpy.prepare(x, x, out=z)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            axpy(x, x, out=z)
        x.fill_(3)
        graph.replay()
        torch.cuda.synchronize()
        self.assertEqual(z.unique().tolist(), [9.0])

    def test_calls_are_differentiable(self):
        torch = torch_with_gpu()
        module = tk.compile(GRADIENTS, target="gpu")
        x = torch.randn(33, 17, device="cuda", requires_grad=True)
        w = torch.randn(17, 20, device="cuda", requires_grad=True)
        weight = torch.randn(33, 20, device="cuda")
        y, best = module["project"](x, w, scale=0.25)
        self.assertFalse(best.requires_grad)
        ((y * weight).sum() + y.square().sum()).backward()
        ours = x.grad, w.grad
        x.grad = w.grad = None
        expected = torch.tanh((x @ w) * 0.25)
        ((expected * weight).sum() + expected.square().sum()).backward()
        torch.testing.assert_close(y, expected, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(ours, (x.grad, w.grad), rtol=1e-3, atol=1e-3)
        with torch.no_grad():
            self.assertFalse(module["project"](x, w)[0].requires_grad)
        with self.assertRaisesRegex(TypeError, "no `grad` item gives d_w"):
            tk.compile(GRADIENTS.replace("(x, w)\nkernel other", "(x)\nkernel other"),
                       target="gpu")["project"](x, w)


if __name__ == "__main__":
    unittest.main()
