"""Calls that torch.autograd records, with a stand-in for torch: as much of it as the package asks
for, on NumPy's arrays. (torch_calls_test.py has PyTorch itself, where there is a GPU.)"""
import sys
import types
import unittest

try:
    import numpy as np
except ImportError:
    print("not run: there is no NumPy")
    sys.exit(77)

import tk
from common import GRADIENTS

TARGET = "cpu"


class Tensor:
    device, is_cuda = "cpu", False

    def __init__(self, array, requires_grad=False):
        self.array, self.requires_grad = np.ascontiguousarray(array), requires_grad
        self.shape, self.dtype = self.array.shape, self.array.dtype

    def dim(self):
        return self.array.ndim

    def stride(self):
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def data_ptr(self):
        return self.array.ctypes.data

    def is_neg(self):
        return False

    def detach(self):
        return Tensor(self.array)

    def is_floating_point(self):
        return self.dtype.kind == "f"

    def to(self, dtype):
        return Tensor(self.array.astype(dtype))

    def contiguous(self):
        return self


class Context:
    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *tensors):
        self.integers = tensors


class Function:
    """Like torch's: forward() runs now, backward() when someone asks for it."""

    @classmethod
    def apply(cls, *args):
        cls.last = Context()
        return cls.forward(cls.last, *args)


def stand_in():
    torch = types.ModuleType("torch")
    torch.Tensor, torch.float32, torch.int32 = Tensor, np.dtype("f4"), np.dtype("i4")
    torch.empty = lambda shape, dtype, device: Tensor(np.empty(shape, dtype))
    torch.autograd = types.SimpleNamespace(Function=Function)
    torch.recording = True
    torch.is_grad_enabled = lambda: torch.recording
    return torch


class AutogradTest(unittest.TestCase):
    def setUp(self):
        self.torch = sys.modules["torch"] = stand_in()
        self.addCleanup(sys.modules.pop, "torch")
        self.addCleanup(setattr, tk._autograd, "_made", None)
        self.project = tk.compile(GRADIENTS, target=TARGET)["project"]
        rng = np.random.default_rng(0)
        self.x = rng.standard_normal((5, 4), "f4")
        self.w = rng.standard_normal((4, 3), "f4")
        self.d_y = rng.standard_normal((5, 3), "f4")

    def gradients(self, *args, **named):
        y, best = self.project(*args, **named)
        function = tk._autograd._made
        self.assertEqual([t.dtype.kind for t in function.last.integers], ["i"])
        found = function.backward(function.last, Tensor(self.d_y), None)
        self.assertEqual(found[:3], (None, None, None)) # of what is no argument of the kernel
        return y.array, found[3:]

    def test_the_gradient_kernel_is_launched(self):
        for scale in (0.5, 0.25):
            y, (d_x, d_w, d_scale) = self.gradients(Tensor(self.x, True), Tensor(self.w, True),
                                                    scale=scale)
            np.testing.assert_allclose(y, np.tanh(self.x @ self.w * scale), rtol=1e-4, atol=1e-5)
            inner = self.d_y * (1 - y**2) * np.float32(scale)
            np.testing.assert_allclose(d_x.array, inner @ self.w.T, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(d_w.array, self.x.T @ inner, rtol=1e-4, atol=1e-5)
            self.assertIsNone(d_scale)

    def test_the_smallest_one_that_is_enough(self):
        _, (d_x, d_w, _) = self.gradients(Tensor(self.x, True), Tensor(self.w)) # a default is left out
        self.assertEqual((d_x.shape, d_w), ((5, 4), None))
        _, (d_x, d_w, _) = self.gradients(w=Tensor(self.w, True), x=Tensor(self.x))
        self.assertEqual((d_x.shape, d_w.shape), ((5, 4), (4, 3)))

    def test_calls_that_are_not_recorded(self):
        plain = self.project(Tensor(self.x), Tensor(self.w))[0]
        out = Tensor(np.empty((5, 3), "f4")), Tensor(np.empty(5, "i4"))
        self.project(Tensor(self.x, True), Tensor(self.w), out=out)
        self.torch.recording = False
        quiet = self.project(Tensor(self.x, True), Tensor(self.w, True))[0]
        self.assertIsNone(tk._autograd._made)
        for y in (out[0], quiet):
            np.testing.assert_array_equal(y.array, plain.array)

    def test_a_gradient_that_no_item_gives(self):
        text = GRADIENTS.replace("(x, w)\nkernel other", "(x)\nkernel other")
        with self.assertRaisesRegex(TypeError, "no `grad` item gives d_w"):
            tk.compile(text, target=TARGET)["project"](Tensor(self.x), Tensor(self.w, True))

    def test_a_kernel_without_a_gradient(self):
        other = tk.compile(GRADIENTS, target=TARGET)["other"]
        with self.assertRaises(TypeError) as caught:
            other(Tensor(self.x, True), Tensor(self.w, True))
        self.assertIn("no `grad` item gives d_x, d_w", str(caught.exception))
        self.assertIn("Add `grad other_backward = other wrt (x, w)`", str(caught.exception))
        self.assertIn("torch.no_grad()", str(caught.exception))
        # The item that the message names is one.
        text = GRADIENTS + "grad other_backward = other wrt (x, w)\n"
        self.assertEqual(tk.compile(text, target=TARGET)["other"](Tensor(self.x, True), Tensor(self.w)).shape, (5, 3))
        self.assertEqual(other(Tensor(self.x), Tensor(self.w)).shape, (5, 3))
        self.torch.recording = False
        self.assertEqual(other(Tensor(self.x, True), Tensor(self.w)).shape, (5, 3))


if __name__ == "__main__":
    unittest.main()
