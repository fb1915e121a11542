"""Modules of the Python package: what they hold and report, options, files, and what checked kernels
refuse."""
import os
import subprocess
import sys
import tempfile
import unittest

from common import GRADIENTS, SOURCE, PackageTest

import numpy as np
import tk


class ModuleTest(PackageTest):
    def test_module(self):
        self.assertEqual(self.module.kernels, ["axpy", "extremes", "rows", "shift", "grow"])
        self.assertEqual(list(self.module), self.module.kernels)
        self.assertEqual(self.module.target, "cpu")
        self.assertEqual(self.module.diagnostics, "")
        self.assertIn("x: f32[N]", self.module["axpy"].signature)
        self.assertIn("__global__", self.module["axpy"].text("cuda", "sm_90a"))
        self.assertRegex(tk.version(), r"^\d+\.\d+\.\d+$")

    def test_the_library(self):
        source = "import std\nkernel k(x: f32[R, C]) -> (y: f32[R, C]) { y[r, c] = rms_norm(x[r], c, 0.0) }\n"
        x = np.array([[3, 3], [-2, 2]], "f4")
        np.testing.assert_allclose(tk.compile(source, target="cpu")["k"](x), [[1, 1], [-1, 1]], rtol=1e-6)

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
                self.assertEqual(error.place, path + ":2:12")
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
                self.assertTrue(error.place.startswith(os.fsdecode(path)), error.place)
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


if __name__ == "__main__":
    unittest.main()
