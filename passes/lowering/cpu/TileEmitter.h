//===- TileEmitter.h - loops for one statement -----------------*- C++ -*-===//
//
// Emits the loops of one tk.compute. See TileEmitter.cpp for the algorithm.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_LOWERING_CPU_TILEEMITTER_H
#define TK_PASSES_LOWERING_CPU_TILEEMITTER_H

#include "passes/lowering/cpu/BodyAnalysis.h"
#include "passes/lowering/cpu/Frame.h"
#include "passes/lowering/cpu/ScalarExpand.h"

namespace tk::cpu {

class TileEmitter {
public:
  /// `results` are those results of `compute` that this nest stores; `entry` is emitted into
  /// through `builder`. `parts` numbers the functions of parallel bodies.
  TileEmitter(mlir::ModuleOp module, KernelLayout &layout, Frame &entry, mlir::OpBuilder builder,
              ComputeOp compute, const BodyAnalysis &analysis, const CpuMachine &machine,
              llvm::ArrayRef<unsigned> results, unsigned &parts, unsigned &slots);
  void emit();

  /// Splits the results of a compute into groups that one nest can store.
  static llvm::SmallVector<llvm::SmallVector<unsigned>> groupResults(ComputeOp compute,
                                                                     const BodyAnalysis &analysis);

private:
  /// Values of one index while code inside its loops is emitted.
  struct IndexState {
    mlir::Value global;        ///< the index itself
    mlir::Value local;         ///< its place in the tile
    mlir::Value base, current; ///< of the tile: first index, number of indices
  };
  /// A value for all points of a tile.
  struct Buffer {
    mlir::Value memref;
    llvm::SmallVector<unsigned> ids; ///< one axis each
  };
  using Body = llvm::function_ref<void()>;

  // Nest (TileEmitter.cpp)
  void findLive(mlir::Value value);
  void findLiveReduce(ReduceOp reduce, unsigned k);
  IndexMask openMask(unsigned level) const;
  IndexMask liveMask(mlir::Operation *op) const;
  unsigned levelOf(IndexMask mask) const;
  unsigned storeLevel(unsigned result);
  unsigned countParallelLevels();
  mlir::Value tileCount(unsigned id);
  void openTile(unsigned id, mlir::Value number);
  void emitLevel(unsigned level);
  void emitStores(unsigned level);
  void emitParallel(unsigned levels);
  mlir::Value grain(mlir::Value count);
  mlir::Value extentOf(unsigned id);

  // Values (TileValues.cpp)
  mlir::Value eval(mlir::Value value);
  mlir::Value evalLoad(LoadOp load);
  mlir::Value evalBuffer(const Buffer &buffer);
  mlir::Value evalReduce(ReduceOp reduce, unsigned wanted);
  mlir::Value evalScan(ScanOp scan);
  mlir::Value toStorage(mlir::Value value);
  mlir::Value fromStorage(mlir::Value value, mlir::Type type);
  void storeTo(const Buffer &buffer, mlir::Value value);
  void forLoop(mlir::Value lower, mlir::Value upper, mlir::Value step,
               llvm::function_ref<void(mlir::Value)> body);
  void forEach(llvm::ArrayRef<unsigned> ids, Body body);
  /// Loops with carried values; `body` returns the next ones.
  llvm::SmallVector<mlir::Value>
  carryLoop(mlir::Value lower, mlir::Value upper, mlir::ValueRange inits,
            llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);
  mlir::Value index(int64_t value);
  mlir::Value minOf(mlir::Value a, mlir::Value b);
  mlir::Value maxOf(mlir::Value a, mlir::Value b);

  // Reductions (TileReduce.cpp)
  void prepare(mlir::Value value, IndexMask open);
  void prepareOp(mlir::Operation *op, IndexMask open);
  void materialise(mlir::Value value);
  void emitReduce(ReduceOp reduce, IndexMask open);
  void emitChunks(ReduceOp reduce, unsigned axis, IndexMask open);
  void emitChunkBody(ReduceOp reduce, IndexMask open);
  void accumulate(ReduceOp reduce, unsigned k);
  void accumulateInRegisters(ReduceOp reduce, unsigned k);
  void accumulateInMemory(ReduceOp reduce, unsigned k);
  void rescale(ReduceOp reduce, unsigned k);
  bool prefersMemory(ReduceOp reduce, unsigned k);
  bool boundsVary(ReduceOp reduce) const;
  std::pair<mlir::Value, mlir::Value> chunkRange(ReduceOp reduce, unsigned axis);
  void updateScan(ScanOp scan);
  Buffer makeBuffer(mlir::Type element, llvm::ArrayRef<unsigned> ids);
  llvm::SmallVector<mlir::Value> identity(ReduceKind kind, mlir::Type type, bool isUnsigned);
  llvm::SmallVector<mlir::Value> combine(ReduceKind kind, mlir::ValueRange accumulators,
                                         mlir::Value term, mlir::Value at, bool isUnsigned);
  mlir::Type termType(ReduceOp reduce, unsigned k);

  // Matrix products (TileContraction.cpp)
  bool emitContraction(ReduceOp reduce, unsigned k);
  void packRows(ReduceOp reduce, const Contraction &c, mlir::Value panel);
  void packColumns(ReduceOp reduce, const Contraction &c, mlir::Value panel, int64_t width);
  void emitRegisterTiles(ReduceOp reduce, const Contraction &c, mlir::Value rows,
                         mlir::Value columns, const Buffer &sum, mlir::Value depth);
  mlir::Value flatDepth(ReduceOp reduce);
  void forEachDepth(ReduceOp reduce, llvm::function_ref<void(mlir::Value)> body);
  mlir::Value maskedFactor(ReduceOp reduce, mlir::Value factor);

  mlir::ModuleOp module;
  KernelLayout &layout;
  Frame &entry;
  Frame *frame;
  mlir::OpBuilder b;
  mlir::Location loc;
  ComputeOp compute;
  const BodyAnalysis &analysis;
  CpuMachine machine;
  llvm::SmallVector<unsigned> results;
  unsigned &parts, &slots;

  llvm::SmallVector<unsigned> order; ///< indices of this nest, outermost first
  llvm::SmallVector<IndexState> state;
  llvm::DenseMap<mlir::Value, Buffer> buffers;
  llvm::DenseMap<mlir::Value, Buffer> companions; ///< the extremum beside an argmax
  llvm::DenseMap<mlir::Value, mlir::Value> memo, bindings;
  llvm::DenseSet<mlir::Value> live;
  llvm::SetVector<mlir::Operation *> liveOps; ///< buffered things that are needed
  bool clampLoads = false;
};

/// Terms of kind max and min on `u8` compare without sign.
bool isUnsignedTerm(mlir::Value term);

} // namespace tk::cpu

#endif // TK_PASSES_LOWERING_CPU_TILEEMITTER_H
