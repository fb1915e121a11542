//===- GatherFactors.cpp - operands whose rows are gathered ---------------===//
//
// wgmma multiplies operands that TMA loads as boxes. Rows that a table gathers one by one are no
// box. Without this pattern, mma.sync would compute the contraction at half the rate.
//
// 1. The pattern matches contractions, over a range of their own, of operands that are loaded as
//    they are stored and that wgmma would multiply.
// 2. An operand is gathered if one of its indices is loaded at an index of the compute op that no
//    other operand uses: the index of the contraction's rows or columns. (A single row number for a
//    whole tile needs no copy.)
// 3. A compute op stores the gathered operand, row by row as the contraction reads it, if that
//    takes less time than it saves. Rows that the table omits are zero.
// 4. An operand that a table gathers along the sum, `x[m, t[k]]`, is stored in the order of the sum
//    for the same reason, also beside an operand that is computed.
//
//   %c = tk.compute ["i", "j"] {tk.reduce [sum] ["k"] {x[t[i], k] * w[j, k]}}
//     =>
//   %g = tk.compute ["i", "k"] {x[t[i], k]}
//   %c = tk.compute ["i", "j"] {tk.reduce [sum] ["k"] {g[i, k] * w[j, k]}}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/operands/GatherFactors.h"

#include "passes/analysis/Declines.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"
#include "passes/machine/limits/Packed.h"
#include "passes/tensor/operands/PadFactors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-materialize-operands:gather";

namespace {

/// Copies what a factor is computed from to a statement of its own.
class FactorCopy {
public:
  FactorCopy(ComputeOp compute, OpBuilder &builder) : compute(compute), builder(builder) {}

  IRMapping mapping;

  Value copy(Value value) {
    Operation *op = value.getDefiningOp();
    if (mapping.contains(value) || !op || !compute->isProperAncestor(op))
      return mapping.lookupOrDefault(value);
    for (Value operand : op->getOperands())
      copy(operand);
    builder.clone(*op, mapping);
    return mapping.lookup(value);
  }

private:
  ComputeOp compute;
  OpBuilder &builder;
};

} // namespace

/// The loads that `reduce` multiplies; nothing if its terms are something else, or no warpgroup
/// multiplies such factors.
static std::optional<llvm::SetVector<LoadOp>> readFactors(ReduceOp reduce) {
  llvm::SetVector<LoadOp> factors;
  for (auto [n, term] : llvm::enumerate(reduce.getYield().getValues())) {
    Operation *multiply = term.getDefiningOp();
    if (reduce.getKind(n) != ReduceKind::Sum || !isa_and_nonnull<arith::MulFOp>(multiply))
      return std::nullopt;
    for (Value factor : multiply->getOperands()) {
      auto load = withoutExtension(factor).getDefiningOp<LoadOp>();
      if (!load || load->getBlock() != reduce.getBlock() ||
          !haveWarpgroupProduct(load.getType(), getSumPrecision(reduce)))
        return std::nullopt;
      factors.insert(load);
    }
  }
  return factors;
}

/// Is an index of `factor` loaded at an index of the statement that no load of `others` is over?
static bool isGathered(LoadOp factor, ArrayRef<LoadOp> others, ComputeOp compute) {
  for (BlockArgument index : compute.getBlock()->getArguments()) {
    Dependence onIndex(ValueRange{index});
    auto isOver = [&](LoadOp load) {
      return load != factor &&
             llvm::any_of(load.getIndices(), [&](Value at) { return onIndex.on(at); });
    };
    if (llvm::any_of(others, isOver))
      continue;
    for (Value at : factor.getIndices())
      if (!isa<BlockArgument>(at) && onIndex.on(at) &&
          llvm::any_of(getSlice(at, factor->getBlock()), [&](Operation *op) {
            auto table = dyn_cast<LoadOp>(op);
            return table && llvm::is_contained(table.getIndices(), index);
          }))
        return true;
  }
  return false;
}

/// The positions of the statement's indices that `factor` is over.
static SmallVector<unsigned> getPositions(LoadOp factor, ComputeOp compute) {
  SmallVector<unsigned> positions;
  for (unsigned p = 0; p < compute.getNumIndices(); ++p) {
    Dependence onIndex(ValueRange{compute.getIndex(p)});
    if (llvm::any_of(factor.getIndices(), [&](Value at) { return onIndex.on(at); }))
      positions.push_back(p);
  }
  return positions;
}

/// Does storing `factor`, over `extents`, take less time than it saves?
static bool pays(KernelOp kernel, ComputeOp compute, ReduceOp reduce, LoadOp factor,
                 ArrayRef<Value> extents, double savedByTerm) {
  std::optional<double> outputs = countElements(kernel, compute.getExtents()),
                        depth = countElements(kernel, reduce.getUpper()),
                        elements = countElements(kernel, extents);
  if (!outputs || !depth || !elements)
    return false;
  double bytes = *elements * factor.getType().getIntOrFloatBitWidth() / 8;
  return savesTime(reduce, "tk-materialize-operands:gather", "a copy of the gathered rows",
                   savedByTerm * *outputs * *depth * reduce.getNumAccumulators(),
                   2 * cost::byte * bytes + cost::launch);
}

/// Stores what `factor` loads in a statement of its own, and has it loaded from there.
static void store(ComputeOp compute, ReduceOp reduce, LoadOp factor, ArrayRef<unsigned> positions,
                  ArrayRef<Value> extents) {
  SmallVector<StringRef> names;
  for (unsigned p : positions)
    names.push_back(cast<StringAttr>(compute.getIndexNames()[p]).getValue());
  names.push_back(cast<StringAttr>(reduce.getIndexNames()[0]).getValue());
  std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + ".gathered").str();
  OpBuilder builder(compute);
  auto statement =
      ComputeOp::create(builder, factor.getLoc(), names, extents, ArrayRef<Type>{factor.getType()},
                        ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{},
                        [&](OpBuilder &body, Location loc, ValueRange indices) {
                          FactorCopy element(compute, body);
                          for (auto [n, p] : llvm::enumerate(positions))
                            element.mapping.map(compute.getIndex(p), indices[n]);
                          element.mapping.map(reduce.getIndex(0), indices.back());
                          YieldOp::create(body, loc, element.copy(factor.getResult()));
                        });
  SmallVector<Value> indices;
  for (unsigned p : positions)
    indices.push_back(compute.getIndex(p));
  indices.push_back(reduce.getIndex(0));
  OpBuilder before(factor);
  Value stored = LoadOp::create(before, factor.getLoc(), statement.getResult(0), indices, Value());
  factor.replaceAllUsesWith(stored);
  factor.erase();
}

/// Does a table at the index of `reduce` alone select an index of `factor`? Each tile would gather
/// its elements one by one.
static bool isGatheredAlong(LoadOp factor, ReduceOp reduce, ComputeOp compute) {
  Dependence onOuter(compute.getBlock()->getArguments());
  return llvm::any_of(factor.getIndices(), [&](Value at) {
    return !isa<BlockArgument>(at) && !onOuter.on(at) &&
           llvm::any_of(getSlice(at, factor->getBlock()), [&](Operation *op) {
             auto table = dyn_cast<LoadOp>(op);
             return table && llvm::is_contained(table.getIndices(), reduce.getIndex(0));
           });
  });
}

/// The indices and extents of a copy of `factor`.
static std::pair<SmallVector<unsigned>, SmallVector<Value>>
getAxes(LoadOp factor, ComputeOp compute, ReduceOp reduce) {
  SmallVector<unsigned> positions = getPositions(factor, compute);
  SmallVector<Value> extents;
  for (unsigned p : positions)
    extents.push_back(compute.getExtents()[p]);
  extents.push_back(reduce.getUpper()[0]);
  return {positions, extents};
}

/// Stores operands that a table gathers along the sum, whatever they are multiplied by.
static unsigned gatherAlong(KernelOp kernel, ComputeOp compute, ReduceOp reduce) {
  if (reduce.getNumIndices() != 1 || reduce.getNumAccumulators() != 1 || !isMatrixProduct(reduce) ||
      !isKernelLevel(reduce.getUpper()[0], compute) || getConstantIndex(reduce.getLower()[0]) != 0)
    return 0;
  unsigned stored = 0;
  for (Value operand : reduce.getYield().getValues()[0].getDefiningOp()->getOperands()) {
    auto factor = withoutExtension(operand).getDefiningOp<LoadOp>();
    if (!factor || factor->getBlock() != reduce.getBlock() ||
        !haveWarpgroupProduct(factor.getType(), getSumPrecision(reduce)) ||
        !isGatheredAlong(factor, reduce, compute))
      continue;
    auto [positions, extents] = getAxes(factor, compute, reduce);
    if (!pays(kernel, compute, reduce, factor, extents, limits::gather_factors::savedByTerm))
      continue;
    note(reduce, passName, Verdict::Derived,
         "an operand of the " + describe(reduce) +
             " is gathered along the sum by a statement of its own");
    store(compute, reduce, factor, positions, extents);
    ++stored;
  }
  return stored;
}

static unsigned gather(KernelOp kernel, ComputeOp compute, ReduceOp reduce) {
  std::optional<llvm::SetVector<LoadOp>> factors;
  if (reduce.getNumIndices() == 1 && isMatrixProduct(reduce) &&
      isKernelLevel(reduce.getUpper()[0], compute) && getConstantIndex(reduce.getLower()[0]) == 0)
    factors = readFactors(reduce);
  SmallVector<LoadOp> all;
  if (factors)
    all = factors->takeVector();
  for (LoadOp &factor : all) {
    if (factor.getIndices().empty() || factor.getIndices().back() != reduce.getIndex(0) ||
        !isGathered(factor, all, compute))
      continue;
    auto [positions, extents] = getAxes(factor, compute, reduce);
    if (!pays(kernel, compute, reduce, factor, extents, cost::savedByGatheredOperand))
      continue;
    note(reduce, passName, Verdict::Derived,
         "an operand of the " + describe(reduce) + " is gathered by a statement of its own");
    store(compute, reduce, factor, positions, extents);
    return 1 + gather(kernel, compute, reduce);
  }
  return 0;
}

unsigned tk::gatherFactors(KernelOp kernel) {
  unsigned stored = 0;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
    for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>()))
      stored += gather(kernel, compute, reduce) + gatherAlong(kernel, compute, reduce);
  return stored;
}
