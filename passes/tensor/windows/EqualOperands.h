//===- EqualOperands.h - operands of several products ------------*- C++ -*-===//
#ifndef TK_PASSES_TENSOR_WINDOWS_EQUALOPERANDS_H
#define TK_PASSES_TENSOR_WINDOWS_EQUALOPERANDS_H

#include "dialects/tk/TkDialect.h"

namespace tk {

/// Lets readers of equal compute ops of `kernel`, which reduce nothing, read the first of them, and
/// erases the others. Two products over the same windows store these once.
void shareEqualOperands(KernelOp kernel);

} // namespace tk

#endif // TK_PASSES_TENSOR_WINDOWS_EQUALOPERANDS_H
