//===- TkDialect.h - the tensor-level dialect -------------------*- C++ -*-===//
//
// Kernels in index notation. TkOps.td is the reference.
//
//===----------------------------------------------------------------------===//
#ifndef TK_DIALECTS_TK_TKDIALECT_H
#define TK_DIALECTS_TK_TKDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/tk/TkDialect.h.inc"
#include "dialects/tk/TkEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/tk/TkAttributes.h.inc"

namespace tk {
class BindOp;
class ReturnOp;
class YieldOp;
} // namespace tk

#define GET_OP_CLASSES
#include "dialects/tk/TkOps.h.inc"

namespace tk {
/// Does a reduction give the place of an extremum?
inline bool isArgReduction(ReduceKind kind) {
  return kind == ReduceKind::ArgMax || kind == ReduceKind::ArgMin;
}

/// On an arith.truncf that no declared type asks for. It rounds an operand of a contraction whose
/// other operand is stored in 16 bits. The compiler chooses where it stands.
constexpr llvm::StringLiteral roundedFactorAttr = "tk.rounded_factor";
} // namespace tk

#endif // TK_DIALECTS_TK_TKDIALECT_H
