//===- TurnBatches.cpp - contractions that are contiguous along a batch index ===//
//
// A pattern of tk-materialize-operands. 16-bit operands may both be contiguous along a further
// index of the compute op, such as a channel. No index of a tile is then contiguous, neither in the
// operands nor in the result, and threads read and store single elements. If that takes longer than
// these copies,
// 1. compute ops store the operands with the sum's index in the place of the batch index,
// 2. the contraction stores its result with the index of an operand's rows or columns in that
//    place, and another compute op transposes the result back.
//
//   %t = tk.compute ["i", "j", "c"] {tk.reduce [sum] ["k"] {a[i, k, c] * b[j, k, c]}}
//     =>
//   %a = tk.compute ["i", "c", "k"] {a[i, k, c]};  %b = tk.compute ["j", "c", "k"] {b[j, k, c]}
//   %u = tk.compute ["i", "c", "j"] {tk.reduce [sum] ["k"] {%a[i, c, k] * %b[j, c, k]}}
//   %t = tk.compute ["i", "j", "c"] {%u[i, c, j]}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/operands/TurnBatches.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/Declines.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-materialize-operands:batches";

static double bytesOf(KernelOp kernel, ValueRange extents, Type element) {
  double bytes = element.getIntOrFloatBitWidth() / 8.0;
  for (Value extent : extents)
    bytes *= guessSize(kernel, extent);
  return bytes;
}

static bool isAligned(KernelOp kernel, Value extent, Type element) {
  int64_t bits = getSizeFact(kernel, extent).divisor * element.getIntOrFloatBitWidth();
  return bits / 8 % boxAlignment == 0;
}

namespace {

/// A sum of products of two factors that both lie along the last index of its statement.
struct BatchProduct {
  KernelOp kernel;
  ComputeOp compute;
  ReduceOp reduce;
  LoadOp factors[2];
  unsigned axis = 0; ///< of the result: whose index lies along memory instead

  static std::optional<BatchProduct> of(KernelOp kernel, ComputeOp compute);
  bool isTurnable(LoadOp factor);
  bool findAxis();
  bool pays();
  unsigned axisOfSum(LoadOp factor) {
    return llvm::find(factor.getIndices(), reduce.getIndex(0)) - factor.getIndices().begin();
  }
};

} // namespace

/// Is every index of `factor` one of the iteration, each at one axis, the sum's among them?
bool BatchProduct::isTurnable(LoadOp factor) {
  SmallVector<Value> extents = getExtents(kernel, factor.getTensor());
  if (factor.getPad() || extents.size() != factor.getIndices().size() ||
      factor.getIndices().empty() || !(factor.getType().isF16() || factor.getType().isBF16()) ||
      cast<RankedTensorType>(factor.getTensor().getType()).getElementType() != factor.getType() ||
      factor.getIndices().back() != compute.getIndex(compute.getNumIndices() - 1) ||
      !llvm::is_contained(factor.getIndices(), reduce.getIndex(0)))
    return false;
  llvm::SmallDenseSet<Value> different;
  for (Value index : factor.getIndices())
    if (!isa<BlockArgument>(index) || !different.insert(index).second)
      return false;
  return isAligned(kernel, extents[axisOfSum(factor)], factor.getType());
}

/// The last index that one factor alone has, and along which rows of results are aligned.
bool BatchProduct::findAxis() {
  auto reads = [](LoadOp load, Value index) {
    return llvm::is_contained(load.getIndices(), index);
  };
  Type element = cast<RankedTensorType>(compute.getResult(0).getType()).getElementType();
  for (unsigned p = compute.getNumIndices() - 1; p-- > 0;) {
    Value index = compute.getIndex(p);
    axis = p;
    if (reads(factors[0], index) != reads(factors[1], index) &&
        isAligned(kernel, compute.getExtents()[p], element))
      return true;
  }
  return false;
}

bool BatchProduct::pays() {
  Type element = cast<RankedTensorType>(compute.getResult(0).getType()).getElementType();
  double bytes = bytesOf(kernel, compute.getExtents(), element), terms = bytes;
  terms *= guessSize(kernel, reduce.getUpper()[0]) * 8 / element.getIntOrFloatBitWidth();
  for (LoadOp factor : factors)
    bytes += bytesOf(kernel, getExtents(kernel, factor.getTensor()), factor.getType());
  return savesTime(reduce, "tk-materialize-operands:batches", "operands by batch",
                   cost::savedByOuterBatch * terms, 2 * cost::byte * bytes + 3 * cost::launch);
}

std::optional<BatchProduct> BatchProduct::of(KernelOp kernel, ComputeOp compute) {
  auto reduces = llvm::to_vector(compute.getBlock()->getOps<ReduceOp>());
  if (reduces.size() != 1 || compute.getNumResults() != 1 || !computesPlainProducts(compute) ||
      reduces.front().getNumIndices() != 1 ||
      compute.getIndicesOf(0).size() != compute.getNumIndices())
    return std::nullopt;
  BatchProduct product{kernel, compute, reduces.front(), {}};
  Operation *multiply = product.reduce.getYield().getValues()[0].getDefiningOp();
  for (unsigned side : {0, 1}) {
    product.factors[side] = withoutExtension(multiply->getOperand(side)).getDefiningOp<LoadOp>();
    if (!product.factors[side] || !product.isTurnable(product.factors[side]))
      return std::nullopt;
  }
  if (!haveWarpgroupProduct(product.factors[0].getType(), getSumPrecision(product.reduce)) ||
      !product.findAxis() || !product.pays())
    return std::nullopt;
  return product;
}

/// Stores what `tensor` has over `names` with `axis` and its last axis exchanged.
static Value exchange(OpBuilder &builder, Location loc, Value tensor, ArrayRef<std::string> names,
                      ArrayRef<Value> extents, unsigned axis, StringRef result) {
  SmallVector<StringRef> indices(names.begin(), names.end());
  SmallVector<Value> ends(extents);
  std::swap(indices[axis], indices.back());
  std::swap(ends[axis], ends.back());
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  auto compute = ComputeOp::create(builder, loc, indices, ends, ArrayRef<Type>{element},
                                   ArrayRef<StringRef>{result}, ArrayRef<SmallVector<unsigned>>{},
                                   [&](OpBuilder &body, Location at, ValueRange places) {
                                     SmallVector<Value> from(places);
                                     std::swap(from[axis], from.back());
                                     Value value = LoadOp::create(body, at, tensor, from, Value());
                                     YieldOp::create(body, at, value);
                                   });
  return compute->getResult(0);
}

static std::string nameOf(BatchProduct &product, Value index) {
  auto argument = cast<BlockArgument>(index);
  ArrayAttr names = argument.getOwner() == product.compute.getBlock()
                        ? product.compute.getIndexNames()
                        : product.reduce.getIndexNames();
  return cast<StringAttr>(names[argument.getArgNumber()]).str();
}

static void turn(BatchProduct &product) {
  ComputeOp compute = product.compute;
  Location loc = compute.getLoc();
  OpBuilder builder(compute);
  std::string name = cast<StringAttr>(compute.getNames()[0]).str();
  note(compute, passName, Verdict::Derived,
       "the operands of " + describe(compute) +
           " are stored contiguous along its sum, and its result is transposed behind it");
  llvm::SmallDenseMap<std::pair<Value, unsigned>, Value> stored;
  for (LoadOp factor : product.factors) {
    unsigned axis = product.axisOfSum(factor);
    Value &turned = stored[{factor.getTensor(), axis}];
    if (!turned) {
      SmallVector<std::string> names;
      for (Value index : factor.getIndices())
        names.push_back(nameOf(product, index));
      turned = exchange(builder, loc, factor.getTensor(), names,
                        getExtents(product.kernel, factor.getTensor()), axis, name + ".turned");
    }
    OpBuilder inner(factor);
    SmallVector<Value> at(factor.getIndices());
    std::swap(at[axis], at.back());
    factor.replaceAllUsesWith(
        LoadOp::create(inner, factor.getLoc(), turned, at, Value()).getResult());
    factor.erase();
  }
  SmallVector<std::string> names;
  for (Attribute index : compute.getIndexNames())
    names.push_back(cast<StringAttr>(index).str());
  SmallVector<Value> extents(compute.getExtents());
  std::swap(names[product.axis], names.back());
  std::swap(extents[product.axis], extents.back());
  SmallVector<StringRef> indices(names.begin(), names.end());
  Type element = cast<RankedTensorType>(compute.getResult(0).getType()).getElementType();
  std::string between = name + ".between";
  auto turned = ComputeOp::create(builder, loc, indices, extents, ArrayRef<Type>{element},
                                  ArrayRef<StringRef>{between}, ArrayRef<SmallVector<unsigned>>{},
                                  [&](OpBuilder &body, Location, ValueRange places) {
                                    SmallVector<Value> at(places);
                                    std::swap(at[product.axis], at.back());
                                    IRMapping mapping;
                                    mapping.map(compute.getBlock()->getArguments(), at);
                                    for (Operation &op : *compute.getBlock())
                                      body.clone(op, mapping);
                                  });
  Value result = exchange(builder, loc, turned->getResult(0), names, extents, product.axis, name);
  compute->getResult(0).replaceAllUsesWith(result);
  compute.erase();
}

unsigned tk::turnBatches(KernelOp kernel) {
  unsigned count = 0;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
    if (std::optional<BatchProduct> product = BatchProduct::of(kernel, compute)) {
      turn(*product);
      ++count;
    }
  return count;
}
