//===- SeparatePlaces.h - products over the places of an operand -*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_FUSE_SEPARATEPLACES_H
#define TK_PASSES_TENSOR_FUSE_SEPARATEPLACES_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Gives `reduce`, in `compute`, a compute op over the places of an operand, if that operand is
/// read at a place which is computed from an index of the other operand and one of no operand
/// (SeparatePlaces.cpp). Returns true if it did.
bool separatePlaces(ReduceOp reduce, ComputeOp compute);

} // namespace tk

#endif // TK_PASSES_TENSOR_FUSE_SEPARATEPLACES_H
