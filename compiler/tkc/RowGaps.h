//===- RowGaps.h - tensors whose rows do not touch ---------------*- C++ -*-===//
#ifndef TK_COMPILER_TKC_ROWGAPS_H
#define TK_COMPILER_TKC_ROWGAPS_H

#include "tk/npy.h"
#include "tk/tensor.h"

#include <vector>

namespace tk::tkc {

/// How a tensor lies in memory.
struct RowLayout {
  int64_t gap = 0;             ///< elements after each row, plane and so on that are not its own
  std::vector<unsigned> order; ///< the axes from the outermost to the innermost; empty: as declared
  int64_t step = 1;            ///< the stride of the innermost one
};

/// The strides of a tensor with that layout, in elements.
Extents stridesOf(const Extents &shape, const RowLayout &layout);

/// The memory of such a tensor with the values of `tensor`.
std::vector<std::byte> spreadRows(const HostTensor &tensor, const RowLayout &layout);

/// Reads the values back into `tensor`; false if anything between its elements was overwritten.
bool gatherRows(const std::vector<std::byte> &memory, const RowLayout &layout, HostTensor &tensor);

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_ROWGAPS_H
