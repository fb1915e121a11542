//===- LaunchArguments.cpp - what a launch hands to its function ----------===//
//
// Values of a function that follow from its arguments alone can be computed where it is launched:
// there tensor maps are made, before the blocks run.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/LeastSizes.h"
#include "passes/analysis/SizeFacts.h"
#include "passes/layout/BulkBox.h"
#include "passes/machine/Machine.h"
#include "passes/plan/WindowPlaces.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tk;
using namespace tk::gpu;

std::optional<LaunchArguments> LaunchArguments::of(FuncOp function) {
  std::optional<SymbolTable::UseRange> uses =
      SymbolTable::getSymbolUses(function, function->getParentOp());
  if (!uses || !llvm::hasSingleElement(*uses))
    return std::nullopt;
  auto launch = dyn_cast<LaunchOp>(uses->begin()->getUser());
  if (!launch)
    return std::nullopt;
  return LaunchArguments(function, launch);
}

/// The function's arguments are the launch's, then its results.
Value LaunchArguments::tensorOf(Value buffer) const {
  LaunchOp op = launch;
  unsigned number = cast<BlockArgument>(buffer).getArgNumber(), count = op.getArgs().size();
  return number < count ? op.getArgs()[number] : Value(op.getResult(number - count));
}

bool LaunchArguments::isKnown(Value value) const {
  LaunchOp op = launch;
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() == FuncOp(function).getBlock() &&
           argument.getArgNumber() < op.getArgs().size();
  Operation *definition = value.getDefiningOp();
  bool isPlain = definition->hasTrait<OpTrait::ConstantLike>() ||
                 isa<arith::MulIOp, arith::AddIOp, arith::SubIOp>(definition);
  if (isa<RankedTensorType>(value.getType()))
    return constantIndex(value).has_value();
  return isPlain &&
         llvm::all_of(definition->getOperands(), [&](Value operand) { return isKnown(operand); });
}

bool LaunchArguments::isKnown(const BulkBox &box) const {
  auto isKnownOrNone = [&](Value value) { return !value || isKnown(value); };
  return isa<BlockArgument>(box.buffer) && llvm::all_of(box.limits, isKnownOrNone) &&
         llvm::all_of(box.strides, isKnownOrNone) && isKnownOrNone(box.firstLimit) &&
         (!box.places || arePlacesKnown(box));
}

Value LaunchArguments::passedFor(Value value) const {
  LaunchOp op = launch;
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return constantIndex(value) ? value : Value();
  return isKnown(value) ? op.getArgs()[argument.getArgNumber()] : Value();
}

namespace {
/// The factors of a product. Sizes with one value alone are numbers.
struct Factors {
  KernelOp kernel;
  SmallVector<Value> values;
  int64_t number = 1;

  explicit Factors(KernelOp kernel) : kernel(kernel) {}
  void add(Value value) {
    std::optional<int64_t> constant = constantIndex(value);
    if (!constant && value.getType().isIndex())
      constant = getSizeFact(kernel, value).exact;
    if (constant) {
      number *= *constant;
    } else if (auto product = value.getDefiningOp<arith::MulIOp>()) {
      add(product.getLhs());
      add(product.getRhs());
    } else {
      values.push_back(value);
    }
  }
  /// Are these the factors of the same number at each launch?
  bool isSame(Factors other) const {
    for (Value value : values) {
      auto *found =
          llvm::find_if(other.values, [&](Value own) { return isSameExtent(value, own); });
      if (found == other.values.end())
        return false;
      other.values.erase(found);
    }
    return other.values.empty() && number == other.number;
  }
};
} // namespace

/// Are there as many places as the launch says, and are corners of their boxes in range at any
/// launch? Places beyond the last one are then outside the tensor along its first axis.
bool LaunchArguments::arePlacesKnown(const BulkBox &box) const {
  LaunchOp op = launch;
  auto kernel = op->getParentOfType<KernelOp>();
  SmallVector<Value> extents = getExtents(kernel, tensorOf(box.buffer));
  Factors wanted(kernel), factors(kernel);
  wanted.add(extents.front());
  for (auto [n, digit] : llvm::enumerate(llvm::drop_begin(box.places->digits))) {
    Value extent = extents[n + 1];
    if (Value limit = box.limits[n + 1])
      extent = passedFor(limit);
    Value count = passedFor(digit.extent.value);
    if (!count || !extent ||
        !areCornersInRange(kernel, count, extent, digit.step, box.lower[n], extents.size()))
      return false;
    wanted.add(count);
  }
  // Without a number of all places, those behind the last one are outside along the first axis.
  if (!box.total)
    return true;
  Value total = passedFor(box.total);
  if (!total)
    return false;
  factors.add(total);
  return wanted.isSame(factors);
}

Value LaunchArguments::atLaunch(OpBuilder &builder, Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return launch.getArgs()[argument.getArgNumber()];
  if (isa<RankedTensorType>(value.getType())) // a bound that is a constant
    return arith::ConstantIndexOp::create(builder, value.getLoc(), *constantIndex(value));
  Operation *op = value.getDefiningOp();
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(atLaunch(builder, operand));
  Operation *clone = builder.clone(*op);
  clone->setOperands(operands);
  return clone->getResult(0);
}

Value LaunchArguments::addArgument(Value value, StringRef name) {
  Type type = value.getType();
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    type = BufferType::get(function.getContext(), tensor.getElementType());
  Block *block = function.getBlock();
  unsigned position = launch.getArgs().size();
  SmallVector<Attribute> names(function.getArgNames().getValue());
  std::string unique = name.str();
  for (unsigned n = 1; llvm::is_contained(names, StringAttr::get(function.getContext(), unique));
       ++n)
    unique = (name + "_" + Twine(n)).str();
  names.insert(names.begin() + position, StringAttr::get(function.getContext(), unique));
  if (std::optional<ArrayAttr> old = function.getArgFacts()) {
    SmallVector<Attribute> facts(old->getValue());
    facts.insert(facts.begin() + position, FactAttr::get(function.getContext(), 1, -1));
    function.setArgFactsAttr(ArrayAttr::get(function.getContext(), facts));
  }
  if (auto old = function->getAttrOfType<DenseI64ArrayAttr>(leastSizesAttrName)) {
    SmallVector<int64_t> least(old.asArrayRef());
    least.insert(least.begin() + position, 0);
    function->setAttr(leastSizesAttrName, DenseI64ArrayAttr::get(function.getContext(), least));
  }
  function.setArgNamesAttr(ArrayAttr::get(function.getContext(), names));
  launch.getArgsMutable().append(value);
  return block->insertArgument(position, type, value.getLoc());
}

Value LaunchArguments::addIndex(Value value, StringRef name) { return addArgument(value, name); }

Value LaunchArguments::addCounter() {
  OpBuilder builder(launch);
  auto type = RankedTensorType::get({}, builder.getI32Type());
  return addArgument(CounterOp::create(builder, launch.getLoc(), type), "counter");
}

bool LaunchArguments::canGroupRows(const BulkBox &box, int64_t group, AxisInfo &info) {
  std::optional<unsigned> axis = box.rowsAxis();
  if (!axis || box.end || box.places || !box.axesOfTensor.empty() ||
      box.coordinates.size() >= mostAxesOfTensorMap || box.box[*axis] % group != 0)
    return false;
  // A group is as far from the next one as the tensor's rows say, which only the launch's own
  // arithmetic can multiply: not where the tensor brings its strides along.
  Value stride = box.strides[*axis];
  if (auto argument = dyn_cast<BlockArgument>(stride);
      argument && launch.getArgs()[argument.getArgNumber()].getDefiningOp<StrideOp>())
    return false;
  auto kernel = launch->getParentOfType<KernelOp>();
  Value extent = getExtents(kernel, tensorOf(box.buffer))[*axis];
  if (getSizeFact(kernel, extent).divisor % group != 0)
    return false;
  SmallVector<Value> summands = box.coordinates[*axis];
  if (Value limit = box.limits[*axis])
    summands.push_back(limit);
  return llvm::all_of(summands,
                      [&](Value value) { return info.divisibilityOf(value) % group == 0; });
}

Value LaunchArguments::arePanelsInside(OpBuilder &builder, const BulkBox &box) {
  SharedType shared = box.shared;
  const int64_t columns = shared.getShape()[shared.getAxisOrder()[0]];
  const int64_t last = columns - box.box.back();
  auto kernel = launch->getParentOfType<KernelOp>();
  Value extent = getExtents(kernel, tensorOf(box.buffer)).back();
  SizeFact fact = getSizeFact(kernel, extent);
  if (last == 0 || fact.divisor % columns == 0)
    return {};
  Location loc = launch.getLoc();
  Value end = addIndex(extent, "columns");
  Value start = arith::ConstantIndexOp::create(builder, loc, last);
  for (Value summand : box.coordinates.back())
    start = arith::AddIOp::create(builder, loc, start, summand);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, start, end);
}

/// The extents of the tensor, along the axes of the box.
SmallVector<Value> LaunchArguments::extentsOf(OpBuilder &builder, const BulkBox &box) {
  SmallVector<Value> all = getExtents(launch->getParentOfType<KernelOp>(), tensorOf(box.buffer));
  if (box.axesOfTensor.empty())
    return all;
  SmallVector<Value> extents;
  size_t next = 0;
  for (unsigned count : box.axesOfTensor) {
    Value product = all[next++];
    if (count > 1 && box.firstLimit)
      product = atLaunch(builder, box.firstLimit);
    for (unsigned n = 1; n < count; ++n)
      product = arith::MulIOp::create(builder, launch.getLoc(), product, all[next++]);
    extents.push_back(product);
  }
  return extents;
}

Value LaunchArguments::addTensorMap(const BulkBox &box, bool isBefore) {
  OpBuilder builder(launch);
  Location loc = launch.getLoc();
  Value tensor = tensorOf(box.buffer);
  SmallVector<Value> extents = extentsOf(builder, box), strides;
  SmallVector<int64_t> sides = box.box;
  for (auto [extent, limit] : llvm::zip_equal(extents, box.limits))
    if (limit)
      extent = atLaunch(builder, limit);
  for (Value stride : box.strides)
    strides.push_back(atLaunch(builder, stride));
  if (int64_t group = box.rowsOfGroup(); group > 1) {
    unsigned axis = *box.rowsAxis();
    Value rows = arith::ConstantIndexOp::create(builder, loc, group);
    extents.insert(std::prev(extents.end()), rows);
    strides.insert(std::prev(strides.end()), strides[axis]);
    sides.insert(std::prev(sides.end()), 2);
    extents[axis] = FloorDivOp::create(builder, loc, rows.getType(), extents[axis], rows);
    strides[axis] = arith::MulIOp::create(builder, loc, strides[axis], rows);
    sides[axis] /= group;
  }
  if (box.end) {
    unsigned axis = *box.copiedRowsAxis();
    Value rows = arith::ConstantIndexOp::create(builder, loc, box.copiedRows());
    if (isBefore) { // no row number becomes negative there
      Value one = arith::ConstantIndexOp::create(builder, loc, 1);
      Value isAny = arith::MinSIOp::create(builder, loc, extents[axis], one);
      Value more = arith::MulIOp::create(builder, loc, isAny, rows);
      extents[axis] = arith::AddIOp::create(builder, loc, extents[axis], more);
    }
    extents.insert(std::prev(extents.end()), rows);
    strides.insert(std::prev(strides.end()), strides[axis]);
    sides.insert(std::prev(sides.end()), box.copiedRows());
    sides[axis] = 1;
  }
  unsigned number = cast<BlockArgument>(box.buffer).getArgNumber(), count = launch.getArgs().size();
  // A launch's result has no value yet where its operands are computed.
  IntegerAttr result;
  if (number >= count)
    result = builder.getI64IntegerAttr(number - count);
  auto map = TensorMapOp::create(builder, loc, result ? Value() : tensor, extents, strides, sides,
                                 *SharedType(box.shared).getHardwareSwizzle(), result,
                                 box.roundsToTf32, isBefore ? box.copiedRows() : 0);
  if (box.places) {
    SmallVector<int64_t> steps;
    for (const CountedDigit &digit : llvm::drop_begin(box.places->digits)) {
      map.getPlacesMutable().append(atLaunch(builder, digit.extent.value));
      steps.push_back(digit.step);
    }
    // Counts stand before the map.
    map->moveBefore(launch);
    map.setLower(box.lower);
    map.setSteps(steps);
  }
  return addArgument(map, (function.getArgName(number) + "_map").str());
}
