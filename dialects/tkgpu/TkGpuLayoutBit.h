//===- TkGpuLayoutBit.h - one basis vector of a layout ----------*- C++ -*-===//
#ifndef TK_DIALECTS_TKGPU_TKGPULAYOUTBIT_H
#define TK_DIALECTS_TKGPU_TKGPULAYOUTBIT_H

#include "mlir/IR/TensorEncoding.h"
#include "llvm/ADT/Hashing.h"

#include <cstdint>
#include <optional>

namespace tk::gpu {

/// The contribution of one bit of a register, lane or warp number to a coordinate: `step`, a power
/// of two, along `axis`; or nothing (both 0).
struct LayoutBit {
  int32_t axis = 0;
  int32_t step = 0;

  bool isReplication() const { return step == 0; }
  friend bool operator==(const LayoutBit &, const LayoutBit &) = default;
  friend llvm::hash_code hash_value(const LayoutBit &bit) {
    return llvm::hash_combine(bit.axis, bit.step);
  }
};

} // namespace tk::gpu

#endif // TK_DIALECTS_TKGPU_TKGPULAYOUTBIT_H
