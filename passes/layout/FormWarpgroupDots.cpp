//===- FormWarpgroupDots.cpp - wgmma on tiles that TMA loads --------------===//
//
// On a GPU with `wgmma`, this pass gives matrix products to warpgroups, and the loads of their
// operands to TMA.
//
// 1. A product qualifies if it stands in no branch, and `wgmma` has its types. It divides into 64
//    rows and up to 256 columns a warpgroup, and k is a multiple of 32 bytes. Its operands must be
//    TMA boxes (BulkBox.h) that only such products read. The left operand may also be in registers,
//    computed from another product or element by element from loads of boxes. All products of a
//    kernel must qualify, because they share layouts.
// 2. Each load becomes a TMA load to shared memory, once for all products that read it. A tile that
//    goes through registers is read from there as late as possible, and whatever else its elements
//    are computed from is loaded before. The tile's order in shared memory decides which operand is
//    transposed: 16-bit types go either way, others need k to be contiguous. Gathered rows take a
//    TMA load for each group of rows. In a cluster, blocks that want the same tile share it by
//    multicast.
// 3. Operands that were extended from 8-bit floats are multiplied as 8-bit floats. Threads add up
//    the results of the tiles in f32, because the hardware keeps fewer bits. If the sum is a single
//    tile, the hardware's sum is the result.
// 4. The wait for a product follows the product; tk-overlap-products moves it. Of consecutive
//    products that threads add up, only the last is waited for.
// 5. Tensor maps become arguments of the launch.
// 6. A left operand that is computed from 8-bit elements stays with `mma.sync` if the product has
//    up to 16 columns. A thread of a warpgroup would read two bytes at a time, because it holds
//    pairs of neighbours along k. For `mma.sync`, both operands are read into registers, and the
//    order of k is free (DotPlan.cpp), so that a thread reads 16 bytes.
//
//   %x = tkgpu.load %a[%i, %k] ...           tkgpu.bulk_copy %sx, %a_map[%i0, %k0]
//   %y = tkgpu.load %b[%k, %j] ...       →   tkgpu.bulk_copy %sy, %b_map[%k0, %j0]
//   %d = tkgpu.dot %x, %y, %acc              %p = tkgpu.warpgroup_dot %sx, %sy, %acc
//                                            %d = tkgpu.warpgroup_wait %p pending 0
//
// A tile that one product takes as it is and another one transposed is loaded once for each. A note
// on the kernel says why a product does not use `wgmma`.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/Patterns.h"
#include "passes/analysis/Notes.h"
#include "passes/layout/MemoryAccess.h"
#include "passes/layout/PlaceQuotients.h"
#include "passes/layout/StagedOperands.h"
#include "passes/layout/TransposedLoads.h"
#include "passes/layout/WarpgroupOperands.h"
#include "passes/machine/Machine.h"
#include "passes/machine/limits/Layouts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_FORMWARPGROUPDOTS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::form_warpgroup_dots;

static RankedTensorType tileOf(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {

class WarpgroupForming {
public:
  WarpgroupForming(FuncOp function, LaunchArguments arguments)
      : function(function), arguments(arguments), builder(function.getContext()),
        operands(this->arguments), staging(function, this->arguments, operands) {}

  unsigned run();

private:
  bool decide(DotOp dot);
  bool decline(DotOp dot, const Twine &why);
  bool isStagedForAll(DotOp dot);
  bool readsPairsOfBytes(DotOp dot);
  void rewrite(DotOp dot);

  FuncOp function;
  LaunchArguments arguments;
  OpBuilder builder;
  WarpgroupOperands operands;
  StagedOperands staging;
  llvm::SetVector<Operation *> formed;
};

} // namespace

bool WarpgroupForming::decline(DotOp dot, const Twine &why) {
  noteAt(dot.getLoc(), arguments.getLaunch(), "tk-form-warpgroup-dots", Verdict::Declined,
         "the contraction over tiles of " + Twine(tileOf(dot.getAcc()).getDimSize(0)) + " x " +
             Twine(tileOf(dot.getAcc()).getDimSize(1)) + " does not use wgmma: " + why);
  return false;
}

/// Into how many parts warpgroups divide an accumulator's columns.
static int64_t partsOfColumns(LayoutAttr accumulator) {
  return int64_t(1) << llvm::popcount(axisBits(accumulator, 1).warps);
}

bool WarpgroupForming::decide(DotOp dot) {
  RankedTensorType acc = tileOf(dot.getAcc());
  int64_t depth = tileOf(dot.getA()).getDimSize(1);
  for (Operation *parent = dot->getParentOp(); parent != function; parent = parent->getParentOp())
    if (!isa<scf::ForOp>(parent))
      return decline(dot, "it is not computed in all cases");
  if (dot.hasTerm() || !haveWarpgroupProduct(dot))
    return decline(dot, "wgmma has no form for these types");
  LayoutAttr layout = warpgroupAccumulatorLayout(dot.getContext(), acc.getDimSize(0),
                                                 acc.getDimSize(1), function.getNumWarps());
  if (!layout || acc.getDimSize(1) > mostColumnsOfWarpgroup * partsOfColumns(layout))
    return decline(dot, "it does not divide into rows of 64 and up to 256 columns a warpgroup");
  if (depth * bytesOfElement(tileOf(getWarpgroupA(dot)).getElementType()) % 32 != 0)
    return decline(dot, "k is not a multiple of 32 bytes");
  std::string why;
  return operands.read(dot, why) || decline(dot, why);
}

/// Are the product's operands used by products of warpgroups alone?
bool WarpgroupForming::isStagedForAll(DotOp dot) {
  auto isMultiplied = [&](Operation *user) { return formed.contains(user); };
  for (Value operand : {getWarpgroupA(dot), getWarpgroupB(dot)}) {
    if (!operands.boxes.contains(operand))
      continue; // computed
    if (operands.throughRegisters.contains(operand.getDefiningOp<gpu::LoadOp>())) {
      if (operand == getWarpgroupA(dot))
        continue;
      return decline(dot, "the right operand goes through registers elsewhere");
    }
    for (Operation *user : operand.getUsers())
      if (!isMultiplied(user) &&
          !(isa<arith::ExtFOp>(user) && llvm::all_of(user->getUsers(), isMultiplied)))
        return decline(dot, "an operand is used by other operations too");
  }
  return true;
}

/// Would the threads of warpgroups read the left operand in pairs of bytes, where those of mma.sync
/// can read 16 bytes of both operands?
bool WarpgroupForming::readsPairsOfBytes(DotOp dot) {
  auto liesAlong = [&](Value operand, unsigned kAxis) {
    return operands.boxes.find(operand)->second.shared.getAxisOrder().front() == kAxis;
  };
  RankedTensorType a = tileOf(dot.getA()), b = tileOf(dot.getB());
  if (function.getCluster() > 1 || b.getDimSize(1) > kFewColumns || a.getDimSize(1) < kLanesBytes ||
      bytesOfElement(b.getElementType()) != 2 || !dot.getB().getDefiningOp<gpu::LoadOp>() ||
      !liesAlong(dot.getB(), 0))
    return false;
  bool hasBytes = false;
  for (gpu::LoadOp load : operands.throughRegisters) {
    if (!liesAlong(load.getResult(), 1) ||
        operands.boxes.find(load.getResult())->second.shared.getShape() !=
            tileOf(load.getResult()).getShape())
      return false;
    hasBytes |= bytesOfElement(tileOf(load.getResult()).getElementType()) == 1;
  }
  return hasBytes;
}

/// How the hardware may sum: what it sums of one tile of 8-bit floats threads would add to zero.
static Precision precisionOf(DotOp dot) {
  bool isPart = getWarpgroupA(dot) != dot.getA() && getWarpgroupB(dot) != dot.getB();
  return isPart && matchPattern(dot.getAcc(), m_AnyZeroFloat()) ? Precision::Fast
                                                                : dot.getPrecision();
}

/// Of products that threads add up, the pairs of parts of one step are summed before: the wait for
/// the one that `dot` follows, which it makes needless.
static WarpgroupWaitOp endOfChained(DotOp dot) {
  auto wait = dot.getAcc().getDefiningOp<WarpgroupWaitOp>();
  if (dot.getPrecision() != Precision::Blocked || !wait || wait->getNumOperands() != 1 ||
      wait->getBlock() != dot->getBlock() || !dot.getAcc().hasOneUse())
    return {};
  auto before = wait->getOperand(0).getDefiningOp<WarpgroupDotOp>();
  return before && before.getPrecision() == Precision::Blocked ? wait : WarpgroupWaitOp();
}

void WarpgroupForming::rewrite(DotOp dot) {
  Location loc = dot.getLoc();
  Value a = getWarpgroupA(dot);
  if (operands.boxes.contains(a))
    a = staging.stage(a, /*isMultiplied=*/true);
  Value b = staging.stage(getWarpgroupB(dot), /*isMultiplied=*/true);
  builder.setInsertionPoint(dot);
  Value acc = dot.getAcc();
  WarpgroupWaitOp chained = endOfChained(dot);
  if (chained)
    acc = chained->getOperand(0);
  Value product = WarpgroupDotOp::create(builder, loc, dot.getType(), a, b, acc,
                                         /*accumulate=*/Value(), precisionOf(dot));
  Value done = WarpgroupWaitOp::create(builder, loc, product, 0).getResult(0);
  noteAt(loc, arguments.getLaunch(), "tk-form-warpgroup-dots", Verdict::Derived,
         "the contraction over tiles of " + Twine(tileOf(dot.getAcc()).getDimSize(0)) + " x " +
             Twine(tileOf(dot.getAcc()).getDimSize(1)) + " uses wgmma");
  SmallVector<Operation *> extensions = {dot.getA().getDefiningOp(), dot.getB().getDefiningOp()};
  dot.replaceAllUsesWith(done);
  dot.erase();
  if (chained)
    chained.erase();
  for (Operation *op : extensions)
    if (isa_and_nonnull<arith::ExtFOp>(op) && op->use_empty())
      op->erase();
}

/// Moves `load` before `place`, in its block, if what it needs is there: what is copied together is
/// waited for together.
static void moveUp(Operation *load, Operation *place) {
  auto isAhead = [&](Value operand) {
    Operation *op = operand.getDefiningOp();
    return !op || op->getBlock() != place->getBlock() || op->isBeforeInBlock(place);
  };
  if (load->getBlock() == place->getBlock() && place->isBeforeInBlock(load) &&
      llvm::all_of(load->getOperands(), isAhead))
    load->moveBefore(place);
}

unsigned WarpgroupForming::run() {
  SmallVector<DotOp> dots;
  function.walk([&](DotOp dot) { dots.push_back(dot); });
  bool all = true;
  for (DotOp dot : dots) {
    all &= decide(dot);
    formed.insert(dot);
    staging.areParts |= dot.getPrecision() == Precision::Blocked;
  }
  // Accumulators and what is computed between products share layouts: all products or none.
  if (!all || !llvm::all_of(dots, [&](DotOp dot) { return isStagedForAll(dot); }))
    return 0;
  operands.dividePlaces();
  bool byWarps =
      !dots.empty() && llvm::all_of(dots, [&](DotOp dot) { return readsPairsOfBytes(dot); });
  // Eight lanes read of two rows, whose panels lie side by side in the banks. With rows of 128
  // bytes both would meet in the same half of them.
  if (byWarps)
    for (gpu::LoadOp load : operands.throughRegisters)
      if (bytesOfElement(tileOf(load.getResult()).getElementType()) == 1)
        operands.boxes.find(load.getResult())->second.cutRows(kLanesBytes);
  // The right operands, each with the first product that takes it.
  llvm::MapVector<Operation *, DotOp> right;
  if (byWarps)
    for (DotOp dot : dots) {
      moveUp(dot.getB().getDefiningOp(), operands.throughRegisters.front());
      right.insert({dot.getB().getDefiningOp(), dot});
    }
  SmallVector<LocalLoadOp> left;
  for (gpu::LoadOp load : operands.throughRegisters)
    left.push_back(staging.readLate(load));
  // Right behind the left one: elements are computed between the products that take them.
  if (byWarps) {
    for (DotOp dot : dots)
      decline(dot, "mma.sync reads 16 bytes of both operands at once, wgmma 2");
    for (auto [load, dot] : right) {
      Operation *copied = load->getPrevNode();
      LocalLoadOp read = staging.readLate(cast<gpu::LoadOp>(load)), last;
      for (LocalLoadOp other : left)
        if (other->getBlock() == dot->getBlock() && other->isBeforeInBlock(dot) &&
            (!last || last->isBeforeInBlock(other)))
          last = other;
      // Not before it is copied, where the load stood.
      if (last && (!copied || copied->isBeforeInBlock(last)))
        read->moveAfter(last);
    }
  } else {
    for (DotOp dot : dots)
      rewrite(dot);
  }
  staging.eraseLoads();
  if (llvm::any_of(operands.boxes, [](auto &entry) { return entry.second.places.has_value(); }))
    multiplyByReciprocals(function, arguments);
  return byWarps ? 0 : dots.size();
}

namespace {

struct FormWarpgroupDots : tk::impl::FormWarpgroupDotsBase<FormWarpgroupDots> {
  using FormWarpgroupDotsBase::FormWarpgroupDotsBase;

  void runOnOperation() override {
    NamedPatterns patterns(getOperation(), getArgument(), disable, only);
    if (failed(patterns.verify()))
      return signalPassFailure();
    auto target = getOperation()->getAttrOfType<TargetAttr>(targetAttrName);
    if (!hasFeature(target, Feature::WarpgroupProducts))
      return;
    SmallVector<std::pair<FuncOp, LaunchArguments>> functions;
    for (FuncOp function : getOperation().getOps<FuncOp>())
      if (std::optional<LaunchArguments> arguments = LaunchArguments::of(function))
        functions.emplace_back(function, *arguments);
    SmallVector<SmallVector<TransposedCopy>> copies(functions.size());
    patterns.run("transposed-loads", [&] {
      for (auto [entry, ofFunction] : llvm::zip_equal(functions, copies)) {
        ofFunction = separateTransposedLoads(entry.first);
        foldTransposedLoads(entry.first);
      }
    });
    patterns.run("contractions", [&] {
      for (auto [entry, ofFunction] : llvm::zip_equal(functions, copies)) {
        const unsigned formed = WarpgroupForming(entry.first, entry.second).run();
        if (formed == 0)
          joinTransposedLoads(ofFunction);
        numFormed += formed;
      }
    });
  }
};

} // namespace
