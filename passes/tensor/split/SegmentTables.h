//===- SegmentTables.h - where the segments of shares lie -------*- C++ -*-===//
//
// The tables of a work-centric decomposition (tk-share-parts), which launches compute from the
// lengths of the ranges: for each segment its range, its first element and its size, for each share
// its first segment, for each range its first segment and the one behind its last.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_SPLIT_SEGMENTTABLES_H
#define TK_PASSES_TENSOR_SPLIT_SEGMENTTABLES_H

#include "passes/tensor/split/PartStates.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace tk {

/// Creates the compute ops that fill the tables, before the compute op of the partial states.
class SegmentTables {
public:
  /// The results of the compute op of segments, in order. The last three exist if rows have bounds
  /// of their own.
  enum Table : unsigned { Range, Begin, Size, First, From, To, RowBegin, AllBegin, AllEnd, Count };

  SegmentTables(PartStates &parts, int64_t shares)
      : parts(parts), compute(parts.compute), shares(shares), loc(compute.getLoc()) {}

  /// The compute op of segments.
  ComputeOp create();

  /// The values of the batch indices that are number `range`, the last one running fastest.
  llvm::SmallVector<mlir::Value> takeApart(mlir::OpBuilder &builder, mlir::Value range);
  /// The batch indices, which have `values`.
  mlir::IRMapping mapBatch(mlir::ValueRange values);
  /// An entry of a table, 0 outside of it where that may be asked for.
  mlir::Value entry(mlir::OpBuilder &builder, mlir::Value table, mlir::Value place,
                    bool mayBeOutside = false);

private:
  mlir::Value extremeOf(mlir::OpBuilder &builder, mlir::Value bound, mlir::Value range,
                        ReduceKind kind);
  void createExtremes();
  mlir::Value firstUnitOf(mlir::OpBuilder &builder, mlir::Value range);
  mlir::Value unitsOf(mlir::OpBuilder &builder, mlir::Value range);
  mlir::Value createEnds();
  mlir::Value endOf(mlir::OpBuilder &builder, mlir::Value range);
  mlir::Value beginOf(mlir::OpBuilder &builder, mlir::Value range);
  mlir::Value lastRange(mlir::OpBuilder &builder,
                        llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value)> isReached);
  llvm::SmallVector<mlir::Value> entriesOf(mlir::OpBuilder &body, mlir::Value segment);

  mlir::Value number(mlir::OpBuilder &builder, int64_t value) {
    return mlir::arith::ConstantIndexOp::create(builder, loc, value);
  }
  template <typename Op> mlir::Value fold(mlir::OpBuilder &builder, mlir::Value a, mlir::Value b) {
    return builder.createOrFold<Op>(loc, a, b);
  }
  mlir::Value quotient(mlir::OpBuilder &builder, mlir::Value a, mlir::Value b);
  mlir::Value ceilDiv(mlir::OpBuilder &builder, mlir::Value a, mlir::Value b);
  mlir::Value toInteger(mlir::OpBuilder &builder, mlir::Value value);

  PartStates &parts;
  ComputeOp compute;
  int64_t shares;
  mlir::Location loc;
  mlir::Value numRanges;
  mlir::Value ends; ///< where each range ends, in units
  llvm::SmallMapVector<std::pair<mlir::Value, ReduceKind>, mlir::Value, 4> extremes; ///< tables
};

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_SEGMENTTABLES_H
