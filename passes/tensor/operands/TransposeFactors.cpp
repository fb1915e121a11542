//===- TransposeFactors.cpp - transposing operands for their contraction --===//
//
// A. wgmma multiplies operands that are contiguous along the sum. In types other than the 16-bit
// ones, one operand may lie otherwise and then goes through registers. The pattern applies if
// neither operand is contiguous along the sum, or if one is in registers because another
// contraction computes it.
// 1. The pattern matches contractions of two operands, at least one of which is loaded with the
//    sum's index and its last index bare. TMA can load its rows, also after these two indices are
//    exchanged.
// 2. A compute op stores the smaller such operand with these two indices exchanged, if that takes
//    less time than the contraction by mma.sync. Contractions that read the operand alike share the
//    copy.
//
//   %c = tk.compute ["i", "j"] {tk.reduce [sum] ["k"] {a[k, i] * b[k, j]} precision <tf32>}
//     =>
//   %t = tk.compute ["j", "k"] {b[k, j]}
//   %c = tk.compute ["i", "j"] {tk.reduce [sum] ["k"] {a[k, i] * t[j, k]} precision <tf32>}
//
// B. Contractions without the matrix unit read vectors of neighbouring rows (columns). Copies to
// shared memory keep the order of global memory. A compute op therefore stores each operand that is
// contiguous along the sum with the sum's index and its other index exchanged, if that takes less
// time than it saves.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/Declines.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Costs.h"
#include "passes/machine/Machine.h"
#include "passes/machine/TileFacts.h"
#include "passes/tensor/operands/MaterializeOperands.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "dialects/tkgpu/TkGpuProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-materialize-operands:transpose";

namespace {

/// A product of which neither factor is contiguous along the sum.
struct Product {
  KernelOp kernel;
  ComputeOp compute;
  ReduceOp reduce;
  unsigned position; ///< the sum among the reduction's results

  double countOutputs();
  double countTerms();
  LoadOp chooseFactor();
  std::optional<unsigned> axisAcross(unsigned side);
  bool isForCudaCores(int64_t processors);
};

class FactorTransposition {
public:
  FactorTransposition(KernelOp kernel, int64_t processors)
      : kernel(kernel), processors(processors) {}

  unsigned transpose(Product product);

private:
  void apply(Product product, LoadOp factor, unsigned axis, StringRef how);
  Value store(Product product, LoadOp factor, unsigned axis);

  KernelOp kernel;
  int64_t processors;
  /// What was stored of a tensor with an axis exchanged for the last one.
  llvm::MapVector<std::pair<Value, unsigned>, Value> stored;
};

} // namespace

static double sizeOf(KernelOp kernel, Value extent) {
  std::optional<int64_t> upper = getSizeFact(kernel, extent).upper;
  return static_cast<double>(std::max<int64_t>(upper.value_or(assumedExtent), 1));
}

/// Where `index` is among what `load` reads at.
static unsigned axisOf(LoadOp load, Value index) {
  return llvm::find(load.getIndices(), index) - load.getIndices().begin();
}

/// Can `factor` be stored with its last index and the sum's exchanged, and copied in bulk then?
static bool isExchangeable(Product product, LoadOp factor) {
  Value k = product.reduce.getIndex(0);
  auto type = cast<RankedTensorType>(factor.getTensor().getType());
  SmallVector<Value> extents = getExtents(product.kernel, factor.getTensor());
  if (factor.getPad() || type.getElementType() != factor.getType() || extents.empty() ||
      extents.size() != factor.getIndices().size() || !llvm::is_contained(factor.getIndices(), k))
    return false;
  Value last = factor.getIndices().back();
  if (!isa<BlockArgument>(last) || last == k)
    return false;
  for (auto [axis, index] : llvm::enumerate(factor.getIndices()))
    if (axis != axisOf(factor, k) && index != last)
      for (BlockArgument argument : getIterationIndices(index))
        if (argument == k || argument == last)
          return false;
  if (llvm::count(factor.getIndices(), last) > 1)
    return false;
  int64_t bits = factor.getType().getIntOrFloatBitWidth();
  int64_t divisor = getSizeFact(product.kernel, extents[axisOf(factor, k)]).divisor;
  return divisor * bits / 8 % boxAlignment == 0;
}

/// Can warpgroups take `factor` through registers: is it computed, element by element, from rows
/// that can be copied in bulk?
static bool isForRegisters(Product product, Value factor) {
  std::optional<SmallVector<LoadOp>> loads = getElementsOf(factor);
  return loads && llvm::all_of(*loads, [&](LoadOp load) {
           return getRowAlignment(product.kernel, load) >= boxAlignment;
         });
}

/// Is `factor`, of a sum of 8-bit floats' products, computed from another product's results? It
/// then stays in registers, and the other factor cannot go through them.
static bool isInRegisters(Product product, Value factor) {
  return gpu::isByteFloat(withoutExtension(factor).getType()) &&
         product.reduce.getPrecision() == Precision::Fast && !getElementsOf(factor);
}

/// The indices of the statement that `factor` depends on.
static SmallVector<BlockArgument> getOuterIndices(ComputeOp compute, Value factor) {
  SmallVector<BlockArgument> indices = getIterationIndices(factor);
  llvm::erase_if(indices,
                 [&](BlockArgument index) { return index.getOwner() != compute.getBlock(); });
  return indices;
}

/// How many sums there are: the indices that the terms depend on. Of a sum in parts those of one
/// part: all parts together have the terms of the whole.
double Product::countOutputs() {
  double outputs = 1;
  SmallVector<BlockArgument> parts = getIterationIndices(reduce.getLower()[0]);
  SmallVector<BlockArgument> own =
      getOuterIndices(compute, reduce.getYield().getValues()[position]);
  for (auto [index, extent] :
       llvm::zip_equal(compute.getBlock()->getArguments(), compute.getExtents()))
    if (llvm::is_contained(own, index) && !llvm::is_contained(parts, index))
      outputs *= sizeOf(kernel, extent);
  return outputs;
}

double Product::countTerms() { return countOutputs() * sizeOf(kernel, reduce.getUpper()[0]); }

/// The factor to store transposed; null if there is none, or no use in it.
LoadOp Product::chooseFactor() {
  Operation *multiply = reduce.getYield().getValues()[position].getDefiningOp();
  if (!isa_and_nonnull<arith::MulFOp, arith::MulIOp>(multiply))
    return {};
  double bytes = std::numeric_limits<double>::max();
  LoadOp chosen;
  for (unsigned side : {1, 0}) {
    Value factor = multiply->getOperand(side), other = multiply->getOperand(1 - side);
    auto load = withoutExtension(factor).getDefiningOp<LoadOp>();
    if (!load || !haveWarpgroupProduct(load.getType(), getSumPrecision(reduce)) ||
        isMultipliedAsStored(compute, factor) || isMultipliedAsStored(compute, other) ||
        !isExchangeable(*this, load) ||
        !(reduce.isOnline() ? isInRegisters(*this, other) : isForRegisters(*this, other)))
      continue;
    double size = load.getType().getIntOrFloatBitWidth() / 8.0;
    for (Value extent : getExtents(kernel, load.getTensor()))
      size *= sizeOf(kernel, extent);
    if (size < bytes)
      bytes = size, chosen = load;
  }
  // Each byte is read and written.
  const bool pays =
      chosen && savesTime(reduce, "tk-materialize-operands:transpose", "a transposed operand",
                          cost::savedByTransposeForWarpgroups * countTerms(),
                          2 * cost::byte * bytes + cost::launch);
  return pays ? chosen : LoadOp();
}

/// Is the product left to CUDA cores, as one in f32 is, and large enough for all of them?
bool Product::isForCudaCores(int64_t processors) {
  if (countOutputs() < cost::outputsOfLargeTile * processors)
    return false;
  auto multiply = reduce.getYield().getValues()[position].getDefiningOp<arith::MulFOp>();
  // Rows times a vector reuse nothing of the matrix: each factor has an index that the other lacks.
  auto hasOwnIndex = [&](unsigned side) {
    SmallVector<BlockArgument> others = getOuterIndices(compute, multiply->getOperand(1 - side));
    return llvm::any_of(getOuterIndices(compute, multiply->getOperand(side)),
                        [&](BlockArgument index) { return !llvm::is_contained(others, index); });
  };
  return multiply && multiply.getType().isF32() && hasOwnIndex(0) && hasOwnIndex(1) &&
         llvm::all_of(multiply->getOperands(), [&](Value factor) {
           return factor.getDefiningOp<LoadOp>() &&
                  !haveWarpgroupProduct(factor.getType(), getSumPrecision(reduce));
         });
}

/// The axis of a factor that is contiguous along the sum whose place would be exchanged with the
/// sum's: that of the one index that the other factor lacks. Nothing if there is none, or no use.
std::optional<unsigned> Product::axisAcross(unsigned side) {
  Operation *multiply = reduce.getYield().getValues()[position].getDefiningOp();
  auto factor = multiply->getOperand(side).getDefiningOp<LoadOp>();
  auto other = multiply->getOperand(1 - side).getDefiningOp<LoadOp>();
  auto type = cast<RankedTensorType>(factor.getTensor().getType());
  SmallVector<Value> extents = getExtents(kernel, factor.getTensor());
  Value k = reduce.getIndex(0);
  if (factor.getPad() || type.getElementType() != factor.getType() || factor.getIndices().empty() ||
      extents.size() != factor.getIndices().size() || factor.getIndices().back() != k)
    return std::nullopt;
  std::optional<unsigned> across;
  for (auto [axis, index] : llvm::enumerate(factor.getIndices().drop_back())) {
    if (llvm::is_contained(getIterationIndices(index), k))
      return std::nullopt;
    if (isa<BlockArgument>(index) &&
        llvm::is_contained(compute.getBlock()->getArguments(), index) &&
        llvm::none_of(other.getIndices(), [&](Value at) {
          return llvm::is_contained(getIterationIndices(at), index);
        })) {
      if (across || llvm::count(factor.getIndices(), index) > 1)
        return std::nullopt;
      across = axis;
    }
  }
  double bytes = 4;
  for (Value extent : extents)
    bytes *= sizeOf(kernel, extent);
  const bool isAligned =
      across && getSizeFact(kernel, extents[*across]).divisor * 4 % boxAlignment == 0;
  const bool pays =
      isAligned && savesTime(reduce, "tk-materialize-operands:transpose", "a transposed operand",
                             cost::savedByTransposeForCores * countTerms(),
                             2 * cost::byte * bytes + cost::launch);
  return pays ? across : std::nullopt;
}

/// Stores the product's factors otherwise, as far as there is use in it; how many.
unsigned FactorTransposition::transpose(Product product) {
  if (LoadOp factor = product.chooseFactor()) {
    apply(product, factor, axisOf(factor, product.reduce.getIndex(0)), "along");
    return 1;
  }
  unsigned count = 0;
  if (product.isForCudaCores(processors))
    for (unsigned side : {0, 1})
      if (std::optional<unsigned> axis = product.axisAcross(side)) {
        Operation *multiply =
            product.reduce.getYield().getValues()[product.position].getDefiningOp();
        apply(product, multiply->getOperand(side).getDefiningOp<LoadOp>(), *axis, "across");
        ++count;
      }
  return count;
}

/// The statement that stores `factor` with `axis` exchanged for the last one.
Value FactorTransposition::store(Product product, LoadOp factor, unsigned axis) {
  Value &result = stored[{factor.getTensor(), axis}];
  if (result)
    return result;
  auto axes = llvm::to_vector(llvm::seq<unsigned>(0, factor.getIndices().size()));
  std::swap(axes[axis], axes.back());
  return result = storePermuted(factor, product.compute, product.reduce, axes);
}

void FactorTransposition::apply(Product product, LoadOp factor, unsigned axis, StringRef how) {
  Value turned = store(product, factor, axis);
  note(product.reduce, passName, Verdict::Derived,
       "an operand of the " + describe(product.reduce) + " is stored again, contiguous " +
           how.str() + " the sum");
  OpBuilder builder(factor);
  SmallVector<Value> at(factor.getIndices());
  std::swap(at[axis], at.back());
  Value element = LoadOp::create(builder, factor.getLoc(), turned, at, Value());
  factor.replaceAllUsesWith(element);
  factor.erase();
}

unsigned tk::transposeFactors(KernelOp kernel, int64_t processors) {
  unsigned transposed = 0;
  FactorTransposition transposition(kernel, processors);
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
    for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>())) {
      if (reduce.getNumIndices() != 1 || (!reduce.isOnline() && !isMatrixProduct(reduce)))
        continue;
      for (unsigned k = 0; k < reduce.getNumAccumulators(); ++k)
        if (reduce.getKind(k) == ReduceKind::Sum)
          transposed += transposition.transpose({kernel, compute, reduce, k});
    }
  return transposed;
}
