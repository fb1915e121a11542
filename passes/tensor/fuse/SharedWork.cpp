//===- SharedWork.cpp - what two compute ops both compute -----------------===//
#include "passes/tensor/fuse/SharedWork.h"

#include "passes/analysis/IndexSpaces.h"
#include "passes/analysis/ProductFactors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <array>

using namespace mlir;

namespace tk {

/// In pre-order, so that outer reductions come before those in them.
template <typename OpT> static SmallVector<OpT> collect(ComputeOp compute) {
  SmallVector<OpT> ops;
  compute->walk<WalkOrder::PreOrder>([&](OpT op) { ops.push_back(op); });
  return ops;
}

/// Takes the indices of reductions over equal ranges for the same, outer ones first. Returns true
/// if `reduce` found one among `others`.
static bool identifyLoops(ScalarEquality &equality, ReduceOp reduce, ArrayRef<ReduceOp> others) {
  bool found = false;
  for (ReduceOp other : others) {
    if (!equality.equal(reduce.getLower(), other.getLower()) ||
        !equality.equal(reduce.getUpper(), other.getUpper()))
      continue;
    found = true;
    for (unsigned n = 0; n < reduce.getNumIndices(); ++n)
      equality.identify(reduce.getIndex(n), other.getIndex(n));
  }
  return found;
}

/// Is what `load` reads a factor of a matrix product?
static bool isFactor(LoadOp load) {
  auto reduce = load->getParentOfType<ReduceOp>();
  if (!reduce || !isContraction(reduce))
    return false;
  return llvm::any_of(reduce.getYield().getValues(), [&](Value term) {
    auto product = term.getDefiningOp<arith::MulFOp>();
    return product && llvm::any_of(product->getOperands(), [&](Value factor) {
             return withoutExtension(factor) == load.getResult();
           });
  });
}

Sharing getSharing(ComputeOp small, ComputeOp large, ArrayRef<unsigned> embedding) {
  Sharing sharing;
  ScalarEquality equality;
  for (auto [n, position] : llvm::enumerate(embedding))
    equality.identify(small.getIndex(n), large.getIndex(position));
  SmallVector<ReduceOp> reduces = collect<ReduceOp>(small), others = collect<ReduceOp>(large);
  sharing.reductions = reduces.size();
  for (ReduceOp reduce : reduces)
    sharing.everyLoopShared &= identifyLoops(equality, reduce, others);
  for (ReduceOp reduce : reduces) {
    bool same = llvm::any_of(others, [&](ReduceOp other) {
      return equality.equal(reduce.getOperation(), other.getOperation());
    });
    sharing.equalReductions += same;
    // Nested ones are temporary; those of the statement itself are live to its end.
    bool isOuter = reduce->getBlock() == small.getBlock();
    sharing.ownProducts += !same && isOuter && isMatrixProduct(reduce);
  }
  SmallVector<LoadOp> largeLoads = collect<LoadOp>(large);
  for (LoadOp load : collect<LoadOp>(small)) {
    bool same = llvm::any_of(largeLoads, [&](LoadOp other) {
      return load.getTensor() == other.getTensor() &&
             equality.equal(load.getIndices(), other.getIndices());
    });
    sharing.equalLoads += same && !load.getIndices().empty();
    sharing.equalFactors += same && isFactor(load);
  }
  return sharing;
}

unsigned countProducts(ComputeOp compute) {
  SmallVector<ReduceOp> reduces = collect<ReduceOp>(compute), different;
  ScalarEquality equality;
  for (ReduceOp reduce : reduces)
    identifyLoops(equality, reduce, reduces);
  for (ReduceOp reduce : reduces)
    if (reduce->getBlock() == compute.getBlock() && isMatrixProduct(reduce) &&
        llvm::none_of(different, [&](ReduceOp other) {
          return equality.equal(reduce.getOperation(), other.getOperation());
        }))
      different.push_back(reduce);
  return different.size();
}

bool isProductBesideReduction(ComputeOp a, ComputeOp b) {
  auto multiplies = [](ComputeOp compute) {
    return llvm::any_of(collect<ReduceOp>(compute), isMatrixProduct);
  };
  bool first = multiplies(a), second = multiplies(b);
  return (first && !second && !collect<ReduceOp>(b).empty()) ||
         (second && !first && !collect<ReduceOp>(a).empty());
}

bool areChains(ComputeOp a, ComputeOp b) {
  return llvm::all_of(std::array{a, b}, [](ComputeOp compute) {
    return llvm::any_of(collect<ReduceOp>(compute), [](ReduceOp reduce) {
      auto around = reduce->getParentOfType<ReduceOp>();
      return around && isContraction(around) && isMatrixProduct(reduce);
    });
  });
}

bool shareInnerProduct(ComputeOp a, ComputeOp b) {
  ScalarEquality equality;
  for (unsigned n = 0; n < a.getNumIndices(); ++n)
    equality.identify(a.getIndex(n), b.getIndex(n));
  SmallVector<ReduceOp> ofA = collect<ReduceOp>(a), ofB = collect<ReduceOp>(b);
  for (ReduceOp reduce : ofA)
    identifyLoops(equality, reduce, ofB);
  return llvm::any_of(ofA, [&](ReduceOp reduce) {
    return reduce->getBlock() != a.getBlock() && isMatrixProduct(reduce) &&
           llvm::any_of(ofB, [&](ReduceOp other) {
             return equality.equal(reduce.getOperation(), other.getOperation());
           });
  });
}

} // namespace tk
