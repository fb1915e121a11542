//===- LinalgEmitter.h - linalg on tiles for one statement -----*- C++ -*-===//
//
// Emits the loops over tiles of one tk.compute and, inside, linalg operations on tensors. See
// LinalgNest.cpp for the algorithm.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_LOWERING_CPU_LINALGEMITTER_H
#define TK_PASSES_LOWERING_CPU_LINALGEMITTER_H

#include "passes/analysis/PresentTerms.h"
#include "passes/lowering/cpu/BodyAnalysis.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace tk::cpu {

/// The type that elements of a tensor have below tk: `bool` is a byte, `ui8` is `i8` bits.
mlir::Type storageType(mlir::Type element);

class LinalgEmitter {
public:
  /// `kernelValues` maps what the kernel defines outside of statements to what stands for it here.
  LinalgEmitter(mlir::OpBuilder &builder, const mlir::IRMapping &kernelValues, ComputeOp compute,
                const BodyAnalysis &analysis, const PresentTerms &present,
                const CpuMachine &machine);

  /// Computes the results numbered `results` in one loop nest; `destinations` are the tensors that
  /// they are inserted into. Reads of the parameter `replaced` (null: none) are reads of the first
  /// destination. Returns the new tensors.
  llvm::SmallVector<mlir::Value> emit(llvm::ArrayRef<unsigned> results,
                                      llvm::ArrayRef<mlir::Value> destinations,
                                      mlir::Value replaced);

  /// Splits the results of a compute into groups that one nest can store.
  static llvm::SmallVector<llvm::SmallVector<unsigned>> groupResults(ComputeOp compute,
                                                                     const BodyAnalysis &analysis);

private:
  using Values = llvm::SmallVector<mlir::Value>;
  using Ids = llvm::SmallVector<unsigned>;

  /// Where one index stands while code inside its loops is emitted.
  struct IndexState {
    mlir::Value global;         ///< the index itself
    mlir::Value local;          ///< its place in the tile
    mlir::Value base;           ///< first index of the tile
    mlir::OpFoldResult first;   ///< where the part of the tile at hand begins
    mlir::OpFoldResult current; ///< how many indices that part has
  };
  /// A value for all points of a tile: a tensor as large as a tile can be, of which the current
  /// part is used; a scalar where it has no axes.
  struct Tile {
    mlir::Value value;
    Ids ids; ///< one axis each
  };
  using LoopBody = llvm::function_ref<Values(mlir::Value iv, mlir::ValueRange carried)>;
  using PointBody = llvm::function_ref<Values(mlir::ValueRange carried)>;
  using Body = llvm::function_ref<Values()>;

  // What is needed, and where (LinalgLiveness.cpp)
  void findLive(mlir::Value value);
  void findLiveReduce(ReduceOp reduce, unsigned k);
  IndexMask openMask(unsigned level) const;
  IndexMask liveMask(mlir::Operation *op) const;
  unsigned levelOf(IndexMask mask) const;
  unsigned storeLevel(unsigned result);
  unsigned countParallelLevels();

  // The loop nest (LinalgNest.cpp)
  mlir::Value extentOf(unsigned id);
  mlir::Value tileCount(unsigned id);
  void openTile(unsigned id, mlir::Value number);
  void emitLevel(unsigned level);
  void emitStores(unsigned level);
  void storeGroup(llvm::ArrayRef<unsigned> ids, llvm::ArrayRef<unsigned> members);
  void emitParallel(unsigned levels);
  llvm::SmallVector<mlir::OpFoldResult> partOf(unsigned result, IndexMask parallel,
                                               llvm::SmallVector<mlir::OpFoldResult> &sizes);

  // Linalg operations over a tile (LinalgTiles.cpp)
  /// An input of a linalg operation: what it stands for, a tensor, and how that is indexed.
  struct Leaf {
    mlir::Value key, tensor;
    mlir::Type type; ///< of the value
    mlir::AffineMap map;
  };
  void collectLeaves(mlir::Value value, llvm::ArrayRef<unsigned> loops,
                     llvm::SmallVectorImpl<Leaf> &leaves, llvm::DenseSet<mlir::Value> &seen);
  std::optional<Leaf> leafOf(mlir::Value value, llvm::ArrayRef<unsigned> loops);
  std::optional<Leaf> sliceLoad(LoadOp load, llvm::ArrayRef<unsigned> loops);
  std::optional<mlir::Value> tileOffset(mlir::Value index, unsigned id);
  /// A linalg.generic over `loops` (those in `reduced` are reduction dimensions) into `inits`,
  /// which are over `initIds`. `roots` are the values that `body` evaluates.
  Values emitGeneric(llvm::ArrayRef<unsigned> loops, llvm::ArrayRef<unsigned> reduced,
                     llvm::ArrayRef<mlir::Value> roots, mlir::ValueRange inits,
                     llvm::ArrayRef<unsigned> initIds,
                     llvm::function_ref<Values(mlir::ValueRange old)> body);
  /// Evaluates `body` for all points over `ids` into new tiles of the given types.
  llvm::SmallVector<Tile> emitTiles(llvm::ArrayRef<unsigned> ids, llvm::ArrayRef<mlir::Value> roots,
                                    llvm::ArrayRef<mlir::Type> types, Body body);
  mlir::Value emptyTile(mlir::Type element, llvm::ArrayRef<unsigned> ids);
  mlir::Value currentPart(mlir::Value tensor, llvm::ArrayRef<unsigned> ids);
  mlir::Value insertPart(mlir::Value part, mlir::Value tensor, llvm::ArrayRef<unsigned> ids);
  mlir::Value extractSlice(mlir::Value tensor, llvm::ArrayRef<mlir::OpFoldResult> offsets,
                           llvm::ArrayRef<mlir::OpFoldResult> sizes, llvm::ArrayRef<bool> keptAxes);
  mlir::Value insertSlice(mlir::Value part, mlir::Value tensor,
                          llvm::ArrayRef<mlir::OpFoldResult> offsets,
                          llvm::ArrayRef<mlir::OpFoldResult> sizes);

  // Values (LinalgValues.cpp)
  mlir::Value eval(mlir::Value value);
  mlir::Value evalLoad(LoadOp load);
  mlir::Value evalTile(const Tile &tile, mlir::Type type);
  mlir::Value evalReduce(ReduceOp reduce, unsigned wanted);
  mlir::Value evalScan(ScanOp scan);
  mlir::Value loadPosition(LoadOp load, unsigned axis);
  mlir::Value sourceOf(mlir::Value tensor);
  bool partBegins(mlir::Value tensor, unsigned id) const;
  llvm::SmallVector<mlir::Value> extentsOf(mlir::Value tensor);
  mlir::Value toStorage(mlir::Value value);
  mlir::Value fromStorage(mlir::Value value, mlir::Type type);
  Values forLoop(mlir::Value lower, mlir::Value upper, int64_t step, mlir::ValueRange inits,
                 LoopBody body);
  /// A nest over the points of the tile along `ids`, which stand at each of them in the body.
  Values forPoints(llvm::ArrayRef<unsigned> ids, mlir::ValueRange inits, PointBody body);
  mlir::Value index(int64_t value);
  mlir::Value asValue(mlir::OpFoldResult value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value subtract(mlir::Value a, mlir::Value b);
  mlir::Value multiply(mlir::Value a, mlir::Value b);
  mlir::Value minOf(mlir::Value a, mlir::Value b);
  mlir::Value maxOf(mlir::Value a, mlir::Value b);
  mlir::Value ceilDivide(mlir::Value a, int64_t b);

  // Reductions (LinalgReduce.cpp)
  void prepare(mlir::Value value, IndexMask open);
  void prepareOp(mlir::Operation *op, IndexMask open);
  void prepareCaptured(ReduceOp reduce, IndexMask open);
  void materialise(mlir::Value value);
  void emitReduce(ReduceOp reduce, IndexMask open);
  void emitChunks(ReduceOp reduce, unsigned axis, IndexMask open);
  void emitChunkBody(ReduceOp reduce, IndexMask open);
  void openRange(ReduceOp reduce);
  void accumulate(ReduceOp reduce, unsigned k);
  mlir::Value presentOf(ReduceOp reduce, unsigned k) const;
  mlir::Value evalTerm(ReduceOp reduce, unsigned k);
  void accumulateByPoints(ReduceOp reduce, unsigned k);
  void accumulateTile(ReduceOp reduce, unsigned k);
  void rescale(ReduceOp reduce, unsigned k);
  Values accumulators(ReduceOp reduce);
  void setAccumulators(ReduceOp reduce, mlir::ValueRange values);
  bool prefersMemory(ReduceOp reduce, unsigned k);
  bool boundsVary(ReduceOp reduce) const;
  std::pair<mlir::Value, mlir::Value> chunkRange(ReduceOp reduce, unsigned axis);

  // Scans (LinalgScan.cpp)
  llvm::SmallVector<ScanOp> runningScans() const;
  Values startScans();
  void updateScan(ScanOp scan);

  // Matrix products (LinalgContraction.cpp)
  bool emitContraction(ReduceOp reduce, unsigned k);
  bool mayDrop(ReduceOp reduce, unsigned k, const Contraction &c, unsigned id) const;
  mlir::Value areFinite(ReduceOp reduce, mlir::Value factor, unsigned id,
                        llvm::ArrayRef<unsigned> depth);
  template <typename Fn> mlir::Value inBranch(mlir::Block *block, Fn body);
  mlir::Value rowFactor(ReduceOp reduce, const Contraction &c, llvm::ArrayRef<unsigned> depth);
  mlir::Value packColumns(ReduceOp reduce, unsigned k, const Contraction &c,
                          llvm::ArrayRef<unsigned> depth, int64_t width);
  mlir::Value multiplyTiles(const Contraction &c, llvm::ArrayRef<unsigned> depth, mlir::Value rows,
                            mlir::Value panels, mlir::Value sum, int64_t width);
  mlir::Value insideBounds(ReduceOp reduce, IndexMask mask);
  llvm::SmallVector<unsigned> boundedAlong(ReduceOp reduce, IndexMask mask) const;
  mlir::Value maskedFactor(ReduceOp reduce, mlir::Value factor, mlir::Value present = {});
  llvm::SmallVector<mlir::Value> withBounds(ReduceOp reduce, mlir::Value factor,
                                            mlir::Value present = {}) const;

  mlir::OpBuilder &b;
  mlir::Location loc;
  const mlir::IRMapping &kernelValues;
  ComputeOp compute;
  const BodyAnalysis &analysis;
  const PresentTerms &present; ///< the conditions under which terms exist
  const CpuMachine &machine;

  Ids results, order; ///< of this nest; order: its indices, outermost first
  Values outputs;     ///< the tensors of `results` so far, or the parts of them being computed
  IndexMask outputsBeginAtTile = 0; ///< indices by which `outputs` are parts
  mlir::Value replaced;
  llvm::SmallVector<IndexState> state;
  llvm::DenseMap<mlir::Value, Tile> tiles;
  llvm::DenseMap<mlir::Value, Tile> companions; ///< the extremum beside an argmax
  llvm::DenseMap<mlir::Value, mlir::Value> memo, bindings;
  llvm::DenseSet<mlir::Value> live;
  llvm::SetVector<mlir::Operation *> liveOps; ///< things kept in tiles that are needed
  bool clampLoads = false;
};

/// The values that a reduction of this kind begins with, for terms of `type` and a result of
/// `resultType`: the result's last, before it what an argmax or argmin compares with.
llvm::SmallVector<mlir::Value> reductionIdentity(mlir::OpBuilder &b, mlir::Location loc,
                                                 ReduceKind kind, mlir::Type type,
                                                 mlir::Type resultType, bool isUnsigned);
/// One step of a reduction; `at` is the index of the term, for argmax and argmin.
llvm::SmallVector<mlir::Value> reductionStep(mlir::OpBuilder &b, mlir::Location loc,
                                             ReduceKind kind, mlir::ValueRange old,
                                             mlir::Value term, mlir::Value at, bool isUnsigned);
/// Terms of kind max and min on `u8` compare without sign.
bool isUnsignedTerm(mlir::Value term);

} // namespace tk::cpu

#endif // TK_PASSES_LOWERING_CPU_LINALGEMITTER_H
