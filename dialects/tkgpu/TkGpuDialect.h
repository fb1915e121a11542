//===- TkGpuDialect.h - the block-level dialect -----------------*- C++ -*-===//
//
// Programs of one thread block over tiles. TkGpuOps.td is the reference.
//
//===----------------------------------------------------------------------===//
#ifndef TK_DIALECTS_TKGPU_TKGPUDIALECT_H
#define TK_DIALECTS_TKGPU_TKGPUDIALECT_H

#include "dialects/tk/TkDialect.h"
#include "dialects/tkgpu/TkGpuLayoutBit.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/tkgpu/TkGpuDialect.h.inc"
#include "dialects/tkgpu/TkGpuEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/tkgpu/TkGpuAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/tkgpu/TkGpuTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/tkgpu/TkGpuOps.h.inc"

namespace tk::gpu {

/// The name of the target on a module. TkGpuPlan.h has the names of decisions.
inline constexpr llvm::StringLiteral targetAttrName = "tkgpu.target";

/// The scalar that all elements of a tile equal; null if the tile is no broadcast of a scalar.
mlir::Value splatSource(mlir::Value tile);

} // namespace tk::gpu

#endif // TK_DIALECTS_TKGPU_TKGPUDIALECT_H
