//===- ProductFactors.cpp - how warpgroups take factors of products -------===//
#include "passes/analysis/ProductFactors.h"

#include "dialects/tkgpu/TkGpuProducts.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/analysis/StrideAxes.h"
#include "passes/machine/Machine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tk {

int64_t getRowAlignment(KernelOp kernel, LoadOp load) {
  SmallVector<Value> extents = getExtents(kernel, load.getTensor());
  if (extents.empty())
    return 0;
  std::optional<SmallVector<int64_t>> axes = getStrideAxes(kernel, load.getTensor());
  int64_t divisor = !axes                        ? getSizeFact(kernel, extents.back()).divisor
                    : axes->back() == unitStride ? getStrideDivisor(kernel)
                                                 : 1;
  int64_t bytes =
      divisor * cast<RankedTensorType>(load.getTensor().getType()).getElementTypeBitWidth() / 8;
  return bytes & -bytes;
}

Value withoutExtension(Value factor) {
  if (auto ext = factor.getDefiningOp<arith::ExtFOp>())
    return ext.getIn();
  if (auto ext = factor.getDefiningOp<arith::ExtSIOp>())
    return ext.getIn();
  return factor;
}

/// Is a result of f32 or wider computed from `value`, without a rounding to 16 bits or fewer? What
/// is stored for other statements of the kernel alone (parts of a sum) is what these make of it.
static bool reachesWideResult(Value value) {
  SmallVector<Value> work = {value};
  llvm::SmallPtrSet<Operation *, 16> visited;
  auto isWide = [](Type type) {
    auto element = dyn_cast<FloatType>(type);
    return element && element.getWidth() > 16;
  };
  while (!work.empty())
    for (OpOperand &use : work.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      auto compute = dyn_cast<ComputeOp>(user->getParentOp());
      if (compute && user->hasTrait<OpTrait::IsTerminator>()) {
        if (!isWide(use.get().getType()))
          continue;
        for (Operation *reader : compute->getResult(use.getOperandNumber()).getUsers()) {
          if (!isa<LoadOp>(reader))
            return true;
          if (visited.insert(reader).second)
            work.push_back(reader->getResult(0));
        }
        continue;
      }
      auto rounding = dyn_cast<arith::TruncFOp>(user);
      if (rounding && rounding.getType().getIntOrFloatBitWidth() <= 16)
        continue;
      if (user->hasTrait<OpTrait::IsTerminator>())
        user = user->getParentOp();
      if (visited.insert(user).second)
        llvm::append_range(work, user->getResults());
    }
  return false;
}

Precision getSumPrecision(ReduceOp reduce) {
  if (reduce.getPrecision() != Precision::Default)
    return reduce.getPrecision();
  for (auto [term, result] : llvm::zip(reduce.getYield().getValues(), reduce.getResults())) {
    auto product = term.getDefiningOp<arith::MulFOp>();
    if (product && gpu::isByteFloat(withoutExtension(product.getLhs()).getType()) &&
        gpu::isByteFloat(withoutExtension(product.getRhs()).getType()) && reachesWideResult(result))
      return Precision::Exact;
  }
  return Precision::Default;
}

bool haveWarpgroupProduct(Type operand, Precision precision) {
  if (operand.isF32())
    return precision == Precision::TF32;
  if (gpu::isByteFloat(operand))
    return precision != Precision::Exact;
  return operand.isF16() || operand.isBF16() || operand.isInteger(8);
}

bool isWideProduct(Type operand, Precision precision) {
  return (operand.isF32() || operand.isF64()) && !haveWarpgroupProduct(operand, precision);
}

bool isMultipliedAsStored(ComputeOp compute, Value factor) {
  auto load = withoutExtension(factor).getDefiningOp<LoadOp>();
  if (!load || load.getIndices().empty())
    return false;
  Type stored = load.getType();
  if (stored.isF16() || stored.isBF16())
    return true;
  return llvm::none_of(getIterationIndices(load.getIndices().back()),
                       [&](BlockArgument index) { return index.getOwner() == compute.getBlock(); });
}

std::optional<SmallVector<LoadOp>> getElementsOf(Value factor) {
  SmallVector<LoadOp> loads;
  SmallVector<Value> work = {factor};
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (auto load = dyn_cast_or_null<LoadOp>(op)) {
      loads.push_back(load);
      continue;
    }
    if (!op || isa<KernelOp>(op->getParentOp()))
      continue;
    if (op->getNumRegions() > 0 || (!op->hasTrait<OpTrait::Elementwise>() && !isa<FloorDivOp>(op)))
      return std::nullopt;
    llvm::append_range(work, op->getOperands());
  }
  return loads;
}

/// Is `product`, of a sum in `compute`, that of a factor over `index`, which goes through
/// registers, and of one that is multiplied as it is stored?
static bool goesThroughRegisters(ComputeOp compute, Operation *product, Value index,
                                 Precision precision) {
  unsigned over = 0;
  for (Value factor : product->getOperands()) {
    bool isOver = llvm::is_contained(getIterationIndices(factor), index);
    over += isOver;
    if (isMultipliedAsStored(compute, factor) == isOver || !getElementsOf(factor) ||
        !haveWarpgroupProduct(withoutExtension(factor).getType(), precision))
      return false;
  }
  return over == 1;
}

/// Are all that `reduce` carries together sums of products that have nothing to do with each other?
static bool carriesProducts(ReduceOp reduce) {
  for (auto [n, term] : llvm::enumerate(reduce.getYield().getValues()))
    if (reduce.getKind(n) != ReduceKind::Sum || !reduce.standsAlone(n) ||
        !isa_and_nonnull<arith::MulFOp, arith::MulIOp>(term.getDefiningOp()))
      return false;
  return reduce.isOnline();
}

bool goThroughRegisters(ComputeOp compute, Value index) {
  bool found = false, all = true;
  compute.walk([&](ReduceOp reduce) {
    if (!isMatrixProduct(reduce) && !carriesProducts(reduce))
      return;
    found = true;
    for (Value term : reduce.getYield().getValues()) {
      Operation *product = term.getDefiningOp();
      all &= isa_and_nonnull<arith::MulFOp, arith::MulIOp>(product) &&
             goesThroughRegisters(compute, product, index, getSumPrecision(reduce));
    }
  });
  return found && all;
}

std::optional<unsigned> rowsOfTile(ComputeOp compute, ArrayRef<int64_t> tile) {
  constexpr int64_t fewestRows = 64;
  SmallVector<unsigned> large;
  for (unsigned p = 0; p < compute.getNumIndices(); ++p)
    if (tile[p] > 1)
      large.push_back(p);
  bool hasProduct = false;
  // One loop may carry several products.
  compute.walk([&](ReduceOp reduce) {
    hasProduct |= llvm::all_of(reduce.getYield().getValues(),
                               [&](Value term) { return isMatrixProductIn(reduce, term); });
  });
  if (large.size() != 2)
    return std::nullopt;
  auto target =
      compute->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  bool mayChange = hasFeature(target, Feature::WarpgroupProducts) && tile[large[1]] >= fewestRows;
  bool isRegisters = mayChange && goThroughRegisters(compute, compute.getIndex(large[1]));
  if (!hasProduct && !isRegisters)
    return std::nullopt;
  return large[mayChange && (tile[large[0]] < fewestRows || isRegisters) ? 1 : 0];
}

} // namespace tk
