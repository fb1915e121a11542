//===- LaunchArguments.cpp - what a launch hands to its function ----------===//
//
// Values of a function that follow from its arguments alone can be computed where it is launched:
// there tensor maps are made, before the blocks run.
//
//===----------------------------------------------------------------------===//
#include "passes/memory/BulkBox.h"
#include "passes/tiling/SizeFacts.h"

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
Value LaunchArguments::tensorOf(Value buffer) {
  unsigned number = cast<BlockArgument>(buffer).getArgNumber(), count = launch.getArgs().size();
  return number < count ? launch.getArgs()[number] : Value(launch.getResult(number - count));
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
         llvm::all_of(box.strides, isKnownOrNone);
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
  function.setArgNamesAttr(ArrayAttr::get(function.getContext(), names));
  launch.getArgsMutable().append(value);
  return block->insertArgument(position, value.getType(), value.getLoc());
}

Value LaunchArguments::addIndex(Value value, StringRef name) { return addArgument(value, name); }

Value LaunchArguments::addTensorMap(const BulkBox &box) {
  OpBuilder builder(launch);
  Location loc = launch.getLoc();
  Value tensor = tensorOf(box.buffer);
  SmallVector<Value> extents = getExtents(launch->getParentOfType<KernelOp>(), tensor), strides;
  for (auto [extent, limit] : llvm::zip_equal(extents, box.limits))
    if (limit)
      extent = atLaunch(builder, limit);
  for (Value stride : box.strides)
    strides.push_back(atLaunch(builder, stride));
  unsigned number = cast<BlockArgument>(box.buffer).getArgNumber(), count = launch.getArgs().size();
  // A launch's result has no value yet where its operands are computed.
  IntegerAttr result;
  if (number >= count)
    result = builder.getI64IntegerAttr(number - count);
  auto map =
      TensorMapOp::create(builder, loc, result ? Value() : tensor, extents, strides, box.box,
                          *SharedType(box.shared).getHardwareSwizzle(), result, box.roundsToTf32);
  return addArgument(map, (function.getArgName(number) + "_map").str());
}
