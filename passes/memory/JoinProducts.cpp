//===- JoinProducts.cpp - products of one left operand become one ---------===//
//
// Two products of warpgroups with the same left operand read it from shared memory twice, and each
// reads for fewer columns than the hardware takes at a time. In a loop that accumulates both from
// zero:
// 1. Take products of one block with the same tile as left operand, whose right operands are tiles
//    of one type, each brought by one copy and used by nothing else, and together not wider than
//    the hardware's products.
// 2. The right operands become parts of one tile, side by side, that the two copies fill.
// 3. One product accumulates to a tile that is as wide; after the loop its halves are extracted.
//
//   for %g = 0, %u = 0 {                           for %s = 0 {
//     bulk_copy %x, ...                              bulk_copy %x, ...
//     bulk_copy %a, ...; bulk_copy %b, ...    →      bulk_copy %ab, ... {part = [1, 0, 128]}
//     %p = warpgroup_dot %x, %a, %g                  bulk_copy %ab, ... {part = [1, 128, 128]}
//     %q = warpgroup_dot %x, %b, %u                  %p = warpgroup_dot %x, %ab, %s
//   }                                              }
//                                                  extract %p at [0, 0]; extract %p at [0, 128]
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"

#include "dialects/tkgpu/TkGpuLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_JOINPRODUCTS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

/// The largest n of one wgmma.
static constexpr int64_t kWidestProduct = 256;
/// Bytes of a panel's row that the hardware permutes in the widest way.
static constexpr int64_t kPanelBytes = 128;

namespace {

/// A product that a loop accumulates from zero, and what belongs to it alone.
struct Accumulation {
  WarpgroupDotOp dot;
  WarpgroupWaitOp wait;
  AllocSharedOp right;
  BulkCopyOp copy;
  unsigned position; ///< of the loop's values
};

} // namespace

/// The copy that fills `tile`, if that and `dot` are all its uses.
static BulkCopyOp onlyCopyFor(Value tile, WarpgroupDotOp dot) {
  BulkCopyOp copy;
  for (Operation *user : tile.getUsers()) {
    if (user == dot)
      continue;
    if (copy || !(copy = dyn_cast<BulkCopyOp>(user)))
      return {};
  }
  bool isWhole = copy && copy->getBlock() == dot->getBlock() && !copy.getMulticast() &&
                 !copy.getPart() && copy.getTarget() == tile;
  return isWhole ? copy : BulkCopyOp();
}

static std::optional<Accumulation> readAccumulation(scf::ForOp loop, WarpgroupDotOp dot) {
  auto carried = dyn_cast<BlockArgument>(dot.getAcc());
  auto right = dot.getB().getDefiningOp<AllocSharedOp>();
  if (!carried || carried.getOwner() != loop.getBody() || !carried.hasOneUse() || !right ||
      dot.getAccumulate() || !dot->hasOneUse() || !isa<SharedType>(dot.getA().getType()))
    return std::nullopt;
  auto wait = dyn_cast<WarpgroupWaitOp>(*dot->user_begin());
  if (!wait || wait.getNumResults() != 1 || wait.getPending() != 0 || !wait->hasOneUse() ||
      loop.getTiedLoopYieldedValue(carried)->get() != wait.getResult(0) ||
      !matchPattern(loop.getTiedLoopInit(carried)->get(), m_AnyZeroFloat()))
    return std::nullopt;
  BulkCopyOp copy = onlyCopyFor(right, dot);
  unsigned position = carried.getArgNumber() - loop.getNumInductionVars();
  return copy ? std::optional(Accumulation{dot, wait, right, copy, position}) : std::nullopt;
}

/// A tile with the columns of two of `type`, which is a right operand; null if it cannot be told
/// apart in parts.
static SharedType joinedTile(SharedType type) {
  int64_t bytes = type.getElementType().getIntOrFloatBitWidth() / 8, columns = type.getShape()[1];
  bool isAlongColumns = type.getAxisOrder().front() == 1;
  if (type.getShape().size() != 2 || 2 * columns > kWidestProduct || columns % 8 != 0 ||
      (isAlongColumns && type.getRowLength() * bytes != kPanelBytes))
    return {};
  return SharedType::get(type.getContext(), {type.getShape()[0], 2 * columns},
                         type.getElementType(), type.getOrder(), type.getPadding(), type.getChunk(),
                         type.getPerPhase(), type.getPhases(),
                         isAlongColumns ? type.getRowLength() : type.getPanel());
}

/// The type of both accumulators side by side, if its halves have their layout.
static RankedTensorType joinedAccumulator(WarpgroupDotOp dot, int64_t warps) {
  auto type = cast<RankedTensorType>(dot.getType());
  LayoutAttr layout = warpgroupAccumulatorLayout(dot.getContext(), type.getDimSize(0),
                                                 2 * type.getDimSize(1), warps);
  if (!layout || partLayout(layout, type.getShape()) != getLayout(type))
    return {};
  return RankedTensorType::get({type.getDimSize(0), 2 * type.getDimSize(1)}, type.getElementType(),
                               layout);
}

static bool canJoin(const Accumulation &a, const Accumulation &b, int64_t warps) {
  WarpgroupDotOp x = a.dot, y = b.dot;
  return x.getA() == y.getA() && x.getB().getType() == y.getB().getType() &&
         x.getType() == y.getType() && x.getPrecision() == y.getPrecision() &&
         joinedTile(x.getB().getType()) && joinedAccumulator(x, warps);
}

/// `loop` without the values at two positions and with one more, last, that starts as `initial`.
/// Its terminator yields nothing for that yet.
static scf::ForOp replaceValues(OpBuilder &builder, scf::ForOp loop, const Accumulation &a,
                                const Accumulation &b, Value initial) {
  SmallVector<Value> initials, yielded;
  SmallVector<unsigned> kept;
  for (auto [i, value] : llvm::enumerate(loop.getInitArgs()))
    if (i != a.position && i != b.position) {
      kept.push_back(i);
      initials.push_back(value);
      yielded.push_back(loop.getYieldedValues()[i]);
    }
  initials.push_back(initial);
  builder.setInsertionPoint(loop);
  auto joined = scf::ForOp::create(builder, loop.getLoc(), loop.getLowerBound(),
                                   loop.getUpperBound(), loop.getStep(), initials);
  joined->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  Block *body = joined.getBody();
  body->getOperations().splice(body->end(), loop.getBody()->getOperations());
  loop.getInductionVar().replaceAllUsesWith(joined.getInductionVar());
  for (auto [to, from] : llvm::enumerate(kept)) {
    loop.getRegionIterArg(from).replaceAllUsesWith(joined.getRegionIterArg(to));
    loop.getResult(from).replaceAllUsesWith(joined.getResult(to));
  }
  body->getTerminator()->setOperands(yielded);
  return joined;
}

static void join(FuncOp function, scf::ForOp loop, Accumulation a, Accumulation b) {
  OpBuilder builder(loop.getContext());
  WarpgroupDotOp first = a.dot, last = b.dot;
  Location loc = first.getLoc();
  RankedTensorType type = joinedAccumulator(first, function.getNumWarps());
  auto half = cast<RankedTensorType>(first.getType());
  builder.setInsertionPointToStart(function.getBlock());
  Value tile = AllocSharedOp::create(builder, loc, joinedTile(first.getB().getType()), nullptr);

  builder.setInsertionPoint(loop);
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  scf::ForOp joined = replaceValues(builder, loop, a, b, zero);
  for (auto [copy, start] : {std::pair(a.copy, int64_t(0)), {b.copy, half.getDimSize(1)}}) {
    BulkCopyOp(copy).getTargetMutable().assign(tile);
    BulkCopyOp(copy).setPart(ArrayRef<int64_t>{1, start, half.getDimSize(1)});
  }
  builder.setInsertionPoint(last);
  Value product = WarpgroupDotOp::create(builder, loc, type, first.getA(), tile,
                                         joined.getRegionIterArgs().back(), /*accumulate=*/Value(),
                                         first.getPrecision());
  auto done = WarpgroupWaitOp::create(builder, loc, product, 0);
  Operation *yield = joined.getBody()->getTerminator();
  yield->insertOperands(yield->getNumOperands(), done.getResults());

  builder.setInsertionPointAfter(joined);
  for (auto [of, start] : {std::pair(a, int64_t(0)), {b, half.getDimSize(1)}})
    loop.getResult(of.position)
        .replaceAllUsesWith(ExtractOp::create(builder, loc, half, joined.getResults().back(),
                                              ArrayRef<int64_t>{0, start}));
  for (Operation *op :
       {a.wait.getOperation(), b.wait.getOperation(), first.getOperation(), last.getOperation(),
        a.right.getOperation(), b.right.getOperation(), loop.getOperation()})
    op->erase();
}

/// Joins two products of `loop`, if there are such.
static bool joinTwo(FuncOp function, scf::ForOp loop) {
  SmallVector<Accumulation> found;
  for (auto dot : loop.getBody()->getOps<WarpgroupDotOp>()) {
    std::optional<Accumulation> next = readAccumulation(loop, dot);
    if (!next)
      continue;
    for (const Accumulation &other : found)
      if (canJoin(other, *next, function.getNumWarps())) {
        join(function, loop, other, *next);
        return true;
      }
    found.push_back(*next);
  }
  return false;
}

namespace {

struct JoinProducts : tk::impl::JoinProductsBase<JoinProducts> {
  void runOnOperation() override {
    for (FuncOp function : getOperation().getOps<FuncOp>()) {
      bool changed = true;
      while (changed) {
        SmallVector<scf::ForOp> loops;
        function.walk([&](scf::ForOp loop) { loops.push_back(loop); });
        changed = llvm::any_of(loops, [&](scf::ForOp loop) { return joinTwo(function, loop); });
        numJoined += changed;
      }
    }
  }
};

} // namespace
