//===- BandProduct.h - one sum with a long filter ---------------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_NORMALIZE_BANDPRODUCT_H
#define TK_PASSES_TENSOR_NORMALIZE_BANDPRODUCT_H

#include "dialects/tk/TkDialect.h"

#include "llvm/ADT/SetVector.h"

namespace tk {

/// A place `ofResult * l + ofTerm * r + rest`, where the rest is of kernel values.
struct BandPlace {
  int64_t ofResult = 0, ofTerm = 0, number = 0;
  llvm::SmallVector<std::pair<mlir::Value, int64_t>> values;
};

/// A load with one such place.
struct BandFactor {
  LoadOp load;
  unsigned at = 0;
  BandPlace place;
};

class BandProduct {
public:
  BandProduct(ComputeOp compute, ReduceOp reduce)
      : compute(compute), reduce(reduce), kernel(compute->getParentOfType<KernelOp>()) {}
  bool run();

private:
  bool addTo(BandPlace &place, mlir::Value value, int64_t factor);
  std::optional<BandFactor> factorOf(mlir::Value value);
  bool coversRange(BandFactor factor);
  bool solve(const BandFactor &rows, const BandFactor &filter);
  bool match();
  double timeWith(int64_t size);
  bool pays();
  ComputeOp createBand();
  llvm::SmallVector<unsigned> orderOfIndices();
  ComputeOp
  createRows(llvm::StringRef suffix, llvm::StringRef last, mlir::Value extent, mlir::Type type,
             llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)> element);
  ComputeOp createWindows();
  ComputeOp createBlocks(ComputeOp band, ComputeOp windows);
  void readBlocks(ComputeOp blocks);
  mlir::Value rest(mlir::OpBuilder &builder, const BandPlace &place);
  mlir::Value sum(mlir::OpBuilder &builder, llvm::ArrayRef<std::pair<mlir::Value, int64_t>> terms,
                  int64_t number);
  llvm::StringRef nameOf(unsigned p) {
    return llvm::cast<mlir::StringAttr>(compute.getIndexNames()[p]).getValue();
  }

  ComputeOp compute;
  ReduceOp reduce;
  KernelOp kernel;
  BandFactor rows, filter;
  unsigned result = 0;                 ///< which index of the statement `l` is
  llvm::SetVector<unsigned> shared;    ///< indices of the statement that the filter has
  int64_t rowStep = 0, columnStep = 0; ///< of u T in the rows' place, of i in the filter's
  bool isTurned = false;               ///< the filter's place falls with k
  int64_t size = 0;                    ///< T
  mlir::Value first, length;           ///< the first k, and how many there are
};

} // namespace tk

#endif // TK_PASSES_TENSOR_NORMALIZE_BANDPRODUCT_H
