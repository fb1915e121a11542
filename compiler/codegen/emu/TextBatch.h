//===- TextBatch.h - kernels of several texts in one object ------*- C++ -*-===//
//
// Starting the host's compiler and linker takes longer than compiling a small kernel: who runs many
// has their texts compiled together.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_CODEGEN_EMU_TEXTBATCH_H
#define TK_COMPILER_CODEGEN_EMU_TEXTBATCH_H

#include "compiler/codegen/emu/HostCompiler.h"

#include <optional>
#include <set>

namespace tk::emu {

class TextBatch {
public:
  /// Adds a text that defines the kernels `symbols`. False, and nothing added, where another text
  /// defines one of them or the batch has been compiled.
  bool add(std::string_view text, const std::vector<std::string> &symbols);
  /// The object of all texts, compiled by the first call.
  Expected<std::shared_ptr<HostCode>> code();

private:
  std::mutex mutex;
  std::string texts;
  std::set<std::string> defined;
  std::optional<Expected<std::shared_ptr<HostCode>>> compiled;
};

} // namespace tk::emu

#endif // TK_COMPILER_CODEGEN_EMU_TEXTBATCH_H
