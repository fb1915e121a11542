//===- SharedPromotion.h - tiles that go through shared memory --*- C++ -*-===//
//
// What tk-promote-shared keeps of a function: PromoteShared.cpp brings tiles to shared memory,
// SliceProducts.cpp reads the operands of products from there.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_LAYOUT_SHAREDPROMOTION_H
#define TK_PASSES_LAYOUT_SHAREDPROMOTION_H

#include "passes/layout/MemoryAccess.h"
#include "passes/layout/SharedTiles.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

namespace tk {

/// FMA instructions of a thread that are written out: compiling takes time for each, and as many
/// hide what a loop costs.
inline constexpr int64_t kWrittenOut = 2048;

/// Do the fragments of mma.sync make up `layout`? All of FMA's operand bits along k are registers.
bool isFragment(gpu::LayoutAttr layout, unsigned kAxis);

/// An operand of a product that lies in shared memory.
struct SharedOperand {
  gpu::ConvertLayoutOp convert; ///< what it stood for: the whole operand, as the product wants it
  mlir::Value shared;
  unsigned kAxis = 0;
};

/// How a product takes an operand.
struct OperandPlace {
  unsigned kAxis = 0;
  bool isPlain = false; ///< not swizzled where it lies across k
};

/// What a thread's slices of a product are written out for: so much of k from `from` on, or from
/// the start where that is null.
struct Span {
  mlir::Value from;
  int64_t size = 0;
};

class SharedPromotion {
public:
  explicit SharedPromotion(gpu::FuncOp function)
      : function(function), builder(function.getContext()), vectorBytes(vectorBytesOf(function)) {}

  /// The patterns, in their order, and what is left behind them.
  void chooseAccesses();
  void promoteAll();
  void sliceDots();
  void finish();
  unsigned numCopies = 0;
  unsigned numScratch = 0;

private:
  void promote(gpu::ConvertLayoutOp convert);
  mlir::Value stageLoad(gpu::LoadOp load, const OperandPlace &place);
  gpu::SharedType typeFor(mlir::RankedTensorType tile, int64_t axis, const OperandPlace &place);
  mlir::Value storeToShared(mlir::Value tile, gpu::SharedType type);
  mlir::Value allocate(mlir::Location loc, gpu::SharedType type);
  void sliceDot(gpu::DotOp dot);
  mlir::Value sliceSpan(gpu::DotOp dot, mlir::Value acc, int64_t size, Span span);
  mlir::Value operandSlice(gpu::DotOp dot, mlir::Value operand, unsigned kAxis, int64_t k,
                           int64_t size, Span span);
  mlir::Value loadOperand(mlir::Location loc, const SharedOperand &operand,
                          mlir::RankedTensorType part, llvm::ArrayRef<int64_t> offsets,
                          Span span = {});
  int64_t sliceSize(gpu::DotOp dot);
  int64_t spanSize(gpu::DotOp dot);
  bool runsAlongK(mlir::Value operand, int64_t kAxis);
  int64_t vectorFor(gpu::SharedType type, gpu::LayoutAttr layout) {
    int64_t limit = vectorBytes / bytesOfElement(type.getElementType());
    return std::min(sharedVector(type, layout), std::max<int64_t>(limit, 1));
  }
  bool isReloaded(gpu::DotOp dot, mlir::Value operand);
  void chooseAccess(gpu::LocalLoadOp load);

  gpu::FuncOp function;
  mlir::OpBuilder builder;
  int64_t vectorBytes;
  llvm::MapVector<mlir::Operation *, mlir::Value> staged;     ///< loads that went to shared memory
  llvm::MapVector<mlir::Value, SharedOperand> sharedOperands; ///< conversions whose source is there
  llvm::DenseMap<mlir::Block *, int64_t>
      accumulators; ///< bytes a thread of the products' results in a block
};

} // namespace tk

#endif // TK_PASSES_LAYOUT_SHAREDPROMOTION_H
