//===- Validation.h - every pass of a run against the reference --*- C++ -*-===//
#ifndef TK_COMPILER_TKC_VALIDATION_H
#define TK_COMPILER_TKC_VALIDATION_H

#include "compiler/tkc/Check.h"
#include "compiler/validate/LoweringValidator.h"
#include "compiler/validate/PassValidator.h"

namespace tk::tkc {

/// Passes by how it was seen that they change nothing.
struct Validated {
  unsigned evaluated = 0; ///< the reference evaluated what they left
  unsigned executed = 0;  ///< the target ran it
  /// Neither: the later passes that are always needed do not take what these left.
  std::vector<std::string> notCompiled;
};

/// Of one run: hook() goes into the options of its source, arm() before, execute() after the kernel
/// is compiled.
class Validation {
public:
  /// Where the IR before an offending pass is written; the place for temporary files by default.
  explicit Validation(const std::string &directory = "")
      : tensors(PassValidator::Options{.directory = directory}), lowering(directory) {}

  std::function<llvm::LogicalResult(const PassRun &, mlir::ModuleOp)> hook();
  /// Has every pass of the tensor level compared with the kernel as the frontend made it.
  Status arm(CompiledSource &source, size_t kernel, RunArguments &inputs);
  /// Executes what each pass below that left; fails with `internal` at the first that is wrong.
  Expected<Validated> execute(const std::shared_ptr<CompiledSource> &source, size_t kernel,
                              const std::string &target, RunArguments &inputs, int64_t elements);

private:
  PassValidator tensors;
  LoweringValidator lowering;
};

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_VALIDATION_H
