//===- Fault.h - a fault planted in a program -------------------*- C++ -*-===//
#ifndef TK_TESTS_FUZZ_FAULT_H
#define TK_TESTS_FUZZ_FAULT_H

#include "mlir/IR/BuiltinOps.h"

namespace tk::fuzz {

/// What a wrong pass may do, to see that it is found: the first sum, difference or product of two
/// floats, of scalars or tiles, gets its second operand twice.
void plantFault(mlir::ModuleOp module);

} // namespace tk::fuzz

#endif // TK_TESTS_FUZZ_FAULT_H
