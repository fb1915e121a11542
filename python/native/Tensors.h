// Tensors of NumPy and of libraries with DLPack's C exchange API as values of the C interface.
#ifndef TK_PYTHON_NATIVE_TENSORS_H
#define TK_PYTHON_NATIVE_TENSORS_H

// The stable interface: one build serves every Python from 3.11 on.
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "runtime/Dlpack.h"
#include "tk/tk_c.h"

#include <vector>

namespace tk::python {

inline constexpr int max_rank = 8;

/// The functions of libtk.so that are called; Python gives their addresses.
struct Library {
  decltype(&tk_kernel_launch) launch = nullptr;
  decltype(&tk_bound_launch) launch_bound = nullptr;
  decltype(&tk_value_from_dlpack) from_dlpack = nullptr;
  decltype(&tk_kernel_shape_for) shape_for = nullptr;
};
extern Library library;

/// Functions of the package: `check(status)` raises, `source_of(type)` gives the capsule of a
/// type's exchange API, True for NumPy's arrays, or None, `make(sample, dtype, shape)` makes a
/// result, and `is_recording()` says whether torch records gradients.
struct Package {
  PyObject *check = nullptr;
  PyObject *source_of = nullptr;
  PyObject *make = nullptr;
  PyObject *is_recording = nullptr;
};
extern Package package;

/// DLPack's exchange API, with the layout that its specification fixes; what is not called is void
/// *.
struct ExchangeApi {
  uint32_t major, minor;
  void *previous;
  void *allocate, *from_object, *to_object;
  int (*tensor_from_object)(void *object, DLTensor *tensor);
  int (*current_stream)(int device_type, int32_t device, void **stream);
};

/// How the tensors of a Python type are described.
struct Source {
  PyTypeObject *type = nullptr;
  const ExchangeApi *api = nullptr; ///< null: by the buffer protocol, or not here
  bool is_array = false;            ///< one of NumPy's
};
Source source_of(PyObject *tensor);

/// A tensor, and the arrays that its value points to.
struct Described {
  tk_value value{};
  Source source;
  int64_t shape[max_rank], strides[max_rank];
};

/// Describes a tensor; false, and no exception, where the package has to. `is_written` refuses
/// read-only arrays.
bool describe(PyObject *tensor, bool is_written, Described &described);

/// Appends everything of a tensor but its address.
void append_form(const tk_value &value, std::vector<int64_t> &words);
/// Would these words be appended for a tensor?
bool has_form(const tk_value &value, const std::vector<int64_t> &words);

/// The stream on which a tensor's library works; false where the package has to ask.
bool current_stream(const ExchangeApi *api, int32_t device, void **stream);

/// Raises for a status, by the package; null.
PyObject *raise(tk_status status);

} // namespace tk::python

#endif // TK_PYTHON_NATIVE_TENSORS_H
