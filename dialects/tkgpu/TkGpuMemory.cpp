//===- TkGpuMemory.cpp - accesses to global and shared memory -------------===//
#include "dialects/tkgpu/TkGpuDialect.h"
#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuPrivateOps.h"
#include "dialects/tkgpu/TkGpuRepeats.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk::gpu;

/// Do the axes of each of `values`, scalars or tiles of `element`, lie in a tile of `shape` where
/// `dims` says?
static LogicalResult verifyPlacement(Operation *op, StringRef what, ValueRange values,
                                     ArrayAttr dims, ArrayRef<int64_t> shape,
                                     function_ref<bool(Type)> isElement) {
  if (dims.size() != values.size())
    return op->emitOpError("expected an axis list for each of ")
           << values.size() << ' ' << what << ", got " << dims.size();
  for (auto [i, value] : llvm::enumerate(values)) {
    ArrayRef<int64_t> axes = cast<DenseI64ArrayAttr>(dims[i]).asArrayRef();
    auto tile = dyn_cast<RankedTensorType>(value.getType());
    if (!isElement(tile ? tile.getElementType() : value.getType()))
      return op->emitOpError("unexpected type of ") << what << ' ' << i << ": " << value.getType();
    size_t rank = tile ? tile.getRank() : 0;
    if (axes.size() != rank)
      return op->emitOpError("expected ")
             << rank << " axes for " << what << ' ' << i << ", got " << axes.size();
    for (auto [a, axis] : llvm::enumerate(axes)) {
      if (axis < 0 || axis >= static_cast<int64_t>(shape.size()))
        return op->emitOpError("expected axes below ") << shape.size() << ", got " << axis;
      if (tile.getDimSize(a) != shape[axis])
        return op->emitOpError("expected extent ")
               << shape[axis] << " of " << what << ' ' << i << " on axis " << axis << ", got "
               << tile.getDimSize(a);
    }
  }
  return success();
}

template <typename AccessOp>
static LogicalResult verifyAccess(AccessOp op, ArrayRef<int64_t> shape, Type element) {
  if (op.getStrides().size() != op.getIndices().size())
    return op.emitOpError("expected a stride for each of ")
           << op.getIndices().size() << " indices, got " << op.getStrides().size();
  Type expected = op.getBuffer().getType().getValueType();
  if (element != expected)
    return op.emitOpError("expected elements of type ") << expected << ", got " << element;
  if (failed(verifyPlacement(op, "index", op.getIndices(), op.getIndexDims(), shape,
                             [](Type type) { return type.isIndex(); })))
    return failure();
  return verifyPlacement(op, "mask", op.getMasks(), op.getMaskDims(), shape,
                         [](Type type) { return type.isInteger(1); });
}

static std::pair<SmallVector<int64_t>, Type> shapeAndElement(Type type) {
  if (auto tile = dyn_cast<RankedTensorType>(type))
    return {SmallVector<int64_t>(tile.getShape()), tile.getElementType()};
  return {{}, type};
}

LogicalResult tk::gpu::LoadOp::verify() {
  auto [shape, element] = shapeAndElement(getResult().getType());
  if (getOther() && getOther().getType() != element &&
      getOther().getType() != getResult().getType())
    return emitOpError("expected a replacement of type ")
           << element << " or of the result's, got " << getOther().getType();
  if (!getMasks().empty() && !getOther())
    return emitOpError("expected a replacement for masked elements, got none");
  return verifyAccess(*this, shape, element);
}

LogicalResult StoreOp::verify() {
  auto [shape, element] = shapeAndElement(getValue().getType());
  return verifyAccess(*this, shape, element);
}

LogicalResult CopyAsyncOp::verify() {
  SharedType target = getTarget().getType();
  if (target.getElementType() != getBuffer().getType().getElementType())
    return emitOpError("expected elements of type ")
           << target.getElementType() << ", got " << getBuffer().getType().getElementType();
  return verifyAccess(*this, target.getShape(), getBuffer().getType().getValueType());
}

/// Is `tile` a stage of `memory`, or the part of one that begins at `offsets`?
static LogicalResult verifyPrivate(Operation *op, PrivateType memory, Type tile,
                                   std::optional<ArrayRef<int64_t>> offsets) {
  if (offsets) {
    RankedTensorType whole = memory.getTile();
    auto part = cast<RankedTensorType>(tile);
    LayoutAttr layout = getLayout(whole);
    bool isPart = part.getRank() == whole.getRank() &&
                  int64_t(offsets->size()) == whole.getRank() &&
                  part.getElementType() == whole.getElementType() &&
                  getLayout(part) == partLayout(layout, part.getShape());
    std::optional<unsigned> first = isPart ? layout.getRegisterAt(*offsets) : std::nullopt;
    if (!first || *first % memory.getVector() != 0 ||
        getLayout(part).getNumRegisters() % memory.getVector() != 0)
      return op->emitOpError("expected a part of whole vectors of ")
             << memory << ", got " << part << " at [" << *offsets << "]";
    return success();
  }
  if (tile != memory.getTile())
    return op->emitOpError("expected a tile of ") << memory << ", got " << tile;
  return success();
}

RankedTensorType CopyPrivateOp::getCopiedType() {
  RankedTensorType tile = getTarget().getType().getTile();
  if (!getExtents())
    return tile;
  return RankedTensorType::get(*getExtents(), tile.getElementType(),
                               partLayout(getLayout(tile), *getExtents()));
}

LogicalResult CopyPrivateOp::verify() {
  PrivateType memory = getTarget().getType();
  int64_t bits = memory.getTile().getElementTypeBitWidth() * memory.getVector();
  if (bits != 32 && bits != 64 && bits != 128)
    return emitOpError("expected vectors of 4, 8 or 16 bytes, got ") << bits << " bits";
  if (getOffsets().has_value() != getExtents().has_value())
    return emitOpError("expected 'extents' where there are 'offsets', and only there");
  RankedTensorType tile = getCopiedType();
  if (!getLayout(tile))
    return emitOpError("expected extents of a part of ") << memory.getTile();
  if (failed(verifyPrivate(*this, memory, tile, getOffsets())))
    return failure();
  return verifyAccess(*this, tile.getShape(), tile.getElementType());
}

LogicalResult PrivateLoadOp::verify() {
  return verifyPrivate(*this, getSource().getType(), getResult().getType(), getOffsets());
}

LogicalResult PrivateStoreOp::verify() {
  return verifyPrivate(*this, getTarget().getType(), getValue().getType(), getOffsets());
}

SmallVector<int64_t> tk::gpu::repeatsOf(LocalLoadOp load) {
  auto tile = cast<RankedTensorType>(load.getResult().getType());
  ArrayRef<int64_t> stored = load.getSource().getType().getShape();
  if (load.getFrom() || load.getOffsets() ||
      tile.getRank() != static_cast<int64_t>(stored.size()) ||
      tile.getNumElements() <= llvm::product_of(stored))
    return {};
  return llvm::map_to_vector(llvm::zip_equal(tile.getShape(), stored), [](auto sizes) {
    auto [size, count] = sizes;
    return size % count == 0 ? size / count : 0;
  });
}

/// A stored element may stand for several neighbours of a tile that is read element by element.
static LogicalResult verifyRepeats(LocalLoadOp load) {
  SmallVector<int64_t> repeats = repeatsOf(load);
  const bool areRead = repeats.empty() || (!load.getMatrix() && load.getVector() == 1);
  if (areRead && llvm::all_of(repeats, [](int64_t times) { return llvm::isPowerOf2_64(times); }))
    return success();
  return load.emitOpError("expected a power of two of elements for each stored one, got ")
         << load.getResult().getType() << " of " << load.getSource().getType();
}

LogicalResult LocalLoadOp::verify() {
  if (failed(verifyRepeats(*this)))
    return failure();
  if (!getFrom() || !getAxis() || !getSpan()) {
    if (getFrom() || getAxis() || getSpan())
      return emitOpError("expected 'axis' and 'span' with where a part begins, and only there");
    return success();
  }
  auto part = cast<RankedTensorType>(getResult().getType());
  int64_t axis = *getAxis(), span = *getSpan();
  if (axis < 0 || axis >= part.getRank())
    return emitOpError("expected an axis below ") << part.getRank() << ", got " << axis;
  int64_t end = (getOffsets() ? (*getOffsets())[axis] : 0) + part.getDimSize(axis);
  if (!llvm::isPowerOf2_64(span) || end > span)
    return emitOpError("expected a power of two, at least ") << end << ", got a span of " << span;
  return success();
}

/// A stage may be read as its transpose: the same bytes, with the axes in the other order.
static bool isShapeOfStage(ArrayRef<int64_t> stage, ArrayRef<int64_t> shape) {
  return stage == shape ||
         (stage.size() == 2 && shape.size() == 2 && stage[0] == shape[1] && stage[1] == shape[0]);
}

LogicalResult StageOp::verify() {
  SharedType source = getSource().getType(), result = getResult().getType();
  SmallVector<int64_t> shape(result.getShape());
  if (static_cast<bool>(getFrom()) != (result.getPitch() > 0))
    return emitOpError("expected rows of a stage with their first one, got ") << result;
  if (getFrom())
    shape[result.getAxisOrder()[1]] = result.getPitch();
  if (source.getShape().empty() || !isShapeOfStage(source.getShape().drop_front(), shape) ||
      source.getElementType() != result.getElementType())
    return emitOpError("expected a stage of ") << source << ", got " << result;
  return success();
}
