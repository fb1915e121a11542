//===- TransposeFactors.cpp - factors stored as products read them --------===//
//
// Warpgroups multiply factors that are contiguous along the sum; of other types than those of 16
// bits one factor may lie otherwise, which then goes through registers. Where neither factor is
// contiguous along the sum, or one is in registers since it is computed from another product:
// 1. Take products of two factors of which one at least is loaded, with its last index and the
//    sum's as they are, and whose rows can be copied in bulk, also once these change places.
// 2. The smaller such factor is stored once more, in a statement of its own, with those two indices
//    exchanged, if that takes less time than multiplying by warps does. Products that read the same
//    factor alike share what was stored.
//
//   %c = tk.compute ["i", "j"] {tk.reduce [sum] ["k"] {a[k, i] * b[k, j]} precision <tf32>}
//     =>
//   %t = tk.compute ["j", "k"] {b[k, j]}
//   %c = tk.compute ["i", "j"] {tk.reduce [sum] ["k"] {a[k, i] * t[j, k]} precision <tf32>}
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/tiling/SizeFacts.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "dialects/tkgpu/TkGpuProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tk {
#define GEN_PASS_DEF_TRANSPOSEFACTORS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-transpose-factors";
/// Nanoseconds, measured on an H200 with tf32 at 4096 x 4096 x 4096: what warpgroups save of a term
/// of a product, to read or write a byte, to launch once more.
static constexpr double savedOfTerm = 6.8e-6, costOfByte = 2.7e-4, costOfLaunch = 2500;
/// What an extent that nothing is known of is taken to be.
static constexpr int64_t unboundedExtent = int64_t(1) << 14;

namespace {

/// A product of which neither factor is contiguous along the sum.
struct Product {
  KernelOp kernel;
  ComputeOp compute;
  ReduceOp reduce;
  unsigned position; ///< the sum among the reduction's results

  double countTerms();
  LoadOp chooseFactor();
};

class FactorTransposition {
public:
  explicit FactorTransposition(KernelOp kernel) : kernel(kernel) {}

  void apply(Product product, LoadOp factor);

private:
  Value store(Product product, LoadOp factor, unsigned axis);

  KernelOp kernel;
  /// What was stored of a tensor with an axis exchanged for the last one.
  llvm::MapVector<std::pair<Value, unsigned>, Value> stored;
};

} // namespace

static double sizeOf(KernelOp kernel, Value extent) {
  std::optional<int64_t> upper = getSizeFact(kernel, extent).upper;
  return static_cast<double>(std::max<int64_t>(upper.value_or(unboundedExtent), 1));
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

double Product::countTerms() {
  double terms = sizeOf(kernel, reduce.getUpper()[0]);
  for (Value extent : compute.getExtents())
    terms *= sizeOf(kernel, extent);
  return terms;
}

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
  bool pays = savedOfTerm * countTerms() > 2 * costOfByte * bytes + costOfLaunch;
  return pays ? chosen : LoadOp();
}

/// The statement that stores `factor` with `axis` exchanged for the last one.
Value FactorTransposition::store(Product product, LoadOp factor, unsigned axis) {
  Value &result = stored[{factor.getTensor(), axis}];
  if (result)
    return result;
  OpBuilder builder(product.compute);
  SmallVector<Value> extents = getExtents(kernel, factor.getTensor());
  SmallVector<std::string> texts;
  for (auto [d, index] : llvm::enumerate(factor.getIndices())) {
    auto argument = dyn_cast<BlockArgument>(index);
    if (!argument) {
      texts.push_back("at" + std::to_string(d));
      continue;
    }
    ArrayAttr names = argument.getOwner() == product.compute.getBlock()
                          ? product.compute.getIndexNames()
                          : product.reduce.getIndexNames();
    texts.push_back(cast<StringAttr>(names[argument.getArgNumber()]).str());
  }
  std::swap(extents[axis], extents.back());
  std::swap(texts[axis], texts.back());
  SmallVector<StringRef> names(texts.begin(), texts.end());
  std::string name = (cast<StringAttr>(product.compute.getNames()[0]).getValue() + ".turned").str();
  auto compute =
      ComputeOp::create(builder, factor.getLoc(), names, extents, ArrayRef<Type>{factor.getType()},
                        ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{},
                        [&](OpBuilder &body, Location loc, ValueRange indices) {
                          SmallVector<Value> at(indices);
                          std::swap(at[axis], at.back());
                          Value element =
                              LoadOp::create(body, loc, factor.getTensor(), at, Value());
                          YieldOp::create(body, loc, element);
                        });
  return result = compute->getResult(0);
}

void FactorTransposition::apply(Product product, LoadOp factor) {
  unsigned axis = axisOf(factor, product.reduce.getIndex(0));
  Value turned = store(product, factor, axis);
  note(product.reduce, passName, Verdict::Derived,
       "a factor of the " + describe(product.reduce) +
           " is stored once more, contiguous along the sum");
  OpBuilder builder(factor);
  SmallVector<Value> at(factor.getIndices());
  std::swap(at[axis], at.back());
  Value element = LoadOp::create(builder, factor.getLoc(), turned, at, Value());
  factor.replaceAllUsesWith(element);
  factor.erase();
}

namespace {

struct TransposeFactors : tk::impl::TransposeFactorsBase<TransposeFactors> {
  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
    if (!target || !target.getHopper())
      return;
    getOperation()->walk([&](KernelOp kernel) {
      FactorTransposition transposition(kernel);
      SmallVector<ComputeOp> computes(kernel.getBody().getOps<ComputeOp>());
      for (ComputeOp compute : computes)
        for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>())) {
          if (reduce.getNumIndices() != 1 || (!reduce.isOnline() && !isMatrixProduct(reduce)))
            continue;
          for (unsigned k = 0; k < reduce.getNumAccumulators(); ++k) {
            Product product{kernel, compute, reduce, k};
            LoadOp factor =
                reduce.getKind(k) == ReduceKind::Sum ? product.chooseFactor() : LoadOp();
            if (!factor)
              continue;
            transposition.apply(product, factor);
            ++numTransposed;
          }
        }
    });
  }
};

} // namespace
