//===- CompileEmu.h - emitted CUDA, run on the CPU and checked ---*- C++ -*-===//
//
// The emitted text is compiled by the host's C++ compiler against the primitives in
// runtime/device/emu, and its blocks are run thread by thread. See README.md in this folder for
// what is checked.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_CODEGEN_EMU_COMPILEEMU_H
#define TK_COMPILER_CODEGEN_EMU_COMPILEEMU_H

#include "compiler/codegen/emu/Timing.h"
#include "tk/backend.h"

namespace tk {
namespace emu {
class TextBatch;
}

struct EmuOptions {
  /// Where not set: what TK_EMU_MODE says at each run; else late in the first, early in the second,
  /// and by chance from then on.
  std::optional<emu::Timing> timing;
  /// Where set: the text is compiled together with others of the batch, when the first of them
  /// runs. What the host's compiler says is then an error of that run.
  std::shared_ptr<emu::TextBatch> batch;
};

/// Makes an executable whose launches run `executable.cuda` by its plan. Fails with `unsupported`
/// where the machine has no C++ compiler, and with `internal` where it rejects the text.
Expected<detail::Executable> compileForEmu(detail::Executable executable,
                                           const Signature &signature,
                                           const EmuOptions &options = {});

} // namespace tk

#endif // TK_COMPILER_CODEGEN_EMU_COMPILEEMU_H
