//===- EmitScan.cpp - running combinations along an axis -------------------===//
//
// A thread scans its own elements first. Lanes and warps then add what stands before them: a step
// for each bit of the axis. Recurrences join pairs of a decay and an element likewise.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"
#include "dialects/tkgpu/TkGpuExchange.h"
#include "dialects/tkgpu/TkGpuRecurrenceOps.h"
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
  return scan.getTotal().use_empty() ? success()
                                     : nameTotal(scan, scan.getTotal(), source, axis, total);
}

LogicalResult KernelEmitter::nameTotal(Operation *scan, Value total, Value source, int32_t axis,
                                       const std::string &array) {
  auto matched = matchReduction(layoutOf(source), total, axis);
  if (mlir::failed(matched))
    return unsupported(scan, "expected a total in the threads that hold the source, got ")
           << total.getType();
  const std::string own =
      takeReduced(*matched, array, registersOf(source), elementTypeName(source.getType()));
  if (isTile(total))
    names[total] = own;
  else
    declare(total, own + "[0]");
  return success();
}

LogicalResult KernelEmitter::emitRecurrence(gpu::RecurrenceOp recurrence) {
  Value source = recurrence.getSource(), result = recurrence.getResult();
  auto layout = layoutOf(source);
  if (layoutOf(result) != layout || layoutOf(recurrence.getDecays()) != layout)
    return unsupported(recurrence, "expected decays and a result with the source's layout, got ")
           << result.getType();
  const auto axis = static_cast<int32_t>(recurrence.getAxis());
  const int64_t extent = layout.getTileShape()[axis];
  const std::string type = elementTypeName(source.getType());
  const std::string y = copyOf(source), a = copyOf(recurrence.getDecays());
  const std::string runs = freshName("runs");
  const std::string count = std::to_string(registersOf(source));
  const std::string warps = std::to_string(func.getNumWarps());
  const std::string backward = recurrence->hasAttr(gpu::backwardAttrName) ? ", true" : "";
  line("tk::Run<" + type + "> " + runs + "[" + count + "];");
  line("tk::begin_runs(" + runs + ", " + a + ", " + y + ");");
  unsigned joined = 0;
  auto call = [&](llvm::StringRef primitive, const llvm::Twine &numbers, llvm::StringRef more) {
    line("tk::" + primitive + "<" + numbers + backward + ">(" + y + ", " + a + ", " + runs + more +
         ");");
  };
  /// The bits from that of `step` on that are neighbouring steps.
  auto takeBits = [&](llvm::ArrayRef<gpu::LayoutBit> bits, int64_t &step) {
    unsigned mask = bitOf(bits, axis, step), bit = mask;
    for (unsigned next; (next = bitOf(bits, axis, step * 2)) > bit; step *= 2)
      mask |= bit = next;
    return mask;
  };
  const unsigned own = registersInOrder(layout, axis, extent);
  if (own != 0)
    call("recur_in_thread", llvm::Twine(own), "");
  auto shared = [&] {
    return ", reinterpret_cast<" + type + " *>(" + scratch(gpu::recurrenceBytes(recurrence, func)) +
           ")";
  };
  const std::optional<gpu::RunsOfThreads> inBlock = gpu::runsOfThreads(recurrence, func);
  for (int64_t step = 1; step < extent && own == 0; step *= 2) {
    if (unsigned bit = bitOf(layout.getRegisterBits(), axis, step)) {
      call("recur_registers", llvm::Twine(bit), "");
      joined |= bit;
    } else if (inBlock && bitOf(layout.getLaneBits(), axis, step) != 0) {
      call("recur_block",
           llvm::Twine(inBlock->warps) + ", " + llvm::Twine(inBlock->joined) + ", " +
               llvm::Twine(inBlock->high),
           shared());
      break;
    } else if (bitOf(layout.getLaneBits(), axis, step) != 0) {
      const unsigned mask = takeBits(layout.getLaneBits(), step);
      call("recur_lanes", llvm::Twine(mask) + ", " + llvm::Twine(joined), "");
    } else if (bitOf(layout.getWarpBits(), axis, step) != 0) {
      const unsigned mask = takeBits(layout.getWarpBits(), step);
      call("recur_warps", llvm::Twine(mask) + ", " + warps + ", " + llvm::Twine(joined), shared());
    }
  }
  names[result] = y;
  if (recurrence.getLast().use_empty())
    return success();
  const std::string last = freshName("last");
  line(type + " " + last + "[" + count + "];");
  line("tk::end_runs(" + last + ", " + runs + ");");
  return nameTotal(recurrence, recurrence.getLast(), source, axis, last);
}

} // namespace tk::cuda
