//===- CarryLoads.h - numbers of the next iteration -------------*- C++ -*-===//
#ifndef TK_PASSES_ROWS_CARRYLOADS_H
#define TK_PASSES_ROWS_CARRYLOADS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tk {

/// Lets each iteration begin the next one's loads of single numbers; returns the loop that takes
/// the place of `loop`, or `loop` if it has none whose addresses are known that early.
mlir::scf::ForOp carryScalarLoads(mlir::scf::ForOp loop);
/// Likewise the loads of tiles of which a thread has few elements, up to `registers` of 32 bits
/// for all of them.
mlir::scf::ForOp carryLoads(mlir::scf::ForOp loop, int64_t registers);

} // namespace tk

#endif // TK_PASSES_ROWS_CARRYLOADS_H
