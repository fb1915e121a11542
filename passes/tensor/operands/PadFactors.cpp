//===- PadFactors.cpp - padding operands to whole memory lines ------------===//
//
// cp.async copies 16 bytes at a time, and TMA loads boxes whose rows are multiples of 16 bytes
// apart. An operand with unaligned rows is loaded element by element instead. Its contraction
// reaches a fraction of the rate, and wgmma does not take it at all.
//
// 1. The pattern matches compute ops whose reductions are contractions of operands that are loaded
//    as they are stored. The sum is over an axis of each operand or a part of one. Either wgmma
//    would multiply the operands, or they are f32 or f64.
// 2. A compute op stores each operand with unaligned rows. The rows of the copy are whole memory
//    lines and end in zeros. The copy is made if it takes less time than it saves. Contractions
//    that read the same operand share the copy.
// 3. In large f32 contractions on CUDA cores, operands that are contiguous along the sum are stored
//    transposed if the rows of either operand are unaligned. (TransposeFactors.cpp handles the
//    others.)
// 4. Sums along rows of whole lines run to the end of these rows. The other operand reads zero
//    there.
//
//   %c = tk.compute ["i", "j"] in (%M, %N) {tk.reduce [sum] ["k"] to (%K) {a[i, k] * b[k, j]}}
//     =>
//   %x = tk.compute ["i", "k"] in (%M, %Kp) {pad(a[i, k], 0)}       // Kp: K up to whole lines
//   %y = tk.compute ["k", "j"] in (%K, %Np) {pad(b[k, j], 0)}
//   %c = tk.compute ["i", "j"] in (%M, %N) {
//          tk.reduce [sum] ["k"] to (%Kp) {pad(x[i, k], 0) * pad(y[k, j], 0)}}
//
// Only its own extents bound the loads of a copy, so that whole vectors are in bounds.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/operands/PadFactors.h"
#include "passes/machine/limits/Operands.h"

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

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-materialize-operands:pad";
using namespace limits::pad_factors;

namespace {

/// A reduction of a statement that sums products of loaded factors of one type.
struct Product {
  ReduceOp reduce;
  llvm::SetVector<LoadOp> factors;
  bool isWide; ///< f32 or f64 that no warpgroup multiplies
};

class FactorPadding {
public:
  FactorPadding(KernelOp kernel, int64_t processors) : kernel(kernel), processors(processors) {}

  unsigned pad(ComputeOp compute);

private:
  std::optional<Product> read(ComputeOp compute, ReduceOp reduce);
  bool isTurned(ComputeOp compute, const Product &product, LoadOp factor);
  bool isStoredAnew(ComputeOp compute, const Product &product, LoadOp factor) {
    return !isAligned(factor) || isTurned(compute, product, factor);
  }
  bool isAligned(LoadOp factor) { return getRowAlignment(kernel, factor) >= boxAlignment; }
  std::optional<double> savedOf(ComputeOp compute, const Product &product);
  bool pays(ComputeOp compute, ArrayRef<Product> products);
  Value padded(ComputeOp compute, Value extent, Type element);
  Value store(ComputeOp compute, LoadOp factor, bool turns);
  void apply(ComputeOp compute, const Product &product);

  KernelOp kernel;
  int64_t processors;
  /// What was stored of a tensor, as it lies or turned, and what extents became.
  llvm::MapVector<Value, Value> stored[2];
  llvm::MapVector<std::pair<Value, int64_t>, Value> lengths;
};

} // namespace

static int64_t bytesOf(Type element) {
  return std::max<int64_t>(element.getIntOrFloatBitWidth() / 8, 1);
}

/// Where the range of a sum ends that goes up to an axis's end, or is the part of one that does.
static Value endOf(ReduceOp reduce) {
  Value upper = reduce.getUpper()[0];
  auto least = upper.getDefiningOp<arith::MinSIOp>();
  return least ? least.getRhs() : upper;
}

/// Is `load` the element of a tensor at bare indices, of which that of the sum is one and ranges
/// over its axis, or a part of it?
static bool isPlain(KernelOp kernel, ReduceOp reduce, LoadOp load) {
  SmallVector<Value> extents = getExtents(kernel, load.getTensor());
  Value k = reduce.getIndex(0);
  auto type = cast<RankedTensorType>(load.getTensor().getType());
  if (load.getPad() || load->getBlock() != reduce.getBlock() || extents.size() < 2 ||
      extents.size() != load.getIndices().size() || type.getElementType() != load.getType() ||
      !isa<BlockArgument>(load.getIndices().back()))
    return false;
  unsigned along = 0;
  for (auto [index, extent] : llvm::zip_equal(load.getIndices(), extents)) {
    if (!llvm::is_contained(getIterationIndices(index), k))
      continue;
    if (index != k || !isSameExtent(endOf(reduce), extent))
      return false;
    ++along;
  }
  return along == 1;
}

std::optional<Product> FactorPadding::read(ComputeOp compute, ReduceOp reduce) {
  if (reduce.getNumIndices() != 1 || !isMatrixProduct(reduce) ||
      !isKernelLevel(endOf(reduce), compute))
    return std::nullopt;
  Product product{reduce, {}, false};
  Precision precision = getSumPrecision(reduce);
  for (auto [n, term] : llvm::enumerate(reduce.getYield().getValues())) {
    Operation *multiply = term.getDefiningOp();
    if (reduce.getKind(n) != ReduceKind::Sum ||
        !isa_and_nonnull<arith::MulFOp, arith::MulIOp>(multiply))
      return std::nullopt;
    for (Value factor : multiply->getOperands()) {
      auto load = withoutExtension(factor).getDefiningOp<LoadOp>();
      if (!load || !isPlain(kernel, reduce, load))
        return std::nullopt;
      Type type = load.getType();
      product.isWide = isWideProduct(type, precision);
      if (!product.isWide &&
          !(haveWarpgroupProduct(type, precision) && isMultipliedAsStored(compute, factor)))
        return std::nullopt;
      product.factors.insert(load);
      if (type != product.factors.getArrayRef()[0]->getResult(0).getType())
        return std::nullopt;
    }
  }
  return product;
}

std::optional<double> tk::countElements(KernelOp kernel, ValueRange extents) {
  double count = 1;
  for (Value extent : extents) {
    std::optional<int64_t> upper = getSizeFact(kernel, extent).upper;
    if (!upper)
      return std::nullopt;
    count *= static_cast<double>(std::max<int64_t>(*upper, 1));
  }
  return count;
}

/// Is `factor`, of f32 on CUDA cores and along the sum, stored across it?
bool FactorPadding::isTurned(ComputeOp compute, const Product &product, LoadOp factor) {
  OperandRange indices = factor.getIndices();
  if (!product.isWide || !factor.getType().isF32() ||
      indices.back() != ReduceOp(product.reduce).getIndex(0) ||
      !llvm::is_contained(compute.getBlock()->getArguments(), indices[indices.size() - 2]))
    return false;
  std::optional<double> outputs = countElements(kernel, compute.getExtents());
  return outputs && *outputs >= cost::outputsOfLargeTile * static_cast<double>(processors);
}

/// What `product` takes less of time with factors in rows of whole lines; nothing if sizes are not
/// known.
std::optional<double> FactorPadding::savedOf(ComputeOp compute, const Product &product) {
  ReduceOp reduce = product.reduce;
  std::optional<double> outputs = countElements(kernel, compute.getExtents()),
                        depth = countElements(kernel, reduce.getUpper());
  if (!outputs || !depth || compute.getNumIndices() < 2)
    return std::nullopt;
  double terms = *depth * reduce.getNumAccumulators();
  // Parts of a sum have its terms together.
  for (BlockArgument index : getIterationIndices(reduce.getLower()[0]))
    if (index.getOwner() == compute.getBlock())
      terms /= countElements(kernel, compute.getExtents()[index.getArgNumber()]).value_or(1);
  if (product.isWide) {
    double saved = 0;
    for (LoadOp factor : product.factors) {
      if (!isAligned(factor))
        saved = std::max(saved, factor.getType().isF64() ? cost::savedByWideCopiesOfF64
                                                         : cost::savedByWideCopiesOfF32);
    }
    for (LoadOp factor : product.factors)
      saved += isTurned(compute, product, factor) ? cost::savedByTransposeForCores : 0;
    return saved * *outputs * terms;
  }
  double tiles = *outputs, outputsOfTile = 1;
  for (Value extent : compute.getExtents().take_back(2)) {
    int64_t size = static_cast<int64_t>(*countElements(kernel, extent));
    if (size < fewestRows)
      return 0;
    tiles *=
        static_cast<double>(llvm::divideCeil(size, rowsOfLargestTile)) / static_cast<double>(size);
    outputsOfTile *= static_cast<double>(std::min<int64_t>(size, rowsOfLargestTile));
  }
  // Several tiles of small products of a batch are on a multiprocessor at a time.
  const double atOnce = std::max(cost::outputsOfLargeTile / outputsOfTile, 1.0);
  return cost::savedByPaddingOfWave * terms *
         std::ceil(tiles / (static_cast<double>(processors) * atOnce));
}

/// Does storing factors of `products` anew take less time than it saves? Where sizes are not known
/// it is not done.
bool FactorPadding::pays(ComputeOp compute, ArrayRef<Product> products) {
  double saved = 0, cost = 0;
  llvm::SmallPtrSet<Value, 4> counted;
  for (const Product &product : products) {
    std::optional<double> less = savedOf(compute, product);
    if (!less)
      return false;
    saved += *less;
    for (LoadOp factor : product.factors) {
      Value tensor = factor.getTensor();
      if (!isStoredAnew(compute, product, factor) ||
          stored[isTurned(compute, product, factor)].contains(tensor) ||
          !counted.insert(tensor).second)
        continue;
      SmallVector<Value> extents = getExtents(kernel, tensor);
      std::optional<double> rows = countElements(kernel, ArrayRef(extents).drop_back()),
                            length = countElements(kernel, extents.back());
      if (!rows || !length)
        return false;
      double bytes = static_cast<double>(bytesOf(factor.getType()));
      double read = *length * bytes, written = std::ceil(read / lineBytes) * lineBytes;
      cost += cost::byte * *rows * (read + written) + cost::launch;
    }
  }
  return savesTime(compute, "tk-materialize-operands:pad", "padded operands", saved, cost);
}

Value tk::createMultiple(OpBuilder &builder, Location loc, Value extent, int64_t unit) {
  Value size = arith::ConstantIndexOp::create(builder, loc, unit);
  Value last = arith::ConstantIndexOp::create(builder, loc, unit - 1);
  Value end = arith::AddIOp::create(builder, loc, extent, last);
  Value units = FloorDivOp::create(builder, loc, end.getType(), end, size);
  return arith::MulIOp::create(builder, loc, units, size);
}

Value tk::createLines(OpBuilder &builder, Location loc, Value extent, Type element) {
  return createMultiple(builder, loc, extent, lineBytes / bytesOf(element));
}

/// `extent`, up to whole lines of elements.
Value FactorPadding::padded(ComputeOp compute, Value extent, Type element) {
  Value &length = lengths[{extent, bytesOf(element)}];
  if (!length) {
    OpBuilder builder(compute);
    length = createLines(builder, compute.getLoc(), extent, element);
  }
  return length;
}

/// The statement that stores `factor` in rows of whole lines, with its last two axes exchanged if
/// it is turned.
Value FactorPadding::store(ComputeOp compute, LoadOp factor, bool turns) {
  Value &result = stored[turns][factor.getTensor()];
  if (result)
    return result;
  SmallVector<Value> extents = getExtents(kernel, factor.getTensor());
  const size_t last = extents.size() - 1;
  if (turns)
    std::swap(extents[last], extents[last - 1]);
  extents[last] = padded(compute, extents[last], factor.getType());
  SmallVector<std::string> texts;
  for (unsigned d = 0; d < extents.size(); ++d)
    texts.push_back("at" + std::to_string(d));
  SmallVector<StringRef> names(texts.begin(), texts.end());
  std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + ".padded").str();
  OpBuilder builder(compute);
  auto statement = ComputeOp::create(
      builder, factor.getLoc(), names, extents, ArrayRef<Type>{factor.getType()},
      ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{},
      [&](OpBuilder &body, Location loc, ValueRange indices) {
        SmallVector<Value> at(indices);
        if (turns)
          std::swap(at[last], at[last - 1]);
        Value zero = arith::ConstantOp::create(body, loc, body.getZeroAttr(factor.getType()));
        YieldOp::create(body, loc,
                        LoadOp::create(body, loc, factor.getTensor(), at, zero).getResult());
      });
  return result = statement->getResult(0);
}

/// Makes the sum's range, or that of its last part, end at `end`.
static void extend(ReduceOp reduce, Value end) {
  Value upper = reduce.getUpper()[0];
  if (auto least = upper.getDefiningOp<arith::MinSIOp>()) {
    OpBuilder before(reduce);
    end = arith::MinSIOp::create(before, reduce.getLoc(), least.getLhs(), end);
  }
  reduce.getUpperMutable()[0].set(end);
}

void FactorPadding::apply(ComputeOp compute, const Product &product) {
  ReduceOp reduce = product.reduce;
  auto isExtended = [&](LoadOp factor) {
    return !isAligned(factor) && factor.getIndices().back() == reduce.getIndex(0) &&
           !isTurned(compute, product, factor);
  };
  if (auto along = llvm::find_if(product.factors, isExtended); along != product.factors.end()) {
    Value extent = getExtents(kernel, LoadOp(*along).getTensor()).back();
    extend(reduce, padded(compute, extent, LoadOp(*along).getType()));
  }
  for (LoadOp factor : product.factors) {
    OpBuilder before(factor);
    Value tensor = factor.getTensor();
    SmallVector<Value> at(factor.getIndices());
    if (bool turns = isTurned(compute, product, factor); turns || !isAligned(factor)) {
      tensor = store(compute, factor, turns);
      if (turns)
        std::swap(at[at.size() - 1], at[at.size() - 2]);
    }
    Value zero =
        arith::ConstantOp::create(before, factor.getLoc(), before.getZeroAttr(factor.getType()));
    Value element = LoadOp::create(before, factor.getLoc(), tensor, at, zero);
    factor.replaceAllUsesWith(element);
    factor.erase();
  }
  note(reduce, passName, Verdict::Derived,
       "operands of the " + describe(reduce) + " are stored again, in rows of whole lines");
}

/// Stores factors of the products of `compute` anew, if there is use in it; how many more there
/// are.
unsigned FactorPadding::pad(ComputeOp compute) {
  SmallVector<Product> products;
  WalkResult all = compute.walk([&](ReduceOp reduce) {
    std::optional<Product> product = read(compute, reduce);
    if (!product || reduce->getBlock() != compute.getBlock())
      return WalkResult::interrupt();
    products.push_back(*product);
    return WalkResult::advance();
  });
  if (all.wasInterrupted())
    return 0;
  llvm::erase_if(products, [&](const Product &product) {
    return llvm::none_of(product.factors,
                         [&](LoadOp factor) { return isStoredAnew(compute, product, factor); });
  });
  if (products.empty() || !pays(compute, products))
    return 0;
  size_t before = stored[0].size() + stored[1].size();
  for (const Product &product : products)
    apply(compute, product);
  return stored[0].size() + stored[1].size() - before;
}

unsigned tk::padFactors(KernelOp kernel, int64_t processors) {
  unsigned count = 0;
  FactorPadding padding(kernel, processors);
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
    count += padding.pad(compute);
  return count;
}
