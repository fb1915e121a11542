//===- ContractionFactors.cpp - what multiplies the factors of a sum ------===//
#include "passes/tensor/split/ContractionFactors.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/PackedFactors.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/Machine.h"
#include "passes/machine/limits/Splits.h"
#include "passes/tensor/split/SplitContractions.h"

#include "dialects/tkgpu/TkGpuDialect.h"
#include "dialects/tkgpu/TkGpuProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

std::optional<int64_t> tk::divisorOf(Value index, Value k) {
  auto quotient = index.getDefiningOp<FloorDivOp>();
  return quotient && quotient.getLhs() == k ? getConstantIndex(quotient.getRhs()) : std::nullopt;
}

/// May all of what `load`, of a factor of `reduce`, reads be read a part of the sum at a time?
/// Either rows of terms, which can be copied in bulk if `inBulk` asks for that, or what is the same
/// for a run of terms: a run is a part's, and what lies beyond the end reads as zero.
static bool isReadInParts(KernelOp kernel, ReduceOp reduce, LoadOp load, bool inBulk) {
  auto k = cast<BlockArgument>(reduce.getIndex(0));
  SmallVector<Value> extents = getExtents(kernel, load.getTensor());
  if (load.getPad() || load->getBlock() != reduce.getBlock() || extents.size() < 2 ||
      extents.size() != load.getIndices().size())
    return false;
  unsigned along = 0;
  for (auto [index, extent] : llvm::zip_equal(load.getIndices(), extents)) {
    if (index != k && !llvm::is_contained(getIterationIndices(index), k))
      continue;
    ++along;
    std::optional<int64_t> run = divisorOf(index, k);
    auto end = extent.getDefiningOp<FloorDivOp>();
    bool areRuns = run && end && convertedUnit % *run == 0 && rangesOver(reduce, 0, end.getLhs()) &&
                   getConstantIndex(end.getRhs()) == run;
    if (!areRuns && (index != k || !rangesOver(reduce, 0, extent) ||
                     (inBulk && getRowAlignment(kernel, load) < boxAlignment)))
      return false;
  }
  return along == 1;
}

/// Is `factor` zero where all that is loaded for it is?
static bool isZeroOfZeros(Value factor) {
  Operation *op = factor.getDefiningOp();
  if (isa_and_nonnull<LoadOp>(op))
    return true;
  return isa_and_nonnull<arith::ExtFOp, arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp,
                         arith::MulFOp>(op) &&
         llvm::all_of(op->getOperands(), isZeroOfZeros);
}

/// Do both factors of `product` run along `k` in memory?
static bool areAlong(Operation *product, Value k) {
  return llvm::all_of(product->getOperands(), [&](Value factor) {
    auto load = withoutExtension(factor).getDefiningOp<LoadOp>();
    return load && !load.getIndices().empty() && load.getIndices().back() == k;
  });
}

/// Is `factor` computed in f32 or f64 from what is loaded, some of it along the sum?
static bool isComputedWide(ReduceOp reduce, Value factor) {
  std::optional<SmallVector<LoadOp>> loads = getElementsOf(factor);
  return loads && withoutExtension(factor).getType() == factor.getType() &&
         isWideProduct(factor.getType(), getSumPrecision(reduce)) &&
         llvm::all_of(*loads, [](LoadOp load) { return !load.getPad(); }) &&
         llvm::any_of(*loads, [&](LoadOp load) {
           return load->getBlock() == reduce.getBlock() &&
                  llvm::is_contained(load.getIndices(), reduce.getIndex(0));
         });
}

/// Are the factors of `product` f32 or f64 that no warpgroup multiplies, as they are loaded or
/// computed?
static bool areWide(ReduceOp reduce, Operation *product) {
  return isKernelLevel(reduce.getUpper()[0], reduce->getParentOfType<ComputeOp>()) &&
         llvm::all_of(product->getOperands(),
                      [&](Value factor) { return isComputedWide(reduce, factor); });
}

/// Is `term`, of `reduce`, the product of two loaded or computed values, one over the rows and one
/// over the columns of `compute`? CUDA cores multiply them in tiles.
static bool isComputedProduct(ComputeOp compute, ReduceOp reduce, Value term) {
  auto product = term.getDefiningOp<arith::MulFOp>();
  if (!product || compute.getNumIndices() < 2 || !areWide(reduce, product))
    return false;
  const unsigned last = compute.getNumIndices() - 1;
  Dependence onRow({compute.getIndex(last - 1)}), onColumn({compute.getIndex(last)});
  Value left = product.getLhs(), right = product.getRhs();
  if (onRow.on(right))
    std::swap(left, right);
  return onRow.on(left) && onColumn.on(right) && !onRow.on(right) && !onColumn.on(left);
}

/// Are both factors loaded with 16 bits, from rows that can be read in parts, if not in bulk?
static bool areUnaligned(KernelOp kernel, ReduceOp reduce, Operation *product) {
  return llvm::all_of(product->getOperands(), [&](Value factor) {
    auto load = withoutExtension(factor).getDefiningOp<LoadOp>();
    return load && load.getType().getIntOrFloatBitWidth() == 16 &&
           isReadInParts(kernel, reduce, load, /*inBulk=*/false);
  });
}

/// Are both factors computed from what is loaded along the sum, for warps to multiply? Each has
/// rows or columns of its own.
static bool areComputed(ReduceOp reduce, Operation *product) {
  auto isLoaded = [](Value factor) { return isa_and_nonnull<LoadOp>(factor.getDefiningOp()); };
  return reduce.getPrecision() == Precision::Default && isMatrixProduct(reduce) &&
         !llvm::all_of(product->getOperands(),
                       [&](Value factor) { return isLoaded(withoutExtension(factor)); }) &&
         isKernelLevel(reduce.getUpper()[0], reduce->getParentOfType<ComputeOp>()) &&
         llvm::all_of(product->getOperands(), [&](Value factor) {
           std::optional<SmallVector<LoadOp>> loads = getElementsOf(factor);
           return loads && llvm::any_of(*loads, [&](LoadOp load) {
                    return load->getBlock() == reduce.getBlock() && !load.getPad() &&
                           llvm::is_contained(load.getIndices(), reduce.getIndex(0));
                  });
         });
}

/// What becomes of factors that are loaded, or converted from what is.
static Factors classifyLoaded(KernelOp kernel, ReduceOp reduce, Operation *product) {
  if (areWide(reduce, product))
    return Factors::Wide;
  unsigned asStored = 0, narrow = 0;
  for (Value factor : product->getOperands()) {
    if (isUnpackedInParts(kernel, reduce, factor, convertedUnit))
      continue;
    std::optional<SmallVector<LoadOp>> loads = getElementsOf(factor);
    if (!loads || !isZeroOfZeros(factor) || !llvm::all_of(*loads, [&](LoadOp load) {
          return isReadInParts(kernel, reduce, load, /*inBulk=*/true);
        }))
      return areUnaligned(kernel, reduce, product) ? Factors::Unaligned : Factors::Unfit;
    auto load = withoutExtension(factor).getDefiningOp<LoadOp>();
    if (!load)
      continue;
    if (!llvm::is_contained(load.getIndices(), reduce.getIndex(0)))
      return Factors::Unfit;
    asStored += load.getType().getIntOrFloatBitWidth() == 16;
    narrow += gpu::isByteFloat(load.getType());
    if (load.getType().getIntOrFloatBitWidth() > 16)
      return Factors::Unfit;
  }
  if (narrow == 2)
    return areAlong(product, reduce.getIndex(0)) ? Factors::Narrow : Factors::Unfit;
  return asStored == 2 ? Factors::AsStored : Factors::Converted;
}

Factors tk::classifyFactors(KernelOp kernel, ReduceOp reduce) {
  Operation *product = reduce.getYield().getValues()[0].getDefiningOp();
  if (!isa_and_nonnull<arith::MulFOp>(product))
    return Factors::Unfit;
  const Factors loaded = classifyLoaded(kernel, reduce, product);
  return loaded == Factors::Unfit && areComputed(reduce, product) ? Factors::Computed : loaded;
}

/// Has the result several rows and several columns, as far as is known? Of a product whose operand
/// is unpacked one row has a tile, too (AnalyzeStatement.cpp).
static bool hasTiles(ComputeOp compute, ReduceOp reduce) {
  if (compute.getNumIndices() < 2)
    return false;
  if (findPackedFactor(reduce))
    return true;
  auto kernel = compute->getParentOfType<KernelOp>();
  return llvm::none_of(compute.getExtents().take_back(2), [&](Value extent) {
    return getSizeFact(kernel, extent).upper.value_or(2) <= 1;
  });
}

/// Are all that `reduce` carries sums of products on CUDA cores that do not need each other, over
/// one index from zero?
static bool carriesWideProducts(ComputeOp compute, ReduceOp reduce) {
  if (!reduce.isOnline() || reduce.getNumIndices() != 1 ||
      getConstantIndex(reduce.getLower()[0]) != 0)
    return false;
  for (auto [n, term] : llvm::enumerate(reduce.getYield().getValues()))
    if (reduce.getKind(n) != ReduceKind::Sum || !reduce.standsAlone(n) ||
        !isComputedProduct(compute, reduce, term))
      return false;
  return true;
}

/// Is `reduce` a plain sum over one index from zero?
static bool isPlainSum(ReduceOp reduce) {
  return !reduce.isOnline() && reduce.getNumIndices() == 1 && reduce.getNumAccumulators() == 1 &&
         reduce.getKind(0) == ReduceKind::Sum && getConstantIndex(reduce.getLower()[0]) == 0;
}

ReduceOp tk::findGroup(ComputeOp compute, ReduceOp reduce) {
  ReduceOp group;
  unsigned inside = 0;
  reduce.getBody().walk([&](ReduceOp other) {
    group = other;
    ++inside;
  });
  bool isGroup = inside == 1 && isPlainSum(group) && isMatrixProduct(group) &&
                 group->getBlock() == reduce.getBlock() &&
                 getConstantIndex(group.getUpper()[0]).has_value();
  return isGroup && !isMatrixProduct(reduce) && isKernelLevel(reduce.getUpper()[0], compute)
             ? group
             : ReduceOp();
}

/// Is `other` a sum of so few terms beside those of `reduce` that it may be computed where the
/// parts are added up? Neither needs the other: of a layer's weights and an adapter's, say.
static bool isShortBeside(ReduceOp other, ReduceOp reduce) {
  auto kernel = reduce->getParentOfType<KernelOp>();
  if (other->getBlock() != reduce->getBlock() || !isPlainSum(other) || !isPlainSum(reduce) ||
      Dependence(other.getResults()).on(reduce.getResult(0)) ||
      Dependence(reduce.getResults()).on(other.getResult(0)))
    return false;
  std::optional<int64_t> few = getSizeFact(kernel, other.getUpper()[0]).upper,
                         many = getSizeFact(kernel, reduce.getUpper()[0]).upper;
  return few && many && *few <= limits::split_contractions::mostTermsBeside &&
         *few * limits::split_contractions::timesTermsBeside <= *many;
}

ReduceOp tk::getSplitContraction(ComputeOp compute) {
  for (auto reduce : compute.getBlock()->getOps<ReduceOp>())
    if (canSplitContraction(compute, reduce))
      return reduce;
  return {};
}

bool tk::canSplitContraction(ComputeOp compute, ReduceOp reduce) {
  auto target =
      compute->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  if (!target)
    return false;
  WalkResult others = compute.walk([&](ReduceOp other) {
    return reduce->isAncestor(other) || isShortBeside(other, reduce) ? WalkResult::advance()
                                                                     : WalkResult::interrupt();
  });
  if (others.wasInterrupted() || !hasTiles(compute, reduce) ||
      reduce->getBlock() != compute.getBlock())
    return false;
  if (carriesWideProducts(compute, reduce))
    return true;
  if (!isPlainSum(reduce))
    return false;
  const bool onWarpgroups = hasFeature(target, Feature::WarpgroupProducts);
  if (findGroup(compute, reduce))
    return onWarpgroups;
  if (!isMatrixProduct(reduce) &&
      !isComputedProduct(compute, reduce, reduce.getYield().getValues()[0]))
    return false;
  const Factors factors = classifyFactors(compute->getParentOfType<KernelOp>(), reduce);
  return onWarpgroups ? factors != Factors::Unfit
                      : factors == Factors::Wide || factors == Factors::AsStored ||
                            factors == Factors::Unaligned;
}

std::optional<ResultSize> tk::sizeOfResults(KernelOp kernel, ComputeOp compute) {
  SmallVector<int64_t> extents;
  for (Value extent : compute.getExtents()) {
    std::optional<int64_t> upper = getSizeFact(kernel, extent).upper;
    if (!upper || *upper > (int64_t(1) << 20))
      return std::nullopt;
    extents.push_back(std::max<int64_t>(*upper, 1));
  }
  if (extents.size() < 2)
    return std::nullopt;
  ResultSize size;
  size.columns = extents.pop_back_val();
  size.rows = extents.pop_back_val();
  for (int64_t extent : extents)
    size.others = std::min<int64_t>(size.others * extent, 1 << 20);
  return size;
}
