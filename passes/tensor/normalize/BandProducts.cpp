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

namespace {

/// A place `ofResult * l + ofTerm * r + rest`, where the rest is of kernel values.
struct Place {
  int64_t ofResult = 0, ofTerm = 0, number = 0;
  SmallVector<std::pair<Value, int64_t>> values;
};

/// A load with one such place.
struct Factor {
  LoadOp load;
  unsigned at = 0;
  Place place;
};

class BandProduct {
public:
  BandProduct(ComputeOp compute, ReduceOp reduce)
      : compute(compute), reduce(reduce), kernel(compute->getParentOfType<KernelOp>()) {}
  bool run();

private:
  bool addTo(Place &place, Value value, int64_t factor);
  std::optional<Factor> factorOf(Value value);
  bool coversRange(Factor factor);
  bool solve(const Factor &rows, const Factor &filter);
  bool match();
  double timeWith(int64_t size);
  bool pays();
  ComputeOp createBand();
  SmallVector<unsigned> orderOfIndices();
  ComputeOp createRows(StringRef suffix, StringRef last, Value extent, Type type,
                       llvm::function_ref<Value(OpBuilder &, ValueRange)> element);
  ComputeOp createWindows();
  ComputeOp createBlocks(ComputeOp band, ComputeOp windows);
  void readBlocks(ComputeOp blocks);
  Value rest(OpBuilder &builder, const Place &place);
  Value sum(OpBuilder &builder, ArrayRef<std::pair<Value, int64_t>> terms, int64_t number);
  StringRef nameOf(unsigned p) { return cast<StringAttr>(compute.getIndexNames()[p]).getValue(); }

  ComputeOp compute;
  ReduceOp reduce;
  KernelOp kernel;
  Factor rows, filter;
  unsigned result = 0;                 ///< which index of the statement `l` is
  llvm::SetVector<unsigned> shared;    ///< indices of the statement that the filter has
  int64_t rowStep = 0, columnStep = 0; ///< of u T in the rows' place, of i in the filter's
  bool isTurned = false;               ///< the filter's place falls with k
  int64_t size = 0;                    ///< T
  Value first, length;                 ///< the first k, and how many there are
};

} // namespace

bool BandProduct::addTo(Place &place, Value value, int64_t factor) {
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
std::optional<Factor> BandProduct::factorOf(Value value) {
  if (auto extension = value.getDefiningOp<arith::ExtFOp>())
    value = extension.getIn();
  auto load = value.getDefiningOp<LoadOp>();
  if (!load || !isa<FloatType>(load.getType()) || load.getType().getIntOrFloatBitWidth() != 16 ||
      (load.getPad() && !isZero(load.getPad())))
    return std::nullopt;
  Dependence onBoth(ValueRange{compute.getIndex(result), reduce.getIndex(0)});
  Factor factor;
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
bool BandProduct::coversRange(Factor factor) {
  const Place &place = factor.place;
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
bool BandProduct::solve(const Factor &ofRows, const Factor &ofFilter) {
  rows = ofRows;
  filter = ofFilter;
  const Place &p = rows.place, &q = filter.place;
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
    std::optional<Factor> a = factorOf(product.getLhs()), b = factorOf(product.getRhs());
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

/// The part of a place that is the same for all results and terms, outside of the statement.
Value BandProduct::rest(OpBuilder &builder, const Place &place) {
  SmallVector<std::pair<Value, int64_t>> known;
  for (auto [value, factor] : place.values) {
    IRMapping hoisted;
    known.emplace_back(cloneFrom(builder, value, compute, hoisted), factor);
  }
  return sum(builder, known, place.number);
}

/// Creates `load` in a statement of its own, at `at` along its axis number `axis`.
static Value loadAt(OpBuilder &body, LoadOp load, unsigned axis, Value at, ComputeOp compute,
                    IRMapping &mapping) {
  SmallVector<Value> indices;
  for (auto [n, index] : llvm::enumerate(load.getIndices()))
    indices.push_back(n == axis ? at : cloneFrom(body, index, compute, mapping));
  Value zero = arith::ConstantOp::create(body, load.getLoc(), body.getZeroAttr(load.getType()));
  return LoadOp::create(body, load.getLoc(), load.getTensor(), indices, zero);
}

ComputeOp BandProduct::createBand() {
  OpBuilder builder(compute);
  Location loc = reduce.getLoc();
  Value taps = getExtents(kernel, filter.load.getTensor())[filter.at];
  Value offset = rest(builder, filter.place);
  // The filter's place is columnStep i + k + offset, or columnStep i - k + offset.
  const int64_t most = std::abs(columnStep) * (size - 1);
  first = isTurned ? sum(builder, {{offset, 1}, {taps, -1}}, 1 - (columnStep < 0 ? most : 0))
                   : sum(builder, {{offset, -1}}, -(columnStep > 0 ? most : 0));
  Value unit = arith::ConstantIndexOp::create(builder, loc, termsOfSlice);
  Value slices = builder.createOrFold<FloorDivOp>(
      loc, builder.getIndexType(), sum(builder, {{taps, 1}}, most + termsOfSlice - 1), unit);
  length = builder.createOrFold<arith::MulIOp>(loc, slices, unit);
  SmallVector<Value> extents;
  SmallVector<StringRef> names;
  for (unsigned p : shared) {
    extents.push_back(compute.getExtents()[p]);
    names.push_back(nameOf(p));
  }
  extents.push_back(length);
  extents.push_back(arith::ConstantIndexOp::create(builder, loc, size));
  const std::string k = "k", i = nameOf(result).str() + "_in_block";
  names.append({k, i});
  const std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + ".band").str();
  auto band = ComputeOp::create(
      builder, loc, names, extents, ArrayRef<Type>{filter.load.getType()},
      ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{},
      [&](OpBuilder &body, Location, ValueRange own) {
        IRMapping mapping;
        for (auto [n, p] : llvm::enumerate(shared))
          mapping.map(compute.getIndex(p), own[n]);
        Value k = own[own.size() - 2], i = own.back();
        const int64_t sign = isTurned ? -1 : 1;
        Value at = sum(body, {{i, columnStep}, {k, sign}, {first, sign}, {offset, 1}}, 0);
        YieldOp::create(body, loc, loadAt(body, filter.load, filter.at, at, compute, mapping));
      });
  band->setAttr(storedApartAttrName, builder.getUnitAttr());
  return band;
}

/// The indices of the windows and of the blocks, but for the last: those of the filter first, as
/// there is a product for each of them.
SmallVector<unsigned> BandProduct::orderOfIndices() {
  SmallVector<unsigned> order(shared.begin(), shared.end());
  for (unsigned p = 0; p < compute.getNumIndices(); ++p)
    if (p != result && !shared.contains(p))
      order.push_back(p);
  return order;
}

/// A stored statement over those indices, the blocks, and `extent` values of an index `last`.
ComputeOp BandProduct::createRows(StringRef suffix, StringRef last, Value extent, Type type,
                                  llvm::function_ref<Value(OpBuilder &, ValueRange)> element) {
  OpBuilder builder(compute);
  Location loc = reduce.getLoc();
  SmallVector<Value> extents;
  SmallVector<StringRef> names;
  for (unsigned p : orderOfIndices()) {
    extents.push_back(compute.getExtents()[p]);
    names.push_back(nameOf(p));
  }
  Value unit = arith::ConstantIndexOp::create(builder, loc, size);
  Value all = sum(builder, {{compute.getExtents()[result], 1}}, size - 1);
  extents.push_back(builder.createOrFold<FloorDivOp>(loc, builder.getIndexType(), all, unit));
  extents.push_back(extent);
  const std::string block = nameOf(result).str() + "_block";
  names.append({block, last});
  const std::string name = (cast<StringAttr>(compute.getNames()[0]).getValue() + suffix).str();
  auto rows = ComputeOp::create(builder, loc, names, extents, ArrayRef<Type>{type},
                                ArrayRef<StringRef>{name}, ArrayRef<SmallVector<unsigned>>{},
                                [&](OpBuilder &body, Location, ValueRange own) {
                                  YieldOp::create(body, loc, element(body, own));
                                });
  rows->setAttr(storedApartAttrName, builder.getUnitAttr());
  return rows;
}

/// What each block of results needs of a row.
ComputeOp BandProduct::createWindows() {
  OpBuilder builder(compute);
  Value offset = rest(builder, rows.place);
  return createRows(
      ".windows", "k", length, rows.load.getType(), [&](OpBuilder &body, ValueRange own) {
        IRMapping mapping;
        for (auto [n, p] : llvm::enumerate(orderOfIndices()))
          mapping.map(compute.getIndex(p), own[n]);
        Value u = own[own.size() - 2], k = own.back();
        Value at = sum(body, {{u, rowStep * size}, {k, 1}, {first, 1}, {offset, 1}}, 0);
        return loadAt(body, rows.load, rows.at, at, compute, mapping);
      });
}

ComputeOp BandProduct::createBlocks(ComputeOp band, ComputeOp windows) {
  OpBuilder builder(compute);
  Location loc = reduce.getLoc();
  Value unit = arith::ConstantIndexOp::create(builder, loc, size);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  const std::string i = nameOf(result).str() + "_in_block";
  return createRows(
      ".blocks", i, unit, builder.getF32Type(), [&](OpBuilder &body, ValueRange own) -> Value {
        auto product = ReduceOp::create(
            body, loc, ReduceKind::Sum, ArrayRef<StringRef>{"k"}, ValueRange{zero},
            ValueRange{length}, body.getF32Type(),
            [&](OpBuilder &inner, Location, ValueRange terms) -> Value {
              SmallVector<Value> ofRow(own.drop_back()), ofBand(own.take_front(shared.size()));
              ofRow.push_back(terms[0]);
              ofBand.append({terms[0], own.back()});
              Value x = LoadOp::create(inner, loc, windows->getResult(0), ofRow, Value());
              Value w = LoadOp::create(inner, loc, band->getResult(0), ofBand, Value());
              x = arith::ExtFOp::create(inner, loc, inner.getF32Type(), x);
              w = arith::ExtFOp::create(inner, loc, inner.getF32Type(), w);
              return arith::MulFOp::create(inner, loc, x, w);
            });
        return product.getResult(0);
      });
}

/// Takes the results from the blocks, and computes those that are NaN again.
void BandProduct::readBlocks(ComputeOp blocks) {
  OpBuilder builder(reduce);
  Location loc = reduce.getLoc();
  Value unit = arith::ConstantIndexOp::create(builder, loc, size), l = compute.getIndex(result);
  SmallVector<Value> at;
  for (unsigned p : orderOfIndices())
    at.push_back(compute.getIndex(p));
  at.push_back(FloorDivOp::create(builder, loc, builder.getIndexType(), l, unit));
  at.push_back(FloorModOp::create(builder, loc, builder.getIndexType(), l, unit));
  Value value = LoadOp::create(builder, loc, blocks->getResult(0), at, Value());
  computeNaNAgain(reduce, value);
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
