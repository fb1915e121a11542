//===- MeshPlanBuilder.cpp - a placed kernel as a plan --------------------===//
#include "compiler/plan/MeshPlanBuilder.h"

#include "compiler/plan/HostExpr.h"
#include "compiler/plan/KernelSignature.h"
#include "dialects/tk/TkMeshOps.h"
#include "passes/mesh/LocalKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tk {
namespace {

class MeshPlanBuilder {
public:
  MeshPlanBuilder(KernelOp kernel, ArrayRef<std::string> locals)
      : kernel(kernel), locals(locals), exprs(kernel), sizes(kernel.getContext()) {
    sizes.setInsertionPoint(kernel.getReturn());
  }
  std::optional<MeshPlan> run();

private:
  void addParameters();
  void addResults();
  void addReturned();
  uint32_t addTensor(Value value, MeshTensor tensor);
  uint32_t tensorFor(Value value, StringRef name);
  void addLaunch(LaunchOp launch);
  void addBlocks(LaunchOp launch, MeshStep &step);
  void addCollective(Operation *op);
  static Operation *collectiveOf(LaunchOp launch);
  MeshScalar scalarOf(Value value);
  std::vector<std::string> axesOf(unsigned number, int64_t rank);
  uint32_t axisOf(StringRef name) const;
  Expr exprOf(Value value) {
    std::optional<Expr> expr = exprs.build(value);
    failed |= !expr;
    return expr.value_or(Expr());
  }

  KernelOp kernel;
  ArrayRef<std::string> locals;
  HostExprBuilder exprs;
  OpBuilder sizes;
  MeshPlan plan;
  DenseMap<Value, uint32_t> tensors;
  DenseMap<Value, uint32_t> results; ///< the first result that a value is
  uint32_t numParameters = 0;
  bool failed = false;
};

std::vector<std::string> MeshPlanBuilder::axesOf(unsigned number, int64_t rank) {
  std::vector<std::string> names;
  for (int axis : shardingOf(kernel, number, rank))
    names.push_back(axis == noShard ? "" : plan.axes[axis].name);
  return names;
}

uint32_t MeshPlanBuilder::axisOf(StringRef name) const {
  for (auto [i, axis] : llvm::enumerate(plan.axes))
    if (name == axis.name)
      return i;
  return 0;
}

uint32_t MeshPlanBuilder::addTensor(Value value, MeshTensor tensor) {
  std::optional<DType> dtype = dtypeOf(value.getType());
  failed |= !dtype;
  tensor.dtype = dtype.value_or(DType::f32);
  for (Value extent : mesh::localExtents(sizes, value))
    tensor.shape.push_back(exprOf(extent));
  plan.tensors.push_back(std::move(tensor));
  return tensors[value] = plan.tensors.size() - 1;
}

void MeshPlanBuilder::addParameters() {
  for (auto [i, param] : llvm::enumerate(kernel.getParamArguments())) {
    auto type = dyn_cast<RankedTensorType>(param.getType());
    if (!type)
      continue;
    MeshTensor tensor;
    tensor.kind = MeshTensor::Kind::parameter;
    tensor.index = numParameters++;
    tensor.name = kernel.getParam(i).getName().str();
    tensor.sharding = axesOf(i, type.getRank());
    addTensor(param, std::move(tensor));
  }
}

/// Which values are results: they are made in place.
void MeshPlanBuilder::addResults() {
  for (auto [r, value] : llvm::enumerate(kernel.getReturn().getResults()))
    if (r < kernel.getResultNames().size() && value.getDefiningOp())
      results.try_emplace(value, r);
}

uint32_t MeshPlanBuilder::tensorFor(Value value, StringRef name) {
  MeshTensor tensor;
  tensor.name = name.str();
  if (auto found = results.find(value); found != results.end()) {
    tensor.kind = MeshTensor::Kind::result;
    tensor.index = numParameters + found->second;
    tensor.name = cast<StringAttr>(kernel.getResultNames()[found->second]).getValue().str();
    const int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
    tensor.sharding = axesOf(kernel.getParams().size() + found->second, rank);
  }
  return addTensor(value, std::move(tensor));
}

MeshScalar MeshPlanBuilder::scalarOf(Value value) {
  MeshScalar scalar;
  Value number = value;
  if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    number = cast.getIn();
  if (auto rank = number.getDefiningOp<RankOp>()) {
    scalar.kind = MeshScalar::Kind::rank;
    scalar.index = axisOf(rank.getAxis());
    return scalar;
  }
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    scalar.kind = MeshScalar::Kind::argument;
    for (BlockArgument param :
         kernel.getParamArguments().take_front(argument.getArgNumber() - kernel.getNumDims()))
      scalar.index += isa<RankedTensorType>(param.getType()) ? 0 : 1;
    return scalar;
  }
  scalar.value = exprOf(number);
  return scalar;
}

void MeshPlanBuilder::addLaunch(LaunchOp launch) {
  MeshStep step;
  step.symbol = launch.getCallee().str();
  step.kernel = llvm::find(locals, step.symbol) - locals.begin();
  for (Value operand : launch.getOperands_())
    if (isa<RankedTensorType>(operand.getType()))
      step.inputs.push_back(tensors.lookup(operand));
    else
      step.scalars.push_back(scalarOf(operand));
  auto names = launch->getAttrOfType<ArrayAttr>(launchNamesAttr);
  for (auto [name, result] : llvm::zip(names, launch.getResults()))
    step.outputs.push_back(tensorFor(result, cast<StringAttr>(name).getValue()));
  if (launch.getByRows())
    addBlocks(launch, step);
  plan.steps.push_back(std::move(step));
}

/// Makes a launch by rows one step with the collective that it takes its blocks from, or gives them
/// to.
void MeshPlanBuilder::addBlocks(LaunchOp launch, MeshStep &step) {
  step.axis = axisOf(*launch.getByRows());
  for (auto [i, operand] : llvm::enumerate(launch.getOperands_()))
    if (isa<RankedTensorType>(operand.getType()))
      step.sliced_inputs.push_back(
          llvm::is_contained(launch.getSlicedOperands(), static_cast<int64_t>(i)));
  for (unsigned r = 0; r < launch.getNumResults(); ++r)
    step.sliced_outputs.push_back(
        llvm::is_contained(launch.getSlicedResults(), static_cast<int64_t>(r)));
  Operation *collective = collectiveOf(launch);
  failed |= !collective;
  if (auto gather = dyn_cast_or_null<AllGatherOp>(collective)) {
    step.kind = MeshStep::Kind::gather_launch;
    step.from = tensors.lookup(gather.getTensor()), step.to = tensors.lookup(gather.getResult());
  } else if (auto exchange = dyn_cast_or_null<ExchangeOp>(collective)) {
    step.kind = MeshStep::Kind::launch_exchange;
    step.from = tensors.lookup(exchange.getTensor());
    step.to = tensorFor(exchange.getResult(), plan.tensors[step.from].name);
  }
}

MeshCombine combineOf(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::Prod:
    return MeshCombine::prod;
  case ReduceKind::Max:
    return MeshCombine::max;
  case ReduceKind::Min:
    return MeshCombine::min;
  case ReduceKind::Any:
    return MeshCombine::any;
  case ReduceKind::All:
    return MeshCombine::all;
  default:
    return MeshCombine::sum;
  }
}

void MeshPlanBuilder::addCollective(Operation *op) {
  MeshStep step;
  if (op->hasAttr(besideLaunchAttr)) { // is a part of the launch's step
    if (auto gather = dyn_cast<AllGatherOp>(op))
      tensorFor(gather.getResult(), plan.tensors[tensors.lookup(gather.getTensor())].name);
    return;
  }
  if (auto gather = dyn_cast<AllGatherOp>(op)) {
    step.kind = MeshStep::Kind::all_gather;
    step.axis = axisOf(gather.getAxis()), step.dim = gather.getDim();
  } else if (auto reduce = dyn_cast<AllReduceOp>(op)) {
    step.kind = MeshStep::Kind::all_reduce;
    step.axis = axisOf(reduce.getAxis()), step.combine = combineOf(reduce.getKind());
  } else if (auto scatter = dyn_cast<ReduceScatterOp>(op)) {
    step.kind = MeshStep::Kind::reduce_scatter;
    step.axis = axisOf(scatter.getAxis()), step.combine = combineOf(scatter.getKind());
    step.dim = scatter.getDim();
  } else if (auto rows = dyn_cast<ExchangeOp>(op)) {
    step.kind = MeshStep::Kind::exchange;
    step.axis = axisOf(rows.getAxis());
    if (rows.getSent())
      step.sent = tensors.lookup(rows.getSent()),
      step.received = tensors.lookup(rows.getReceived());
  } else {
    auto exchange = cast<AllToAllOp>(op);
    step.kind = MeshStep::Kind::all_to_all;
    step.axis = axisOf(exchange.getAxis());
    step.dim = exchange.getFrom(), step.to_dim = exchange.getTo();
  }
  step.from = tensors.lookup(op->getOperand(0));
  step.to = tensorFor(op->getResult(0), plan.tensors[step.from].name);
  plan.steps.push_back(std::move(step));
}

/// The collective that gives a launch by rows its blocks, or takes them.
Operation *MeshPlanBuilder::collectiveOf(LaunchOp launch) {
  for (Value operand : launch.getOperands_())
    if (auto gather = operand.getDefiningOp<AllGatherOp>();
        gather && gather->hasAttr(besideLaunchAttr))
      return gather;
  for (Operation *user : launch->getUsers())
    if (isa<ExchangeOp>(user) && user->hasAttr(besideLaunchAttr))
      return user;
  return nullptr;
}

/// Values that are returned, but were not made where they are to be.
void MeshPlanBuilder::addReturned() {
  SmallVector<uint32_t> inouts;
  uint32_t number = 0;
  for (auto [i, param] : llvm::enumerate(kernel.getParamArguments())) {
    if (!isa<RankedTensorType>(param.getType()))
      continue;
    if (kernel.getParam(i).getInout())
      inouts.push_back(number);
    ++number;
  }
  const uint32_t declared = kernel.getResultNames().size();
  for (auto [r, value] : llvm::enumerate(kernel.getReturn().getResults())) {
    MeshStep step;
    step.kind = MeshStep::Kind::copy;
    step.from = tensors.lookup(value);
    if (r >= declared) {
      step.to = inouts[r - declared]; // parameters have the first numbers
    } else if (auto made = results.find(value); made != results.end() && made->second == r) {
      continue;
    } else {
      MeshTensor tensor;
      tensor.kind = MeshTensor::Kind::result;
      tensor.index = numParameters + r;
      tensor.name = cast<StringAttr>(kernel.getResultNames()[r]).getValue().str();
      tensor.sharding =
          axesOf(kernel.getParams().size() + r, cast<RankedTensorType>(value.getType()).getRank());
      const uint32_t before = tensors.lookup(value);
      step.to = addTensor(value, std::move(tensor));
      tensors[value] = before;
    }
    plan.steps.push_back(step);
  }
}

std::optional<MeshPlan> MeshPlanBuilder::run() {
  for (const MeshAxisInfo &axis : meshOf(kernel))
    plan.axes.push_back({axis.name.str(), axis.size});
  addParameters();
  addResults();
  for (Operation &op : llvm::make_early_inc_range(kernel.getBody().front())) {
    if (auto launch = dyn_cast<LaunchOp>(op))
      addLaunch(launch);
    else if (isa<AllGatherOp, AllReduceOp, ReduceScatterOp, AllToAllOp, ExchangeOp>(op))
      addCollective(&op);
    else if (auto check = dyn_cast<AssumeOp>(op); check && check->hasAttr(dividesAttr))
      plan.checks.push_back({Check::Kind::constraint, exprOf(check.getCondition()),
                             check.getText().str(), sourceSpanOf(check.getLoc())});
  }
  addReturned();
  if (failed)
    return std::nullopt;
  return std::move(plan);
}

} // namespace

std::optional<MeshPlan> meshPlanOf(KernelOp placed, ArrayRef<std::string> locals) {
  return MeshPlanBuilder(placed, locals).run();
}

} // namespace tk
