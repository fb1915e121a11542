// The version of the language's semantics that compiled code implements.
#ifndef TK_RUNTIME_SEMANTICS_H
#define TK_RUNTIME_SEMANTICS_H

#include <cstdint>

namespace tk::detail {

/// Changes whenever the same program text computes other values than before. Cache keys and bundles
/// hold it, so that code of other semantics is never run. Version 2 is that of language 1.1: `rand`
/// by words of a block, integers narrower than 32 bits computed in i32, masked elements unseen, one
/// value a name.
constexpr uint32_t semantics_version = 2;

} // namespace tk::detail

#endif // TK_RUNTIME_SEMANTICS_H
