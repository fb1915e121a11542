//===- SizeRoles.cpp - which sizes of a dimension share a variant ---------===//
//
// 1. findSizeRoles() looks at what a kernel does with each dimension.
// 2. classOf() cuts the sizes where the cost model's choice of a plan changes. The plan of a class
//    is that of its upper bound. Its predicted time at any size of the class is at most 1.05 of
//    that of the size's own plan, see docs/how-to/warm-up.md:
//      - Rows: one row takes a matrix-vector product. Few rows fit a narrow tile, which memory
//        bounds. From there on, twice the rows take tiles of twice the size, until tiles are the
//        largest ones at manyRows times the ridge.
//      - Terms: one tile of a warpgroup; up to the ridge; beyond, parts of equal length.
//      - Elements: few rows share one multiprocessor's time; many do not.
//    A large power of two is the size of a batch or a context more often than a step of growth, and
//    has a key of its own.
//    Beyond that, plans hardly change: the bounds of classes are farApart.
//
//===----------------------------------------------------------------------===//
#include "compiler/SizeRoles.h"

#include "compiler/RelevantFacts.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/CostModel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <bit>

using namespace mlir;

namespace tk {
namespace {

/// Rows of the narrowest tile of the matrix unit.
constexpr int64_t narrowTile = 16;
/// With so many times the ridge's rows the largest tiles keep all multiprocessors busy, of narrow
/// weights, too.
constexpr int64_t manyRows = 8;
/// The ratio of the bounds of classes of many terms or rows.
constexpr int64_t farApart = 8;
/// Multiples of the largest tile need no masks.
constexpr uint32_t wholeTiles = 128;
/// Bytes of the elements that most products read.
constexpr double bytesOfHalf = 2;

int64_t ceilToPower(int64_t value) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(value)));
}

/// The bound of a class of whole tiles; below it isPowerOfTwo() could not tell that from a size.
constexpr int64_t leastFull = 4096;
/// Sizes beyond this are told apart coarsely.
constexpr int64_t longestKnownPower = 32768;

/// Is it the fact of a power of two? Other sizes have its bound too, those of the last 128 and of
/// the last sixteenth below it, but none of them is a multiple of either.
bool isPowerOfTwo(const DimFact &fact) {
  return fact.upper <= longestKnownPower &&
         std::has_single_bit(static_cast<uint64_t>(fact.upper)) &&
         fact.divisor >= std::max<int64_t>(wholeTiles, fact.upper / 16);
}

/// Rows from which on the matrix unit takes longer for a product than memory for its operand, as a
/// power of two.
int64_t ridgeOf(const Machine &machine) {
  const DeviceSpec &device = machine.device;
  const double products = static_cast<double>(device.processors) * device.clock() *
                          matrixRate(*machine.architecture, MatrixType::Half) *
                          device.matrixShare();
  const double rows = products * bytesOfHalf * cost::ofByte(machine);
  return ceilToPower(std::max(static_cast<int64_t>(rows), narrowTile + 1));
}

/// Is nothing computed of the dimension but sums, comparisons and numbers?
bool onlyCounts(Value dim) {
  return llvm::all_of(dim.getUsers(), [](Operation *user) {
    return isa<BindOp, ComputeOp, ReduceOp, ScanOp, arith::IndexCastOp, arith::AddIOp,
               arith::SubIOp, arith::CmpIOp>(user);
  });
}

/// Of a parameter or a result.
bool isLastAxis(KernelOp kernel, Value dim) {
  auto ends = [&](ValueRange extents) { return !extents.empty() && extents.back() == dim; };
  return llvm::any_of(kernel.getBody().getOps<BindOp>(),
                      [&](BindOp bind) { return ends(bind.getExtents()); }) ||
         llvm::any_of(kernel.getReturn().getOperands(),
                      [&](Value result) { return ends(getExtents(kernel, result)); });
}

/// How products, of matrices or of a matrix and a vector, use dimensions.
struct ProductDims {
  llvm::SmallDenseSet<Value> rows, shapes, tiled;
  bool hasProducts = false;

  explicit ProductDims(KernelOp kernel) {
    kernel.walk([&](ReduceOp reduce) {
      if (isContraction(reduce))
        add(reduce);
    });
  }

private:
  /// The rows are those of the operand whose indices come first in the result, or lie between those
  /// of the other operand. That one is a weight, say: its columns, and what is summed over, are
  /// part of a model's shape. So are the indices of both operands, such as the heads of attention;
  /// a product with such an index has no rows here.
  void add(ReduceOp reduce) {
    hasProducts = true;
    auto compute = reduce->getParentOfType<ComputeOp>();
    if (!compute)
      return;
    Operation *term = reduce.getYield().getValues()[0].getDefiningOp();
    auto a = getIterationIndices(term->getOperand(0)), b = getIterationIndices(term->getOperand(1));
    SmallVector<Value> first, second;
    bool firstIsA = false, haveCommon = false, enclosed = false;
    for (unsigned p = 0; p < compute.getNumIndices(); ++p) {
      const Value extent = compute.getExtents()[p];
      const bool inA = llvm::is_contained(a, compute.getIndex(p));
      const bool inB = llvm::is_contained(b, compute.getIndex(p));
      if (inA && inB) {
        shapes.insert(extent);
        haveCommon = true;
      } else if (inA || inB) {
        firstIsA = first.empty() ? inA : firstIsA;
        enclosed |= inA == firstIsA && !second.empty();
        (inA == firstIsA ? first : second).push_back(extent);
      }
    }
    if (haveCommon)
      return;
    tiled.insert(first.begin(), first.end());
    tiled.insert(second.begin(), second.end());
    if (enclosed)
      std::swap(first, second);
    rows.insert(first.begin(), first.end());
    shapes.insert(second.begin(), second.end());
    shapes.insert(reduce.getUpper().begin(), reduce.getUpper().end());
  }
};

bool isReduced(Value dim) {
  return llvm::any_of(dim.getUsers(), [](Operation *user) { return isa<ReduceOp, ScanOp>(user); });
}

} // namespace

std::vector<SizeRole> findSizeRoles(KernelOp kernel) {
  std::vector<SizeRole> roles(kernel.getNumDims(), SizeRole::Shape);
  // How a convolution is computed rests on all of its sizes.
  if (readsWindows(kernel))
    return roles;
  const ProductDims products(kernel);
  for (unsigned d = 0; d < kernel.getNumDims(); ++d) {
    Value dim = kernel.getBody().getArgument(d);
    SizeRole &role = roles[d];
    if (onlyCounts(dim) && !isLastAxis(kernel, dim) && !products.shapes.contains(dim)) {
      if (isReduced(dim))
        role = SizeRole::Terms;
      else if (products.rows.contains(dim))
        role = SizeRole::Rows;
      else if (!products.hasProducts)
        role = SizeRole::Elements;
    }
  }
  return roles;
}

std::vector<bool> findTiledDims(KernelOp kernel) {
  std::vector<bool> tiled(kernel.getNumDims());
  if (readsWindows(kernel))
    return tiled;
  const ProductDims products(kernel);
  for (unsigned d = 0; d < kernel.getNumDims(); ++d) {
    Value dim = kernel.getBody().getArgument(d);
    tiled[d] = products.tiled.contains(dim) && !isReduced(dim);
  }
  return tiled;
}

std::optional<SizeInterval> classOf(SizeRole role, const DimFact &fact, const Machine &machine) {
  const int64_t ridge = ridgeOf(machine);
  const bool areRows = role == SizeRole::Rows;
  SmallVector<int64_t, 6> bounds;
  if (areRows) {
    // Two warpgroups' tiles that read the same weights take as long as one: memory bounds both.
    const bool hasWarpgroups = machine.architecture->has(Feature::WarpgroupProducts);
    bounds = {1, std::min(hasWarpgroups ? 2 * rowsOfWarpgroup : rowsOfWarpgroup, ridge / 2)};
    for (int64_t rows = ridge; rows < manyRows * ridge; rows *= 2)
      bounds.push_back(rows);
  } else {
    bounds = {role == SizeRole::Terms ? std::min(rowsOfWarpgroup, ridge / 2) : narrowTile, ridge};
  }
  SizeInterval found;
  for (int64_t bound : bounds) {
    if (fact.upper <= bound)
      return SizeInterval{found.above, bound, 1};
    found.above = bound;
  }
  if (fact.upper >= (areRows ? leastFull : 2 * leastFull) && isPowerOfTwo(fact))
    return std::nullopt;
  found.upper = areRows ? manyRows * ridge : std::max(leastFull, 2 * ridge);
  for (; fact.upper > found.upper; found.upper *= farApart)
    found.above = found.upper;
  // A copy of a box of an operand cuts off the rows behind the last one.
  if (!areRows)
    found.divisor = fact.divisor % wholeTiles == 0 ? wholeTiles : 1;
  return found;
}

int64_t boundOnCpu(const DimFact &fact) {
  for (int64_t bound : {1, 16, 4096})
    if (fact.upper <= bound)
      return bound;
  return -1;
}

} // namespace tk
