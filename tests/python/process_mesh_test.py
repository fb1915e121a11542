"""Sharded kernels on ranks that are processes of this machine, on NumPy's arrays."""
import multiprocessing
import os
import pathlib
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError:
    print("not run: there is no NumPy")
    sys.exit(77)

import tk

SOURCE = """
mesh (dp, tp)
kernel layer(x: f32[M @ dp, C], w: f32[C, F @ tp], v: f32[F @ tp, C]) -> (y: f32[M @ dp, C]) {
  let h[m, f] = relu(sum[c](x[m, c] * w[c, f]))
  y[m, c] = sum[f](h[m, f] * v[f, c])
}
"""
AXES = {"dp": 2, "tp": 2}


def inputs():
    random = np.random.default_rng(3)
    return [random.standard_normal(shape, dtype=np.float32) for shape in ((8, 6), (6, 10), (10, 6))]


def run(path, rank, answers, job):
    """One rank, which answers with its number and what it got."""
    try:
        answers.put((rank, job(path, rank)))
    except tk.Error as error:
        answers.put((rank, (error.code, error.message)))


def layer(path, rank):
    x, w, v = inputs()
    mesh = tk.Mesh.process(path, AXES, rank)
    assert (mesh.rank, mesh.size) == (rank, 4)
    kernel = mesh.kernel(tk.compile(SOURCE, target="cpu")["layer"])
    dp, tp = rank // 2, rank % 2
    shares = [np.split(x, 2)[dp], np.ascontiguousarray(np.split(w, 2, axis=1)[tp]), np.split(v, 2)[tp]]
    return [kernel(*shares).tolist() for _ in range(2)][1]


def other_sizes(path, rank):
    x, w, v = inputs()
    mesh = tk.Mesh.process(path, {"dp": 1, "tp": 2}, rank, timeout=20)
    kernel = mesh.kernel(tk.compile(SOURCE, target="cpu")["layer"])
    rows = x if rank == 0 else x[:6]
    return kernel(rows, np.ascontiguousarray(np.split(w, 2, axis=1)[rank]), np.split(v, 2)[rank]).tolist()


def lonely(path, rank):
    tk.Mesh.process(path, {"tp": 2}, rank, timeout=0.2)


def leaves(path, rank):
    mesh = tk.Mesh.process(path, {"dp": 1, "tp": 2}, rank, timeout=1)
    kernel = mesh.kernel(tk.compile(SOURCE, target="cpu")["layer"])
    if rank == 1:
        return "gone"
    x, w, v = inputs()
    return kernel(x, np.ascontiguousarray(np.split(w, 2, axis=1)[0]), np.split(v, 2)[0]).tolist()


def on_each(ranks, job):
    """What each rank answers; `ranks` are their numbers."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = str(pathlib.Path(place) / "mesh")
        processes = [context.Process(target=run, args=(path, rank, answers, job)) for rank in ranks]
        for process in processes:
            process.start()
        found = dict(answers.get(timeout=60) for _ in processes)
        for process in processes:
            process.join()
        left = os.listdir(place)
    return found, left


class ProcessMeshTest(unittest.TestCase):
    def test_layer(self):
        found, left = on_each(range(4), layer)
        x, w, v = inputs()
        expected = np.maximum(x @ w, 0) @ v
        for rank in range(4):
            np.testing.assert_allclose(found[rank], np.split(expected, 2)[rank // 2], rtol=1e-4, atol=1e-4)
        self.assertEqual(left, [], "files are left behind")

    def test_faults(self):
        for number, (code, text) in on_each(range(2), other_sizes)[0].items():
            # The first rank that sees it says so; the other one may see that this one has failed.
            self.assertIn(code, ("mesh_mismatch", "rank_lost"))
            self.assertIn(f"rank {1 - number}", text)
        code, text = on_each([0], lonely)[0][0]
        self.assertEqual(code, "rank_lost")
        self.assertIn("rank 1 did not come within 200 ms", text)
        code, text = on_each(range(2), leaves)[0][0]
        self.assertEqual(code, "rank_lost")
        self.assertIn("rank 1 did not come within 1000 ms", text)

    def test_wrong_meshes(self):
        for axes, rank in (({"tp": 65}, 0), ({"tp": 2}, 2), ({"tp": 2}, -1), ({"tp": 0}, 0)):
            with self.assertRaises(tk.Error) as raised:
                tk.Mesh.process("/dev/shm/none", axes, rank)
            self.assertEqual(raised.exception.code, "invalid_argument")
        with self.assertRaises(tk.Error) as raised:
            tk.Mesh.process("/nowhere/mesh", {"tp": 1}, 0)
        self.assertEqual(raised.exception.code, "io")


if __name__ == "__main__":
    unittest.main()
