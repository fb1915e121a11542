//===- StoreNumbers.cpp - storing operands that are packed ----------------===//
//
// Weights of 4 bits are packed: several numbers share a word, a table gives each number its value,
// and groups of elements share a scale. No TMA box has elements of that kind. A contraction then
// computes each element again for each tile of rows, by the instructions of threads.
//
// 1. The pattern matches a sum of products of two operands of 16 bits over one index. One operand
//    selects numbers by the remainder of an index, or by a loaded value (PackedFactors.h). In a sum
//    of products of integers, one operand is loaded in 8 bits, and the other one fits 8 bits.
// 2. A compute op stores this operand once in 16 bits, or in 8, with its indices in the order of
// the tensor
//    that holds the numbers. The contraction loads it.
//    The same holds for a sum of blocks with scales of their own: an integer that is computed for
//    an operand of a block is stored.
// 3. The pattern declines if warpgroups unpack the operand: they take the words from boxes, and
//    other warps multiply meanwhile.
// 4. The pattern declines if the store takes more time than it saves. It saves the instructions of
//    each tile of rows but one, and those that idle multiprocessors do not execute.
//
//   %y = tk.compute ["m", "n"] {tk.reduce [sum] ["k"] {
//          x[m, k] * bf16(f32(q[k, n / 8] >> 4 * (n % 8) & 15) * s[k / 128, n])}}
//     =>
//   %w = tk.compute ["k", "n"] {bf16(f32(q[k, n / 8] >> 4 * (n % 8) & 15) * s[k / 128, n])}
//   %y = tk.compute ["m", "n"] {tk.reduce [sum] ["k"] {x[m, k] * w[k, n]}}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/operands/StoreNumbers.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/Declines.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/PackedFactors.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/Machine.h"
#include "passes/machine/limits/Packed.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-materialize-operands:packed-numbers";
using namespace limits::store_numbers;

/// Has a box of what `load` reads, of a tile of words, rows that are long enough? Lookups have
/// none.
static bool hasBox(LoadOp load, Block *body) {
  if (llvm::any_of(getSlice(load.getIndices(), body), llvm::IsaPred<LoadOp>) ||
      load.getIndices().empty())
    return false;
  auto quotient = load.getIndices().back().getDefiningOp<FloorDivOp>();
  std::optional<int64_t> run = quotient ? getConstantIndex(quotient.getRhs()) : std::nullopt;
  // One number of a group that is as long as a tile needs no box.
  return !run || *run >= termsOfPart ||
         columnsOfTile / static_cast<double>(*run) * load.getType().getIntOrFloatBitWidth() / 8 >=
             bytesOfRow;
}

/// Do warpgroups read the words of `factor` in boxes (BulkBox.h), and parts of its sum? The columns
/// have whole tiles.
static bool isReadInBoxes(KernelOp kernel, ComputeOp compute, ReduceOp reduce, Value factor) {
  auto target =
      compute->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  if (!hasFeature(target, Feature::WarpgroupProducts) ||
      !isUnpackedInParts(kernel, reduce, factor, termsOfPart))
    return false;
  for (Operation *op : getSlice(factor, reduce.getBlock()))
    if (auto load = dyn_cast<LoadOp>(op); load && !hasBox(load, reduce.getBlock()))
      return false;
  return llvm::all_of(
      llvm::zip_equal(compute.getBlock()->getArguments(), compute.getExtents()), [&](auto entry) {
        auto [index, extent] = entry;
        return !Dependence(ValueRange{index}).on(factor) ||
               getSizeFact(kernel, extent).divisor % static_cast<int64_t>(columnsOfTile) == 0;
      });
}

/// Nanoseconds that the tiles of `compute` take to compute `factor`, an operand of its sum. CUDA
/// cores multiply integers that are not stored in 8 bits (`isInteger`).
static double timeInTiles(KernelOp kernel, ComputeOp compute, ReduceOp reduce, Value factor,
                          bool isInteger, double elements, int64_t processors) {
  double rows = 1, columns = 1;
  for (auto [index, extent] :
       llvm::zip_equal(compute.getBlock()->getArguments(), compute.getExtents()))
    (Dependence(ValueRange{index}).on(factor) ? columns : rows) *= guessSize(kernel, extent);
  if (isInteger)
    return (rows > 1 ? timeOfProduct : timeOfTerm) * elements;
  const double tilesOfRows = std::ceil(rows / limits::store_numbers::rowsOfTile);
  const double blocks = tilesOfRows * std::ceil(columns / columnsOfTile);
  const double idle = std::max(1.0, static_cast<double>(processors) / blocks);
  const bool isNested = reduce->getParentOp() != compute;
  if (isNested && rows < leastRowsOfBlocks)
    return 0;
  return (isNested ? timeInBlock : timeOfElement) * elements * tilesOfRows * idle;
}

/// Does `reduce` sum blocks of a contraction, which have scales of their own?
static bool isSumOfBlocks(ReduceOp reduce) {
  return !reduce.isOnline() && reduce.getNumIndices() == 1 && reduce.getNumAccumulators() == 1 &&
         reduce.getKind(0) == ReduceKind::Sum;
}

/// The operand of a product that a block of a sum, `reduce`, adds up, if it is converted from an
/// integer which is computed; null if it is not, or if both are.
static Value findComputedInteger(ReduceOp reduce, unsigned n) {
  Value term = reduce.getYield().getValues()[n];
  if (reduce.getNumIndices() != 1 || reduce.getKind(n) != ReduceKind::Sum ||
      (reduce.isOnline() && !reduce.standsAlone(n)) || !isMatrixProductIn(reduce, term))
    return {};
  auto isComputed = [](Value operand) {
    auto converted = withoutExtension(operand).getDefiningOp<arith::SIToFPOp>();
    return converted && converted.getType().getIntOrFloatBitWidth() == 16 &&
           converted.getIn().getDefiningOp() &&
           !isa<LoadOp, arith::ExtSIOp, arith::ExtUIOp>(converted.getIn().getDefiningOp());
  };
  Operation *product = term.getDefiningOp();
  Value a = product->getOperand(0), b = product->getOperand(1);
  if (isComputed(a) == isComputed(b))
    return {};
  return withoutExtension(isComputed(a) ? a : b);
}

namespace {

/// A packed operand of the sum of a compute op.
class PackedOperand {
public:
  PackedOperand(KernelOp kernel, ComputeOp compute, ReduceOp reduce)
      : kernel(kernel), compute(compute), reduce(reduce), factor(findPackedFactor(reduce)) {
    if (factor)
      return;
    factor = findPackedInteger(reduce);
    isInteger = static_cast<bool>(factor);
  }
  /// That of product `n` of a block of the sum `outer`.
  PackedOperand(KernelOp kernel, ComputeOp compute, ReduceOp outer, ReduceOp reduce, unsigned n)
      : kernel(kernel), compute(compute), reduce(reduce), outer(outer),
        factor(findComputedInteger(reduce, n)) {}

  bool store(int64_t processors);

private:
  /// An index that the operand is over, of the compute op or of the sum.
  struct Axis {
    BlockArgument index;
    Value extent;
    StringRef name;
    int64_t rank;
  };
  bool readAxes();
  void replace();

  KernelOp kernel;
  ComputeOp compute;
  ReduceOp reduce, outer; ///< the sum, and the sum of blocks around it, if any
  Value factor;
  bool isInteger = false; ///< that fits 8 bits, and is stored in them
  SmallVector<Axis> axes;
};

} // namespace

/// Finds the operand's indices, in the order in which the tensor of most axes has them; of several
/// along one axis the compute op's first.
bool PackedOperand::readAxes() {
  constexpr int64_t depths = 3; // of indices: the compute op's, those of blocks, those of terms
  LoadOp widest;
  for (Operation *op : getSlice(factor, reduce.getBlock()))
    if (auto load = dyn_cast<LoadOp>(op);
        load && (!widest || load.getIndices().size() > widest.getIndices().size()))
      widest = load;
  if (!widest)
    return false;
  for (BlockArgument index : getIterationIndices(factor)) {
    const unsigned n = index.getArgNumber();
    Dependence onIndex(ValueRange{index});
    auto at = llvm::find_if(widest.getIndices(), [&](Value place) { return onIndex.on(place); });
    const int64_t place = depths * (at - widest.getIndices().begin());
    if (index.getOwner() == compute.getBlock()) {
      auto name = cast<StringAttr>(compute.getIndexNames()[n]);
      axes.push_back({index, compute.getExtents()[n], name.getValue(), place});
      continue;
    }
    auto sum = outer && index.getOwner() == outer.getBlock() ? outer : reduce;
    if (index.getOwner() != sum.getBlock() || n >= sum.getNumIndices() ||
        wholeExtent(sum, n, compute) != sum.getUpper()[n])
      return false;
    auto name = cast<StringAttr>(sum.getIndexNames()[n]);
    axes.push_back({index, sum.getUpper()[n], name.getValue(), place + (sum == outer ? 1 : 2)});
  }
  llvm::sort(axes, [](const Axis &a, const Axis &b) {
    return std::pair(a.rank, a.index.getArgNumber()) < std::pair(b.rank, b.index.getArgNumber());
  });
  return llvm::any_of(axes, [&](const Axis &axis) { return axis.index == reduce.getIndex(0); });
}

/// Stores the operand by a compute op of its own, and loads it in its place.
void PackedOperand::replace() {
  SmallVector<StringRef> names;
  SmallVector<Value> extents, indices;
  for (const Axis &axis : axes) {
    names.push_back(axis.name);
    extents.push_back(axis.extent);
    indices.push_back(axis.index);
  }
  const std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + ".unpacked").str();
  OpBuilder builder(compute);
  Type type = isInteger ? builder.getI8Type() : factor.getType();
  auto stored = ComputeOp::create(builder, factor.getLoc(), names, extents, ArrayRef<Type>{type},
                                  ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{},
                                  [&](OpBuilder &body, Location loc, ValueRange places) {
                                    IRMapping mapping;
                                    mapping.map(indices, places);
                                    Value element = cloneFrom(body, factor, compute, mapping);
                                    if (isInteger)
                                      element = arith::TruncIOp::create(body, loc, type, element);
                                    YieldOp::create(body, loc, element);
                                  });
  OpBuilder after(factor.getContext());
  after.setInsertionPointAfterValue(factor);
  Value element =
      LoadOp::create(after, factor.getLoc(), stored->getResult(0), indices, Value()).getResult();
  if (isInteger)
    element = arith::ExtSIOp::create(after, factor.getLoc(), factor.getType(), element);
  factor.replaceAllUsesWith(element);
  eraseDead(compute);
}

bool PackedOperand::store(int64_t processors) {
  if (!factor)
    return false;
  if (!isInteger && !outer && isReadInBoxes(kernel, compute, reduce, factor))
    return decline(reduce, passName,
                   "warpgroups unpack the operand under their products, from boxes of its words");
  if (!readAxes())
    return decline(reduce, passName, "the packed operand is not over indices of its own");
  double elements = 1;
  for (const Axis &axis : axes)
    elements *= guessSize(kernel, axis.extent);
  const double inTiles =
      timeInTiles(kernel, compute, reduce, factor, isInteger, elements, processors);
  if (!savesTime(reduce, passName, "storing its packed operand", inTiles,
                 (isInteger ? bytesMoved / 2 : bytesMoved) * cost::byte * elements +
                     timeOfElement * elements + cost::launch))
    return false;
  note(reduce, passName, Verdict::Derived,
       "the packed operand of the " + describe(reduce) + " is stored by a statement of its own");
  replace();
  return true;
}

unsigned tk::storeNumbers(KernelOp kernel, int64_t processors) {
  unsigned stored = 0;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
    for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>())) {
      stored += PackedOperand(kernel, compute, reduce).store(processors);
      if (!isSumOfBlocks(reduce))
        continue;
      for (ReduceOp inner : llvm::to_vector(reduce.getBlock()->getOps<ReduceOp>()))
        for (unsigned n = 0; n < inner.getNumAccumulators(); ++n)
          stored += PackedOperand(kernel, compute, reduce, inner, n).store(processors);
    }
  return stored;
}
