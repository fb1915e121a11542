#include "python/native/Tensors.h"

#include <algorithm>
#include <array>

namespace tk::python {

Library library;
Package package;

namespace {

constexpr int cuda_device_type = 2; // kDLCUDA

/// The type of a buffer's elements; -1 where tk has none, or the bytes are in the other order.
int32_t dtype_of(const Py_buffer &view) {
  const char *format = view.format ? view.format : "B";
  if (format[0] == 0 || format[1] != 0)
    return -1;
  switch (format[0]) {
  case 'd':
    return TK_F64;
  case 'f':
    return TK_F32;
  case 'e':
    return TK_F16;
  case 'l':
  case 'q':
    return view.itemsize == 8 ? TK_I64 : -1;
  case 'i':
    return TK_I32;
  case 'h':
    return TK_I16;
  case 'b':
    return TK_I8;
  case 'B':
    return TK_U8;
  case '?':
    return TK_BOOL;
  default:
    return -1;
  }
}

bool describe_buffer(const Py_buffer &view, Described &described) {
  tk_value &value = described.value;
  value.dtype = dtype_of(view);
  if (value.dtype < 0 || view.ndim > max_rank)
    return false;
  for (int axis = 0; axis < view.ndim; ++axis) {
    if (view.strides[axis] % view.itemsize != 0)
      return false;
    described.shape[axis] = view.shape[axis];
    described.strides[axis] = view.strides[axis] / view.itemsize;
  }
  value.kind = TK_TENSOR;
  value.rank = view.ndim;
  value.device = -1;
  value.data = view.buf;
  value.shape = described.shape;
  value.strides = described.strides;
  value.storage_bytes = -1;
  return true;
}

/// Forgets an exception: the package meets it again and reports it.
bool give_up() {
  PyErr_Clear();
  return false;
}

/// Does the memory hold the negated values? PyTorch has such views of the imaginary parts of
/// conjugates: no two of their elements are neighbours.
bool may_be_negated(PyObject *tensor, const tk_value &value) {
  static PyObject *const name = PyUnicode_InternFromString("is_neg");
  if (value.strides &&
      std::find(value.strides, value.strides + value.rank, 1) != value.strides + value.rank)
    return false;
  PyObject *answer = PyObject_CallMethodObjArgs(tensor, name, nullptr);
  if (!answer)
    return give_up(); // another library's
  Py_DecRef(answer);
  return answer == Py_True;
}

Source ask(PyTypeObject *type) {
  Source source;
  source.type = type;
  Py_IncRef(reinterpret_cast<PyObject *>(type)); // stays known
  PyObject *answer = PyObject_CallFunctionObjArgs(package.source_of, type, nullptr);
  if (!answer) {
    give_up();
    return source;
  }
  source.is_array = answer == Py_True;
  if (PyCapsule_IsValid(answer, "dlpack_exchange_api")) {
    const auto *api =
        static_cast<const ExchangeApi *>(PyCapsule_GetPointer(answer, "dlpack_exchange_api"));
    if (api->major == 1 && api->tensor_from_object)
      source.api = api; // the library keeps it for good
  }
  Py_DecRef(answer);
  return source;
}

} // namespace

Source source_of(PyObject *tensor) {
  static std::array<Source, 8> known;
  static size_t next = 0;
  PyTypeObject *type = Py_TYPE(tensor);
  for (const Source &source : known)
    if (source.type == type)
      return source;
  Source found = ask(type); // may run any code
  Source &slot = known[next++ % known.size()];
  Py_DecRef(reinterpret_cast<PyObject *>(slot.type)); // null is allowed
  slot = found;
  return slot;
}

bool describe(PyObject *tensor, bool is_written, Described &described) {
  described.source = source_of(tensor);
  if (described.source.api) {
    DLTensor view;
    if (described.source.api->tensor_from_object(tensor, &view) != 0)
      return give_up();
    return library.from_dlpack(&view, &described.value) == TK_OK && view.ndim <= max_rank &&
           !may_be_negated(tensor, described.value); // the tensor keeps shape and strides
  }
  if (!described.source.is_array)
    return false;
  Py_buffer view;
  const int flags = PyBUF_STRIDED_RO | PyBUF_FORMAT | (is_written ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(tensor, &view, flags) != 0)
    return give_up();
  const bool done = describe_buffer(view, described);
  PyBuffer_Release(&view); // the caller holds the array
  return done;
}

static int64_t head_of(const tk_value &value) {
  return value.kind | value.dtype << 4 | value.rank << 12 | int64_t{value.device} << 32;
}

void append_form(const tk_value &value, std::vector<int64_t> &words) {
  words.push_back(head_of(value));
  words.insert(words.end(), value.shape, value.shape + value.rank);
  if (value.strides)
    words.insert(words.end(), value.strides, value.strides + value.rank);
}

bool has_form(const tk_value &value, const std::vector<int64_t> &words) {
  const auto rank = static_cast<size_t>(value.rank);
  return words.size() == 1 + rank * (value.strides ? 2 : 1) && words[0] == head_of(value) &&
         std::equal(value.shape, value.shape + rank, words.begin() + 1) &&
         (!value.strides || std::equal(value.strides, value.strides + rank,
                                       words.end() - static_cast<std::ptrdiff_t>(rank)));
}

bool current_stream(const ExchangeApi *api, int32_t device, void **stream) {
  *stream = nullptr;
  if (device < 0)
    return true;
  if (!api || !api->current_stream)
    return false;
  return api->current_stream(cuda_device_type, device, stream) == 0 || give_up();
}

PyObject *raise(tk_status status) {
  PyObject *number = PyLong_FromLong(status);
  PyObject *nothing =
      number ? PyObject_CallFunctionObjArgs(package.check, number, nullptr) : nullptr;
  Py_DecRef(number);
  if (nothing) {
    Py_DecRef(nothing);
    PyErr_SetString(PyExc_RuntimeError, "a call failed");
  }
  return nullptr;
}

} // namespace tk::python
