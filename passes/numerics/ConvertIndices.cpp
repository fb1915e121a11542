//===- ConvertIndices.cpp - indices as floats -----------------------------===//
//
// A number computed from several indices, as the distance j - i is, has one value for each pair of
// them, and a conversion to float costs as much as an exponential. Where all numbers on the way are
// integers of at most 2^24 in size, f32 holds each of them:
//   1. sums and differences of indices are converted before they are added, index by index, so that
//      a tile has one conversion a row and one a column;
//   2. of an index that a tile runs along, where it begins is converted and its place in the tile
//      added: BlockProgram::convertedIndex.
//
//   sitofp(index_cast(subi %j, %i))
//     →  subf(sitofp(index_cast %j) {exact}, sitofp(index_cast %i) {exact})
//
//===----------------------------------------------------------------------===//
#include "passes/numerics/ConvertIndices.h"

#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tk;

/// Integers up to here are numbers of f32, and so is what they sum to.
static constexpr int64_t largestExact = int64_t(1) << 24;

/// What `value`, an index within `kernel`, is at most in size, if that is known.
static std::optional<int64_t> largestSize(KernelOp kernel, Value value) {
  if (std::optional<int64_t> constant = getConstantIndex(value))
    return std::abs(*constant);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *owner = argument.getOwner()->getParentOp();
    unsigned number = argument.getArgNumber();
    if (auto compute = dyn_cast<ComputeOp>(owner))
      return getSizeFact(kernel, compute.getExtents()[number]).upper;
    auto reduce = dyn_cast<ReduceOp>(owner);
    if (!reduce)
      return getSizeFact(kernel, value).upper;
    Value lower = reduce.getLower()[number];
    if (auto maximum = lower.getDefiningOp<arith::MaxSIOp>())
      lower = maximum.getRhs();
    bool isNatural = getConstantIndex(lower).value_or(-1) >= 0;
    return isNatural ? getSizeFact(kernel, reduce.getUpper()[number]).upper : std::nullopt;
  }
  if (Operation *op = value.getDefiningOp(); isa<arith::AddIOp, arith::SubIOp>(op)) {
    std::optional<int64_t> a = largestSize(kernel, op->getOperand(0)),
                           b = largestSize(kernel, op->getOperand(1));
    if (a && b && std::max(*a, *b) <= largestExact)
      return *a + *b;
  }
  return std::nullopt;
}

static Value convert(OpBuilder &builder, Location loc, Value index) {
  Operation *op = index.getDefiningOp();
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op)) {
    Value a = convert(builder, loc, op->getOperand(0)),
          b = convert(builder, loc, op->getOperand(1));
    if (isa<arith::AddIOp>(op))
      return arith::AddFOp::create(builder, loc, a, b);
    return arith::SubFOp::create(builder, loc, a, b);
  }
  Value narrow = arith::IndexCastOp::create(builder, loc, builder.getI32Type(), index);
  auto converted = arith::SIToFPOp::create(builder, loc, builder.getF32Type(), narrow);
  gpu::addMode(converted, gpu::MathMode::Exact);
  return converted;
}

void tk::convertIndices(KernelOp kernel, ComputeOp compute) {
  SmallVector<arith::SIToFPOp> conversions;
  compute.getBody().walk([&](arith::SIToFPOp conversion) {
    auto cast = conversion.getIn().getDefiningOp<arith::IndexCastOp>();
    if (!cast || !cast.getIn().getType().isIndex() || !conversion.getType().isF32() ||
        getIterationIndices(cast.getIn()).size() < 2)
      return;
    if (largestSize(kernel, cast.getIn()).value_or(largestExact + 1) <= largestExact)
      conversions.push_back(conversion);
  });
  for (arith::SIToFPOp conversion : conversions) {
    OpBuilder builder(conversion);
    auto cast = conversion.getIn().getDefiningOp<arith::IndexCastOp>();
    conversion.replaceAllUsesWith(convert(builder, conversion.getLoc(), cast.getIn()));
    conversion.erase();
    if (cast.use_empty())
      cast.erase();
  }
}
