//===- MemoryAccess.h - how an access walks through memory ------*- C++ -*-===//
#ifndef TK_PASSES_LAYOUT_MEMORYACCESS_H
#define TK_PASSES_LAYOUT_MEMORYACCESS_H

#include "dialects/tkgpu/TkGpuLayout.h"
#include "passes/layout/AxisInfo.h"

namespace tk {

/// What loads, stores and asynchronous copies have in common.
struct MemoryAccess {
  mlir::ValueRange indices, strides, masks;
  mlir::ArrayAttr indexDims, maskDims;
  mlir::RankedTensorType tile; ///< what is loaded or stored
  int64_t baseAlignment = 16;  ///< bytes that divide the address of the buffer

  static MemoryAccess of(gpu::LoadOp load);   ///< of a load whose result is a tile
  static MemoryAccess of(gpu::StoreOp store); ///< of a store whose value is a tile

  llvm::ArrayRef<int64_t> indexAxes(unsigned index) const;
  llvm::ArrayRef<int64_t> maskAxes(unsigned mask) const;
  /// Bytes of an element in memory.
  int64_t elementBytes() const;
};

/// The terms (index, stride) of an offset that are the same for all elements of a tile.
using FixedTerms = llvm::SmallVector<std::pair<mlir::Value, mlir::Value>, 4>;

/// The other terms of an access that runs along memory by the index tile `along`; nothing where it
/// does not, or others vary as well.
std::optional<FixedTerms> fixedTermsBeside(const MemoryAccess &access, mlir::Value along);

/// Where the loop whose induction variable `index` is begins, if it goes on in steps that `unit`
/// divides: the remainder by it stays. Otherwise `index`.
mlir::Value loopStart(mlir::Value index, int64_t unit, AxisInfo &info);

/// An attribute of the module, where buffers are aligned to less than 16 bytes.
inline constexpr llvm::StringLiteral baseAlignmentAttrName = "tkgpu.base_alignment";

/// Bytes of one element of a tensor in memory; bool takes a byte.
int64_t bytesOfElement(mlir::Type element);

/// The tile axis along which neighbours are neighbours in memory, and how many elements from an
/// aligned position on may be accessed at once: a power of two with `axis`'s neighbours adjacent,
/// the address a multiple of the width and all masks equal, at most 16 bytes. `axis` is -1 if there
/// is none. `run` is the width without regard to masks that are upper bounds, and in a rotated tile
/// without regard to the group that the rotation cuts; 1 where `width` alone is as much, or more
/// than a word.
struct VectorAccess {
  int64_t axis = -1;
  int64_t width = 1;
  int64_t run = 1;
};
/// No wider than `maxBytes`, and never narrower than an element.
VectorAccess analyseVectors(const MemoryAccess &access, AxisInfo &info, int64_t maxBytes = 16);

/// The widest access, in bytes, that the schedule of `function` wants.
int64_t vectorBytesOf(gpu::FuncOp function);

} // namespace tk

#endif // TK_PASSES_LAYOUT_MEMORYACCESS_H
