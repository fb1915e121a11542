//===- Tile.cpp - from compute ops to kernels over tiles ------------------===//
//
// Every `tk.compute` with a schedule becomes a launch of a kernel over tiles.
//
// 1. Each index of the compute op is cut into tiles of the schedule's size, and a block computes
//    one tile of each. An index that one tile holds entirely has no grid axis.
// 2. The scalar body is rebuilt over tiles (BlockProgram.h). Reductions become loops over tiles.
// 3. An extent that its tile does not divide is masked, unless facts about sizes prove that it
//    does. The last tile of a product of warpgroups may begin earlier instead, and compute some
//    elements of the tile before it again: rows of a TMA load that lie behind the tensor take
//    several times as long as others.
// 4. The pairs of bf16 parts that a step of an f32 sum multiplies are written out.
// 5. Beside a kernel with masks that differ between rows of a tile stands how one element of its
//    result is computed alone (ResultElements.h).
// 6. The launch replaces the compute op. Its grid is arithmetic on the compute op's extents.
//
// With `#tkgpu.schedule<tile = [128, 128], reduce = [32]>`:
//
//   %c = tk.compute ["i", "j"] in (%M, %N) { sum_k a[i, k] * b[k, j] }
//     →
//   %c = tkgpu.launch @gemm_c grid(%tiles, %one, %one) args(%a, %b, ...) shapes(%M, %N)
//   tkgpu.func @gemm_c { scf.for %k = 0 to %K step 32 { load a; load b; tkgpu.dot } store }
//
// A compute op without a schedule is an error, as is a tile with more than 512 elements a thread.
// With option `naive`, reductions take one element at a time, and each thread reads its operands
// itself.
//
//===----------------------------------------------------------------------===//
#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/PartPairs.h"
#include "passes/analysis/Refusal.h"
#include "passes/machine/Machine.h"
#include "passes/plan/ScheduleBlock.h"
#include "passes/plan/ScheduleLimits.h"
#include "passes/tensor/split/SignificandParts.h"
#include "passes/tiling/BlockProgram.h"
#include "passes/tiling/ResultElements.h"

#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "llvm/ADT/SetVector.h"

namespace tk {
#define GEN_PASS_DEF_TILE
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

namespace {

/// The smallest tiles: each thread an element, each reduction one term at a time. More warps than a
/// block has are those of a cluster. Two products may have rows of two indices, and a tile that has
/// both then holds more than its threads do: the outer one is cut.
gpu::ScheduleAttr withoutReductionTiles(gpu::ScheduleAttr schedule) {
  SmallVector<int64_t> ones(schedule.getReduce().size(), 1), tile(schedule.getTile());
  int64_t elements = 1;
  for (int64_t size : tile)
    elements *= size;
  const int64_t most = mostOutputsOfThread * 32 * std::max<int64_t>(schedule.getWarps(), 1);
  for (int64_t &size : tile)
    while (size > 1 && elements > most) {
      size /= 2;
      elements /= 2;
    }
  return gpu::ScheduleAttr::get(schedule.getContext(), tile, ones, schedule.getLoop(),
                                schedule.getWarps(), schedule.getPerThread(), schedule.getVector(),
                                1, schedule.getGroup(), 0, schedule.getCluster(), {}, 1);
}

/// A schedule block may ask for more of a tile than threads can hold, and so may a statement with
/// many indices.
LogicalResult checkTilesFit(KernelOp kernel, gpu::FuncOp func) {
  const int64_t threads = 32 * int64_t(func.getNumWarps());
  const WalkResult walked = func.walk([&](Operation *op) {
    for (Type type : op->getResultTypes()) {
      auto tile = dyn_cast<RankedTensorType>(type);
      if (!tile || tile.getNumElements() <= mostOutputsOfThread * threads)
        continue;
      std::optional<Location> place = placeOfKey(kernel, {"tile", "coarsen"});
      if (!place) // it is planned again, with smaller tiles
        func->getParentOp()->setAttr(gpu::needsLessAttrName, func.getSymNameAttr());
      refuse(place ? *place : kernel.getLoc(), Refusal::ScheduleDoesNotFit)
          << "a tile of " << tile.getNumElements() << " terms leaves "
          << tile.getNumElements() / threads << " to each of " << threads
          << " threads, which hold at most " << mostOutputsOfThread;
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

/// The number that `value` is, computed from constants.
std::optional<int64_t> evaluate(Value value) {
  if (std::optional<int64_t> number = getConstantIndex(value))
    return number;
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<arith::AddIOp, arith::MulIOp, arith::ShRUIOp, FloorModOp>(op))
    return std::nullopt;
  std::optional<int64_t> a = evaluate(op->getOperand(0)), b = evaluate(op->getOperand(1));
  if (!a || !b || *a < 0 || *b < 0 || (isa<FloorModOp>(op) && *b == 0))
    return std::nullopt;
  return isa<arith::AddIOp>(op)   ? *a + *b
         : isa<arith::MulIOp>(op) ? *a * *b
         : isa<FloorModOp>(op)    ? *a % *b
                                  : *a >> std::min<int64_t>(*b, 62);
}

/// Writes out the pairs of parts that a step of a sum multiplies, whose numbers are then constants:
/// a part that several pairs have is loaded once. The loop over the pairs stays if there is one
/// step: it is the loop that is pipelined, and all parts together exceed shared memory.
void unrollPairs(gpu::FuncOp func) {
  llvm::SetVector<scf::ForOp> loops; // several products may share one
  func.walk([&](gpu::DotOp dot) {
    auto loop = dyn_cast<scf::ForOp>(dot->getParentOp());
    std::optional<APInt> count = loop ? loop.getStaticTripCount() : std::nullopt;
    if (dot.getPrecision() == Precision::Blocked && count && *count == countPairs &&
        loop->getParentOfType<scf::ForOp>())
      loops.insert(loop);
  });
  for (scf::ForOp loop : loops)
    (void)loopUnrollFull(loop);
  if (loops.empty())
    return;
  func.walk([&](FloorModOp part) {
    OpBuilder builder(part);
    if (std::optional<int64_t> number = evaluate(part))
      part.replaceAllUsesWith(
          arith::ConstantIndexOp::create(builder, part.getLoc(), *number).getResult());
  });
}

struct Tile : tk::impl::TileBase<Tile> {
  using TileBase::TileBase;

  LogicalResult tile(KernelOp kernel, ComputeOp compute, const PresentTerms &present) {
    auto schedule = gpu::getTiles(compute);
    if (!schedule)
      return compute.emitError("expected a #tkgpu.plan with tiles on the statement, got none: run "
                               "tk-select-schedule first");
    std::string name = kernel.getSymName().str();
    for (Attribute result : compute.getNames())
      name += "_" + identifierOf(cast<StringAttr>(result).getValue());
    std::string unique = name;
    for (unsigned n = 1; SymbolTable::lookupSymbolIn(kernel->getParentOp(), unique); ++n)
      unique = name + "_" + std::to_string(n);
    auto singles = kernel->getParentOp()->getAttrOfType<ArrayAttr>(gpu::singleTermsAttrName);
    const bool hasSingleTerms =
        naive || (singles && llvm::is_contained(singles.getAsValueRange<StringAttr>(), unique));
    if (hasSingleTerms)
      schedule = withoutReductionTiles(schedule);
    OpBuilder moduleBuilder(kernel);
    FailureOr<SmallVector<ResultElement, 0>> elements = SmallVector<ResultElement, 0>();
    if (!hasSingleTerms)
      elements = buildElements(moduleBuilder, kernel, compute, schedule, present);
    if (failed(elements))
      return failure();
    BlockProgram program(kernel, compute, schedule, present);
    for (const ResultElement &element : *elements)
      program.takeArguments(element.getTaken());
    // TMA loads have no masks of a tile's elements.
    if (elements->size() == compute.getNumResults() &&
        gpu::getPlan(compute).unit == gpu::PlanUnit::Wgmma)
      program.loadUnseen();
    FailureOr<gpu::FuncOp> func = program.build(moduleBuilder, unique);
    if (failed(func) || failed(checkTilesFit(kernel, *func)))
      return failure();
    unrollPairs(*func);
    for (ResultElement &element : *elements)
      placeElement(element, *func, program.getArguments());
    OpBuilder builder(compute);
    Location loc = compute.getLoc();
    Value grid = gridExtent(builder, loc, program.getGrid());
    if (program.getTilesOfBlock() > 1) {
      Value tiles = arith::ConstantIndexOp::create(builder, loc, program.getTilesOfBlock());
      grid = builder.createOrFold<arith::CeilDivSIOp>(loc, grid, tiles);
    }
    if (func->isSpread()) {
      Value blocks = arith::ConstantIndexOp::create(builder, loc, func->getCluster());
      grid = arith::MulIOp::create(builder, loc, grid, blocks);
    }
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    SmallVector<Value> shapes;
    for (unsigned r = 0; r < compute.getNumResults(); ++r)
      for (unsigned i : compute.getIndicesOf(r))
        shapes.push_back(compute.getExtents()[i]);
    auto launch = gpu::LaunchOp::create(builder, loc, compute.getResultTypes(), unique, grid, one,
                                        one, program.getArguments(), shapes);
    launch->setAttr("names", compute.getNamesAttr());
    compute.replaceAllUsesWith(launch.getResults());
    compute.erase();
    return success();
  }

  void runOnOperation() override {
    SmallVector<KernelOp> kernels(getOperation().getOps<KernelOp>());
    for (KernelOp kernel : kernels) {
      SmallVector<ComputeOp> computes(kernel.getBody().getOps<ComputeOp>());
      // Masks of weights that another statement stores are those of its body.
      const PresentTerms present = addPresentTerms(kernel, Conditions::OfElements);
      for (ComputeOp compute : computes) {
        if (failed(tile(kernel, compute, present)))
          return signalPassFailure();
        ++numTiled;
      }
    }
  }
};

} // namespace
