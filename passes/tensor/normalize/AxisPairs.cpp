//===- AxisPairs.cpp - axes and indices that can be collapsed -------------===//
#include "passes/tensor/normalize/AxisPairs.h"
#include "passes/machine/limits/Operands.h"
#include "passes/machine/limits/Shapes.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/analysis/StrideAxes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;

using namespace limits::axis_pairs;

static unsigned rankOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getRank(); }

/// How many indices `owner` has, if they are those of a statement or a reduction.
static unsigned countIndices(Operation *owner) {
  if (auto compute = dyn_cast<ComputeOp>(owner))
    return compute.getNumIndices();
  auto reduce = dyn_cast<ReduceOp>(owner);
  return reduce ? reduce.getNumIndices() : 0;
}

static BlockArgument indexOf(Operation *owner, unsigned p) {
  return owner->getRegion(0).front().getArgument(p);
}

void AxisPairs::number(const void *of, unsigned count) {
  for (unsigned first = 0; first + 1 < count; ++first) {
    numbers[{of, first}] = refused.size();
    refused.push_back(false);
    wanted.push_back(false);
    apart.push_back(false);
  }
}

std::optional<unsigned> AxisPairs::find(const void *of, int64_t first) const {
  if (first < 0)
    return std::nullopt;
  auto it = numbers.find({of, static_cast<unsigned>(first)});
  return it == numbers.end() ? std::nullopt : std::optional(it->second);
}

bool AxisPairs::isCollapsed(const void *of, unsigned first) const {
  std::optional<unsigned> pair = find(of, first);
  return pair && collapsed[*pair];
}

void AxisPairs::refuse(std::optional<unsigned> pair) {
  if (pair)
    refused[*pair] = true;
}

/// What is tied to no pair at all cannot be one.
void AxisPairs::tie(std::optional<unsigned> a, std::optional<unsigned> b) {
  if (a && b)
    ties.emplace_back(*a, *b);
  else
    refuse(a ? a : b);
}

void AxisPairs::addTensor(Value tensor) {
  number(tensor.getAsOpaquePointer(), rankOf(tensor));
  bool isKnown = llvm::all_of(tensor.getUsers(),
                              [](Operation *user) { return isa<LoadOp, BindOp, ReturnOp>(user); });
  for (unsigned axis = 0; !isKnown && axis < rankOf(tensor); ++axis)
    refuse(find(tensor.getAsOpaquePointer(), axis));
}

void AxisPairs::addIndices(Operation *owner) {
  number(owner, countIndices(owner));
  auto reduce = dyn_cast<ReduceOp>(owner);
  for (unsigned p = 0; reduce && p + 1 < reduce.getNumIndices(); ++p) {
    wanted[*find(owner, p)] = !dividesIndices;
    if (!isConstantIntValue(reduce.getLower()[p], 0) ||
        !isConstantIntValue(reduce.getLower()[p + 1], 0))
      refuse(find(owner, p));
  }
}

bool AxisPairs::runsOverAxis(BlockArgument index, Value extent) const {
  Operation *owner = index.getOwner()->getParentOp();
  if (auto compute = dyn_cast<ComputeOp>(owner))
    return isSameExtent(compute.getExtents()[index.getArgNumber()], extent);
  return isSameExtent(cast<ReduceOp>(owner).getUpper()[index.getArgNumber()], extent);
}

/// The index that stands bare at `axis`, if it is a statement's or a reduction's.
static BlockArgument bareIndex(LoadOp load, unsigned axis) {
  auto index = dyn_cast<BlockArgument>(load.getIndices()[axis]);
  if (!index || index.getArgNumber() >= countIndices(index.getOwner()->getParentOp()))
    return {};
  return index;
}

/// Does an index of a reduction around `load` stand before `axis`? What is reduced down columns has
/// blocks with some of these side by side.
static bool isReducedBefore(LoadOp load, unsigned axis) {
  return llvm::any_of(load.getIndices().take_front(axis), [&](Value index) {
    return llvm::any_of(getIterationIndices(index), [](BlockArgument argument) {
      return isa<ReduceOp>(argument.getOwner()->getParentOp());
    });
  });
}

void AxisPairs::tieLoad(LoadOp load) {
  SmallVector<Value> extents = getExtents(kernel, load.getTensor());
  for (unsigned axis = 0; axis + 1 < load.getIndices().size(); ++axis) {
    std::optional<unsigned> axes = find(load.getTensor().getAsOpaquePointer(), axis);
    BlockArgument outer = bareIndex(load, axis), inner = bareIndex(load, axis + 1);
    std::optional<unsigned> indices;
    if (outer && inner && outer.getOwner() == inner.getOwner() &&
        outer.getArgNumber() + 1 == inner.getArgNumber())
      indices = find(outer.getOwner()->getParentOp(), outer.getArgNumber());
    if (!axes || !apart[*axes]) // else read by one index that is divided, or by two
      tie(axes, indices);
    if (!dividesIndices && indices && axis + 2 == load.getIndices().size() &&
        isReducedBefore(load, axis))
      wanted[*indices] = true;
    if (indices && !(runsOverAxis(outer, extents[axis]) && runsOverAxis(inner, extents[axis + 1])))
      refuse(indices);
  }
}

/// An index that is in a pair is used where the other one stands beside it, and for nothing else.
void AxisPairs::checkIndex(BlockArgument index) {
  Operation *owner = index.getOwner()->getParentOp();
  int64_t p = index.getArgNumber();
  for (OpOperand &use : index.getUses()) {
    auto load = dyn_cast<LoadOp>(use.getOwner());
    unsigned axis = use.getOperandNumber() - 1;
    bool isIndex = load && use.getOperandNumber() > 0 && axis < load.getIndices().size();
    auto standsAt = [&](int64_t at, int64_t other) {
      return isIndex && at >= 0 && at < static_cast<int64_t>(load.getIndices().size()) &&
             load.getIndices()[at] == indexOf(owner, other);
    };
    if (std::optional<unsigned> next = find(owner, p); next && !standsAt(axis + 1, p + 1))
      refuse(next);
    if (std::optional<unsigned> last = find(owner, p - 1); last && !standsAt(axis - 1, p - 1))
      refuse(last);
  }
}

void AxisPairs::tieResults(ComputeOp compute) {
  for (unsigned r = 0; r < compute.getNumResults(); ++r) {
    const void *tensor = compute.getResult(r).getAsOpaquePointer();
    SmallVector<unsigned> over = compute.getIndicesOf(r);
    for (unsigned axis = 0; axis + 1 < over.size(); ++axis) {
      if (over[axis] + 1 == over[axis + 1])
        tie(find(tensor, axis), find(compute, over[axis]));
      else
        refuse(find(tensor, axis));
    }
    for (unsigned p = 0; p + 1 < compute.getNumIndices(); ++p) {
      auto *outer = llvm::find(over, p), *inner = llvm::find(over, p + 1);
      bool hasNeither = outer == over.end() && inner == over.end();
      if (!hasNeither && (outer == over.end() || outer + 1 != inner))
        refuse(find(compute, p));
    }
  }
}

/// Is `reduce` a sum of products that the matrix unit may take, also in f32 and of computed
/// factors, which a later pass stores as bf16 parts?
static bool isSumOfProducts(ReduceOp reduce) {
  auto product = reduce.getYield().getValues()[0].getDefiningOp<arith::MulFOp>();
  if (!product || reduce.getKind(0) != ReduceKind::Sum)
    return false;
  Dependence varies(reduce.getBlock()->getArguments());
  return varies.on(product.getLhs()) && varies.on(product.getRhs());
}

/// Wants the rows of a matrix product as one index, where tiles of the inner one would not be full.
void AxisPairs::wantRows(ComputeOp compute) {
  for (ReduceOp reduce : compute.getBlock()->getOps<ReduceOp>()) {
    if (reduce.isOnline() ||
        !(isMatrixProduct(reduce) || (dividesIndices && isSumOfProducts(reduce))))
      continue;
    auto product = reduce.getYield().getValues()[0].getDefiningOp<arith::MulFOp>();
    if (!product)
      continue;
    for (unsigned p = 0; p + 1 < compute.getNumIndices(); ++p) {
      if (getSizeFact(kernel, compute.getExtents()[p + 1]).divisor % rowsOfProductTile == 0)
        continue;
      Dependence outer{ValueRange{compute.getIndex(p)}}, inner{ValueRange{compute.getIndex(p + 1)}};
      unsigned both = 0, neither = 0;
      for (Value factor : product->getOperands()) {
        both += outer.on(factor) && inner.on(factor);
        neither += !outer.on(factor) && !inner.on(factor);
      }
      if (both == 1 && neither == 1)
        wanted[*find(compute, p)] = true;
    }
  }
}

/// Wants short axes of a permutation as one with those before them, of which it keeps the order: a
/// square tile then reads whole sectors of both tensors.
void AxisPairs::wantTurned(ComputeOp compute) {
  if (dividesIndices || compute.getNumIndices() < 3 ||
      llvm::any_of(*compute.getBlock(), [](Operation &op) { return op.getNumRegions() > 0; }))
    return;
  const Value last = compute.getIndex(compute.getNumIndices() - 1);
  const bool isTurned = llvm::any_of(compute.getBlock()->getOps<LoadOp>(), [&](LoadOp load) {
    return load.getIndices().size() > 1 && llvm::is_contained(load.getIndices().drop_back(), last);
  });
  for (unsigned p = 0; isTurned && p + 1 < compute.getNumIndices(); ++p) {
    std::optional<int64_t> upper = getSizeFact(kernel, compute.getExtents()[p + 1]).upper;
    if (upper && *upper < shortestTurned)
      wanted[*find(compute, p)] = true;
  }
}

llvm::IntEqClasses AxisPairs::classes() const {
  llvm::IntEqClasses classes(refused.size());
  for (auto [a, b] : ties)
    classes.join(a, b);
  classes.compress();
  return classes;
}

/// For each class: does any of its pairs have the property?
SmallVector<bool> AxisPairs::ofClasses(const llvm::IntEqClasses &classes,
                                       ArrayRef<bool> ofPairs) const {
  SmallVector<bool> result(classes.getNumClasses());
  for (unsigned pair = 0; pair < ofPairs.size(); ++pair)
    result[classes[pair]] = result[classes[pair]] || ofPairs[pair];
  return result;
}

/// Marks the axes of tensors that must stay apart whoever reads them: their compute op, or a load,
/// has the two indices apart. The loads are looked at alone; they tie nothing yet.
void AxisPairs::keepApart() {
  SmallVector<bool> refusedBefore = refused;
  auto tiesBefore = ties;
  kernel.walk([&](LoadOp load) { tieLoad(load); });
  ties = tiesBefore; // what compute ops write, without what loads read
  llvm::IntEqClasses known = classes();
  SmallVector<bool> bad = ofClasses(known, refused);
  auto mark = [&](Value tensor) {
    bool isDense = !getStrideAxes(kernel, tensor);
    for (unsigned axis = 0; isDense && axis + 1 < rankOf(tensor); ++axis) {
      unsigned pair = *find(tensor.getAsOpaquePointer(), axis);
      apart[pair] = bad[known[pair]];
    }
  };
  for (BlockArgument param : kernel.getParamArguments())
    if (isa<RankedTensorType>(param.getType()))
      mark(param);
  for (ComputeOp compute : kernel.getBody().front().getOps<ComputeOp>())
    for (Value result : compute.getResults())
      mark(result);
  refused = refusedBefore;
  for (unsigned pair = 0; pair < refused.size(); ++pair)
    refused[pair] = refused[pair] || apart[pair];
}

AxisPairs::AxisPairs(KernelOp kernel, bool dividesIndices)
    : kernel(kernel), dividesIndices(dividesIndices) {
  auto add = [&](Value tensor) {
    addTensor(tensor);
    const bool isStrided = getStrideAxes(kernel, tensor).has_value();
    for (unsigned axis = 0; isStrided && axis < rankOf(tensor); ++axis)
      refuse(find(tensor.getAsOpaquePointer(), axis));
  };
  for (BlockArgument param : kernel.getParamArguments())
    if (isa<RankedTensorType>(param.getType()))
      add(param);
  for (ComputeOp compute : kernel.getBody().front().getOps<ComputeOp>())
    for (Value result : compute.getResults())
      add(result);
  kernel.walk([&](Operation *op) { addIndices(op); });
  kernel.walk([&](ComputeOp compute) { wantRows(compute); });
  kernel.walk([&](ComputeOp compute) { wantTurned(compute); });
  kernel.walk([&](ComputeOp compute) { tieResults(compute); });
  kernel.walk([&](Operation *op) {
    for (unsigned p = 0; p < countIndices(op); ++p)
      checkIndex(indexOf(op, p));
  });
  if (dividesIndices)
    keepApart();
  kernel.walk([&](LoadOp load) { tieLoad(load); });
  unsigned next = kernel.getResultNames().size();
  for (auto [i, param] : llvm::enumerate(kernel.getParamArguments()))
    if (kernel.getParam(i).getInout()) {
      Value replaced = kernel.getReturn().getResults()[next++];
      for (unsigned axis = 0; axis + 1 < rankOf(param); ++axis)
        tie(find(param.getAsOpaquePointer(), axis), find(replaced.getAsOpaquePointer(), axis));
    }
  llvm::IntEqClasses joined = classes();
  SmallVector<bool> bad = ofClasses(joined, refused), anyWanted = ofClasses(joined, wanted);
  for (unsigned pair = 0; pair < refused.size(); ++pair)
    collapsed.push_back(anyWanted[joined[pair]] && !bad[joined[pair]]);
}
