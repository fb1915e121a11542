"""Meshes of GPUs from Python: from a unique id, a communicator and a process group, on a fake NCCL and a fake driver
(TK_NCCL, TK_LIBCUDA). Ranks are threads, each with a stand-in for torch.distributed."""
import os
import subprocess
import sys
import threading
import types
import unittest

import tk

WORLD = 2


def on_each(work, ranks=range(WORLD)):
    results = {}

    def run(rank):
        try:
            results[rank] = work(rank)
        except Exception as error:  # pylint: disable=broad-except
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


class FakeTorch:
    """The functions of torch that Mesh.from_torch calls, for ranks that are threads."""

    def __init__(self):
        self.own, self.box, self.meeting = threading.local(), None, threading.Barrier(WORLD)
        self.distributed = types.ModuleType("torch.distributed")
        self.distributed.group = types.SimpleNamespace(WORLD="all")
        self.distributed.get_rank = lambda group: self.own.rank
        self.distributed.get_world_size = lambda group: WORLD
        self.distributed.get_global_rank = lambda group, rank: rank
        self.distributed.broadcast_object_list = self.broadcast
        self.torch = types.ModuleType("torch")
        self.torch.distributed = self.distributed
        self.torch.cuda = types.SimpleNamespace(current_device=lambda: 0)

    def broadcast(self, objects, src, group):
        if self.own.rank == src:
            self.box = list(objects)
        self.meeting.wait()
        objects[:] = self.box
        self.meeting.wait()


class NcclMeshTest(unittest.TestCase):
    def setUp(self):
        self.fake = FakeTorch()
        sys.modules["torch"], sys.modules["torch.distributed"] = self.fake.torch, self.fake.distributed

    def tearDown(self):
        del sys.modules["torch"], sys.modules["torch.distributed"]

    def from_torch(self, **options):
        def make(rank):
            self.fake.own.rank = rank
            return tk.Mesh.from_torch(**options)
        return on_each(make)

    def test_from_torch(self):
        for axes in (None, {"tp": 2}, {"dp": 1, "tp": 2}, {"dp": 2, "tp": 1}):
            meshes = self.from_torch(axes=axes)
            self.assertEqual([(mesh.rank, mesh.size) for _, mesh in sorted(meshes.items())], [(0, 2), (1, 2)])
            self.assertEqual(meshes[1].axes, axes or {"tp": 2})

    def test_axes_that_do_not_fit(self):
        for error in self.from_torch(axes={"tp": 3}).values():
            self.assertIsInstance(error, ValueError)
            self.assertIn("2 ranks, and the axes of the mesh have 3", str(error))

    def test_unique_id(self):
        made = tk.Mesh.unique_id()
        meshes = on_each(lambda rank: tk.Mesh.join(made, {"tp": WORLD}, rank, network="h200-pair"))
        self.assertEqual([meshes[rank].rank for rank in range(WORLD)], [0, 1])
        with self.assertRaises(ValueError):
            tk.Mesh.join(b"short", {"tp": 2}, 0)
        with self.assertRaises(tk.Error) as raised:
            tk.Mesh.join(made, {"tp": 2}, 2)
        self.assertEqual(raised.exception.code, "invalid_argument")

    def test_missing_rank(self):
        made = tk.Mesh.unique_id()
        with self.assertRaises(tk.Error) as raised:
            tk.Mesh.join(made, {"tp": 2}, 0, timeout=0.2)
        self.assertEqual(raised.exception.code, "rank_lost")
        self.assertIn("not all 2 ranks joined within 200 ms", raised.exception.message)

    def test_missing_library(self):
        program = ("import tk\ntry:\n  tk.Mesh.unique_id()\nexcept tk.Error as error:\n  print(error.code)\n")
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                             env={**os.environ, "TK_NCCL": "/nowhere/libnccl.so.2"})
        self.assertEqual(run.stdout, "no_nccl\n")


if __name__ == "__main__":
    if not os.environ.get("TK_NCCL"):
        print("not run: TK_NCCL names no library")
        sys.exit(77)
    unittest.main()
