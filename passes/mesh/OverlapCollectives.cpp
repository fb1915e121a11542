//===- OverlapCollectives.cpp - launches of blocks of rows ----------------===//
//
// 1. A launch that reads a gathered tensor by rows (RowBlocks.h) can run for the block of each rank
//    as it arrives; a launch that makes by rows what an exchange sends can run for the block of
//    each rank before that is sent.
// 2. The launch becomes one by rows if that is predicted to take less time than the launch and the
//    collective one after the other: each block is a launch of its own, which reads all that is not
//    taken by rows again. Of two collectives next to a launch the one counts that saves more.
//
//   %x = tk.all_gather %0 over "tp" dim 0
//   %h = tk.launch @up_1(%x, %w)
//     =>
//   %x = tk.all_gather %0 over "tp" dim 0 {tk.beside_launch}
//   %h = tk.launch @up_1(%x, %w) by_rows "tp" {slicedOperands = [0], slicedResults = [0]}
//
//===----------------------------------------------------------------------===//
#include "passes/mesh/LocalKernel.h"
#include "passes/mesh/MeshPasses.h"
#include "passes/mesh/RowBlocks.h"

#include "passes/analysis/Notes.h"
#include "passes/mesh/IndexUses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/Support/FormatVariadic.h"

namespace tk {
#define GEN_PASS_DEF_OVERLAPCOLLECTIVES
#include "passes/mesh/MeshPasses.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using tk::network::Collective;

namespace {

constexpr llvm::StringLiteral passName = "tk-overlap-collectives";

class Overlapper {
public:
  Overlapper(KernelOp placed, mesh::MeshCosts costs) : placed(placed), costs(std::move(costs)) {}
  void run();

private:
  struct Plan {
    mesh::RowBlocks rows;
    StringRef axis;
    double blocks = 1, blockTime = 0, wholeTime = 0;
  };
  size_t axisOf(StringRef name) const;
  KernelOp calleeOf(LaunchOp launch) const;
  BlockArgument parameterOf(LaunchOp launch, unsigned operand) const;
  void setSizes(LaunchOp launch, KernelOp local) const;
  std::optional<Plan> planFor(LaunchOp launch, Value local, size_t axis, Operation *collective);
  void overlapGather(AllGatherOp gather);
  void overlapExchange(ExchangeOp exchange);
  void consider(LaunchOp launch, const Plan &plan, double alone,
                const network::CollectiveTime &transfer, Operation *collective);
  void choose();
  void mark(LaunchOp launch, const Plan &plan) const;

  struct Candidate {
    LaunchOp launch;
    Plan plan;
    Operation *collective;
    double gain; ///< nanoseconds
    std::string times;
  };

  KernelOp placed;
  mesh::MeshCosts costs;
  SmallVector<Candidate> candidates;
};

size_t Overlapper::axisOf(StringRef name) const {
  for (auto [i, axis] : llvm::enumerate(meshOf(placed)))
    if (axis.name == name)
      return i;
  return 0;
}

KernelOp Overlapper::calleeOf(LaunchOp launch) const {
  return SymbolTable::lookupNearestSymbolFrom<KernelOp>(placed, launch.getCalleeAttr());
}

BlockArgument Overlapper::parameterOf(LaunchOp launch, unsigned operand) const {
  KernelOp local = calleeOf(launch);
  return local.getParamArguments()[operand];
}

/// Tells the local kernel for which sizes it is estimated.
void Overlapper::setSizes(LaunchOp launch, KernelOp local) const {
  OpBuilder sizes(launch);
  SmallVector<int64_t> dims(local.getNumDims(), static_cast<int64_t>(mesh::usualSize));
  for (auto [operand, param] : llvm::zip(launch.getOperands_(), local.getParamArguments())) {
    if (!isa<RankedTensorType>(operand.getType()))
      continue;
    for (auto [outer, inner] :
         llvm::zip(mesh::localExtents(sizes, operand), local.getBind(param).getExtents()))
      if (auto dim = dyn_cast<BlockArgument>(inner); dim && dim.getArgNumber() < dims.size())
        dims[dim.getArgNumber()] = static_cast<int64_t>(mesh::estimate(outer));
  }
  local->setAttr(meshDimsAttr, DenseI64ArrayAttr::get(local.getContext(), dims));
}

std::optional<Overlapper::Plan> Overlapper::planFor(LaunchOp launch, Value tensor, size_t axis,
                                                    Operation *collective) {
  std::string why;
  KernelOp local = calleeOf(launch);
  std::optional<mesh::RowBlocks> rows = mesh::rowBlocksOf(local, tensor, why);
  if (!rows) {
    note(collective, passName, Verdict::Declined,
         "'" + launch.getCallee() + "' does not run block by block beside the transfers: " + why);
    return std::nullopt;
  }
  setSizes(launch, local);
  mesh::BlockWork work(costs);
  for (ComputeOp compute : local.getOps<ComputeOp>())
    work.add(compute, [&](Value value) { return rows->has(value); });
  local->removeAttr(meshDimsAttr);
  const MeshAxisInfo info = meshOf(placed)[axis];
  Plan plan{*rows, info.name, static_cast<double>(info.size), 0, 0};
  plan.blockTime = work.launch(plan.blocks), plan.wholeTime = work.launch(1);
  return plan;
}

/// Adds a launch by rows to those that may be chosen, or says that it is slower.
void Overlapper::consider(LaunchOp launch, const Plan &plan, double alone,
                          const network::CollectiveTime &transfer, Operation *collective) {
  const double blocks =
                   mesh::timeByRows(plan.blocks, plan.blockTime, transfer, costs.isHeld(transfer)),
               whole = plan.wholeTime + alone;
  std::string times =
      llvm::formatv("{0:F1} us are predicted, and {1:F1} us for one after the other", blocks * 1e-3,
                    whole * 1e-3)
          .str();
  if (blocks < whole)
    candidates.push_back({launch, plan, collective, whole - blocks, std::move(times)});
  else
    note(collective, passName, Verdict::Declined,
         "'" + launch.getCallee() + "' does not run block by block beside the transfers: " + times);
}

/// Lets each launch run beside the one collective that it hides most of.
void Overlapper::choose() {
  SmallVector<Candidate *> order;
  for (Candidate &candidate : candidates)
    order.push_back(&candidate);
  llvm::sort(order, [](const Candidate *a, const Candidate *b) {
    return a->gain != b->gain ? a->gain > b->gain : a < b;
  });
  for (Candidate *best : order) {
    Candidate &candidate = *best;
    const bool isFree = !candidate.launch.getByRows();
    if (isFree) {
      mark(candidate.launch, candidate.plan);
      candidate.collective->setAttr(besideLaunchAttr, UnitAttr::get(placed.getContext()));
    }
    note(candidate.collective, passName, isFree ? Verdict::Derived : Verdict::Declined,
         "'" + candidate.launch.getCallee() +
             (isFree ? "' runs block by block beside the transfers: " + candidate.times
                     : "' does not run block by block beside these transfers: it runs beside "
                       "others, which hides more"));
  }
}

void Overlapper::mark(LaunchOp launch, const Plan &plan) const {
  SmallVector<int64_t> operands, results;
  KernelOp local = calleeOf(launch);
  for (auto [i, param] : llvm::enumerate(local.getParamArguments()))
    if (plan.rows.has(param))
      operands.push_back(static_cast<int64_t>(i));
  for (unsigned r = 0; r < launch.getNumResults(); ++r)
    results.push_back(r);
  launch.setByRows(plan.axis);
  launch.setSlicedOperands(operands);
  launch.setSlicedResults(results);
}

void Overlapper::overlapGather(AllGatherOp gather) {
  const size_t axis = axisOf(gather.getAxis());
  if (gather.getDim() != 0 || !gather->hasOneUse() || meshOf(placed)[axis].size < 2)
    return;
  OpOperand &use = *gather->use_begin();
  auto launch = dyn_cast<LaunchOp>(use.getOwner());
  if (!launch)
    return;
  std::optional<Plan> plan =
      planFor(launch, parameterOf(launch, use.getOperandNumber()), axis, gather);
  if (!plan)
    return;
  OpBuilder sizes(launch);
  const Type element = cast<RankedTensorType>(gather.getType()).getElementType();
  const double bytes = mesh::bytesOf(mesh::localExtents(sizes, gather.getResult()), element);
  consider(launch, *plan, costs.timeOf(Collective::AllGather, axis, bytes),
           costs.collective(Collective::Send, axis, bytes / plan->blocks), gather);
}

void Overlapper::overlapExchange(ExchangeOp exchange) {
  const size_t axis = axisOf(exchange.getAxis());
  auto launch = exchange.getTensor().getDefiningOp<LaunchOp>();
  if (!launch || exchange.getSent() || meshOf(placed)[axis].size < 2)
    return;
  KernelOp local = calleeOf(launch);
  const unsigned result = cast<OpResult>(exchange.getTensor()).getResultNumber();
  std::optional<Plan> plan =
      planFor(launch, local.getReturn().getResults()[result], axis, exchange);
  if (!plan)
    return;
  OpBuilder sizes(launch);
  const Type element = cast<RankedTensorType>(exchange.getType()).getElementType();
  const double bytes = mesh::bytesOf(mesh::localExtents(sizes, exchange.getTensor()), element);
  consider(launch, *plan, costs.exchange(axis, bytes).total(),
           costs.collective(Collective::Send, axis, bytes / plan->blocks), exchange);
}

void Overlapper::run() {
  for (Operation &op : llvm::make_early_inc_range(placed.getBody().front())) {
    if (auto gather = dyn_cast<AllGatherOp>(op))
      overlapGather(gather);
    else if (auto exchange = dyn_cast<ExchangeOp>(op))
      overlapExchange(exchange);
  }
  choose();
  // Sizes that were only estimated.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(placed.getBody().front())))
    if (op.use_empty() && isa<arith::MulIOp, arith::ConstantOp, FloorDivOp>(op))
      op.erase();
}

} // namespace

LogicalResult tk::overlapCollectives(KernelOp kernel) {
  llvm::Expected<mesh::MeshCosts> costs = mesh::MeshCosts::of(kernel);
  if (!costs)
    return kernel.emitError("the network of the mesh: ") << llvm::toString(costs.takeError());
  Overlapper(kernel, std::move(*costs)).run();
  return success();
}

namespace {
struct OverlapCollectivesPass : tk::impl::OverlapCollectivesBase<OverlapCollectivesPass> {
  void runOnOperation() override {
    for (KernelOp kernel : llvm::make_early_inc_range(getOperation().getOps<KernelOp>()))
      if (kernel->hasAttr(placedAttr) && failed(overlapCollectives(kernel)))
        return signalPassFailure();
  }
};
} // namespace
