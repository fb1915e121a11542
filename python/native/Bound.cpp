// Bound launches: _native.Bound.
#include "python/native/Types.h"

#include <array>
#include <new>

namespace tk::python {
namespace {

constexpr size_t max_tensors = 32;

struct State {
  const tk_bound *bound = nullptr;
  int32_t device = -1;
  const ExchangeApi *api = nullptr; ///< of the first tensor
  std::vector<void *> own;          ///< the addresses that were bound
  std::vector<bool> written;
  std::vector<std::vector<int64_t>> forms; ///< empty where one cannot be told here
  PyObject *results = nullptr;             ///< those that were bound
  size_t num_results = 0;
};

struct Object {
  PyObject_HEAD State *state;
};

State *state_of(PyObject *self) { return reinterpret_cast<Object *>(self)->state; }

/// The package makes the call.
PyObject *call_slowly(PyObject *self, PyObject *args, PyObject *named) {
  PyObject *slow = PyObject_GetAttrString(self, "_launch");
  PyObject *result = slow ? PyObject_Call(slow, args, named) : nullptr;
  Py_DecRef(slow);
  return result;
}

bool launch(const State &state, void *stream, void *const *pointers) {
  PyThreadState *thread = PyEval_SaveThread();
  const tk_status status = library.launch_bound(state.bound, stream, pointers, state.own.size());
  PyEval_RestoreThread(thread);
  if (status != TK_OK)
    raise(status);
  return status == TK_OK;
}

/// The addresses of tensors that have the forms that were bound; false where the package has to
/// look.
bool addresses_of(const State &state, PyObject *args, std::array<void *, max_tensors> &pointers) {
  if (state.forms.size() != static_cast<size_t>(PyTuple_Size(args)))
    return false;
  for (size_t t = 0; t < state.forms.size(); ++t) {
    Described described;
    if (!describe(PyTuple_GetItem(args, static_cast<Py_ssize_t>(t)), state.written[t], described))
      return false;
    if (!has_form(described.value, state.forms[t]))
      return false;
    pointers[t] = described.value.data;
  }
  return true;
}

/// bound(*tensors, stream=None)
PyObject *call(PyObject *self, PyObject *args, PyObject *named) {
  State *state = state_of(self);
  void *stream = nullptr;
  if (!state || (named && PyDict_Size(named) > 0) ||
      !current_stream(state->api, state->device, &stream))
    return call_slowly(self, args, named);
  const Py_ssize_t count = PyTuple_Size(args);
  if (count == 0)
    return launch(*state, stream, state->own.data()) ? Py_NewRef(state->results) : nullptr;
  std::array<void *, max_tensors> pointers;
  if (!addresses_of(*state, args, pointers))
    return call_slowly(self, args, named);
  if (!launch(*state, stream, pointers.data()))
    return nullptr;
  const auto results = static_cast<Py_ssize_t>(state->num_results);
  return results == 1 ? Py_NewRef(PyTuple_GetItem(args, count - 1))
                      : PyTuple_GetSlice(args, count - results, count);
}

/// _connect(bound, tensors, addresses, written, device, results, num_results): once.
PyObject *connect(PyObject *self, PyObject *args) {
  unsigned long long handle = 0;
  PyObject *tensors = nullptr, *addresses = nullptr, *written = nullptr, *results = nullptr;
  int device = -1;
  Py_ssize_t num_results = 0;
  if (!PyArg_ParseTuple(args, "KO!O!O!iOn", &handle, &PyTuple_Type, &tensors, &PyTuple_Type,
                        &addresses, &PyTuple_Type, &written, &device, &results, &num_results))
    return nullptr;
  const Py_ssize_t count = PyTuple_Size(tensors);
  if (state_of(self) || count > static_cast<Py_ssize_t>(max_tensors) ||
      PyTuple_Size(addresses) != count || PyTuple_Size(written) != count)
    return Py_NewRef(Py_None);
  auto *state = new (std::nothrow) State;
  if (!state)
    return PyErr_NoMemory();
  state->bound = reinterpret_cast<const tk_bound *>(static_cast<uintptr_t>(handle));
  state->device = device;
  state->results = Py_NewRef(results);
  state->num_results = static_cast<size_t>(num_results);
  bool known = true;
  for (Py_ssize_t t = 0; t < count; ++t) {
    PyObject *address = PyTuple_GetItem(addresses, t), *tensor = PyTuple_GetItem(tensors, t);
    state->own.push_back(address == Py_None ? nullptr : PyLong_AsVoidPtr(address));
    state->written.push_back(PyTuple_GetItem(written, t) == Py_True);
    Described described;
    known = known && describe(tensor, false, described);
    if (!known)
      continue;
    if (t == 0)
      state->api = described.source.api;
    append_form(described.value, state->forms.emplace_back());
  }
  if (!known)
    state->forms.clear();
  reinterpret_cast<Object *>(self)->state = state;
  return Py_NewRef(Py_None);
}

void destroy(PyObject *self) {
  if (State *state = state_of(self)) {
    Py_DecRef(state->results);
    delete state;
  }
  PyTypeObject *type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DecRef(reinterpret_cast<PyObject *>(type));
}

PyMethodDef methods[] = {{"_connect", connect, METH_VARARGS, "what a launch needs; once"},
                         {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void *>(call)},
                       {Py_tp_dealloc, reinterpret_cast<void *>(destroy)},
                       {Py_tp_methods, methods},
                       {0, nullptr}};

} // namespace

PyType_Spec bound_spec = {"tk._native.Bound", sizeof(Object), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

} // namespace tk::python
