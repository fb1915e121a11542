//===- BlockProgram.cpp - the function and its arguments -------------------===//
#include "passes/tiling/BlockProgram.h"

#include "dialects/tkgpu/TkGpuPlan.h"
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/LeastSizes.h"
#include "passes/analysis/ProductFactors.h"
#include "passes/analysis/ScalarCases.h"
#include "passes/analysis/StrideAxes.h"
#include "passes/numerics/WidenIndices.h"
#include "passes/plan/StatementShape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tk;

BlockProgram::BlockProgram(KernelOp kernel, ComputeOp compute, gpu::ScheduleAttr schedule,
                           const PresentTerms &present)
    : kernel(kernel), compute(compute), schedule(schedule), present(present),
      builder(kernel.getContext()), loc(compute.getLoc()) {}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// The number that a size that is known, converted to floats, becomes: what is divided by a power
/// of two, like a row's sum by its length, then takes one product.
static TypedAttr convertedSize(KernelOp kernel, Value value) {
  auto conversion = value.getDefiningOp<arith::SIToFPOp>();
  auto cast = conversion ? conversion.getIn().getDefiningOp<arith::IndexCastOp>() : nullptr;
  if (!cast || !cast.getIn().getType().isIndex())
    return {};
  std::optional<int64_t> exact = getSizeFact(kernel, cast.getIn()).exact;
  if (!exact || !llvm::isIntN(cast.getType().getIntOrFloatBitWidth(), *exact))
    return {};
  auto type = llvm::cast<FloatType>(value.getType());
  APFloat number(type.getFloatSemantics());
  number.convertFromAPInt(APInt(64, *exact, true), true, APFloat::rmNearestTiesToEven);
  return FloatAttr::get(type, number);
}

/// Computes a scalar of the kernel at the function's beginning.
Value BlockProgram::computeInBlock(Operation *op) {
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, kernelValue(operand));
  return at(0).clone(*op, mapping)->getResult(0);
}

/// What a value of the kernel is inside the function: an argument, or the constant itself.
Value BlockProgram::kernelValue(Value value) {
  if (auto known = argumentOf.find(value); known != argumentOf.end())
    return known->second;
  Attribute literal;
  if (matchPattern(value, m_Constant(&literal)))
    return argumentOf[value] = constant(cast<TypedAttr>(literal));
  Type type = value.getType();
  if (type.isIndex())
    if (std::optional<int64_t> exact = getSizeFact(kernel, value).exact)
      return argumentOf[value] = constant(builder.getIndexAttr(*exact));
  if (TypedAttr size = convertedSize(kernel, value))
    return argumentOf[value] = constant(size);
  if (isa<FloatType>(type) && value.getDefiningOp() && hostSteps.areMany(value))
    return argumentOf[value] = computeInBlock(value.getDefiningOp());
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    type = gpu::BufferType::get(type.getContext(), tensor.getElementType());
  argumentNames.push_back(argumentName(value));
  arguments.push_back(value);
  return argumentOf[value] = func.getBlock()->addArgument(type, value.getLoc());
}

/// The parameter that a returned value replaces, or the value itself.
static Value placeOf(KernelOp kernel, Value tensor) {
  unsigned next = kernel.getResultNames().size();
  for (auto [i, param] : llvm::enumerate(kernel.getParamArguments()))
    if (kernel.getParam(i).getInout() && kernel.getReturn().getResults()[next++] == tensor)
      return param;
  return tensor;
}

/// The strides of a tensor in elements: row-major, or as given for a `strided` parameter.
SmallVector<Value> BlockProgram::strides(Value tensor, ArrayRef<Value> extents) {
  if (auto known = stridesOf.find(tensor); known != stridesOf.end())
    return known->second;
  SmallVector<Value> result(extents.size());
  std::optional<unsigned> number = getTensorNumber(kernel, tensor);
  std::optional<SmallVector<int64_t>> axes = getStrideAxes(kernel, tensor);
  tensor = placeOf(kernel, tensor);
  Value stride;
  for (unsigned d = extents.size(); d-- > 0;) {
    if (axes && (*axes)[d] != unitStride) {
      OpBuilder host(compute);
      stride = kernelValue(
          gpu::StrideOp::create(host, compute.getLoc(), host.getIndexType(), *number, (*axes)[d]));
    } else if (!stride) {
      stride = indexConstant(1);
    } else {
      Value extent = kernelValue(extents[d + 1]);
      stride = arith::MulIOp::create(at(0), loc, extent, stride);
    }
    result[d] = stride;
  }
  return stridesOf[tensor] = result;
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

/// Are all offsets in all tensors known to fit 32 bits?
static bool fits32(KernelOp kernel, ArrayRef<Value> tensors) {
  if (kernel->getParentOfType<ModuleOp>()->hasAttr(smallTensorsAttrName))
    return true;
  for (Value tensor : tensors) {
    if (!isa<RankedTensorType>(tensor.getType()))
      continue;
    int64_t count = 1;
    for (Value extent : getExtents(kernel, tensor)) {
      SizeFact fact = getSizeFact(kernel, extent);
      if (!fact.upper || *fact.upper >= (int64_t(1) << 31))
        return false;
      count *= std::max<int64_t>(*fact.upper, 1);
      if (count >= (int64_t(1) << 31))
        return false;
    }
    if (getStrideAxes(kernel, tensor))
      return false;
  }
  return true;
}

/// What is known of the least sizes of the kernel, and of its integers, is known of the function's
/// arguments.
static void passLeastSizes(KernelOp kernel, gpu::FuncOp func, ArrayRef<Value> arguments) {
  auto known = kernel->getAttrOfType<DenseI64ArrayAttr>(leastSizesAttrName);
  SmallVector<int64_t> least;
  for (Value value : arguments) {
    auto size = dyn_cast<BlockArgument>(value);
    bool isDim = size && size.getArgNumber() < kernel.getNumDims();
    if (isDim)
      least.push_back(known ? known[size.getArgNumber()] : 0);
    else
      least.push_back(value.getType().isIntOrIndex() ? assumedIntegerOf(value).least.value_or(0)
                                                     : 0);
  }
  if (llvm::any_of(least, [](int64_t size) { return size != 0; }))
    func->setAttr(leastSizesAttrName, Builder(kernel.getContext()).getDenseI64ArrayAttr(least));
}

FailureOr<gpu::FuncOp> BlockProgram::build(OpBuilder &moduleBuilder, StringRef name) {
  func = gpu::FuncOp::create(moduleBuilder, loc, moduleBuilder.getStringAttr(name),
                             moduleBuilder.getArrayAttr({}), ArrayAttr(), schedule.getWarps(), 64,
                             IntegerAttr(), IntegerAttr());
  func.getBody().emplaceBlock();
  scopes.emplace_back().block = func.getBlock();
  gpu::KernelPlan plan = gpu::getPlan(compute);
  plan.tiles = schedule;
  gpu::setPlan(func, plan);
  unsigned next = 0;
  compute.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    unsigned count = isa<tk::ScanOp>(op) ? 1 : 0;
    if (auto reduction = dyn_cast<tk::ReduceOp>(op))
      count = reduction.getNumIndices();
    if (count != 0)
      reduceTiles[op] = SmallVector<int64_t>(schedule.getReduce().slice(next, count));
    next += count;
  });
  addParallelAxes();
  if (failed(addStores()))
    return failure();
  restoreScans();
  gpu::ReturnOp::create(at(0), loc);
  func.setArgNamesAttr(builder.getStrArrayAttr(llvm::to_vector_of<StringRef>(argumentNames)));
  SmallVector<Attribute> facts;
  for (BlockArgument arg : func.getBlock()->getArguments()) {
    SizeFact fact;
    if (arg.getType().isIntOrIndex())
      fact = getSizeFact(kernel, arguments[arg.getArgNumber()]);
    facts.push_back(FactAttr::get(kernel.getContext(), fact.divisor, fact.upper.value_or(-1)));
  }
  func.setArgFactsAttr(builder.getArrayAttr(facts));
  passLeastSizes(kernel, func, ArrayRef<Value>(arguments).take_front(facts.size()));
  SmallVector<Value> tensors(arguments);
  llvm::append_range(tensors, compute.getResults());
  func.setIndexBits(fits32(kernel, tensors) && fitIndices(kernel, compute) ? 32 : 64);
  return func;
}
