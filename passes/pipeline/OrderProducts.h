//===- OrderProducts.h - where a step's products begin and end --*- C++ -*-===//
#ifndef TK_PASSES_PIPELINE_ORDERPRODUCTS_H
#define TK_PASSES_PIPELINE_ORDERPRODUCTS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tk {

/// Begins the products of a loop's step as soon as their operands are there and waits for each
/// where its result is needed, if scores of several products, or several sums of weights, keep the
/// loop from carrying a product into the next step. Returns whether it did.
bool orderProducts(mlir::scf::ForOp loop);

} // namespace tk

#endif // TK_PASSES_PIPELINE_ORDERPRODUCTS_H
