"""Sharded kernels on ranks that are threads, on NumPy's arrays."""
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
mesh (tp)
kernel up(x: f32[M @ tp, C], w: f32[C, F @ tp]) -> (h: f32[M, F @ tp]) {
  h[m, f] = relu(sum[c](x[m, c] * w[c, f]))
}
kernel total(x: f32[M @ tp, C]) -> (t: f32[]) {
  t = sum[m, c](x[m, c])
}
"""


def on_each(meshes, work):
    """What each rank returns, or the error that it raises."""
    results = [None] * len(meshes)

    def run(rank):
        try:
            results[rank] = work(rank)
        except tk.Error as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(len(meshes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


class MeshTest(unittest.TestCase):
    def setUp(self):
        self.module = tk.compile(SOURCE, target="cpu")
        self.random = np.random.default_rng(1)

    def test_results_are_shares(self):
        x, w = (self.random.standard_normal(shape, dtype=np.float32) for shape in ((12, 8), (8, 6)))
        for ranks in (1, 2, 3):
            meshes = tk.Mesh.threads({"tp": ranks})
            self.assertEqual([mesh.rank for mesh in meshes], list(range(ranks)))
            rows, columns = np.split(x, ranks), [np.ascontiguousarray(part) for part in np.split(w, ranks, axis=1)]
            shares = on_each(meshes, lambda r: meshes[r].kernel(self.module["up"])(rows[r], columns[r]))
            np.testing.assert_allclose(np.concatenate(shares, axis=1), np.maximum(x @ w, 0), rtol=1e-5, atol=1e-5)

    def test_plan(self):
        kernel = tk.Mesh.threads({"tp": 2})[0].kernel(self.module["total"])
        self.assertIn("all_reduce sum over tp", kernel.plan)

    def test_lost_rank(self):
        meshes = tk.Mesh.threads({"tp": 2}, timeout=0.05)
        error = on_each(meshes, lambda r: meshes[0].kernel(self.module["total"])(np.ones((2, 2), np.float32))
                        if r == 0 else None)[0]
        self.assertEqual(error.code, "rank_lost")
        self.assertIn("rank 1 did not come", error.message)

    def test_abort(self):
        meshes = tk.Mesh.threads({"tp": 2})
        error = on_each(meshes, lambda r: meshes[0].kernel(self.module["total"])(np.ones((2, 2), np.float32))
                        if r == 0 else meshes[1].abort("shutting down"))[0]
        self.assertEqual(error.code, "rank_lost")
        self.assertIn("shutting down", error.message)

    def test_wrong_meshes(self):
        for axes in ({"tp": 0}, {"tp": 4096}):
            with self.assertRaises(tk.Error) as raised:
                tk.Mesh.threads(axes)
            self.assertEqual(raised.exception.code, "invalid_argument")
        with self.assertRaises(tk.Error) as raised:
            tk.Mesh.threads({"dp": 2})[0].kernel(self.module["up"])
        self.assertEqual(raised.exception.code, "invalid_argument")


if __name__ == "__main__":
    unittest.main()
