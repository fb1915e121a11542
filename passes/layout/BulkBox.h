//===- BulkBox.h - accesses to boxes of a tensor ----------------*- C++ -*-===//
//
// The tensor memory accelerator copies boxes of a tensor whose extents, strides and base address it
// was told at launch. Here is decided which accesses are to such boxes.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_LAYOUT_BULKBOX_H
#define TK_PASSES_LAYOUT_BULKBOX_H

#include "dialects/tkgpu/TkGpuDialect.h"
#include "passes/layout/AxisInfo.h"
#include "passes/layout/CountedRows.h"

namespace tk {

/// An access to a box, in terms of values of the function. Vectors have an entry for each axis of
/// the tensor, from the outermost inwards.
struct BulkBox {
  mlir::Value buffer;
  llvm::SmallVector<mlir::Value> strides;
  /// Of the first element: what adds up to each coordinate.
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> coordinates;
  llvm::SmallVector<mlir::Value> limits; ///< where masks end the axis; null: nowhere
  llvm::SmallVector<int64_t> box;
  gpu::SharedType shared; ///< how the tile lies in shared memory, permuted by the hardware
  /// Of the tile's rows along its axis that is not contiguous, how many a box has that are gathered
  /// together, and by axis of the tensor the index tiles that say where; 0: none are.
  int64_t gatheredRows = 0;
  llvm::SmallVector<mlir::Value> gathered;
  llvm::SmallVector<mlir::Value> groupMasks; ///< where one is false the group is zero
  /// Where rows end if the launch does not know that: at the number `end` in the loop's terms,
  /// which the tile's first row is the sum of `endBase` in. Of rows that are gathered `endIndex`
  /// holds the numbers of all in these terms.
  mlir::Value end, endIndex;
  llvm::SmallVector<mlir::Value> endBase;
  /// The axis along which a store's elements may lie before the tensor; they are masked off.
  std::optional<unsigned> beforeAxis;
  bool roundsToTf32 = false; ///< elements of f32, on their way there
  /// How many axes of the tensor each axis of the box stands for, where neighbours are contiguous
  /// and their indices counted through; empty: one.
  llvm::SmallVector<unsigned> axesOfTensor;
  /// The number of values of the outermost of these indices if a mask says it; else null.
  mlir::Value firstLimit;
  /// Rows that are places of windows (tkgpu.tensor_map); the least distance along each axis but the
  /// first and the last one; and, null if nothing says so, the number that all places are before.
  std::optional<CountedRows> places;
  llvm::SmallVector<int64_t> lower;
  mlir::Value total;

  /// The tensor's axis along which the rows of the tile in shared memory lie.
  std::optional<unsigned> rowsAxis() const;
  /// The axis along which the rows of one copy lie, and how many these are: the tile's, or those of
  /// a group that are gathered together.
  std::optional<unsigned> copiedRowsAxis() const;
  int64_t copiedRows() const { return gatheredRows ? gatheredRows : rows(); }
  /// Cuts rows into panels of so many bytes, a span of a swizzle.
  void cutRows(int64_t bytes);
  /// Rows that one group has where their pairs are interleaved, two for each part; else 1.
  int64_t rowsOfGroup() const;
  /// Rows of the tile.
  int64_t rows() const;
};

/// The coordinates of the first element of `box`, at the builder's position; 0 for those that are
/// gathered.
llvm::SmallVector<mlir::Value> buildCoordinates(mlir::OpBuilder &builder, mlir::Location loc,
                                                const BulkBox &box);

/// How far from its place each row is read, along all axes but the first and the last one; empty
/// for rows that are no windows.
llvm::SmallVector<mlir::Value> buildDistances(mlir::OpBuilder &builder, mlir::Location loc,
                                              const BulkBox &box);

/// Reads an access whose rows are counted through (CountedRows.h) into `box`, but for how the tile
/// lies in shared memory; false and why if it is none.
bool readCountedBox(const MemoryAccess &access, bool isLoad, BulkBox &box, std::string &why);

/// Has a copy from `coordinates` take only the rows before the end of `box`. Its first row has the
/// number that `base` adds up to in the end's terms. Returns an `i1`: the copy takes some rows but
/// not all, and the box is not outside the tensor for other reasons (`isInside`; null: it never
/// is). Then the coordinates are those of the map that begins before the tensor, else those of the
/// other.
mlir::Value endRows(mlir::OpBuilder &builder, mlir::Location loc, const BulkBox &box,
                    mlir::ValueRange base, mlir::Value isInside,
                    llvm::SmallVectorImpl<mlir::Value> &coordinates);

/// Reads an access as one to a box; on failure `why` is the reason, for people. What a load's masks
/// leave out must be zero.
mlir::FailureOr<BulkBox> analyseBulkBox(gpu::LoadOp load, AxisInfo &info, std::string &why);
mlir::FailureOr<BulkBox> analyseBulkBox(gpu::StoreOp store, AxisInfo &info, std::string &why);

/// Has rows of `box` end where the launch does not know: behind a window of the tensor map. False
/// if that takes more axes than there are, or groups of rows.
bool endAtWindow(BulkBox &box);

/// Builds the values at the launch of a function that are equal to values inside it, and adds
/// tensor maps to both.
class LaunchArguments {
public:
  /// Null if the function does not have exactly one launch.
  static std::optional<LaunchArguments> of(gpu::FuncOp function);

  /// A new argument of the function: the tensor map that `box` is copied by. Where the box's rows
  /// end in a window, the map begins with the tensor, or so many rows before it (`isBefore`).
  mlir::Value addTensorMap(const BulkBox &box, bool isBefore = false);
  /// Do all panels of `box` begin inside the tensor's rows? An `i1`; null: at any launch.
  mlir::Value arePanelsInside(mlir::OpBuilder &builder, const BulkBox &box);
  /// A new `index` argument of the function with the launch's `value`.
  mlir::Value addIndex(mlir::Value value, llvm::StringRef name);
  /// A new argument of the function: a counter of the launch's own (tkgpu.counter).
  mlir::Value addCounter();
  gpu::LaunchOp getLaunch() const { return launch; }
  /// Whether all that describes the tensor of `box` can be had at the launch.
  bool isKnown(const BulkBox &box) const;
  /// Can the map of `box` count groups of `group` rows and the rows of a group apart?
  bool canGroupRows(const BulkBox &box, int64_t group, AxisInfo &info);

private:
  bool arePlacesKnown(const BulkBox &box) const;
  llvm::SmallVector<mlir::Value> extentsOf(mlir::OpBuilder &builder, const BulkBox &box);
  /// What the launch passes for an argument, or a constant; null for anything else.
  mlir::Value passedFor(mlir::Value value) const;
  LaunchArguments(gpu::FuncOp function, gpu::LaunchOp launch)
      : function(function), launch(launch) {}
  bool isKnown(mlir::Value value) const;
  mlir::Value atLaunch(mlir::OpBuilder &builder, mlir::Value value);
  mlir::Value addArgument(mlir::Value atLaunch, llvm::StringRef name);
  mlir::Value tensorOf(mlir::Value buffer) const;

  gpu::FuncOp function;
  gpu::LaunchOp launch;
};

} // namespace tk

#endif // TK_PASSES_LAYOUT_BULKBOX_H
