//===- TilePieces.cpp - computing a tile piece by piece -------------------===//
//
// A part of the result of an elementwise operation is the operation on the parts of its operands;
// a part of a broadcast is the broadcast of the part along the axes that the source has; a part of
// a load is a load with the parts of its indices and masks; of a choice of one element it is that
// by the element's number in the part; of a funnel one of parts, of whole vectors; of what threads
// keep for themselves a part is read, if it is not copied over meanwhile. Everything else is
// computed as a whole, and a part of it is the registers that lie in it.
//
//===----------------------------------------------------------------------===//
#include "passes/layout/TilePieces.h"
#include "dialects/tkgpu/TkGpuPrivateOps.h"
#include "passes/layout/SettledMasks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

static bool isTile(Value value) { return isa<RankedTensorType>(value.getType()); }

static bool canBeCut(Operation *op) {
  if (!op || op->getNumResults() != 1 || !isTile(op->getResult(0)))
    return false;
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue());
  if (auto load = dyn_cast<gpu::LoadOp>(op))
    return !load.getOther() || !isTile(load.getOther());
  return isa<BroadcastOp, SelectAtOp, PrivateLoadOp, FunnelOp>(op) ||
         (op->hasTrait<OpTrait::Elementwise>() && isMemoryEffectFree(op) &&
          op->getNumRegions() == 0);
}

TilePieces::TilePieces(ArrayRef<Value> tiles, ArrayRef<Operation *> users)
    : users(users.begin(), users.end()) {
  for (Value tile : tiles)
    collect(tile);
}

/// Do all uses of `op`, through operations that can be cut, end in the users?
bool TilePieces::leadsToUsers(Operation *op) {
  return llvm::all_of(op->getUsers(), [&](Operation *other) {
    return users.contains(other) ||
           (other->getBlock() == op->getBlock() && canBeCut(other) && leadsToUsers(other));
  });
}

/// Does the memory that a tile is read from stay as it is up to the users?
static bool isThereForUsers(PrivateLoadOp load, const llvm::SmallPtrSetImpl<Operation *> &users) {
  if (load.getOffsets())
    return false;
  for (Operation *op = load->getNextNode(); op; op = op->getNextNode()) {
    if (isa<CopyPrivateOp, PrivateStoreOp>(op))
      return llvm::none_of(users, [&](Operation *user) {
        return user->getBlock() == op->getBlock() && op->isBeforeInBlock(user);
      });
    if (op->getNumRegions() != 0)
      return false;
  }
  return true;
}

void TilePieces::collect(Value value) {
  Operation *op = value.getDefiningOp();
  if (!canBeCut(op) || !leadsToUsers(op))
    return;
  if (auto load = dyn_cast<PrivateLoadOp>(op); load && !isThereForUsers(load, users))
    return;
  chain.insert(op);
  for (Value operand : op->getOperands())
    if (isTile(operand))
      collect(operand);
}

Value TilePieces::extract(OpBuilder &builder, Value value, ArrayRef<int64_t> offsets,
                          ArrayRef<int64_t> shape) {
  auto whole = cast<RankedTensorType>(value.getType());
  if (whole.getShape() == shape)
    return value;
  LayoutAttr layout = partLayout(getLayout(whole), shape);
  auto part = RankedTensorType::get(shape, whole.getElementType(), layout);
  return ExtractOp::create(builder, value.getLoc(), part, value, offsets);
}

/// The part of a tile of fewer axes whose axis `a` is axis `axes[a]` of the tile that is cut.
Value TilePieces::pieceAlong(OpBuilder &builder, Value value, ArrayRef<int64_t> axes,
                             ArrayRef<int64_t> offsets, ArrayRef<int64_t> shape) {
  if (!isTile(value))
    return value;
  SmallVector<int64_t> at, extents;
  for (int64_t axis : axes) {
    at.push_back(offsets[axis]);
    extents.push_back(shape[axis]);
  }
  return pieceOf(builder, value, at, extents);
}

/// A part of a comparison holds where the whole does: its registers are those from the one at
/// `offsets` on, or nothing is known of them.
static void keepSettled(Operation *part, LayoutAttr whole, ArrayRef<int64_t> offsets) {
  auto settled = part->getAttrOfType<IntegerAttr>(settledAttrName);
  if (!settled)
    return;
  part->removeAttr(settledAttrName);
  LayoutAttr layout = getLayout(part->getResult(0).getType());
  std::optional<unsigned> first = whole.getRegisterAt(offsets);
  unsigned count = layout.getNumRegisters();
  for (unsigned r = 0; first && r < count; ++r)
    for (auto [offset, own, from] :
         llvm::zip_equal(whole.getRegisterOffset(*first + r), layout.getRegisterOffset(r), offsets))
      if (offset != own + from)
        return;
  if (first)
    part->setAttr(
        settledAttrName,
        IntegerAttr::get(settled.getType(), int64_t(uint64_t(settled.getInt()) >> *first &
                                                    llvm::maskTrailingOnes<uint64_t>(count))));
}

Value TilePieces::pieceOf(OpBuilder &builder, Value value, ArrayRef<int64_t> offsets,
                          ArrayRef<int64_t> shape) {
  for (auto &[known, piece] : pieces[value])
    if (ArrayRef<int64_t>(known) == offsets)
      return piece;
  Operation *op = value.getDefiningOp();
  auto whole = cast<RankedTensorType>(value.getType());
  auto type =
      RankedTensorType::get(shape, whole.getElementType(), partLayout(getLayout(whole), shape));
  auto remember = [&](Value piece) {
    pieces[value].push_back({SmallVector<int64_t>(offsets), piece});
    return piece;
  };
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op); constant && canBeCut(op)) {
    auto splat = cast<SplatElementsAttr>(constant.getValue()).resizeSplat(type);
    return remember(arith::ConstantOp::create(builder, op->getLoc(), type, splat));
  }
  if (!op || !chain.contains(op))
    return remember(extract(builder, value, offsets, shape));
  if (auto load = dyn_cast<PrivateLoadOp>(op))
    return remember(PrivateLoadOp::create(builder, op->getLoc(), type, load.getSource(),
                                          load.getStage(), builder.getDenseI64ArrayAttr(offsets)));
  SmallVector<Value> operands(op->getOperands());
  if (auto load = dyn_cast<gpu::LoadOp>(op)) {
    auto cut = [&](OperandRange values, ArrayAttr dims) {
      for (auto [i, part] : llvm::enumerate(values))
        operands[values.getBeginOperandIndex() + i] = pieceAlong(
            builder, part, cast<DenseI64ArrayAttr>(dims[i]).asArrayRef(), offsets, shape);
    };
    cut(load.getIndices(), load.getIndexDims());
    cut(load.getMasks(), load.getMaskDims());
  } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    operands[0] = pieceAlong(builder, operands[0], broadcast.getDims(), offsets, shape);
  } else {
    if (auto select = dyn_cast<SelectAtOp>(op)) {
      Value first = arith::ConstantIndexOp::create(builder, op->getLoc(), offsets.front());
      operands[0] = arith::SubIOp::create(builder, op->getLoc(), select.getIndex(), first);
    }
    for (Value &operand : operands)
      if (isTile(operand))
        operand = pieceOf(builder, operand, offsets, shape);
  }
  Operation *clone = builder.clone(*op);
  clone->setOperands(operands);
  clone->getResult(0).setType(type);
  keepSettled(clone, getLayout(whole), offsets);
  return remember(clone->getResult(0));
}

void TilePieces::storePiece(OpBuilder &builder, StoreOp store, Value piece,
                            ArrayRef<int64_t> offsets) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(piece.getType()).getShape();
  SmallVector<Value> operands(store->getOperands());
  operands[store.getValueMutable().getOperandNumber()] = piece;
  auto cut = [&](OperandRange values, ArrayAttr dims) {
    for (auto [i, part] : llvm::enumerate(values))
      operands[values.getBeginOperandIndex() + i] =
          pieceAlong(builder, part, cast<DenseI64ArrayAttr>(dims[i]).asArrayRef(), offsets, shape);
  };
  cut(store.getIndices(), store.getIndexDims());
  cut(store.getMasks(), store.getMaskDims());
  builder.clone(*store)->setOperands(operands);
}
