// The extension tk._native: calls of kernels without ctypes. The package works without it.
#include "python/native/Types.h"

namespace tk::python {
namespace {

template <typename F> void set(F &function, unsigned long long address) {
  function = reinterpret_cast<F>(static_cast<uintptr_t>(address));
}

/// connect(addresses of tk_kernel_launch, tk_bound_launch, tk_value_from_dlpack and
/// tk_kernel_shape_for, check, source_of, make, is_recording): once, before anything is called.
PyObject *connect(PyObject *, PyObject *args) {
  unsigned long long launch = 0, bound = 0, dlpack = 0, shape = 0;
  Package given;
  if (!PyArg_ParseTuple(args, "KKKKOOOO", &launch, &bound, &dlpack, &shape, &given.check,
                        &given.source_of, &given.make, &given.is_recording))
    return nullptr;
  for (PyObject *function : {given.check, given.source_of, given.make, given.is_recording})
    Py_IncRef(function);
  package = given;
  set(library.launch, launch);
  set(library.launch_bound, bound);
  set(library.from_dlpack, dlpack);
  set(library.shape_for, shape);
  return Py_NewRef(Py_None);
}

PyMethodDef functions[] = {{"connect", connect, METH_VARARGS, "gives the functions to be called"},
                           {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "tk._native",
                          "Calls of kernels without ctypes.",
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

} // namespace
} // namespace tk::python

PyMODINIT_FUNC PyInit__native(void) {
  using namespace tk::python;
  PyObject *module = PyModule_Create(&definition);
  for (PyType_Spec *spec : {&launcher_spec, &bound_spec}) {
    PyObject *type = module ? PyType_FromSpec(spec) : nullptr;
    if (!type || PyModule_AddType(module, reinterpret_cast<PyTypeObject *>(type)) != 0) {
      Py_DecRef(type);
      Py_DecRef(module);
      return nullptr;
    }
    Py_DecRef(type);
  }
  return module;
}
