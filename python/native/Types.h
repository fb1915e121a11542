// The types of the extension.
#ifndef TK_PYTHON_NATIVE_TYPES_H
#define TK_PYTHON_NATIVE_TYPES_H

#include "python/native/Tensors.h"

namespace tk::python {

/// Launcher: checked calls of a kernel.
extern PyType_Spec launcher_spec;
/// Bound: launches of a bound kernel; the base of the package's BoundKernel.
extern PyType_Spec bound_spec;

} // namespace tk::python

#endif // TK_PYTHON_NATIVE_TYPES_H
