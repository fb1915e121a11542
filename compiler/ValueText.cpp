//===- ValueText.cpp - values of different statements as text -------------===//
//
// 1. What a load reads of a statement is that statement's value at the load's indices.
// 2. An index is a number, in the order in which indices first appear, with its extent.
// 3. An operation is its name, its attributes and its operands.
//
//===----------------------------------------------------------------------===//
#include "compiler/ValueText.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tk {
namespace {

/// Operations that a text may have: a value that is read at many places repeats.
constexpr unsigned mostOperations = 400;

/// What the indices of statements are that a load has entered.
using Places = llvm::DenseMap<Value, std::string>;

class Writer {
public:
  std::string write(Value value, const Places &places) {
    if (auto known = places.find(value); known != places.end())
      return known->second;
    if (auto argument = dyn_cast<BlockArgument>(value))
      return writeArgument(argument, places);
    Operation *op = value.getDefiningOp();
    if (++count > mostOperations)
      return "";
    if (auto load = dyn_cast<LoadOp>(op))
      if (auto compute = load.getTensor().getDefiningOp<ComputeOp>())
        return writeStored(load, compute, places);
    std::string text = op->getName().getStringRef().str();
    llvm::raw_string_ostream out(text);
    out << op->getAttrDictionary() << op->getResult(0).getType() << '(';
    for (Value operand : op->getOperands())
      out << write(operand, places) << ',';
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      for (unsigned n = 0; n < reduce.getNumIndices(); ++n)
        out << write(reduce.getIndex(n), places) << ';';
      for (Value term : reduce.getYield().getValues())
        out << write(term, places) << ',';
    } else if (op->getNumRegions() > 0) {
      out << op; // each of these is a value of its own
    }
    out << ')' << cast<OpResult>(value).getResultNumber();
    return text;
  }

  bool isComplete() const { return count <= mostOperations; }

private:
  std::string writeArgument(BlockArgument argument, const Places &places) {
    Operation *owner = argument.getOwner()->getParentOp();
    if (isa<KernelOp>(owner))
      return "%" + std::to_string(argument.getArgNumber());
    auto [number, isNew] = numbers.try_emplace(argument, numbers.size());
    std::string text = "#" + std::to_string(number->second);
    if (auto compute = dyn_cast<ComputeOp>(owner))
      text += ":" + write(compute.getExtents()[argument.getArgNumber()], places);
    return text;
  }

  std::string writeStored(LoadOp load, ComputeOp compute, const Places &places) {
    Places inside;
    for (auto [index, value] :
         llvm::zip(compute.getBody().front().getArguments(), load.getIndices()))
      inside[index] = write(value, places);
    const unsigned result = cast<OpResult>(load.getTensor()).getResultNumber();
    return write(compute.getYield().getOperand(result), inside);
  }

  llvm::DenseMap<Value, size_t> numbers;
  unsigned count = 0;
};

} // namespace

std::string textOfValue(Value value) {
  Writer writer;
  std::string text = writer.write(value, Places());
  return writer.isComplete() ? text : "";
}

} // namespace tk
