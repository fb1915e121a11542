//===- PromoteShared.cpp - operands and conversions in shared memory ------===//
//
// Threads read the operands of a product several times, in another layout than global memory is
// read in. This pass brings operands, and tiles that change their layout, through shared memory.
//
// 1. A load that only products read as an operand goes from global to shared memory: by `cp.async`
//    if an access has at least 4 bytes, else through registers. The tile is swizzled, so that
//    neither copies nor reads meet bank conflicts. It is not swizzled if both go along its rows.
// 2. Any other conversion that moves elements between threads becomes a store to shared scratch and
//    a load from it.
// 3. A product with operands in shared memory is cut along k into slices. The operands of a slice
//    are read one slice ahead: by `ldmatrix` for the matrix unit, in 16-byte vectors for FMA. An
//    operand in registers, such as softmax numerators, is cut by `tkgpu.extract`. For FMA, the pass
//    writes out as many slices as give a thread about two thousand instructions, and a loop goes
//    through the rest of k.
// 4. A tile that TMA loads and that goes through registers is read likewise.
//
// The waits and barriers come later (tk-plan-shared-memory).
//
//   %x = tkgpu.load %a[%i, %k] : #coalesced      tkgpu.copy_async %s, %a[%i, %k] layout #coalesced
//   %y = tkgpu.convert_layout %x : #operand   →  %y0 = tkgpu.local_load %s {offsets = [0, 0]}
//   %d = tkgpu.dot %y, ...                       %d0 = tkgpu.dot %y0, ...
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/layout/MemoryAccess.h"
#include "passes/layout/SharedTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"

#include <vector>

namespace tk {
#define GEN_PASS_DEF_PROMOTESHARED
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// What accumulators and operands that stay may take of a thread's 1020 bytes of registers.
static constexpr int64_t kRegisterBytes = 768;
/// What accumulators and two slices of FMA operands may take: all but those of addresses.
static constexpr int64_t kSlicedBytes = 960;
/// FMA instructions of a thread that are written out: compiling takes time for each, and as many
/// hide what a loop costs.
static constexpr int64_t kWrittenOut = 2048;

namespace {

/// An operand of a product that lies in shared memory.
struct SharedOperand {
  ConvertLayoutOp convert; ///< what it stood for: the whole operand, as the product wants it
  Value shared;
  unsigned kAxis = 0;
};

/// How a product takes an operand.
struct OperandPlace {
  unsigned kAxis = 0;
  bool isPlain = false; ///< not swizzled where it lies across k
};

/// What a thread's slices of a product are written out for: so much of k from `from` on, or from
/// the start where that is null.
struct Span {
  Value from;
  int64_t size = 0;
};

class SharedPromotion {
public:
  explicit SharedPromotion(FuncOp function)
      : function(function), builder(function.getContext()), vectorBytes(vectorBytesOf(function)) {}

  /// The patterns, in their order, and what is left behind them.
  void chooseAccesses();
  void promoteAll();
  void sliceDots();
  void finish();
  unsigned numCopies = 0;
  unsigned numScratch = 0;

private:
  void promote(ConvertLayoutOp convert);
  Value stageLoad(gpu::LoadOp load, const OperandPlace &place);
  SharedType typeFor(RankedTensorType tile, int64_t axis, const OperandPlace &place);
  Value storeToShared(Value tile, SharedType type);
  Value allocate(Location loc, SharedType type);
  void sliceDot(DotOp dot);
  Value sliceSpan(DotOp dot, Value acc, int64_t size, Span span);
  Value operandSlice(DotOp dot, Value operand, unsigned kAxis, int64_t k, int64_t size, Span span);
  Value loadOperand(Location loc, const SharedOperand &operand, RankedTensorType part,
                    ArrayRef<int64_t> offsets, Span span = {});
  int64_t sliceSize(DotOp dot);
  int64_t spanSize(DotOp dot);
  bool runsAlongK(Value operand, int64_t kAxis);
  int64_t vectorFor(SharedType type, LayoutAttr layout) {
    int64_t limit = vectorBytes / bytesOfElement(type.getElementType());
    return std::min(sharedVector(type, layout), std::max<int64_t>(limit, 1));
  }
  bool isReloaded(DotOp dot, Value operand);
  void chooseAccess(LocalLoadOp load);

  FuncOp function;
  OpBuilder builder;
  int64_t vectorBytes;
  llvm::MapVector<Operation *, Value> staged;           ///< loads that went to shared memory
  llvm::MapVector<Value, SharedOperand> sharedOperands; ///< conversions whose source is there
  DenseMap<Block *, int64_t> accumulators; ///< bytes a thread of the products' results in a block
};

} // namespace

static bool movesElements(ConvertLayoutOp convert) {
  Conversion kind =
      classifyConversion(getLayout(convert.getSource().getType()), getLayout(convert.getType()));
  return kind == Conversion::Shared || kind == Conversion::Shuffle;
}

static bool feedsOnlyDots(ConvertLayoutOp convert) {
  return !convert->use_empty() && llvm::all_of(convert->getUses(), [](OpOperand &use) {
    return isa<DotOp>(use.getOwner()) && use.getOperandNumber() < 2;
  });
}

/// Are the words that ldmatrix hands out, of four bytes along `axis`, those of `layout`?
static bool hasMatrixWords(LayoutAttr layout, int64_t axis, int64_t bytes) {
  LayoutBit lane = layout.getLaneBits().front();
  return lane.axis == axis && lane.step * bytes == 4 && layout.getVectorWidth(axis) * bytes >= 4;
}

/// Do the fragments of mma.sync make up `layout`? All of FMA's operand bits along k are registers.
static bool isFragment(LayoutAttr layout, unsigned kAxis) {
  return axisBits(layout, kAxis).lanes != 0;
}

Value SharedPromotion::allocate(Location loc, SharedType type) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(function.getBlock());
  return AllocSharedOp::create(builder, loc, type, nullptr);
}

Value SharedPromotion::storeToShared(Value tile, SharedType type) {
  OpBuilder::InsertionGuard guard(builder);
  Value shared = allocate(tile.getLoc(), type);
  builder.setInsertionPointAfterValue(tile);
  LocalStoreOp::create(builder, tile.getLoc(), tile, shared, /*matrix=*/false,
                       /*transposed=*/false, vectorFor(type, getLayout(tile.getType())));
  return shared;
}

/// Can masked and unmasked elements of `load` be copied asynchronously?
static bool canCopyAsync(gpu::LoadOp load) {
  auto tile = cast<RankedTensorType>(load.getType());
  if (load.getBuffer().getType().getElementType() != tile.getElementType())
    return false;
  if (int64_t(load.getVector()) * bytesOfElement(tile.getElementType()) < 4)
    return false;
  Value other = load.getOther();
  return load.getMasks().empty() || !other || matchPattern(other, m_AnyZeroFloat()) ||
         matchPattern(other, m_Zero());
}

SharedType SharedPromotion::typeFor(RankedTensorType tile, int64_t axis,
                                    const OperandPlace &place) {
  SharedType swizzled = swizzledTile(tile, tile.getElementType(), axis);
  if (!place.isPlain || axis == place.kAxis)
    return swizzled;
  return SharedType::get(tile.getContext(), tile.getShape(), tile.getElementType(),
                         swizzled.getAxisOrder(), /*padding=*/0, 1, 1, 1);
}

Value SharedPromotion::stageLoad(gpu::LoadOp load, const OperandPlace &place) {
  Value &shared = staged[load];
  if (shared)
    return shared;
  auto tile = cast<RankedTensorType>(load.getType());
  LayoutAttr layout = getLayout(tile);
  // A copy of single elements lands as the lanes walk; registers may be stored in another order.
  bool isAsync = canCopyAsync(load);
  int64_t axis = isAsync && load.getVector() == 1 ? laneAxisOf(layout) : contiguousAxisOf(layout);
  SharedType type = typeFor(tile, axis, place);
  if (!isAsync)
    return shared = storeToShared(load.getResult(), type);
  shared = allocate(load.getLoc(), type);
  builder.setInsertionPoint(load);
  CopyAsyncOp::create(builder, load.getLoc(), shared, load.getBuffer(), load.getIndices(),
                      load.getStrides(), load.getMasks(), load.getIndexDims(), load.getMaskDims(),
                      layout, load.getVector());
  ++numCopies;
  return shared;
}

/// Does `operand` come from global memory with neighbours along k?
static bool comesAlongK(Value operand, int64_t kAxis) {
  auto convert = operand.getDefiningOp<ConvertLayoutOp>();
  return convert && contiguousAxisOf(getLayout(convert.getSource().getType())) == kAxis;
}

/// Does a thread have several of the chunks that a swizzle exchanges with each other along `axis`?
static bool hasSwizzledChunks(LayoutAttr layout, int64_t axis, int64_t bytes) {
  return llvm::any_of(layout.getRegisterBits(), [&](LayoutBit bit) {
    return !bit.isReplication() && bit.axis == axis && bit.step * bytes >= 16 &&
           bit.step * bytes < 128;
  });
}

/// FMA reads an operand that is contiguous across k along its rows, as copies write it: nothing has
/// to be swizzled, and what slices of k read differs in constants alone. Only where all slices are
/// written out beside an operand along k is it faster if both are flipped, and threads as a whole.
static bool isReadAlongRows(DotOp dot, LayoutAttr layout, unsigned kAxis) {
  auto a = cast<RankedTensorType>(dot.getA().getType());
  int64_t outputs = getLayout(dot.getType()).getNumRegisters();
  return a.getDimSize(1) * outputs > kWrittenOut ||
         !(comesAlongK(dot.getA(), 1) || comesAlongK(dot.getB(), 0)) ||
         hasSwizzledChunks(layout, 1 - kAxis, bytesOfElement(a.getElementType()));
}

void SharedPromotion::promote(ConvertLayoutOp convert) {
  Value source = convert.getSource();
  auto tile = cast<RankedTensorType>(source.getType());
  LayoutAttr from = getLayout(tile), to = getLayout(convert.getType());
  if (feedsOnlyDots(convert)) {
    auto load = source.getDefiningOp<gpu::LoadOp>();
    bool onlyDots = load && llvm::all_of(load->getUsers(), [](Operation *user) {
                      auto other = dyn_cast<ConvertLayoutOp>(user);
                      return isa<CopyAsyncOp>(user) || (other && feedsOnlyDots(other));
                    });
    OperandPlace place;
    place.kAxis = convert->use_begin()->getOperandNumber() == 0 ? 1 : 0;
    place.isPlain = !isFragment(to, place.kAxis) &&
                    isReadAlongRows(cast<DotOp>(*convert->user_begin()), to, place.kAxis);
    Value shared = onlyDots ? stageLoad(load, place)
                            : storeToShared(source, typeFor(tile, contiguousAxisOf(from), place));
    sharedOperands[convert.getResult()] = {convert, shared, place.kAxis};
    return;
  }
  SharedType type = scratchTile(tile, from, to);
  Value shared = storeToShared(source, type);
  builder.setInsertionPoint(convert);
  Value loaded =
      LocalLoadOp::create(builder, convert.getLoc(), convert.getType(), shared, nullptr, nullptr,
                          nullptr, builder.getI64IntegerAttr(vectorFor(type, to)));
  convert.replaceAllUsesWith(loaded);
  convert.erase();
  ++numScratch;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

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

void SharedPromotion::chooseAccesses() {
  function.walk([&](LocalLoadOp load) { chooseAccess(load); });
}

void SharedPromotion::promoteAll() {
  SmallVector<ConvertLayoutOp> converts;
  function.walk([&](ConvertLayoutOp convert) {
    if (movesElements(convert))
      converts.push_back(convert);
  });
  for (ConvertLayoutOp convert : converts)
    promote(convert);
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

void SharedPromotion::finish() {
  // What is left are operands of products in an inner loop: read once, where they were converted.
  for (auto &[value, operand] : sharedOperands) {
    ConvertLayoutOp convert = operand.convert;
    if (!convert->use_empty()) {
      builder.setInsertionPoint(convert);
      auto whole = cast<RankedTensorType>(convert.getType());
      convert.replaceAllUsesWith(loadOperand(convert.getLoc(), operand, whole, {0, 0}));
    }
    convert.erase();
  }
  for (auto [load, shared] : staged)
    if (load->use_empty())
      load->erase();
}

namespace {

struct PromoteShared : tk::impl::PromoteSharedBase<PromoteShared> {
  using Base::Base;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    std::vector<SharedPromotion> promotions;
    for (FuncOp function : getOperation().getOps<FuncOp>())
      promotions.emplace_back(function);
    auto forAll = [&](StringRef name, void (SharedPromotion::*rewrite)()) {
      patterns.run(name, [&] {
        for (SharedPromotion &promotion : promotions)
          (promotion.*rewrite)();
      });
    };
    forAll("tma-tiles", &SharedPromotion::chooseAccesses);
    forAll("operands", &SharedPromotion::promoteAll);
    forAll("slices", &SharedPromotion::sliceDots);
    for (SharedPromotion &promotion : promotions) {
      promotion.finish();
      numCopies += promotion.numCopies;
      numScratch += promotion.numScratch;
    }
  }
};

} // namespace
