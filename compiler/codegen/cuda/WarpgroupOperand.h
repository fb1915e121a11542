//===- WarpgroupOperand.h - operands of warpgroup products -------*- C++ -*-===//
//
// An operand in shared memory is named by a descriptor: where it begins, how far its groups of
// eight rows are apart, and its swizzle. A product steps through it in spans of 32 bytes of k and
// of 64 rows; each step is a constant number of bytes further on.
//
//===----------------------------------------------------------------------===//
#ifndef TK_COMPILER_CODEGEN_CUDA_WARPGROUPOPERAND_H
#define TK_COMPILER_CODEGEN_CUDA_WARPGROUPOPERAND_H

#include "dialects/tkgpu/TkGpuDialect.h"
#include "dialects/tkgpu/TkGpuLayout.h"

namespace tk::cuda {

/// Bytes of k that one instruction takes, and rows of A.
inline constexpr int64_t kSpan = 32, kRows = 64;

/// How a product walks through an operand in shared memory. `outer` is m or n.
class SharedOperand {
public:
  SharedOperand(gpu::SharedType type, unsigned kAxis)
      : type(type), bytes(type.getElementType().getIntOrFloatBitWidth() / 8),
        rowBytes(type.getRowLength() * bytes),
        kContiguous(type.getAxisOrder().front() == static_cast<int64_t>(kAxis)) {}

  bool isTransposed() const { return !kContiguous; }
  int64_t panelBytes() const { return gpu::SharedType(type).getPanelStride() * bytes; }
  int64_t leadingBytes() const { return kContiguous ? 16 : panelBytes(); }
  int64_t strideBytes() const { return 8 * rowBytes; }
  std::string swizzle() const {
    const int64_t span = gpu::SharedType(type).getHardwareSwizzle().value_or(0);
    return span ? "tk::Swizzle::bytes" + std::to_string(span) : "tk::Swizzle::none";
  }
  /// How far the element `outer` along m or n is from the first; a whole panel where those are
  /// contiguous.
  int64_t outerBytes(int64_t outer) const {
    if (kContiguous)
      return outer * rowBytes;
    return outer * bytes / rowBytes * panelBytes() + outer * bytes % rowBytes;
  }
  /// How far span `k` is, an expression.
  std::string spanBytes(llvm::StringRef k) const {
    if (!kContiguous)
      return (k + " * " + std::to_string(kSpan / bytes * rowBytes)).str();
    const int64_t spans = rowBytes / kSpan;
    if (type.getPanel() == 0)
      return (k + " * " + std::to_string(kSpan)).str();
    return (k + " / " + std::to_string(spans) + " * " + std::to_string(panelBytes()) + " + " + k +
            " % " + std::to_string(spans) + " * " + std::to_string(kSpan))
        .str();
  }

private:
  mutable gpu::SharedType type;
  int64_t bytes, rowBytes;
  bool kContiguous;
};

/// Instructions along the sum of a product.
int64_t spansOf(gpu::WarpgroupDotOp dot);

/// Columns of the accumulator that a warpgroup has.
int64_t columnsOf(gpu::LayoutAttr accumulator);

/// The call that moves a descriptor of an operand of `dot` on, without its end.
std::string advanceOf(gpu::WarpgroupDotOp dot);

} // namespace tk::cuda

#endif // TK_COMPILER_CODEGEN_CUDA_WARPGROUPOPERAND_H
