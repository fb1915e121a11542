//===- LeastCost.cpp - the least time of a program ------------------------===//
//
// 1. The indices that a value depends on are those of its operands, and of what its regions use,
//    but for the indices that its own regions bind.
// 2. An operation counts as often as these indices have combinations. An index's extent that
//    depends on other indices counts with its mean.
// 3. The terms of a sum of products count as multiply-adds of the matrix unit, by the type of their
//    factors, if each of these has an index that the other lacks. Products of f32 count as the
//    fewer of multiply-adds of CUDA cores and of three bf16 parts. CUDA cores do the rest;
//    conversions, comparisons and choices are free. A special function that several statements
//    compute of the same value counts once (ValueText.h).
// 4. A value that a mask chooses counts for the places that the mask keeps, and so do values that
//    are computed from the choice, or for it alone (LeastMasks.h).
// 5. A divisor that lacks an index of the quotient is inverted once: the division is a product.
// 6. The elements that loads of a tensor read are at most those of the tensor. A load whose last
//    index does not step through neighbours takes a sector for each element.
//
//===----------------------------------------------------------------------===//
#include "compiler/LeastCost.h"

#include "compiler/LeastMasks.h"
#include "compiler/ValueText.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarExpr.h"
#include "passes/machine/OperationCost.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace tk {
namespace {

/// Products of bf16 parts that stand for one of f32.
constexpr double productsOfParts = 6;
/// Bytes of a sector of memory.
constexpr double sectorBytes = 32;

class Counter {
public:
  Counter(KernelOp kernel, std::span<const Scalar> variables, const Machine &machine)
      : kernel(kernel), space(kernel, variables), machine(machine) {}

  void run() {
    llvm::SmallPtrSet<Operation *, 8> products;
    kernel.walk([&](ReduceOp reduce) { products.insert(productOf(reduce)); });
    kernel.walk([&](Operation *op) {
      if (!op->getParentOfType<ComputeOp>())
        return;
      if (auto load = dyn_cast<LoadOp>(op))
        countLoad(load);
      else if (auto reduce = dyn_cast<ReduceOp>(op))
        countReduction(reduce);
      else if (isa<ScanOp>(op))
        least.instructions += space.count(op->getResult(0));
      else if (op->getNumResults() == 1 && !products.contains(op))
        countElement(op);
    });
    for (auto &[tensor, bytes] : reads)
      least.bytes += bytes;
  }

  LeastCost least;

private:
  const Indices &indicesOf(Value value) { return space.indicesOf(value); }
  double mean(Value value) { return space.mean(value); }
  double combinations(const Indices &indices) { return space.combinations(indices); }

  /// The indices of a factor. Those that a table leads to others are none of a loaded one: rows
  /// that read the same entry of the table share what they load.
  Indices indicesOfFactor(Value factor) {
    auto load = withoutExtension(factor).getDefiningOp<LoadOp>();
    if (!load)
      return indicesOf(factor);
    Indices indices;
    for (Value place : load.getIndices())
      if (!readsTensor(place))
        for (BlockArgument index : indicesOf(place))
          indices.insert(index);
    return indices;
  }

  /// Does one of the factors have an index that the other lacks? Else no element is used twice.
  bool isReused(Operation *product) {
    const Indices a = indicesOfFactor(product->getOperand(0)),
                  b = indicesOfFactor(product->getOperand(1));
    auto lacksOne = [](const Indices &all, const Indices &some) {
      return llvm::any_of(some, [&](BlockArgument index) { return !all.contains(index); });
    };
    return lacksOne(a, b) && lacksOne(b, a);
  }

  /// A term without the masks that leave some terms out.
  static Value withoutMask(Value term) {
    while (std::optional<Mask> mask = maskOf(term.getDefiningOp()))
      term = mask->kept;
    return term;
  }

  /// The product that is the term of a sum, if what it multiplies is used again: it counts with the
  /// sum. Else null.
  Operation *productOf(ReduceOp reduce) {
    if (reduce.isOnline() || reduce.getKind(0) != ReduceKind::Sum)
      return nullptr;
    Operation *op = withoutMask(reduce.getYield().getValues()[0]).getDefiningOp();
    return op && isa<arith::MulFOp, arith::MulIOp>(op) && op->hasOneUse() && isReused(op) ? op
                                                                                          : nullptr;
  }

  /// Terms that do not depend on an index which bounds them are those of a scan: each counts once.
  void countReduction(ReduceOp reduce) {
    for (Value term : reduce.getYield().getValues()) {
      Indices indices = indicesOf(withoutMask(term));
      for (unsigned n = 0; n < reduce.getNumIndices(); ++n)
        indices.insert(reduce.getIndex(n));
      const double times = combinations(indices) * space.shareOfTerm(reduce, term);
      if (Operation *product = productOf(reduce))
        countProduct(product, reduce.getPrecision(), times);
      else
        (term.getType().isF64() ? least.doubles : least.instructions) += times;
    }
  }

  void countProduct(Operation *product, Precision precision, double times) {
    Type type = product->getResult(0).getType();
    auto narrower = [](Type a, Type b) {
      return a.getIntOrFloatBitWidth() <= b.getIntOrFloatBitWidth() ? a : b;
    };
    for (Value factor : product->getOperands())
      if (Type stored = withoutExtension(factor).getType(); stored.isIntOrFloat())
        type = narrower(stored, type);
    const Rates &rates = machine.architecture->rates;
    std::optional<MatrixType> matrix = matrixTypeOf(type, precision == Precision::TF32);
    if (matrix == MatrixType::ByteFloat && rates.byteFloat == 0)
      matrix = MatrixType::Half;
    if (matrix && matrixRate(*machine.architecture, *matrix) > 0)
      least.products[static_cast<size_t>(*matrix)] += times;
    else if (type.isF32() && productsOfParts / (rates.half * machine.device.matrixShare()) <
                                 1 / (rates.f32 * cost::issueShare))
      least.products[static_cast<size_t>(MatrixType::BFloat)] += productsOfParts * times;
    else
      (type.isF64() ? least.doubles : least.instructions) += times;
  }

  void countElement(Operation *op) {
    ElementCost each = elementCost(op);
    if (each.operations == 0)
      return;
    const Value result = op->getResult(0);
    if (each.special > 0)
      if (std::string text = textOfValue(result); !text.empty() && !special.insert(text).second)
        return;
    // The divisor's reciprocal, or its product with a factor, is computed once for many quotients.
    if (isa<arith::DivFOp, DivOrZeroOp, ExpDiffOp>(op) && result.getType().isF32() &&
        indicesOf(op->getOperand(1)).size() < indicesOf(result).size())
      each = {1, 0, isa<ExpDiffOp>(op) ? 1.0 : 0.0, 1};
    const double times = space.count(result);
    least.instructions += each.instructions * times;
    least.doubles += each.doubles * times;
    least.special += each.special * times;
  }

  /// Does `value` step by one element from iteration to iteration of an index that no other value
  /// of `others` depends on?
  bool isContiguous(Value value, ValueRange others) {
    while (!isIteration(value)) {
      Operation *op = value.getDefiningOp();
      if (!op || !isa<arith::AddIOp, arith::SubIOp>(op))
        return false;
      const bool first = !indicesOf(op->getOperand(0)).empty();
      value = op->getOperand(first ? 0 : 1);
    }
    return llvm::none_of(
        others, [&](Value other) { return indicesOf(other).contains(cast<BlockArgument>(value)); });
  }

  void countLoad(LoadOp load) {
    auto tensor = dyn_cast<BlockArgument>(load.getTensor());
    BindOp bind = tensor ? kernel.getBind(tensor) : BindOp();
    if (!bind)
      return;
    const double bytes = elementBytes(cast<RankedTensorType>(tensor.getType()).getElementType());
    Indices all;
    double size = bytes, places = bytes;
    for (auto [axis, value] : llvm::enumerate(load.getIndices())) {
      const Indices indices = indicesOf(value);
      const double extent = mean(bind.getExtents()[axis]);
      double each = combinations(indices);
      if (axis + 1 == load.getIndices().size() &&
          !isContiguous(value, load.getIndices().drop_back()))
        each *= sectorBytes / bytes;
      size *= extent;
      places *= std::min(each, extent);
      all.insert_range(indices);
    }
    const double most = std::max(sectorBytes, bytes * combinations(all) * sectorBytes / bytes);
    double &read = reads[tensor];
    read = std::min({size, read + std::min(places, most), size});
  }

  KernelOp kernel;
  IterationSpace space;
  const Machine &machine;
  llvm::MapVector<Value, double> reads;
  llvm::StringSet<> special; ///< values of special functions
};

double writtenBytes(const Signature &signature, std::span<const Scalar> variables) {
  double total = 0;
  for (unsigned t = 0; t < signature.num_tensors(); ++t) {
    const Parameter &tensor = signature.tensor(t);
    const bool isResult = llvm::any_of(
        signature.results, [&](const Parameter &result) { return result.name == tensor.name; });
    Expected<Extents> shape = shape_of(tensor, variables);
    if (!shape || !(isResult || tensor.in_out))
      continue;
    double bytes = static_cast<double>(size_of(tensor.dtype));
    for (int64_t extent : *shape)
      bytes *= static_cast<double>(extent);
    total += bytes;
  }
  return total;
}

} // namespace

LeastCost leastCost(KernelOp kernel, const Signature &signature, std::span<const Scalar> variables,
                    const Machine &machine) {
  Counter counter(kernel, variables, machine);
  counter.run();
  LeastCost least = counter.least;
  least.bytes += writtenBytes(signature, variables);
  const DeviceSpec &device = machine.device;
  const Rates &rates = machine.architecture->rates;
  const double cycles = static_cast<double>(device.processors) * device.clock();
  auto consider = [&](Bound bound, double time) {
    if (time > least.nanoseconds)
      least.nanoseconds = time, least.bound = bound;
  };
  double matrix = 0;
  for (size_t t = 0; t < numMatrixTypes; ++t)
    if (least.products[t] > 0)
      matrix += least.products[t] / matrixRate(*machine.architecture, static_cast<MatrixType>(t));
  consider(Bound::Memory, least.bytes / device.copyRate());
  consider(Bound::Matrix, matrix / (cycles * device.matrixShare()));
  consider(Bound::Cores, (least.instructions / rates.f32 + least.doubles / rates.f64) /
                             (cycles * cost::issueShare));
  consider(Bound::Special, least.special / rates.special / cycles);
  least.nanoseconds += cost::launch;
  return least;
}

} // namespace tk
