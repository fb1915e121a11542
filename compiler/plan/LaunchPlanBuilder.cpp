//===- LaunchPlanBuilder.cpp - from launches in IR to a launch plan -------===//
#include "compiler/plan/LaunchPlanBuilder.h"

#include "compiler/plan/HostExpr.h"
#include "compiler/plan/KernelSignature.h"
#include "dialects/tkgpu/TkGpuCountOps.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tk {
namespace {

class PlanBuilder {
public:
  PlanBuilder(KernelOp kernel, llvm::function_ref<FunctionShape(StringRef)> shapeOf)
      : kernel(kernel), shapeOf(shapeOf), exprs(kernel) {}

  std::optional<LaunchPlan> run() {
    numberParameters();
    numberResults();
    for (gpu::LaunchOp launch : kernel.getBody().front().getOps<gpu::LaunchOp>())
      if (!addLaunch(launch))
        return std::nullopt;
    return std::move(plan);
  }

private:
  struct Address {
    bool scratch = false;
    uint32_t index = 0;
  };

  void numberParameters() {
    uint32_t tensor = 0, scalar = 0;
    for (Value param : kernel.getParamArguments()) {
      if (isa<RankedTensorType>(param.getType()))
        addresses[param] = {false, tensor++};
      else
        scalars[param] = scalar++;
    }
    numTensorParams = tensor;
  }

  // Returned values are written straight to where the caller wants them: results come after the
  // tensor parameters, an inout parameter is overwritten where it is.
  void numberResults() {
    ReturnOp ret = kernel.getReturn();
    unsigned results = kernel.getResultNames().size();
    for (unsigned r = 0; r < results; ++r)
      addresses[ret.getResults()[r]] = {false, numTensorParams + r};
    unsigned next = results;
    for (auto [i, param] : llvm::enumerate(kernel.getParamArguments()))
      if (kernel.getParam(i).getInout())
        addresses[ret.getResults()[next++]] = addresses[param];
  }

  bool addLaunch(gpu::LaunchOp op) {
    Launch launch;
    launch.span = sourceSpanOf(op.getLoc());
    FunctionShape shape = shapeOf(op.getKernel());
    launch.symbol = shape.symbol;
    launch.block[0] = shape.threads;
    launch.cluster[0] = shape.cluster;
    launch.resident = op.getResident();
    launch.overlapped = shape.waits;
    launch.shared_bytes = DimExpr(int64_t{shape.sharedBytes});
    Value grid[] = {op.getGridX(), op.getGridY(), op.getGridZ()};
    for (unsigned axis = 0; axis < 3; ++axis) {
      std::optional<Expr> expr = exprs.build(grid[axis]);
      if (!expr)
        return false;
      launch.grid[axis] = std::move(*expr);
    }
    if (!addScratch(op))
      return false;
    for (Value value : op.getArgs())
      if (!addArg(launch, op, value, shape))
        return false;
    for (Value value : op.getResults())
      launch.args.push_back(addressArg(value));
    plan.launches.push_back(std::move(launch));
    return true;
  }

  // A result that is not returned lives in scratch memory.
  bool addScratch(gpu::LaunchOp op) {
    unsigned axis = 0;
    for (Value result : op.getResults()) {
      auto type = cast<RankedTensorType>(result.getType());
      Expr bytes(static_cast<int64_t>(size_of(dtypeOf(type).value_or(DType::f64))));
      for (int64_t d = 0; d < type.getRank(); ++d) {
        std::optional<Expr> extent = exprs.build(op.getShapes()[axis++]);
        if (!extent)
          return false;
        bytes = bytes * *extent;
      }
      if (addresses.contains(result))
        continue;
      addresses[result] = {true, static_cast<uint32_t>(plan.scratch.size())};
      plan.scratch.push_back({bytes, false, op.getKernel().str()});
    }
    return true;
  }

  Arg addressArg(Value value) {
    Address address = addresses.lookup(value);
    Arg arg;
    arg.kind = address.scratch ? ArgKind::scratch : ArgKind::tensor;
    arg.index = address.index;
    return arg;
  }

  bool addArg(Launch &launch, gpu::LaunchOp op, Value value, const FunctionShape &shape) {
    auto counters = value.getDefiningOp<gpu::CountersOp>();
    if ((counters || value.getDefiningOp<gpu::CounterOp>()) && !addresses.contains(value)) {
      std::optional<Expr> count = counters ? exprs.build(counters.getCount()) : Expr(int64_t{1});
      if (!count)
        return false;
      addresses[value] = {true, static_cast<uint32_t>(plan.scratch.size())};
      plan.scratch.push_back({Expr(int64_t{sizeof(int32_t)}) * *count, false, "counter", true});
    }
    if (addresses.contains(value)) {
      launch.args.push_back(addressArg(value));
      return true;
    }
    if (auto map = value.getDefiningOp<gpu::TensorMapOp>())
      return addTensorMap(launch, map, map.getTensorFor(op));
    Arg arg;
    bool index = value.getType().isIndex();
    arg.dtype = index ? (shape.indexBits == 32 ? DType::i32 : DType::i64)
                      : dtypeOf(value.getType()).value_or(DType::i64);
    if (auto stride = value.getDefiningOp<gpu::StrideOp>()) {
      arg.kind = ArgKind::stride;
      arg.index = static_cast<uint32_t>(stride.getTensor());
      arg.axis = static_cast<uint32_t>(stride.getAxis());
    } else if (auto it = scalars.find(value); it != scalars.end()) {
      arg.kind = ArgKind::scalar;
      arg.index = it->second;
    } else {
      std::optional<Expr> expr = exprs.build(value);
      if (!expr)
        return false;
      arg.kind = ArgKind::integer;
      arg.value = std::move(*expr);
    }
    launch.args.push_back(std::move(arg));
    return true;
  }

  /// The runtime counts the axes of a map from the contiguous one outwards.
  bool addTensorMap(Launch &launch, gpu::TensorMapOp op, Value tensor) {
    TensorMap map;
    Address address = addresses.lookup(tensor);
    map.of_scratch = address.scratch;
    map.index = address.index;
    map.dtype =
        dtypeOf(cast<RankedTensorType>(tensor.getType()).getElementType()).value_or(DType::f64);
    for (unsigned axis = op.getBox().size(); axis-- > 0;) {
      std::optional<Expr> extent = exprs.build(op.getExtents()[axis]);
      if (!extent)
        return false;
      map.extents.push_back(std::move(*extent));
      map.box.push_back(static_cast<uint32_t>(op.getBox()[axis]));
      if (axis + 1 == op.getBox().size())
        continue;
      auto own = op.getStrides()[axis].getDefiningOp<gpu::StrideOp>();
      bool isOwn = own && !address.scratch && own.getTensor() == address.index;
      std::optional<Expr> stride = isOwn ? Expr(int64_t{0}) : exprs.build(op.getStrides()[axis]);
      if (!stride)
        return false;
      map.strides.push_back(std::move(*stride));
      map.stride_axes.push_back(isOwn ? static_cast<int32_t>(own.getAxis()) : -1);
    }
    map.swizzle =
        op.getSwizzle() == 0 ? 0 : static_cast<uint8_t>(llvm::Log2_64(op.getSwizzle()) - 4);
    map.rounds_to_tf32 = op.getTf32();
    map.before = static_cast<uint32_t>(op.getBefore());
    for (unsigned axis = op.getPlaces().size(); axis-- > 0;) {
      std::optional<Expr> count = exprs.build(op.getPlaces()[axis]);
      if (!count)
        return false;
      map.places.push_back({static_cast<int32_t>((*op.getLower())[axis]),
                            static_cast<uint32_t>((*op.getSteps())[axis]), std::move(*count)});
    }
    Arg arg;
    arg.kind = ArgKind::tensor_map;
    arg.index = static_cast<uint32_t>(plan.tensor_maps.size());
    plan.tensor_maps.push_back(std::move(map));
    launch.args.push_back(std::move(arg));
    return true;
  }

  KernelOp kernel;
  llvm::function_ref<FunctionShape(StringRef)> shapeOf;
  HostExprBuilder exprs;
  LaunchPlan plan;
  llvm::DenseMap<Value, Address> addresses;
  llvm::DenseMap<Value, uint32_t> scalars;
  uint32_t numTensorParams = 0;
};

} // namespace

std::optional<LaunchPlan> buildLaunchPlan(KernelOp kernel,
                                          llvm::function_ref<FunctionShape(StringRef)> shapeOf) {
  return PlanBuilder(kernel, shapeOf).run();
}

} // namespace tk
