//===- TkGpuFields.h - fields of packed numbers -----------------*- C++ -*-===//
#ifndef TK_DIALECTS_TKGPU_TKGPUFIELDS_H
#define TK_DIALECTS_TKGPU_TKGPUFIELDS_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tk::gpu {

/// Bits of a field whose conversion to 16-bit floats has a form for pairs.
inline constexpr unsigned bitsOfField = 4;

/// An integer of 4 bits without a sign: a field of a word. Where there is a condition, the field
/// begins at bit `shift` if that holds, else at bit `otherShift`.
struct PackedField {
  mlir::Value words, condition;
  int64_t shift = 0, otherShift = 0;
};

/// The field that `value`, a scalar or a tile, is. `inner` receives the operations in between, of
/// which each has one use.
std::optional<PackedField> matchField(mlir::Value value,
                                      llvm::SmallVectorImpl<mlir::Operation *> &inner);

/// (field - zero) * scale, rounded to 16 bits. `zero` is null if nothing is subtracted.
struct ScaledField {
  PackedField field;
  mlir::Value zero, scale;
  mlir::arith::MulFOp product;
  llvm::SmallVector<mlir::Operation *, 8> inner; ///< all operations but the rounding
};

/// The scaled field that `rounding` ends. Scales may have more bits than bf16 has, but not than f16.
std::optional<ScaledField> matchScaledField(mlir::arith::TruncFOp rounding);

/// The scaled field that `op` is a part of, if its product may be approximate; null if none.
mlir::arith::TruncFOp endOfScaledField(mlir::Operation *op);

/// Is `scale` no more precise than bf16?
bool isStoredInBF16(mlir::Value scale);

} // namespace tk::gpu

#endif // TK_DIALECTS_TKGPU_TKGPUFIELDS_H
