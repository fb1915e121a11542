//===- EmitScan.cpp - running combinations along an axis -------------------===//
//
// A thread scans its own elements first. Lanes and warps then add what stands before them: a step
// for each bit of the axis.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"
#include "dialects/tkgpu/TkGpuExchange.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tk::cuda {

/// The bit of the register, lane or warp number that is bit `step` of the coordinate along an axis,
/// or 0.
static unsigned bitOf(llvm::ArrayRef<gpu::LayoutBit> bits, int32_t axis, int64_t step) {
  for (auto [b, bit] : llvm::enumerate(bits))
    if (bit.axis == axis && bit.step == step)
      return 1u << b;
  return 0;
}

/// The bits of the register number that are an axis, if a thread has all of its two or more bits in
/// their order; else 0.
static unsigned registersInOrder(gpu::LayoutAttr layout, int32_t axis, int64_t extent) {
  unsigned mask = 0, last = 0;
  for (int64_t step = 1; step < extent; step *= 2) {
    const unsigned bit = bitOf(layout.getRegisterBits(), axis, step);
    if (bit <= last)
      return 0;
    mask |= last = bit;
  }
  return llvm::has_single_bit(mask) ? 0 : mask;
}

LogicalResult KernelEmitter::emitScan(gpu::ScanOp scan) {
  // Blocks of the axis of 1, 2, 4, ... elements are joined, whatever holds the bit of the
  // coordinate in which the two of a pair differ: the register, lane or warp number. Neighbouring
  // bits of the warp number are one step.
  Value source = scan.getSource(), result = scan.getResult();
  auto layout = layoutOf(source);
  if (layoutOf(result) != layout)
    return unsupported(scan, "expected a result with the source's layout, got ")
           << result.getType();
  const int32_t axis = scan.getAxis();
  const int64_t extent = layout.getTileShape()[axis];
  const std::string functor = functorOf(scan.getKind()), type = elementTypeName(source.getType());
  const std::string prefix = copyOf(source), total = copyOf(source);
  const std::string arrays = "(" + prefix + ", " + total;
  const std::string warps = std::to_string(func.getNumWarps());
  const std::string backward = scan->hasAttr(gpu::backwardAttrName) ? ", true" : "";
  unsigned joined = 0;
  auto call = [&](llvm::StringRef primitive, const llvm::Twine &numbers, llvm::StringRef more) {
    line("tk::" + primitive + "<" + functor + ", " + numbers + backward + ">" + arrays + more +
         ");");
  };
  const unsigned own = registersInOrder(layout, axis, extent);
  if (own != 0)
    call("scan_in_thread", llvm::Twine(own), "");
  for (int64_t step = 1; step < extent && own == 0; step *= 2) {
    if (unsigned bit = bitOf(layout.getRegisterBits(), axis, step)) {
      call("scan_registers", llvm::Twine(bit), "");
      joined |= bit;
    } else if (unsigned bit = bitOf(layout.getLaneBits(), axis, step)) {
      call("scan_lanes", llvm::Twine(bit) + ", " + llvm::Twine(joined), "");
    } else if (unsigned bit = bitOf(layout.getWarpBits(), axis, step)) {
      unsigned mask = bit;
      for (unsigned next; (next = bitOf(layout.getWarpBits(), axis, step * 2)) > bit; step *= 2)
        mask |= bit = next;
      call("scan_warps", llvm::Twine(mask) + ", " + warps + ", " + llvm::Twine(joined),
           ", reinterpret_cast<" + type + " *>(" + scratch(gpu::scanBytes(scan, func)) + ")");
    }
  }
  names[result] = prefix;
  if (scan.getTotal().use_empty())
    return success();
  auto matched = matchReduction(layout, scan.getTotal(), axis);
  if (mlir::failed(matched))
    return unsupported(scan, "expected a total in the threads that hold the source, got ")
           << scan.getTotal().getType();
  const std::string array = takeReduced(*matched, total, registersOf(source), type);
  if (isTile(scan.getTotal()))
    names[scan.getTotal()] = array;
  else
    declare(scan.getTotal(), array + "[0]");
  return success();
}

} // namespace tk::cuda
