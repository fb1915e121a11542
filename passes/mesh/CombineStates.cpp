//===- CombineStates.cpp - partial softmax states of several ranks --------===//
//
// 1. A state is lse_r[i], the logarithm of the rank's denominator, and o_r[i, e]. The states of all
//    ranks are gathered. If the axis shards the result, each rank receives its part of each state.
// 2. The states are combined in the order of the ranks:
//
//      lse[i]  = logsumexp over r of lse_r[i]
//      o[i, e] = sum over r of o_r[i, e] * exp(lse_r[i] - lse[i])
//
//===----------------------------------------------------------------------===//
#include "passes/mesh/Placer.h"

#include "passes/analysis/Notes.h"
#include "passes/mesh/LocalKernel.h"
#include "passes/mesh/WriteCompute.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace tk::mesh {

static constexpr llvm::StringLiteral passName = "tk-place-collectives";

/// `max == inf ? inf : max + log(sum)`.
static Value logOf(OpBuilder &b, Location loc, Value max, Value sum) {
  auto type = cast<FloatType>(max.getType());
  Value infinity = arith::ConstantOp::create(
      b, loc, b.getFloatAttr(type, APFloat::getInf(type.getFloatSemantics())));
  Value isInfinite = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, max, infinity);
  Value log = math::LogOp::create(b, loc, sum);
  Value total = arith::AddFOp::create(b, loc, max, log);
  return arith::SelectOp::create(b, loc, isInfinite, infinity, total);
}

static SmallVector<std::string> numbered(size_t count) {
  SmallVector<std::string> names;
  for (size_t i = 0; i < count; ++i)
    names.push_back("i" + std::to_string(i));
  return names;
}

void Placer::computeOwnLog(Softmax &softmax) {
  const Placed max = tensors[softmax.chain.max.getResult(0)];
  Placed sum = tensors[softmax.chain.sum.getResult(0)];
  const std::string name = cast<StringAttr>(softmax.chain.sum.getNames()[0]).getValue().str();
  if (sum.sharding != max.sharding)
    convert(sum, max.sharding, name);
  SmallVector<Value> extents;
  for (auto [extent, axis] : llvm::zip(max.extents, max.sharding))
    extents.push_back(shareOf(extent, axis));
  softmax.own = max;
  softmax.own.tensor =
      makeCompute(builder, max.tensor.getLoc(), numbered(extents.size()), extents,
                  cast<RankedTensorType>(max.tensor.getType()).getElementType(), name + ".log",
                  [&](OpBuilder &b, Location at, ValueRange position) {
                    Value most = LoadOp::create(b, at, max.tensor, position, Value()).getResult();
                    Value total = LoadOp::create(b, at, sum.tensor, position, Value()).getResult();
                    return logOf(b, at, most, total);
                  });
}

/// The tensors of all ranks of an axis, one below the other: whole ones, or if `dim` is one of
/// their dimensions this rank's part along it.
Value Placer::stackBlocks(const Placed &own, int axis, int dim, Location loc) {
  Placed first = own;
  first.sharding[0] = axis;
  Value made;
  if (dim == noShard)
    made = allGather(loc, first, 0);
  else if (dim == 0)
    made = ExchangeOp::create(builder, loc, own.tensor.getType(), own.tensor, Value(), Value(),
                              axes[axis].name);
  else
    made = allToAll(loc, first, 0, dim);
  if (dim == 0) {
    shareOf(own.extents[0], axis);                                      // has to be divisible
    made.getDefiningOp()->setAttr(togetherAttr, builder.getUnitAttr()); // attention is one launch
  }
  note(made.getDefiningOp(), passName, Verdict::Derived,
       "the ranks of '" + axes[axis].name.str() + "' send each other their partial softmax states" +
           (dim == noShard ? "" : ", each the part of its own queries"));
  return made;
}

/// The part of each rank at a position of what stackBlocks made; `rows` are those of a part.
static SmallVector<Value> loadBlocks(OpBuilder &b, Location loc, Value stacked, Value rows,
                                     ValueRange position, int64_t ranks) {
  SmallVector<Value> parts;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    SmallVector<Value> own(position);
    if (rank > 0) {
      Value begin = arith::MulIOp::create(b, loc, rows, indexOf(b, loc, rank));
      own[0] = arith::AddIOp::create(b, loc, own[0], begin);
    }
    parts.push_back(LoadOp::create(b, loc, stacked, own, Value()).getResult());
  }
  return parts;
}

/// The logarithms of all ranks' denominators and of the whole one, sharded along a dimension.
const std::pair<Value, Placer::Placed> &Placer::combinedLog(Softmax &softmax, int dim) {
  auto [known, isNew] = softmax.combined.try_emplace(dim);
  auto &[stacked, total] = known->second;
  if (!isNew)
    return known->second;
  if (!softmax.own.tensor)
    computeOwnLog(softmax);
  const Placed &own = softmax.own;
  Location loc = own.tensor.getLoc();
  stacked = stackBlocks(own, softmax.axis, dim, loc);
  total = own;
  if (dim != noShard)
    total.sharding[dim] = softmax.axis;
  SmallVector<Value> extents;
  for (auto [extent, axis] : llvm::zip(total.extents, total.sharding))
    extents.push_back(shareOf(extent, axis));
  const std::string name =
      cast<StringAttr>(softmax.chain.weights[0].getNames()[0]).getValue().str() + ".lse";
  Value all = stacked;
  total.tensor =
      makeCompute(builder, loc, numbered(extents.size()), extents,
                  cast<RankedTensorType>(own.tensor.getType()).getElementType(), name,
                  [&](OpBuilder &b, Location at, ValueRange position) {
                    const SmallVector<Value> logs =
                        loadBlocks(b, at, all, extents[0], position, axes[softmax.axis].size);
                    Value most = logs[0], sum;
                    for (Value log : llvm::drop_begin(logs))
                      most = arith::MaximumFOp::create(b, at, most, log);
                    for (Value log : logs) {
                      Value term = ExpDiffOp::create(b, at, log.getType(), log, most).getResult();
                      sum = sum ? arith::AddFOp::create(b, at, sum, term).getResult() : term;
                    }
                    return logOf(b, at, most, sum);
                  });
  return known->second;
}

/// Places `logsumexp` of the logits of a softmax whose states the ranks combine.
bool Placer::placeLog(ComputeOp compute) {
  Softmax *softmax = softmaxOf.lookup(compute);
  if (!softmax || !llvm::is_contained(softmax->chain.logs, compute))
    return false;
  decide(*softmax);
  if (softmax->axis == noShard)
    return false;
  for (ComputeOp row : {softmax->chain.max, softmax->chain.sum})
    if (!tensors.contains(row.getResult(0)))
      place(row);
  bool ignored = false;
  const Sharding desired = desiredOf(compute.getResult(0), ignored);
  const auto *dim = llvm::find(desired, softmax->axis);
  const Sharding &own = tensors[softmax->chain.max.getResult(0)].sharding;
  const bool isSharded = dim != desired.end() && own[dim - desired.begin()] == noShard;
  tensors[compute.getResult(0)] =
      combinedLog(*softmax, isSharded ? static_cast<int>(dim - desired.begin()) : noShard).second;
  return true;
}

/// The dimension of a row's tensors, which lack the key, at which an index of a sum stands.
static int dimOfRow(const SoftmaxChain &chain, ArrayRef<int> indexOf, unsigned index) {
  const auto *found = llvm::find(indexOf, static_cast<int>(index));
  if (found == indexOf.end())
    return noShard;
  const auto dim = static_cast<unsigned>(found - indexOf.begin());
  return static_cast<int>(dim > chain.key ? dim - 1 : dim);
}

static Value asFloat(OpBuilder &b, Location loc, Value value, Type type) {
  const unsigned from = value.getType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
  if (from < to)
    return arith::ExtFOp::create(b, loc, type, value);
  return from > to ? arith::TruncFOp::create(b, loc, type, value).getResult() : value;
}

/// Combines what the ranks have of a sum by weights; maxima and denominators stay what they are.
void Placer::combineStates(Softmax &softmax, Placed &placed, ComputeOp compute,
                           const Sharding &desired) {
  const SoftmaxChain &chain = softmax.chain;
  const auto *sum =
      llvm::find_if(chain.sums, [&](const auto &own) { return own.compute == compute; });
  if (sum == chain.sums.end())
    return;
  const int axis = softmax.axis;
  const int64_t ranks = axes[axis].size;
  Location loc = compute.getLoc();
  const Type own = cast<RankedTensorType>(placed.tensor.getType()).getElementType();
  const std::string name = cast<StringAttr>(compute.getNames()[0]).getValue().str();
  ReduceOp reduce = sum->reduce;
  if (auto wire = reduce->getAttrOfType<TypeAttr>(wireAttr);
      wire && wire.getValue().getIntOrFloatBitWidth() < own.getIntOrFloatBitWidth())
    convertElements(placed, wire.getValue(), name + ".wire");
  const auto *wanted = llvm::find(desired, axis);
  const bool isSharded =
      wanted != desired.end() && placed.sharding[wanted - desired.begin()] == noShard;
  const int dim = isSharded ? static_cast<int>(wanted - desired.begin()) : noShard;
  const unsigned index = isSharded ? compute.getIndicesOf(0)[dim] : 0;
  Value stacked = stackBlocks(placed, axis, dim, loc);
  const auto &[logs, total] =
      combinedLog(softmax, isSharded ? dimOfRow(chain, sum->indexOf, index) : noShard);
  if (isSharded)
    placed.sharding[dim] = axis;
  SmallVector<Value> extents, logExtents;
  for (auto [extent, at] : llvm::zip(placed.extents, placed.sharding))
    extents.push_back(shareOf(extent, at));
  for (auto [extent, at] : llvm::zip(total.extents, total.sharding))
    logExtents.push_back(shareOf(extent, at));
  const Type logType = cast<RankedTensorType>(total.tensor.getType()).getElementType();
  Value all = stacked, allLogs = logs, lse = total.tensor;
  SmallVector<unsigned> row; // the indices at the dimensions of the logarithms
  for (auto [d, number] : llvm::enumerate(sum->indexOf))
    if (d != chain.key)
      row.push_back(number);
  placed.tensor = makeCompute(
      builder, loc, numbered(extents.size()), extents, own, name,
      [&](OpBuilder &b, Location at, ValueRange position) {
        SmallVector<Value> place;
        for (unsigned number : row) // results have the order of the indices
          place.push_back(position[number]);
        const SmallVector<Value> parts = loadBlocks(b, at, all, extents[0], position, ranks);
        const SmallVector<Value> scales = loadBlocks(b, at, allLogs, logExtents[0], place, ranks);
        Value whole = LoadOp::create(b, at, lse, place, Value()).getResult(), result;
        for (auto [part, log] : llvm::zip(parts, scales)) {
          Value scale = ExpDiffOp::create(b, at, logType, log, whole).getResult();
          Value term =
              arith::MulFOp::create(b, at, asFloat(b, at, part, own), asFloat(b, at, scale, own));
          result = result ? arith::AddFOp::create(b, at, result, term).getResult() : term;
        }
        return result;
      });
}

} // namespace tk::mesh
