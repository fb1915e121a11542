//===- PlaceSoftmax.cpp - softmaxes over keys that ranks share ------------===//
//
//   p[i, j] = softmax[j](x[i, j]),   o[i, e] = sum[j](p[i, j] * v[j @ cp, e])
//
// 1. If an axis shards the keys j, the statements from the logits to the sums are placed together,
//    in the way of least predicted time:
//
//      states       each rank computes all of it for its own keys, as if there were no others, and
//                   the ranks send each other the results: the partial softmax states
//      gather keys  each rank gathers the keys, and computes its own queries
//      repeat       each rank gathers the keys, and computes all, if no queries are sharded
//
// 2. A state is lse_r[i], the logarithm of the rank's denominator, and o_r[i, e]. The states of all
//    ranks are gathered. If the axis shards the result, each rank receives its part of each state.
// 3. The states are combined in the order of the ranks:
//
//      lse[i]  = logsumexp over r of lse_r[i]
//      o[i, e] = sum over r of o_r[i, e] * exp(lse_r[i] - lse[i])
//
//===----------------------------------------------------------------------===//
#include "passes/mesh/Placer.h"

#include "passes/analysis/Notes.h"
#include "passes/machine/CostModel.h"
#include "passes/mesh/LocalKernel.h"
#include "passes/mesh/SeparatePartials.h"
#include "passes/mesh/WriteCompute.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace mlir;
using tk::network::Collective;

namespace tk::mesh {

static constexpr llvm::StringLiteral passName = "tk-place-collectives";
static constexpr int64_t mostStates = 16; // that one statement combines

void Placer::findSoftmaxes() {
  if (llvm::none_of(axes, [](const MeshAxisInfo &axis) { return axis.size > 1; }))
    return;
  for (SoftmaxChain &chain : findSoftmaxChains(kernel)) {
    auto softmax = std::make_unique<Softmax>();
    softmax->chain = std::move(chain);
    const SoftmaxChain &own = softmax->chain;
    auto add = [&](ComputeOp compute) { softmaxOf.try_emplace(compute, softmax.get()); };
    for (const SoftmaxChain::Member &producer : own.producers)
      add(producer.compute);
    for (ComputeOp compute : {own.max, own.sum})
      add(compute);
    llvm::for_each(own.weights, add);
    llvm::for_each(own.logs, add);
    for (const SoftmaxChain::WeightedSum &sum : own.sums)
      add(sum.compute);
    softmaxes.push_back(std::move(softmax));
  }
}

void Placer::decide(Softmax &softmax) {
  if (std::exchange(softmax.isDecided, true))
    return;
  for (size_t axis = 0; axis < axes.size(); ++axis)
    if (axes[axis].size > 1 && sharesKeys(softmax.chain, static_cast<int>(axis)))
      return decideFor(softmax, static_cast<int>(axis));
}

/// The index of a member of a chain that stands at a dimension of the logits; null: none does.
static BlockArgument indexAt(const SoftmaxChain::Member &member, int dim) {
  ComputeOp compute = member.compute;
  const int number = dim == noShard ? -1 : member.indexOf[dim];
  return number < 0 ? BlockArgument() : compute.getIndex(number);
}

/// Whether the axis shards the keys of an operand, and no other one does.
bool Placer::sharesKeys(const SoftmaxChain &chain, int axis) const {
  bool isShared = false, isOther = false;
  auto look = [&](ComputeOp compute, BlockArgument key) {
    for (const TensorUse &use : usesOf(compute)) {
      const auto placed = tensors.find(use.load.getTensor());
      if (placed == tensors.end() || !key)
        continue;
      for (auto [own, subscript] : llvm::zip(placed->second.sharding, use.subscripts))
        if (own != noShard && subscript.index == key)
          (own == axis ? isShared : isOther) = true;
    }
  };
  for (const SoftmaxChain::Member &producer : chain.producers)
    look(producer.compute, indexAt(producer, static_cast<int>(chain.key)));
  for (const SoftmaxChain::WeightedSum &sum : chain.sums)
    look(sum.compute, sum.reduce.getIndex(0));
  ReduceOp most = soleReduction(ComputeOp(chain.max));
  look(chain.max, most.getIndex(0));
  return isShared && !isOther;
}

/// The dimension of the logits whose index the axis shards in the results of the sums.
int Placer::queryOf(const SoftmaxChain &chain, int axis) {
  for (const SoftmaxChain::WeightedSum &sum : chain.sums) {
    ComputeOp compute = sum.compute;
    bool ignored = false;
    const Sharding desired = desiredOf(compute.getResult(0), ignored);
    const auto *dim = llvm::find(desired, axis);
    if (dim == desired.end())
      continue;
    const auto index = static_cast<int>(compute.getIndicesOf(0)[dim - desired.begin()]);
    const auto *found = llvm::find(sum.indexOf, index);
    if (found != sum.indexOf.end())
      return static_cast<int>(found - sum.indexOf.begin());
  }
  return noShard;
}

/// The time of bringing operands to where the axis divides a dimension of the logits.
double Placer::timeOfOperands(const SoftmaxChain &chain, int axis, int dim) {
  double time = 0;
  std::set<std::pair<void *, Movement>> seen;
  auto add = [&](ComputeOp compute, BlockArgument index) {
    for (const TensorUse &use : usesOf(compute)) {
      Value tensor = use.load.getTensor();
      const auto placed = tensors.find(tensor);
      if (placed == tensors.end()) // a member's, which is where it is needed
        continue;
      const Movement movement = movementOf(use, placed->second.sharding, axis, index);
      if (movement != Movement::none && seen.insert({tensor.getAsOpaquePointer(), movement}).second)
        time += costs.timeOf(movement == Movement::allGather ? Collective::AllGather
                                                             : Collective::AllToAll,
                             axis, bytesOf(tensor));
    }
  };
  for (const SoftmaxChain::Member &producer : chain.producers)
    add(producer.compute, indexAt(producer, dim));
  for (const SoftmaxChain::WeightedSum &sum : chain.sums)
    add(sum.compute,
        dim == static_cast<int>(chain.key) ? sum.reduce.getIndex(0) : indexAt(sum, dim));
  return time;
}

Placer::SoftmaxOption Placer::chooseOption(const SoftmaxChain &chain, int axis, int query,
                                           std::string &times) {
  using Kind = SoftmaxOption::Kind;
  const auto ranks = static_cast<double>(axes[axis].size);
  double work = 0, state = bytesOf(chain.max->getResult(0));
  for (const SoftmaxChain::Member &producer : chain.producers)
    work += timeOfWork(producer.compute, costs);
  for (const SoftmaxChain::WeightedSum &sum : chain.sums) {
    work += timeOfWork(sum.compute, costs);
    auto wire = sum.reduce->getAttrOfType<TypeAttr>(wireAttr);
    const SmallVector<Value> extents = extentsOf(sum.compute->getResult(0));
    state += bytesOf(extents, wire ? wire.getValue() : sum.reduce->getResult(0).getType());
  }
  const Collective moved = query == noShard ? Collective::AllGather : Collective::AllToAll;
  const double arrives = query == noShard ? state * ranks : state;
  const double states = timeOfOperands(chain, axis, static_cast<int>(chain.key)) + work / ranks +
                        costs.timeOf(moved, axis, state * ranks) + cost::launch +
                        costs.bytes(arrives);
  SoftmaxOption keys{query == noShard ? Kind::repeat : Kind::gatherKeys,
                     timeOfOperands(chain, axis, query) + (query == noShard ? work : work / ranks)};
  times = llvm::formatv("{0:F1} us are predicted for partial softmax states, {1:F1} us with the "
                        "keys gathered",
                        states * 1e-3, keys.time * 1e-3)
              .str();
  if (axes[axis].size > mostStates || keys.time <= states)
    return keys;
  return {Kind::states, states};
}

/// Has the axis divide, in each statement of the chain, what stands at a dimension of the logits.
void Placer::force(Softmax &softmax, int axis, int dim) {
  SoftmaxChain &chain = softmax.chain;
  const bool isKey = dim == static_cast<int>(chain.key);
  for (const SoftmaxChain::Member &producer : chain.producers)
    forced[{producer.compute, axis}] = indexAt(producer, dim);
  for (SoftmaxChain::WeightedSum &sum : chain.sums)
    forced[{sum.compute, axis}] = isKey ? sum.reduce.getIndex(0) : indexAt(sum, dim);
  for (ComputeOp weight : chain.weights)
    forced[{weight, axis}] = dim == noShard ? BlockArgument() : weight.getIndex(dim);
  for (ComputeOp row : {chain.max, chain.sum}) {
    const int below = dim > static_cast<int>(chain.key) ? dim - 1 : dim;
    forced[{row, axis}] = isKey            ? soleReduction(row).getIndex(0)
                          : dim == noShard ? BlockArgument()
                                           : row.getIndex(below);
  }
}

void Placer::decideFor(Softmax &softmax, int axis) {
  using Kind = SoftmaxOption::Kind;
  const int query = queryOf(softmax.chain, axis);
  std::string times;
  const SoftmaxOption option = chooseOption(softmax.chain, axis, query, times);
  const char *how = option.kind == Kind::states
                        ? "each rank computes the partial softmax state of its own keys"
                    : option.kind == Kind::gatherKeys ? "each rank gathers the keys for its queries"
                                                      : "each rank gathers the keys";
  softmax.why = std::string(how) + " (" + times + ")";
  if (option.kind == Kind::states) {
    separateSums(softmax);
    softmax.axis = axis;
  }
  force(softmax, axis, option.kind == Kind::states ? static_cast<int>(softmax.chain.key) : query);
}

/// Gives each sum that a statement combines with other work a statement of its own.
void Placer::separateSums(Softmax &softmax) {
  for (SoftmaxChain::WeightedSum &sum : softmax.chain.sums) {
    ComputeOp reader = sum.compute;
    if (soleReduction(reader) == sum.reduce)
      continue;
    softmaxOf.erase(reader);
    sum.compute = separate(sum.reduce, "sum", reader);
    sum.reduce = soleReduction(sum.compute);
    sum.indexOf = indicesOfWeights(softmax.chain, sum.reduce, sum.compute);
    softmaxOf[sum.compute] = &softmax;
    separated[reader].push_back(sum.compute);
  }
}

/// The softmax of which a compute op is placed as partial states; null if there is none.
Placer::Softmax *Placer::stateOf(ComputeOp compute) {
  Softmax *softmax = softmaxOf.lookup(compute);
  if (!softmax || softmax->axis == noShard)
    return nullptr;
  const SoftmaxChain &chain = softmax->chain;
  const bool isPartial =
      compute == chain.max || compute == chain.sum ||
      llvm::any_of(chain.sums, [&](const auto &sum) { return sum.compute == compute; });
  return isPartial ? softmax : nullptr;
}

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
