//===- TkGpuStructure.cpp - functions and their launches ------------------===//
#include "dialects/tkgpu/TkGpuPlan.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tk::gpu;

LogicalResult FuncOp::verify() {
  Block &block = getBody().front();
  if (block.getNumArguments() != getArgNames().size())
    return emitOpError("expected ")
           << getArgNames().size() << " arguments, got " << block.getNumArguments();
  if (std::optional<ArrayAttr> facts = getArgFacts()) {
    if (facts->size() != block.getNumArguments())
      return emitOpError("expected a fact for each of the ")
             << block.getNumArguments() << " arguments, got " << facts->size();
    for (Attribute fact : *facts)
      if (!isa<tk::FactAttr>(fact))
        return emitOpError("expected facts to hold #tk.fact attributes, got ") << fact;
  }
  if (getIndexBits() != 32 && getIndexBits() != 64)
    return emitOpError("expected index_bits of 32 or 64, got ") << getIndexBits();
  if (getNumWarps() > 32 * getCluster())
    return emitOpError("expected at most 32 warps in each of ")
           << getCluster() << " blocks, got " << getNumWarps();
  if (getSpareWarps() >= getNumWarps() || (getSpareWarps() > 0 && isSpread()))
    return emitOpError("expected spare warps to be some of ")
           << getNumWarps() << " in one block, got " << getSpareWarps();
  if (getTeams() < 1 || (getTeams() > 1 && getNumWarps() != 4))
    return emitOpError("expected teams of one warpgroup, got ")
           << getTeams() << " of " << getNumWarps() << " warps";
  if (block.empty() || !isa<ReturnOp>(block.back()))
    return emitOpError("expected the body to end in tkgpu.return");
  return verifyPlan(*this);
}

tk::FactAttr FuncOp::getArgFact(unsigned i) {
  if (std::optional<ArrayAttr> facts = getArgFacts())
    return cast<tk::FactAttr>((*facts)[i]);
  return tk::FactAttr::get(getContext(), 1, -1);
}

LogicalResult LaunchOp::verify() {
  size_t extents = 0;
  for (Type type : getResultTypes())
    extents += cast<RankedTensorType>(type).getRank();
  if (getShapes().size() != extents)
    return emitOpError("expected ")
           << extents << " extents for the results' axes, got " << getShapes().size();
  auto func = SymbolTable::lookupNearestSymbolFrom<FuncOp>(*this, getKernelAttr());
  if (!func)
    return emitOpError("expected a tkgpu.func named ") << getKernel() << ", got none";
  Block *block = func.getBlock();
  SmallVector<Type> given(getArgs().getTypes());
  llvm::append_range(given, getResultTypes());
  if (block->getNumArguments() != given.size())
    return emitOpError("expected ")
           << block->getNumArguments() << " arguments and results, got " << given.size();
  for (auto [i, type] : llvm::enumerate(given)) {
    Type expected = block->getArgument(i).getType();
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      type = BufferType::get(getContext(), tensor.getElementType());
    if (type != expected)
      return emitOpError("expected argument ")
             << i << " (" << func.getArgName(i) << ") of type " << expected << ", got " << type;
  }
  return success();
}
