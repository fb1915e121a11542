//===- TkGpuAsync.cpp - TMA, mbarriers, wgmma, warp specialization --------===//
#include "dialects/tkgpu/TkGpuFiniteOps.h"
#include "dialects/tkgpu/TkGpuLayout.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tk::gpu;

/// What a box's side and a tensor map's rank may be at most (CUDA driver API,
/// cuTensorMapEncodeTiled).
static constexpr int64_t kLargestBoxSide = 256;
static constexpr size_t kLargestMapRank = 5;

LogicalResult AllocPhasesOp::verify() {
  if (getArrivals() < 1)
    return emitOpError("expected at least one arrival, got ") << getArrivals();
  if (getNotes() && getType().getStages() < 2)
    return emitOpError("expected a barrier before the place for notes");
  return success();
}

/// Is there a place for notes?
static LogicalResult verifyNotes(Operation *op, Value phases) {
  auto alloc = phases.getDefiningOp<AllocPhasesOp>();
  if (alloc && !alloc.getNotes())
    return op->emitOpError("expected phases with a place for notes");
  return success();
}

LogicalResult DoubtOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  if (!source.getElementType().isF32() || !getLayout(source))
    return emitOpError("expected a tile of f32 with a layout, got ") << source;
  if (getLeast() > getMost())
    return emitOpError("expected a range that is not empty");
  return verifyNotes(*this, getPhases());
}

LogicalResult DoubtedOp::verify() { return verifyNotes(*this, getPhases()); }

LogicalResult NotedOp::verify() { return verifyNotes(*this, getPhases()); }

LogicalResult KeepFiniteOp::verify() {
  Type type = getStage().getType().getElementType();
  if (!isa<FloatType>(type) || type.getIntOrFloatBitWidth() > 16)
    return emitOpError("expected floats of 8 or 16 bits, got ") << type;
  if (getPhases().getType().getStages() != 2)
    return emitOpError("expected one mbarrier and a flag, got ") << getPhases().getType();
  return verifyNotes(*this, getPhases());
}

LogicalResult BarrierOp::verify() {
  if (getCluster() && getWarpgroup())
    return emitOpError("expected the threads of a cluster or of a warpgroup, not both");
  return success();
}

LogicalResult AllFiniteOp::verify() {
  if (getSources().empty())
    return emitOpError("expected a tile");
  for (Type type : getSources().getTypes())
    if (!getElementTypeOrSelf(type).isF32() || !getLayout(type))
      return emitOpError("expected tiles of f32 with a layout, got ") << type;
  return success();
}

LogicalResult ElementOp::verify() {
  if (getArguments().size() != getBody().getNumArguments())
    return emitOpError("expected a number for each of ")
           << getBody().getNumArguments() << " arguments, got " << getArguments().size();
  auto end = cast<ElementEndOp>(getBody().front().getTerminator());
  if (getReferenceNumber().has_value() != (end.getReference() != nullptr))
    return emitOpError("expected a reference at the end of the body exactly if a result is one");
  return success();
}

LogicalResult RepairOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  const Type element = source.getElementType();
  if ((!element.isF32() && !element.isF64()) || !getLayout(source))
    return emitOpError("expected a tile of f32 or f64 with a layout, got ") << source;
  auto end = cast<ElementEndOp>(getBody().front().getTerminator());
  if (end.getValue().getType() != element)
    return emitOpError("expected the body to end with a value of type ")
           << element << ", got " << end.getValue().getType();
  if (getStored() && !getResult().use_empty())
    return emitOpError("expected no uses of the result of a repair of what is stored");
  auto types = llvm::to_vector(getBody().getArgumentTypes());
  if (getReference()) {
    if (getReference().getType() != source)
      return emitOpError("expected a reference of the tile's type ")
             << source << ", got " << getReference().getType();
    if (types.empty() || types.back() != element)
      return emitOpError("expected a number of type ")
             << element << " as the last argument of the body";
    types.pop_back();
  }
  if (static_cast<int64_t>(types.size()) != source.getRank() ||
      !llvm::all_of(types, [](Type type) { return type.isIndex(); }))
    return emitOpError("expected an index for each axis of the tile");
  return success();
}

LogicalResult PutElementOp::verify() {
  if (getValue().getType() != getBuffer().getType().getElementType())
    return emitOpError("expected a value of the buffer's element type ")
           << getBuffer().getType().getElementType() << ", got " << getValue().getType();
  return success();
}

LogicalResult NoneNegativeOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  if (!source.getElementType().isF32() || !getLayout(source))
    return emitOpError("expected a tile of f32 with a layout, got ") << source;
  return success();
}

LogicalResult TensorMapOp::verify() {
  size_t rank = getBox().size();
  if (!getTensor() == !getResultNumber())
    return emitOpError("expected a tensor or the number of a result");
  auto type = getTensor() ? cast<RankedTensorType>(getTensor().getType()) : RankedTensorType();
  if (rank == 0 || rank > kLargestMapRank || (type && type.getRank() + 1 < int64_t(rank)))
    return emitOpError("expected a box of the tensor's 1 to 5 axes, of which one may be two, got ")
           << rank;
  if (getExtents().size() != rank || getStrides().size() != rank)
    return emitOpError("expected an extent, a stride and a side of the box for each of ")
           << rank << " axes";
  for (int64_t side : getBox())
    if (side < 1 || side > kLargestBoxSide)
      return emitOpError("expected sides of the box from 1 to ")
             << kLargestBoxSide << ", got " << side;
  if (int64_t before = getBefore(); before != 0 && (rank < 3 || before != getBox()[rank - 2]))
    return emitOpError("expected a window of as many rows as the box has, got ") << before;
  if (!llvm::is_contained({0, 32, 64, 128}, getSwizzle()))
    return emitOpError("expected a swizzle of 0, 32, 64 or 128 bytes, got ") << getSwizzle();
  if (getTf32() && type && !type.getElementType().isF32())
    return emitOpError("expected elements of f32 to round to tf32, got ") << type.getElementType();
  if (size_t count = getPlaces().size(); count != getLower().value_or(ArrayRef<int64_t>()).size() ||
                                         count != getSteps().value_or(ArrayRef<int64_t>()).size() ||
                                         (count != 0 && (count + 2 != rank || getBefore() != 0)))
    return emitOpError("expected places, and where and how far apart they are, along all of ")
           << rank << " axes but the first and the last one";
  return success();
}

Value TensorMapOp::getTensorFor(LaunchOp launch) {
  return getTensor() ? getTensor() : launch.getResult(*getResultNumber());
}

BlockArgument BulkCopyOp::getMapArgument() {
  Value map = getMap();
  if (auto select = map.getDefiningOp<arith::SelectOp>())
    map = select.getFalseValue();
  return dyn_cast<BlockArgument>(map);
}

LogicalResult BulkCopyOp::verify() {
  if (getCoordinates().empty() || getCoordinates().size() > kLargestMapRank)
    return emitOpError("expected 1 to 5 coordinates, got ") << getCoordinates().size();
  if (getMulticast() && *getMulticast() >= getCoordinates().size())
    return emitOpError("expected an axis of the map, got ") << *getMulticast();
  if (!getPhases() != !getSlot())
    return emitOpError("expected phases and a slot, or neither");
  if (!getTarget().getType().getHardwareSwizzle())
    return emitOpError("expected a target permuted as the hardware does, got ")
           << getTarget().getType();
  if (getTarget().getType().getInterleave() > 1 && (getMulticast() || getCoordinates().size() < 3))
    return emitOpError(
        "expected axes for groups of rows, rows and columns, and no multicast, where "
        "rows are interleaved");
  if (!getDistances().empty() &&
      (getDistances().size() + 2 != getCoordinates().size() || getMulticast() || getFirstRow()))
    return emitOpError("expected a distance along each axis but the first and the last one, and "
                       "whole tiles, of windows");
  if (!getFirstRow())
    return success();
  SharedType type = getTarget().getType();
  int64_t rows = type.getShape()[type.getAxisOrder()[1]];
  if (getMulticast() || type.getInterleave() > 1)
    return emitOpError("expected whole tiles for all blocks of a cluster, and of interleaved rows");
  if (int64_t first = *getFirstRow(); first < 0 || first >= rows)
    return emitOpError("expected a first row from 0 to ") << rows - 1 << ", got " << first;
  return success();
}

LogicalResult BulkStoreOp::verify() {
  if (getCoordinates().empty() || getCoordinates().size() > kLargestMapRank)
    return emitOpError("expected 1 to 5 coordinates, got ") << getCoordinates().size();
  if (!getSource().getType().getHardwareSwizzle())
    return emitOpError("expected a source permuted as the hardware does, got ")
           << getSource().getType();
  for (std::optional<uint64_t> axis : {getWarpgroupAxis(), getBeforeAxis()})
    if (axis && *axis >= getCoordinates().size())
      return emitOpError("expected an axis of the map, got ") << *axis;
  if (!getWarpgroupAxis())
    return success();
  SharedType type = getSource().getType();
  int64_t rows = type.getShape()[type.getAxisOrder()[1]];
  auto function = (*this)->getParentOfType<FuncOp>();
  int64_t groups = function.getRowsThatRun(function.getNumWarps()) / 4;
  if (groups == 0 || rows % (8 * groups) != 0)
    return emitOpError("expected a multiple of 8 rows for each warpgroup, got ")
           << rows << " for " << groups;
  return success();
}

/// Shape and element type of an operand: a tile in registers or in shared memory.
static std::optional<std::pair<ArrayRef<int64_t>, Type>> operandOf(Type type) {
  if (auto shared = dyn_cast<SharedType>(type))
    return std::pair(shared.getShape(), shared.getElementType());
  if (auto tile = dyn_cast<RankedTensorType>(type))
    return std::pair(tile.getShape(), tile.getElementType());
  return std::nullopt;
}

LogicalResult WarpgroupDotOp::verify() {
  auto a = operandOf(getA().getType()), b = operandOf(getB().getType());
  auto acc = cast<RankedTensorType>(getAcc().getType());
  if (!a || a->first.size() != 2 || b->first.size() != 2 || acc.getRank() != 2)
    return emitOpError("expected operands of two axes, got ")
           << getA().getType() << ", " << getB().getType() << " and " << acc;
  auto function = (*this)->getParentOfType<FuncOp>();
  bool haveRows = acc.getDimSize(0) == a->first[0] ||
                  (isa<SharedType>(getA().getType()) && function &&
                   function.getRowsThatRun(acc.getDimSize(0)) == a->first[0]);
  const bool isSome = b->first[1] < acc.getDimSize(1) && b->first[1] % 8 == 0 && !isPromoted(*this);
  if (a->first[1] != b->first[0] || !haveRows || (acc.getDimSize(1) != b->first[1] && !isSome))
    return emitOpError("expected shapes that fit, got ")
           << getA().getType() << ", " << getB().getType() << " and " << acc;
  if (acc.getDimSize(0) % 64 != 0)
    return emitOpError("expected a multiple of 64 rows, got ") << acc.getDimSize(0);
  if (isPromoted(*this) && getAccumulate())
    return emitOpError("expected no condition where threads add up the product");
  for (Type type : {getA().getType(), Type(getB().getType())})
    if (auto shared = dyn_cast<SharedType>(type); shared && !shared.getHardwareSwizzle())
      return emitOpError("expected operands permuted as the hardware does, got ") << shared;
  if (auto shared = dyn_cast<SharedType>(getA().getType()); shared && shared.getInterleave() > 1)
    return emitOpError("expected interleaved rows of the right operand alone, got ") << shared;
  SharedType right = getB().getType();
  if (right.getInterleave() > 1 && right.getAxisOrder()[1] != 1)
    return emitOpError("expected columns of the result as interleaved rows, got ") << right;
  return success();
}

LogicalResult WarpgroupSumsOp::verify() {
  auto product = dyn_cast_or_null<WarpgroupDotOp>((*this)->getPrevNode());
  if (!product || product.getA() != getA() || product.getB() != getB() || isPromoted(product) ||
      product.getAccumulate())
    return emitOpError("expected the product of its operands in front of it");
  auto acc = cast<RankedTensorType>(getAcc().getType());
  auto a = cast<RankedTensorType>(getA().getType());
  SharedType b = getB().getType();
  if (acc.getRank() != 2 || acc.getDimSize(0) != a.getDimSize(0) ||
      acc.getDimSize(1) != b.getOnes())
    return emitOpError("expected a column for each one behind a row of b, got ")
           << acc << " and " << b;
  return success();
}

bool tk::gpu::isByteFloat(Type type) { return isa<Float8E4M3FNType, Float8E5M2Type>(type); }

bool tk::gpu::isPromoted(WarpgroupDotOp dot) {
  return dot.getPrecision() == Precision::Blocked ||
         (isByteFloat(dot.getB().getType().getElementType()) &&
          dot.getPrecision() != Precision::Fast);
}

bool tk::gpu::isRescaledSum(arith::MulFOp product) {
  auto factor = product.getRhs().getDefiningOp<BroadcastOp>();
  Operation *scale = factor ? factor.getSource().getDefiningOp() : nullptr;
  while (auto later = dyn_cast_or_null<ArriveBeforeOp>(scale))
    scale = later.getValue().getDefiningOp();
  return isa_and_nonnull<ExpDiffOp, ScaledExpDiffOp>(scale) && hasMode(scale, MathMode::Rescale) &&
         product.getLhs().getDefiningOp<WarpgroupWaitOp>();
}

LogicalResult WarpgroupWaitOp::verify() {
  if (getSources().getTypes() != getResults().getTypes())
    return emitOpError("expected results of the sources' types");
  return success();
}

LogicalResult WarpRolesOp::verify() {
  auto function = (*this)->getParentOfType<FuncOp>();
  if (function.getProducerWarps() == 0)
    return emitOpError("expected a function with producer warps");
  if (getProducerRegisters().has_value() != getConsumerRegisters().has_value())
    return emitOpError("expected registers for both roles, or neither");
  for (std::optional<int64_t> registers : {getProducerRegisters(), getConsumerRegisters()})
    if (registers && (*registers < 24 || *registers > 256 || *registers % 8 != 0))
      return emitOpError("expected multiples of 8 from 24 to 256 registers, got ") << *registers;
  return success();
}
