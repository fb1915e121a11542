//===- KernelLayout.cpp - where a kernel's tensors and scalars are --------===//
#include "passes/lowering/cpu/Frame.h"

using namespace mlir;
using namespace tk;
using namespace tk::cpu;

Type tk::cpu::storageType(Type element) {
  if (element.isF32() || element.isF64() || element.isF16())
    return element;
  // Bytes and bit patterns: bool is one byte, bf16 two, f8 one.
  unsigned bits = std::max(8u, element.getIntOrFloatBitWidth());
  return IntegerType::get(element.getContext(), bits);
}

KernelLayout::KernelLayout(KernelOp kernel) : kernel(kernel) {
  unsigned ints = 0, floats = 0, tensors = 0;
  for (BlockArgument dim : kernel.getDimArguments())
    intPositions[dim] = ints++;
  for (auto [i, param] : llvm::enumerate(kernel.getParamArguments())) {
    auto type = dyn_cast<RankedTensorType>(param.getType());
    if (!type)
      continue;
    TensorPlace place{TensorPlace::Kind::Argument, tensors++};
    if (kernel.getParam(i).getStrided()) {
      place.strideBase = ints;
      ints += type.getRank();
    }
    places[param] = place;
  }
  for (BlockArgument param : kernel.getParamArguments()) {
    if (isa<RankedTensorType>(param.getType()))
      continue;
    if (isa<FloatType>(param.getType()))
      floatPositions[param] = floats++;
    else
      intPositions[param] = ints++;
  }
  placeResults();
}

/// Every read of `param` is by `compute`, of the very element that it is about to write.
bool KernelLayout::canWriteInPlace(ComputeOp compute, Value param) const {
  for (Operation *user : param.getUsers()) {
    if (isa<BindOp>(user))
      continue;
    auto load = dyn_cast<LoadOp>(user);
    if (!load || load->getParentOp() != compute || load.getPad() ||
        !llvm::equal(load.getIndices(), compute.getBlock()->getArguments()))
      return false;
  }
  return compute.getNumResults() == 1 && !compute.getResultIndices();
}

void KernelLayout::placeResults() {
  unsigned numTensorParams = llvm::count_if(kernel.getParamArguments(), [](BlockArgument arg) {
    return isa<RankedTensorType>(arg.getType());
  });
  unsigned numResults = kernel.getResultNames().size();
  SmallVector<Value> inout;
  for (auto [i, param] : llvm::enumerate(kernel.getParamArguments()))
    if (kernel.getParam(i).getInout())
      inout.push_back(param);
  for (auto [i, value] : llvm::enumerate(kernel.getReturn().getResults())) {
    auto compute = value.getDefiningOp<ComputeOp>();
    bool isInout = i >= numResults;
    unsigned number =
        isInout ? places.lookup(inout[i - numResults]).index : numTensorParams + unsigned(i);
    int strideBase = isInout ? places.lookup(inout[i - numResults]).strideBase : -1;
    bool direct = compute && !places.contains(value) &&
                  (!isInout || canWriteInPlace(compute, inout[i - numResults]));
    if (direct)
      places[value] = {TensorPlace::Kind::Argument, number, strideBase};
    else if (!isInout || value != inout[i - numResults])
      copies.push_back({value, number});
  }
  for (ComputeOp compute : kernel.getBody().front().getOps<ComputeOp>())
    for (Value result : compute.getResults())
      if (!places.contains(result)) {
        places[result] = {TensorPlace::Kind::Scratch, unsigned(scratch.size())};
        scratch.push_back(result);
      }
}

SmallVector<Value> KernelLayout::extentsOf(Value tensor) const {
  if (auto compute = tensor.getDefiningOp<ComputeOp>()) {
    SmallVector<Value> extents;
    for (unsigned i : compute.getIndicesOf(cast<OpResult>(tensor).getResultNumber()))
      extents.push_back(compute.getExtents()[i]);
    return extents;
  }
  KernelOp op = kernel;
  BindOp bind = op.getBind(tensor);
  return bind ? SmallVector<Value>(bind.getExtents()) : SmallVector<Value>();
}
