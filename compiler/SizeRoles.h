//===- SizeRoles.h - which sizes of a dimension share a variant --*- C++ -*-===//
//
// A dimension along which data grows, such as a sequence or the rows of a batch, has few keys: no
// more than the cost model tells apart. A dimension that is part of a model's shape, such as the
// width of a head, has fine ones.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_SIZEROLES_H
#define TK_COMPILER_SIZEROLES_H

#include "dialects/tk/TkDialect.h"
#include "passes/machine/Machine.h"
#include "tk/plan.h"

#include <optional>
#include <vector>

namespace tk {

/// What a kernel does with a dimension.
enum class SizeRole : uint8_t {
  Shape,    ///< anything else: the size has fine keys
  Rows,     ///< counts the rows of one operand of matrix products
  Terms,    ///< what reductions run over, such as the keys of attention, across contiguous rows
  Elements, ///< counts results of a kernel without matrix products, across contiguous rows
};

/// The roles of a kernel's dimensions. Only a dimension that is not the last axis of a tensor, and
/// of which nothing is computed but sums, has another role than Shape.
std::vector<SizeRole> findSizeRoles(KernelOp kernel);

/// Which dimensions count the rows or the columns of matrix products, are not part of their batch,
/// and are summed over nowhere: how many tiles there are follows from these alone.
std::vector<bool> findTiledDims(KernelOp kernel);

/// The sizes in (above, upper] that are multiples of `divisor`.
struct SizeInterval {
  int64_t above = 0, upper = 0;
  uint32_t divisor = 1;
};

/// The class on a machine of sizes of which `fact` is known, with a bound of at least 1; nothing
/// for a size that has a key of its own. Bounds of classes are powers of two: those of facts of
/// sizes are not above the next one.
std::optional<SizeInterval> classOf(SizeRole role, const DimFact &fact, const Machine &machine);
/// The same for the CPU: the upper bound, or -1 for none.
int64_t boundOnCpu(const DimFact &fact);

} // namespace tk

#endif // TK_COMPILER_SIZEROLES_H
