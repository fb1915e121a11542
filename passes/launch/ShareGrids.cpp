//===- ShareGrids.cpp - horizontal fusion of launches ---------------------===//
//
// A program may have two short launches in a row of which the second one reads nothing that the
// first one writes. The second launch then costs the latency of a launch, although both together
// do not fill the GPU. This pass puts the blocks of both into one grid (horizontal fusion).
//
// 1. Look at two launches in a row of elementwise functions without loops. The bounds of all sizes
//    must be known, and both launches together must have at most two waves of threads.
// 2. Append the arguments and results of the second function to the first one.
// 3. The first blocks of the grid run the first function, the others the second function. The
//    position of a block in the second grid is its position less the blocks of the first grid.
// 4. If the functions have different numbers of warps, blocks have the larger one. The warps that
//    a function lacks repeat its loads, and store nothing.
//
// The pass declines if the second launch reads a result of the first one. It declines if one launch
// replaces an `inout` parameter and the other one reads an `inout` parameter. It declines if a
// function uses TMA, clusters, counters or the size of its grid.
//
// Before: %a = launch @f grid(%m)   @f: %i = program_id; ...
//         %b = launch @g grid(%n)   @g: %i = program_id; ...
// After:  %a, %b = launch @f grid(%m + %n)
//                                   @f: %i = program_id
//                                       if %i < %m { ... } else { %k = %i - %m; ... }
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/machine/limits/Launches.h"

#include "dialects/tkgpu/TkGpuCountOps.h"
#include "dialects/tkgpu/TkGpuPlan.h"
#include "dialects/tkgpu/TkGpuProducts.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/launch/MergeLaunches.h"
#include "passes/layout/BulkBox.h"
#include "passes/layout/TileComponents.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tk {
#define GEN_PASS_DEF_SHAREGRIDS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

using namespace limits::share_grids;

namespace {

/// Two launches in a row that may become one.
class GridPair {
public:
  GridPair(LaunchOp first, LaunchOp second, SymbolTable &symbols)
      : first(first), second(second), into(symbols.lookup<FuncOp>(first.getKernel())),
        from(symbols.lookup<FuncOp>(second.getKernel())),
        kernel(first->getParentOfType<KernelOp>()) {}

  bool analyse(TargetAttr target);
  LaunchOp apply();

private:
  static bool isBrief(LaunchOp launch, FuncOp function);
  bool readsReplaced(LaunchOp launch);
  bool replaces(LaunchOp launch, FuncOp function);
  std::optional<int64_t> countWarps(LaunchOp launch, FuncOp function);

  LaunchOp first, second;
  FuncOp into, from;
  KernelOp kernel;
};

} // namespace

/// Each block of the function runs alone and once, and ends soon.
bool GridPair::isBrief(LaunchOp launch, FuncOp function) {
  if (!function || !LaunchArguments::of(function) || launch.getResident() ||
      getPlan(function).family != PlanFamily::Elementwise || hasProducts(function) ||
      !matchPattern(launch.getGridY(), m_One()) || !matchPattern(launch.getGridZ(), m_One()) ||
      function.getCluster() != 1 || function.getProducerWarps() != 0 ||
      function.getSpareWarps() != 0 || function.getTeams() != 1)
    return false;
  auto isOfBlock = [](Operation *op) {
    auto id = dyn_cast<ProgramIdOp>(op);
    return !isa<scf::ForOp, scf::WhileOp, WarpRolesOp, LastBlockOp, DrawOp, AllocPhasesOp,
                AllocPrivateOp, NumProgramsOp, LaunchWaitOp, LaunchReleaseOp, gpu::ReduceOp>(op) &&
           (!id || id.getAxis() == GridAxis::X);
  };
  auto isTensorMap = [](Value value) { return isa<TensorMapType>(value.getType()); };
  return llvm::none_of(launch.getArgs(), isTensorMap) &&
         !function
              .walk([&](Operation *op) {
                return isOfBlock(op) ? WalkResult::advance() : WalkResult::interrupt();
              })
              .wasInterrupted();
}

/// Does a launch take a parameter that the kernel replaces?
bool GridPair::readsReplaced(LaunchOp launch) {
  for (auto [number, parameter] : llvm::enumerate(kernel.getParamArguments()))
    if (kernel.getParam(number).getInout() && llvm::is_contained(launch.getArgs(), parameter))
      return true;
  return false;
}

/// Does a launch write what replaces a parameter? The host may have placed that in the parameter.
bool GridPair::replaces(LaunchOp launch, FuncOp function) {
  const size_t results = kernel.getResultNames().size();
  auto replacements = kernel.getReturn().getOperands().drop_front(results);
  return getPlan(function).inPlace || llvm::any_of(launch.getResults(), [&](Value result) {
           return llvm::is_contained(replacements, result);
         });
}

std::optional<int64_t> GridPair::countWarps(LaunchOp launch, FuncOp function) {
  std::optional<int64_t> blocks = getSizeFact(kernel, launch.getGridX()).upper;
  return blocks ? std::optional(*blocks * function.getNumWarps()) : std::nullopt;
}

bool GridPair::analyse(TargetAttr target) {
  if (!isBrief(first, into) || !isBrief(second, from) || into == from ||
      into.getIndexBits() != from.getIndexBits())
    return false;
  // What runs beside a launch must not need what that writes, nor write what that reads.
  for (Operation *user : first->getUsers())
    if (user == second || (user->getBlock() == second->getBlock() && user->isBeforeInBlock(second)))
      return false;
  if ((replaces(first, into) && readsReplaced(second)) ||
      (replaces(second, from) && readsReplaced(first)))
    return false;
  // Warps that repeat what others load would wait at barriers in another order than these.
  auto usesShared = [](FuncOp function) { return function.getSharedBytes().value_or(0) > 0; };
  if (into.getNumWarps() != from.getNumWarps() &&
      usesShared(into.getNumWarps() < from.getNumWarps() ? into : from))
    return false;
  std::optional<int64_t> a = countWarps(first, into), b = countWarps(second, from);
  return a && b && *a + *b <= target.getProcessors() * warpsOfProcessor * mostWaves;
}

LaunchOp GridPair::apply() {
  Location loc = second.getLoc();
  first->moveBefore(second);
  OpBuilder host(first);
  Value before = first.getGridX();
  Value blocks = arith::AddIOp::create(host, loc, before, second.getGridX());
  IRMapping mapping;
  passArguments(into, from, second, mapping);
  Value count = LaunchArguments::of(into)->addIndex(before, "blocks");
  LaunchOp merged = appendResults(first, into, second, from, blocks, mapping);

  // The function's own operations go into a branch.
  Block *body = into.getBlock();
  SmallVector<Operation *> own;
  for (Operation &op : body->without_terminator())
    own.push_back(&op);
  OpBuilder builder(into.getContext());
  builder.setInsertionPointToStart(body);
  Value id = ProgramIdOp::create(builder, loc, GridAxis::X);
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, id, count);
  auto branch = scf::IfOp::create(builder, loc, isFirst, /*withElseRegion=*/true);
  for (Operation *op : own)
    op->moveBefore(branch.thenYield());
  builder.setInsertionPoint(branch.elseYield());
  Value position = arith::SubIOp::create(builder, loc, id, count);
  for (Operation &op : from.getBlock()->without_terminator())
    if (isa<ProgramIdOp>(op))
      mapping.map(op.getResult(0), position);
    else
      builder.clone(op, mapping);

  into.setNumWarps(std::max(into.getNumWarps(), from.getNumWarps()));
  if (into.getSharedBytes() || from.getSharedBytes())
    into.setSharedBytes(
        std::max<int64_t>(into.getSharedBytes().value_or(0), from.getSharedBytes().value_or(0)));
  if (into.getMinBlocks() && from.getMinBlocks())
    into.setMinBlocks(std::min<int64_t>(*into.getMinBlocks(), *from.getMinBlocks()));
  else
    into.removeMinBlocksAttr();
  if (getPlan(from).inPlace)
    changePlan(into, [](KernelPlan &plan) { plan.inPlace = true; });
  replaceLaunches(first, second, merged, from);
  return merged;
}

namespace {

struct ShareGrids : tk::impl::ShareGridsBase<ShareGrids> {
  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<TargetAttr>(targetAttrName);
    if (!target)
      return;
    SymbolTable symbols(getOperation());
    for (KernelOp kernel : getOperation().getOps<KernelOp>()) {
      SmallVector<LaunchOp> launches(kernel.getBody().front().getOps<LaunchOp>());
      for (unsigned n = 0; n + 1 < launches.size(); ++n) {
        GridPair pair(launches[n], launches[n + 1], symbols);
        if (!pair.analyse(target))
          continue;
        launches[n + 1] = pair.apply(); // which may take a third one
        ++numShared;
      }
    }
  }
};

} // namespace
