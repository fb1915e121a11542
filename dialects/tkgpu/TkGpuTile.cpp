//===- TkGpuTile.cpp - operations on tiles --------------------------------===//
#include "dialects/tkgpu/TkGpuDialect.h"
#include "dialects/tkgpu/TkGpuHistogramOps.h"
#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuRecurrenceOps.h"
#include "dialects/tkgpu/TkGpuSortOps.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk::gpu;

static LogicalResult verifyAxis(Operation *op, int64_t axis, RankedTensorType type) {
  if (axis >= 0 && axis < type.getRank())
    return success();
  return op->emitOpError("expected an axis below ") << type.getRank() << ", got " << axis;
}

/// Is `type` what remains of `source` without `axis`? A scalar stands for rank 0.
static LogicalResult verifyReduced(Operation *op, RankedTensorType source, int64_t axis, Type type,
                                   Type element) {
  SmallVector<int64_t> shape(source.getShape());
  shape.erase(shape.begin() + axis);
  if (shape.empty()) {
    if (type != element)
      return op->emitOpError("expected a scalar result of type ") << element << ", got " << type;
    return success();
  }
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getShape() != ArrayRef(shape) || tensor.getElementType() != element)
    return op->emitOpError("expected a result like ")
           << RankedTensorType::get(shape, element) << ", got " << type;
  return success();
}

LogicalResult IotaOp::verify() {
  auto type = cast<RankedTensorType>(getResult().getType());
  if (type.getRank() != 1 || !(type.getElementType().isIndex() || type.getElementType().isF32()))
    return emitOpError("expected a result of one axis and element type index or f32, got ") << type;
  if (getEnd() && int64_t(*getEnd()) >= type.getDimSize(0))
    return emitOpError("expected an end before that of the tile, got ") << *getEnd();
  return success();
}

LogicalResult MisalignmentOp::verify() {
  if (!llvm::isPowerOf2_64(getAlignment()))
    return emitOpError("expected a power of two, got ") << getAlignment();
  return success();
}

LogicalResult RotatedIotaOp::verify() {
  auto type = cast<RankedTensorType>(getResult().getType());
  if (type.getRank() != 1 || !type.getElementType().isIndex())
    return emitOpError("expected a result of one axis and element type index, got ") << type;
  if (getAround() && int64_t(*getAround()) >= type.getDimSize(0))
    return emitOpError("expected an end before that of the tile, got ") << *getAround();
  return success();
}

LogicalResult FunnelOp::verify() {
  auto type = cast<RankedTensorType>(getResult().getType());
  int64_t vector = getVector();
  if (type.getRank() != 1 || !llvm::isPowerOf2_64(vector) || type.getDimSize(0) % vector != 0)
    return emitOpError("expected a tile of one axis and groups that divide it, got ")
           << type << " and groups of " << vector;
  auto layout = getLayout(type);
  if (layout && layout.getVectorWidth(0) < vector)
    return emitOpError("expected a thread to have a whole group of ")
           << vector << " elements, got " << layout.getVectorWidth(0) << " neighbours";
  return success();
}

LogicalResult BroadcastOp::verify() {
  auto result = cast<RankedTensorType>(getResult().getType());
  auto source = dyn_cast<RankedTensorType>(getSource().getType());
  int64_t rank = source ? source.getRank() : 0;
  if (static_cast<int64_t>(getDims().size()) != rank)
    return emitOpError("expected ") << rank << " dims, got " << getDims().size();
  Type element = source ? source.getElementType() : getSource().getType();
  if (element != result.getElementType())
    return emitOpError("expected element type ") << element << ", got " << result;
  int64_t last = -1;
  for (auto [a, dim] : llvm::enumerate(getDims())) {
    if (dim <= last || dim >= result.getRank())
      return emitOpError("expected increasing dims below ") << result.getRank() << ", got " << dim;
    if (source.getDimSize(a) != result.getDimSize(dim))
      return emitOpError("expected extent ")
             << source.getDimSize(a) << " on axis " << dim << ", got " << result.getDimSize(dim);
    last = dim;
  }
  return success();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  auto type = cast<RankedTensorType>(getResult().getType());
  if (getSource().getType() == type)
    return getSource();
  Attribute source = adaptor.getSource();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(source))
    source = splat.getSplatValue<Attribute>();
  if (isa_and_nonnull<IntegerAttr, FloatAttr>(source))
    return DenseElementsAttr::get(type, source);
  return {};
}

LogicalResult TransposeOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  if (!isPermutationVector(getPermutation()) ||
      static_cast<int64_t>(getPermutation().size()) != source.getRank())
    return emitOpError("expected a permutation of ") << source.getRank() << " axes";
  for (auto [a, from] : llvm::enumerate(getPermutation()))
    if (result.getRank() != source.getRank() || result.getDimSize(a) != source.getDimSize(from))
      return emitOpError("expected the permuted shape of ") << source << ", got " << result;
  return success();
}

/// Does `kind` combine values alone, without their places?
static LogicalResult verifyPlainKind(Operation *op, tk::ReduceKind kind) {
  if (kind != tk::ReduceKind::ArgMax && kind != tk::ReduceKind::ArgMin)
    return success();
  return op->emitOpError("expected kind sum, prod, max, min, any or all, got ")
         << tk::stringifyReduceKind(kind);
}

LogicalResult tk::gpu::ReduceOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  if (failed(verifyPlainKind(*this, getKind())) || failed(verifyAxis(*this, getAxis(), source)))
    return failure();
  if (getAsIntegers() && (getKind() != ReduceKind::Max || !source.getElementType().isF32()))
    return emitOpError("expected a maximum of f32 as integers, got ")
           << stringifyReduceKind(getKind()) << " of " << source.getElementType();
  if (getFreeReference() && getKind() != ReduceKind::Max)
    return emitOpError("expected a maximum as reference of weights, got ")
           << stringifyReduceKind(getKind());
  return verifyReduced(*this, source, getAxis(), getResult().getType(), source.getElementType());
}

LogicalResult HistogramOp::verify() {
  auto sums = cast<RankedTensorType>(getResult().getType());
  if (!getElementTypeOrSelf(getBins().getType()).isInteger(32))
    return emitOpError("expected bins of i32, got ") << getBins().getType();
  if (!sums.getElementType().isInteger(32) && !sums.getElementType().isF32())
    return emitOpError("expected sums of i32 or f32, got ") << sums;
  if (sums.getRank() != 1)
    return emitOpError("expected a result with one axis, got ") << sums;
  return success();
}

LogicalResult SortOp::verify() {
  constexpr int64_t fewest = 256, most = 16384;
  auto tile = cast<RankedTensorType>(getSource().getType());
  if (tile.getRank() != 1 || !tile.getElementType().isInteger(64))
    return emitOpError("expected i64 along one axis, got ") << tile;
  if (!llvm::isPowerOf2_64(tile.getDimSize(0)) || tile.getDimSize(0) < fewest ||
      tile.getDimSize(0) > most)
    return emitOpError("expected a power of two from ")
           << fewest << " to " << most << " elements, got " << tile.getDimSize(0);
  return success();
}

LogicalResult ReduceRunsOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  if (failed(verifyPlainKind(*this, getKind())) || failed(verifyAxis(*this, getAxis(), source)))
    return failure();
  const int64_t axis = getAxis();
  SmallVector<int64_t> shape(source.getShape());
  if (result.getRank() == source.getRank())
    shape[axis] = result.getDimSize(axis);
  const int64_t count = shape[axis];
  if (result.getShape() != ArrayRef(shape) || result.getElementType() != source.getElementType() ||
      count < 1 || source.getDimSize(axis) % count != 0 ||
      !llvm::isPowerOf2_64(source.getDimSize(axis) / count))
    return emitOpError("expected a result like ")
           << source << ", with runs of a power of two on axis " << axis << ", got " << result;
  LayoutAttr layout = getLayout(source), left = getLayout(result);
  if (layout && left && left != runsLayout(layout, axis, getRun()))
    return emitOpError("expected layout ")
           << runsLayout(layout, axis, getRun()) << " of the result, got " << left;
  return success();
}

/// The type of what the threads make of a tile along an axis.
static RankedTensorType partsType(RankedTensorType source, int64_t axis) {
  LayoutAttr layout = threadPartsLayout(getLayout(source), axis);
  return RankedTensorType::get(layout.getTileShape(), source.getElementType(), layout);
}

void ReduceInThreadsOp::build(OpBuilder &builder, OperationState &state, Value source,
                              ReduceKind kind, int64_t axis) {
  build(builder, state, partsType(cast<RankedTensorType>(source.getType()), axis), source, kind,
        axis);
}

LogicalResult ReduceInThreadsOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  if (failed(verifyPlainKind(*this, getKind())) || failed(verifyAxis(*this, getAxis(), source)))
    return failure();
  if (!getLayout(source))
    return emitOpError("expected a source with a layout, got ") << source;
  RankedTensorType expected = partsType(source, getAxis());
  if (getResult().getType() != expected)
    return emitOpError("expected ") << expected << ", got " << getResult().getType();
  return success();
}

LogicalResult FirstInThreadsOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  if (failed(verifyAxis(*this, getAxis(), source)))
    return failure();
  LayoutAttr layout = getLayout(source);
  if (!layout)
    return emitOpError("expected a source with a layout, got ") << source;
  SmallVector<int64_t> shape(source.getShape());
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(getAxis()));
  auto expected =
      RankedTensorType::get(shape, source.getElementType(), sliceLayout(layout, getAxis()));
  if (getResult().getType() != expected)
    return emitOpError("expected ") << expected << ", got " << getResult().getType();
  return success();
}

LogicalResult SpreadInThreadsOp::verify() {
  auto result = cast<RankedTensorType>(getResult().getType());
  if (failed(verifyAxis(*this, getAxis(), result)))
    return failure();
  if (!getLayout(result))
    return emitOpError("expected a result with a layout, got ") << result;
  RankedTensorType expected = partsType(result, getAxis());
  if (getSource().getType() != expected)
    return emitOpError("expected ") << expected << ", got " << getSource().getType();
  return success();
}

LogicalResult ArgReduceOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto indices = cast<RankedTensorType>(getIndices().getType());
  if (getKind() != tk::ReduceKind::ArgMax && getKind() != tk::ReduceKind::ArgMin)
    return emitOpError("expected kind argmax or argmin, got ")
           << tk::stringifyReduceKind(getKind());
  if (source.getShape() != indices.getShape())
    return emitOpError("expected indices of the shape of ") << source << ", got " << indices;
  if (failed(verifyAxis(*this, getAxis(), source)) ||
      failed(
          verifyReduced(*this, source, getAxis(), getValue().getType(), source.getElementType())))
    return failure();
  return verifyReduced(*this, indices, getAxis(), getIndex().getType(), indices.getElementType());
}

static LogicalResult verifyRow(Operation *op, Type type) {
  auto row = cast<RankedTensorType>(type);
  if (row.getRank() != 1 || !row.getElementType().isF32())
    return op->emitOpError("expected a tile of f32 with one axis, got ") << row;
  return success();
}

LogicalResult MomentsOp::verify() { return verifyRow(*this, getSource().getType()); }

LogicalResult WeightsOp::verify() { return verifyRow(*this, getSource().getType()); }

LogicalResult SelectAtOp::verify() {
  auto tile = cast<RankedTensorType>(getResult().getType());
  if (tile.getRank() != 1)
    return emitOpError("expected tiles with one axis, got ") << tile;
  return success();
}

LogicalResult HoldOp::verify() {
  auto tile = cast<RankedTensorType>(getSource().getType());
  Type element = tile.getElementType();
  unsigned bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
  if (bits != 8 && bits != 16 && bits != 32)
    return emitOpError("expected elements of 8, 16 or 32 bits, got ") << tile;
  if (auto layout = getLayout(tile); layout && layout.getNumRegisters() * bits % 32 != 0)
    return emitOpError("expected the elements of a thread to fill words, got ") << tile;
  return success();
}

LogicalResult tk::gpu::ScanOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  if (failed(verifyAxis(*this, getAxis(), source)))
    return failure();
  return verifyReduced(*this, source, getAxis(), getTotal().getType(), source.getElementType());
}

LogicalResult RecurrenceOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  if (failed(verifyAxis(*this, getAxis(), source)))
    return failure();
  if (!source.getElementType().isF32() && !source.getElementType().isF64())
    return emitOpError("expected elements of f32 or f64, got ") << source;
  return verifyReduced(*this, source, getAxis(), getLast().getType(), source.getElementType());
}

LogicalResult DotOp::verify() {
  auto a = cast<RankedTensorType>(getA().getType()), b = cast<RankedTensorType>(getB().getType());
  auto acc = cast<RankedTensorType>(getAcc().getType());
  if (a.getRank() != 2 || b.getRank() != 2 || acc.getRank() != 2)
    return emitOpError("expected operands of two axes, got ") << a << ", " << b << ", " << acc;
  if (a.getDimSize(1) != b.getDimSize(0))
    return emitOpError("expected equal inner extents, got ") << a << " and " << b;
  if (acc.getDimSize(0) != a.getDimSize(0) || acc.getDimSize(1) != b.getDimSize(1))
    return emitOpError("expected an accumulator of ")
           << a.getDimSize(0) << "x" << b.getDimSize(1) << ", got " << acc;
  if (!hasTerm())
    return success();
  Block &term = getTerm().front().front();
  auto yield = dyn_cast<tk::YieldOp>(term.getTerminator());
  SmallVector<Type> expected = {a.getElementType(), b.getElementType(), acc.getElementType()};
  if (getTerm().size() != 1 || !llvm::equal(term.getArgumentTypes(), expected) || !yield ||
      yield.getNumOperands() != 1 || yield.getOperand(0).getType() != acc.getElementType())
    return emitOpError("expected one term of an element of each operand");
  return success();
}

void DotOp::build(OpBuilder &builder, OperationState &state, Type result, Value a, Value b,
                  Value acc, Precision precision) {
  build(builder, state, result, a, b, acc, precision, /*termCount=*/0);
}

DotOp DotOp::ofParts(OpBuilder &builder, Value a, Value b, Value acc) {
  auto part = DotOp::create(builder, getLoc(), acc.getType(), a, b, acc, getPrecision(),
                            static_cast<unsigned>(getTerm().size()));
  for (auto [from, to] : llvm::zip(getTerm(), part.getTerm())) {
    IRMapping map;
    from.cloneInto(&to, map);
  }
  return part;
}

LogicalResult ConvertLayoutOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  if (source.getShape() != result.getShape() || source.getElementType() != result.getElementType())
    return emitOpError("expected a result like ")
           << source << " but for its layout, got " << result;
  return success();
}

Value tk::gpu::splatSource(Value tile) {
  auto broadcast = tile.getDefiningOp<BroadcastOp>();
  return broadcast && !isa<RankedTensorType>(broadcast.getSource().getType())
             ? broadcast.getSource()
             : Value();
}

LogicalResult JoinOp::verify() {
  auto result = cast<RankedTensorType>(getResult().getType());
  const int64_t axis = getAxis();
  if (axis < 0 || axis >= result.getRank())
    return emitOpError("expected an axis of ") << result << ", got " << axis;
  for (Value value : getParts()) {
    auto part = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> whole(part.getShape());
    if (axis < part.getRank())
      whole[axis] *= static_cast<int64_t>(getParts().size());
    if (part.getElementType() != result.getElementType() || ArrayRef(whole) != result.getShape())
      return emitOpError("expected ")
             << getParts().size() << " equal parts of " << result << ", got " << part;
  }
  return success();
}

LogicalResult ExtractOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  if (source.getRank() != result.getRank() || source.getElementType() != result.getElementType() ||
      static_cast<int64_t>(getOffsets().size()) != source.getRank())
    return emitOpError("expected a part of ") << source << ", got " << result;
  for (auto [axis, offset] : llvm::enumerate(getOffsets()))
    if (offset < 0 || offset % result.getDimSize(axis) != 0 ||
        offset + result.getDimSize(axis) > source.getDimSize(axis))
      return emitOpError("expected a multiple of ")
             << result.getDimSize(axis) << " below " << source.getDimSize(axis) << " on axis "
             << axis << ", got " << offset;
  return success();
}
