//===- OperationCodes.h - the reference's codes of operations ---*- C++ -*-===//
//
// The instruction of the reference that executes an operation, and the width of its results.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_INTERP_OPERATIONCODES_H
#define TK_COMPILER_INTERP_OPERATIONCODES_H

#include "compiler/interp/Program.h"

#include "llvm/ADT/StringMap.h"

namespace tk::interp::detail {

Width widthOf(mlir::Type type);

/// Operations with up to three operands that map to one code.
const llvm::StringMap<Code> &simpleCodes();

} // namespace tk::interp::detail

#endif // TK_COMPILER_INTERP_OPERATIONCODES_H
