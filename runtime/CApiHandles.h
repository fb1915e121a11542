// What the files of the C interface share: handles, and how errors become codes.
#ifndef TK_RUNTIME_CAPIHANDLES_H
#define TK_RUNTIME_CAPIHANDLES_H

#include <string>
#include <vector>

#include "runtime/Kernel.h"
#include "tk/tk_c.h"

struct tk_module {
  tk::Module module;
  std::vector<std::string> names;
  std::string diagnostics;
};

struct tk_kernel {
  tk::Kernel kernel;
  std::string signature;
};

namespace tk::c_api {

/// Keeps the message for tk_last_error; the code of the error.
tk_status fail(const Error &error);
/// Throws `invalid_argument` where a condition does not hold.
void require(bool condition, const char *what);
/// The values by name, without the absent ones.
std::vector<NamedValue> named_values(const tk_kernel *kernel, const tk_value *values, size_t count);

/// A text that may be null.
inline std::string text_or_empty(const char *text) { return text ? text : ""; }

/// Runs what may throw. No exception leaves it.
template <typename F> tk_status guarded(F &&function) {
  Status status = detail::capture(std::forward<F>(function));
  return status ? TK_OK : fail(status.error());
}

} // namespace tk::c_api

#endif // TK_RUNTIME_CAPIHANDLES_H
