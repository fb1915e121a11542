/* The cost of a call from C on a GPU, of a kernel that adds 8 elements: microseconds, the least of several rounds, beside
 * cuLaunchKernel of an empty kernel.
 *
 *   cc -O2 -Iruntime/include bench/calls.c -o calls -ldl && ./calls build/lib/libtk.so
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tk/tk_c.h"

/* So few calls that none waits for a free place in the queue of launches. */
enum { ROUNDS = 200, CALLS = 400, ELEMENTS = 8 };

static const char *add =
    "kernel add(x: f32[N], y: f32[N]) -> (z: f32[N]) { z[i] = x[i] + y[i] }\n";
static const char *empty =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry empty(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) { ret; }\n";

static void *library, *driver;

static void *find(void *from, const char *name) {
  void *found = dlsym(from, name);
  if (!found) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return found;
}

static void check(int status, const char *what) {
  const char *(*why)(void) = (const char *(*)(void))find(library, "tk_last_error");
  if (status != 0) {
    fprintf(stderr, "%s: %d %s\n", what, status, why());
    exit(1);
  }
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

typedef struct call {
  tk_kernel *kernel;
  tk_bound *bound;
  tk_value values[3];
  void *pointers[3], *stream, *function;
} call;

static tk_status (*launch)(const tk_kernel *, void *, const tk_value *, size_t);
static tk_status (*launch_bound)(const tk_bound *, void *, void *const *, size_t);
static int (*launch_bare)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, void *, void **, void **);
static int (*synchronize)(void *);

static void checked(call *c) { check(launch(c->kernel, c->stream, c->values, 3), "launch"); }
static void bound(call *c) {
  check(launch_bound(c->bound, c->stream, c->pointers, 3), "launch of a bound kernel");
}
static void bare(call *c) {
  void *parameters[] = {&c->pointers[0], &c->pointers[1], &c->pointers[2], &c->pointers[0]};
  check(launch_bare(c->function, 1, 1, 1, 128, 1, 1, 0, c->stream, parameters, NULL),
        "cuLaunchKernel");
}

static double microseconds(void (*work)(call *), call *c) {
  double best = 1e30;
  for (int round = 0; round < ROUNDS; ++round) {
    check(synchronize(c->stream), "synchronize");
    const double begin = now();
    for (int i = 0; i < CALLS; ++i)
      work(c);
    const double took = (now() - begin) / CALLS;
    best = took < best ? took : best;
  }
  check(synchronize(c->stream), "synchronize");
  return best;
}

int main(int count, char **arguments) {
  library = dlopen(count > 1 ? arguments[1] : "libtk.so", RTLD_NOW);
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library || !driver) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  int (*init)(unsigned) = (int (*)(unsigned))find(driver, "cuInit");
  int (*retain)(void **, int) = (int (*)(void **, int))find(driver, "cuDevicePrimaryCtxRetain");
  int (*use)(void *) = (int (*)(void *))find(driver, "cuCtxSetCurrent");
  int (*allocate)(void **, size_t) = (int (*)(void **, size_t))find(driver, "cuMemAlloc_v2");
  int (*make_stream)(void **, unsigned) = (int (*)(void **, unsigned))find(driver, "cuStreamCreate");
  int (*load)(void **, const void *) = (int (*)(void **, const void *))find(driver, "cuModuleLoadData");
  int (*get)(void **, void *, const char *) =
      (int (*)(void **, void *, const char *))find(driver, "cuModuleGetFunction");
  synchronize = (int (*)(void *))find(driver, "cuStreamSynchronize");
  launch_bare = (int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, void *, void **, void **))find(driver, "cuLaunchKernel");
  tk_status (*compile)(const char *, size_t, const char *, const char *, tk_module **) =
      (tk_status(*)(const char *, size_t, const char *, const char *, tk_module **))find(
          library, "tk_compile");
  tk_status (*kernel_of)(const tk_module *, const char *, tk_kernel **) =
      (tk_status(*)(const tk_module *, const char *, tk_kernel **))find(library, "tk_module_kernel");
  tk_status (*bind)(const tk_kernel *, const tk_value *, size_t, tk_bound **) =
      (tk_status(*)(const tk_kernel *, const tk_value *, size_t, tk_bound **))find(library,
                                                                                  "tk_kernel_bind");
  launch = (tk_status(*)(const tk_kernel *, void *, const tk_value *, size_t))find(
      library, "tk_kernel_launch");
  launch_bound = (tk_status(*)(const tk_bound *, void *, void *const *, size_t))find(
      library, "tk_bound_launch");

  call c;
  memset(&c, 0, sizeof c);
  void *context = NULL, *module_of_empty = NULL;
  check(init(0), "cuInit");
  check(retain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(use(context), "cuCtxSetCurrent");
  check(make_stream(&c.stream, 1), "cuStreamCreate");
  check(load(&module_of_empty, empty), "cuModuleLoadData");
  check(get(&c.function, module_of_empty, "empty"), "cuModuleGetFunction");
  static const int64_t shape[] = {ELEMENTS};
  for (int i = 0; i < 3; ++i) {
    check(allocate(&c.pointers[i], ELEMENTS * sizeof(float)), "cuMemAlloc");
    c.values[i].kind = TK_TENSOR;
    c.values[i].dtype = TK_F32;
    c.values[i].rank = 1;
    c.values[i].data = c.pointers[i];
    c.values[i].shape = shape;
    c.values[i].storage_bytes = -1;
  }
  tk_module *module = NULL;
  check(compile(add, strlen(add), "add.tk", "gpu", &module), "tk_compile");
  check(kernel_of(module, NULL, &c.kernel), "tk_module_kernel");
  check(bind(c.kernel, c.values, 3, &c.bound), "tk_kernel_bind");
  const double bare_us = microseconds(bare, &c), bound_us = microseconds(bound, &c),
               checked_us = microseconds(checked, &c);
  printf("cuLaunchKernel of an empty kernel %.2f us\n", bare_us);
  printf("tk_bound_launch                   %.2f us (%.2f of it)\n", bound_us, bound_us / bare_us);
  printf("tk_kernel_launch, checked         %.2f us (%.2f of it)\n", checked_us,
         checked_us / bare_us);
  return 0;
}
