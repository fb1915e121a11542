//===- Pipeline.h - the passes of tk, in order -------------------*- C++ -*-===//
//
// One table says which pass runs when and why there; the driver, the library and the tests all run
// pipelines made from it.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_PIPELINE_H
#define TK_COMPILER_PIPELINE_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

#include <functional>
#include <string>
#include <vector>

namespace mlir {
class PassManager;
} // namespace mlir

namespace tk {

/// Where a pipeline may stop; each is a stage that `tkc build --emit` shows.
enum class Stage { Tk, Fused, Tiled, Gpu };

/// One row of the table.
struct PassRow {
  llvm::StringRef name;    ///< as registered, such as "tk-tile"
  Stage stage;             ///< the stage that it leads to
  llvm::StringRef group;   ///< what `--disable-pass=fusion` and the like also name, or empty
  llvm::StringRef whenOff; ///< what runs instead when it is disabled (options included), or empty
  llvm::StringRef why;     ///< why it stands here
};

llvm::ArrayRef<PassRow> passTable();

/// The number of the last pass of the tensor level; passes are numbered from 1 in their order, and
/// those of the CPU's pipeline go on from here.
unsigned lastTensorPass();

/// A pass that has run.
struct PassRun {
  llvm::StringRef name;
  unsigned number;
};

struct PipelineOptions {
  /// Names of passes or groups (fusion, tiling, coalescing, coarsening,
  /// vectorization).
  llvm::StringSet<> disabled;
  /// Passes after which the IR is printed to standard error; "all" means each.
  llvm::StringSet<> printAfter;
  /// Run the verifier after every pass.
  bool verify = true;
  /// Of the passes with higher numbers only those run, in their plainest form, without which there
  /// is no code: so what a pass left is executed.
  unsigned last = allPasses;
  static constexpr unsigned allPasses = ~0U;
  /// Called after each pass up to `last`; returning failure stops the pipeline (and says that this
  /// pass broke something).
  std::function<mlir::LogicalResult(const PassRun &, mlir::ModuleOp)> afterPass;
};

/// Whether a name is a pass or a group of the table.
bool isKnownPass(llvm::StringRef name);
/// Whether the IR can be printed after it: those, the passes of the CPU's pipeline, and "all".
bool isPrintablePass(llvm::StringRef name);
/// Prints to standard error if `options` ask for the IR after `pass`.
void printAfter(llvm::StringRef pass, mlir::Operation *op, const PipelineOptions &options);

/// Runs the passes that lead from `from` (exclusive) to `to` (inclusive). Diagnostics go to the
/// context's handler.
mlir::LogicalResult runPipeline(mlir::ModuleOp module, Stage from, Stage to,
                                const PipelineOptions &options);

} // namespace tk

#endif // TK_COMPILER_PIPELINE_H
