//===- EmitDescriptors.cpp - factors of warpgroup products -----------------===//
//
// Declares the descriptors by which instructions name what they multiply in shared memory. A factor
// that is the same in all iterations of a loop has them before the loop.
//
//===----------------------------------------------------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"
#include "compiler/codegen/cuda/WarpgroupOperand.h"
#include "dialects/tkgpu/TkGpuProducts.h"
#include "passes/pipeline/Rings.h"

using namespace mlir;

namespace tk::cuda {

/// The bytes by which the operand of a warpgroup lies behind that of the first, an expression in
/// `warp`; "0" where all read the same.
static std::string groupBytes(const SharedOperand &operand, gpu::LayoutAttr accumulator,
                              int32_t axis) {
  BitMap steps;
  for (auto [b, bit] : llvm::enumerate(accumulator.getWarpBits()))
    steps.push_back(b >= 2 && bit.axis == axis ? operand.outerBytes(bit.step) : 0);
  return sumOfBits("warp", steps);
}

int64_t columnsOf(gpu::LayoutAttr accumulator) {
  int64_t columns = 1;
  for (ArrayRef<gpu::LayoutBit> bits : {accumulator.getRegisterBits(), accumulator.getLaneBits()})
    for (gpu::LayoutBit bit : bits)
      columns *= bit.axis == 1 && !bit.isReplication() ? 2 : 1;
  return columns;
}

int64_t spansOf(gpu::WarpgroupDotOp dot) {
  auto type = dot.getB().getType();
  return type.getShape()[0] * type.getElementType().getIntOrFloatBitWidth() / 8 / kSpan;
}

std::string advanceOf(gpu::WarpgroupDotOp dot) {
  return comesApart(dot) ? "tk::descriptor_plus(" : "tk::descriptor_advance(";
}

std::string KernelEmitter::firstDescriptor(gpu::WarpgroupDotOp dot, Value operand, int32_t axis) {
  const SharedOperand walk(cast<gpu::SharedType>(operand.getType()), 1 - axis);
  std::string group = groupBytes(walk, layoutOf(dot.getResult()), axis);
  if (group != "0")
    useWarp();
  std::string text = "tk::descriptor_advance(tk::matrix_descriptor(" + names[operand] + ", ";
  llvm::raw_string_ostream(text) << walk.leadingBytes() << ", " << walk.strideBytes() << ", "
                                 << walk.swizzle() << "), " << group << ")";
  return text;
}

int64_t KernelEmitter::rowBlocksOf(gpu::WarpgroupDotOp dot) {
  return registersOf(dot.getResult()) / (columnsOf(layoutOf(dot.getResult())) / 2);
}

/// Is this product's left factor in shared memory, and the same in all steps of `loop`?
static bool hasFixedFactor(gpu::WarpgroupDotOp dot, scf::ForOp loop) {
  return isa<gpu::SharedType>(dot.getA().getType()) && dot->getParentOfType<scf::ForOp>() == loop &&
         loop.isDefinedOutsideOfLoop(dot.getA());
}

void KernelEmitter::declareFactors(scf::ForOp loop) {
  loop.walk([&](gpu::WarpgroupDotOp dot) {
    if (!hasFixedFactor(dot, loop) || !comesApart(dot) || rowBlocksOf(dot) > 1)
      return;
    const SharedOperand walk(cast<gpu::SharedType>(dot.getA().getType()), 1);
    const std::string name = freshName("a_at"), first = firstDescriptor(dot, dot.getA(), 0);
    line("const tk::HeldDescriptors<" + llvm::Twine(spansOf(dot)) + "> " + name + "(" + first +
         ", [&](int k) { return " + walk.spanBytes("k") + "; });");
    heldFactors[dot] = name;
  });
}

std::string KernelEmitter::descriptorOf(gpu::WarpgroupDotOp dot, Value operand, int32_t axis,
                                        llvm::StringRef hint) {
  const std::string name = freshName(hint);
  line("const tk::u64 " + name + " = " + firstDescriptor(dot, operand, axis) + ";");
  return name;
}

/// The left factor of `dot`, in shared memory, at span `k` of block `m` of rows.
std::string KernelEmitter::leftFactor(gpu::WarpgroupDotOp dot, int64_t blocks) {
  const SharedOperand walk(cast<gpu::SharedType>(dot.getA().getType()), 1);
  std::string text =
      advanceOf(dot) + descriptorOf(dot, dot.getA(), 0, "a_at") + ", " + walk.spanBytes("k");
  if (blocks > 1)
    text += " + m * " + std::to_string(walk.outerBytes(kRows));
  return text + ")";
}

} // namespace tk::cuda
