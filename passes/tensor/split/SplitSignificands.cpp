//===- SplitSignificands.cpp - f32 products by bf16x3 decomposition -------===//
//
// Hopper's matrix unit has no f32 product. An f32 number is the sum of three bf16 numbers: 3 times
// 8 bits give its 24 bits, and the exponent ranges are equal. Six of the nine products of two
// decompositions give the f32 product to 2^-24. They take less time than CUDA cores take for one.
//
// 1. Find sums of products of two f32 loads, of default precision, on a target with wgmma. Store an
//    operand that is computed first (ComputedOperands.cpp).
// 2. Find the greatest finite magnitude of each row; a row is the elements that one result sums.
//    Rows from 2^-28 up to 2^127 keep their scale. Greater rows are halved, because their first
//    part could round to infinity. Smaller rows are multiplied by up to 2^24, so that their third
//    part exists. Numbers below 2^-110 in a row that keeps its scale have an error of up to 2^-134.
//    No row affects the bits of another row.
// 3. Store four bf16 numbers for each scaled element (SignificandParts.cpp): its rounding, the same
//    but 0 if it is not finite, and the roundings of the two remainders. Rows are padded with
//    zeros.
// 4. Sum over six pairs of parts. Slices of the sum are added in f32 by threads, because the matrix
//    unit truncates. Only the pair of plain roundings has values that are not finite, so inf and
//    NaN follow IEEE. The result is multiplied by the reciprocal scales of its two rows.
// 5. If the product has too few tiles, blocks share the pairs, and a new compute op stores their
//    sums.
//
// The pass declines if the decomposition takes more time than it saves, if the sizes are unknown,
// or if the parts need too much memory (SignificandCost.cpp).
//
//   %c = tk.compute ["i", "j"] {tk.reduce [sum] ["k"] {a[i, k] * b[k, j]}}
//     =>
//   %up, %off = tk.compute ["i"] {scale for tk.reduce [max] ["k"] {|a[i, k]|}}      (and of b)
//   %p = tk.compute ["i", "part", "k"] {part of a[i, k] * up[i]} over part, i, k      (and of b)
//   %c = tk.compute ["i", "j"] {tk.reduce [sum] ["pair", "k"]
//          {p[left(pair), i, k] * q[right(pair), k, j]} precision <blocked> * off[i] * offb[j]}
//
// Sources: Henry, Tang and Heinecke, "Leveraging the bfloat16 artificial intelligence datatype for
// higher-precision computations" (2019); for adding slices outside of the matrix unit: Ootomo and
// Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing the FP32
// theoretical peak performance" (2022).
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/Machine.h"
#include "passes/tensor/split/SignificandParts.h"

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"

namespace tk {
#define GEN_PASS_DEF_SPLITSIGNIFICANDS
#include "passes/Passes.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-split-significands";

namespace {

class SignificandSplitting {
public:
  SignificandSplitting(KernelOp kernel, const SplitSignificandsOptions &options, int64_t processors)
      : kernel(kernel), options(options), processors(processors), parts(kernel) {}

  unsigned run(ComputeOp compute);

private:
  bool isSplit(ReduceOp reduce);
  bool isFactor(ReduceOp reduce, LoadOp load);
  bool endsWithAxis(ReduceOp reduce, LoadOp load);
  void rewrite(ReduceOp reduce, int64_t shares);
  void widen(ReduceOp reduce);

  KernelOp kernel;
  const SplitSignificandsOptions &options;
  int64_t processors;
  SignificandParts parts;
  SmallVector<ComputeOp> operands; ///< that were computed, and are stored
};

} // namespace

/// Is `load` the element of an f32, bf16 or f16 tensor at bare indices, each at one axis, those of
/// the sum among them?
bool SignificandSplitting::isFactor(ReduceOp reduce, LoadOp load) {
  SmallVector<Value> extents = getExtents(kernel, load.getTensor());
  auto type = cast<RankedTensorType>(load.getTensor().getType());
  // A box has five axes at most, and one is that of the parts.
  if (load.getPad() || load->getBlock() != reduce.getBlock() ||
      !(type.getElementType().isF32() || type.getElementType().isBF16() ||
        type.getElementType().isF16()) ||
      extents.size() != load.getIndices().size() || extents.size() < 2 || extents.size() > 4)
    return false;
  llvm::SmallDenseSet<Value> different;
  for (Value index : load.getIndices())
    if (!isa<BlockArgument>(index) || !different.insert(index).second)
      return false;
  return llvm::all_of(reduce.getBlock()->getArguments().take_front(reduce.getNumIndices()),
                      [&](Value index) { return different.contains(index); });
}

bool SignificandSplitting::isSplit(ReduceOp reduce) {
  if (reduce.getPrecision() != Precision::Default ||
      (reduce.isOnline() ? reduce.getNumIndices() != 1 : !isMatrixProduct(reduce)))
    return false;
  auto first = factorsOf(reduce.getYield().getValues()[0]);
  if (!first)
    return false;
  for (auto [n, term] : llvm::enumerate(reduce.getYield().getValues())) {
    auto factors = factorsOf(term);
    // All terms have the same pairs of parts.
    if (factors && (factors->first.getType() != first->first.getType() ||
                    factors->second.getType() != first->second.getType()))
      return false;
    if (reduce.getKind(n) != ReduceKind::Sum || (reduce.isOnline() && !reduce.standsAlone(n)) ||
        !isMatrixProductIn(reduce, term) || !factors || !isFactor(reduce, factors->first) ||
        !isFactor(reduce, factors->second))
      return false;
  }
  return true;
}

/// Does the range of the sum end where the axis of `load` does?
bool SignificandSplitting::endsWithAxis(ReduceOp reduce, LoadOp load) {
  return isSameExtent(reduce.getUpper().back(),
                      getExtents(kernel, load.getTensor())[axesOfSum(load, reduce).inner]);
}

/// The sums of `shares` shares of the pairs, each stored by a statement of its own, added up.
static Value addUpShares(ReduceOp sums, int64_t shares, int64_t pairs) {
  auto compute = sums->getParentOfType<ComputeOp>();
  Location loc = sums.getLoc();
  OpBuilder builder(compute);
  SmallVector<StringRef> names = {"share"};
  for (Attribute name : compute.getIndexNames())
    names.push_back(cast<StringAttr>(name).getValue());
  SmallVector<Value> extents = {arith::ConstantIndexOp::create(builder, loc, shares)};
  llvm::append_range(extents, compute.getExtents());
  std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + ".shares").str();
  auto stored =
      ComputeOp::create(builder, loc, names, extents, ArrayRef<Type>{sums.getResult(0).getType()},
                        ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{},
                        [&](OpBuilder &body, Location at, ValueRange indices) {
                          IRMapping mapping;
                          mapping.map(compute.getBlock()->getArguments(), indices.drop_front());
                          Value whole =
                              cloneSlice(body, sums.getResult(0), compute.getBlock(), mapping);
                          auto share = whole.getDefiningOp<ReduceOp>();
                          OpBuilder before(share);
                          Value count = arith::ConstantIndexOp::create(before, at, pairs / shares);
                          Value first = arith::MulIOp::create(before, at, indices.front(), count);
                          share.getUpperMutable()[0].set(count);
                          Value pair = share.getIndex(0);
                          OpBuilder inner = OpBuilder::atBlockBegin(share.getBlock());
                          auto ofAll = arith::AddIOp::create(inner, at, first, pair);
                          pair.replaceAllUsesExcept(ofAll, ofAll);
                          YieldOp::create(body, at, whole);
                        });
  builder.setInsertionPoint(sums);
  Value sum;
  for (int64_t share = 0; share < shares; ++share) {
    SmallVector<Value> at = {arith::ConstantIndexOp::create(builder, loc, share)};
    llvm::append_range(at, compute.getBlock()->getArguments());
    Value part = LoadOp::create(builder, loc, stored->getResult(0), at, Value());
    sum = sum ? createCombination(builder, loc, ReduceKind::Sum, sum, part) : part;
  }
  return sum;
}

static void noteParts(ReduceOp reduce, int64_t leftParts, int64_t rightParts) {
  const int64_t pairs = countPairsOf(leftParts, rightParts);
  if (pairs == countPairs)
    note(reduce, passName, Verdict::Derived,
         "the " + describe(reduce) +
             " multiplies f32 numbers as three bf16 parts each, six pairs of them, on the matrix "
             "unit");
  else
    note(reduce, passName, Verdict::Derived,
         "the " + describe(reduce) + " multiplies numbers of " + Twine(leftParts) + " and of " +
             Twine(rightParts) + " bf16 parts, " + Twine(pairs) +
             " pairs of them, on the matrix unit");
}

/// Has `sums` sum `terms`, and erases products, extensions and loads that nothing reads then.
static void replaceTerms(ReduceOp sums, ArrayRef<Value> terms) {
  SmallVector<Value> old(sums.getYield().getValues());
  sums.getYield()->setOperands(terms);
  for (Value term : old)
    if (Operation *product = term.getDefiningOp(); product->use_empty())
      product->erase();
  for (auto extension : llvm::to_vector(sums.getBlock()->getOps<arith::ExtFOp>()))
    if (extension->use_empty())
      extension->erase();
  for (LoadOp load : llvm::to_vector(sums.getBlock()->getOps<LoadOp>()))
    if (load->use_empty())
      load->erase();
}

/// Has the sum go over pairs of parts, shared out among blocks, and takes the scales off it.
void SignificandSplitting::rewrite(ReduceOp reduce, int64_t shares) {
  Location loc = reduce.getLoc();
  OpBuilder builder(reduce);
  auto [first, second] = *factorsOf(reduce.getYield().getValues()[0]);
  const int64_t leftParts = partsOf(first.getType()), rightParts = partsOf(second.getType());
  const int64_t pairs = countPairsOf(leftParts, rightParts);
  if (pairs % shares != 0)
    shares = 1;
  noteParts(reduce, leftParts, rightParts);
  SmallVector<StringRef> names = {"pair"};
  llvm::append_range(names, reduce.getIndexNames().getAsValueRange<StringAttr>());
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value count = arith::ConstantIndexOp::create(builder, loc, pairs);
  llvm::SmallDenseMap<Operation *, StoredParts> partsOf;
  llvm::SmallDenseMap<Operation *, SumAxes> axesOf;
  SmallVector<Value> from = {zero}, ends = {count};
  llvm::append_range(from, reduce.getLower());
  llvm::append_range(ends, reduce.getUpper());
  for (LoadOp load : reduce.getBlock()->getOps<LoadOp>()) {
    partsOf[load] = parts.of(load, reduce);
    axesOf[load] = axesOfSum(load, reduce);
    // A sum up to the axis' end goes on to whole slices, which end in zeros.
    Value length = partsOf[load].length;
    if (length && endsWithAxis(reduce, load))
      ends.back() = length;
  }
  auto sums = ReduceOp::create(builder, loc, reduce.getResultTypes(), reduce.getKinds(),
                               builder.getStrArrayAttr(names), from, ends,
                               PrecisionAttr::get(builder.getContext(), Precision::Blocked));
  sums.getBody().takeBody(reduce.getBody());
  sums.getRescale().takeBody(reduce.getRescale());
  Value pair = sums.getBlock()->insertArgument(0u, builder.getIndexType(), loc);
  builder.setInsertionPointToStart(sums.getBlock());
  Value sides[] = {createPartOfPair(builder, loc, pair, true, leftParts, rightParts),
                   createPartOfPair(builder, loc, pair, false, leftParts, rightParts)};
  builder.setInsertionPoint(sums.getYield());
  SmallVector<Value> terms, powers;
  OpBuilder after(reduce);
  for (auto [n, term] : llvm::enumerate(sums.getYield().getValues())) {
    auto [left, right] = *factorsOf(term);
    Value wide[2];
    for (auto [side, load] : {std::pair(0, left), std::pair(1, right)}) {
      SmallVector<Value> at(load.getIndices());
      at.insert(at.begin(), sides[side]);
      Value part = LoadOp::create(builder, load.getLoc(), partsOf[load].parts, at, Value());
      wide[side] = arith::ExtFOp::create(builder, loc, builder.getF32Type(), part);
    }
    terms.push_back(arith::MulFOp::create(builder, loc, wide[0], wide[1]));
    Value scaled = sums.getResult(n);
    for (LoadOp load : {left, right}) {
      const SmallVector<Value> row = withoutSum(load.getIndices(), axesOf[load]);
      Value off = LoadOp::create(after, loc, partsOf[load].reciprocal, row, Value());
      scaled = arith::MulFOp::create(after, loc, scaled, off);
    }
    powers.push_back(scaled);
  }
  replaceTerms(sums, terms);
  reduce.replaceAllUsesWith(powers);
  reduce.erase();
  if (shares > 1) {
    Value sum = addUpShares(sums, shares, pairs);
    sums.getResult(0).replaceAllUsesWith(sum);
    sums.erase();
  }
}

/// Has the factor of 16 bits stored in f32, beside one of f32.
void SignificandSplitting::widen(ReduceOp reduce) {
  note(reduce, passName, Verdict::Derived,
       "the 16-bit operand of the " + describe(reduce) + " is stored in f32, as the other one is");
  for (auto extension : llvm::to_vector(reduce.getBlock()->getOps<arith::ExtFOp>())) {
    auto load = extension.getIn().getDefiningOp<LoadOp>();
    extension.replaceAllUsesWith(parts.storeWide(load).getResult());
    extension.erase();
    if (load->use_empty())
      load->erase();
  }
}

unsigned SignificandSplitting::run(ComputeOp compute) {
  if (!options.always)
    storeComputedOperands(kernel, compute, processors, operands);
  SmallVector<ReduceOp> sums;
  for (ReduceOp reduce : compute.getBlock()->getOps<ReduceOp>())
    if (isSplit(reduce))
      sums.push_back(reduce);
  SignificandCost cost{kernel, compute, processors};
  if (sums.empty())
    return 0;
  if (!options.always && !cost.pays(sums)) {
    for (ReduceOp reduce : sums)
      if (!reduce.isOnline() && cost.paysWidened(reduce))
        widen(reduce);
    return 0;
  }
  const int64_t shares = options.always ? options.shares : cost.countShares(sums.front());
  parts.store(compute, sums);
  for (ReduceOp reduce : sums)
    rewrite(reduce, shares);
  return sums.size();
}

namespace {

struct SplitSignificands : tk::impl::SplitSignificandsBase<SplitSignificands> {
  using SplitSignificandsBase::SplitSignificandsBase;

  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
    if (!hasFeature(target, Feature::WarpgroupProducts))
      return;
    SplitSignificandsOptions options{always, shares};
    getOperation()->walk([&](KernelOp kernel) {
      SignificandSplitting splitting(kernel, options, target.getProcessors());
      for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
        numSums += splitting.run(compute);
    });
  }
};

} // namespace
