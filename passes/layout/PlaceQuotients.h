//===- PlaceQuotients.h - quotients of the places of windows ----*- C++ -*-===//
//
// The places of a window's elements count up in a loop, and are divided by its extents.
//
//===----------------------------------------------------------------------===//
#ifndef TK_PASSES_LAYOUT_PLACEQUOTIENTS_H
#define TK_PASSES_LAYOUT_PLACEQUOTIENTS_H

#include "passes/layout/BulkBox.h"

namespace tk {

/// Divides the numbers of a window's elements, which count up in a loop, by multiplying: the one
/// thread that begins copies would take longer for a slice's quotients than the products do. With
/// x * d < 2^16, x / d is x * ceil(2^16 / d) / 2^16.
void multiplyByReciprocals(gpu::FuncOp function, LaunchArguments &arguments);

} // namespace tk

#endif // TK_PASSES_LAYOUT_PLACEQUOTIENTS_H
