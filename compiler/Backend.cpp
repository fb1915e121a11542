//===- Backend.cpp - registers the compiler with the runtime --------------===//
//
// Linked into every program that compiles. The runtime knows the compiler only through the
// interface in tk/backend.h; `tk_compiler_anchor` is what link interfaces name to keep this file.
//
//===----------------------------------------------------------------------===//
#include "compiler/CompiledSource.h"

extern "C" {
extern const int tk_compiler_anchor;
const int tk_compiler_anchor = 1;
}

namespace tk {
namespace {

class Compiler : public detail::CompilerBackend {
public:
  Compiler() { detail::set_compiler_backend(this); }

  Expected<std::shared_ptr<detail::CompiledModule>>
  compile(std::string_view source, const CompileOptions &options) override {
    DriverOptions driver;
    Expected<std::shared_ptr<CompiledSource>> compiled =
        CompiledSource::create(source, options, driver);
    if (!compiled)
      return compiled.error();
    (*compiled)->nameFilesAsGiven();
    return std::shared_ptr<detail::CompiledModule>(std::move(*compiled));
  }
};

// Lives as long as the process: threads may still compile while it ends.
Compiler &compiler = *new Compiler();

} // namespace
} // namespace tk
