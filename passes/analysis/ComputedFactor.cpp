//===- ComputedFactor.cpp - a computed operand as a compute op of its own -===//
#include "passes/analysis/ComputedFactor.h"

#include "passes/analysis/EqualComputes.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/TileFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;

double tk::guessSize(KernelOp kernel, Value extent) {
  std::optional<int64_t> upper = getSizeFact(kernel, extent).upper;
  return static_cast<double>(std::max<int64_t>(upper.value_or(assumedExtent), 1));
}

static std::string nameOf(ArrayAttr names, unsigned position) {
  return cast<StringAttr>(names[position]).getValue().str();
}

Value tk::wholeExtent(ReduceOp reduce, unsigned position, ComputeOp compute) {
  Value lower = reduce.getLower()[position], upper = reduce.getUpper()[position];
  while (auto greatest = lower.getDefiningOp<arith::MaxSIOp>())
    lower = isConstantIntValue(greatest.getRhs(), 0) ? greatest.getRhs() : greatest.getLhs();
  while (auto least = upper.getDefiningOp<arith::MinSIOp>())
    upper = getConstantIntValue(least.getRhs()) ? least.getRhs() : least.getLhs();
  Operation *op = upper.getDefiningOp();
  bool isOutside = op ? !compute->isProperAncestor(op)
                      : !compute->isAncestor(cast<BlockArgument>(upper).getOwner()->getParentOp());
  return isOutside && isConstantIntValue(lower, 0) ? upper : Value();
}

/// What an axis that is read at `index` is called.
static std::string axisName(ComputeOp compute, ReduceOp reduce, Value index, unsigned axis) {
  auto argument = dyn_cast<BlockArgument>(index);
  if (!argument)
    return "at" + std::to_string(axis);
  bool isOfStatement = argument.getOwner() == compute.getBlock();
  return nameOf(isOfStatement ? compute.getIndexNames() : reduce.getIndexNames(),
                argument.getArgNumber());
}

Value tk::storePermuted(LoadOp factor, ComputeOp compute, ReduceOp reduce,
                        ArrayRef<unsigned> axes) {
  OpBuilder builder(compute);
  SmallVector<Value> all = getExtents(compute->getParentOfType<KernelOp>(), factor.getTensor());
  SmallVector<Value> extents;
  SmallVector<std::string> texts;
  for (unsigned axis : axes) {
    extents.push_back(all[axis]);
    texts.push_back(axisName(compute, reduce, factor.getIndices()[axis], axis));
  }
  SmallVector<StringRef> names(texts.begin(), texts.end());
  std::string name = nameOf(compute.getNames(), 0) + ".turned";
  auto stored =
      ComputeOp::create(builder, factor.getLoc(), names, extents, ArrayRef<Type>{factor.getType()},
                        ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{},
                        [&](OpBuilder &body, Location loc, ValueRange places) {
                          SmallVector<Value> from(places.size());
                          for (auto [place, axis] : llvm::zip_equal(places, axes))
                            from[axis] = place;
                          Value element =
                              LoadOp::create(body, loc, factor.getTensor(), from, Value());
                          YieldOp::create(body, loc, element);
                        });
  return stored->getResult(0);
}

//===----------------------------------------------------------------------===//
// What a factor is over
//===----------------------------------------------------------------------===//

bool ComputedFactor::addBare(BlockArgument index) {
  Operation *owner = index.getOwner()->getParentOp();
  unsigned position = index.getArgNumber();
  if (owner == compute) {
    if (bare.insert(index))
      leaves.push_back(
          {index, compute.getExtents()[position], nameOf(compute.getIndexNames(), position)});
    return true;
  }
  auto around = dyn_cast<ReduceOp>(owner);
  if (!around || (around != outer && around != reduce) || position >= around.getNumIndices())
    return false;
  Value extent = wholeExtent(around, position, compute);
  if (extent && bare.insert(index))
    leaves.push_back({index, extent, nameOf(around.getIndexNames(), position)});
  return extent != nullptr;
}

/// Does an index follow from those of the statement by arithmetic alone?
bool ComputedFactor::isGroup(Value index) {
  SmallVector<Value> work = {index};
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (compute->isAncestor(argument.getOwner()->getParentOp()) &&
          argument.getOwner() != compute.getBlock())
        return false;
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (!compute->isProperAncestor(op))
      continue;
    if (isa<LoadOp>(op) || op->getNumRegions() > 0)
      return false;
    llvm::append_range(work, op->getOperands());
  }
  return true;
}

bool ComputedFactor::visitIndex(LoadOp load, unsigned axis) {
  Value index = load.getIndices()[axis];
  SmallVector<BlockArgument> over = getIterationIndices(index);
  if (isa<BlockArgument>(index) || over.empty() || load.getPad() || !isGroup(index))
    return visit(index);
  SmallVector<Value> extents = getExtents(kernel, load.getTensor());
  if (extents.empty())
    return visit(index);
  groups.insert({index, {index, extents[axis], "at" + std::to_string(axis)}});
  return true;
}

bool ComputedFactor::visit(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (!compute->isAncestor(argument.getOwner()->getParentOp()))
      return true;
    return addBare(argument);
  }
  Operation *op = value.getDefiningOp();
  if (!compute->isProperAncestor(op) || !visited.insert(value).second)
    return true;
  if (auto load = dyn_cast<LoadOp>(op)) {
    if (!widest || load.getIndices().size() > widest.getIndices().size())
      widest = load;
    for (unsigned axis = 0; axis < load.getIndices().size(); ++axis)
      if (!visitIndex(load, axis))
        return false;
    return !load.getPad() || visit(load.getPad());
  }
  return llvm::all_of(getInputs(op), [&](Value input) { return visit(input); });
}

/// As the widest of what is loaded lies, and the sum's innermost index last.
void ComputedFactor::orderLeaves() {
  for (auto [n, leaf] : llvm::enumerate(leaves)) {
    auto at = llvm::find(widest.getIndices(), leaf.index);
    // What it is not over comes before, in the order of the statement.
    leaf.rank = at - widest.getIndices().begin();
    if (leaf.index == reduce.getIndex(reduce.getNumIndices() - 1))
      leaf.rank = std::numeric_limits<int64_t>::max();
    else if (at == widest.getIndices().end())
      leaf.rank = static_cast<int64_t>(n) - static_cast<int64_t>(leaves.size());
  }
  llvm::sort(leaves, [](const Leaf &a, const Leaf &b) { return a.rank < b.rank; });
}

void ComputedFactor::orderAsLoaded() {
  const auto apart = static_cast<int64_t>(leaves.size()) + 1;
  for (auto [n, leaf] : llvm::enumerate(leaves)) {
    auto at = llvm::find(widest.getIndices(), leaf.index);
    const int64_t axis = at - widest.getIndices().begin();
    leaf.rank = apart * axis;
    if (at == widest.getIndices().end())
      leaf.rank = apart * (axis - 1) + static_cast<int64_t>(n + 1) - apart;
  }
  llvm::sort(leaves, [](const Leaf &a, const Leaf &b) { return a.rank < b.rank; });
}

bool ComputedFactor::read() {
  auto isBare = [&](Value index) { return bare.contains(index); };
  auto isFound = [&](Value bound) { return visit(bound); };
  if (!visit(factor) || !widest ||
      !llvm::all_of(reduce.getBlock()->getArguments().take_front(reduce.getNumIndices()), isBare) ||
      !llvm::all_of(reduce.getLower(), isFound) || !llvm::all_of(reduce.getUpper(), isFound))
    return false;
  // An index that is needed itself makes its group, as do two groups of one index.
  for (bool changed = true; changed;) {
    changed = false;
    llvm::DenseMap<Value, unsigned> uses;
    for (auto &[index, leaf] : groups)
      for (BlockArgument argument : getIterationIndices(index))
        ++uses[argument];
    for (auto &[index, leaf] : groups)
      if (llvm::any_of(getIterationIndices(index), [&](BlockArgument argument) {
            return bare.contains(argument) || uses[argument] > 1;
          })) {
        Value group = index;
        groups.erase(group);
        if (!visit(group))
          return false;
        changed = true;
        break;
      }
  }
  for (auto &[index, leaf] : groups)
    leaves.push_back(leaf);
  orderLeaves();
  // Boxes have five axes at most.
  constexpr size_t mostAxes = 5;
  return leaves.size() >= 2 && leaves.size() <= mostAxes &&
         getSizeFact(kernel, leaves.back().extent).divisor *
                 factor.getType().getIntOrFloatBitWidth() / 8 % boxAlignment ==
             0;
}

double ComputedFactor::bytes() {
  double bytes = factor.getType().getIntOrFloatBitWidth() / 8.0;
  for (Leaf &leaf : leaves)
    bytes *= guessSize(kernel, leaf.extent);
  return bytes;
}

//===----------------------------------------------------------------------===//
// The statement that stores it
//===----------------------------------------------------------------------===//

/// The factor where the sum takes it in, and 0 elsewhere.
Value ComputedFactor::copyMasked(OpBuilder &builder, IRMapping &mapping) {
  Location loc = factor.getLoc();
  Value place = mapping.lookup(reduce.getIndex(0));
  Value value = cloneFrom(builder, factor, compute, mapping);
  Value lower = cloneFrom(builder, reduce.getLower()[0], compute, mapping);
  Value upper = cloneFrom(builder, reduce.getUpper()[0], compute, mapping);
  Value inside = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, place, upper);
  if (!isConstantIntValue(lower, 0)) {
    Value from = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, place, lower);
    inside = arith::AndIOp::create(builder, loc, inside, from);
  }
  Value zero = createIdentity(builder, loc, ReduceKind::Sum, value.getType());
  return arith::SelectOp::create(builder, loc, inside, value, zero);
}

bool ComputedFactor::coversIndicesOf(Value value) {
  return llvm::all_of(getIterationIndices(value), [&](BlockArgument index) {
    return index.getOwner() != compute.getBlock() || bare.contains(index);
  });
}

ComputeOp ComputedFactor::store(StringRef suffix, ArrayRef<Value> rows, bool isMasked,
                                ArrayRef<ComputeOp> known) {
  SmallVector<StringRef> names;
  SmallVector<Value> extents, indices;
  for (Leaf &leaf : leaves) {
    names.push_back(leaf.name);
    extents.push_back(leaf.extent);
    indices.push_back(leaf.index);
  }
  OpBuilder builder(compute);
  std::string name = nameOf(compute.getNames(), 0);
  SmallVector<std::string> texts = {(name + suffix).str()};
  SmallVector<Type> types = {factor.getType()};
  SmallVector<SmallVector<unsigned>> over;
  for (auto [n, row] : llvm::enumerate(rows)) {
    texts.push_back((name + suffix + ".row" + Twine(n)).str());
    types.push_back(row.getType());
  }
  if (!rows.empty()) {
    SmallVector<unsigned> all = llvm::to_vector(llvm::seq<unsigned>(leaves.size()));
    over.push_back(all);
    all.pop_back();
    over.append(rows.size(), all);
  }
  auto statement = ComputeOp::create(builder, factor.getLoc(), names, extents, types,
                                     SmallVector<StringRef>(texts.begin(), texts.end()), over,
                                     [&](OpBuilder &body, Location loc, ValueRange places) {
                                       IRMapping mapping;
                                       for (auto [leaf, place] : llvm::zip_equal(leaves, places))
                                         mapping.map(leaf.index, place);
                                       SmallVector<Value> results = {
                                           isMasked ? copyMasked(body, mapping)
                                                    : cloneFrom(body, factor, compute, mapping)};
                                       for (Value row : rows)
                                         results.push_back(cloneFrom(body, row, compute, mapping));
                                       YieldOp::create(body, loc, results);
                                     });
  if (ComputeOp equal = findEqual(known, statement)) {
    statement.erase();
    statement = equal;
  }
  auto load = [&](Value value, unsigned n, ArrayRef<Value> at) {
    OpBuilder after(value.getContext());
    after.setInsertionPointAfterValue(value);
    Value stored = LoadOp::create(after, value.getLoc(), statement.getResult(n), at, Value());
    value.replaceAllUsesWith(stored);
  };
  load(factor, 0, indices);
  for (auto [n, row] : llvm::enumerate(rows))
    load(row, n + 1, ArrayRef(indices).drop_back());
  return statement;
}

void tk::eraseDead(ComputeOp compute) {
  SmallVector<Operation *> dead;
  do {
    dead.clear();
    compute.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (!isOpTriviallyDead(op))
        return WalkResult::advance();
      dead.push_back(op);
      return WalkResult::skip(); // what stands in it goes with it
    });
    for (Operation *op : dead)
      op->erase();
  } while (!dead.empty());
}
