//===- BlockNames.cpp - names of a block program's arguments --------------===//
//
// Names come from the source: those of its dimensions, scalars and tensors. A size that the host
// computes from them is named by its expression, as `T_minus_S`.
//
//===----------------------------------------------------------------------===//
#include "passes/tiling/BlockProgram.h"

#include "passes/analysis/StrideAxes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tk;

std::string tk::identifierOf(StringRef name) {
  std::string result = name.str();
  for (char &c : result)
    if (!llvm::isAlnum(c))
      c = '_';
  return result;
}

/// How the name of an operation on sizes joins those of its operands; empty where it has none.
static StringRef joinOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case([](arith::AddIOp) { return "_plus_"; })
      .Case([](arith::SubIOp) { return "_minus_"; })
      .Case([](arith::MulIOp) { return "_times_"; })
      .Case([](FloorDivOp) { return "_over_"; })
      .Case([](FloorModOp) { return "_mod_"; })
      .Default([](Operation *) { return ""; });
}

std::string BlockProgram::expressionName(Value value) {
  constexpr size_t longest = 32;
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return std::to_string(*constant);
  if (isa<BlockArgument>(value))
    return sourceName(value);
  Operation *op = value.getDefiningOp();
  const StringRef join = joinOf(op);
  if (join.empty())
    return "";
  const std::string first = expressionName(op->getOperand(0));
  const std::string second = expressionName(op->getOperand(1));
  const bool fits = first.size() + join.size() + second.size() <= longest;
  return fits && !first.empty() && !second.empty() ? (first + join + second).str() : "";
}

/// The name of a parameter, a dimension, an earlier launch's result or a stride; else empty.
std::string BlockProgram::sourceName(Value value) {
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    const unsigned number = arg.getArgNumber();
    return number < kernel.getNumDims()
               ? cast<StringAttr>(kernel.getDimNames()[number]).getValue().str()
               : kernel.getParam(number - kernel.getNumDims()).getName().str();
  }
  if (auto launch = value.getDefiningOp<gpu::LaunchOp>())
    if (auto names = launch->getAttrOfType<ArrayAttr>("names"))
      return cast<StringAttr>(names[cast<OpResult>(value).getResultNumber()]).getValue().str();
  if (auto stride = value.getDefiningOp<gpu::StrideOp>()) {
    BlockArgument param = getTensorParam(kernel, stride.getTensor());
    return "stride_" + (param ? sourceName(param) : "result") + std::to_string(stride.getAxis());
  }
  return "";
}

std::string BlockProgram::argumentName(Value value) {
  std::string name = sourceName(value);
  if (name.empty())
    name = expressionName(value);
  if (name.empty())
    name = value.getType().isIndex() ? "size" : "number";
  name = identifierOf(name);
  std::string unique = name;
  for (unsigned n = 1; llvm::is_contained(argumentNames, unique); ++n)
    unique = name + "_" + std::to_string(n);
  return unique;
}
