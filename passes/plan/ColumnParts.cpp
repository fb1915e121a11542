//===- ColumnParts.cpp - partial results of columns, and their readers ----===//
#include "passes/plan/ColumnParts.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/StoredReductions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace tk;

/// Is `count` the number of parts of `length` that `range` has?
static bool countsParts(Value count, Value range, Value length) {
  auto quotient = count.getDefiningOp<FloorDivOp>();
  auto padded = quotient ? quotient.getLhs().getDefiningOp<arith::AddIOp>() : arith::AddIOp();
  std::optional<int64_t> size = getConstantIntValue(length);
  if (!padded || !size || getConstantIntValue(quotient.getRhs()) != size ||
      getConstantIntValue(padded.getRhs()) != *size - 1)
    return false;
  Value counted = padded.getLhs();
  if (auto atLeast = counted.getDefiningOp<arith::MaxSIOp>();
      atLeast && matchPattern(atLeast.getRhs(), m_Zero()))
    counted = atLeast.getLhs();
  return counted == range;
}

/// Finds which index of the statement counts the parts that `reduce` takes in, one each, of the
/// range from 0 to `range`; all of its other indices run over whole ranges.
static bool matchPart(ReduceOp reduce, ComputeOp compute, unsigned &chunk, Value &range) {
  unsigned divided = 0;
  for (unsigned n = 0; n < reduce.getNumIndices(); ++n) {
    if (matchPattern(reduce.getLower()[n], m_Zero()) &&
        isKernelLevel(reduce.getUpper()[n], compute))
      continue;
    auto first = reduce.getLower()[n].getDefiningOp<arith::MulIOp>();
    auto end = reduce.getUpper()[n].getDefiningOp<arith::MinSIOp>();
    auto sum = end ? end.getLhs().getDefiningOp<arith::AddIOp>() : arith::AddIOp();
    auto number = first ? dyn_cast<BlockArgument>(first.getLhs()) : BlockArgument();
    if (!sum || !number || number.getOwner() != compute.getBlock() || sum.getLhs() != first ||
        sum.getRhs() != first.getRhs() ||
        !countsParts(compute.getExtents()[number.getArgNumber()], end.getRhs(), first.getRhs()))
      return false;
    chunk = number.getArgNumber();
    range = end.getRhs();
    ++divided;
  }
  return divided == 1;
}

static bool isPlain(ReduceKind kind) {
  return kind == ReduceKind::Sum || kind == ReduceKind::Max || kind == ReduceKind::Min;
}

/// The reduction of which result `r` of the statement is the accumulator that stands alone.
std::optional<std::pair<ReduceOp, unsigned>> tk::reductionOf(ComputeOp compute, unsigned r) {
  auto value = dyn_cast<OpResult>(compute.getYield().getValues()[r]);
  auto reduce = value ? dyn_cast<ReduceOp>(value.getOwner()) : ReduceOp();
  if (!reduce || reduce->getBlock() != compute.getBlock() || !value.getType().isF32() ||
      !isPlain(reduce.getKind(value.getResultNumber())) ||
      !reduce.standsAlone(value.getResultNumber()))
    return std::nullopt;
  return std::pair(reduce, value.getResultNumber());
}

/// `compute` as partial results of parts of one range.
std::optional<ColumnParts> tk::matchParts(ComputeOp compute) {
  ColumnParts found;
  found.parts = compute;
  for (unsigned r = 0; r < compute.getNumResults(); ++r) {
    auto reduction = reductionOf(compute, r);
    unsigned chunk;
    Value range;
    if (!reduction || compute.getIndicesOf(r).size() != compute.getNumIndices() ||
        !matchPart(reduction->first, compute, chunk, range) ||
        (r > 0 && (chunk != found.chunk || range != found.range)))
      return std::nullopt;
    found.chunk = chunk;
    found.range = range;
  }
  return found;
}

/// The end of the range of an index of a statement or a reduction, or of what it is a part of.
static Value rangeOf(BlockArgument index, const ColumnParts &found) {
  Operation *parent = index.getOwner()->getParentOp();
  if (auto compute = dyn_cast<ComputeOp>(parent))
    return compute.getExtents()[index.getArgNumber()];
  auto reduce = dyn_cast<ReduceOp>(parent);
  if (!reduce || index.getArgNumber() >= reduce.getNumIndices())
    return {};
  return matchPattern(reduce.getLower()[index.getArgNumber()], m_Zero())
             ? reduce.getUpper()[index.getArgNumber()]
             : found.range;
}

/// The position among the owner's indices of what stands in one of its loads: its own index, or
/// that of a reduction over as much.
static std::optional<unsigned> positionIn(ComputeOp owner, Value index) {
  auto argument = dyn_cast<BlockArgument>(index);
  if (!argument)
    return std::nullopt;
  if (argument.getOwner() == owner.getBlock())
    return argument.getArgNumber();
  auto reduce = dyn_cast<ReduceOp>(argument.getOwner()->getParentOp());
  for (unsigned p = owner.getNumIndices(); reduce && p-- > 0;)
    if (argument.getArgNumber() < reduce.getNumIndices() &&
        rangesOver(reduce, argument.getArgNumber(), owner.getExtents()[p]))
      return p;
  return std::nullopt;
}

/// Takes the indices of a load of the parts for those at which the owner has the same element, if
/// they can be.
static bool identify(ColumnParts &found, ValueRange indices, ArrayRef<unsigned> positions) {
  llvm::DenseMap<Value, unsigned> places = found.places;
  for (auto [index, position] : llvm::zip_equal(indices, positions)) {
    auto argument = dyn_cast<BlockArgument>(index);
    Value range = argument ? rangeOf(argument, found) : Value();
    if (!range || !isSameExtent(range, found.owner.getExtents()[position]))
      return false;
    auto [known, isNew] = places.try_emplace(index, position);
    if (!isNew && known->second != position)
      return false;
  }
  found.places = std::move(places);
  return true;
}

/// Does the owner read or store the element that `load` reads? Takes its indices for the owner's.
static bool hasElement(ColumnParts &found, LoadOp load) {
  ComputeOp owner = found.owner;
  if (load.getPad())
    return false;
  if (auto stored = dyn_cast<OpResult>(load.getTensor()); stored && stored.getOwner() == owner)
    return identify(found, load.getIndices(), owner.getIndicesOf(stored.getResultNumber()));
  return owner
      .walk([&](LoadOp own) {
        if (own.getTensor() != load.getTensor() || own.getPad())
          return WalkResult::advance();
        SmallVector<unsigned> positions;
        for (Value index : own.getIndices())
          if (std::optional<unsigned> position = positionIn(owner, index))
            positions.push_back(*position);
        return positions.size() == load.getIndices().size() &&
                       identify(found, load.getIndices(), positions)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Does a result replace the parameter?
static bool isReplaced(BlockArgument param) {
  auto kernel = cast<KernelOp>(param.getOwner()->getParentOp());
  return bool(kernel.getParam(param.getArgNumber() - kernel.getNumDims()).getInout());
}

/// Is each term of the parts computed from what the owner has, and from what is read once for many
/// elements? Indices of different reductions that stand for one of the owner's are all found then.
bool tk::matchTerms(ColumnParts &found) {
  ComputeOp parts = found.parts, owner = found.owner;
  SmallVector<LoadOp> loads;
  WalkResult walked = parts.walk([&](Operation *op) {
    if (op != parts && op->getNumRegions() && !isa<ReduceOp>(op))
      return WalkResult::interrupt();
    if (isa<ReduceOp>(op) && op->getBlock() != parts.getBlock())
      return WalkResult::interrupt();
    if (auto load = dyn_cast<LoadOp>(op))
      loads.push_back(load);
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return false;
  // Loads of whole elements say which index is which.
  for (LoadOp load : loads)
    if (load.getIndices().size() == owner.getNumIndices() && hasElement(found, load))
      found.savedBits += load.getResult().getType().getIntOrFloatBitWidth();
  SmallVector<Value> indices;
  for (BlockArgument index : parts.getBlock()->getArguments())
    if (index.getArgNumber() != found.chunk)
      indices.push_back(index);
  for (ReduceOp reduce : parts.getBlock()->getOps<ReduceOp>()) {
    for (unsigned n = 0; n < reduce.getNumIndices(); ++n)
      indices.push_back(reduce.getIndex(n));
    // Each of the owner's indices once: of the statement or of this reduction.
    if (reduce.getNumIndices() + parts.getNumIndices() - 1 != owner.getNumIndices())
      return false;
  }
  llvm::SmallDenseSet<unsigned> ofStatement;
  for (Value index : indices) {
    auto place = found.places.find(index);
    if (place == found.places.end())
      return false;
    auto argument = cast<BlockArgument>(index);
    if (argument.getOwner() == parts.getBlock() && !ofStatement.insert(place->second).second)
      return false;
  }
  for (ReduceOp reduce : parts.getBlock()->getOps<ReduceOp>()) {
    llvm::SmallDenseSet<unsigned> all = ofStatement;
    for (unsigned n = 0; n < reduce.getNumIndices(); ++n)
      if (!all.insert(found.places.lookup(reduce.getIndex(n))).second)
        return false;
  }
  // What is read of each element, and the owner does not have, is read as before.
  Dependence onPart(ValueRange{parts.getIndex(found.chunk)});
  for (LoadOp load : loads) {
    Operation *tensor = load.getTensor().getDefiningOp();
    if (llvm::any_of(load.getIndices(), [&](Value index) { return onPart.on(index); }))
      return false;
    auto param = dyn_cast<BlockArgument>(load.getTensor());
    if (param && isReplaced(param) && !hasElement(found, load))
      return false;
    if (tensor == owner ? !hasElement(found, load) : tensor && !tensor->isBeforeInBlock(owner))
      return false;
  }
  for (Operation &op : *parts.getBlock())
    if (auto reduce = dyn_cast<ReduceOp>(op))
      for (Operation &term : *reduce.getBlock())
        for (Value operand : term.getOperands())
          if (operand.getParentBlock() == parts.getBlock() && onPart.on(operand))
            return false;
  return found.savedBits > 0;
}

/// Are all readers of the parts reductions of the same kinds over all of them, which can come
/// behind the owner?
bool tk::matchReaders(const ColumnParts &found) {
  ComputeOp parts = found.parts, owner = found.owner;
  Dependence onParts(parts->getResults());
  if (llvm::any_of(getInputs(owner), [&](Value input) { return onParts.on(input); }))
    return false;
  auto kernel = owner->getParentOfType<KernelOp>();
  bool hasInout = false;
  for (unsigned i = 0; i < kernel.getParamArguments().size(); ++i)
    hasInout |= bool(kernel.getParam(i).getInout());
  for (OpResult result : parts->getResults())
    for (Operation *user : result.getUsers()) {
      auto load = dyn_cast<LoadOp>(user);
      auto reduce = load ? dyn_cast<ReduceOp>(load->getParentOp()) : ReduceOp();
      std::optional<StoredReduction> read =
          reduce ? matchStoredReduction(reduce) : std::optional<StoredReduction>();
      if (!read || read->stored != result || reduce.isOnline() ||
          read->reduced != ArrayRef<unsigned>(found.chunk) ||
          reduce.getYield().getValues()[0] != load.getResult())
        return false;
      auto [own, k] = *reductionOf(parts, result.getResultNumber());
      auto reader = reduce->getParentOfType<ComputeOp>();
      // What replaces a parameter comes behind all that reads it.
      if (reduce.getKind(0) != own.getKind(k) || (hasInout && !owner->isBeforeInBlock(reader)))
        return false;
    }
  return true;
}

bool tk::findCounted(ColumnParts &found) {
  std::optional<unsigned> counted;
  ComputeOp parts = found.parts;
  for (ReduceOp reduce : parts.getBlock()->getOps<ReduceOp>())
    for (unsigned n = 0; n < reduce.getNumIndices(); ++n) {
      if (matchPattern(reduce.getLower()[n], m_Zero()))
        continue;
      const unsigned place = found.places.lookup(reduce.getIndex(n));
      if (counted.value_or(place) != place)
        return false;
      counted = place;
    }
  found.counted = counted.value_or(0);
  return found.counted == 0 || found.owner.getNumIndices() > 2;
}
