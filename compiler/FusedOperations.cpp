//===- FusedOperations.cpp - a product's prologue and epilogue ------------===//
//
// 1. A statement whose only outer reduction is a sum of products is a contraction.
// 2. The epilogue are the statement's operations on floats outside of the sum, the prologue those
//    inside of it, but for the product and the widening of what is read.
// 3. Operations of one kind that follow one another are one word with their number.
//
//===----------------------------------------------------------------------===//
#include "compiler/FusedOperations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace tk {
namespace {

std::string nameOfTensor(LoadOp load) {
  auto kernel = load->getParentOfType<KernelOp>();
  auto tensor = dyn_cast<BlockArgument>(load.getTensor());
  if (!kernel || !tensor || tensor.getOwner()->getParentOp() != kernel ||
      tensor.getArgNumber() < kernel.getNumDims())
    return "";
  return kernel.getParam(tensor.getArgNumber() - kernel.getNumDims()).getName().str();
}

/// "add", of `arith.addf`; for a load of a parameter its name.
std::string wordOf(Operation *op) {
  if (auto load = dyn_cast<LoadOp>(op)) {
    const std::string name = nameOfTensor(load);
    return name.empty() ? "" : "load of " + name;
  }
  if (op->getNumResults() != 1 || !isa<FloatType>(op->getResult(0).getType()) ||
      isa<arith::ExtFOp, arith::ConstantOp, ReduceOp>(op))
    return "";
  if (isa<arith::TruncFOp>(op)) {
    std::string type;
    llvm::raw_string_ostream(type) << op->getResult(0).getType();
    return "rounding to " + type;
  }
  StringRef name = op->getName().stripDialect();
  for (StringRef suffix : {"imumf", "f"})
    if (isa<arith::ArithDialect>(op->getDialect()) && name.consume_back(suffix))
      break;
  return name.str();
}

std::string wordsOf(Block &block, Operation *left) {
  SmallVector<std::pair<std::string, unsigned>> words;
  for (Operation &op : block) {
    std::string word = &op == left ? "" : wordOf(&op);
    if (word.empty())
      continue;
    if (!words.empty() && words.back().first == word)
      ++words.back().second;
    else
      words.emplace_back(std::move(word), 1);
  }
  std::string text;
  for (const auto &[word, count] : words)
    text += (text.empty() ? "" : ", ") + word + (count > 1 ? " x " + std::to_string(count) : "");
  return text;
}

} // namespace

FusedOperations fusedOperations(ComputeOp compute) {
  Block &body = compute.getBody().front();
  auto reduces = body.getOps<ReduceOp>();
  if (!llvm::hasSingleElement(reduces))
    return {};
  ReduceOp sum = *reduces.begin();
  if (sum.isOnline() || sum.getKind(0) != ReduceKind::Sum)
    return {};
  auto product = sum.getYield().getValues()[0].getDefiningOp<arith::MulFOp>();
  if (!product)
    return {};
  FusedOperations fused;
  fused.epilogue = wordsOf(body, sum);
  Block &terms = sum.getBody().front();
  // The factors are loads as a rule: they are no prologue.
  for (Operation &op : terms)
    if (!isa<LoadOp>(op) && &op != product && !wordOf(&op).empty()) {
      fused.prologue = wordsOf(terms, product);
      break;
    }
  return fused;
}

} // namespace tk
