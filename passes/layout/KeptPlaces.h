//===- KeptPlaces.h - tiles whose last columns belong to the next tile -----===//
#ifndef TK_PASSES_LAYOUT_KEPTPLACES_H
#define TK_PASSES_LAYOUT_KEPTPLACES_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include <cstdint>
#include <optional>

namespace tk {

/// If `mask` lets the first places along one axis of a tile through and no others: their number.
std::optional<int64_t> countKeptPlaces(mlir::Value mask);

/// The number of a store's mask that keeps the first places along `axis` of the stored tile alone,
/// and how many these are.
struct KeptPlaces {
  unsigned mask;
  int64_t count;
};
std::optional<KeptPlaces> findKeptPlaces(gpu::StoreOp store, int64_t axis);

/// Removes a mask of a store.
void dropMask(gpu::StoreOp store, unsigned mask);

/// The columns of a product with the result type `product` that `function` needs: those that its
/// stores keep. All of them unless the function is a plain product whose schedule has a step
/// shorter than its tile.
int64_t countKeptColumns(gpu::FuncOp function, mlir::RankedTensorType product);

} // namespace tk

#endif // TK_PASSES_LAYOUT_KEPTPLACES_H
