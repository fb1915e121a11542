//===- EmitText.cpp - a kernel's CUDA text --------------------------------===//
#include "compiler/CompiledSource.h"
#include "compiler/CudaBackend.h"
#include "tk/bundle.h"

using namespace mlir;

namespace tk {

static std::string placeKey(StringRef file, unsigned line) {
  return (file + ":" + Twine(line)).str();
}

/// By the file and the line of an operation: the tensor that its statement defines. What else a
/// statement makes, as the maximum of a softmax, comes before it.
static llvm::StringMap<std::string> statementsOf(KernelOp kernel) {
  llvm::StringMap<std::string> statements;
  kernel.walk([&](ComputeOp compute) {
    ArrayAttr names = compute.getNames();
    if (names.empty())
      return;
    const std::string name = cast<StringAttr>(names[0]).str();
    compute->walk([&](Operation *op) {
      if (auto place = op->getLoc()->findInstanceOf<FileLineColLoc>())
        statements[placeKey(place.getFilename(), place.getLine())] = name;
    });
  });
  return statements;
}

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
  text.statement = [statements = statementsOf(kernelOp(kernel))](StringRef file, unsigned line) {
    return statements.lookup(placeKey(file, line));
  };
  return emitCudaExecutable(lowered, lowered.lookupSymbol<KernelOp>(kernelNames[kernel]), text);
}

} // namespace tk
