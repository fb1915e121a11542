//===- EmitterState.h - what is known while a function is emitted -*- C++ -*-=//
#ifndef TK_COMPILER_CODEGEN_CUDA_EMITTERSTATE_H
#define TK_COMPILER_CODEGEN_CUDA_EMITTERSTATE_H

#include "compiler/codegen/cuda/CappedTile.h"
#include "compiler/codegen/cuda/EmitCuda.h"
#include "compiler/codegen/cuda/ScopedNames.h"
#include "compiler/codegen/cuda/TileAddresses.h"
#include "compiler/codegen/cuda/ValueNames.h"

#include "llvm/ADT/StringSet.h"

#include <functional>
#include <vector>

namespace tk::cuda {

/// The text of a function so far, and what its statements share: names, offsets, open groups.
struct EmitterState {
  EmitterState(gpu::FuncOp func, llvm::StringRef symbol, const EmitOptions &options)
      : func(func), symbol(symbol), options(options), location(func.getLoc()),
        valueNames(func, options.statement) {}

  gpu::FuncOp func;
  std::string symbol;
  EmitOptions options;
  mlir::Location location;
  bool failed = false;

  std::string body;
  unsigned indent = 1;
  std::string lineFile;
  unsigned nextLine = 0;
  /// The last comment: where it stands, the line of the source, and what the code does.
  std::tuple<mlir::Block *, unsigned, std::string> commented;

  ScopedNames used;
  ValueNames valueNames;
  llvm::StringSet<> telling; ///< names that say what a value is
  llvm::DenseMap<mlir::Value, std::string> names;
  std::string prologue;
  llvm::DenseMap<std::pair<mlir::Attribute, unsigned>, std::string> coordinates;
  llvm::StringMap<std::string> hoistedNames;
  bool usesLane = false, usesWarp = false;
  bool clusterRuns = false; ///< all blocks of the cluster are known to have begun
  std::string preparations; ///< statements of one thread, before others' data may come
  std::string told, rounds; ///< what numbers are told through, and how often; empty before
  std::string untold;       ///< a statement that waits for what the cluster joins next
  /// Writes what the end of a loop's body receives from the cluster's other blocks.
  std::vector<std::function<void()>> receives;

  llvm::DenseMap<mlir::Value, PlaceWords> placeTests;
  llvm::StringMap<std::string> caps; ///< by factors: what their polynomial is called here
  /// Of weights in a loop: what is declared before it.
  llvm::DenseMap<mlir::Value, RowReferences> rowReferences;
  /// Of products in a loop: what descriptors of their left factor are called, which are declared
  /// before it.
  llvm::DenseMap<mlir::Operation *, std::string> heldFactors;

  llvm::SmallVector<mlir::Operation *> group;
  llvm::SmallPtrSet<mlir::Operation *, 16> inGroup;
  /// While a group is being printed: its values that have no array, at the loop's register.
  llvm::DenseMap<mlir::Value, std::string> groupLocals;

  llvm::DenseMap<mlir::Operation *, unsigned> sharedOffsets, phaseOffsets;
  unsigned plannedShared = 0, ownScratchBytes = 0, scratchBytes = 0;
  bool holdsProducts = false; ///< beside which registers are short
};

} // namespace tk::cuda

#endif // TK_COMPILER_CODEGEN_CUDA_EMITTERSTATE_H
