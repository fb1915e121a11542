//===- TkToLinalg.cpp - kernels as functions of linalg on tensors ---------===//
//
// The CPU target uses MLIR's path from linalg to LLVM. This pass lowers kernels of the tk dialect
// to functions of linalg operations on tensors.
//
// 1. Turn a kernel into a function of its dimensions, its parameters, and one destination tensor
//    for each declared result. `tk.bind` stays, and gives the extents of all tensors. Elements of
//    type `bool` become bytes.
// 2. Analyse each tk.compute in order (BodyAnalysis), and emit loops over tiles with linalg
//    operations inside (LinalgEmitter).
// 3. Compute a returned result in its destination tensor. Compute it in its `inout` parameter if
//    the compute op is the only reader and reads only the element that it writes. All other results
//    get a new tensor.
// 4. Emit nothing for a result that is known to have no elements.
//
//   %y = tk.compute ["i", "j"] in (%M, %N) { x[i, j] + b[j] }
//     =>
//   %y = scf.forall (%t) .. { linalg.generic ins(%x[tile], %b[tile]) outs(%out[tile]) { addf } }
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/StrideAxes.h"
#include "passes/lowering/cpu/CpuPasses.h"
#include "passes/lowering/cpu/LinalgEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tk {
#define GEN_PASS_DEF_TKTOLINALG
#include "passes/lowering/cpu/CpuPasses.h.inc"
} // namespace tk

using namespace mlir;
using namespace tk;
using namespace tk::cpu;

namespace {
class KernelToLinalg {
public:
  KernelToLinalg(KernelOp kernel, const CpuMachine &machine)
      : kernel(kernel), machine(machine), b(kernel) {}
  LogicalResult run();

private:
  void createFunction();
  LogicalResult lowerCompute(ComputeOp compute);
  Value destinationOf(ComputeOp compute, unsigned result, Value &replaced);
  Value bindDestination(unsigned result, ValueRange extents);
  bool canReplace(ComputeOp compute, Value param);
  void lowerReturn(ReturnOp op);
  SmallVector<Value> extentsOf(Value tensor);

  KernelOp kernel;
  CpuMachine machine;
  PresentTerms present;
  OpBuilder b;
  func::FuncOp function;
  IRMapping values;
  SmallVector<Value> inouts;       ///< parameters that results replace
  SmallVector<Value> destinations; ///< arguments of the function, null once taken
};

struct TkToLinalg : ::tk::impl::TkToLinalgBase<TkToLinalg> {
  using TkToLinalgBase::TkToLinalgBase;
  void runOnOperation() override {
    CpuMachine machine = vectorBytes >= 64 ? CpuMachine::avx512() : CpuMachine::avx2();
    for (KernelOp kernel : llvm::make_early_inc_range(getOperation().getOps<KernelOp>())) {
      if (failed(KernelToLinalg(kernel, machine).run()))
        return signalPassFailure();
      kernel.erase();
    }
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

static Type loweredType(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return RankedTensorType::get(tensor.getShape(), storageType(tensor.getElementType()));
  if (auto integer = dyn_cast<IntegerType>(type); integer && integer.isUnsigned())
    return IntegerType::get(type.getContext(), integer.getWidth());
  return type;
}

void KernelToLinalg::createFunction() {
  SmallVector<Type> inputs, outputs;
  for (BlockArgument argument : kernel.getBody().getArguments())
    inputs.push_back(loweredType(argument.getType()));
  unsigned numParams = inputs.size(), numResults = kernel.getResultNames().size();
  for (Value result : kernel.getReturn().getResults())
    outputs.push_back(loweredType(result.getType()));
  inputs.append(outputs.begin(), outputs.begin() + numResults);
  function = func::FuncOp::create(b, kernel.getLoc(), kernel.getSymName(),
                                  b.getFunctionType(inputs, outputs));
  Block *body = function.addEntryBlock();
  values.map(kernel.getBody().getArguments(), body->getArguments().take_front(numParams));
  destinations.assign(body->getArguments().begin() + numParams, body->getArguments().end());
  auto setName = [&](unsigned i, StringRef attribute, Attribute name) {
    function.setArgAttr(i, attribute, name);
  };
  auto setStrides = [&](unsigned i, Value tensor) {
    if (!isa<RankedTensorType>(tensor.getType()))
      return;
    if (std::optional<SmallVector<int64_t>> axes = getStrideAxes(kernel, tensor))
      setName(i, "tk.strided", b.getDenseI64ArrayAttr(*axes));
  };
  unsigned numDims = kernel.getNumDims();
  for (auto [i, name] : llvm::enumerate(kernel.getDimNames()))
    setName(i, "tk.dim", name);
  for (unsigned i = numDims; i < numParams; ++i) {
    ParamAttr param = kernel.getParam(i - numDims);
    setName(i, "tk.param", b.getStringAttr(param.getName()));
    setStrides(i, kernel.getBody().getArgument(i));
    if (param.getInout()) {
      setName(i, "tk.inout", b.getUnitAttr());
      inouts.push_back(kernel.getBody().getArgument(i));
    }
  }
  for (auto [i, name] : llvm::enumerate(kernel.getResultNames())) {
    setName(numParams + i, "tk.result", name);
    setStrides(numParams + i, kernel.getReturn().getResults()[i]);
  }
  b.setInsertionPointToStart(body);
}

LogicalResult KernelToLinalg::run() {
  present = addPresentTerms(kernel, Conditions::OfElements);
  createFunction();
  for (Operation &op : kernel.getBody().front()) {
    if (isa<AssumeOp, DefaultOp>(op)) // checked and filled in by who launches the kernel
      continue;
    if (auto compute = dyn_cast<ComputeOp>(op)) {
      if (failed(lowerCompute(compute)))
        return failure();
    } else if (auto end = dyn_cast<ReturnOp>(op)) {
      lowerReturn(end);
    } else {
      b.clone(op, values);
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Where results are computed
//===----------------------------------------------------------------------===//

SmallVector<Value> KernelToLinalg::extentsOf(Value tensor) {
  SmallVector<Value> extents;
  if (auto compute = tensor.getDefiningOp<ComputeOp>()) {
    for (unsigned i : compute.getIndicesOf(cast<OpResult>(tensor).getResultNumber()))
      extents.push_back(values.lookup(compute.getExtents()[i]));
  } else if (BindOp bind = kernel.getBind(tensor)) {
    for (Value extent : bind.getExtents())
      extents.push_back(values.lookup(extent));
  }
  return extents;
}

/// Whether every read of `param` is by `compute`, of the very element that it is about to write.
bool KernelToLinalg::canReplace(ComputeOp compute, Value param) {
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

Value KernelToLinalg::bindDestination(unsigned result, ValueRange extents) {
  Value destination = std::exchange(destinations[result], Value());
  BindOp::create(b, kernel.getLoc(), destination, extents);
  return destination;
}

Value KernelToLinalg::destinationOf(ComputeOp compute, unsigned result, Value &replaced) {
  Value value = compute.getResult(result);
  for (auto [i, returned] : llvm::enumerate(kernel.getReturn().getResults())) {
    if (returned != value)
      continue;
    if (i < destinations.size())
      return bindDestination(i, extentsOf(value));
    Value param = inouts[i - destinations.size()];
    if (!canReplace(compute, param))
      continue;
    replaced = param;
    return values.lookup(param);
  }
  SmallVector<OpFoldResult> sizes;
  auto type = cast<RankedTensorType>(value.getType());
  for (auto [axis, extent] : llvm::enumerate(extentsOf(value)))
    sizes.push_back(type.isDynamicDim(axis) ? OpFoldResult(extent)
                                            : b.getIndexAttr(type.getDimSize(axis)));
  return tensor::EmptyOp::create(b, value.getLoc(), sizes, storageType(type.getElementType()));
}

LogicalResult KernelToLinalg::lowerCompute(ComputeOp compute) {
  FailureOr<BodyAnalysis> analysis = BodyAnalysis::create(compute, machine);
  if (failed(analysis))
    return failure();
  for (ArrayRef<unsigned> group : LinalgEmitter::groupResults(compute, *analysis)) {
    Value replaced;
    SmallVector<unsigned> wanted;
    SmallVector<Value> targets;
    for (unsigned result : group) {
      Value target = destinationOf(compute, result, replaced);
      values.map(compute.getResult(result), target);
      // Nothing is stored where it is known that there are no elements.
      if (llvm::is_contained(cast<RankedTensorType>(target.getType()).getShape(), 0))
        continue;
      wanted.push_back(result);
      targets.push_back(target);
    }
    if (wanted.empty())
      continue;
    SmallVector<Value> results = LinalgEmitter(b, values, compute, *analysis, present, machine)
                                     .emit(wanted, targets, replaced);
    for (auto [result, value] : llvm::zip(wanted, results))
      values.map(compute.getResult(result), value);
  }
  return success();
}

void KernelToLinalg::lowerReturn(ReturnOp op) {
  SmallVector<Value> results;
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    if (i < destinations.size() && destinations[i])
      bindDestination(i, extentsOf(result));
    results.push_back(values.lookup(result));
  }
  func::ReturnOp::create(b, op.getLoc(), results);
}
