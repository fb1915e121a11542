//===- EmitPrivate.cpp - what threads keep in shared memory ---------------===//
#include "compiler/codegen/cuda/KernelEmitter.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tk::cuda {

/// The registers of a tile, or of a part of it, by vectors; the only vector is no loop.
static RegisterIndex vectorsOf(Type tile, unsigned vector) {
  const unsigned bits = gpu::getLayout(tile).getRegisterBits().size();
  return vector == 1u << bits ? RegisterIndex(0) : RegisterIndex("r", bits, llvm::Log2_32(vector));
}

LogicalResult KernelEmitter::emitAllocPrivate(gpu::AllocPrivateOp alloc) {
  const std::string name = nameFor(alloc.getResult());
  const std::string type = elementTypeName(alloc.getType().getTile());
  line(type + " *const " + name + " = reinterpret_cast<" + type + " *>(shared + " +
       llvm::Twine(sharedOffsets[alloc]) + ") + tk::thread_index() * " +
       llvm::Twine(alloc.getType().getVector()) + ";");
  names[alloc.getResult()] = name;
  return success();
}

std::string KernelEmitter::privateAt(Value memory, Value stage, const RegisterIndex &reg) {
  auto type = cast<gpu::PrivateType>(memory.getType());
  const unsigned count = gpu::getLayout(type.getTile()).getNumRegisters();
  const std::string first =
      type.getStages() == 1 ? "" : scalar(stage) + " * " + std::to_string(count) + " + ";
  return "&" + names[memory] + "[(" + first + reg.str() + ") * " +
         std::to_string(func.getBlockWarps() * 32) + "]";
}

LogicalResult KernelEmitter::emitCopyPrivate(gpu::CopyPrivateOp copy) {
  gpu::PrivateType type = copy.getTarget().getType();
  RankedTensorType tile = copy.getCopiedType();
  auto layout = gpu::getLayout(tile);
  Address address{copy.getIndices(),   copy.getStrides(),  copy.getMasks(),
                  copy.getIndexDims(), copy.getMaskDims(), layout};
  const unsigned count = layout.getNumRegisters(), vector = type.getVector();
  const RegisterIndex reg = vectorsOf(tile, vector);
  auto offset = offsetOf(copy, address, reg);
  auto mask = maskOf(copy, address, reg);
  FailureOr<RegisterIndex> at = reg;
  if (auto offsets = copy.getOffsets())
    at = registerOfPart(tile, type.getTile(), *offsets, reg);
  if (mlir::failed(offset) || mlir::failed(mask) || mlir::failed(at))
    return failure();
  line((count == vector ? "" : loopHeader(count, vector) + " ") + "tk::copy_async<" +
       llvm::Twine(vector * elementBytes(type.getTile())) + ">(" +
       privateAt(copy.getTarget(), copy.getStage(), *at) + ", &" + names[copy.getBuffer()] + "[" +
       *offset + "]" + (mask->empty() ? "" : ", " + *mask) + ");");
  return success();
}

LogicalResult KernelEmitter::emitPrivateLoad(gpu::PrivateLoadOp load) {
  gpu::PrivateType type = load.getSource().getType();
  const unsigned count = registersOf(load.getResult()), vector = type.getVector();
  const RegisterIndex reg = vectorsOf(load.getType(), vector);
  FailureOr<RegisterIndex> at = reg;
  if (auto offsets = load.getOffsets())
    at = registerOfPart(cast<RankedTensorType>(load.getType()), type.getTile(), *offsets, reg);
  if (mlir::failed(at))
    return failure();
  const std::string name = declare(load.getResult());
  line((count == vector ? "" : loopHeader(count, vector) + " ") + "tk::load<" +
       llvm::Twine(vector) + ">(&" + name + "[" + reg.str() + "], " +
       privateAt(load.getSource(), load.getStage(), *at) + ");");
  return success();
}

LogicalResult KernelEmitter::emitJoin(gpu::JoinOp join) {
  auto whole = cast<RankedTensorType>(join.getResult().getType());
  const std::string name = declare(join.getResult());
  const int64_t axis = join.getAxis();
  llvm::SmallVector<int64_t> offsets(whole.getRank());
  for (Value value : join.getParts()) {
    auto part = cast<RankedTensorType>(value.getType());
    const RegisterIndex reg("r", gpu::getLayout(part).getRegisterBits().size());
    auto at = registerOfPart(part, whole, offsets, reg);
    if (mlir::failed(at))
      return unsupported(join, "expected parts that lie in registers of the whole, got ") << part;
    line(loopHeader(registersOf(value)) + " " + name + "[" + at->str() +
         "] = " + element(value, reg) + ";");
    offsets[axis] += part.getDimSize(axis);
  }
  return success();
}

LogicalResult KernelEmitter::emitPrivateStore(gpu::PrivateStoreOp store) {
  gpu::PrivateType type = store.getTarget().getType();
  Value value = store.getValue();
  const unsigned count = registersOf(value), vector = type.getVector();
  const RegisterIndex reg = vectorsOf(value.getType(), vector);
  FailureOr<RegisterIndex> at = reg;
  if (auto offsets = store.getOffsets())
    at = registerOfPart(cast<RankedTensorType>(value.getType()), type.getTile(), *offsets, reg);
  if (mlir::failed(at))
    return failure();
  const std::string name = materialize(value);
  line((count == vector ? "" : loopHeader(count, vector) + " ") + "tk::store<" +
       llvm::Twine(vector) + ">(" + privateAt(store.getTarget(), store.getStage(), *at) + ", &" +
       name + "[" + reg.str() + "]);");
  return success();
}

} // namespace tk::cuda
