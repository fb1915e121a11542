//===- BandProducts.cpp - long filters as matrix products -----------------===//
//
// A depthwise filter of many taps has no index of its own beside its tap, so that its sum is no
// matrix product, and CUDA cores multiply. Blocks of T neighbouring results are one: those of a row
// times a band matrix, whose columns are the filter, each moved by one.
//
//   y[b, c, l] = sum[r](x[b, c, l + r] * w[c, r])
//     =>
//   band[c, k, i]       = w[c, k - i], or 0 outside of w                    k in 0..R + T
//   windows[c, b, u, k] = x[b, c, u * T + k]
//   blocks[c, b, u, i]  = sum[k](windows[c, b, u, k] * band[c, k, i])       i in 0..T
//   y[b, c, l]          = blocks[c, b, l / T, l % T]
//
// 1. Take a sum over one index of a product of two loads of 16-bit numbers, each of which has one
//    place with the sum's index r or the result's index l, as whole multiples. The sum's range, and
//    a condition around the product, must say no more than that both loads are inside.
// 2. Solve for the places: with l = u T + i, k replaces r so that one load follows u and k, and the
//    other one k and i. The latter is the filter.
// 3. Compare the time of the sum on CUDA cores with that of the band, the windows of rows that the
//    product copies, and the product.
// 4. A number of x that is infinite or NaN would reach all T results of its block, since 0 times it
//    is NaN. Results that are NaN are computed again as the program has them, as in PadConditions.
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/normalize/BandProducts.h"
#include "passes/tensor/normalize/BandProduct.h"

#include "passes/analysis/ComputedFactor.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CostModel.h"
#include "passes/machine/limits/Windows.h"
#include "passes/tensor/normalize/PadConditions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tk;

using namespace limits::band_products;

static constexpr llvm::StringLiteral passName = "tk-simplify:band-products";

bool BandProduct::addTo(BandPlace &place, Value value, int64_t factor) {
  if (value == compute.getIndex(result)) {
    place.ofResult += factor;
    return true;
  }
  if (value == reduce.getIndex(0)) {
    place.ofTerm += factor;
    return true;
  }
  if (std::optional<int64_t> number = getConstantIndex(value)) {
    place.number += *number * factor;
    return true;
  }
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op))
    return addTo(place, op->getOperand(0), factor) &&
           addTo(place, op->getOperand(1), isa<arith::AddIOp>(op) ? factor : -factor);
  if (isa_and_nonnull<arith::MulIOp>(op))
    for (unsigned side : {0, 1})
      if (std::optional<int64_t> times = getConstantIndex(op->getOperand(side)))
        return addTo(place, op->getOperand(1 - side), factor * *times);
  if (!isKernelLevel(value, compute))
    return false;
  place.values.emplace_back(value, factor);
  return true;
}

/// `value` as a load of 16-bit numbers with one place over the sum's or the result's index.
std::optional<BandFactor> BandProduct::factorOf(Value value) {
  if (auto extension = value.getDefiningOp<arith::ExtFOp>())
    value = extension.getIn();
  auto load = value.getDefiningOp<LoadOp>();
  if (!load || !isa<FloatType>(load.getType()) || load.getType().getIntOrFloatBitWidth() != 16 ||
      (load.getPad() && !isZero(load.getPad())))
    return std::nullopt;
  Dependence onBoth(ValueRange{compute.getIndex(result), reduce.getIndex(0)});
  BandFactor factor;
  factor.load = load;
  unsigned places = 0;
  for (auto [at, index] : llvm::enumerate(load.getIndices())) {
    if (!onBoth.on(index))
      continue;
    factor.at = at;
    if (++places > 1 || !addTo(factor.place, index, 1))
      return std::nullopt;
  }
  if (places == 0 || std::abs(factor.place.ofTerm) != 1)
    return std::nullopt;
  return factor;
}

/// Is the sum's index the factor's place itself, over its whole axis?
bool BandProduct::coversRange(BandFactor factor) {
  const BandPlace &place = factor.place;
  return place.ofResult == 0 && place.ofTerm == 1 && place.number == 0 && place.values.empty() &&
         isSameExtent(reduce.getUpper()[0], getExtents(kernel, factor.load.getTensor())[factor.at]);
}

/// Which indices of the statement, but for the result's, are in `load`?
static llvm::SetVector<unsigned> indicesIn(LoadOp load, ComputeOp compute, unsigned result) {
  llvm::SetVector<unsigned> found;
  for (Value index : load.getIndices())
    for (BlockArgument own : getIterationIndices(index))
      if (own.getOwner() == compute.getBlock() && own.getArgNumber() != result)
        found.insert(own.getArgNumber());
  return found;
}

/// Gives the rows a place of u and k, and the filter one of k and i.
bool BandProduct::solve(const BandFactor &ofRows, const BandFactor &ofFilter) {
  rows = ofRows;
  filter = ofFilter;
  const BandPlace &p = rows.place, &q = filter.place;
  // r = p.ofTerm (k - p.ofResult i) + turn u T leaves no u to the filter.
  const int64_t turn = -q.ofResult * q.ofTerm;
  rowStep = p.ofResult + p.ofTerm * turn;
  columnStep = q.ofResult - q.ofTerm * p.ofTerm * p.ofResult;
  isTurned = q.ofTerm * p.ofTerm < 0;
  shared = indicesIn(filter.load, compute, result);
  auto ofTheRows = indicesIn(rows.load, compute, result);
  return rowStep > 0 && columnStep != 0 && std::abs(columnStep) <= longestStep &&
         llvm::all_of(shared, [&](unsigned p) { return ofTheRows.contains(p); }) &&
         ofTheRows.size() + 1 == compute.getNumIndices();
}

bool BandProduct::match() {
  if (reduce.isOnline() || reduce.getNumAccumulators() != 1 || reduce.getNumIndices() != 1 ||
      reduce.getKind(0) != ReduceKind::Sum || !reduce.getResult(0).getType().isF32() ||
      reduce.getPrecision() != Precision::Default || compute.getNumResults() != 1 ||
      compute.getResultIndices() || !matchPattern(reduce.getLower()[0], m_Zero()) ||
      !isKernelLevel(reduce.getUpper()[0], compute))
    return false;
  Value term = reduce.getYield().getValues()[0];
  auto choice = term.getDefiningOp<arith::SelectOp>();
  if (choice && !isZero(choice.getFalseValue()))
    return false;
  auto product = (choice ? choice.getTrueValue() : term).getDefiningOp<arith::MulFOp>();
  if (!product)
    return false;
  for (unsigned l = compute.getNumIndices(); l-- > 0;) {
    result = l;
    std::optional<BandFactor> a = factorOf(product.getLhs()), b = factorOf(product.getRhs());
    if (!a || !b || (!coversRange(*a) && !coversRange(*b)) ||
        (choice && !saysInside(kernel, choice.getCondition(), {a->load, b->load})))
      continue;
    for (const auto &[x, w] : {std::pair(*a, *b), std::pair(*b, *a)})
      if (solve(x, w) && pays())
        return true;
  }
  return false;
}

/// Nanoseconds that blocks of `block` results take.
double BandProduct::timeWith(int64_t block) {
  double all = 1, filters = 1;
  for (auto [p, extent] : llvm::enumerate(compute.getExtents())) {
    all *= guessSize(kernel, extent);
    filters *= shared.contains(p) ? guessSize(kernel, extent) : 1;
  }
  const double taps = guessSize(kernel, getExtents(kernel, filter.load.getTensor())[filter.at]);
  const double terms = taps + static_cast<double>(std::abs(columnStep) * block);
  const double bytes = filters * terms * static_cast<double>(block) * bytesOfOperand +
                       all / static_cast<double>(block) * terms * bytesOfOperand +
                       all * bytesOfBlocks;
  return launches * cost::launch + bytes * cost::byte + all * terms * termOfProduct;
}

bool BandProduct::pays() {
  double terms = guessSize(kernel, reduce.getUpper()[0]);
  if (getUpperBound(reduce.getUpper()[0]) < 0 || // a filter is short as a rule
      terms < leastTaps || guessSize(kernel, compute.getExtents()[result]) < leastResults)
    return false;
  for (Value extent : compute.getExtents())
    terms *= guessSize(kernel, extent);
  size = 0;
  double best = terms * termOfSum * mostOfTime;
  for (int64_t block : blockSizes)
    if (const double time = timeWith(block); time < best) {
      best = time;
      size = block;
    }
  return size != 0;
}

/// The sum of `terms`, each by its factor, and of `number`.
Value BandProduct::sum(OpBuilder &builder, ArrayRef<std::pair<Value, int64_t>> terms,
                       int64_t number) {
  Location loc = reduce.getLoc();
  Value all = arith::ConstantIndexOp::create(builder, loc, number);
  for (auto [value, factor] : terms) {
    Value times = arith::ConstantIndexOp::create(builder, loc, factor);
    Value term = builder.createOrFold<arith::MulIOp>(loc, value, times);
    all = builder.createOrFold<arith::AddIOp>(loc, all, term);
  }
  return all;
}

bool BandProduct::run() {
  if (!match())
    return false;
  note(reduce, passName, Verdict::Derived,
       "the " + describe(reduce) + " is a product of blocks of " + std::to_string(size) +
           " results with a band of the filter; results that are NaN are computed again");
  ComputeOp band = createBand(), windows = createWindows();
  readBlocks(createBlocks(band, windows));
  return true;
}

bool tk::formBandProducts(ComputeOp compute) {
  for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>()))
    if (BandProduct(compute, reduce).run())
      return true;
  return false;
}
