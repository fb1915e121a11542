/* The C interface, from C: compile, look, launch, and the texts of errors. */
#include "tk/tk_c.h"

#include <stdio.h>
#include <string.h>

static int failures;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      ++failures;                                                                                  \
      fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition,                  \
              tk_last_error());                                                                    \
    }                                                                                              \
  } while (0)

static const char source[] = "kernel axpy(x: f32[N], y: f32[N], a: f32 = 2) -> (z: f32[N]) {\n"
                             "  z[i] = a * x[i] + y[i]\n"
                             "}\n";

/* As in dlpack.h. */
struct DLTensor {
  void *data;
  struct {
    int32_t type, id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};

static tk_value tensor(float *data, const int64_t *shape) {
  tk_value value;
  memset(&value, 0, sizeof value);
  value.kind = TK_TENSOR;
  value.dtype = TK_F32;
  value.rank = 1;
  value.device = -1;
  value.data = data;
  value.shape = shape;
  value.storage_bytes = -1;
  return value;
}

static void look(const tk_module *module, const tk_kernel *kernel) {
  tk_argument argument;
  CHECK(tk_module_num_kernels(module) == 1);
  CHECK(strcmp(tk_module_kernel_name(module, 0), "axpy") == 0);
  CHECK(strcmp(tk_module_target(module), "cpu") == 0);
  CHECK(strcmp(tk_kernel_name(kernel), "axpy") == 0);
  CHECK(strstr(tk_kernel_signature(kernel), "x: f32[N]") != NULL);
  CHECK(tk_kernel_num_dims(kernel) == 1);
  CHECK(tk_kernel_num_arguments(kernel) == 4);
  CHECK(tk_kernel_argument(kernel, 2, &argument) == TK_OK);
  CHECK(!argument.is_tensor && argument.has_default && argument.dtype == TK_F32);
  CHECK(tk_kernel_argument(kernel, 3, &argument) == TK_OK);
  CHECK(argument.is_result && argument.rank == 1);
  CHECK(strcmp(tk_kernel_extent(kernel, 3, 0), "N") == 0);
}

static void launch(const tk_kernel *kernel) {
  float x[5] = {1, 2, 3, 4, 5}, y[5] = {1, 1, 1, 1, 1}, z[5] = {0};
  int64_t shape[1] = {5}, other[1] = {4}, dims[1] = {0}, found[8];
  int32_t rank = 0;
  tk_value values[4];
  values[0] = tensor(x, shape);
  values[1] = tensor(y, shape);
  memset(&values[2], 0, sizeof values[2]);
  values[3] = tensor(z, shape);
  CHECK(tk_kernel_solve(kernel, values, 4, dims) == TK_OK && dims[0] == 5);
  CHECK(tk_kernel_shape(kernel, 3, dims, found, &rank) == TK_OK && rank == 1 && found[0] == 5);
  CHECK(tk_kernel_shape_for(kernel, 3, values, 4, found, &rank) == TK_OK && found[0] == 5);
  CHECK(tk_kernel_launch(kernel, NULL, values, 4) == TK_OK);
  CHECK(z[0] == 3 && z[4] == 11);
  values[2].kind = TK_REAL;
  values[2].real = -1;
  CHECK(tk_kernel_prepare(kernel, values, 4) == TK_OK);
  CHECK(tk_kernel_launch(kernel, NULL, values, 4) == TK_OK);
  CHECK(z[0] == 0 && z[4] == -4);
  values[1].shape = other;
  CHECK(tk_kernel_launch(kernel, NULL, values, 4) == TK_SHAPE_MISMATCH);
  CHECK(strstr(tk_last_error(), "dimension 'N'") != NULL);
}

static void bind(const tk_kernel *kernel) {
  float x[3] = {1, 2, 3}, y[3] = {1, 1, 1}, z[3] = {0};
  int64_t shape[1] = {3};
  void *pointers[3] = {y, x, z};
  tk_bound *bound = NULL;
  tk_value values[4];
  memset(values, 0, sizeof values);
  values[0] = tensor(x, shape);
  values[1] = tensor(y, shape);
  values[3] = tensor(z, shape);
  CHECK(tk_kernel_bind(kernel, values, 3, &bound) == TK_INVALID_ARGUMENT && !bound);
  CHECK(tk_kernel_bind(kernel, values, 4, &bound) == TK_OK);
  CHECK(tk_bound_launch(bound, NULL, pointers, 3) == TK_OK);
  CHECK(z[0] == 3 && z[2] == 5);
  CHECK(tk_bound_launch(bound, NULL, pointers, 2) == TK_INVALID_ARGUMENT);
  CHECK(tk_bound_launch(NULL, NULL, pointers, 3) == TK_INVALID_ARGUMENT);
  tk_bound_free(bound);
}

static void dlpack(const tk_kernel *kernel) {
  float x[4] = {9, 1, 2, 3}, z[3] = {0};
  int64_t shape[1] = {3};
  struct DLTensor dl = {x, {1, 0}, 1, {2, 32, 1}, shape, NULL, sizeof(float)};
  tk_value values[4];
  memset(values, 0, sizeof values);
  CHECK(tk_value_from_dlpack(&dl, &values[0]) == TK_OK);
  CHECK(values[0].kind == TK_TENSOR && values[0].data == x + 1 && values[0].device == -1);
  values[1] = values[0];
  values[3] = tensor(z, shape);
  CHECK(tk_kernel_launch(kernel, NULL, values, 4) == TK_OK && z[2] == 9);
  dl.dtype.lanes = 4;
  CHECK(tk_value_from_dlpack(&dl, &values[0]) == TK_UNSUPPORTED);
  CHECK(tk_value_from_dlpack(NULL, &values[0]) == TK_INVALID_ARGUMENT);
}

/* The text of a stage or report for N elements; "" where it is refused. */
static const char *text_at(const tk_kernel *kernel, const char *stage, int64_t n) {
  static char copy[100000];
  char *text = NULL;
  size_t size = 0;
  copy[0] = 0;
  if (tk_kernel_text_for(kernel, stage, "sm_90a", &n, 1, &text, &size) == TK_OK) {
    snprintf(copy, sizeof copy, "%s", text);
    CHECK(strlen(text) == size);
    tk_text_free(text);
  }
  return copy;
}

static void texts_for_sizes(const tk_kernel *kernel) {
  char *text = NULL;
  const int64_t sizes[2] = {8, 8};
  CHECK(strstr(text_at(kernel, "cuda", 1000), "__global__") != NULL);
  CHECK(strstr(text_at(kernel, "cuda", -1), "__global__") != NULL);
  CHECK(strstr(text_at(kernel, "explain", 1000), "z[i] = a * x[i] + y[i]") != NULL);
  CHECK(strstr(text_at(kernel, "cost", 1 << 20), "\"predicted_us\":") != NULL);
  CHECK(strcmp(text_at(kernel, "cost", -1), "") == 0);
  CHECK(strstr(tk_last_error(), "depends on all of its dimensions") != NULL);
  CHECK(strcmp(text_at(kernel, "soup", 8), "") == 0);
  CHECK(strcmp(text_at(kernel, "cuda", -2), "") == 0);
  CHECK(strstr(tk_last_error(), "dimension 'N': expected a size, got -2") != NULL);
  CHECK(tk_kernel_text_for(kernel, "cuda", "sm_90a", sizes, 2, &text, NULL) == TK_INVALID_ARGUMENT);
  CHECK(strstr(tk_last_error(), "expected 1 sizes, one for each dimension, got 2") != NULL);
  CHECK(tk_kernel_text_for(kernel, "inspect", "cpu", sizes, 1, &text, NULL) == TK_INVALID_ARGUMENT);
  CHECK(tk_kernel_text_for(kernel, "cuda", "sm_90a", NULL, 1, &text, NULL) == TK_INVALID_ARGUMENT);
}

static void checked(void) {
  static const char take[] = "kernel take(x: f32[N], at: i32[B]) -> (y: f32[B]) {\n"
                             "  y[b] = x[at[b]]\n"
                             "}\n";
  float x[3] = {1, 2, 3}, y[2] = {-1, -1};
  int32_t at[2] = {2, 3};
  int64_t three = 3, two = 2;
  tk_module *module = NULL;
  tk_kernel *kernel = NULL;
  tk_value values[3];
  CHECK(tk_compile_checked(take, strlen(take), "take.tk", "cpu", NULL, NULL, &module) == TK_OK);
  CHECK(tk_module_kernel(module, NULL, &kernel) == TK_OK);
  values[0] = tensor(x, &three);
  values[1] = tensor((float *)at, &two);
  values[1].dtype = TK_I32;
  values[2] = tensor(y, &two);
  CHECK(tk_kernel_launch(kernel, NULL, values, 3) == TK_INDEX_OUT_OF_BOUNDS);
  CHECK(strstr(tk_last_error(), "is 3, expected 0 to 2") != NULL);
  CHECK(strcmp(tk_last_error_place(), "take.tk:2:12") == 0);
  CHECK(y[0] == -1 && y[1] == -1);
  at[1] = 0;
  CHECK(tk_kernel_launch(kernel, NULL, values, 3) == TK_OK);
  CHECK(y[0] == 3 && y[1] == 1);
  tk_kernel_free(kernel);
  tk_module_free(module);
}

int main(void) {
  tk_module *module = NULL, *none = NULL;
  tk_kernel *kernel = NULL;
  char *text = NULL;
  size_t size = 0;
  CHECK(tk_version()[0] != '\0');
  CHECK(tk_compile("kernel k(", 9, "broken.tk", "cpu", &none) == TK_COMPILE_FAILED && !none);
  CHECK(strstr(tk_last_error(), "broken.tk:1:") != NULL);
  CHECK(tk_compile_file("/nonexistent.tk", "cpu", &none) == TK_IO);
  checked();
  if (tk_compile(source, strlen(source), "axpy.tk", "cpu", &module) != TK_OK) {
    fprintf(stderr, "%s\n", tk_last_error());
    return 1;
  }
  CHECK(tk_module_kernel(module, "nope", &kernel) == TK_INVALID_ARGUMENT);
  CHECK(strstr(tk_last_error(), "it has axpy") != NULL);
  CHECK(tk_module_kernel(module, NULL, &kernel) == TK_OK);
  look(module, kernel);
  texts_for_sizes(kernel);
  CHECK(tk_kernel_text(kernel, "cuda", "sm_90a", &text, &size) == TK_OK);
  CHECK(text && size == strlen(text) && strstr(text, "__global__") != NULL);
  tk_text_free(text);
  size = 0;
  CHECK(tk_module_resources(module, "axpy", NULL, &size) == TK_UNSUPPORTED);
  CHECK(strstr(tk_last_error(), "GPU targets") != NULL);
  CHECK(tk_load_bundle("/nonexistent.tkb", &none) == TK_IO && !none);
  /* The kernel stays valid without its module. */
  tk_module_free(module);
  launch(kernel);
  bind(kernel);
  dlpack(kernel);
  tk_kernel_free(kernel);
  return failures != 0;
}
