//===- EmitSort.cpp - rows sorted in shared memory ------------------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"
#include "dialects/tkgpu/TkGpuExchange.h"
#include "dialects/tkgpu/TkGpuSortOps.h"

using namespace mlir;

namespace tk::cuda {

LogicalResult KernelEmitter::emitSort(gpu::SortOp sort) {
  Value source = sort.getSource(), result = sort.getResult();
  auto tile = cast<RankedTensorType>(result.getType());
  const int64_t threads = func.getBlockWarps() * int64_t(32), own = tile.getNumElements() / threads;
  if (own < 1)
    return unsupported(sort, "expected an element for each thread, got ") << tile;
  const std::string row = freshName("row"), memory = scratch(gpu::sortBytes(sort));
  const std::string type = elementTypeName(tile);
  line(type + " *const " + row + " = reinterpret_cast<" + type + " *>(" + memory + ");");
  auto stored = gpu::SharedType::get(sort.getContext(), tile.getShape(), tile.getElementType(), {},
                                     0, 1, 1, 1);
  auto addressOf = [&](Value value, const RegisterIndex &reg) {
    return sharedAddress(stored, layoutOf(value), {}).at(reg);
  };
  line("tk::barrier();");
  const RegisterIndex from("r", registerBits(source));
  const std::string elements = materialize(source), owner = ownerCondition(layoutOf(source));
  line(loopHeader(registersOf(source), 1) + " " + (owner.empty() ? "" : "if (" + owner + ") ") +
       "tk::put(&" + row + "[" + addressOf(source, from) + "], " + elements + "[" + from.str() +
       "]);");
  line("tk::sort_block<" + llvm::Twine(own) + ", " + llvm::Twine(threads) + ">(" + row + ");");
  const RegisterIndex to("r", registerBits(result));
  const std::string array = declare(result);
  line(loopHeader(registersOf(result), 1) + " " + array + "[" + to.str() + "] = tk::get(&" + row +
       "[tk::sorted_place<" + llvm::Twine(own) + ">(" + addressOf(result, to) + ")]);");
  return success();
}

} // namespace tk::cuda
