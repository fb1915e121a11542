// The library that `import std` names.

#ifndef TK_FRONTEND_STDLIBRARY_H
#define TK_FRONTEND_STDLIBRARY_H

#include <string_view>

namespace tk {

/// The text of frontend/std.tk, which is part of the binary.
std::string_view stdLibrary();

} // namespace tk

#endif // TK_FRONTEND_STDLIBRARY_H
