//===- UnpackFactors.cpp - operands with several numbers in a byte --------===//
//
// 4-bit weights are packed two to a byte. Element `k` of a sum reads byte `k / 2` and selects the
// half `k % 2`. A tile over `k` is then no box of bytes, and neighbours read the same byte.
//
// 1. The pattern matches a sum over `k` in 0 .. K of two operands. One is loaded with `k` as its
//    last index. The other is computed from bytes at `k / n` (n is 2 or 4). Otherwise it depends on
//    `k` only by `k % n` and by quotients by multiples of n. n must divide K.
//    There are at most 32 rows, or the program does not say how many. Where warpgroups unpack boxes
//    of words in pairs (TkGpuFields.h) the sum stays as it is.
// 2. A compute op stores the first operand as n tensors: tensor r has the elements with `k % n ==
//    r`.
// 3. The sum becomes n sums over the bytes, in one loop that reads each byte once. `k % n` is a
//    constant in each sum, so that the selection of the bits is decided here.
//
//   %y = tk.compute ["m", "n"] {tk.reduce [sum] ["k"] to (%K) {
//          x[m, k] * f32(k % 2 == 0 ? w[n, k / 2] & 15 : w[n, k / 2] >> 4 & 15)}}
//     =>
//   %x0, %x1 = tk.compute ["m", "k"] {x[m, k * 2], x[m, k * 2 + 1]}
//   %y = tk.compute ["m", "n"] {tk.reduce [sum, sum] ["k"] to (%K / 2) {
//          x0[m, k] * f32(w[n, k] & 15), x1[m, k] * f32(w[n, k] >> 4 & 15)}, added up}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/operands/UnpackFactors.h"
#include "passes/machine/limits/Operands.h"
#include "passes/machine/limits/Packed.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/Notes.h"
#include "passes/analysis/PackedFactors.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/machine/Machine.h"

#include "dialects/tkgpu/TkGpuFields.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tk;

static constexpr llvm::StringLiteral passName = "tk-materialize-operands:unpack";
using namespace limits::unpack_factors;

namespace {

/// A sum of products one of whose factors has several numbers a byte.
struct PackedSum {
  ComputeOp compute;
  ReduceOp reduce;
  LoadOp plain;   ///< the factor that is loaded, with the sum's index last
  Value packed;   ///< the factor that is computed from bytes
  LoadOp bytes;   ///< its bytes
  int64_t number; ///< how many terms a byte has
  Value count;    ///< of bytes that the sum runs over, at the level of the kernel
};

} // namespace

/// By what `op` divides `k`, or takes the rest of it; nothing if it uses it otherwise.
static std::optional<int64_t> divisorOf(Operation *op, Value k) {
  if (!isa<FloorDivOp, FloorModOp>(op) || op->getOperand(0) != k)
    return std::nullopt;
  std::optional<int64_t> divisor = getConstantIndex(op->getOperand(1));
  return divisor && *divisor > 0 ? divisor : std::nullopt;
}

/// The load of bytes, several terms each, that `factor` is computed from, and how many terms a byte
/// has; nothing if the factor follows from `k` in another way.
static std::optional<std::pair<LoadOp, int64_t>> findBytes(Value factor, ReduceOp reduce) {
  Value k = reduce.getIndex(0);
  LoadOp bytes;
  int64_t number = 0;
  SmallVector<Operation *> slice = getSlice(factor, reduce.getBlock());
  for (Operation *op : slice) {
    auto load = dyn_cast<LoadOp>(op);
    if (op->getNumRegions() != 0)
      return std::nullopt;
    if (!load || load.getIndices().empty() || !load.getType().isInteger(8))
      continue;
    auto quotient = load.getIndices().back().getDefiningOp<FloorDivOp>();
    std::optional<int64_t> divisor = quotient ? divisorOf(quotient, k) : std::nullopt;
    if (!divisor || bytes)
      return std::nullopt;
    bytes = load;
    number = *divisor;
  }
  if (!bytes || number < 2 || number > mostNumbers || !llvm::isPowerOf2_64(number))
    return std::nullopt;
  for (Operation *op : slice)
    if (llvm::is_contained(op->getOperands(), k)) {
      std::optional<int64_t> divisor = divisorOf(op, k);
      if (!divisor || (isa<FloorDivOp>(op) ? *divisor % number != 0 : *divisor != number))
        return std::nullopt;
    }
  return std::pair(bytes, number);
}

/// Is `factor` loaded at indices of the statement, each its own, and that of the sum behind them?
static bool isPlain(LoadOp factor, PackedSum &sum) {
  if (!factor || factor.getPad() || factor.getIndices().empty() ||
      factor->getBlock() != sum.reduce.getBlock() ||
      factor.getIndices().back() != sum.reduce.getIndex(0) ||
      factor.getType().getIntOrFloatBitWidth() != 16)
    return false;
  llvm::SetVector<Value> outer;
  for (Value index : factor.getIndices().drop_back()) {
    auto argument = dyn_cast<BlockArgument>(index);
    if (!argument || argument.getOwner() != sum.compute.getBlock() || !outer.insert(index))
      return false;
  }
  return true;
}

/// The number of bytes if `terms` terms of the sum have whole ones.
static Value countBytes(KernelOp kernel, PackedSum &sum, Value terms) {
  SizeFact fact = getSizeFact(kernel, terms);
  if (fact.divisor % sum.number != 0 || terms.getParentBlock() != &kernel.getBody().front() ||
      getRowAlignment(kernel, sum.bytes) < boxAlignment)
    return {};
  // The extent of the bytes' tensor, of which masks then know that it is the end.
  for (Value extent : getExtents(kernel, sum.bytes.getTensor())) {
    auto quotient = extent.getDefiningOp<FloorDivOp>();
    if (quotient && quotient.getLhs() == terms && getConstantIndex(quotient.getRhs()) == sum.number)
      return quotient;
  }
  OpBuilder builder(sum.compute);
  Location loc = sum.reduce.getLoc();
  if (std::optional<int64_t> all = getConstantIndex(terms))
    return arith::ConstantIndexOp::create(builder, loc, *all / sum.number);
  return FloorDivOp::create(builder, loc, terms.getType(), terms,
                            arith::ConstantIndexOp::create(builder, loc, sum.number));
}

/// Do warpgroups unpack the operand in pairs from boxes of words, whose columns fill tiles?
static bool areBoxesUnpacked(KernelOp kernel, ComputeOp compute, ReduceOp reduce, Value packed) {
  auto target =
      kernel->getParentOfType<ModuleOp>()->getAttrOfType<gpu::TargetAttr>(gpu::targetAttrName);
  std::optional<gpu::ScaledField> scaled = gpu::matchScaledField(packed.getDefiningOp());
  if (!scaled || !scaled->field.words.getDefiningOp<LoadOp>() ||
      !hasFeature(target, Feature::WarpgroupProducts) ||
      getSizeFact(kernel, reduce.getUpper()[0]).divisor % leastTerms != 0)
    return false;
  return llvm::any_of(
      llvm::zip_equal(compute.getBlock()->getArguments(), compute.getExtents()), [&](auto axis) {
        auto [index, extent] = axis;
        return Dependence(ValueRange{index}).on(packed) &&
               getSizeFact(kernel, extent).divisor % limits::analyze_packed::columnsOfWords == 0;
      });
}

/// Do warpgroups, or a stored operand, take less time?
static bool takesLessOtherwise(KernelOp kernel, ComputeOp compute, ReduceOp reduce) {
  Value packed = findPackedFactor(reduce);
  if (packed && areBoxesUnpacked(kernel, compute, reduce, packed))
    return true;
  double rows = 1;
  for (auto [index, extent] :
       llvm::zip_equal(compute.getBlock()->getArguments(), compute.getExtents()))
    if (packed && !Dependence(ValueRange{index}).on(packed))
      rows *= static_cast<double>(getSizeFact(kernel, extent).upper.value_or(1));
  return rows > mostRows;
}

static std::optional<PackedSum> readPackedSum(KernelOp kernel, ComputeOp compute, ReduceOp reduce) {
  if (reduce.isOnline() || reduce.getNumIndices() != 1 || !isMatrixProduct(reduce) ||
      getConstantIndex(reduce.getLower()[0]) != 0 || takesLessOtherwise(kernel, compute, reduce))
    return std::nullopt;
  Operation *product = reduce.getYield().getValues()[0].getDefiningOp();
  for (unsigned side : {0, 1}) {
    PackedSum sum{compute,
                  reduce,
                  withoutExtension(product->getOperand(side)).getDefiningOp<LoadOp>(),
                  product->getOperand(1 - side),
                  {},
                  0,
                  {}};
    auto bytes = findBytes(sum.packed, reduce);
    if (!bytes || !isPlain(sum.plain, sum))
      continue;
    std::tie(sum.bytes, sum.number) = *bytes;
    sum.count = countBytes(kernel, sum, reduce.getUpper()[0]);
    if (sum.count)
      return sum;
  }
  return std::nullopt;
}

/// Stores the plain factor as one tensor for each number of a byte.
static ComputeOp storePlain(PackedSum &sum) {
  SmallVector<StringRef> names;
  SmallVector<Value> extents;
  for (Value index : sum.plain.getIndices().drop_back()) {
    unsigned p = cast<BlockArgument>(index).getArgNumber();
    names.push_back(cast<StringAttr>(sum.compute.getIndexNames()[p]).getValue());
    extents.push_back(sum.compute.getExtents()[p]);
  }
  names.push_back(cast<StringAttr>(sum.reduce.getIndexNames()[0]).getValue());
  extents.push_back(sum.count);
  SmallVector<std::string> results;
  for (int64_t n = 0; n < sum.number; ++n)
    results.push_back(
        (cast<StringAttr>(sum.compute.getNames()[0]).getValue() + ".factor" + std::to_string(n))
            .str());
  OpBuilder builder(sum.compute);
  return ComputeOp::create(
      builder, sum.plain.getLoc(), names, extents,
      SmallVector<Type>(sum.number, sum.plain.getType()), llvm::to_vector_of<StringRef>(results),
      ArrayRef<SmallVector<unsigned>>{}, [&](OpBuilder &body, Location loc, ValueRange indices) {
        Value number = arith::ConstantIndexOp::create(body, loc, sum.number);
        Value first = arith::MulIOp::create(body, loc, indices.back(), number);
        SmallVector<Value> elements;
        for (int64_t n = 0; n < sum.number; ++n) {
          SmallVector<Value> at(indices);
          Value place = arith::ConstantIndexOp::create(body, loc, n);
          at.back() = n == 0 ? first : arith::AddIOp::create(body, loc, first, place).getResult();
          elements.push_back(LoadOp::create(body, loc, sum.plain.getTensor(), at, Value()));
        }
        YieldOp::create(body, loc, elements);
      });
}

/// The term of number `n` of byte `byte`, its plain factor being of `stored`.
static Value createTerm(OpBuilder &builder, Location loc, PackedSum &sum, Value stored, int64_t n,
                        Value byte) {
  Value k = sum.reduce.getIndex(0);
  IRMapping mapping;
  SmallVector<Value> at(sum.plain.getIndices());
  at.back() = byte;
  mapping.map(sum.plain.getResult(), LoadOp::create(builder, loc, stored, at, Value()).getResult());
  Value term = sum.reduce.getYield().getValues()[0];
  for (Operation *op : getSlice(term, sum.reduce.getBlock())) {
    if (op == sum.plain)
      continue;
    if (std::optional<int64_t> divisor = divisorOf(op, k)) {
      Value place = byte;
      if (isa<FloorModOp>(op))
        place = arith::ConstantIndexOp::create(builder, loc, n);
      else if (*divisor != sum.number)
        place =
            FloorDivOp::create(builder, loc, byte.getType(), byte,
                               arith::ConstantIndexOp::create(builder, loc, *divisor / sum.number));
      mapping.map(op->getResult(0), place);
      continue;
    }
    Operation *copy = builder.clone(*op, mapping);
    SmallVector<Value> folded;
    if (copy->getNumResults() == 1 && succeeded(builder.tryFold(copy, folded))) {
      mapping.map(op->getResult(0), folded.front());
      copy->erase();
    }
  }
  return mapping.lookup(term);
}

/// The sums of all numbers of the bytes, in one loop: what several of them read is read once.
static ReduceOp createSums(OpBuilder &builder, PackedSum &sum, ComputeOp stored) {
  Location loc = sum.reduce.getLoc();
  Type type = sum.reduce.getResult(0).getType();
  SmallVector<Type> types(sum.number, type);
  SmallVector<Attribute> kinds(sum.number, sum.reduce.getKinds()[0]);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  auto sums =
      ReduceOp::create(builder, loc, types, builder.getArrayAttr(kinds), sum.reduce.getIndexNames(),
                       ValueRange{zero}, ValueRange{sum.count}, sum.reduce.getPrecisionAttr());
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Type> running(sum.number - 1, type);
  Block *body = builder.createBlock(&sums.getBody());
  Value byte = body->addArgument(builder.getIndexType(), loc);
  body->addArguments(running, SmallVector<Location>(running.size(), loc));
  SmallVector<Value> terms;
  for (int64_t n = 0; n < sum.number; ++n)
    terms.push_back(createTerm(builder, loc, sum, stored.getResult(n), n, byte));
  YieldOp::create(builder, loc, terms);
  Block *rescale = builder.createBlock(&sums.getRescale());
  for (unsigned copy = 0; copy < 2; ++copy)
    rescale->addArguments(running, SmallVector<Location>(running.size(), loc));
  Value one = createIdentity(builder, loc, ReduceKind::Prod, type);
  YieldOp::create(builder, loc, SmallVector<Value>(running.size(), one));
  return sums;
}

static void unpack(PackedSum &sum) {
  note(sum.reduce, passName, Verdict::Derived,
       "the " + describe(sum.reduce) + " reads " + Twine(sum.number) +
           " elements of each byte of an operand: it becomes as many sums over the bytes");
  ComputeOp stored = storePlain(sum);
  OpBuilder builder(sum.reduce);
  ReduceOp sums = createSums(builder, sum, stored);
  Value whole = sums.getResult(0);
  for (Value other : sums.getResults().drop_front())
    whole = createCombination(builder, sum.reduce.getLoc(), ReduceKind::Sum, whole, other);
  sum.reduce.getResult(0).replaceAllUsesWith(whole);
  sum.reduce.erase();
}

unsigned tk::unpackFactors(KernelOp kernel) {
  unsigned unpacked = 0;
  for (ComputeOp compute : llvm::to_vector(kernel.getBody().getOps<ComputeOp>()))
    for (ReduceOp reduce : llvm::to_vector(compute.getBlock()->getOps<ReduceOp>()))
      if (std::optional<PackedSum> sum = readPackedSum(kernel, compute, reduce)) {
        unpack(*sum);
        ++unpacked;
      }
  return unpacked;
}
