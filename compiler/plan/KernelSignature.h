//===- KernelSignature.h - a kernel as its caller sees it --------*- C++ -*-===//
#ifndef TK_COMPILER_PLAN_KERNELSIGNATURE_H
#define TK_COMPILER_PLAN_KERNELSIGNATURE_H

#include "dialects/tk/TkDialect.h"
#include "tk/plan.h"

namespace tk {

/// The signature of a kernel; nullopt and a diagnostic if an extent, a constraint or a default
/// cannot be evaluated at launch.
std::optional<Signature> signatureOf(KernelOp kernel);

/// The element type of a tensor or scalar type of the IR; `ui8` is u8, `i1` boolean.
std::optional<DType> dtypeOf(mlir::Type type);

/// The place in the `.tk` file that a location names.
SourceSpan sourceSpanOf(mlir::Location loc);

/// Attribute form of the runtime's facts, to be set on a kernel before it is specialised.
mlir::ArrayAttr factsAttr(mlir::MLIRContext *context, const Facts &facts);

} // namespace tk

#endif // TK_COMPILER_PLAN_KERNELSIGNATURE_H
