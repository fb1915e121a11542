//===- Pipeline.h - the passes of tk, in order -------------------*- C++ -*-===//
//
// One table says which pass runs when and why there (PipelineTable.cpp); the driver, the library
// and the tests all run pipelines made from it. Ten phases have rows, and a row is one pass or
// several patterns of one purpose. A pattern is a pass of its own, or a named rewrite inside the
// row's pass (passes/Patterns.h).
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

/// A pattern of a row that is a pass of its own.
struct PatternRow {
  llvm::StringRef name;    ///< named ROW:NAME
  llvm::StringRef pass;    ///< the pass as registered; a former name of the pattern, too
  llvm::StringRef group;   ///< the group, where it is not the row's
  llvm::StringRef whenOff; ///< what runs instead when it is left out (options included), or empty
  llvm::StringRef why;     ///< why it stands here
};

/// One row of the table.
struct PassRow {
  llvm::StringRef name;  ///< as registered, such as "tk-tile", or that of a family of patterns
  llvm::StringRef group; ///< what `--disable-pass=fusion` and the like name
  llvm::StringRef whenOff;
  llvm::StringRef why;
  llvm::ArrayRef<PatternRow> patterns = {}; ///< of a family
};

/// Some rows that together have one purpose.
struct PhaseRow {
  llvm::StringRef name;
  Stage stage; ///< the stage that it is part of
  llvm::StringRef purpose;
  llvm::ArrayRef<PassRow> rows;
};

llvm::ArrayRef<PhaseRow> phaseTable();

/// What runs by itself: a row's pass, a pattern of a row, or a named rewrite inside a pass.
struct PipelineStep {
  const PassRow *row;
  Stage stage;
  unsigned number;        ///< from 1 in their order
  std::string name;       ///< "tk-tile", "tk-clean:cse" or "tk-simplify:hoist-factors"
  std::string pattern;    ///< the row's pattern that it is part of, "tk-clean:cse"; or empty
  llvm::StringRef pass;   ///< the pass that runs it
  llvm::StringRef inner;  ///< the rewrite's name in that pass, or empty
  std::string ofPass;     ///< "tk-begin-products:waits" where the pass is a pattern of a row
  llvm::StringRef former; ///< a pass that it was part of, or empty
  llvm::StringRef group;
  llvm::StringRef whenOff;
  unsigned first = 0;  ///< the number of the first step of the same pass
  bool needed = false; ///< a rewrite without which there is no right code
  llvm::StringRef why;
};

llvm::ArrayRef<PipelineStep> pipelineSteps();

/// The number of the last step of the tensor level; the passes of the CPU's pipeline go on from
/// here.
unsigned lastTensorPass();

/// A pass, or a pattern of a pass, that has run.
struct PassRun {
  llvm::StringRef name; ///< that of the step
  unsigned number;
  unsigned first = 0; ///< the number of the first step that the same pass runs, which may alternate
};

struct PipelineOptions {
  /// What is left out: names of passes, of patterns (PASS:PATTERN) or of groups (fusion, tiling,
  /// coalescing, coarsening, vectorization, …).
  llvm::StringSet<> disabled;
  /// Results that tk-fuse-producers computes where they are read, or stores, whatever its cost rule
  /// says.
  std::vector<std::string> inlined, stored;
  /// Pairs of results, "a+b", whose compute ops tk-merge-computes makes one, or leaves apart.
  std::vector<std::string> merged, apart;
  /// The flags of tkc that ask for these: "--inline y".
  std::vector<std::string> fusionFlags() const;
  /// The same of what the IR is printed after, to standard error; "all" means each.
  llvm::StringSet<> printAfter;
  /// Run the verifier after every pass.
  bool verify = true;
  /// Of the steps with higher numbers only those run, in their plainest form, without which there
  /// is no code: so what a step left is executed.
  unsigned last = allPasses;
  static constexpr unsigned allPasses = ~0U;
  /// Called after each step up to `last`; returning failure stops the pipeline (and says that this
  /// step broke something).
  std::function<mlir::LogicalResult(const PassRun &, mlir::ModuleOp)> afterPass;
};

/// Whether `selector` (a pass, PASS:PATTERN, a group, or a former name) names the step.
bool selects(llvm::StringRef selector, const PipelineStep &step);
/// The same of a step, or a pass of the CPU's pipeline, that has run.
bool selects(llvm::StringRef selector, const PassRun &run);
/// Whether a name selects a step of the table.
bool isKnownPass(llvm::StringRef name);
/// Whether the IR can be printed after it: those, the passes of the CPU's pipeline, and "all".
bool isPrintablePass(llvm::StringRef name);
/// "unknown pass 'tk-til'; did you mean 'tk-tile'?"
std::string unknownPass(llvm::StringRef name);
/// What a step does, as one sentence without a full stop.
std::string summaryOf(const PipelineStep &step);
/// How tk-opt runs a step alone: "--tk-tile", or "--tk-simplify=only=hoist-factors".
std::string tkOptFlag(llvm::StringRef name);
/// Prints to standard error if `options` ask for the IR after `pass` of the CPU's pipeline.
void printAfter(llvm::StringRef pass, mlir::Operation *op, const PipelineOptions &options);

/// Runs the passes that lead from `from` (exclusive) to `to` (inclusive). Diagnostics go to the
/// context's handler.
mlir::LogicalResult runPipeline(mlir::ModuleOp module, Stage from, Stage to,
                                const PipelineOptions &options);

/// Makes the families of the table, and the former names of rewrites, known to textual pipelines.
void registerFamilies();

/// docs/reference/pipeline.md.
std::string pipelinePage();

} // namespace tk

#endif // TK_COMPILER_PIPELINE_H
