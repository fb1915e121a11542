//===- PassValidator.h - the first pass that changes a value -----*- C++ -*-===//
//
// Evaluates a kernel with the reference interpreter before the pipeline and after each of its
// tensor-level passes, on the inputs of one run, and names the first pass after which a value
// differs. Both evaluations are in f64 without rounding, so what remains between them is
// reassociation and the rounding of folded constants, which an ill-conditioned kernel magnifies:
// where a value differs by more than the tolerance, the kernel is evaluated with its arithmetic
// rounded, in several ways, and a difference of that size counts as none.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_VALIDATE_PASSVALIDATOR_H
#define TK_COMPILER_VALIDATE_PASSVALIDATOR_H

#include "compiler/interp/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tk {

class PassValidator {
public:
  struct Options {
    /// Elements compared of each result; the reference computes on demand, so fewer are cheaper.
    int64_t maxElements = 256;
    /// Of the largest value of the result. Folded constants are rounded to f32.
    double tolerance = 1e-5;
    /// In how many ways arithmetic is rounded to see how far off that makes a result.
    unsigned roundings = 9;
    /// Where the IR before an offending pass is written.
    std::string directory;
  };

  PassValidator() = default;
  explicit PassValidator(Options options) : options(std::move(options)) {}

  /// Evaluates the kernel as the frontend made it. Views are read at once; they are those of the
  /// parameters in order, with an empty one for each scalar left out, as Reference::bind wants
  /// them.
  Status arm(KernelOp kernel, const std::vector<int64_t> &dims,
             const std::vector<TensorView> &tensors, const std::vector<Scalar> &scalars);

  /// To be called after each pass; passes that leave the tensor level are not looked at (a
  /// LoweringValidator's are those). Fails, with an error at the module, if the kernel computes
  /// something else than it did.
  llvm::LogicalResult after(llvm::StringRef pass, mlir::ModuleOp module);

  /// How many passes have been looked at.
  unsigned passesChecked() const { return checked; }

  /// The sizes of that run, as "N = 5, M = 3".
  std::string sizes() const;

private:
  struct Sample {
    unsigned result;
    int64_t position;
    interp::Cell value;
  };

  Expected<interp::Reference> evaluateKernel(KernelOp kernel, interp::Mode mode) const;
  std::string firstDifference(KernelOp kernel, interp::Reference &reference);
  int64_t positionIn(KernelOp kernel, const interp::Reference &reference,
                     const Sample &sample) const;
  double allowedFor(unsigned result);

  Options options;
  std::string kernelName;
  std::vector<int64_t> dims;
  std::vector<std::string> dimNames;
  std::vector<TensorView> tensors;
  std::vector<Scalar> scalars;
  std::vector<Sample> samples;
  std::vector<llvm::SmallVector<int64_t>>
      axesOfResults;          ///< the caller's axes of the kernel as made
  std::vector<double> scales; ///< the largest finite magnitude of each result's samples
  std::optional<interp::Reference> withAbsentTerms;  ///< see Reference::takeAbsentTerms
  std::optional<interp::Reference> rounded;          ///< the kernel as made, its arithmetic rounded
  std::vector<std::optional<double>> roundingErrors; ///< of each result, once asked for
  std::string before;                                ///< IR in front of the next pass
  unsigned checked = 0;
  bool approximated = false; ///< values are those of approximate functions by now
};

} // namespace tk

#endif // TK_COMPILER_VALIDATE_PASSVALIDATOR_H
