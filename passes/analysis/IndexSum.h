//===- IndexSum.h - index expressions as sums of products -------*- C++ -*-===//
//
// Two index expressions may differ by a number, or by a size, in whatever form they are written:
// `(i + 1) * S` and `i * S`, or `i / 128 * 128 + 128` and `i - i % 128`. As sums of products the
// difference is a sum of few terms.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_ANALYSIS_INDEXSUM_H
#define TK_PASSES_ANALYSIS_INDEXSUM_H

#include "dialects/tk/TkDialect.h"

#include "mlir/IR/Builders.h"

namespace tk {

/// True if `extent` is known to be a multiple of `size`: by its fact, or by a constraint.
bool isMultipleOf(KernelOp kernel, mlir::Value extent, int64_t size);

/// A factor of a product: `value`, or `value / divisor` rounded down.
struct IndexFactor {
  mlir::Value value, divisor;
};

/// A number times factors.
struct IndexProduct {
  llvm::SmallVector<IndexFactor, 2> factors;
  int64_t number = 0;
};

/// A sum of products of index values.
class IndexSum {
public:
  IndexSum() = default;
  IndexSum(int64_t number) { addProduct({{}, number}); }
  /// `value` as a sum; one term if its form is not known.
  explicit IndexSum(mlir::Value value);

  llvm::ArrayRef<IndexProduct> getProducts() const { return products; }
  /// The number that the sum is, if it is one.
  std::optional<int64_t> getNumber() const;
  /// Does the sum depend on an index of a compute op or of a reduction?
  bool varies() const;
  /// Is the sum at least 0 for all values of its indices? False if that is not known.
  bool isNotNegative() const;

  IndexSum &add(const IndexSum &other, int64_t factor = 1);
  IndexSum times(const IndexSum &other) const;
  /// The sum divided by `divisor`, rounded down; nothing if the quotient has no known form.
  std::optional<IndexSum> dividedBy(KernelOp kernel, mlir::Value divisor) const;
  void addProduct(IndexProduct product);
  /// The sum in which `n * (N / n)` is `N`, if `n` is known to divide that.
  IndexSum withWholeSizes(KernelOp kernel) const;

  /// The sum as a value at `builder`, where values of `home` are computed again.
  mlir::Value create(mlir::OpBuilder &builder, mlir::Location loc, mlir::Block *home) const;

private:
  llvm::SmallVector<IndexProduct> products;
};

/// What `value` is at most for all values of the indices of compute ops, if that is known.
std::optional<IndexSum> greatestOf(KernelOp kernel, mlir::Value value);

/// The greatest length of a range: a sum without indices and quotients of such sums, each with a
/// factor.
struct RangeLength {
  struct Quotient {
    IndexSum dividend;
    mlir::Value divisor;
    int64_t factor;
  };
  IndexSum sum;
  llvm::SmallVector<Quotient, 1> quotients;
  bool isExact = true; ///< is each range as long?

  mlir::Value create(mlir::OpBuilder &builder, mlir::Location loc, mlir::Block *home) const;
};

/// The length of the range from `begin` to `end`, if sizes bound all of them.
std::optional<RangeLength> lengthOfRange(const IndexSum &begin, const IndexSum &end);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_INDEXSUM_H
