//===- LayoutChoice.h - the layout of each class of tiles -------*- C++ -*-===//
#ifndef TK_PASSES_LAYOUT_LAYOUTCHOICE_H
#define TK_PASSES_LAYOUT_LAYOUTCHOICE_H

#include "passes/layout/DotPlan.h"
#include "passes/layout/MemoryAccess.h"
#include "passes/layout/TileComponents.h"

namespace tk {

/// A vector along `axis` that a tile is computed from, whose elements are `stride` bytes apart in
/// memory. Each is loaded for `rows` elements of the tile, in `depth` loops.
struct StridedVector {
  int64_t axis, stride, rows;
  unsigned depth;
};

/// Chooses a layout for every class of tiles of a function; see LayoutChoice.cpp for the order.
class LayoutChoice {
public:
  /// `coalesce` false: consecutive threads along the first axis, accesses of one element.
  LayoutChoice(gpu::FuncOp function, AxisInfo &info, bool hasByteFloats, bool coalesce);

  /// The layout of a tile that is not cheap.
  gpu::LayoutAttr layoutOf(mlir::Value value) const { return chosen[components.classOf(value)]; }
  /// The layout in which an access is coalesced.
  gpu::LayoutAttr layoutForAccess(const MemoryAccess &access) const;
  /// The layout in which to store a tile: its own, if it has one, unless that leaves the store
  /// uncoalesced.
  gpu::LayoutAttr storeLayout(gpu::StoreOp store, gpu::LayoutAttr own) const;
  /// The layout of a tile about which nothing speaks.
  gpu::LayoutAttr defaultLayout(llvm::ArrayRef<int64_t> shape) const;
  /// Of operands, given the accumulator's.
  DotPlan planOf(gpu::DotOp dot) const;

private:
  void chooseFor(unsigned component);
  gpu::LayoutAttr fromDots(unsigned component) const;
  bool isReadFromShared(unsigned component) const;
  int64_t axisInMemory(mlir::Value operand) const;
  OperandRuns runsOf(gpu::DotOp dot) const;
  gpu::LayoutAttr fromRelations(unsigned component) const;
  gpu::LayoutAttr fromGathers(unsigned component) const;
  bool isPlaceOfGather(unsigned component) const;
  void forGathers(unsigned component,
                  llvm::function_ref<void(gpu::LoadOp, llvm::ArrayRef<int64_t>)> visit) const;
  llvm::SmallVector<StridedVector> stridedVectors(unsigned component) const;
  gpu::LayoutAttr fromAccesses(unsigned component) const;
  gpu::LayoutAttr fromSharedTerms(unsigned component) const;
  gpu::LayoutAttr fromStates(unsigned component) const;
  gpu::LayoutAttr blocked(llvm::ArrayRef<int64_t> shape, int64_t axis, int64_t width,
                          bool rowsInWarp, int64_t joined = -1, int64_t reduced = -1) const;
  gpu::LayoutAttr sideBySide(gpu::LayoutAttr layout) const;
  bool reducesAlong(unsigned component, uint64_t axis) const;
  int64_t reducedAxis(unsigned component, int64_t axis) const;
  int64_t scannedAxis(unsigned component, int64_t axis) const;
  int64_t slidAxis(unsigned component, int64_t axis) const;
  bool isTileChosen(mlir::Value value) const;

  mlir::MLIRContext *context;
  AxisInfo &info;
  bool coalesce;
  bool hasDots = false;
  int64_t vectorBytes;
  DotContext dotContext;
  TileComponents components;
  llvm::SmallVector<gpu::LayoutAttr> chosen;
};

} // namespace tk

#endif // TK_PASSES_LAYOUT_LAYOUTCHOICE_H
