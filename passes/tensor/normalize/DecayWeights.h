//===- DecayWeights.h - weights that decay with distance --------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_NORMALIZE_DECAYWEIGHTS_H
#define TK_PASSES_TENSOR_NORMALIZE_DECAYWEIGHTS_H

#include "passes/analysis/ScalarExpr.h"

#include "mlir/IR/IRMapping.h"

#include <vector>

namespace tk {

/// A term of a sum over an index `s` as a product of weights of the distance from a place `t`, of
/// factors of `t`, and of an element of `s`.
class DecayWeights {
public:
  /// Where `condition` does not hold there is no term.
  DecayWeights(ReduceOp reduce, mlir::BlockArgument place, bool isBackward, mlir::Value condition)
      : reduce(reduce), place(place), isBackward(isBackward), condition(condition),
        onIndex(mlir::ValueRange{reduce.getIndex(0)}), onPlace(mlir::ValueRange{place}) {}

  /// Splits `term` up; true if it has a weight, and nothing else that depends on both indices but
  /// the distance itself, once. Is the element at the place, if it `isIncluded`, a term?
  bool match(mlir::Value term, bool isIncluded, bool needsWeight = true);
  /// Is the distance a factor? It may be negated.
  bool hasDistance() const { return numDistances > 0; }

  /// The element at `index`, with its weight as seen from `seenFrom`: that place or the next one.
  mlir::Value termAt(mlir::OpBuilder &at, mlir::Value index, mlir::Value seenFrom);
  /// The weight of the step from `before` to `to`.
  mlir::Value decayAt(mlir::OpBuilder &at, mlir::Value to, mlir::Value before);
  /// `sum` times the factors of the place.
  mlir::Value withFactors(mlir::OpBuilder &at, mlir::Value sum);

  /// A factor of a term or of an exponent: `value`, or its reciprocal.
  struct Factor {
    mlir::Value value;
    bool isDivisor = false;
  };
  /// The factors of a term that depend on its index or on neither, and those on the place alone.
  llvm::ArrayRef<Factor> getElements() const { return elements; }
  llvm::ArrayRef<Factor> getFactorsOfPlace() const { return ofPlace; }

  /// Values below are of other indices than those of the sum: as `indices` maps them.
  void setIndices(const mlir::IRMapping &indices) { outer = indices; }
  /// `value`, of the term, where the index and the place are `row`.
  mlir::Value valueAt(mlir::OpBuilder &at, mlir::Value value, mlir::Value row) {
    return cloneAt(at, value, row);
  }
  unsigned getNumWeights() const { return weights.size(); }
  mlir::Value getWeight(unsigned n) const { return weights[n].op->getResult(0); }
  /// Weight `n` of the term at `index`, as seen from `to`.
  mlir::Value weightAt(mlir::OpBuilder &at, unsigned n, mlir::Value to, mlir::Value index);
  /// The part of weight `n` that the way from `before` to `to` is; null if it is 1.
  mlir::Value weightBetween(mlir::OpBuilder &at, unsigned n, mlir::Value to, mlir::Value before);
  /// Weight `n` of the term at `index` as seen from there; null if it is 1.
  mlir::Value ownWeight(mlir::OpBuilder &at, unsigned n, mlir::Value index);

private:
  /// `steps` for each step of the distance, and `offset`.
  struct Distance {
    int64_t steps = 0, offset = 0;
  };
  /// A part of an exponent: a distance, a value at the place less that at the index, or a value at
  /// the index.
  struct Addend {
    mlir::Value value;
    bool isNegative = false;
    llvm::SmallVector<Factor> factors;
    std::optional<Distance> distance;
  };
  /// A power of `base`, or an exponential of the sum of what a step adds and of `elements`.
  struct Weight {
    mlir::Operation *op;
    mlir::Value base;
    Distance distance;
    llvm::SmallVector<Addend> addends, elements;
  };

  bool collect(mlir::Value value, bool isDivisor);
  bool matchWeight(mlir::Value value);
  bool matchDistance(mlir::Value value);
  bool isDistanceTest(mlir::Value condition);
  bool matchExponential(mlir::Operation *op);
  bool collectAddends(mlir::Value value, Addend around, llvm::SmallVectorImpl<Addend> &addends);
  bool pairAddends(llvm::SmallVectorImpl<Addend> &addends, llvm::SmallVectorImpl<Addend> &elements);
  std::optional<Distance> distanceOf(mlir::Value number);
  mlir::Value powerOf(mlir::OpBuilder &at, const Weight &weight, int64_t exponent);
  mlir::Value stepOf(mlir::OpBuilder &at, const Addend &addend, mlir::Value to, mlir::Value before);
  mlir::Value scaled(mlir::OpBuilder &at, const Addend &addend, mlir::Value value);
  mlir::Value weightOf(mlir::OpBuilder &at, const Weight &weight,
                       llvm::function_ref<int64_t(Distance)> steps, mlir::Value to,
                       mlir::Value before, mlir::Value index = {});
  mlir::Value cloneAt(mlir::OpBuilder &at, mlir::Value value, mlir::Value index);

  ReduceOp reduce;
  mlir::BlockArgument place;
  bool isBackward;
  mlir::Value condition;
  Dependence onIndex, onPlace;
  mlir::IRMapping outer;
  std::vector<Weight> weights;
  unsigned numDistances = 0;
  bool isNegated = false, testsDistance = false;
  llvm::SmallVector<Factor> elements, ofPlace;
};

} // namespace tk

#endif // TK_PASSES_TENSOR_NORMALIZE_DECAYWEIGHTS_H
