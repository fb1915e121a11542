//===- MemoryAccess.cpp - how an access walks through memory --------------===//
//
// The base of a buffer is taken to be aligned to 16 bytes, or to what the module says: the launch
// checks it.
//
//===----------------------------------------------------------------------===//
#include "passes/layout/MemoryAccess.h"
#include "dialects/tkgpu/TkGpuPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tk;

static int64_t baseAlignmentOf(Operation *op) {
  auto module = op->getParentOfType<ModuleOp>();
  auto less = module ? module->getAttrOfType<IntegerAttr>(baseAlignmentAttrName) : IntegerAttr();
  return less ? std::clamp<int64_t>(less.getInt(), 1, 16) : 16;
}

MemoryAccess MemoryAccess::of(gpu::LoadOp load) {
  return {load.getIndices(),    load.getStrides(),  load.getMasks(),
          load.getIndexDims(),  load.getMaskDims(), cast<RankedTensorType>(load.getType()),
          baseAlignmentOf(load)};
}

MemoryAccess MemoryAccess::of(gpu::StoreOp store) {
  return {store.getIndices(),    store.getStrides(),
          store.getMasks(),      store.getIndexDims(),
          store.getMaskDims(),   cast<RankedTensorType>(store.getValue().getType()),
          baseAlignmentOf(store)};
}

ArrayRef<int64_t> MemoryAccess::indexAxes(unsigned index) const {
  return cast<DenseI64ArrayAttr>(indexDims[index]).asArrayRef();
}

ArrayRef<int64_t> MemoryAccess::maskAxes(unsigned mask) const {
  return cast<DenseI64ArrayAttr>(maskDims[mask]).asArrayRef();
}

int64_t tk::bytesOfElement(Type element) {
  return element.isIndex() ? 8 : (element.getIntOrFloatBitWidth() + 7) / 8;
}

int64_t MemoryAccess::elementBytes() const { return bytesOfElement(tile.getElementType()); }

/// The position of `axis` among `axes`, or -1.
static int64_t positionOf(ArrayRef<int64_t> axes, int64_t axis) {
  auto it = llvm::find(axes, axis);
  return it == axes.end() ? -1 : it - axes.begin();
}

/// The tensor axis with stride 1 whose index runs along some tile axis: (tensor axis, tile axis).
static std::pair<int64_t, int64_t> findContiguous(const MemoryAccess &access, AxisInfo &info) {
  std::pair<int64_t, int64_t> best = {-1, -1};
  int64_t longest = 1;
  for (auto [d, stride] : llvm::enumerate(access.strides)) {
    if (constantIndex(stride) != 1)
      continue;
    const ValueFacts &facts = info.of(access.indices[d]);
    for (auto [position, axis] : llvm::enumerate(access.indexAxes(d)))
      if (facts.axes[position].contiguity > longest) {
        longest = facts.axes[position].contiguity;
        best = {d, axis};
      }
  }
  return best;
}

std::optional<FixedTerms> tk::fixedTermsBeside(const MemoryAccess &access, Value along) {
  FixedTerms fixed;
  bool runs = false;
  for (auto [d, index] : llvm::enumerate(access.indices)) {
    if (index == along && !runs && constantIndex(access.strides[d]) == 1)
      runs = true;
    else if (isa<RankedTensorType>(index.getType()))
      return std::nullopt;
    else if (constantIndex(index) != 0)
      fixed.emplace_back(index, access.strides[d]);
  }
  return runs ? std::optional(fixed) : std::nullopt;
}

Value tk::loopStart(Value index, int64_t unit, AxisInfo &info) {
  auto argument = dyn_cast<BlockArgument>(index);
  auto loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
  bool keeps =
      loop && argument == loop.getInductionVar() && info.divisibilityOf(loop.getStep()) % unit == 0;
  return keeps ? loop.getLowerBound() : index;
}

/// Is `mask` true up to some element of each aligned group of `run` elements along an axis whose
/// numbers are neighbours?
static bool isUpperBound(Value mask, int64_t position, int64_t run, AxisInfo &info) {
  if (info.of(mask).axes[position].constancy >= run)
    return true;
  using P = arith::CmpIPredicate;
  auto compare = mask.getDefiningOp<arith::CmpIOp>();
  if (!compare || !llvm::is_contained({P::slt, P::sle}, compare.getPredicate()))
    return false;
  bool isRunning = compare.getLhs().getDefiningOp<gpu::RotatedIotaOp>() ||
                   info.of(compare.getLhs()).axes[position].contiguity >= run;
  return isRunning && info.of(compare.getRhs()).axes[position].constancy >= run;
}

/// Do all masks of an access hold up to some element of each of its runs along `axis`?
static bool hasUpperBounds(const MemoryAccess &access, int64_t axis, int64_t run, AxisInfo &info) {
  for (auto [m, mask] : llvm::enumerate(access.masks))
    if (int64_t position = positionOf(access.maskAxes(m), axis); position >= 0)
      if (!isUpperBound(mask, position, run, info))
        return false;
  return true;
}

/// The vectors of an access along a row that its tile was rotated to align.
static std::optional<VectorAccess> analyseRotated(const MemoryAccess &access, AxisInfo &info,
                                                  int64_t maxBytes) {
  for (Value index : access.indices) {
    auto rotated = index.getDefiningOp<gpu::RotatedIotaOp>();
    auto shift = rotated ? rotated.getShift().getDefiningOp<gpu::MisalignmentOp>() : nullptr;
    if (!shift)
      continue;
    std::optional<FixedTerms> fixed = fixedTermsBeside(access, index);
    if (fixed)
      for (auto &[row, stride] : *fixed)
        row = loopStart(row, shift.getAlignment(), info);
    FixedTerms aligned;
    for (auto [row, stride] : llvm::zip_equal(shift.getIndices(), shift.getStrides()))
      aligned.emplace_back(row, stride);
    if (!fixed || *fixed != aligned || access.tile.getRank() != 1)
      continue;
    int64_t run = std::min<int64_t>(shift.getAlignment(), maxBytes / access.elementBytes());
    if (run > 1 && hasUpperBounds(access, 0, run, info))
      return VectorAccess{/*axis=*/0, /*width=*/1, run};
  }
  return std::nullopt;
}

/// How far the term `index * stride` stays the same along `axis`, and what divides it there.
static int64_t widthOfFixedTerm(Value index, ArrayRef<int64_t> axes, Value stride, int64_t axis,
                                AxisInfo &info) {
  const ValueFacts facts = info.of(index);
  int64_t strideDivisor = info.divisibilityOf(stride);
  int64_t indexDivisor = facts.axes.empty() ? facts.divisibility : kAnyDivisor;
  for (const AxisFacts &along : facts.axes)
    indexDivisor = std::min(indexDivisor, along.contiguity > 1 ? 1 : along.divisibility);
  int64_t width = std::min(indexDivisor * strideDivisor, kAnyDivisor);
  if (int64_t position = positionOf(axes, axis); position >= 0)
    width = std::min(width, facts.axes[position].constancy);
  return width;
}

int64_t tk::vectorBytesOf(gpu::FuncOp function) {
  auto schedule = gpu::getTiles(function);
  return std::clamp<int64_t>(schedule ? schedule.getVector() : 16, 1, 16);
}

VectorAccess tk::analyseVectors(const MemoryAccess &access, AxisInfo &info, int64_t maxBytes) {
  maxBytes = std::min(maxBytes, access.baseAlignment);
  if (std::optional<VectorAccess> rotated = analyseRotated(access, info, maxBytes))
    return *rotated;
  auto [contiguous, axis] = findContiguous(access, info);
  if (axis < 0)
    return {};
  int64_t width = std::max<int64_t>(maxBytes / access.elementBytes(), 1);
  for (auto [d, index] : llvm::enumerate(access.indices)) {
    ArrayRef<int64_t> axes = access.indexAxes(d);
    if (int64_t(d) != contiguous) {
      width = std::min(width, widthOfFixedTerm(index, axes, access.strides[d], axis, info));
      continue;
    }
    const AxisFacts along = info.of(index).axes[positionOf(axes, axis)];
    width = std::min({width, along.contiguity, along.divisibility});
  }
  int64_t run = width;
  for (auto [m, mask] : llvm::enumerate(access.masks))
    if (int64_t position = positionOf(access.maskAxes(m), axis); position >= 0)
      width = std::min(width, info.of(mask).axes[position].constancy);
  bool isRun = run > width && width * access.elementBytes() <= 4;
  return {axis, width, isRun && hasUpperBounds(access, axis, run, info) ? run : 1};
}
