"""Calls of kernels on PyTorch's tensors, on the CPU, and where there is a GPU with its streams and graphs."""
import unittest

from common import GRADIENTS, SOURCE

import tk


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
        with self.assertRaisesRegex(TypeError, "no `grad` item gives d_x, d_w"):
            tk.compile(GRADIENTS.replace("(x, w)\nkernel other", "(x)\nkernel other"),
                       target="gpu")["project"](x, w)


if __name__ == "__main__":
    unittest.main()
