//===- EmitText.cpp - a kernel's CUDA text --------------------------------===//
#include "compiler/CompiledSource.h"
#include "compiler/CudaBackend.h"
#include "tk/bundle.h"

using namespace mlir;

namespace tk {

Expected<detail::Executable> CompiledSource::emitText(ModuleOp lowered, size_t kernel,
                                                      const Facts &facts) {
  CudaText text;
  text.signature = &kernelSignatures[kernel];
  text.assumes = describe(facts, *text.signature);
  text.lineDirectives = driver.lineDirectives;
  text.sourceLine = [this](StringRef label, unsigned line) {
    const FileId file = sources.labelled(label);
    return file == kNoFile ? "" : StringRef(sources.file(file).line(line)).trim().str();
  };
  return emitCudaExecutable(lowered, lowered.lookupSymbol<KernelOp>(kernelNames[kernel]), text);
}

} // namespace tk
