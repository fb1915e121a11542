//===- CombinePartials.cpp - partial results of ranks ---------------------===//
//
// A reduction over an index that the ranks of an axis divide leaves a partial result on each. They
// are combined by
//
//   all-reduce        if the axis does not shard the result,
//   reduce-scatter    if it does,
//   blocks of rows    that go to their owners while the next one is computed, if it shards the rows
//                     of a sum, and that is predicted to be faster; the owner adds them up.
//
//===----------------------------------------------------------------------===//
#include "passes/mesh/Placer.h"

#include "passes/analysis/Notes.h"
#include "passes/mesh/RowBlocks.h"
#include "passes/mesh/WriteCompute.h"

#include "llvm/ADT/Sequence.h"

using namespace mlir;
using tk::network::Collective;

namespace tk::mesh {

static constexpr llvm::StringLiteral passName = "tk-place-collectives";

/// Rounds the elements of a tensor to a narrower float, or widens them.
void Placer::convertElements(Placed &result, Type type, StringRef name) {
  auto from = cast<RankedTensorType>(result.tensor.getType()).getElementType();
  if (from == type)
    return;
  SmallVector<Value> extents;
  SmallVector<std::string> indices;
  for (auto [i, extent] : llvm::enumerate(result.extents)) {
    extents.push_back(shareOf(extent, result.sharding[i]));
    indices.push_back("i" + std::to_string(i));
  }
  const bool isWider = type.getIntOrFloatBitWidth() > from.getIntOrFloatBitWidth();
  result.tensor =
      makeCompute(builder, result.tensor.getLoc(), indices, extents, type, name.str(),
                  [&](OpBuilder &inner, Location loc, ValueRange arguments) {
                    Value value =
                        LoadOp::create(inner, loc, result.tensor, arguments, Value()).getResult();
                    return isWider ? arith::ExtFOp::create(inner, loc, type, value).getResult()
                                   : arith::TruncFOp::create(inner, loc, type, value).getResult();
                  });
}

/// Whether partial sums are to go to the ranks that own their rows block by block, beside the
/// launch that computes them (see OverlapCollectives.cpp), instead of by a reduce-scatter behind
/// it.
bool Placer::sendsBlocks(const Placed &result, ReduceKind kind, int axis, unsigned dim) const {
  constexpr int64_t mostBlocks = 16; // that one statement adds up
  const int64_t ranks = axes[axis].size;
  auto compute = result.tensor.getDefiningOp<ComputeOp>();
  const Type type = cast<RankedTensorType>(result.tensor.getType()).getElementType();
  if (dim != 0 || kind != ReduceKind::Sum || !isa<FloatType>(type) || ranks < 2 ||
      ranks > mostBlocks || !compute || compute.getIndicesOf(0)[0] != 0)
    return false;
  BlockWork work(costs);
  const BlockArgument row = compute.getIndex(0);
  work.add(compute, [&](Value tensor) {
    return tensor == result.tensor || llvm::any_of(usesOf(compute), [&](const TensorUse &use) {
             return use.load.getTensor() == tensor && !use.subscripts.empty() &&
                    use.subscripts[0].index == row;
           });
  });
  const double bytes = bytesOf(result.tensor), count = static_cast<double>(ranks);
  const network::CollectiveTime transfer = costs.collective(Collective::Send, axis, bytes / count);
  double blocks = timeByRows(count, work.launch(count), transfer, costs.isHeld(transfer));
  const network::CollectiveTime copies = costs.exchange(axis, bytes);
  if (costs.isCopied(copies)) // behind the launch
    blocks = std::min(blocks, work.launch(1) + copies.total());
  blocks += costs.bytes(bytes - bytes / count); // that are read again to be added up
  return blocks < work.launch(1) + costs.timeOf(Collective::ReduceScatter, axis, bytes);
}

/// Sends each rank its block of the rows of a partial result, and adds up those that arrive, in the
/// order of the ranks.
void Placer::addBlocks(Placed &result, int axis) {
  Location loc = result.tensor.getLoc();
  auto compute = result.tensor.getDefiningOp<ComputeOp>();
  const std::string name = cast<StringAttr>(compute.getNames()[0]).getValue().str();
  Value share = shareOf(result.extents[0], axis);
  Value blocks = ExchangeOp::create(builder, loc, result.tensor.getType(), result.tensor, Value(),
                                    Value(), axes[axis].name);
  SmallVector<Value> extents;
  SmallVector<std::string> indices;
  for (auto [i, extent] : llvm::enumerate(result.extents)) {
    extents.push_back(shareOf(extent, result.sharding[i]));
    indices.push_back(cast<StringAttr>(compute.getIndexNames()[i]).getValue().str());
  }
  Type type = cast<RankedTensorType>(result.tensor.getType()).getElementType();
  const bool isWidened = type.getIntOrFloatBitWidth() < 32;
  Type sum = isWidened ? builder.getF32Type() : type;
  result.tensor =
      makeCompute(builder, loc, indices, extents, sum, name,
                  [&](OpBuilder &inner, Location at, ValueRange arguments) {
                    Value total;
                    for (int64_t block = 0; block < axes[axis].size; ++block) {
                      SmallVector<Value> position(arguments);
                      if (block > 0) {
                        Value number = arith::ConstantIndexOp::create(inner, at, block);
                        Value begin = arith::MulIOp::create(inner, at, share, number);
                        position[0] = arith::AddIOp::create(inner, at, position[0], begin);
                      }
                      Value term = LoadOp::create(inner, at, blocks, position, Value()).getResult();
                      if (isWidened)
                        term = arith::ExtFOp::create(inner, at, sum, term);
                      total =
                          total ? arith::AddFOp::create(inner, at, total, term).getResult() : term;
                    }
                    return total;
                  });
}

/// Combines the partial results of the ranks of an axis.
void Placer::combine(Placed &result, ReduceKind kind, StringRef of, int axis,
                     const Sharding &desired) {
  Location loc = result.tensor.getLoc();
  const auto *wanted = llvm::find(desired, axis);
  const std::string what =
      "the ranks of '" + axes[axis].name.str() + "' hold partial results of " + of.str() + ": ";
  // A dimension that another axis shards stays so.
  if (wanted == desired.end() || result.sharding[wanted - desired.begin()] != noShard) {
    result.tensor = AllReduceOp::create(builder, loc, kind, result.tensor, axes[axis].name);
    note(result.tensor.getDefiningOp(), passName, Verdict::Derived,
         what + "all-reduce, as this axis does not shard the result");
    return;
  }
  const unsigned dim = wanted - desired.begin();
  result.sharding[dim] = axis;
  shareOf(result.extents[dim], axis);
  if (sendsBlocks(result, kind, axis, dim)) {
    note(result.tensor.getDefiningOp(), passName, Verdict::Derived,
         what + "each rank gets its block of rows of each, and adds them up");
    return addBlocks(result, axis);
  }
  auto whole = cast<RankedTensorType>(result.tensor.getType());
  SmallVector<int64_t> shape(whole.getShape());
  if (!ShapedType::isDynamic(shape[dim]))
    shape[dim] /= axes[axis].size;
  auto type = RankedTensorType::get(shape, whole.getElementType());
  result.tensor = ReduceScatterOp::create(builder, loc, type, kind, result.tensor, axes[axis].name,
                                          static_cast<uint64_t>(dim));
  note(result.tensor.getDefiningOp(), passName, Verdict::Derived,
       what + "reduce-scatter, as dimension " + Twine(dim) +
           " of the result is sharded by this axis");
}

/// Combines what a reduction over indices that ranks divide leaves, in the type that the program
/// says. Those of the axis `kept` stay partial.
void Placer::combinePartials(Placed &placed, ComputeOp compute, ArrayRef<BlockArgument> carriers,
                             const Sharding &desired, int kept) {
  const auto isReduced = [&](size_t axis) {
    return carriers[axis] && static_cast<int>(axis) != kept &&
           carriers[axis].getOwner()->getParentOp() != compute.getOperation();
  };
  if (llvm::none_of(llvm::seq(carriers.size()), isReduced))
    return;
  ReduceOp reduction = soleReduction(compute);
  const Type own = cast<RankedTensorType>(placed.tensor.getType()).getElementType();
  auto wire = reduction->getAttrOfType<TypeAttr>(wireAttr);
  const bool isRounded = wire && isa<FloatType>(own) &&
                         wire.getValue().getIntOrFloatBitWidth() < own.getIntOrFloatBitWidth();
  const std::string name = cast<StringAttr>(compute.getNames()[0]).getValue().str();
  if (isRounded)
    convertElements(placed, wire.getValue(), name + ".wire");
  for (size_t axis = 0; axis < carriers.size(); ++axis)
    if (isReduced(axis))
      combine(placed, reduction.getKind(0), describe(reduction), axis, desired);
  convertElements(placed, own, name);
}

} // namespace tk::mesh
