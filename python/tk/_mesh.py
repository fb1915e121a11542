"""Meshes of ranks, and sharded kernels on them."""
import ctypes

from . import _tensors
from ._library import LIB, check
from ._module import _Call


class Mesh:
    """One rank's place in a mesh. A rank is used by one thread at a time, and all ranks of a group make
    the same calls in the same order."""

    def __init__(self, handle, axes):
        self._handle, self.axes = handle, axes

    def __del__(self):
        if getattr(self, "_handle", None):
            LIB.tk_mesh_free(self._handle)

    @staticmethod
    def threads(axes, timeout=30.0):
        """A group of ranks that are threads of this process, for the targets cpu and emu: a list with one
        mesh a rank. `axes` maps the axes' names to their sizes, in their order. A rank that waits for
        another one for `timeout` seconds raises the error "rank_lost"."""
        axes = dict(axes)
        count = 1
        for size in axes.values():
            count *= max(int(size), 0)
        names = (ctypes.c_char_p * max(len(axes), 1))(*(name.encode() for name in axes))
        sizes = (ctypes.c_int64 * max(len(axes), 1))(*(int(size) for size in axes.values()))
        handles = (ctypes.c_void_p * max(count, 1))()
        check(LIB.tk_mesh_threads(names, sizes, len(axes), max(int(timeout * 1000), 1), handles, count))
        return [Mesh(ctypes.c_void_p(handle), axes) for handle in handles]

    @property
    def rank(self):
        return LIB.tk_mesh_rank(self._handle)

    @property
    def size(self):
        """How many ranks the mesh has."""
        return LIB.tk_mesh_size(self._handle)

    def abort(self, reason="the group was aborted"):
        """Makes every wait of the group, on any rank, raise the error "rank_lost"."""
        check(LIB.tk_mesh_abort(self._handle, reason.encode()))

    def kernel(self, kernel):
        """A kernel on this rank: derives the collectives, and compiles."""
        return MeshKernel(kernel, self)


class MeshKernel:
    """A sharded kernel on a rank. Calling it runs this rank's part on its shares of the tensors."""

    def __init__(self, kernel, mesh):
        self._kernel, self._mesh = kernel, mesh
        self._handle = ctypes.c_void_p()
        check(LIB.tk_mesh_kernel_make(kernel._handle, mesh._handle, ctypes.byref(self._handle)))

    def __del__(self):
        if getattr(self, "_handle", None):
            LIB.tk_mesh_kernel_free(self._handle)

    @property
    def plan(self):
        """What each rank runs, one line a step."""
        return LIB.tk_mesh_kernel_plan(self._handle).decode()

    def __call__(self, *args, out=None, stream=None, **named):
        """Runs this rank's part. Arguments and results are those of the kernel, each with this rank's
        share; results are made like the first tensor, or are those given as `out`."""
        call = _MeshCall(self, args, named, out, stream)
        check(LIB.tk_mesh_kernel_launch(self._handle, call.stream, call.values, len(call.values)))
        return call.returned()


class _MeshCall(_Call):
    """The values of one call, of which results have the shapes of a rank's shares."""

    def __init__(self, on_mesh, args, named, out, stream):
        self._on_mesh = on_mesh
        super().__init__(on_mesh._kernel, args, named, out, stream)

    def _make_results(self, tensors):
        kernel = self.kernel
        for i in range(kernel._num_params, len(self.given)):
            if self.given[i] is not None:
                continue
            shape, rank = (ctypes.c_int64 * 8)(), ctypes.c_int32()
            check(LIB.tk_mesh_kernel_shape(self._on_mesh._handle, i, self.values, len(self.values), shape,
                                           ctypes.byref(rank)))
            self.given[i] = _tensors.empty_like(tensors[0] if tensors else None, kernel._arguments[i].dtype,
                                                tuple(shape[:rank.value]))
            self._keep.append(self._fill(i, self.given[i]))
