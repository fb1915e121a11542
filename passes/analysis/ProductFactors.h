//===- ProductFactors.h - how warpgroups take factors of products -*- C++ -*-===//
//
// Warpgroups multiply what lies in shared memory as it was stored, or, for the factor whose index
// runs along the rows, what is in their registers.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_ANALYSIS_PRODUCTFACTORS_H
#define TK_PASSES_ANALYSIS_PRODUCTFACTORS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Rows of what is copied in bulk are a multiple of this many bytes apart.
inline constexpr int64_t boxAlignment = 16;

/// Rows of what is loaded are a multiple of so many bytes apart, a power of two; 0 if there are
/// none.
int64_t getRowAlignment(KernelOp kernel, LoadOp load);

/// `factor` before it was converted to the type that products are formed in.
mlir::Value withoutExtension(mlir::Value factor);

/// The precision that `reduce` is summed with: exact where an f32 result is computed from products
/// of two 8-bit floats, of whose sums matrix units keep 14 bits; else what the program asks for.
Precision getSumPrecision(ReduceOp reduce);

/// Do warpgroups multiply factors that are stored as `operand` in a sum with `precision`?
bool haveWarpgroupProduct(mlir::Type operand, Precision precision);

/// Do CUDA cores, or warps in f64, multiply factors that are stored as `operand`?
bool isWideProduct(mlir::Type operand, Precision precision);

/// Is `factor`, of a sum in `compute`, multiplied as it is stored: loaded, and with the sum's index
/// contiguous or of 16 bits?
bool isMultipliedAsStored(ComputeOp compute, mlir::Value factor);

/// The tensors' elements that `factor` is computed from, element by element; null if anything else
/// goes into it.
std::optional<llvm::SmallVector<LoadOp>> getElementsOf(mlir::Value factor);

/// Must the products of `compute` take the factor that is over statement index `index` through
/// registers, and can they take the other one as it is stored?
bool goThroughRegisters(ComputeOp compute, mlir::Value index);

/// Which index of a statement that multiplies matrices is the rows of its tile, of the extents
/// `tile`; nothing where not two indices are cut into tiles. Products take their rows from the
/// first of the two, but the matrix unit of Hopper takes 64: where the first is shorter and the
/// second is not, that is the rows; likewise where what has to go through registers, which only the
/// rows' factor may, is over the second.
std::optional<unsigned> rowsOfTile(ComputeOp compute, llvm::ArrayRef<int64_t> tile);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_PRODUCTFACTORS_H
