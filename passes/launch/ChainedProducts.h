//===- ChainedProducts.h - products that take what others compute -*- C++ -*-===//
#ifndef TK_PASSES_LAUNCH_CHAINEDPRODUCTS_H
#define TK_PASSES_LAUNCH_CHAINEDPRODUCTS_H

#include "dialects/tkgpu/TkGpuDialect.h"

namespace tk {

/// Asks for one block a multiprocessor, so that threads may have all registers, if a block
/// multiplies f32 numbers on CUDA cores in a chain of three sums or more; true if it did. Without a
/// number of blocks ptxas has been seen to give threads of such a function 32 registers, and to
/// spill 13 KB.
bool giveAllRegisters(gpu::FuncOp function);

} // namespace tk

#endif // TK_PASSES_LAUNCH_CHAINEDPRODUCTS_H
