//===- TkGpuFields.h - fields of packed numbers -----------------*- C++ -*-===//
#ifndef TK_DIALECTS_TKGPU_TKGPUFIELDS_H
#define TK_DIALECTS_TKGPU_TKGPUFIELDS_H

#include "dialects/tkgpu/TkGpuDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tk::gpu {

/// Most bits of a field whose conversion to 16-bit floats has a form for pairs.
inline constexpr unsigned mostBitsOfField = 4;

/// An integer of a few bits without a sign: a field of a word of 8 or 32 bits. It begins at bit
/// `shift`. Where there is a condition, it does so if that holds, else at bit `otherShift`. Where
/// `place` is given, it begins at that bit.
struct PackedField {
  mlir::Value words, condition, place;
  int64_t shift = 0, otherShift = 0;
  unsigned bits = 0;
};

/// A number that is subtracted from a field, or an integer that is added to it.
struct FieldTerm {
  mlir::Value value;
  bool isAdded;
};

/// (field - zero) * scale, rounded to 16 bits. The zero has a term that is a float, or several that
/// are small integers, or none. `scale` and `product` are null if nothing is scaled, and the zero
/// then is one that the result holds the difference from.
struct ScaledField {
  PackedField field;
  llvm::SmallVector<FieldTerm, 2> zero;
  mlir::Value scale;
  mlir::arith::MulFOp product;
  llvm::SmallVector<mlir::Operation *, 8> inner; ///< all operations but the last
};

/// The scaled field that `end` rounds or converts to 16 bits, of scalars or of tiles. Beside bf16 a
/// scale may have more bits than the result, beside f16 it has as many.
std::optional<ScaledField> matchScaledField(mlir::Operation *end);

/// The operation that ends the scaled field that `op` is a part of, if its product may be
/// approximate; null if there is none.
mlir::Operation *endOfScaledField(mlir::Operation *op);

/// Is `scale` no more precise than bf16?
bool isStoredInBF16(mlir::Value scale);

} // namespace tk::gpu

#endif // TK_DIALECTS_TKGPU_TKGPUFIELDS_H
