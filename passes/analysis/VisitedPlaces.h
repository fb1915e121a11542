//===- VisitedPlaces.h - places that elements of a tensor name --*- C++ -*-===//
#ifndef TK_PASSES_ANALYSIS_VISITEDPLACES_H
#define TK_PASSES_ANALYSIS_VISITEDPLACES_H

#include "dialects/tk/TkDialect.h"

#include <optional>

namespace tk {

/// The first or the last element of a range for which tests hold.
struct NamedElement {
  ReduceOp reduce;    ///< over the elements from 0 on
  unsigned result;    ///< of `reduce`
  mlir::Value holds;  ///< in the body of `reduce`
  bool isFirst;       ///< else the last one
  int64_t offset = 0; ///< added to the element's number
  int64_t none = 0;   ///< of the last one: the value if the tests hold for none

  mlir::Value value() const { return ReduceOp(reduce).getResult(result); }
};

/// `value` as such an element, converted or not. The first one is the number of all if there is
/// none.
std::optional<NamedElement> getNamedElement(mlir::Value value);

/// An index of a compute op, and the value that an element gives it, which may lie outside of the
/// index's range.
struct NamedIndex {
  enum class Part { Whole, Quotient, Remainder };

  unsigned index;
  mlir::Value value;       ///< in the body of the reduction over elements
  Part part = Part::Whole; ///< of `value` by `divisor`, rounded down
  mlir::Value divisor;     ///< at the level of the kernel
};

/// Elements that each name a place where results of a compute op change.
struct VisitedPlaces {
  NamedElement element; ///< which of those that name a place; there is one where results change
  llvm::SmallVector<NamedIndex> places;

  /// Does an element give index `p` a value?
  bool names(unsigned p) const {
    return llvm::any_of(places, [&](const NamedIndex &place) { return place.index == p; });
  }
};

/// Such elements, if the results of `compute` change under the condition that there is one.
std::optional<VisitedPlaces> matchVisitedPlaces(KernelOp kernel, ComputeOp compute);

/// Nanoseconds of comparisons: of all rows with elements, and of elements with each other.
struct VisitTimes {
  double ofRows, ofElements;
};

/// Those of the results of `compute`; nothing if a size is not known.
std::optional<VisitTimes> getVisitTimes(KernelOp kernel, ComputeOp compute,
                                        const VisitedPlaces &visited);

/// Such elements, if visiting the places that they name takes less time than visiting all rows.
std::optional<VisitedPlaces> getVisitedPlaces(KernelOp kernel, ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_ANALYSIS_VISITEDPLACES_H
