//===- FlattenedSum.h - a convolution as a contraction ----------*- C++ -*-===//
//
// The operands of one convolution of tk-flatten-windows (FlattenedFactors.cpp), and their
// contraction (FlattenWindows.cpp, which defines them).
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_TENSOR_WINDOWS_FLATTENEDSUM_H
#define TK_PASSES_TENSOR_WINDOWS_FLATTENEDSUM_H

#include "passes/tensor/normalize/IndexArithmetic.h"
#include "passes/tensor/windows/WindowSums.h"

#include "mlir/IR/IRMapping.h"

namespace tk {

/// Which of the pixels that strides leave out a tap reads, and how many rows of the stored windows
/// it lies behind the first one.
struct StoredPlace {
  mlir::Value residue, distance;
};

/// One convolution and its rewriting to a contraction. Extents are numbers of the launch.
class FlattenedSum {
public:
  FlattenedSum(const WindowSum &sum, const WindowPlan &plan);
  void rewrite();

private:
  std::string nameOf(llvm::StringRef suffix);
  void addOuter(llvm::SmallVectorImpl<llvm::StringRef> &names,
                llvm::SmallVectorImpl<mlir::Value> &extents);
  void mapOuter(Arithmetic at, mlir::Value place, mlir::IRMapping &mapping);
  mlir::Value mostOf(mlir::BlockArgument tap);
  void makePhasesRows();
  mlir::Value withoutOtherTaps(Arithmetic at, mlir::Value element, mlir::IRMapping &mapping);
  mlir::Value sharedEnds(const WindowAxis &axis, mlir::Value length, mlir::Value distance);
  llvm::SmallVector<mlir::Value> extentsOf(llvm::ArrayRef<mlir::BlockArgument> indices);
  mlir::Value mapGroup(Arithmetic at, mlir::Value outer, llvm::SmallVectorImpl<mlir::Value> &digits,
                       mlir::IRMapping &mapping);
  mlir::Value mapCounted(Arithmetic at, mlir::Value outer, mlir::Value place,
                         llvm::ArrayRef<mlir::Value> extents,
                         llvm::ArrayRef<mlir::BlockArgument> indices, mlir::IRMapping &mapping);
  mlir::Value mapChannels(Arithmetic at, mlir::Value outer, mlir::Value channel,
                          mlir::IRMapping &mapping);
  mlir::Value mapRows(Arithmetic at, mlir::Value outer, mlir::Value row, mlir::IRMapping &mapping);
  StoredPlace placeOf(Arithmetic at, llvm::ArrayRef<mlir::Value> taps);
  void readStoredWindows(mlir::Value windows);
  mlir::Value storeWindows();
  mlir::Value storeWeights();
  mlir::Value createElement(Arithmetic at, mlir::Value load, mlir::Value channel,
                            mlir::ValueRange places);
  mlir::Value createZero(Arithmetic at);
  mlir::Value storeProduct(llvm::ArrayRef<mlir::Value> factors);
  mlir::Value createTerm(Arithmetic at, llvm::ArrayRef<mlir::Value> factors,
                         llvm::ArrayRef<mlir::Value> own, llvm::ArrayRef<mlir::Value> counts,
                         mlir::Value step, mlir::Value pair, mlir::Value lane);
  mlir::Value readProduct(Arithmetic at, mlir::Value product, llvm::ArrayRef<mlir::Value> indices);
  bool isRowInnermost();
  /// Are some weights 0 that the sum does not have, so that results may be NaN in their stead?
  bool isChecked() const { return plan.groups > 1 || plan.arePhasesRows; }
  bool endsWithProduct() const {
    return plan.shares == 1 && !plan.arePhasesRows && sum.endsWithProduct() &&
           (plan.groups == 1 || sum.isResult());
  }

  WindowSum sum;
  WindowPlan plan;
  mlir::Location loc;
  mlir::OpBuilder before; ///< at the statement
  llvm::SmallVector<mlir::Value> batchExtents, phaseExtents, rowExtents, pixelExtents,
      channelExtents, tapExtents, residues;
  mlir::Value slices, taps, channels, reach, pixels, rows;
};

} // namespace tk

#endif // TK_PASSES_TENSOR_WINDOWS_FLATTENEDSUM_H
