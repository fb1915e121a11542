//===- GroupRows.cpp - group rows that share a table entry ----------------===//
//
// Block-sparse attention finds the keys of a query in a table with one entry for each block of
// queries. Read row by row, each row of a tile gathers its own keys, which is no matrix product of
// tiles. Over the block and the position in the block, all rows of a block gather the same keys.
//
// 1. In compute ops with a back-to-back contraction, find reductions over a block `n` and a
//    position `j` in the block. A block must have a constant number of at least 8 positions.
//    Replace both by one index; `n` and `j` become its quotient and remainder. The loop then has
//    one axis to tile.
// 2. Find compute ops with a contraction whose operand is addressed by a table. The table must be
//    loaded at `i / n` for an index `i` of the compute op. `n` must be a constant of at least 8
//    that divides the extent of `i`.
// 3. Replace `i` by the group and the position in the group (DivideIndices.h). A returned tensor
//    keeps its place in memory.
//
// The pass declines step 3 if the compute op replaces an `inout` parameter.
//
//   tk.reduce ["n", "j"] from (0, 0) to (%N, 64) {.. %n .. %j ..}
//     =>
//   tk.reduce ["j"] from (0) to (%N * 64) {.. %j / 64 .. %j mod 64 ..}
//
//   %o = tk.compute ["i", "e"] in(%S, %E) {.. load %k[load %t[%i / 64, %j / 64] * 64 + ..]}
//     =>
//   %o = tk.compute ["i.group", "i", "e"] in(%S / 64, 64, %E) {
//     .. load %k[load %t[%group, %j / 64] * 64 + ..]}
//
//===----------------------------------------------------------------------===//
#include "passes/machine/limits/Operands.h"
#include "passes/tensor/ranges/DivideIndices.h"

#include "passes/Passes.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProducerKind.h"
#include "passes/analysis/ScalarExpr.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace tk {
#define GEN_PASS_DEF_GROUPROWS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-group-rows";
using namespace limits::group_rows;

namespace {

struct GroupRows : tk::impl::GroupRowsBase<GroupRows> {
  void runOnOperation() override;

private:
  bool groupOne(KernelOp kernel);
};

/// An index of a statement, and how many of its values have an entry of a table in common.
struct RowGroup {
  unsigned position;
  int64_t size;
};

} // namespace

/// Does a product of `compute` stand in the terms of another reduction?
static bool hasChains(ComputeOp compute) {
  return compute
      ->walk([](ReduceOp reduce) {
        return isContraction(reduce) && reduce->getParentOfType<ReduceOp>()
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Does `reduce` run over blocks and the places in them, as many in each?
static bool runsOverBlocks(ReduceOp reduce, ComputeOp compute) {
  if (reduce.isOnline() || reduce->getParentOp() != compute || reduce.getNumIndices() != 2 ||
      isArgReduction(reduce.getKind(0)))
    return false;
  std::optional<int64_t> places = getConstantIntValue(reduce.getUpper()[1]);
  return places && *places >= leastRows && isKernelLevel(reduce.getUpper()[0], compute) &&
         llvm::all_of(reduce.getLower(),
                      [](Value lower) { return getConstantIntValue(lower) == 0; });
}

/// Makes one index of the blocks and the places in them that chains reduce over. Returns for how
/// many reductions.
static unsigned joinTerms(ComputeOp compute) {
  if (!hasChains(compute))
    return 0;
  unsigned joinedCount = 0;
  for (auto reduce : llvm::make_early_inc_range(compute.getBlock()->getOps<ReduceOp>())) {
    if (!runsOverBlocks(reduce, compute))
      continue;
    Location loc = reduce.getLoc();
    OpBuilder builder(reduce);
    Value places = reduce.getUpper()[1], zero = reduce.getLower()[0];
    Value terms = arith::MulIOp::create(builder, loc, reduce.getUpper()[0], places);
    auto joined = ReduceOp::create(builder, loc, reduce->getResultTypes(), reduce.getKinds(),
                                   builder.getArrayAttr(reduce.getIndexNames()[1]),
                                   ValueRange{zero}, ValueRange{terms}, reduce.getPrecisionAttr());
    joined.getBody().takeBody(reduce.getBody());
    Block *body = joined.getBlock();
    Value term = body->insertArgument(0u, builder.getIndexType(), loc);
    builder.setInsertionPointToStart(body);
    Value block = FloorDivOp::create(builder, loc, term.getType(), term, places);
    Value place = FloorModOp::create(builder, loc, term.getType(), term, places);
    body->getArgument(1).replaceAllUsesWith(block);
    body->getArgument(2).replaceAllUsesWith(place);
    body->eraseArguments(1, 2);
    note(joined, passName, Verdict::Derived,
         "the " + describe(joined) + " runs over blocks and the positions in them as one index");
    reduce->replaceAllUsesWith(joined);
    reduce.erase();
    ++joinedCount;
  }
  return joinedCount;
}

/// The group of rows whose entry of a table `at`, an index of a factor, is computed from.
static std::optional<RowGroup> findGroup(Value at, ComputeOp compute) {
  Operation *op = at.getDefiningOp();
  if (!op || !compute->isAncestor(op))
    return std::nullopt;
  if (auto table = dyn_cast<LoadOp>(op)) {
    for (Value entry : table.getIndices()) {
      auto quotient = entry.getDefiningOp<FloorDivOp>();
      auto index = quotient ? dyn_cast<BlockArgument>(quotient.getLhs()) : BlockArgument();
      std::optional<int64_t> size =
          quotient ? getConstantIntValue(quotient.getRhs()) : std::nullopt;
      if (size && *size >= leastRows && index && index.getOwner() == compute.getBlock())
        return RowGroup{index.getArgNumber(), *size};
    }
    return std::nullopt;
  }
  for (Value operand : op->getOperands())
    if (std::optional<RowGroup> found = findGroup(operand, compute))
      return found;
  return std::nullopt;
}

/// The rows of a product in `compute` of which a factor follows a table.
static std::optional<RowGroup> findRows(KernelOp kernel, ComputeOp compute) {
  std::optional<RowGroup> found;
  compute->walk([&](ReduceOp product) {
    if (!isContraction(product))
      return WalkResult::advance();
    product.getBody().walk([&](LoadOp factor) {
      for (Value at : factor.getIndices())
        if (std::optional<RowGroup> group = found ? std::nullopt : findGroup(at, compute))
          if (isMultipleOf(kernel, compute.getExtents()[group->position], group->size))
            found = group;
    });
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

bool GroupRows::groupOne(KernelOp kernel) {
  for (ComputeOp compute : kernel.getBody().front().getOps<ComputeOp>()) {
    std::optional<RowGroup> rows =
        replacesParameter(kernel, compute) ? std::nullopt : findRows(kernel, compute);
    if (!rows)
      continue;
    note(compute, passName, Verdict::Derived,
         "index '" + cast<StringAttr>(compute.getIndexNames()[rows->position]).getValue() +
             "' of " + describe(compute) + " is split into groups of " + Twine(rows->size) +
             " and positions in them: a table has an entry for each group");
    OpBuilder builder(compute);
    Value whole = compute.getExtents()[rows->position];
    Value size = arith::ConstantIndexOp::create(builder, compute.getLoc(), rows->size);
    Value count = FloorDivOp::create(builder, compute.getLoc(), whole.getType(), whole, size);
    divideIndex(compute, rows->position, {whole, count, rows->size});
    return true;
  }
  return false;
}

void GroupRows::runOnOperation() {
  if (!getOperation()->hasAttr(gpu::targetAttrName))
    return;
  getOperation()->walk([&](KernelOp kernel) {
    for (ComputeOp compute : kernel.getBody().front().getOps<ComputeOp>())
      numJoined += joinTerms(compute);
    while (groupOne(kernel))
      ++numGrouped;
  });
}
