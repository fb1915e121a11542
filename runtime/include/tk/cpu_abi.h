/* The calling convention of code that tk generates for the CPU. Plain C, so that generated code,
 * the runtime and a static library of compiled kernels agree on one struct.
 *
 * One entry is one `tk::Launch` of a `tk::LaunchPlan` (plan.h). Its arguments arrive in three
 * arrays, each in the order in which `Launch::args` lists the arguments of that class:
 *
 *   tensors  ArgKind::tensor, ArgKind::scratch          addresses of element 0
 *   ints     ArgKind::integer and integer/bool scalars  dimensions, strides (in elements), i64
 *   floats   floating-point scalar parameters           widened to double, whatever their type
 *
 * An entry may use `parallel_for` any number of times; it returns when the work is done. Entries
 * never unwind and never keep pointers into `args` after they return.
 */
#ifndef TK_CPU_ABI_H
#define TK_CPU_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The loop body that generated code hands to the pool: it runs iterations [begin, end). */
typedef void (*tk_cpu_body)(void *context, int64_t begin, int64_t end);

/* Runs body over [0, count) split into contiguous chunks, one or more a thread, of at least `grain`
 * iterations (grain <= 0 means 1). Returns after the last iteration. Nested calls run inline. */
typedef void (*tk_cpu_parallel_for)(void *pool, int64_t count, int64_t grain, tk_cpu_body body,
                                    void *context);

typedef struct tk_cpu_args {
  void *const *tensors;
  const int64_t *ints;
  const double *floats;
  tk_cpu_parallel_for parallel_for;
  void *pool;          /* opaque: handed back to parallel_for */
  int64_t num_threads; /* how many threads parallel_for can use; at least 1 */
} tk_cpu_args;

/* A compiled launch. Returns 0, or a nonzero code that the runtime reports as "kernel failed". */
typedef int32_t (*tk_cpu_entry)(const tk_cpu_args *args);

#ifdef __cplusplus
}
#endif

#endif /* TK_CPU_ABI_H */
