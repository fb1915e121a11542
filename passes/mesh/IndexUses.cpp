//===- IndexUses.cpp - at which dimensions indices stand ------------------===//
#include "passes/mesh/IndexUses.h"

#include "passes/mesh/MeshCosts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tk::mesh {

SmallVector<Value> extentsOf(Value tensor) {
  if (auto argument = dyn_cast<BlockArgument>(tensor)) {
    auto kernel = cast<KernelOp>(argument.getOwner()->getParentOp());
    BindOp bind = kernel.getBind(tensor);
    return bind ? SmallVector<Value>(bind.getExtents()) : SmallVector<Value>();
  }
  auto compute = tensor.getDefiningOp<ComputeOp>();
  SmallVector<Value> extents;
  if (compute)
    for (unsigned index : compute.getIndicesOf(cast<OpResult>(tensor).getResultNumber()))
      extents.push_back(compute.getExtents()[index]);
  return extents;
}

bool isSame(Value a, Value b) {
  if (!a || !b || a == b)
    return a == b;
  std::optional<int64_t> left = getConstantIntValue(a), right = getConstantIntValue(b);
  return left && right && *left == *right;
}

Value extentOf(BlockArgument index) {
  Operation *owner = index.getOwner()->getParentOp();
  const unsigned number = index.getArgNumber();
  if (auto compute = dyn_cast<ComputeOp>(owner))
    return compute.getExtents()[number];
  auto reduce = dyn_cast<ReduceOp>(owner);
  if (!reduce || number >= reduce.getNumIndices() ||
      !isConstantIntValue(reduce.getLower()[number], 0))
    return {};
  return reduce.getUpper()[number];
}

StringRef nameOf(BlockArgument index) {
  Operation *owner = index.getOwner()->getParentOp();
  ArrayAttr names = isa<ComputeOp>(owner) ? cast<ComputeOp>(owner).getIndexNames()
                                          : cast<ReduceOp>(owner).getIndexNames();
  return cast<StringAttr>(names[index.getArgNumber()]).getValue();
}

/// Whether `divisor` is the ratio of two extents.
static bool isRatio(Value divisor, Value extent, Value ofDimension) {
  if (auto ratio = divisor.getDefiningOp<FloorDivOp>())
    return isSame(ratio.getLhs(), extent) && isSame(ratio.getRhs(), ofDimension);
  std::optional<int64_t> number = getConstantIntValue(divisor), all = getConstantIntValue(extent),
                         part = getConstantIntValue(ofDimension);
  return number && all && part && *part > 0 && *number * *part == *all;
}

/// An index of a compute op or of a reduction, other than a running value or a scan's.
static BlockArgument indexOf(Value value) {
  auto index = dyn_cast<BlockArgument>(value);
  if (!index)
    return {};
  Operation *owner = index.getOwner()->getParentOp();
  if (isa<ComputeOp>(owner))
    return index;
  auto reduce = dyn_cast<ReduceOp>(owner);
  return reduce && index.getOwner() == reduce.getBlock() &&
                 index.getArgNumber() < reduce.getNumIndices()
             ? index
             : BlockArgument();
}

/// Whether an element of a tensor decides a subscript, and what lies outside of the tensor is 0.
static bool isLoadedSubscript(Value value, LoadOp load) {
  if (!load.getPad() ||
      !(matchPattern(load.getPad(), m_AnyZeroFloat()) || matchPattern(load.getPad(), m_Zero())))
    return false;
  SmallVector<Value> work{value};
  DenseSet<Operation *> seen;
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || isa<ComputeOp, ReduceOp, ScanOp>(op) || !seen.insert(op).second)
      continue;
    if (isa<LoadOp>(op))
      return true;
    llvm::append_range(work, op->getOperands());
  }
  return false;
}

static Subscript subscriptOf(Value value, Value extent, LoadOp load) {
  if (isLoadedSubscript(value, load)) {
    Subscript loaded;
    loaded.isLoaded = true;
    return loaded;
  }
  if (BlockArgument index = indexOf(value)) {
    Value whole = extentOf(index);
    // A range of its own lies inside the dimension.
    if (whole && !isSame(whole, extent))
      return {};
    Subscript bare;
    bare.index = index;
    return bare;
  }
  auto quotient = value.getDefiningOp<FloorDivOp>();
  if (!quotient)
    return {};
  BlockArgument index = indexOf(quotient.getLhs());
  Subscript divided;
  if (index && extentOf(index) && isRatio(quotient.getRhs(), extentOf(index), extent))
    divided.index = index, divided.isQuotient = true;
  return divided;
}

/// Shares of an index with a range of its own are those of its dimensions, if these are equal.
static void dropUnequal(SmallVector<TensorUse> &uses) {
  llvm::DenseMap<Value, Value> extents;
  llvm::DenseSet<Value> unequal;
  for (const TensorUse &use : uses)
    for (auto [subscript, extent] : llvm::zip(use.subscripts, extentsOf(use.load.getTensor())))
      if (subscript.index && !extentOf(subscript.index) &&
          !isSame(extents.try_emplace(subscript.index, extent).first->second, extent))
        unequal.insert(subscript.index);
  for (TensorUse &use : uses)
    for (Subscript &subscript : use.subscripts)
      if (subscript.index && unequal.contains(subscript.index))
        subscript.index = {};
}

SmallVector<TensorUse> usesOf(ComputeOp compute) {
  SmallVector<TensorUse> uses;
  compute.walk([&](LoadOp load) {
    TensorUse use{load, {}};
    SmallVector<Value> extents = extentsOf(load.getTensor());
    for (auto [position, extent] : llvm::zip(load.getIndices(), extents))
      use.subscripts.push_back(subscriptOf(position, extent, load));
    uses.push_back(std::move(use));
  });
  dropUnequal(uses);
  return uses;
}

ReduceOp soleReduction(ComputeOp compute) {
  if (compute.getNumResults() != 1)
    return {};
  auto reduce = compute.getYield().getValues()[0].getDefiningOp<ReduceOp>();
  return reduce && reduce->getBlock() == compute.getBlock() && !reduce.isOnline() ? reduce
                                                                                  : ReduceOp();
}

Type widestOperand(Operation *root) {
  Type widest;
  root->walk([&](LoadOp load) {
    auto type = cast<RankedTensorType>(load.getTensor().getType()).getElementType();
    if (isa<FloatType>(type) &&
        (!widest || type.getIntOrFloatBitWidth() > widest.getIntOrFloatBitWidth()))
      widest = type;
  });
  return widest;
}

bool isGather(ComputeOp compute) {
  if (compute.getNumResults() != 1)
    return false;
  auto load = compute.getYield().getValues()[0].getDefiningOp<LoadOp>();
  if (!load)
    return false;
  for (auto [position, extent] : llvm::zip(load.getIndices(), extentsOf(load.getTensor())))
    if (subscriptOf(position, extent, load).isLoaded)
      return true;
  return false;
}

/// The size of a dimension that a kernel is placed for.
static double knownSize(BlockArgument dim) {
  auto kernel = dyn_cast<KernelOp>(dim.getOwner()->getParentOp());
  auto sizes = kernel ? kernel->getAttrOfType<DenseI64ArrayAttr>(meshDimsAttr) : nullptr;
  const unsigned number = dim.getArgNumber();
  if (!sizes || number >= static_cast<size_t>(sizes.size()) || number >= kernel.getNumDims())
    return usualSize;
  return static_cast<double>(std::max<int64_t>(sizes[number], 1));
}

double estimate(Value size) {
  if (std::optional<int64_t> number = getConstantIntValue(size))
    return static_cast<double>(*number);
  if (auto dim = dyn_cast<BlockArgument>(size))
    return knownSize(dim);
  Operation *op = size.getDefiningOp();
  if (!op || op->getNumOperands() != 2)
    return usualSize;
  const double a = estimate(op->getOperand(0)), b = estimate(op->getOperand(1));
  if (isa<arith::AddIOp>(op))
    return a + b;
  if (isa<arith::SubIOp>(op))
    return a > b ? a - b : 1;
  if (isa<arith::MulIOp>(op))
    return a * b;
  if (isa<FloorDivOp>(op))
    return b > 0 && a > b ? a / b : 1;
  return usualSize;
}

double elementsOf(ValueRange extents) {
  double elements = 1;
  for (Value extent : extents)
    elements *= estimate(extent);
  return elements;
}

double bytesOf(ValueRange extents, Type element) {
  const unsigned bits = std::max(8u, element.getIntOrFloatBitWidth());
  return elementsOf(extents) * bits / 8;
}

double bytesOf(Value tensor) {
  return bytesOf(extentsOf(tensor), cast<RankedTensorType>(tensor.getType()).getElementType());
}

} // namespace tk::mesh
