"""Kernels as operators of PyTorch: opcheck, torch.compile, torch.export, gradients, refusals. With a
GPU, on its tensors."""
import os
import shutil
import sys
import tempfile
import unittest
import warnings

try:
    import torch
except ImportError:
    print("not run: there is no PyTorch")
    sys.exit(77)

import tk

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

SOURCE = """
kernel rms_norm(x: f32[R, C], w: f32[C], eps: f32 = 1e-6) -> (y: f32[R, C]) {
  let square[r] = mean[c](x[r, c] * x[r, c])
  y[r, c]       = x[r, c] * rsqrt(square[r] + eps) * w[c]
}
grad rms_norm_backward = rms_norm wrt (x, w)
kernel best(x: f32[R, C]) -> (top: f32[R], at: i32[R]) {
  top[r] = max[c](x[r, c])
  at[r]  = argmax[c](x[r, c])
}
grad best_backward = best wrt (x)
kernel split(x: bf16[R, 2 * C], n: i64, on: bool = true) -> (y: f32[C, R + n]) where n >= 0, n <= C {
  y[c, r] = if on then f32(pad(x[r, c], 0.0)) else 0.0
}
kernel part(x: f32[N], w: f32[N]) -> (y: f32[N]) { y[i] = x[i] * w[i] }
grad part_by_x = part wrt (x)
kernel grow(inout x: f32[N], by: f32) -> (y: f32[N]) {
  x[i] = x[i] + by
  y[i] = 2 * x[i]
}
kernel columns(strided x: f32[R, C]) -> (s: f32[C]) { s[c] = sum[r](x[r, c]) }
kernel fill(n: i64) -> (y: f32[n]) where n >= 0 { y[i] = 1.0 }
"""

MODULE = tk.compile(SOURCE, target="gpu" if DEVICE == "cuda" else "cpu")
NORM = tk.torch.op("tk_test::rms_norm", MODULE["rms_norm"])
BEST = tk.torch.op("tk_test::best", MODULE["best"])
SPLIT = tk.torch.op("tk_test::split", MODULE["split"])
PART = tk.torch.op("tk_test::part", MODULE["part"])
GROW = tk.torch.op("tk_test::grow", MODULE["grow"])
COLUMNS = tk.torch.op("tk_test::columns", MODULE["columns"])


def reference(x, w, eps=1e-6):
    return x * torch.rsqrt((x * x).mean(1, keepdim=True) + eps) * w


def random(*shape, grad=False, dtype=torch.float32):
    return torch.randn(*shape, device=DEVICE).to(dtype).requires_grad_(grad)


class TorchTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch._dynamo.reset()
        warnings.simplefilter("ignore")

    def close(self, a, b, tolerance=1e-4):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)

    def test_schemas(self):
        schemas = {name: str(getattr(torch.ops.tk_test, name).default._schema)
                   for name in ("rms_norm", "best", "split", "grow")}
        self.assertEqual(schemas["rms_norm"],
                         "tk_test::rms_norm(Tensor x, Tensor w, float? eps=None) -> Tensor")
        self.assertEqual(schemas["best"], "tk_test::best(Tensor x) -> (Tensor, Tensor)")
        self.assertEqual(schemas["split"], "tk_test::split(Tensor x, SymInt n, bool? on=None) -> Tensor")
        self.assertEqual(schemas["grow"], "tk_test::grow(Tensor(a0!) x, float by) -> Tensor")

    def test_calls(self):
        x, w = random(4, 6), random(6)
        self.close(NORM(x, w), reference(x, w))
        self.close(NORM(x, w=w, eps=0.5), reference(x, w, 0.5))
        self.close(torch.ops.tk_test.rms_norm(x.t().contiguous().t(), w), reference(x, w))
        top, at = BEST(x)
        self.assertTrue(torch.equal(top, x.max(1).values))
        self.assertTrue(torch.equal(at, x.argmax(1).to(torch.int32)))
        wide = random(3, 8, dtype=torch.bfloat16)
        self.assertEqual(SPLIT(wide, 2).shape, (4, 5))
        self.assertFalse(SPLIT(wide, 0, on=False).any())
        self.close(COLUMNS(x.t()), x.sum(1))

    def test_opcheck(self):
        x, w = random(4, 6, grad=True), random(6, grad=True)
        torch.library.opcheck(NORM, (x, w))
        torch.library.opcheck(NORM, (x, w), {"eps": 0.1})
        torch.library.opcheck(BEST, (x,))
        torch.library.opcheck(SPLIT, (random(3, 8, dtype=torch.bfloat16), 2))
        torch.library.opcheck(PART, (random(5, grad=True), random(5)))
        torch.library.opcheck(GROW, (random(5), 1.5))
        torch.library.opcheck(COLUMNS, (random(6, 4).t(),))

    def test_gradients(self):
        x, w = random(4, 6, grad=True), random(6, grad=True)
        mine = torch.autograd.grad(NORM(x, w).square().sum(), (x, w))
        for got, want in zip(mine, torch.autograd.grad(reference(x, w).square().sum(), (x, w))):
            self.close(got, want)
        # The integer result has no gradient, and a cotangent may be an expanded scalar.
        got, = torch.autograd.grad(BEST(x)[0].sum(), x)
        want, = torch.autograd.grad(x.max(1).values.sum(), x)
        self.close(got, want)
        part = PART(x[0], w.detach())
        self.close(torch.autograd.grad(part.sum(), x)[0][0], w.detach())
        with self.assertRaisesRegex(TypeError, r"no `grad` item gives d_w.*grad part_backward = part wrt \(w, x\)"):
            PART(x[0], w)

    def test_compile(self):
        def model(x, w):
            return torch.sigmoid(NORM(x * 2, w)) + BEST(x)[0][:, None]

        def same(x, w):
            return torch.sigmoid(reference(x * 2, w)) + x.max(1, keepdim=True).values

        forms = [("aot_eager", False), ("aot_eager", True)]
        if shutil.which(os.environ.get("CXX", "g++")):  # inductor's code for the CPU is C++
            forms.append(("inductor", True))
        for backend, dynamic in forms:
            torch._dynamo.reset()
            compiled = torch.compile(model, fullgraph=True, dynamic=dynamic, backend=backend)
            for rows in (4, 7):
                x, w = random(rows, 6, grad=True), random(6, grad=True)
                got = compiled(x, w)
                self.close(got, same(x, w))
                for a, b in zip(torch.autograd.grad(got.square().sum(), (x, w)),
                                torch.autograd.grad(same(x, w).square().sum(), (x, w))):
                    self.close(a, b)

    def test_compile_in_place(self):
        def model(x):
            y = x + 1
            z = GROW(y, 0.5)
            return y, z

        x = random(8)
        y, z = torch.compile(model, fullgraph=True, backend="aot_eager")(x)
        self.close(y, x + 1.5)
        self.close(z, 2 * x + 3)

    def test_export(self):
        class Model(torch.nn.Module):
            def forward(self, x, w):
                return NORM(x, w) * 2

        rows = torch.export.Dim("rows", min=2, max=64)
        x, w = random(4, 6), random(6)
        program = torch.export.export(Model(), (x, w), dynamic_shapes={"x": {0: rows}, "w": None})
        self.assertIn("tk_test.rms_norm", program.graph_module.code)
        x = random(9, 6)
        self.close(program.module()(x, w), 2 * reference(x, w))

    @unittest.skipUnless(shutil.which(os.environ.get("CXX", "g++")), "AOTInductor needs a C++ compiler")
    def test_aot_inductor(self):
        """Code that AOTInductor compiled ahead calls the operator, in a process that has registered it."""
        class Model(torch.nn.Module):
            def forward(self, x, w):
                return NORM(x + 1, w, 0.5) * 2

        x, w = random(4, 6), random(6)
        with torch.no_grad():
            if hasattr(torch._inductor, "aoti_compile_and_package"):
                program = torch.export.export(Model(), (x, w))
                with tempfile.TemporaryDirectory() as folder:
                    package = torch._inductor.aoti_compile_and_package(
                        program, package_path=os.path.join(folder, "model.pt2"))
                    got = torch._inductor.aoti_load_package(package)(x, w)
            else:  # before PyTorch 2.6
                got = torch._export.aot_load(torch._export.aot_compile(Model(), (x, w)), DEVICE)(x, w)
        self.close(got, 2 * reference(x + 1, w, 0.5))

    def test_fake_tensors_are_checked(self):
        from torch._subclasses.fake_tensor import FakeTensorMode
        with FakeTensorMode():
            x = torch.empty(4, 6)
            y = NORM(x, torch.empty(6))
            self.assertEqual((y.shape, y.dtype), ((4, 6), torch.float32))
            self.assertEqual(SPLIT(torch.empty(3, 8, dtype=torch.bfloat16), 2).shape, (4, 5))
            for wrong, why in ((torch.empty(5), "axis 0 has the size 5, expected 6"),
                               (torch.empty(6, dtype=torch.float64), "expected torch.float32"),
                               (torch.empty(6, 1), "expected 1 axes, got 2")):
                with self.assertRaisesRegex((RuntimeError, ValueError, TypeError), why):
                    NORM(x, wrong)
        with self.assertRaises(tk.Error):
            NORM(random(4, 6), random(5))

    def test_vmap_is_refused(self):
        with self.assertRaisesRegex(NotImplementedError, "tk_test::rms_norm has no rule for torch.vmap"):
            torch.vmap(NORM, in_dims=(0, None))(random(2, 4, 6), random(6))

    def test_kernels_that_cannot_be_operators(self):
        for name in ("norm", "a.b::c", "tk_test::", "::norm", 3):
            with self.assertRaisesRegex(TypeError, "expected a name such as"):
                tk.torch.op(name, MODULE["rms_norm"])
        with self.assertRaisesRegex(TypeError, "needs a tensor among its inputs"):
            tk.torch.op("tk_test::fill", MODULE["fill"])

    @unittest.skipUnless(DEVICE == "cuda", "there is no GPU")
    def test_cuda_graph(self):
        x, w = random(64, 256), random(256)
        NORM(x, w)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = NORM(x, w)
        x.copy_(random(64, 256))
        graph.replay()
        torch.cuda.synchronize()
        self.close(y, reference(x, w))


if __name__ == "__main__":
    unittest.main()
