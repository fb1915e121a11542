//===- OrderIndices.cpp - the order of a reduction's indices --------------===//
//
// A reduction over several indices may name them in any order. The threads of a block should first
// read and combine neighbours in memory, so the contiguous index becomes the last one.
//
//   tk.reduce [sum] ["c", "r"] {x[r, c]}  =>  tk.reduce [sum] ["r", "c"] {x[r, c]}
//
//===----------------------------------------------------------------------===//
#include "passes/tensor/normalize/Simplify.h"

#include "passes/analysis/ScalarExpr.h"

using namespace mlir;
using namespace tk;

template <class T> static void move(SmallVector<T> &values, unsigned from, unsigned to) {
  T value = values[from];
  values.erase(values.begin() + from);
  values.insert(values.begin() + to, value);
}

void tk::moveIndex(ReduceOp reduce, unsigned from, unsigned to) {
  SmallVector<Attribute> names(reduce.getIndexNames().begin(), reduce.getIndexNames().end());
  move(names, from, to);
  reduce.setIndexNamesAttr(ArrayAttr::get(reduce.getContext(), names));
  for (MutableOperandRange bounds : {reduce.getLowerMutable(), reduce.getUpperMutable()}) {
    SmallVector<Value> values(OperandRange(bounds).begin(), OperandRange(bounds).end());
    move(values, from, to);
    bounds.assign(values);
  }
  Block *body = reduce.getBlock();
  BlockArgument old = body->getArgument(from);
  BlockArgument moved = body->insertArgument(from < to ? to + 1 : to, old.getType(), old.getLoc());
  old = body->getArgument(from < to ? from : from + 1);
  old.replaceAllUsesWith(moved);
  body->eraseArgument(old.getArgNumber());
}

bool tk::orderIndices(ReduceOp reduce) {
  unsigned last = reduce.getNumIndices() - 1;
  std::optional<unsigned> along;
  bool agree = true;
  reduce.getBody().walk([&](LoadOp load) {
    auto isOwn = [&](Value index) {
      return llvm::any_of(getIterationIndices(index), [&](BlockArgument argument) {
        return argument.getOwner() == reduce.getBlock();
      });
    };
    if (llvm::none_of(load.getIndices(), isOwn))
      return;
    auto index = dyn_cast<BlockArgument>(load.getIndices().back());
    agree &= index && index.getOwner() == reduce.getBlock() &&
             along.value_or(index.getArgNumber()) == index.getArgNumber();
    if (agree)
      along = index.getArgNumber();
  });
  if (!agree || !along || *along >= last)
    return false;
  moveIndex(reduce, *along, last);
  return true;
}
