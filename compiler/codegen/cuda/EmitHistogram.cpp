//===- EmitHistogram.cpp - sums by a key in shared memory ------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"
#include "dialects/tkgpu/TkGpuExchange.h"
#include "dialects/tkgpu/TkGpuHistogramOps.h"

using namespace mlir;

namespace tk::cuda {

LogicalResult KernelEmitter::emitHistogram(gpu::HistogramOp histogram) {
  Value bins = histogram.getBins(), weights = histogram.getWeights(),
        result = histogram.getResult();
  const gpu::LayoutAttr layout = layoutOf(bins);
  if (layoutOf(weights) != layout)
    return unsupported(histogram, "expected weights with the layout of the bins, got ")
           << weights.getType();
  auto tile = cast<RankedTensorType>(result.getType());
  const std::string sums = freshName("sums"),
                    memory = scratch(gpu::histogramBytes(histogram, func));
  const std::string type = elementTypeName(tile);
  line(type + " *const " + sums + " = reinterpret_cast<" + type + " *>(" + memory + ");");
  const std::string owner = ownerCondition(layout);
  line("tk::add_by_key<" + llvm::Twine(tile.getNumElements()) + ", " +
       llvm::Twine(func.getBlockWarps()) + ">(" + sums + ", " + materialize(bins) + ", " +
       materialize(weights) + ", " + (owner.empty() ? "true" : owner) + ");");
  auto stored = gpu::SharedType::get(histogram.getContext(), tile.getShape(), tile.getElementType(),
                                     {}, 0, 1, 1, 1);
  const RegisterIndex reg("r", registerBits(result));
  const std::string at = sharedAddress(stored, layoutOf(result), {}).at(reg);
  const std::string array = declare(result);
  line(loopHeader(registersOf(result), 1) + " " + array + "[" + reg.str() + "] = tk::get(&" + sums +
       "[" + at + "]);");
  return success();
}

} // namespace tk::cuda
