//===- StrideAxes.cpp - how strided tensors lie in memory -----------------===//
//
// 1. A strided parameter's axes are permuted: of its type, its tk.bind, and all loads of it.
// 2. So are those of a strided result, and of what replaces an inout parameter. If its statement
// has
//    no other result, the statement's indices get that order, as if the source named them so.
//
//   tk.bind %x[%N, %C, %W]  ..  tk.load %x[%n, %c, %w]      the caller's axis 1 has stride 1
//     =>
//   tk.bind %x[%N, %W, %C]  ..  tk.load %x[%n, %w, %c]      tk.stride_axes = [array<i64: 0, 2, -1>]
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/StrideAxes.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace tk {

/// The parameter that a returned value replaces, or the value itself.
static Value placeOf(KernelOp kernel, Value tensor) {
  unsigned next = kernel.getResultNames().size();
  for (auto [i, param] : llvm::enumerate(kernel.getParamArguments()))
    if (kernel.getParam(i).getInout() && kernel.getReturn().getResults()[next++] == tensor)
      return param;
  return tensor;
}

static unsigned countTensorParams(KernelOp kernel) {
  return llvm::count_if(kernel.getParamArguments(),
                        [](BlockArgument param) { return isa<RankedTensorType>(param.getType()); });
}

std::optional<unsigned> getTensorNumber(KernelOp kernel, Value tensor) {
  tensor = placeOf(kernel, tensor);
  unsigned number = 0;
  for (BlockArgument param : kernel.getParamArguments()) {
    if (param == tensor)
      return number;
    number += isa<RankedTensorType>(param.getType());
  }
  ValueRange results = kernel.getReturn().getResults().take_front(kernel.getResultNames().size());
  for (auto [r, result] : llvm::enumerate(results))
    if (result == tensor)
      return number + r;
  return std::nullopt;
}

BlockArgument getTensorParam(KernelOp kernel, unsigned number) {
  for (BlockArgument param : kernel.getParamArguments())
    if (isa<RankedTensorType>(param.getType()) && number-- == 0)
      return param;
  return {};
}

bool isStridedResult(KernelOp kernel, unsigned number) {
  auto list = kernel->getAttrOfType<DenseI64ArrayAttr>(stridedResultsAttrName);
  return list && llvm::is_contained(list.asArrayRef(), int64_t(number));
}

std::optional<SmallVector<int64_t>> getStrideAxes(KernelOp kernel, Value tensor) {
  std::optional<unsigned> number = getTensorNumber(kernel, tensor);
  if (!number)
    return std::nullopt;
  auto param = dyn_cast<BlockArgument>(placeOf(kernel, tensor));
  const bool isStrided =
      param ? kernel.getParam(param.getArgNumber() - kernel.getNumDims()).getStrided()
            : isStridedResult(kernel, *number - countTensorParams(kernel));
  if (!isStrided)
    return std::nullopt;
  if (auto lists = kernel->getAttrOfType<ArrayAttr>(strideAxesAttrName))
    if (auto axes = cast<DenseI64ArrayAttr>(lists[*number]); !axes.empty())
      return SmallVector<int64_t>(axes.asArrayRef());
  SmallVector<int64_t> axes =
      llvm::to_vector(llvm::seq<int64_t>(0, cast<RankedTensorType>(tensor.getType()).getRank()));
  if (!axes.empty())
    axes.back() = unitStride;
  return axes;
}

SmallVector<int64_t> getCallerAxes(KernelOp kernel, unsigned number) {
  auto lists = kernel->getAttrOfType<ArrayAttr>(strideAxesAttrName);
  if (!lists)
    return {};
  SmallVector<int64_t> axes(cast<DenseI64ArrayAttr>(lists[number]).asArrayRef());
  // The last one has stride 1: it is the one that the list does not name.
  if (!axes.empty() && axes.back() == unitStride)
    for (int64_t axis = 0; axis < int64_t(axes.size()); ++axis)
      if (!llvm::is_contained(axes, axis))
        axes.back() = axis;
  return axes;
}

namespace {
/// Permutes the axes of one tensor: `order[n]` is the axis that becomes the n-th.
class Permutation {
public:
  explicit Permutation(ArrayRef<int64_t> order) : order(order) {}

  void permuteParam(KernelOp kernel, BlockArgument param) const;
  void permuteResult(OpResult result) const;

private:
  template <typename T> SmallVector<T> permuted(ArrayRef<T> list) const {
    SmallVector<T> result;
    for (int64_t axis : order)
      result.push_back(list[axis]);
    return result;
  }
  void permuteType(Value tensor) const {
    auto type = cast<RankedTensorType>(tensor.getType());
    tensor.setType(RankedTensorType::get(permuted(type.getShape()), type.getElementType()));
  }
  void permuteLoads(Value tensor) const;
  void permuteIndices(ComputeOp compute) const;

  ArrayRef<int64_t> order;
};
} // namespace

void Permutation::permuteLoads(Value tensor) const {
  for (Operation *user : tensor.getUsers())
    if (auto load = dyn_cast<LoadOp>(user); load && load.getTensor() == tensor)
      load.getIndicesMutable().assign(permuted<Value>(llvm::to_vector(load.getIndices())));
}

void Permutation::permuteParam(KernelOp kernel, BlockArgument param) const {
  BindOp bind = kernel.getBind(param);
  bind.getExtentsMutable().assign(permuted<Value>(llvm::to_vector(bind.getExtents())));
  permuteType(param);
  permuteLoads(param);
}

/// The indices of a statement whose only result is over all of them, in the result's order.
void Permutation::permuteIndices(ComputeOp compute) const {
  Block *block = compute.getBlock();
  compute.getExtentsMutable().assign(permuted<Value>(llvm::to_vector(compute.getExtents())));
  compute.setIndexNamesAttr(
      ArrayAttr::get(compute.getContext(), permuted(compute.getIndexNames().getValue())));
  SmallVector<Value> old(block->args_begin(), block->args_end());
  for (int64_t axis : order)
    old[axis].replaceAllUsesWith(block->addArgument(old[axis].getType(), old[axis].getLoc()));
  block->eraseArguments(0, old.size());
}

void Permutation::permuteResult(OpResult result) const {
  auto compute = cast<ComputeOp>(result.getOwner());
  permuteType(result);
  permuteLoads(result);
  if (compute.getNumResults() == 1 && !compute.getResultIndices()) {
    permuteIndices(compute);
    return;
  }
  Builder builder(compute.getContext());
  SmallVector<Attribute> lists;
  for (unsigned r = 0; r < compute.getNumResults(); ++r) {
    SmallVector<int64_t> positions;
    for (unsigned position : compute.getIndicesOf(r))
      positions.push_back(position);
    if (r == result.getResultNumber())
      positions = permuted<int64_t>(positions);
    lists.push_back(builder.getDenseI64ArrayAttr(positions));
  }
  compute.setResultIndicesAttr(builder.getArrayAttr(lists));
}

/// The caller's axes in memory's order, and the strides that they have.
static std::pair<SmallVector<int64_t>, SmallVector<int64_t>> ordered(int64_t rank,
                                                                     const AxisOrder &order) {
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (order.unitAxis >= 0) {
    axes.erase(axes.begin() + order.unitAxis);
    axes.push_back(order.unitAxis);
  }
  SmallVector<int64_t> strides = axes;
  if (order.unitAxis != noUnitAxis && rank > 0)
    strides.back() = unitStride;
  return {axes, strides};
}

/// Gives each returned value of several that are one statement's result a statement of its own, so
/// that the axes of each can be permuted.
static void separateReturned(KernelOp kernel) {
  llvm::DenseSet<Value> seen;
  OpBuilder builder(kernel.getReturn());
  for (OpOperand &operand : kernel.getReturn()->getOpOperands()) {
    auto result = dyn_cast<OpResult>(operand.get());
    if (seen.insert(operand.get()).second || !result)
      continue;
    Operation *copy = builder.clone(*result.getOwner());
    operand.set(copy->getResult(result.getResultNumber()));
  }
}

void orderStridedAxes(KernelOp kernel, ArrayRef<AxisOrder> orders, bool keepsStrides) {
  separateReturned(kernel);
  Builder builder(kernel.getContext());
  const unsigned numDims = kernel.getNumDims(), numParams = countTensorParams(kernel);
  SmallVector<Attribute> params(kernel.getParams().getValue()), lists;
  SmallVector<int64_t> stridedResults;
  SmallVector<Value> tensors;
  for (BlockArgument param : kernel.getParamArguments())
    if (isa<RankedTensorType>(param.getType()))
      tensors.push_back(param);
  llvm::append_range(tensors,
                     kernel.getReturn().getResults().take_front(kernel.getResultNames().size()));
  unsigned returned = kernel.getResultNames().size();
  for (auto [number, tensor] : llvm::enumerate(tensors)) {
    auto param = dyn_cast<BlockArgument>(tensor);
    ParamAttr declared = param ? kernel.getParam(param.getArgNumber() - numDims) : ParamAttr();
    auto replacement = declared && declared.getInout()
                           ? dyn_cast<OpResult>(kernel.getReturn().getResults()[returned++])
                           : OpResult();
    lists.push_back(builder.getDenseI64ArrayAttr({}));
    if (declared ? !declared.getStrided() : !isStridedResult(kernel, number - numParams))
      continue;
    const AxisOrder order = number < orders.size() ? orders[number] : AxisOrder();
    auto [axes, strides] = ordered(cast<RankedTensorType>(tensor.getType()).getRank(), order);
    lists.back() = builder.getDenseI64ArrayAttr(strides);
    const Permutation permutation(axes);
    if (order.unitAxis >= 0) {
      param ? permutation.permuteParam(kernel, param)
            : permutation.permuteResult(cast<OpResult>(tensor));
      if (replacement)
        permutation.permuteResult(replacement);
    }
    const bool staysStrided = keepsStrides || !order.isDense;
    if (param)
      params[param.getArgNumber() - numDims] = ParamAttr::get(
          kernel.getContext(), declared.getName(), staysStrided, declared.getInout());
    else if (staysStrided)
      stridedResults.push_back(number - numParams);
  }
  kernel.setParamsAttr(builder.getArrayAttr(params));
  kernel->removeAttr(stridedResultsAttrName);
  if (!stridedResults.empty())
    kernel->setAttr(stridedResultsAttrName, builder.getDenseI64ArrayAttr(stridedResults));
  kernel->setAttr(strideAxesAttrName, builder.getArrayAttr(lists));
}

} // namespace tk
