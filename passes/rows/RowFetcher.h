//===- RowFetcher.h - copies of rows ahead of the iterations ----*- C++ -*-===//
//
// Has one loop copy what later iterations read to shared memory. FetchAhead.cpp chooses the loops.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_ROWS_ROWFETCHER_H
#define TK_PASSES_ROWS_ROWFETCHER_H

#include "dialects/tkgpu/TkGpuPrivateOps.h"
#include "passes/pipeline/LoopSlice.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace tk {

/// Does a loop do nothing but add up what its threads read, each for itself?
bool addsUp(mlir::scf::ForOp loop);

class RowFetcher {
public:
  RowFetcher(gpu::FuncOp function, mlir::scf::ForOp loop)
      : function(function), loop(loop), slice(loop), builder(loop.getContext()) {}

  /// Finds what can be fetched, given how many blocks share a multiprocessor, and the bytes of
  /// shared memory that each may take.
  bool analyse(int64_t blocks, int64_t budget);
  /// Likewise in a loop that adds up what it reads.
  bool analyseSums(int64_t budget);
  void apply();

private:
  void beginEarly();
  void readFirst(mlir::scf::ForOp earlier);
  bool isCopyable(gpu::LoadOp load);
  bool varies(gpu::LoadOp load);
  int64_t bytesOf(llvm::ArrayRef<gpu::LoadOp> loads);
  void moveIntoLoop();
  gpu::AllocPrivateOp allocate(gpu::LoadOp load, int64_t count);
  void beginCopy(gpu::LoadOp load, mlir::Value memory, mlir::Value slot,
                 const mlir::IRMapping &mapping, mlir::Value isReached);
  void fetch(mlir::Value iteration, mlir::Value slot);
  void hold(gpu::LoadOp load);
  mlir::Value readFrom(gpu::LoadOp load, mlir::Value memory, mlir::Value slot);
  mlir::Value constant(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(builder, loop.getLoc(), value);
  }

  gpu::FuncOp function;
  mlir::scf::ForOp loop;
  LoopSlice slice;
  mlir::OpBuilder builder;
  int64_t stages = 0;
  llvm::SmallVector<gpu::LoadOp> rows, kept; ///< of each iteration; of all
  llvm::SmallVector<gpu::LoadOp> held;       ///< of all, for which there is no shared memory
  llvm::SmallVector<mlir::Value> memories;   ///< of the rows
};

} // namespace tk

#endif // TK_PASSES_ROWS_ROWFETCHER_H
