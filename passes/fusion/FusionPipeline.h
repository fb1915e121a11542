//===- FusionPipeline.h - the tensor-level stage of compilation -*- C++ -*-===//
#ifndef TK_PASSES_FUSION_FUSIONPIPELINE_H
#define TK_PASSES_FUSION_FUSIONPIPELINE_H

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSet.h"

namespace tk {

struct FusionOptions {
  /// Flags of passes to leave out, e.g. "tk-fuse-producers". Unknown ones are ignored.
  llvm::StringSet<> disabled;
  /// Largest known extent along which a fused reduction may be computed again.
  int64_t maxExtra = 256;
  /// Terms that one partial result of a split reduction takes in.
  int64_t chunk = 4096;
};

/// tk -> tk: statements are fused, so that each that is left is one launch. With every pass left
/// out each statement of the source is a launch, and the result is the same.
void buildFusionPipeline(mlir::OpPassManager &manager, const FusionOptions &options = {});

/// The passes of that pipeline behind tk-fuse-producers that make one computation of equal ones.
void addMergingPasses(mlir::OpPassManager &manager);

/// Makes the pipeline known to textual pipelines as `tk-fusion`.
void registerFusionPipeline();

} // namespace tk

#endif // TK_PASSES_FUSION_FUSIONPIPELINE_H
