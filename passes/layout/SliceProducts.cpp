//===- SliceProducts.cpp - products that read slices of k from shared memory ===//
//
// Cuts a product with operands in shared memory along k, and reads the operands of each slice one
// slice ahead. The size of a slice follows from the instruction and from a thread's registers, and
// the slices that are written out from the length of the code.
//
//===----------------------------------------------------------------------===//
#include "passes/layout/SharedPromotion.h"
#include "passes/machine/limits/Layouts.h"

#include "dialects/tkgpu/TkGpuRepeats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::slice_products;

/// Are the words that ldmatrix hands out, of four bytes along `axis`, those of `layout`?
static bool hasMatrixWords(LayoutAttr layout, int64_t axis, int64_t bytes) {
  LayoutBit lane = layout.getLaneBits().front();
  return lane.axis == axis && lane.step * bytes == 4 && layout.getVectorWidth(axis) * bytes >= 4;
}

bool tk::isFragment(LayoutAttr layout, unsigned kAxis) {
  return axisBits(layout, kAxis).lanes != 0;
}

static int64_t bytesOfThread(Value tile) {
  return getLayout(tile.getType()).getNumRegisters() * bytesOfElement(getElementTypeOrSelf(tile));
}

bool SharedPromotion::runsAlongK(Value operand, int64_t kAxis) {
  auto it = sharedOperands.find(operand);
  return it != sharedOperands.end() &&
         cast<SharedType>(it->second.shared.getType()).getAxisOrder().front() == kAxis;
}

/// Elements of k that a slice takes: what one instruction of the matrix unit does, or for FMA a
/// 16-byte vector where one of the operands is contiguous along k. Where two of those do not fit
/// beside the accumulators it is one element: what neighbouring slices read is put together
/// later, as registers allow.
int64_t SharedPromotion::sliceSize(DotOp dot) {
  auto a = cast<RankedTensorType>(dot.getA().getType());
  int64_t k = a.getDimSize(1), bytes = bytesOfElement(a.getElementType());
  if (isFragment(getLayout(a), 1))
    return std::min<int64_t>(k, 32 / bytes);
  bool vectors = runsAlongK(dot.getA(), 1) || runsAlongK(dot.getB(), 0);
  int64_t size = std::min<int64_t>(k, vectors ? std::max<int64_t>(16 / bytes, 1) : 1);
  int64_t perTerm = (bytesOfThread(dot.getA()) + bytesOfThread(dot.getB())) / k;
  return bytesOfThread(dot.getResult()) + 2 * size * perTerm > kSlicedBytes ? 1 : size;
}

/// How much of k the slices are written out for: all of it for the matrix unit, whose instructions
/// do more, where neither operand lies along k (an H200 has 0.98 of cuBLAS then, with a loop 0.92),
/// and where a thread has the operands in registers, which have no number that is computed.
int64_t SharedPromotion::spanSize(DotOp dot) {
  auto a = cast<RankedTensorType>(dot.getA().getType());
  int64_t size = a.getDimSize(1);
  auto isRead = [&](Value operand) {
    return sharedOperands.contains(operand) && isReloaded(dot, operand);
  };
  if (isFragment(getLayout(a), 1) || !isRead(dot.getA()) || !isRead(dot.getB()) ||
      !(runsAlongK(dot.getA(), 1) || runsAlongK(dot.getB(), 0)))
    return size;
  int64_t outputs = getLayout(dot.getType()).getNumRegisters();
  while (size > sliceSize(dot) && size * outputs > kWrittenOut)
    size /= 2;
  return size;
}

Value SharedPromotion::loadOperand(Location loc, const SharedOperand &operand,
                                   RankedTensorType part, ArrayRef<int64_t> offsets, Span span) {
  auto type = cast<SharedType>(operand.shared.getType());
  LayoutAttr layout = getLayout(part);
  int64_t axis = type.getAxisOrder().front(), bytes = bytesOfElement(part.getElementType());
  bool isTransposed = axis != operand.kAxis, matrix = false;
  if (isFragment(layout, operand.kAxis))
    matrix = isTransposed ? bytes == 2 : bytes <= 4; // words are whole in one thread
  else
    part = withLayout(part, withAxisFirst(layout, axis));
  int64_t vector = matrix ? 1 : vectorFor(type, getLayout(part));
  UnitAttr yes = builder.getUnitAttr();
  auto load =
      LocalLoadOp::create(builder, loc, part, operand.shared, builder.getDenseI64ArrayAttr(offsets),
                          matrix ? yes : nullptr, matrix && isTransposed ? yes : nullptr,
                          builder.getI64IntegerAttr(vector));
  if (span.from) {
    load.getFromMutable().assign(span.from);
    load.setAxis(operand.kAxis);
    load.setSpan(span.size);
  }
  return load;
}

/// How a tile is read that a bulk copy brings.
void SharedPromotion::chooseAccess(LocalLoadOp load) {
  if (!repeatsOf(load).empty())
    return; // its elements are read one by one
  SharedType type = load.getSource().getType();
  auto tile = cast<RankedTensorType>(load.getType());
  LayoutAttr layout = getLayout(tile);
  int64_t bytes = bytesOfElement(tile.getElementType()), axis = type.getAxisOrder().front();
  bool isTransposed = bytes == 2 && hasMatrixWords(layout, 1 - axis, bytes);
  if (hasMatrixWords(layout, axis, bytes) || isTransposed) {
    load.setMatrix(true);
    load.setTransposed(isTransposed);
  } else {
    load.setVector(vectorFor(type, layout));
  }
}

/// Is the operand read slice by slice at the product? One from outside the product's loop stays in
/// registers if it fits beside the accumulators.
bool SharedPromotion::isReloaded(DotOp dot, Value operand) {
  return operand.getParentBlock() == dot->getBlock() ||
         accumulators.lookup(dot->getBlock()) + bytesOfThread(operand) > kRegisterBytes;
}

Value SharedPromotion::operandSlice(DotOp dot, Value operand, unsigned kAxis, int64_t k,
                                    int64_t size, Span span) {
  auto whole = cast<RankedTensorType>(operand.getType());
  SmallVector<int64_t> shape(whole.getShape()), offsets(2, 0);
  shape[kAxis] = size;
  offsets[kAxis] = k;
  LayoutAttr layout = partLayout(getLayout(whole), shape);
  auto part = RankedTensorType::get(shape, whole.getElementType(), layout);
  auto it = sharedOperands.find(operand);
  if (it != sharedOperands.end() && isReloaded(dot, operand))
    return loadOperand(dot.getLoc(), it->second, part, offsets, span);
  if (size == whole.getDimSize(kAxis))
    return operand;
  return ExtractOp::create(builder, dot.getLoc(), part, operand, offsets);
}

/// The operands of slice k + 1 are read before the product of slice k, which hides the latency of
/// shared memory: what is emitted keeps this order.
Value SharedPromotion::sliceSpan(DotOp dot, Value acc, int64_t size, Span span) {
  auto slicesAt = [&](int64_t k) {
    return std::pair(operandSlice(dot, dot.getA(), 1, k, size, span),
                     operandSlice(dot, dot.getB(), 0, k, size, span));
  };
  auto next = slicesAt(0);
  for (int64_t k = 0; k < span.size; k += size) {
    auto [a, b] = next;
    if (k + size < span.size)
      next = slicesAt(k + size);
    acc = dot.ofParts(builder, a, b, acc);
  }
  return acc;
}

void SharedPromotion::sliceDot(DotOp dot) {
  int64_t size = sliceSize(dot), span = spanSize(dot),
          extent = cast<RankedTensorType>(dot.getA().getType()).getDimSize(1);
  Location loc = dot.getLoc();
  builder.setInsertionPoint(dot);
  Value result;
  if (span == extent) {
    result = sliceSpan(dot, dot.getAcc(), size, {nullptr, span});
  } else {
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(builder, loc, value);
    };
    auto loop = scf::ForOp::create(builder, loc, constant(0), constant(extent), constant(span),
                                   dot.getAcc());
    builder.setInsertionPointToStart(loop.getBody());
    Value sum = sliceSpan(dot, loop.getRegionIterArg(0), size, {loop.getInductionVar(), span});
    scf::YieldOp::create(builder, loc, sum);
    result = loop.getResult(0);
  }
  dot.replaceAllUsesWith(result);
  dot.erase();
}

void SharedPromotion::sliceDots() {
  SmallVector<DotOp> dots;
  function.walk([&](DotOp dot) {
    dots.push_back(dot);
    accumulators[dot->getBlock()] += bytesOfThread(dot.getResult());
  });
  for (DotOp dot : dots)
    if (sharedOperands.contains(dot.getA()) || sharedOperands.contains(dot.getB()))
      sliceDot(dot);
}
