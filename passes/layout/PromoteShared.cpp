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
#include "passes/layout/SharedPromotion.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

#include <vector>

namespace tk {
#define GEN_PASS_DEF_PROMOTESHARED
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

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
