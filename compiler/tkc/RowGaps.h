//===- RowGaps.h - tensors whose rows do not touch ---------------*- C++ -*-===//
#ifndef TK_COMPILER_TKC_ROWGAPS_H
#define TK_COMPILER_TKC_ROWGAPS_H

#include "tk/npy.h"
#include "tk/tensor.h"

#include <vector>

namespace tk::tkc {

/// Row-major strides of a tensor after each of whose rows, planes and so on stand `gap` elements
/// that are not the tensor's.
Extents stridesWithGap(const Extents &shape, int64_t gap);

/// The memory of such a tensor with the values of `tensor`.
std::vector<std::byte> spreadRows(const HostTensor &tensor, int64_t gap);

/// Reads the values back into `tensor`; false if anything between the rows was overwritten.
bool gatherRows(const std::vector<std::byte> &memory, int64_t gap, HostTensor &tensor);

} // namespace tk::tkc

#endif // TK_COMPILER_TKC_ROWGAPS_H
