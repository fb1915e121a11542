//===- LoweringValidator.h - the first pass behind which code is wrong ----===//
//
// Below the tensor level the IR has no interpreter. What a pass left is executed instead: it goes
// through those of the later passes, in their plainest form, without which there is no code, and
// what they make is run and compared. The first pass behind which that is wrong changed the value,
// or made something that a later pass which is always needed does not understand.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_VALIDATE_LOWERINGVALIDATOR_H
#define TK_COMPILER_VALIDATE_LOWERINGVALIDATOR_H

#include "compiler/Pipeline.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tk {

class LoweringValidator {
public:
  enum class Outcome : uint8_t {
    Right,
    Wrong,
    NotCompiled, ///< the passes that are always needed do not take what this one left
  };
  struct Execution {
    Outcome outcome = Outcome::Right;
    std::string message; ///< what is wrong
  };
  /// Compiles with PipelineOptions::last set to a pass's number, runs, and compares with the
  /// reference.
  using Execute = std::function<Execution(unsigned last)>;

  LoweringValidator() = default;
  /// `directory` is where the IR before an offending pass is written.
  explicit LoweringValidator(std::string directory) : directory(std::move(directory)) {}

  /// To be called after each pass of the whole pipeline. Keeps what those below the tensor level
  /// got that changed something.
  void record(const PassRun &pass, mlir::ModuleOp module);
  bool isExecuting() const { return executing; }

  /// Executes what each recorded pass left, in their order, up to the first that is wrong. Says
  /// which that is, what is wrong, and how to see it; nothing where all are right. `sizes` goes
  /// into the file.
  std::optional<std::string> findWrongPass(llvm::StringRef kernel, llvm::StringRef sizes,
                                           const Execute &execute);

  /// How often the kernel was executed, and the passes after which it could not be.
  unsigned numExecuted() const { return executed; }
  const std::vector<std::string> &passesNotCompiled() const { return notCompiled; }

private:
  struct Step {
    std::string pass;
    unsigned number;
    std::string before;
  };

  Execution run(llvm::StringRef pass, unsigned last, const Execute &execute);

  std::string directory;
  std::vector<Step> steps;
  std::string latest;      ///< the IR after the last recorded pass
  unsigned lastNumber = 0; ///< that pass's number
  unsigned lastFirst = 0;  ///< and that of its first rewrite
  bool executing = false;
  unsigned executed = 0;
  std::vector<std::string> notCompiled;
};

} // namespace tk

#endif // TK_COMPILER_VALIDATE_LOWERINGVALIDATOR_H
