//===- ProductAxes.cpp - the indices of a product, by kind ----------------===//
#include "passes/tensor/split/ProductAxes.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/SizeFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tk;

Value Product::extentOf(BlockArgument index) {
  const unsigned n = index.getArgNumber();
  return index.getOwner() == compute.getBlock() ? compute.getExtents()[n]
                                                : Value(reduce.getUpper()[n]);
}

StringRef Product::nameOf(BlockArgument index) {
  ArrayAttr names =
      index.getOwner() == compute.getBlock() ? compute.getIndexNames() : reduce.getIndexNames();
  return cast<StringAttr>(names[index.getArgNumber()]).getValue();
}

Indices Product::axesOf(unsigned factor) {
  Indices axes;
  for (Value index : factors[factor].getIndices())
    axes.push_back(cast<BlockArgument>(index));
  return axes;
}

/// Is all of a tensor read, each axis by an index of its own?
bool Product::isRead(KernelOp kernel, LoadOp load) {
  if (!load || load.getPad())
    return false;
  llvm::DenseSet<Value> seen;
  for (auto [value, extent] :
       llvm::zip_equal(load.getIndices(), getExtents(kernel, load.getTensor()))) {
    auto index = dyn_cast<BlockArgument>(value);
    if (!index || !seen.insert(index).second ||
        !(index.getOwner() == compute.getBlock() || index.getOwner() == reduce.getBlock()) ||
        !isSameExtent(extentOf(index), extent))
      return false;
  }
  return true;
}

std::optional<Product> Product::match(KernelOp kernel, ComputeOp compute) {
  SmallVector<ReduceOp> reduces(compute.getBlock()->getOps<ReduceOp>());
  if (compute.getNumResults() != 1 || reduces.size() != 1 ||
      !llvm::equal(compute.getIndicesOf(0), llvm::seq(0u, unsigned(compute.getNumIndices()))))
    return std::nullopt;
  Product product = {.compute = compute, .reduce = reduces.front(), .factors = {}};
  ReduceOp reduce = product.reduce;
  if (reduce.isOnline() || reduce.getNumAccumulators() != 1 || !isMatrixProduct(reduce))
    return std::nullopt;
  for (auto [lower, upper] : llvm::zip_equal(reduce.getLower(), reduce.getUpper()))
    if (!isConstantIntValue(lower, 0) || !isKernelLevel(upper, compute))
      return std::nullopt;
  auto multiply = reduce.getYield().getValues()[0].getDefiningOp<arith::MulFOp>();
  if (!multiply)
    return std::nullopt;
  for (unsigned n : {0, 1}) {
    product.factors[n] = withoutExtension(multiply->getOperand(n)).getDefiningOp<LoadOp>();
    if (!product.isRead(kernel, product.factors[n]))
      return std::nullopt;
  }
  for (BlockArgument index : reduce.getBlock()->getArguments())
    if (!product.has(0, index) || !product.has(1, index))
      return std::nullopt;
  for (BlockArgument index : compute.getBlock()->getArguments())
    if (!product.has(0, index) && !product.has(1, index))
      return std::nullopt;
  return product;
}

ProductAxes::ProductAxes(Product product) {
  ComputeOp compute = product.compute;
  for (BlockArgument index : compute.getBlock()->getArguments()) {
    const bool isLeft = product.has(0, index), isRight = product.has(1, index);
    (isLeft && isRight ? batch : own[isLeft ? 0 : 1]).push_back(index);
  }
  const Indices left = product.axesOf(0), right = product.axesOf(1);
  for (BlockArgument index : left.size() >= right.size() ? left : right)
    if (index.getOwner() != compute.getBlock())
      terms.push_back(index);
}

bool ProductAxes::hasResultInOrder(Product product) const {
  ComputeOp compute = product.compute;
  return isInOrder(Indices(compute.getBlock()->getArguments()), own[0], own[1]);
}

Joined::Joined(OpBuilder &builder, Product product, const Indices &indices) : indices(indices) {
  IRMapping hoisted;
  for (BlockArgument index : indices) {
    Value own = cloneFrom(builder, product.extentOf(index), product.compute, hoisted);
    extent = extent ? builder.createOrFold<arith::MulIOp>(own.getLoc(), extent, own) : own;
    name += (name.empty() ? "" : ".") + product.nameOf(index).str();
  }
}

void Joined::divide(OpBuilder &builder, Product product, Value joined, IRMapping &mapping) const {
  Location loc = joined.getLoc();
  for (BlockArgument index : llvm::reverse(ArrayRef(indices).drop_front())) {
    Value size = product.extentOf(index);
    mapping.map(index, FloorModOp::create(builder, loc, joined.getType(), joined, size));
    joined = FloorDivOp::create(builder, loc, joined.getType(), joined, size);
  }
  mapping.map(indices.front(), joined);
}

Value Joined::place(OpBuilder &builder, Product product, ValueRange own) const {
  Value at;
  for (BlockArgument index : indices) {
    Value digit = own[index.getArgNumber()];
    if (at) {
      at = arith::MulIOp::create(builder, digit.getLoc(), at, product.extentOf(index));
      at = arith::AddIOp::create(builder, digit.getLoc(), at, digit);
    } else {
      at = digit;
    }
  }
  return at;
}
