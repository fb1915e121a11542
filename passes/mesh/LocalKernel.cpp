//===- LocalKernel.cpp - compute ops between collectives ------------------===//
//
// A local kernel is an ordinary kernel, which the rest of the compiler takes like any other:
//
// 1. Its tensors are what its compute ops read from elsewhere, with their extents on a rank. An
//    extent that is a dimension of the program, or a share of one, is a dimension of the local
//    kernel: `M`, or `M_tp`.
// 2. A size that no tensor has is computed from those (`M = M_tp * 2`), or is an integer parameter.
// 3. The rank is an integer parameter if an index needs its global value.
// 4. What the program says of its sizes (`where H % G == 0`) holds in the local kernel, too, if its
//    dimensions give these sizes.
//
//===----------------------------------------------------------------------===//
#include "passes/mesh/LocalKernel.h"

#include "passes/analysis/ScalarExpr.h"

#include "dialects/tk/TkInvariance.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <set>

using namespace mlir;

namespace tk::mesh {

static int64_t ranksOf(KernelOp kernel, StringRef axis) {
  for (const MeshAxisInfo &info : meshOf(kernel))
    if (info.name == axis)
      return info.size;
  return 1;
}

/// `extent` times or divided by the ranks of an axis.
static Value scaled(OpBuilder &builder, Operation *at, Value extent, StringRef axis,
                    bool isDivided) {
  const int64_t ranks = ranksOf(at->getParentOfType<KernelOp>(), axis);
  Location loc = at->getLoc();
  if (std::optional<int64_t> number = getConstantIntValue(extent))
    return arith::ConstantIndexOp::create(builder, loc,
                                          isDivided ? *number / ranks : *number * ranks);
  if (auto share = extent.getDefiningOp<FloorDivOp>();
      share && !isDivided && isConstantIntValue(share.getRhs(), ranks))
    return share.getLhs();
  // An extent has one share, which may be there.
  if (isDivided)
    for (Operation *user : extent.getUsers())
      if (auto share = dyn_cast<FloorDivOp>(user); share && share->getBlock() == at->getBlock() &&
                                                   share.getLhs() == extent &&
                                                   isConstantIntValue(share.getRhs(), ranks))
        return share.getResult();
  Value size = arith::ConstantIndexOp::create(builder, loc, ranks);
  if (isDivided)
    return FloorDivOp::create(builder, loc, extent.getType(), extent, size).getResult();
  return arith::MulIOp::create(builder, loc, extent, size);
}

SmallVector<Value> localExtents(OpBuilder &builder, Value tensor) {
  if (auto argument = dyn_cast<BlockArgument>(tensor)) {
    auto kernel = cast<KernelOp>(argument.getOwner()->getParentOp());
    return SmallVector<Value>(kernel.getBind(tensor).getExtents());
  }
  Operation *op = tensor.getDefiningOp();
  if (auto compute = dyn_cast<ComputeOp>(op)) {
    SmallVector<Value> extents;
    for (unsigned i : compute.getIndicesOf(cast<OpResult>(tensor).getResultNumber()))
      extents.push_back(compute.getExtents()[i]);
    return extents;
  }
  if (auto launch = dyn_cast<LaunchOp>(op)) {
    size_t first = 0;
    for (Value result : launch.getResults()) {
      const size_t rank = cast<RankedTensorType>(result.getType()).getRank();
      if (result == tensor)
        return SmallVector<Value>(launch.getExtents().slice(first, rank));
      first += rank;
    }
  }
  SmallVector<Value> extents = localExtents(builder, op->getOperand(0));
  auto scale = [&](int64_t dim, StringRef axis, bool isDivided) {
    extents[dim] = scaled(builder, op, extents[dim], axis, isDivided);
  };
  if (auto gather = dyn_cast<AllGatherOp>(op))
    scale(gather.getDim(), gather.getAxis(), false);
  if (auto scatter = dyn_cast<ReduceScatterOp>(op))
    scale(scatter.getDim(), scatter.getAxis(), true);
  if (auto exchange = dyn_cast<AllToAllOp>(op)) {
    scale(exchange.getFrom(), exchange.getAxis(), false);
    scale(exchange.getTo(), exchange.getAxis(), true);
  }
  return extents;
}

namespace {

class Outliner {
public:
  Outliner(const LocalPart &part, KernelOp placed, OpBuilder &builder)
      : part(part), placed(placed), outer(builder), inner(builder.getContext()) {}
  LaunchOp run(StringRef name);

private:
  void addDimensions();
  Value sizeFor(Value value);
  Value constantFor(Operation *op);
  Value addScalar(Value outerValue, StringRef name);
  std::string unusedName(const std::string &name);
  std::string nameOfSize(Value size);
  void addTensors();
  bool isGiven(Value size) const;
  Value conditionFor(Value condition);
  void cloneAssumptions();
  void cloneComputes();
  Value shareFor(Value whole, int64_t &ranks) const;
  bool isShareOf(Value share, Value whole, int64_t &ranks) const;

  const LocalPart &part;
  KernelOp placed;
  OpBuilder &outer;
  OpBuilder inner;
  Block *block = nullptr;
  IRMapping mapping;
  SmallVector<std::string> dimNames;
  SmallVector<Value> dims;                            ///< of the placed kernel
  llvm::MapVector<Value, SmallVector<Value>> extents; ///< of the inputs
  SmallVector<Attribute> params;
  SmallVector<Value> operands;
  std::set<std::string> names;
};

} // namespace

std::string Outliner::unusedName(const std::string &name) {
  std::string unused = name;
  for (unsigned i = 2; !names.insert(unused).second; ++i)
    unused = name + "_" + std::to_string(i);
  return unused;
}

/// `M`, `M_tp`, or `extent`.
std::string Outliner::nameOfSize(Value size) {
  if (StringRef name = placed.getDimName(size); !name.empty())
    return name.str();
  if (Operation *op = size.getDefiningOp(); op && op->hasAttr(rowsAttr))
    return "rows";
  auto share = size.getDefiningOp<FloorDivOp>();
  StringRef whole = share ? placed.getDimName(share.getLhs()) : StringRef();
  if (whole.empty())
    return "extent";
  std::optional<int64_t> ranks = getConstantIntValue(share.getRhs());
  for (const MeshAxisInfo &axis : meshOf(placed))
    if (ranks && axis.size == *ranks)
      return (whole + "_" + axis.name).str();
  return "extent";
}

/// Dimensions and shares of them; other extents follow from these.
static bool isDimension(KernelOp placed, Value extent) {
  if (!placed.getDimName(extent).empty())
    return true;
  if (Operation *op = extent.getDefiningOp(); op && op->hasAttr(rowsAttr))
    return true;
  auto share = extent.getDefiningOp<FloorDivOp>();
  return share && getConstantIntValue(share.getRhs()) && !getConstantIntValue(share.getLhs());
}

void Outliner::addDimensions() {
  for (Value tensor : part.inputs) {
    extents[tensor] = localExtents(outer, tensor);
    for (Value extent : extents[tensor]) {
      if (getConstantIntValue(extent) || llvm::is_contained(dims, extent) ||
          !isDimension(placed, extent))
        continue;
      dims.push_back(extent);
      dimNames.push_back(unusedName(nameOfSize(extent)));
    }
  }
  for (Value dim : dims)
    mapping.map(dim, block->addArgument(inner.getIndexType(), dim.getLoc()));
}

Value Outliner::addScalar(Value outerValue, StringRef name) {
  params.push_back(ParamAttr::get(inner.getContext(), unusedName(name.str()), false, false));
  Value operand = outerValue;
  Type type = operand.getType();
  if (type.isIndex()) {
    operand = arith::IndexCastOp::create(outer, outerValue.getLoc(), outer.getI64Type(), operand);
    type = operand.getType();
  }
  operands.push_back(operand);
  Value argument = block->addArgument(type, outerValue.getLoc());
  if (!outerValue.getType().isIndex())
    return argument;
  return arith::IndexCastOp::create(inner, outerValue.getLoc(), inner.getIndexType(), argument);
}

bool Outliner::isShareOf(Value share, Value whole, int64_t &ranks) const {
  auto quotient = share.getDefiningOp<FloorDivOp>();
  if (!quotient || quotient.getLhs() != whole)
    return false;
  std::optional<int64_t> divisor = getConstantIntValue(quotient.getRhs());
  if (!divisor)
    return false;
  ranks = *divisor;
  return true;
}

/// The dimension that is a share of a size, of how many ranks; null: there is none.
Value Outliner::shareFor(Value whole, int64_t &ranks) const {
  const auto *found = llvm::find_if(dims, [&](Value dim) { return isShareOf(dim, whole, ranks); });
  return found == dims.end() ? Value() : *found;
}

/// The counterpart of a size or scalar of the placed kernel in the local one.
Value Outliner::sizeFor(Value value) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Value made;
  Operation *op = value.getDefiningOp();
  int64_t ranks = 1, other = 1;
  if (Value share = shareFor(value, ranks)) {
    Value size = arith::ConstantIndexOp::create(inner, value.getLoc(), ranks);
    made = arith::MulIOp::create(inner, value.getLoc(), mapping.lookup(share), size);
  } else if (auto quotient = value.getDefiningOp<FloorDivOp>()) {
    // The ratio of two sizes is that of their shares.
    Value above = shareFor(quotient.getLhs(), ranks), below = shareFor(quotient.getRhs(), other);
    if (above && below && ranks == other)
      made = FloorDivOp::create(inner, value.getLoc(), value.getType(), mapping.lookup(above),
                                mapping.lookup(below))
                 .getResult();
  }
  if (!made && (!op || isa<RankOp>(op))) {
    std::string name = "size";
    if (auto rank = value.getDefiningOp<RankOp>())
      name = (rank.getAxis() + "_rank").str();
    else if (StringRef dim = placed.getDimName(value); !dim.empty())
      name = dim.str();
    else
      name = placed.getParam(cast<BlockArgument>(value).getArgNumber() - placed.getNumDims())
                 .getName()
                 .str();
    made = addScalar(value, name);
  }
  if (!made) {
    for (Value input : getInputs(op))
      mapping.map(input, sizeFor(input));
    made = inner.clone(*op, mapping)->getResult(cast<OpResult>(value).getResultNumber());
  }
  mapping.map(value, made);
  return made;
}

/// What the program calls a tensor that a compute op or a launch makes.
static std::string nameOfTensor(Value tensor) {
  auto result = dyn_cast<OpResult>(tensor);
  ArrayAttr list;
  if (result && isa<ComputeOp>(result.getOwner()))
    list = cast<ComputeOp>(result.getOwner()).getNames();
  else if (result)
    list = result.getOwner()->getAttrOfType<ArrayAttr>(launchNamesAttr);
  return list ? cast<StringAttr>(list[result.getResultNumber()]).getValue().str() : "";
}

void Outliner::addTensors() {
  for (Value tensor : part.inputs) {
    std::string name = "t";
    bool isStrided = false;
    if (auto argument = dyn_cast<BlockArgument>(tensor)) {
      ParamAttr param = placed.getParam(argument.getArgNumber() - placed.getNumDims());
      name = param.getName().str(), isStrided = param.getStrided();
    } else {
      Value source = tensor;
      while (source.getDefiningOp() && !isa<ComputeOp, LaunchOp>(source.getDefiningOp()))
        source = source.getDefiningOp()->getOperand(0);
      if (std::string made = nameOfTensor(source); !made.empty())
        name = made;
    }
    params.push_back(ParamAttr::get(inner.getContext(), unusedName(name), isStrided, false));
    operands.push_back(tensor);
    mapping.map(tensor, block->addArgument(tensor.getType(), tensor.getLoc()));
  }
}

/// Whether the dimensions of the local kernel give a size, without a parameter.
bool Outliner::isGiven(Value size) const {
  int64_t ranks = 1;
  if (mapping.contains(size) || shareFor(size, ranks))
    return true;
  Operation *op = size.getDefiningOp();
  return op && !isa<RankOp>(op) && isPure(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isGiven(operand); });
}

/// A size divides another one if its share divides that of the other one, for as many ranks.
Value Outliner::conditionFor(Value condition) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  auto rest = compare ? compare.getLhs().getDefiningOp<FloorModOp>() : FloorModOp();
  int64_t ranks = 1, other = 1;
  Value above = rest ? shareFor(rest.getLhs(), ranks) : Value();
  Value below = rest ? shareFor(rest.getRhs(), other) : Value();
  if (!above || !below || ranks != other || !isConstantIntValue(compare.getRhs(), 0))
    return sizeFor(condition);
  Location loc = rest.getLoc();
  Value own =
      FloorModOp::create(inner, loc, rest.getType(), mapping.lookup(above), mapping.lookup(below))
          .getResult();
  return arith::CmpIOp::create(inner, loc, compare.getPredicate(), own, sizeFor(compare.getRhs()));
}

void Outliner::cloneAssumptions() {
  for (AssumeOp assume : placed.getOps<AssumeOp>())
    if (!assume->hasAttr(dividesAttr) && isGiven(assume.getCondition())) {
      IRMapping own;
      own.map(assume.getCondition(), conditionFor(assume.getCondition()));
      inner.clone(*assume, own);
    }
}

void Outliner::cloneComputes() {
  for (Operation *op : part.computes) {
    for (Value input : getInputs(op))
      if (!isa<RankedTensorType>(input.getType()))
        sizeFor(input);
    Operation *clone = inner.clone(*op, mapping);
    for (auto [from, to] : llvm::zip(op->getResults(), clone->getResults()))
      mapping.map(from, to);
  }
}

LaunchOp Outliner::run(StringRef name) {
  OpBuilder after(placed->getContext());
  after.setInsertionPointToEnd(placed->getBlock());
  SmallVector<std::string> results;
  for (Value result : part.results)
    results.push_back(unusedName(nameOfTensor(result)));
  SmallVector<StringRef> resultNames(results.begin(), results.end());
  auto kernel = KernelOp::create(after, placed.getLoc(), name, inner.getStrArrayAttr({}),
                                 inner.getArrayAttr({}), inner.getStrArrayAttr(resultNames),
                                 ArrayAttr(), placed.getDeterministic());
  if (Attribute invariant = placed->getAttr(batchInvariantAttrName))
    kernel->setAttr(batchInvariantAttrName, invariant);
  block = inner.createBlock(&kernel.getBody());
  addDimensions();
  addTensors();
  for (Value tensor : part.inputs) {
    SmallVector<Value> own;
    for (Value extent : extents[tensor])
      own.push_back(sizeFor(extent));
    BindOp::create(inner, tensor.getLoc(), mapping.lookup(tensor), own);
  }
  cloneAssumptions();
  cloneComputes();
  SmallVector<Value> returned, shape;
  SmallVector<Type> types;
  for (Value result : part.results) {
    returned.push_back(mapping.lookup(result));
    types.push_back(result.getType());
    llvm::append_range(shape, localExtents(outer, result));
  }
  ReturnOp::create(inner, placed.getLoc(), returned);
  SmallVector<StringRef> dimRefs(dimNames.begin(), dimNames.end());
  kernel.setDimNamesAttr(inner.getStrArrayAttr(dimRefs));
  kernel.setParamsAttr(inner.getArrayAttr(params));
  auto launch = LaunchOp::create(outer, placed.getLoc(), types, name, operands, shape,
                                 /*by_rows=*/StringAttr());
  launch->setAttr(launchNamesAttr, inner.getStrArrayAttr(resultNames));
  return launch;
}

LaunchOp outline(const LocalPart &part, KernelOp placed, StringRef name, OpBuilder &builder) {
  return Outliner(part, placed, builder).run(name);
}

} // namespace tk::mesh
