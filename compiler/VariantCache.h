//===- VariantCache.h - compiled variants on disk ----------------*- C++ -*-===//
//
// What a compilation makes is kept in two kinds of entries. One goes from a kernel before any pass
// to its CUDA text and launch plan, or to its object code on the CPU; its key has this compiler's
// build. The other goes from CUDA text to machine code; its key has NVRTC's version instead, so
// that a new build which prints the same text finds the code again.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_VARIANTCACHE_H
#define TK_COMPILER_VARIANTCACHE_H

#include "runtime/Cache.h"
#include "tk/backend.h"

#include "mlir/IR/BuiltinOps.h"

#include <set>

namespace tk {

/// A digest that differs between any two builds of the compiler: the linker's build id of the
/// program or library that this code is in, else its path, size and time.
const std::string &compilerBuild();

/// The key of a kernel, alone in its module before any pass, with facts and target attached.
/// Locations count: they end up in `#line` and in the plan. So do `lines`, the text of the source's
/// lines that comments quote, and whether the text is to have `#line`.
detail::Digest variantKey(mlir::ModuleOp module, std::string_view target, const std::string &lines,
                          bool lineDirectives, const std::set<std::string> &disabledPasses,
                          const CompileOptions &options);

/// CUDA text and plan.
std::optional<detail::Executable> loadEmitted(const detail::Cache &cache, const detail::Digest &key,
                                              const Signature &signature);
void storeEmitted(const detail::Cache &cache, const detail::Digest &key,
                  const detail::Executable &executable);

} // namespace tk

#endif // TK_COMPILER_VARIANTCACHE_H
