// Checked calls: _native.Launcher.
#include "python/native/Types.h"

#include <array>
#include <cstring>
#include <new>

namespace tk::python {
namespace {

constexpr size_t max_arguments = 32;
constexpr int last_float = TK_F8E5M2;

struct Argument {
  PyObject *name;
  int dtype;
  bool is_tensor, is_written, has_default;
};

/// The results of the last call that made them, for the same inputs.
struct Recipe {
  std::vector<int64_t> inputs;
  std::vector<PyObject *> shapes; ///< tuples
  void clear() {
    for (PyObject *shape : shapes)
      Py_DecRef(shape);
    shapes.clear();
    inputs.clear();
  }
};

struct State {
  const tk_kernel *kernel = nullptr;
  std::vector<Argument> arguments;
  size_t num_params = 0;
  Recipe recipe;
};

struct Object {
  PyObject_HEAD State *state;
};

int64_t bits_of(double value) {
  int64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

State &state_of(PyObject *self) { return *reinterpret_cast<Object *>(self)->state; }

/// One call; lives on its stack.
class Call {
public:
  Call(State &state, PyObject *args, PyObject *named)
      : m_state(state), m_args(args), m_named(named) {}
  ~Call() {
    for (PyObject *result : m_made)
      Py_DecRef(result);
    for (PyObject *shape : m_shapes)
      Py_DecRef(shape);
  }
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;

  /// Null without an exception: the package has to make this call.
  PyObject *run(PyObject *out, PyObject *stream);

private:
  PyObject *input(size_t at);
  bool take_inputs();
  bool take(size_t at, PyObject *given);
  bool take_scalar(size_t at, PyObject *given);
  bool take_results(PyObject *out);
  std::vector<int64_t> inputs_as_words() const;
  bool find_shapes();
  bool make_results();
  bool wants_gradient() const;
  bool choose_stream(PyObject *given, void **stream) const;

  State &m_state;
  PyObject *m_args, *m_named;
  Py_ssize_t m_names_used = 0;
  size_t m_first_tensor = max_arguments;
  std::array<PyObject *, max_arguments> m_given{};
  std::array<Described, max_arguments> m_described;
  std::array<tk_value, max_arguments> m_values{};
  std::vector<PyObject *> m_made, m_shapes;
};

/// The input that was given for a parameter; null for none.
PyObject *Call::input(size_t at) {
  if (static_cast<Py_ssize_t>(at) < PyTuple_Size(m_args))
    return PyTuple_GetItem(m_args, static_cast<Py_ssize_t>(at));
  PyObject *given =
      m_named ? PyDict_GetItemWithError(m_named, m_state.arguments[at].name) : nullptr;
  m_names_used += given != nullptr;
  return given;
}

bool Call::take_scalar(size_t at, PyObject *given) {
  tk_value &value = m_values[at];
  PyTypeObject *type = Py_TYPE(given);
  if (type == &PyFloat_Type) {
    value.kind = TK_REAL;
    value.real = PyFloat_AsDouble(given);
    return true;
  }
  const bool is_boolean = type == &PyBool_Type;
  if (type != &PyLong_Type && (!is_boolean || m_state.arguments[at].dtype <= last_float))
    return false;
  int overflow = 0;
  value.kind = TK_INTEGER;
  value.integer = PyLong_AsLongLongAndOverflow(given, &overflow);
  return overflow == 0;
}

bool Call::take(size_t at, PyObject *given) {
  const Argument &argument = m_state.arguments[at];
  m_given[at] = given;
  if (!given || given == Py_None)
    return !argument.is_tensor && argument.has_default; // absent
  if (!argument.is_tensor)
    return take_scalar(at, given);
  if (!describe(given, argument.is_written, m_described[at]))
    return false;
  m_values[at] = m_described[at].value;
  if (m_first_tensor == max_arguments)
    m_first_tensor = at;
  return true;
}

bool Call::take_inputs() {
  if (PyTuple_Size(m_args) > static_cast<Py_ssize_t>(m_state.num_params))
    return false;
  for (size_t at = 0; at < m_state.num_params; ++at)
    if (!take(at, input(at)))
      return false;
  return !m_named || m_names_used == PyDict_Size(m_named);
}

bool Call::take_results(PyObject *out) {
  const size_t count = m_state.arguments.size() - m_state.num_params;
  if (PyTuple_Check(out)) {
    if (PyTuple_Size(out) != static_cast<Py_ssize_t>(count))
      return false;
    for (size_t r = 0; r < count; ++r)
      if (!take(m_state.num_params + r, PyTuple_GetItem(out, static_cast<Py_ssize_t>(r))))
        return false;
    return true;
  }
  return count == 1 && take(m_state.num_params, out); // a list or dictionary is no tensor
}

/// Is torch to record this call?
bool Call::wants_gradient() const {
  static PyObject *const name = PyUnicode_InternFromString("requires_grad");
  for (size_t at = 0; at < m_state.num_params; ++at) {
    if (!m_state.arguments[at].is_tensor || !m_described[at].source.api)
      continue;
    PyObject *wants = PyObject_GetAttr(m_given[at], name);
    if (!wants)
      PyErr_Clear();
    Py_DecRef(wants);
    if (wants != Py_True)
      continue;
    PyObject *recording = PyObject_CallNoArgs(package.is_recording);
    if (!recording)
      PyErr_Clear();
    Py_DecRef(recording);
    return recording != Py_False;
  }
  return false;
}

/// Everything that the results' shapes rest on.
std::vector<int64_t> Call::inputs_as_words() const {
  std::vector<int64_t> inputs;
  for (size_t at = 0; at < m_state.num_params; ++at) {
    const tk_value &value = m_values[at];
    if (value.kind == TK_TENSOR) {
      append_form(value, inputs);
    } else {
      inputs.push_back(value.kind);
      inputs.push_back(value.kind == TK_REAL ? bits_of(value.real) : value.integer);
    }
  }
  return inputs;
}

/// Brings the recipe up to date for these inputs.
bool Call::find_shapes() {
  std::vector<int64_t> inputs = inputs_as_words();
  Recipe &recipe = m_state.recipe;
  if (recipe.inputs == inputs)
    return true;
  recipe.clear();
  const size_t count = m_state.arguments.size();
  for (size_t at = m_state.num_params; at < count; ++at) {
    int64_t shape[max_rank];
    int32_t rank = 0;
    PyObject *extents = nullptr;
    if (library.shape_for(m_state.kernel, at, m_values.data(), count, shape, &rank) == TK_OK)
      extents = PyTuple_New(rank);
    for (int32_t axis = 0; extents && axis < rank; ++axis)
      PyTuple_SetItem(extents, axis, PyLong_FromLongLong(shape[axis]));
    if (!extents) {
      PyErr_Clear();
      recipe.clear();
      return false;
    }
    recipe.shapes.push_back(extents);
  }
  recipe.inputs = std::move(inputs);
  return true;
}

/// Makes the results like the first tensor, by the package.
bool Call::make_results() {
  if (m_first_tensor >= m_state.num_params || wants_gradient() || !find_shapes())
    return false;
  m_shapes = m_state.recipe.shapes; // which another thread may replace while the package runs
  for (PyObject *shape : m_shapes)
    Py_IncRef(shape);
  for (size_t r = 0; r < m_shapes.size(); ++r) {
    const size_t at = m_state.num_params + r;
    PyObject *dtype = PyLong_FromLong(m_state.arguments[at].dtype);
    PyObject *made = PyObject_CallFunctionObjArgs(package.make, m_given[m_first_tensor], dtype,
                                                  m_shapes[r], nullptr);
    Py_DecRef(dtype);
    if (!made) {
      PyErr_Clear();
      return false;
    }
    m_made.push_back(made);
    if (!take(at, made))
      return false;
  }
  return true;
}

bool Call::choose_stream(PyObject *given, void **stream) const {
  if (given == Py_None) {
    if (m_first_tensor == max_arguments)
      return current_stream(nullptr, -1, stream);
    return current_stream(m_described[m_first_tensor].source.api, m_values[m_first_tensor].device,
                          stream);
  }
  if (Py_TYPE(given) != &PyLong_Type)
    return false;
  *stream = PyLong_AsVoidPtr(given);
  if (PyErr_Occurred())
    PyErr_Clear();
  return *stream != nullptr;
}

PyObject *Call::run(PyObject *out, PyObject *given_stream) {
  void *stream = nullptr;
  if (!take_inputs() || !(out == Py_None ? make_results() : take_results(out)) ||
      !choose_stream(given_stream, &stream))
    return nullptr;
  tk_status status = TK_OK;
  PyThreadState *thread = PyEval_SaveThread();
  status = library.launch(m_state.kernel, stream, m_values.data(), m_state.arguments.size());
  PyEval_RestoreThread(thread);
  if (status != TK_OK)
    return raise(status);
  const size_t first = m_state.num_params, count = m_state.arguments.size() - first;
  if (count == 1)
    return Py_NewRef(m_given[first]);
  PyObject *results = PyTuple_New(static_cast<Py_ssize_t>(count));
  for (size_t r = 0; results && r < count; ++r)
    PyTuple_SetItem(results, static_cast<Py_ssize_t>(r), Py_NewRef(m_given[first + r]));
  return results;
}

/// launch(args, out, stream, named): the result, or None where the package has to make the call.
PyObject *launch(PyObject *self, PyObject *const *args, Py_ssize_t count) {
  State &state = state_of(self);
  if (count != 4 || !PyTuple_Check(args[0])) {
    PyErr_SetString(PyExc_TypeError, "launch(args, out, stream, named)");
    return nullptr;
  }
  const bool has_names = PyDict_Check(args[3]) && PyDict_Size(args[3]) > 0;
  Call call(state, args[0], has_names ? args[3] : nullptr);
  PyObject *result = call.run(args[1], args[2]);
  if (!result && !PyErr_Occurred())
    return Py_NewRef(Py_None);
  return result;
}

/// Launcher(kernel, arguments, num_params): arguments are (name, dtype, is_tensor, is_written,
/// has_default).
PyObject *make(PyTypeObject *type, PyObject *args, PyObject *) {
  unsigned long long kernel = 0;
  PyObject *list = nullptr;
  Py_ssize_t num_params = 0;
  if (!PyArg_ParseTuple(args, "KO!n", &kernel, &PyTuple_Type, &list, &num_params))
    return nullptr;
  const Py_ssize_t count = PyTuple_Size(list);
  if (count > static_cast<Py_ssize_t>(max_arguments) || num_params > count)
    return PyErr_Format(PyExc_ValueError, "%zd arguments are too many", count);
  auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  PyObject *self = allocate(type, 0);
  if (!self)
    return nullptr;
  auto *state = new (std::nothrow) State;
  reinterpret_cast<Object *>(self)->state = state;
  if (!state) {
    Py_DecRef(self);
    return PyErr_NoMemory();
  }
  state->kernel = reinterpret_cast<const tk_kernel *>(static_cast<uintptr_t>(kernel));
  state->num_params = static_cast<size_t>(num_params);
  for (Py_ssize_t i = 0; i < count; ++i) {
    Argument argument{};
    int is_tensor = 0, is_written = 0, has_default = 0;
    if (!PyArg_ParseTuple(PyTuple_GetItem(list, i), "Oippp", &argument.name, &argument.dtype,
                          &is_tensor, &is_written, &has_default)) {
      Py_DecRef(self);
      return nullptr;
    }
    Py_IncRef(argument.name);
    argument.is_tensor = is_tensor != 0;
    argument.is_written = is_written != 0;
    argument.has_default = has_default != 0;
    state->arguments.push_back(argument);
  }
  return self;
}

void destroy(PyObject *self) {
  if (State *state = reinterpret_cast<Object *>(self)->state) {
    state->recipe.clear();
    for (const Argument &argument : state->arguments)
      Py_DecRef(argument.name);
    delete state;
  }
  PyTypeObject *type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DecRef(reinterpret_cast<PyObject *>(type));
}

PyMethodDef methods[] = {{"launch",
                          reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(launch)),
                          METH_FASTCALL, "launch(args, out, stream, named)"},
                         {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void *>(make)},
                       {Py_tp_dealloc, reinterpret_cast<void *>(destroy)},
                       {Py_tp_methods, methods},
                       {0, nullptr}};

} // namespace

PyType_Spec launcher_spec = {"tk._native.Launcher", sizeof(Object), 0, Py_TPFLAGS_DEFAULT, slots};

} // namespace tk::python
