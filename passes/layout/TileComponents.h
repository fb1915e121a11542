//===- TileComponents.h - tiles that share one layout -----------*- C++ -*-===//
#ifndef TK_PASSES_LAYOUT_TILECOMPONENTS_H
#define TK_PASSES_LAYOUT_TILECOMPONENTS_H

#include "dialects/tkgpu/TkGpuLayout.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/IntEqClasses.h"

namespace tk {

/// Is `value` a tile that is cheaper to compute again in another layout than to convert:
/// constants, iotas, and integer arithmetic on such?
bool isCheapTile(mlir::Value value);

/// Does `op` reduce a tile, for which the threads that share it meet?
bool isReduction(mlir::Operation *op);

/// Do several warps share the elements of `tile` along `axis`?
bool crossesWarps(mlir::Value tile, int64_t axis);

/// Do warps that share a tile meet in `op`, which reduces it?
bool isMeeting(mlir::Operation *op);

/// Does a function multiply matrices, on whatever units?
bool hasProducts(gpu::FuncOp function);

/// Is a tile computed from private memory, so that registers which it would fill are free?
bool readsPrivate(mlir::Value value);

/// Registers of 32 bits that a thread has for the elements of a tile; 0 without a layout.
int64_t registersOfTile(mlir::Type tile);

inline bool isTile(mlir::Value value) { return mlir::isa<mlir::RankedTensorType>(value.getType()); }

/// The tiles of a function, without the cheap ones, in classes that elementwise operations and
/// loops tie together. All tiles of a class have one shape and get one layout.
class TileComponents {
public:
  explicit TileComponents(gpu::FuncOp function);

  /// The class of a tile that is not cheap.
  unsigned classOf(mlir::Value value) const { return classes[numbers.at(value)]; }
  unsigned size() const { return classes.getNumClasses(); }
  llvm::ArrayRef<mlir::Value> members(unsigned component) const { return memberLists[component]; }
  llvm::ArrayRef<int64_t> shapeOf(unsigned component) const {
    return mlir::cast<mlir::RankedTensorType>(memberLists[component].front().getType()).getShape();
  }

private:
  void collect(gpu::FuncOp function);
  void tie(mlir::Operation *op);
  void tie(mlir::Value a, mlir::Value b);

  llvm::DenseMap<mlir::Value, unsigned> numbers;
  llvm::SmallVector<mlir::Value> values;
  llvm::IntEqClasses classes;
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> memberLists;
};

} // namespace tk

#endif // TK_PASSES_LAYOUT_TILECOMPONENTS_H
