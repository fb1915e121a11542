//===- BodyAnalysis.h - what a statement's values depend on ----*- C++ -*-===//
//
// Numbers the indices of one tk.compute (its own, then those of the reductions in its body), finds
// which of them every value depends on, which sums are matrix products, and how each index is
// tiled. All decisions of the CPU lowering are taken here; LinalgEmitter only carries them out.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_LOWERING_CPU_BODYANALYSIS_H
#define TK_PASSES_LOWERING_CPU_BODYANALYSIS_H

#include "dialects/tk/TkDialect.h"
#include "passes/lowering/cpu/CpuMachine.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace tk::cpu {

/// A set of index numbers.
using IndexMask = uint64_t;
inline IndexMask bit(unsigned id) { return IndexMask(1) << id; }

/// A sum of products, to be computed as rows x columns in registers.
struct Contraction {
  mlir::Value row, column; ///< the factors
  unsigned rowId, columnId;
};

class BodyAnalysis {
public:
  static constexpr unsigned maxIndices = 64; ///< those that an IndexMask holds

  /// Fails (with a diagnostic) where the statement has more indices than a mask holds.
  static mlir::FailureOr<BodyAnalysis> create(ComputeOp compute, const CpuMachine &machine);

  IndexMask maskOf(mlir::Value value) const { return masks.lookup(value); }
  unsigned idOf(mlir::Value index) const { return ids.lookup(index); }
  /// The name that an index has in the source.
  llvm::StringRef nameOf(unsigned id) const { return names[id]; }
  /// How many values of an index a tile holds; 1 where the index is a plain loop.
  int64_t tileOf(unsigned id) const { return tiles[id]; }
  /// The indices of a mask that are tiled, ascending.
  llvm::SmallVector<unsigned> tiledIds(IndexMask mask) const;
  /// A reduction that runs over chunks of its indices, since values inside are kept in buffers or
  /// several accumulators run side by side.
  bool isChunked(ReduceOp reduce) const { return chunked.contains(reduce); }
  const Contraction *contractionOf(ReduceOp reduce, unsigned k) const;
  /// Values that are computed once for a tile and kept in a buffer.
  bool isBuffered(mlir::Value value) const;
  /// The index that a scan runs along in one pass, or none.
  std::optional<unsigned> sequentialId() const { return sequential; }
  bool isRunningScan(ScanOp scan) const { return runningScans.contains(scan); }
  /// Indices of the compute, outermost first: those that more results use come first.
  llvm::ArrayRef<unsigned> order() const { return loopOrder; }

private:
  void addIndex(mlir::Value index, llvm::StringRef name);
  void number(mlir::Block &block);
  void computeMasks(mlir::Block &block);
  void computeReduceMask(ReduceOp reduce);
  void findScans();
  void findContractions();
  void addContraction(ReduceOp reduce, unsigned k);
  void chooseTiles();
  void chooseChunks();
  void keepConsistentContractions();
  void bufferExpensiveFactors();
  IndexMask ownMask(ReduceOp reduce) const;

  ComputeOp compute;
  CpuMachine machine;
  llvm::DenseMap<mlir::Value, unsigned> ids;
  llvm::DenseMap<mlir::Value, IndexMask> masks;
  llvm::DenseMap<mlir::Operation *, unsigned> runningIds;
  llvm::SmallVector<llvm::StringRef> names;
  llvm::SmallVector<int64_t> tiles;
  llvm::SmallVector<ReduceOp> reduces;
  llvm::DenseSet<mlir::Operation *> chunked, runningScans;
  llvm::MapVector<std::pair<mlir::Operation *, unsigned>, Contraction> contractions;
  llvm::DenseSet<mlir::Value> buffered;
  llvm::SmallVector<unsigned> loopOrder;
  std::optional<unsigned> sequential;
  unsigned count = 0;
};

/// The index ranges over a static extent: that extent, else -1.
int64_t staticExtent(mlir::Value lower, mlir::Value upper);

} // namespace tk::cpu

#endif // TK_PASSES_LOWERING_CPU_BODYANALYSIS_H
