//===- IndexKeys.h - keys that are arithmetic of an index -------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_KEYS_INDEXKEYS_H
#define TK_PASSES_TENSOR_KEYS_INDEXKEYS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Has reductions go over the values of an index alone for which a quotient or remainder of it has
/// the value that their mask asks for. Returns the number of reductions that changed.
unsigned selectIndices(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_TENSOR_KEYS_INDEXKEYS_H
