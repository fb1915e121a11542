/* The C interface of tk: compile `.tk` text, look at kernels, launch them on addresses.
 *
 * Every function that can fail returns a tk_status; tk_last_error() then has the message, for this
 * thread, until its next failing call. Handles may be used from any thread; freeing one while it is
 * in use is an error. Strings that a handle returns live as long as the handle. */
#ifndef TK_C_H
#define TK_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TK_API __attribute__((visibility("default")))
#else
#define TK_API
#endif

/* Numbers never change. */
typedef enum tk_status {
  TK_OK = 0,
  TK_COMPILE_FAILED = 1,
  TK_INVALID_ARGUMENT = 2,
  TK_SHAPE_MISMATCH = 3,
  TK_CONSTRAINT_FAILED = 4,
  TK_OVERFLOW = 5,
  TK_UNSUPPORTED = 6,
  TK_NO_DRIVER = 7,
  TK_DRIVER_TOO_OLD = 8,
  TK_NO_DEVICE = 9,
  TK_NO_NVRTC = 10,
  TK_NVRTC_TOO_OLD = 11,
  TK_NVRTC_FAILED = 12,
  TK_OUT_OF_MEMORY = 13,
  TK_MODULE_LOAD = 14,
  TK_LAUNCH_FAILED = 15,
  TK_NEEDS_PREPARE = 16,
  TK_CONTEXT_POISONED = 17,
  TK_IO = 18,
  TK_BAD_FILE = 19,
  TK_INTERNAL = 20,
  TK_INDEX_OUT_OF_BOUNDS = 21,
  TK_WRITE_FAILED = 22,
  TK_INTERRUPTED = 23,
  TK_FROZEN = 24,
  TK_MESH_MISMATCH = 25,
  TK_RANK_LOST = 26,
  TK_NO_NCCL = 27,
  TK_NCCL_TOO_OLD = 28,
  TK_NCCL_FAILED = 29
} tk_status;

typedef enum tk_dtype {
  TK_F64 = 0,
  TK_F32 = 1,
  TK_F16 = 2,
  TK_BF16 = 3,
  TK_F8E4M3 = 4,
  TK_F8E5M2 = 5,
  TK_I64 = 6,
  TK_I32 = 7,
  TK_I16 = 8,
  TK_I8 = 9,
  TK_U8 = 10,
  TK_BOOL = 11
} tk_dtype;

typedef struct tk_module tk_module;
typedef struct tk_kernel tk_kernel;
typedef struct tk_bound tk_bound;
struct DLTensor; /* of dlpack.h */

TK_API const char *tk_version(void);
/* The message of this thread's last failure, "" where none; and its place, "attn.tk:41:3" or "". */
TK_API const char *tk_last_error(void);
TK_API const char *tk_last_error_place(void);

/* Compiles text of `size` bytes. `file_name` may be NULL; `target` NULL or "" means TK_TARGET, else
 * the GPU if there is one, else the CPU. */
TK_API tk_status tk_compile(const char *source, size_t size, const char *file_name,
                            const char *target, tk_module **module);
/* The same, leaving passes out (`disabled`: names or groups, separated by commas) and with schedule
 * blocks that replace the program's (`schedule`). Both may be NULL or "". */
TK_API tk_status tk_compile_with(const char *source, size_t size, const char *file_name,
                                 const char *target, const char *disabled, const char *schedule,
                                 tk_module **module);
/* The same; launches report an index from a tensor that is outside (TK_INDEX_OUT_OF_BOUNDS), before
 * anything is written, instead of reading 0. They wait for what comes before them on the stream. */
TK_API tk_status tk_compile_checked(const char *source, size_t size, const char *file_name,
                                    const char *target, const char *disabled, const char *schedule,
                                    tk_module **module);
TK_API tk_status tk_compile_file(const char *path, const char *target, tk_module **module);
/* A bundle, made by `tkc build --emit bundle`, for this machine's GPU. */
TK_API tk_status tk_load_bundle(const char *path, tk_module **module);
TK_API void tk_module_free(tk_module *module);
/* "cpu", "emu" or "sm_90a". */
TK_API const char *tk_module_target(const tk_module *module);
/* Warnings, formatted; "" where none. */
TK_API const char *tk_module_diagnostics(const tk_module *module);
TK_API size_t tk_module_num_kernels(const tk_module *module);
TK_API const char *tk_module_kernel_name(const tk_module *module, size_t index);
/* A kernel by name; NULL takes the only one. It stays valid without the module. */
TK_API tk_status tk_module_kernel(const tk_module *module, const char *name, tk_kernel **kernel);
TK_API void tk_kernel_free(tk_kernel *kernel);
/* From now on a launch that would have to compile fails with TK_FROZEN. The message names the
 * kernel and the sizes. */
TK_API tk_status tk_module_freeze(tk_module *module);
/* From now on a launch whose variant is not compiled yet runs a general one, and has its own
 * compiled by another thread meanwhile. Kernels that are @deterministic take no part. */
TK_API tk_status tk_module_compile_in_background(tk_module *module);
/* Sizes of a dimension that may grow share the code of a class from now on: at most four up to 300.
 * Call it before the first launch. */
TK_API tk_status tk_module_use_few_keys(tk_module *module);
/* Returns once nothing is compiled in the background. */
TK_API tk_status tk_module_wait(tk_module *module);

TK_API const char *tk_kernel_name(const tk_kernel *kernel);
/* "gemm(a: bf16[M, K], b: bf16[K, N]) -> (c: bf16[M, N])" */
TK_API const char *tk_kernel_signature(const tk_kernel *kernel);
TK_API size_t tk_kernel_num_dims(const tk_kernel *kernel);
TK_API const char *tk_kernel_dim_name(const tk_kernel *kernel, size_t index);

/* Arguments are the parameters in the order of the source, then the results. */
typedef struct tk_argument {
  const char *name;
  int32_t dtype;     /* tk_dtype */
  int32_t is_tensor; /* else a scalar */
  int32_t is_result;
  int32_t is_strided;  /* any strides */
  int32_t is_in_out;   /* read, then overwritten */
  int32_t has_default; /* scalars: may be left out */
  int32_t rank;
} tk_argument;

TK_API size_t tk_kernel_num_arguments(const tk_kernel *kernel);
TK_API tk_status tk_kernel_argument(const tk_kernel *kernel, size_t index, tk_argument *argument);
/* The text of one extent in the source, such as "2 * N"; NULL where there is no such axis. */
TK_API const char *tk_kernel_extent(const tk_kernel *kernel, size_t index, size_t axis);

typedef enum tk_value_kind {
  TK_ABSENT = 0, /* takes the default; for tk_kernel_solve, a tensor that is not known yet */
  TK_TENSOR = 1,
  TK_INTEGER = 2,
  TK_REAL = 3
} tk_value_kind;

typedef struct tk_value {
  int32_t kind;  /* tk_value_kind */
  int32_t dtype; /* tk_dtype */
  int32_t rank;
  int32_t device; /* -1: host memory; n >= 0: CUDA device n */
  void *data;
  const int64_t *shape;
  const int64_t *strides; /* in elements; NULL: dense row-major */
  int64_t storage_bytes;  /* that may be accessed from data on; -1: not known */
  int64_t integer;
  double real;
} tk_value;

/* Describes a DLPack tensor, without a copy: the value points into it. */
TK_API tk_status tk_value_from_dlpack(const struct DLTensor *tensor, tk_value *value);

/* Finds the dimensions from the tensors given; dims[i] is -1 where nothing determines it. */
TK_API tk_status tk_kernel_solve(const tk_kernel *kernel, const tk_value *values, size_t count,
                                 int64_t *dims);
/* The shape of an argument for the tensors and scalars given; `shape` has room for 8. */
TK_API tk_status tk_kernel_shape_for(const tk_kernel *kernel, size_t index, const tk_value *values,
                                     size_t count, int64_t *shape, int32_t *rank);
/* The same for given dimensions; fails where an extent rests on a scalar. */
TK_API tk_status tk_kernel_shape(const tk_kernel *kernel, size_t index, const int64_t *dims,
                                 int64_t *shape, int32_t *rank);

/* Checks, compiles where needed, launches on a CUstream (NULL: the legacy default stream; the CPU
 * ignores it). `values` has `count` entries in the order of the arguments. */
TK_API tk_status tk_kernel_launch(const tk_kernel *kernel, void *stream, const tk_value *values,
                                  size_t count);
/* Compiles, loads and reserves memory, so that a launch with the same shapes can be captured. */
TK_API tk_status tk_kernel_prepare(const tk_kernel *kernel, const tk_value *values, size_t count);

typedef enum tk_sizes_kind {
  TK_SIZES_LIST = 0,  /* each size has its own variant */
  TK_SIZES_RANGE = 1, /* at most four variants serve the range */
  TK_SIZES_SCALAR = 2 /* the value of a scalar parameter */
} tk_sizes_kind;

/* The sizes that a dimension will have, or the value of a scalar. */
typedef struct tk_sizes {
  const char *name; /* of the dimension or scalar */
  int32_t kind;     /* tk_sizes_kind */
  const int64_t *list;
  size_t count;              /* of the list */
  int64_t first, last, step; /* of the range; the last size belongs to it */
  double scalar;
} tk_sizes;

/* Called on the caller's thread, first with 0 and then after each variant. Returns 0 to go on; any
 * other value ends the work with TK_INTERRUPTED. */
typedef int32_t (*tk_progress)(void *context, size_t done, size_t total);

/* Compiles every variant that launches of dense tensors with these sizes select, `threads` at once
 * (0: as many as the machine has threads). Every dimension must be named. Scalars that are left out
 * have their default, or are 1. Tensors are taken to be aligned to 16 bytes. `progress` and
 * `variants` may be NULL; `variants` receives how many there are. */
TK_API tk_status tk_kernel_prepare_sizes(const tk_kernel *kernel, const tk_sizes *sizes,
                                         size_t count, uint32_t threads, tk_progress progress,
                                         void *context, size_t *variants);

/* Checks and compiles as a launch does, and returns the fast path for calls that differ in
 * addresses alone. It stays valid without the kernel. */
TK_API tk_status tk_kernel_bind(const tk_kernel *kernel, const tk_value *values, size_t count,
                                tk_bound **bound);
/* Launches on addresses: of the tensor parameters in order, then of the results. */
TK_API tk_status tk_bound_launch(const tk_bound *bound, void *stream, void *const *pointers,
                                 size_t count);
TK_API void tk_bound_free(tk_bound *bound);

typedef struct tk_resources {
  char symbol[128]; /* of the launch's function; cut off where longer */
  int32_t registers;
  int32_t shared_bytes; /* static and dynamic */
  int32_t spill_bytes;  /* local memory a thread */
  int32_t blocks_per_sm;
  int32_t max_threads;
} tk_resources;

/* What each launch of a kernel uses on this machine's GPU, assuming nothing of the sizes. `count`
 * is the room in `resources` on entry and the number of launches on return. */
TK_API tk_status tk_module_resources(const tk_module *module, const char *kernel,
                                     tk_resources *resources, size_t *count);

/* The text of a stage ("tk", "fused", "cuda", "ptx", …) for a target (NULL: the module's), assuming
 * nothing of the sizes. The text is freed with tk_text_free. */
TK_API tk_status tk_kernel_text(const tk_kernel *kernel, const char *stage, const char *target,
                                char **text, size_t *size);
/* The same for usual tensors of sizes that may be known: `dims` has a size or -1 for each
 * dimension. `stage` may also be a report: "explain", what the passes derived and declined;
 * "inspect", what the code uses, and "cost", what the launches cost, both as JSON. */
TK_API tk_status tk_kernel_text_for(const tk_kernel *kernel, const char *stage, const char *target,
                                    const int64_t *dims, size_t count, char **text, size_t *size);
TK_API void tk_text_free(char *text);

/* A rank of a mesh, and a sharded kernel on it. A rank is used by one thread at a time, and all
 * ranks of a group make the same calls in the same order. */
typedef struct tk_mesh tk_mesh;
typedef struct tk_mesh_kernel tk_mesh_kernel;

/* A group of ranks that are threads of this process, for the targets cpu and emu. `names` and
 * `sizes` have one entry for each of `axes` axes. `meshes` gets one handle a rank; `count` is the
 * number of ranks. A rank that waits longer than `timeout_ms` for another one fails with
 * TK_RANK_LOST. */
TK_API tk_status tk_mesh_threads(const char *const *names, const int64_t *sizes, size_t axes,
                                 int64_t timeout_ms, tk_mesh **meshes, size_t count);

/* The axes of a mesh of processes or GPUs, how long a rank waits for others, and the network
 * between them: the text of a description, or the name of one that tk has; NULL for the default. */
typedef struct tk_mesh_layout {
  const char *const *names;
  const int64_t *sizes;
  size_t axes;
  int64_t timeout_ms;
  const char *network;
} tk_mesh_layout;

/* A rank of a group of processes on this machine, for the targets cpu and emu. All give the same
 * `path`, which names no file before and none once all ranks are gone. */
TK_API tk_status tk_mesh_process(const tk_mesh_layout *layout, const char *path, int64_t rank,
                                 tk_mesh **mesh);
/* What one rank makes with NCCL, and the others get by other means, to join one group of GPUs. */
enum { TK_NCCL_ID_BYTES = 128 };
TK_API tk_status tk_nccl_unique_id(char id[TK_NCCL_ID_BYTES]);
/* Joins the group of an id as a rank, which is a GPU. */
TK_API tk_status tk_mesh_join(const tk_mesh_layout *layout, const char id[TK_NCCL_ID_BYTES],
                              int64_t rank, int32_t device, tk_mesh **mesh);
/* A rank of a communicator (ncclComm_t) that the caller owns, and keeps while the mesh lives. */
TK_API tk_status tk_mesh_of_communicator(const tk_mesh_layout *layout, void *communicator,
                                         int32_t device, tk_mesh **mesh);
TK_API void tk_mesh_free(tk_mesh *mesh);
TK_API int64_t tk_mesh_rank(const tk_mesh *mesh);
TK_API int64_t tk_mesh_size(const tk_mesh *mesh);
/* Makes every wait of the group fail with TK_RANK_LOST. */
TK_API tk_status tk_mesh_abort(const tk_mesh *mesh, const char *reason);
/* Derives the collectives of a kernel, and compiles. */
TK_API tk_status tk_mesh_kernel_make(const tk_kernel *kernel, const tk_mesh *mesh,
                                     tk_mesh_kernel **made);
TK_API void tk_mesh_kernel_free(tk_mesh_kernel *kernel);
/* What each rank runs, one line a step. */
TK_API const char *tk_mesh_kernel_plan(const tk_mesh_kernel *kernel);
/* The shape of this rank's share of argument `index`, a result, for given parameters. */
TK_API tk_status tk_mesh_kernel_shape(const tk_mesh_kernel *kernel, size_t index,
                                      const tk_value *values, size_t count, int64_t *shape,
                                      int32_t *rank);
/* Runs this rank's part. Values are as for tk_kernel_launch, with this rank's shares. */
TK_API tk_status tk_mesh_kernel_launch(const tk_mesh_kernel *kernel, void *stream,
                                       const tk_value *values, size_t count);

#ifdef __cplusplus
}
#endif

#endif /* TK_C_H */
