//===- KeptPlaces.cpp - tiles whose last columns belong to the next tile ---===//
//
// Layouts have powers of two of columns. A schedule whose `step` is shorter than its tile places
// tiles closer than their size: the last columns of a tile are the first ones of the next tile, and
// masks keep them from being stored. Nothing that is computed of them is needed.
//
//===----------------------------------------------------------------------===//
#include "passes/layout/KeptPlaces.h"

#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/layout/MemoryAccess.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// The number that all elements of `value` are, if that is known.
static std::optional<int64_t> constantOf(Value value) {
  if (auto broadcast = value.getDefiningOp<BroadcastOp>())
    value = broadcast.getSource();
  Attribute attr;
  if (!matchPattern(value, m_Constant(&attr)))
    return std::nullopt;
  if (auto splat = dyn_cast<SplatElementsAttr>(attr))
    attr = splat.getSplatValue<Attribute>();
  auto number = dyn_cast<IntegerAttr>(attr);
  return number ? std::optional(number.getInt()) : std::nullopt;
}

std::optional<int64_t> tk::countKeptPlaces(Value mask) {
  auto compare = mask.getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::slt)
    return std::nullopt;
  Value place = compare.getLhs();
  while (auto convert = place.getDefiningOp<ConvertLayoutOp>())
    place = convert.getSource();
  return place.getDefiningOp<IotaOp>() ? constantOf(compare.getRhs()) : std::nullopt;
}

std::optional<KeptPlaces> tk::findKeptPlaces(StoreOp store, int64_t axis) {
  if (!isa<RankedTensorType>(store.getValue().getType()))
    return std::nullopt;
  const MemoryAccess access = MemoryAccess::of(store);
  for (auto [m, mask] : llvm::enumerate(access.masks))
    if (access.maskAxes(m) == ArrayRef(axis))
      if (std::optional<int64_t> count = countKeptPlaces(mask))
        return KeptPlaces{static_cast<unsigned>(m), *count};
  return std::nullopt;
}

void tk::dropMask(StoreOp store, unsigned mask) {
  store.getMasksMutable().erase(mask);
  SmallVector<Attribute> dims(store.getMaskDims().getValue());
  dims.erase(dims.begin() + mask);
  store.setMaskDimsAttr(ArrayAttr::get(store.getContext(), dims));
}

int64_t tk::countKeptColumns(FuncOp function, RankedTensorType product) {
  const int64_t all = product.getDimSize(1);
  auto schedule = getTiles(function);
  if (!schedule || schedule.getStep().empty() || getPlan(function).family != PlanFamily::Gemm)
    return all;
  int64_t kept = 0;
  function.walk([&](StoreOp store) {
    auto tile = dyn_cast<RankedTensorType>(store.getValue().getType());
    std::optional<KeptPlaces> first =
        tile && tile.getShape() == product.getShape() ? findKeptPlaces(store, 1) : std::nullopt;
    kept = std::max(kept, first ? first->count : all);
  });
  return kept == 0 ? all : std::min(kept, all);
}
