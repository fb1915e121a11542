"""Meshes of ranks, and sharded kernels on them."""
import ctypes

from . import _tensors
from ._library import LIB, Error, MeshLayout, check
from ._call import Call


_ID_BYTES = 128


def _layout(axes, timeout, network):
    """Axes, waiting time and network as the C interface has them."""
    axes = dict(axes)
    count = max(len(axes), 1)
    names = (ctypes.c_char_p * count)(*(name.encode() for name in axes))
    sizes = (ctypes.c_int64 * count)(*(int(size) for size in axes.values()))
    return ctypes.byref(MeshLayout(names, sizes, len(axes), max(int(timeout * 1000), 1),
                                   None if network is None else network.encode()))


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

    @staticmethod
    def process(path, axes, rank, timeout=30.0, network=None):
        """A rank of a group of processes of this machine, for the targets cpu and emu. All give the same
        `path`: files begin with it that hold what they exchange, best in a folder in memory such as
        /dev/shm. None is there before, and none once all ranks are gone. Returns once all are here."""
        handle = ctypes.c_void_p()
        check(LIB.tk_mesh_process(_layout(axes, timeout, network), str(path).encode(), int(rank),
                                  ctypes.byref(handle)))
        return Mesh(handle, dict(axes))

    @staticmethod
    def unique_id():
        """What one rank makes with NCCL, and the others get by other means: bytes for `Mesh.join`."""
        made = ctypes.create_string_buffer(_ID_BYTES)
        check(LIB.tk_nccl_unique_id(made))
        return made.raw

    @staticmethod
    def join(unique_id, axes, rank, device=0, timeout=30.0, network=None):
        """Joins the group of GPUs of an id as a rank; `device` is the rank's GPU. Returns once all ranks
        have joined, and raises the error "rank_lost" where one does not within `timeout` seconds."""
        if len(unique_id) != _ID_BYTES:
            raise ValueError(f"expected an id of {_ID_BYTES} bytes, got {len(unique_id)}")
        handle = ctypes.c_void_p()
        check(LIB.tk_mesh_join(_layout(axes, timeout, network), unique_id, int(rank), int(device),
                               ctypes.byref(handle)))
        return Mesh(handle, dict(axes))

    @staticmethod
    def of_communicator(communicator, axes, device=0, timeout=30.0, network=None):
        """A rank of an NCCL communicator (the address of an ncclComm_t) that the caller owns, and keeps
        while the mesh lives. Its ranks are those of the axes in row-major order."""
        handle = ctypes.c_void_p()
        check(LIB.tk_mesh_of_communicator(_layout(axes, timeout, network), int(communicator), int(device),
                                          ctypes.byref(handle)))
        return Mesh(handle, dict(axes))

    @staticmethod
    def from_torch(process_group=None, axes=None, device=None, timeout=30.0, network=None):
        """The ranks of a process group of torch.distributed, each with its GPU; by default the group of
        all. `axes` maps names to sizes, in row-major order of the ranks; by default one axis "tp".
        The mesh has an NCCL communicator of its own, over the library that PyTorch has loaded."""
        import torch
        import torch.distributed as distributed
        group = process_group if process_group is not None else distributed.group.WORLD
        rank, size = distributed.get_rank(group), distributed.get_world_size(group)
        axes = dict(axes) if axes is not None else {"tp": size}
        ranks = 1
        for extent in axes.values():
            ranks *= int(extent)
        if ranks != size:
            raise ValueError(f"the process group has {size} ranks, and the axes of the mesh have {ranks}")
        # An error of the first rank reaches all: the others would wait for the id.
        made = failure = None
        if rank == 0:
            try:
                made = Mesh.unique_id()
            except Error as error:
                failure = error
        box = [made, None if failure is None else str(failure)]
        distributed.broadcast_object_list(box, src=distributed.get_global_rank(group, 0), group=group)
        if failure is not None:
            raise failure
        if box[0] is None:
            raise RuntimeError(f"rank 0 of the process group made no NCCL id: {box[1]}")
        device = torch.cuda.current_device() if device is None else device
        return Mesh.join(box[0], axes, rank, device, timeout, network)

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


class _MeshCall(Call):
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
