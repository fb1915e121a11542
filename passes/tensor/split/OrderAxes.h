//===- OrderAxes.h - the order of a product's axes --------------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_SPLIT_ORDERAXES_H
#define TK_PASSES_TENSOR_SPLIT_ORDERAXES_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Names of results whose products have their axes in the order of a matrix product, because the
/// kernel is predicted to take less time so: an array of strings on the module.
inline constexpr llvm::StringLiteral orderedByTimeAttrName = "tk.order_axes_by_time";

/// Names of results whose products multiply tensors with axes in another order: an array of strings
/// on the kernel, once fusion has ended. Nothing decides by it but what compares whole plans.
inline constexpr llvm::StringLiteral unorderedAttrName = "tk.axes_out_of_order";

/// Puts the axes of the products that orderedByTimeAttrName names in order (OrderAxes.cpp), and
/// lists others under unorderedAttrName. Returns how many are in order now.
unsigned orderAxes(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_TENSOR_SPLIT_ORDERAXES_H
