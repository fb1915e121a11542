"""Preparing kernels for sizes, and frozen modules, on NumPy's arrays."""
import math
import os
import subprocess
import sys
import threading
import unittest

try:
    import numpy as np
except ImportError:
    print("not run: there is no NumPy")
    sys.exit(77)

import tk

SOURCE = """
kernel decode(q: f32[B, H, D], k: f32[B, G, T, D], v: f32[B, G, T, D], scale: f32 = rsqrt(D)) -> (o: f32[B, H, D])
where H % G == 0
{
  let s[b, h, j] = sum[d](q[b, h, d] * k[b, h / (H / G), j, d]) * scale
  let p[b, h, j] = softmax[j](s[b, h, j])
  o[b, h, d] = sum[j](p[b, h, j] * v[b, h / (H / G), j, d])
}
kernel norm(x: f32[R, C]) -> (y: f32[R, C]) {
  y[r, c] = x[r, c] - mean[c](x[r, c])
}
kernel pick(table: f32[V, D], ids: i32[N]) -> (y: f32[N, D]) {
  y[n, d] = table[ids[n], d]
}
kernel smooth(x: f32[N], w: f32[K]) -> (y: f32[N - K + 1]) where K > 0, K <= N {
  y[i] = sum[k](x[i + k] * w[k])
}
@deterministic
kernel total(x: f32[R, C], by: f32) -> (s: f32[R]) {
  s[r] = by * sum[c](x[r, c])
}
"""


def attention(q, k, v):
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    s = np.einsum("bhd,bhjd->bhj", q, k) / math.sqrt(q.shape[2])
    p = np.exp(s - s.max(axis=2, keepdims=True))
    return np.einsum("bhj,bhjd->bhd", p / p.sum(axis=2, keepdims=True), v)


class PrepareTest(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(0)

    def random(self, *shape):
        return self.rng.standard_normal(shape, dtype=np.float32)

    def refused(self, code, call):
        with self.assertRaises(tk.Error) as caught:
            call()
        self.assertEqual(caught.exception.code, code)
        return str(caught.exception)

    def grow(self, target, lengths, most, outside):
        """A sequence grows, and nothing compiles."""
        module = tk.compile(SOURCE, target=target)
        decode = module["decode"]
        told = []
        count = decode.prepare(T=range(1, 301), B=1, H=4, G=2, D=16,
                               progress=lambda *at: told.append(at))
        self.assertLessEqual(count, most)
        self.assertEqual(told, [(done, count) for done in range(count + 1)])
        module.freeze()
        q, k, v = self.random(1, 4, 16), self.random(1, 2, 300, 16), self.random(1, 2, 300, 16)
        for length in lengths:
            keys, values = (np.ascontiguousarray(x[:, :, :length]) for x in (k, v))
            np.testing.assert_allclose(decode(q, keys, values), attention(q, keys, values),
                                       rtol=1e-4, atol=1e-5)
        keys = self.random(1, 2, outside, 16)
        message = self.refused("frozen", lambda: decode(q, keys, keys))
        self.assertIn(f"'decode' has no code for B = 1, H = 4, D = 16, G = 2, T = {outside}", message)

    def test_a_sequence_grows_on_the_cpu(self):
        self.grow("cpu", [1, 2, 16, 64, 65, 300], 4, outside=5000)  # lengths up to 4096 share code
        module = tk.compile(SOURCE, target="cpu")
        decode = module["decode"]
        self.assertLessEqual(decode.prepare(T=range(1, 301), B=[1, 2], H=4, G=2, D=16), 8)
        module.freeze()
        for length in (1, 2, 7, 16, 64, 65, 128, 300):
            q, k, v = self.random(2, 4, 16), self.random(2, 2, length, 16), self.random(2, 2, length, 16)
            np.testing.assert_allclose(decode(q, k, v), attention(q, k, v), rtol=1e-4, atol=1e-5)

    def test_a_sequence_grows_on_emu(self):
        try:
            tk.compile(SOURCE, target="emu")["total"](self.random(1, 1), 1.0)
        except tk.Error as error:
            self.skipTest(str(error))
        self.grow("emu", [1, 2, 5, 64, 65, 128, 256, 300], 4, outside=600)
        # Rows of a class have no lower bound.
        module = tk.compile(SOURCE, target="emu")
        self.assertLessEqual(module["norm"].prepare(R=2, C=range(1, 4097)), 4)
        module.freeze()
        for length in (1, 3, 130, 600, 1025):
            x = self.random(2, length)
            np.testing.assert_allclose(module["norm"](x), x - x.mean(axis=1, keepdims=True), atol=1e-5)

    def test_windows_of_a_range_on_emu(self):
        module = tk.compile(SOURCE, target="emu")
        try:
            self.assertLessEqual(module["smooth"].prepare(N=64, K=range(1, 12)), 4)
        except tk.Error as error:
            self.skipTest(str(error))
        module.freeze()
        for size, taps in ((64, 1), (64, 3), (64, 8), (64, 11)):
            x, w = self.random(size), self.random(taps)
            np.testing.assert_allclose(module["smooth"](x, w), np.correlate(x, w, "valid"), rtol=1e-4, atol=1e-5)

    def test_checked_kernels(self):
        module = tk.compile(SOURCE, target="cpu", checked=True)
        count = module["pick"].prepare(V=range(1, 5001), D=8, N=range(1, 5001))
        self.assertGreater(count, tk.compile(SOURCE, target="cpu")["pick"].prepare(
            V=range(1, 5001), D=8, N=range(1, 5001)))
        module.freeze()
        table = self.random(100, 8)
        ids = np.array([3, 99, 0], np.int32)
        np.testing.assert_array_equal(module["pick"](table, ids), table[ids])
        self.refused("index_out_of_bounds", lambda: module["pick"](table, ids + 1))

    def test_requests(self):
        module = tk.compile(SOURCE, target="cpu")
        norm, total = module["norm"], module["total"]
        self.assertEqual(norm.prepare(R=3, C=5), 1)
        self.assertEqual(norm.prepare(R=np.int64(3), C=range(8, 0, -1)[:1]), 1)
        self.assertEqual(norm.prepare(self.random(3, 5)), None)
        self.assertEqual(total.prepare(R=[3, 4], C=5, by=0.5, threads=1), 1)
        self.assertIn("give the sizes of dimension 'C'", self.refused("invalid_argument", lambda: norm.prepare(R=3)))
        self.assertIn("no dimension 'Q'", self.refused("invalid_argument", lambda: norm.prepare(R=3, C=5, Q=1)))
        self.assertIn("at least one", self.refused("invalid_argument", lambda: norm.prepare(R=3, C=range(0))))
        self.assertIn("from 0 on", self.refused("invalid_argument", lambda: norm.prepare(R=3, C=[-1])))
        self.refused("overflow", lambda: norm.prepare(R=3, C=2**63))
        self.refused("constraint_failed", lambda: module["decode"].prepare(T=1, B=1, H=3, G=2, D=4))
        for wrong in ("8", 1.5, [1, None], True):
            with self.assertRaises(TypeError):
                norm.prepare(R=3, C=wrong)

    def test_calls_do_not_wait_in_the_background(self):
        module = tk.compile(SOURCE, target="cpu", background=True, few_keys=True)
        norm, failures = module["norm"], []

        def serve(rows):
            x = self.random(rows, 64)
            for _ in range(20):
                if not np.allclose(norm(x), x - x.mean(axis=1, keepdims=True), atol=1e-5):
                    failures.append(rows)

        threads = [threading.Thread(target=serve, args=(rows,)) for rows in (1, 2, 30, 5000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        module.wait()
        self.assertEqual(failures, [])
        module.freeze()
        for rows in (1, 2, 30, 5000, 400):  # the last has the key of 30
            serve(rows)
        self.assertEqual(failures, [])
        # A deterministic kernel waits for its own code, and has the same bits at each call.
        total = tk.compile(SOURCE, target="cpu", background=True)["total"]
        x = self.random(300, 1000)
        first = total(x, 0.5)
        for _ in range(5):
            np.testing.assert_array_equal(total(x, 0.5), first)

    def test_a_growing_sequence_has_few_keys(self):
        """With few_keys, unprepared calls of 300 lengths compile at most four variants; TK_LOG counts them."""
        code = ("import numpy as np, tk\n"
                f"decode = tk.compile({SOURCE!r}, target='cpu', few_keys=True)['decode']\n"
                "for t in range(1, 301):\n"
                "    k = np.ones((1, 2, t, 16), 'f4')\n"
                "    decode(np.ones((1, 4, 16), 'f4'), k, k)\n")
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                             env=dict(os.environ, TK_LOG="1", TK_CACHE="off"))
        compiled = [line for line in ran.stderr.splitlines() if "compiling 'decode'" in line]
        self.assertTrue(1 <= len(compiled) <= 4, compiled)

    def test_sizes_of_their_own(self):
        """A listed size has its own variant, and so has each size without few_keys."""
        shared, exact = tk.compile(SOURCE, target="cpu", few_keys=True), tk.compile(SOURCE, target="cpu")
        self.assertEqual(shared["norm"].prepare(R=[2, 4, 16], C=64), 2)
        self.assertEqual(exact["norm"].prepare(R=[2, 4, 16], C=64), 2)
        for module in (shared, exact):
            module.freeze()
            for rows in (2, 4, 16):
                x = self.random(rows, 64)
                np.testing.assert_allclose(module["norm"](x), x - x.mean(axis=1, keepdims=True), atol=1e-5)
        x = self.random(12, 64)  # its fine key is that of 16; its class was not prepared
        self.refused("frozen", lambda: shared["norm"](x))
        np.testing.assert_allclose(exact["norm"](x), x - x.mean(axis=1, keepdims=True), atol=1e-5)

    def test_classes_of_sizes_on_emu(self):
        """Sizes on both sides of the bounds of classes, with the code of their class."""
        module = tk.compile(SOURCE, target="emu", few_keys=True)
        decode, norm = module["decode"], module["norm"]
        try:
            module["total"](self.random(1, 1), 1.0)
        except tk.Error as error:
            self.skipTest(str(error))
        for length in (1, 17, 64, 65, 256, 257, 300, 384):
            q, k, v = self.random(1, 2, 16), self.random(1, 1, length, 16), self.random(1, 1, length, 16)
            np.testing.assert_allclose(decode(q, k, v), attention(q, k, v), rtol=1e-4, atol=1e-5)
        for rows in (1, 17, 300):
            x = self.random(rows, 32)
            np.testing.assert_allclose(norm(x), x - x.mean(axis=1, keepdims=True), atol=1e-5)

    def test_progress_may_end_the_work(self):
        norm = tk.compile(SOURCE, target="cpu")["norm"]

        def stop(done, total):
            raise ValueError(f"{done} of {total}")

        with self.assertRaisesRegex(ValueError, "0 of 2"):
            norm.prepare(R=[1, 100], C=5, progress=stop)
        self.assertEqual(norm.prepare(R=[1, 100], C=5), 2)


if __name__ == "__main__":
    unittest.main()
